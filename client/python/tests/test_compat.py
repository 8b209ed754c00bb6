"""The drop-ins against the formula; test_originals.py holds them against the libraries themselves."""

import subprocess
import sys

import numpy as np
import pytest
from embeddings import assert_same, exact_scores, expected_answers, load_sample, ragged

import maxsimd
from maxsimd import compat
from maxsimd.compat import colpali_engine, maxsim_cpu, pylate


@pytest.fixture(autouse=True)
def _used_client(client):
    compat.use(client)
    yield
    compat.use(None)


@pytest.mark.parametrize("seed", range(3))
def test_maxsim_cpu_scores(seed):
    query, documents = ragged(seed)
    exact, bounds = exact_scores(query, documents)
    for function in (maxsim_cpu.maxsim_scores, maxsim_cpu.maxsim_scores_variable):
        scores = function(query, documents)
        assert scores.dtype == np.float32
        assert_same(scores, exact, bounds)


def test_maxsim_cpu_scores_of_one_array():
    random = np.random.default_rng(5)
    query = random.standard_normal((3, 16), np.float32)
    documents = random.standard_normal((6, 4, 16), np.float32)
    for dtype in ("f4", "f8"):
        scores = maxsim_cpu.maxsim_scores(query, documents.astype(dtype))
        assert_same(scores, *exact_scores(query, documents))


def test_score_multi_vector():
    queries = [ragged(seed)[0][: seed + 1] for seed in range(6)]
    _, passages = ragged(9)
    scores = colpali_engine.score_multi_vector(queries, passages, batch_size=2, device="cpu")
    assert scores.shape == (6, 30)
    for query, row in zip(queries, scores, strict=True):
        assert_same(row, *exact_scores(query, passages))


def test_score_multi_vector_of_padded_arrays():
    padded = np.zeros((2, 4, 8), np.float32)
    padded[0], padded[1, :3] = 1, -1  # Only the second has a row of padding.
    scores = colpali_engine.score_multi_vector(padded, padded)
    assert scores.tolist() == [[4 * 8, 0], [-3 * 8, 3 * 8]]


def test_score_multi_vector_wants_both():
    query, _ = ragged(1)
    for queries, passages, message in (([], [query], "No queries"), ([query], [], "No passages")):
        with pytest.raises(ValueError, match=f"{message} provided"):
            colpali_engine.score_multi_vector(queries, passages)


def test_pylate_rerank():
    queries, documents = zip(*map(ragged, range(5)), strict=True)
    ids = [[f"{q}/{d}" for d in range(30)] for q in range(5)]
    rankings = pylate.rerank(ids, list(queries), list(documents), device="cpu")
    for q, ranking in enumerate(rankings):
        exact, bounds = exact_scores(queries[q], documents[q])
        scores = {entry["id"]: entry["score"] for entry in ranking}
        assert_same([scores[name] for name in ids[q]], exact, bounds)
        assert list(scores.values()) == sorted(scores.values(), reverse=True)


def test_pylate_rerank_finds_the_samples_answers():
    queries, passages = load_sample("queries"), load_sample("passages")
    ids = [list(range(len(passages)))] * len(queries)
    rankings = pylate.rerank(ids, queries, [passages] * len(queries))
    assert [ranking[0]["id"] for ranking in rankings] == expected_answers()


def test_pylate_rerank_takes_lists_and_a_single_query():
    query, documents = ragged(3)
    ids = [list(range(len(documents)))]
    expected = pylate.rerank(ids, [query], [documents])
    lists = [d.tolist() for d in documents]
    assert pylate.rerank(ids, [query.tolist()], [lists]) == expected
    assert pylate.rerank(ids, query, [documents]) == expected
    assert pylate.rerank(ids, query[None], [[list(d) for d in documents]]) == expected
    assert pylate.rerank([], [], []) == []


def test_pylate_rerank_wants_equal_lengths():
    query, documents = ragged(3)
    for arguments, name in (
        (([], [query], [documents]), "documents_ids"),
        (([[1, 2]], [query], [documents]), "documents_ids"),
        (([list(range(30))], [query], []), "documents_embeddings"),
        (([[1]], [query], [[[[1.0, 2.0], [1.0]]]]), "documents_embeddings"),
    ):
        with pytest.raises(maxsimd.InvalidArgument) as raised:
            pylate.rerank(*arguments)
        assert raised.value.argument == name


@pytest.mark.parametrize("types", [("f4", "f2"), ("f2", "f4"), ("f8", "f8"), ("f2", "f2")])
def test_types_may_differ(types):
    query, documents = ragged(4)
    query, documents = query.astype(types[0]), [d.astype(types[1]) for d in documents]
    assert_same(maxsim_cpu.maxsim_scores(query, documents), *exact_scores(query, documents))


def test_a_document_is_scored_without_padding():
    query = np.ones((2, 4), np.float32)
    documents = [-np.ones((1, 4), np.float32), np.ones((3, 4), np.float32)]
    assert maxsim_cpu.maxsim_scores(query, documents).tolist() == [-8.0, 8.0]


def test_a_client_may_be_given(target):
    compat.use(None)
    query, documents = ragged(3)
    with maxsimd.Client(target) as client:
        scores = maxsim_cpu.maxsim_scores(query, documents, client=client)
    assert_same(scores, *exact_scores(query, documents))


def test_the_environment_names_the_server(target):
    code = (
        "import numpy as np; from maxsimd.compat import maxsim_cpu; o = np.ones((2, 4), np.float32)\n"
        "import sys; print(maxsim_cpu.maxsim_scores(o, [o]), 'torch' in sys.modules)"
    )
    environment = {"MAXSIMD_TARGET": target, "PYTHONWARNINGS": "error"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout.strip() == "[8.] False"
