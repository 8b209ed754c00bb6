"""Every cut carries the documents as they are, in messages within the limits."""

import numpy as np
import pytest

import maxsimd
from maxsimd import _plan
from maxsimd._arrays import FLOAT32, Rows
from maxsimd._documents import PackedDocuments, check_documents
from maxsimd._plan import Planner, RowSet, chunk_parts
from maxsimd._results import Limits
from maxsimd.v1 import rerank_pb2 as pb

DIM = 3
QUERY = Rows(FLOAT32, np.zeros((2, DIM), np.float32))


def cut(documents, limits, start_bytes=50):
    """The calls, and per call the messages' documents."""
    checked = check_documents(documents, QUERY)
    calls = Planner(checked, 4 * DIM, 2 * DIM, limits, start_bytes).plan()
    parts = [[chunk_parts(checked, FLOAT32, DIM, chunk) for chunk in call.chunks] for call in calls]
    return calls, [
        [pb.Documents.FromString(p.join()) if p else pb.Documents() for p in one] for one in parts
    ]


def unpacked(message):
    """The documents of a message, as bytes."""
    rows = np.frombuffer(message.tokens.data, np.float32).reshape(-1, DIM)
    ends = np.cumsum(message.lengths)
    firsts = message.offsets or [int(e - n) for n, e in zip(message.lengths, ends, strict=True)]
    return [
        rows[first : first + length].tobytes()
        for first, length in zip(firsts, message.lengths, strict=True)
    ]


def random_documents(random, kind):
    rows = random.standard_normal((400, DIM), np.float32)
    lengths = random.integers(0, 30, 40)
    if kind == "offsets":
        offsets = random.integers(0, 370, 40)
        documents = PackedDocuments(rows, lengths, offsets)
        return documents, [rows[o : o + n].tobytes() for o, n in zip(offsets, lengths, strict=True)]
    rows = np.resize(rows, (int(lengths.sum()), DIM))
    arrays = np.split(rows, np.cumsum(lengths)[:-1])
    exact = [array.tobytes() for array in arrays]
    return (PackedDocuments(rows, lengths) if kind == "packed" else arrays), exact


@pytest.mark.parametrize("kind", ["arrays", "packed", "offsets"])
@pytest.mark.parametrize("target", [1, 600, 1500, 1 << 20])
@pytest.mark.parametrize("start_bytes", [50, 700, 1900])
def test_any_cut_keeps_the_documents_and_the_limits(monkeypatch, kind, target, start_bytes):
    monkeypatch.setattr(_plan, "TARGET_CHUNK_BYTES", target)
    limits = Limits(
        max_message_bytes=4000, max_stream_message_bytes=1500, max_documents_per_message=7,
        max_documents_per_stream=25, max_multiply_adds_per_message=6 * 80,
    )  # fmt: skip
    for seed in range(20):
        documents, exact = random_documents(np.random.default_rng(seed), kind)
        calls, messages = cut(documents, limits, start_bytes)
        assert [d for call in messages for one in call for d in unpacked(one)] == exact
        assert [call.first for call in calls] == np.cumsum([0, *(c.count for c in calls)])[
            :-1
        ].tolist()
        for call, sent in zip(calls, messages, strict=True):
            most = 1500 if call.stream else 4000
            assert len(sent) == 1 or call.stream
            assert call.count <= 25 or not call.stream
            assert all(one.lengths for one in sent[1:])
            for i, one in enumerate(sent):
                assert one.ByteSize() + 20 + (start_bytes if i == 0 else 0) <= most
                assert len(one.lengths) <= 7
                assert sum(one.lengths) <= 80


def test_what_fits_one_message_goes_as_one_call():
    calls, _ = cut([np.zeros((5, DIM), np.float32)] * 3, Limits())
    assert [(call.stream, call.count) for call in calls] == [(False, 3)]
    assert [call.stream for call in cut([], Limits())[0]] == [False]


def test_more_goes_as_a_stream(monkeypatch):
    monkeypatch.setattr(_plan, "TARGET_CHUNK_BYTES", 300)
    calls, _ = cut([np.zeros((5, DIM), np.float32)] * 30, Limits())
    assert [(call.stream, call.count) for call in calls] == [(True, 30)]
    assert len(calls[0].chunks) > 5


def test_a_document_too_big_for_a_stream_goes_alone(monkeypatch):
    monkeypatch.setattr(_plan, "TARGET_CHUNK_BYTES", 300)
    small, big = np.zeros((5, DIM), np.float32), np.zeros((60, DIM), np.float32)
    calls, _ = cut([small, small, big, small], Limits(max_stream_message_bytes=600))
    assert [(call.stream, call.first, call.count) for call in calls] == [
        (True, 0, 2), (False, 2, 1), (True, 3, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "value"),
    [("max_document_tokens", 9), ("max_message_bytes", 300), ("max_multiply_adds_per_message", 59)],
)
def test_a_document_over_a_limit_is_named(limit, value):
    small, big = np.zeros((2, DIM), np.float32), np.zeros((10, DIM), np.float32)
    limits = Limits(**{"max_stream_message_bytes": 200, limit: value})
    with pytest.raises(
        maxsimd.LimitExceeded, match=rf"documents\[2\]: .* {limit} = {value}"
    ) as error:
        cut([small, small, big], limits, start_bytes=115)
    assert error.value.limit == limit


def test_a_query_over_the_limit_is_named():
    with pytest.raises(maxsimd.LimitExceeded, match=r"query: .* max_message_bytes = 100"):
        cut([], Limits(max_message_bytes=100))


def test_neighbours_share_rows_past_the_target(monkeypatch):
    monkeypatch.setattr(_plan, "TARGET_CHUNK_BYTES", 300)
    rows = np.zeros((40, DIM), np.float32)
    windows = PackedDocuments(rows, [20] * 21, range(21))
    _, messages = cut(windows, Limits())
    assert [len(one.tokens.data) for one in messages[0]] == [rows.nbytes]


def test_row_set_against_a_plain_set():
    random = np.random.default_rng(3)
    for _ in range(50):
        rows, plain = RowSet(), set()
        for begin, length in zip(
            random.integers(0, 60, 20), random.integers(0, 9, 20), strict=True
        ):
            more = set(range(begin, begin + length))
            assert rows.missing(int(begin), int(begin + length)) == len(more - plain)
            rows.add(int(begin), int(begin + length))
            plain |= more
        assert {row for begin, end in rows.ranges() for row in range(begin, end)} == plain
        ends = [end for _, end in rows.ranges()]
        assert all(a < b for a, (b, _) in zip(ends, rows.ranges()[1:], strict=False))
