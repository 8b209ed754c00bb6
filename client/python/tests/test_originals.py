"""The drop-ins against the libraries that they stand in for; each where it is installed.

tests/python_peers.sh installs them all.  PyLate and colpali-engine pad documents with zeros, which take part
in the maximum, so that a score depends on which documents share the batch: even real embeddings have query
tokens without any similarity above 0 in a document.  So they are compared twice: one document at a time,
where they don't pad, and all at once with documents that already have such a row.
"""

import numpy as np
import pytest
from embeddings import assert_same, exact_scores, load_sample, ragged

from maxsimd import compat
from maxsimd.compat import colpali_engine, maxsim_cpu, pylate

# Importing these libraries warns of much that isn't this package's business.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(autouse=True)
def _used_client(client):
    compat.use(client)
    yield
    compat.use(None)


def _original(name):
    return pytest.importorskip(name, reason=f"{name} is not installed")


def _inputs():
    yield from (pytest.param(("random", seed), id=f"random-{seed}") for seed in range(4))
    yield from (pytest.param(("sample", index), id=f"sample-{index}") for index in range(8))


@pytest.fixture(params=_inputs())
def input_(request):
    """A float32 query and its documents; what float16 holds, float32 holds too."""
    kind, number = request.param
    if kind == "random":
        return ragged(number)
    query = load_sample("queries")[number]
    return query.astype(np.float32), [p.astype(np.float32) for p in load_sample("passages")]


def test_maxsim_cpu(input_):
    original = _original("maxsim_cpu")
    query, documents = input_
    scores = maxsim_cpu.maxsim_scores_variable(query, documents)
    one_by_one = [original.maxsim_scores_variable(query, [d])[0] for d in documents]
    exact, bounds = exact_scores(query, documents)
    assert_same(scores, exact, bounds)
    assert_same(scores, one_by_one, bounds)
    assert_same(scores, original.maxsim_scores_variable(query, documents), bounds)


def test_maxsim_cpu_of_one_array():
    original = _original("maxsim_cpu")
    random = np.random.default_rng(5)
    query = random.standard_normal((9, 32), np.float32)
    documents = random.standard_normal((20, 40, 32), np.float32)
    _, bounds = exact_scores(query, documents)
    expected = original.maxsim_scores(query, documents)
    assert_same(maxsim_cpu.maxsim_scores(query, documents), expected, bounds)


def _tensors(input_):
    torch = _original("torch")
    query, documents = input_
    return torch.from_numpy(query), [torch.from_numpy(d) for d in documents]


def test_pylate(input_):
    original = _original("pylate.rank")
    query, documents = _tensors(input_)
    ids = [f"document {i}" for i in range(len(documents))]
    _, bounds = exact_scores(*input_)
    [ranking] = pylate.rerank([ids], [query], [documents])
    scores = {entry["id"]: entry["score"] for entry in ranking}
    found = [scores[name] for name in ids]
    one_by_one = [
        original.rerank([[name]], [query], [[d]])[0][0]["score"]
        for name, d in zip(ids, documents, strict=True)
    ]
    assert_same(found, one_by_one, bounds)

    [theirs] = original.rerank([ids], [query], [documents])
    assert type(theirs[0]) is type(ranking[0])
    [ranking] = pylate.rerank([ids], [query], [_with_padding(documents)])
    padded, batched = ({e["id"]: e["score"] for e in r} for r in (ranking, theirs))
    assert_same([padded[name] for name in ids], [batched[name] for name in ids], bounds)


def test_pylate_of_several_queries():
    original = _original("pylate.rank")
    queries, documents = zip(*(_tensors(_positive(seed)) for seed in range(5)), strict=True)
    ids = [list(range(30)) for _ in queries]
    ours = pylate.rerank(ids, list(queries), list(documents))
    theirs = original.rerank(ids, list(queries), list(documents))
    assert [[e["id"] for e in r] for r in ours] == [[e["id"] for e in r] for r in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            [e["score"] for e in mine], [e["score"] for e in other], rtol=1e-5
        )


def _processor():
    return _original("colpali_engine.utils.processing_utils").BaseVisualRetrieverProcessor


def test_colpali_engine(input_):
    original = _processor().score_multi_vector
    query, documents = _tensors(input_)
    _, bounds = exact_scores(*input_)
    scores = colpali_engine.score_multi_vector([query, query[:2]], documents)
    assert scores.device.type == "cpu"
    one_by_one = [original([query], [d], device="cpu")[0, 0].item() for d in documents]
    assert_same(scores[0], one_by_one, bounds)
    theirs = original([query, query[:2]], documents, device="cpu")
    assert (theirs.dtype, theirs.shape) == (scores.dtype, scores.shape)
    padded = colpali_engine.score_multi_vector([query], _with_padding(documents))
    assert_same(padded[0], theirs[0], bounds)


def test_colpali_engine_of_padded_tensors():
    original = _processor().score_multi_vector
    torch = _original("torch")
    padded = torch.zeros(5, 12, 32)
    random = torch.Generator().manual_seed(0)
    for i in range(5):
        padded[i, : 2 + 2 * i] = torch.randn(2 + 2 * i, 32, generator=random)
    ours = colpali_engine.score_multi_vector(padded, padded)
    torch.testing.assert_close(ours, original(padded, padded, device="cpu"), rtol=1e-5, atol=1e-5)


def test_bfloat16_is_summed_in_float32():
    torch = _original("torch")
    query, documents = _tensors(_positive(2))
    query, documents = query.bfloat16(), [d.bfloat16() for d in documents]
    [scores] = colpali_engine.score_multi_vector([query], documents)
    assert scores.dtype == torch.float32
    floats = query.float().numpy(), [d.float().numpy() for d in documents]
    assert_same(scores, *exact_scores(*floats))


def _with_padding(documents):
    """The tensors as a batch of the originals has them: a zero row after all but the longest."""
    longest = max(map(len, documents))
    pad = _original("torch").nn.functional.pad
    return [d if len(d) == longest else pad(d, (0, 0, 0, 1)) for d in documents]


def _positive(seed):
    """Data without negative products, which padding with zeros leaves as they are."""
    query, documents = ragged(seed)
    return np.abs(query), [np.abs(d) for d in documents]
