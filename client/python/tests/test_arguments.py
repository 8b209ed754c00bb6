"""What callers pass is checked before anything is sent, and seen as the same bytes whatever holds it."""

import ml_dtypes
import numpy as np
import pytest

import maxsimd
from maxsimd import PackedDocuments
from maxsimd._arrays import BFLOAT16, FLOAT16, FLOAT32, as_rows

QUERY = np.ones((2, 4), np.float32)
DOCUMENT = np.ones((3, 4), np.float32)
NOBODY = "127.0.0.1:1"  # Nothing is sent there.


@pytest.mark.parametrize(
    ("dtype", "element_type"),
    [
        ("f4", FLOAT32),
        ("f2", FLOAT16),
        (ml_dtypes.bfloat16, BFLOAT16),
        (">f4", FLOAT32),
        (">f2", FLOAT16),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_little_endian_and_in_c_order(dtype, element_type, order):
    values = np.arange(12).reshape(3, 4)
    rows = as_rows(np.asarray(values.astype(dtype), order=order), "query")
    assert rows.element_type == element_type
    exact = np.ascontiguousarray(values.astype(np.dtype(dtype).newbyteorder("<")))
    assert rows.data.tobytes() == exact.tobytes()
    assert rows.data.flags.c_contiguous


def test_plain_arrays_are_seen_in_place():
    assert np.shares_memory(as_rows(DOCUMENT, "query").data, DOCUMENT)
    bfloat16 = DOCUMENT.astype(ml_dtypes.bfloat16)
    assert np.shares_memory(as_rows(bfloat16, "query").data, bfloat16)


PACKED = np.ones((6, 4), np.float32)
WRONG = [
    ({"query": [[1.0]]}, "query", "is list"),
    ({"query": np.ones(4, np.float32)}, "query", "1 dimensions"),
    ({"query": np.ones((2, 4))}, "query", "float64 is not supported"),
    ({"query": np.ones((0, 4), np.float32)}, "query", "no tokens"),
    ({"query": np.ones((2, 0), np.float32)}, "query", "dim is 0"),
    ({"documents": [DOCUMENT, DOCUMENT.astype(np.float16)]}, "documents", r"\[1\]: is float16"),
    ({"documents": [DOCUMENT, DOCUMENT[:, :3]]}, "documents", r"\[1\]: dim is 3"),
    ({"documents": [DOCUMENT, DOCUMENT[0]]}, "documents", r"\[1\]: has 1 dimensions"),
    ({"documents": [DOCUMENT, "text"]}, "documents", r"\[1\]: is str"),
    ({"documents": DOCUMENT}, "documents", "PackedDocuments"),
    ({"documents": "text"}, "documents", "is str"),
    ({"documents": None}, "documents", "is NoneType"),
    ({"documents": np.ones((2, 3, 5), np.float32)}, "documents", "dim is 5"),
    ({"documents": PackedDocuments(PACKED, [3, 4])}, "lengths", "sum is 7, but rows are 6"),
    ({"documents": PackedDocuments(PACKED, [-1, 7])}, "lengths", "0 to"),
    ({"documents": PackedDocuments(PACKED, [1.0, 5.0])}, "lengths", "integers"),
    ({"documents": PackedDocuments(PACKED, [[6]])}, "lengths", "2 dimensions"),
    ({"documents": PackedDocuments(PACKED, [3, 3], [0])}, "offsets", "1 for 2 lengths"),
    (
        {"documents": PackedDocuments(PACKED, [3, 3], [0, 4])},
        "offsets",
        "document 1 begins at row 4",
    ),
    ({"documents": PackedDocuments(PACKED, [0, 1], [7, 0])}, "offsets", "document 0"),
    ({"documents": PackedDocuments(PACKED, [1], [2**64])}, "offsets", "0 to|integers"),
    ({"documents": PackedDocuments(PACKED[:, :2], [6])}, "documents", "dim is 2"),
    ({"ids": ["a", "b"]}, "ids", "2 for 1 documents"),
    ({"top_k": 0}, "top_k", "at least 1"),
    ({"top_k": 2**32}, "top_k", "at least 1"),
    ({"aggregation": "max"}, "aggregation", "'sum' or 'mean'"),
    ({"token_weights": [1.0]}, "token_weights", r"shape \[1\]"),
    ({"token_weights": ["a", "b"]}, "token_weights", "a"),
]


@pytest.mark.parametrize(("wrong", "argument", "message"), WRONG)
def test_wrong_arguments_are_named_before_the_wire(wrong, argument, message):
    arguments = {"query": QUERY, "documents": [DOCUMENT], **wrong}
    with (
        maxsimd.Client(NOBODY) as client,
        pytest.raises(maxsimd.InvalidArgument, match=message) as error,
    ):
        client.rerank(**arguments)
    assert error.value.argument == argument
    assert str(error.value).startswith(argument)
    assert isinstance(error.value, ValueError)


def test_a_stream_names_them_at_once():
    with maxsimd.Client(NOBODY) as client:
        with pytest.raises(maxsimd.InvalidArgument, match="query"):
            client.rerank_stream(np.ones(4), [])
        with pytest.raises(maxsimd.InvalidArgument, match="top_k"):
            client.rerank_stream(QUERY, [], top_k=-1)


@pytest.mark.parametrize(
    ("documents", "options", "argument"),
    [
        ([DOCUMENT, DOCUMENT[:, :3]], {}, "documents"),
        ([DOCUMENT, PackedDocuments(PACKED, [5])], {}, "lengths"),
        ([DOCUMENT, DOCUMENT], {"ids": ["a"]}, "ids"),
        ([DOCUMENT, DOCUMENT], {"ids": ["a", "b", "c"]}, "ids"),
    ],
)
def test_a_stream_names_them_as_they_come(calls, documents, options, argument):
    with pytest.raises(maxsimd.InvalidArgument) as error:
        calls.rerank_stream(QUERY, iter(documents), **options)
    assert error.value.argument == argument


def test_a_streams_document_over_a_limit_has_its_own_number(calls):
    documents = [DOCUMENT, DOCUMENT, np.ones((70_000, 4), np.float32)]
    with pytest.raises(
        maxsimd.LimitExceeded, match=r"documents\[2\]: 70000 tokens.*max_document_tokens"
    ):
        calls.rerank_stream(QUERY, iter(documents))
