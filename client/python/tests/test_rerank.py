"""Rankings of the real server."""

import json
import pathlib
import threading

import ml_dtypes
import numpy as np
import pytest
from server import ROOT

import maxsimd
from maxsimd import DocumentStatus, PackedDocuments, _plan, _stream

CASES = sorted(path.parent for path in (ROOT / "tests" / "cases").glob("*/case.json"))


class Case:
    """One folder of tests/cases/."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.expected = json.loads((folder / "case.json").read_text())
        self.bfloat16 = self.expected["element_type"] == "bfloat16"

        def array(name):
            path = folder / f"{name}.npy"
            return np.load(path) if path.exists() else None

        self.query = self._typed(array("query"))
        self.documents = PackedDocuments(
            self._typed(array("documents")), array("lengths"), array("offsets")
        )
        options = self.expected["options"]
        self.options = {
            "top_k": options.get("top_k") or None,
            "normalize": options.get("normalize", False),
            "aggregation": options.get("aggregation", "SUM").lower(),
            "token_weights": array("weights"),
            "return_matches": options.get("return_matches", False),
            "ids": [f"document {i}" for i in range(len(self.documents))],
        }

    def _typed(self, rows):
        return rows.view(ml_dtypes.bfloat16) if self.bfloat16 else rows

    def check(self, results):
        expected = self.expected
        ranking = expected.get("ranking")
        if ranking is not None:
            assert [r.index for r in results] == ranking
        assert len({r.index for r in results}) == len(results)
        for result in results:
            i = result.index
            assert result.id == f"document {i}"
            assert result.status is DocumentStatus[expected["statuses"][i]]
            exact = expected["scores"][i]
            if exact is None:
                assert result.score == -np.inf
            else:
                assert abs(result.score - exact) <= expected["bounds"][i]
            self.check_matches(result)

    def check_matches(self, result):
        if "matches" not in self.expected:
            assert result.matches is None
            return
        exact = self.expected["matches"][result.index]
        if exact is None:
            assert (result.matches.document_tokens == -1).all()
            assert np.isnan(result.matches.similarities).all()
            return
        tokens, similarities = zip(*exact, strict=True)
        assert result.matches.document_tokens.tolist() == list(tokens)
        np.testing.assert_allclose(result.matches.similarities, similarities, rtol=1e-4, atol=1e-6)


@pytest.fixture(params=[16, 1 << 21], ids=["cut", "whole"])
def _chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(_plan, "TARGET_CHUNK_BYTES", request.param)
    monkeypatch.setattr(_stream, "TARGET_CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("_chunk_bytes")
@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_cases(calls, folder):
    case = Case(folder)
    result = calls.rerank(case.query, case.documents, **case.options)
    case.check(list(result))
    if case.options["top_k"] is None:
        assert len(result) == len(case.documents)
    order = list(zip(-result.scores, result.indices, strict=True))
    assert order == sorted(order)
    assert result.document_tokens == np.sum(case.documents.lengths)

    streamed = calls.rerank_stream(case.query, iter([case.documents]), **case.options)
    case.check(streamed)
    bits = {r.index: r.score for r in streamed}
    assert {r.index: r.score for r in result} == bits


def test_there_are_cases():
    assert CASES


@pytest.fixture
def candidates():
    random = np.random.default_rng(1)
    query = random.standard_normal((5, 16), np.float32)
    return query, [random.standard_normal((n, 16), np.float32) for n in (3, 0, 7, 1)]


def test_every_form_of_documents_scores_the_same(calls, candidates):
    query, documents = candidates
    result = calls.rerank(query, documents)
    exact = [(query @ d.T).max(axis=1).sum() if len(d) else -np.inf for d in documents]
    assert result.indices.tolist() == np.argsort(exact)[::-1].tolist()
    np.testing.assert_allclose(result.scores, np.sort(exact)[::-1], rtol=1e-5)
    rows = np.concatenate(documents)
    strided = [np.asfortranarray(d) for d in documents]
    for same in (
        tuple(documents),
        strided,
        [d.astype(">f4") for d in documents],
        PackedDocuments(rows, [3, 0, 7, 1]),
        PackedDocuments(rows, np.array([3, 0, 7, 1]), [0, 0, 3, 10]),
    ):
        assert calls.rerank(query, same).scores.tolist() == result.scores.tolist()
        items = [same] if isinstance(same, PackedDocuments) else iter(same)
        streamed = calls.rerank_stream(query, items)
        assert sorted((r.score for r in streamed), reverse=True) == result.scores.tolist()


def test_one_array_of_equally_long_documents(calls):
    random = np.random.default_rng(2)
    query = random.standard_normal((3, 8), np.float32)
    documents = random.standard_normal((6, 4, 8), np.float32)
    whole = calls.rerank(query, documents, ids=np.arange(6) * 10)
    assert whole.scores.tolist() == calls.rerank(query, list(documents)).scores.tolist()
    assert (whole.ids == whole.indices * 10).all()


def test_no_documents(calls, candidates):
    query, _ = candidates
    assert len(calls.rerank(query, [])) == 0
    assert calls.rerank_stream(query, iter([])) == []


def test_documents_of_any_size_and_call(calls):
    random = np.random.default_rng(4)
    query = random.standard_normal((2, 64), np.float32)
    big = random.standard_normal((20_000, 64), np.float32)  # 5 MB, over a stream's 4 MiB.
    documents = [big[:3], big, big[5:7], big[:20]] * 2
    result = calls.rerank(query, documents, return_matches=True)
    assert sorted(result.indices.tolist()) == list(range(8))
    assert set(result.indices[:2].tolist()) == {1, 5}
    streamed = calls.rerank_stream(query, iter(documents), return_matches=True, top_k=8)
    assert [r.index for r in streamed] == result.indices.tolist()
    assert [r.score for r in streamed] == result.scores.tolist()
    tokens = [r.matches.document_tokens.tolist() for r in streamed]
    assert tokens == result.matches.document_tokens.tolist()


def test_a_server_that_refuses_says_which_argument(calls, candidates):
    query, documents = candidates
    with pytest.raises(maxsimd.InvalidArgument) as error:
        calls.rerank(query * np.inf, documents)
    assert error.value.argument == "query"
    weights = np.array([1, -1, 0, 0, 0])
    with pytest.raises(maxsimd.InvalidArgument) as error:
        calls.rerank(query, documents, token_weights=weights, aggregation="mean")
    assert error.value.argument == "token_weights"
    with pytest.raises(maxsimd.LimitExceeded, match="max_dim") as limit:
        calls.rerank(np.ones((1, 5000), np.float32), [])
    assert limit.value.limit == "max_dim"


def test_info_and_health(calls):
    info = calls.info()
    assert info.backend == "cpu"
    assert set(info.element_types) == {"float32", "float16", "bfloat16"}
    assert info.limits.max_message_bytes == 8 << 20
    assert calls.health() is maxsimd.ServingStatus.SERVING
    assert calls.health("maxsimd.v1.RerankService") is maxsimd.ServingStatus.SERVING
    assert calls.health("nobody") is maxsimd.ServingStatus.SERVICE_UNKNOWN


def test_threads_share_a_client(client, candidates):
    query, documents = candidates
    exact = client.rerank(query, documents).scores.tolist()
    wrong = []

    def work():
        for _ in range(20):
            if client.rerank(query, documents).scores.tolist() != exact:
                wrong.append("scores")
            if len(list(client.rerank_stream(query, iter(documents)))) != 4:
                wrong.append("stream")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_closed_client_says_so(target, candidates):
    client = maxsimd.Client(target)
    client.close()
    with pytest.raises(maxsimd.Cancelled, match="closed"):
        client.rerank(*candidates)
