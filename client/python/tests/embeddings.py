"""Embeddings to rank, real and random, and what their scores must be."""

import json

import numpy as np
import pytest
from server import ROOT

SAMPLE = ROOT / "tests" / "data" / "sample"


def load_sample(name):
    """One float16 [tokens, 384] array for each text of the sample's `queries` or `passages`."""
    numpy_files = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    tensors = numpy_files.load_file(SAMPLE / f"{name}.safetensors")
    return np.split(tensors["tokens"], np.cumsum(tensors["lengths"])[:-1])


def expected_answers():
    """For each query of the sample the passage that answers it."""
    return [entry["answer"] for entry in json.loads((SAMPLE / "expected.json").read_text())]


def ragged(seed, dim=48, documents=30):
    """A query and documents of 1 to 60 tokens, normally distributed."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 60, documents)
    return random.standard_normal((7, dim), np.float32), [
        random.standard_normal((n, dim), np.float32) for n in lengths
    ]


def exact_scores(query, documents):
    """Scores in float64 and how far a server's may be from them."""
    query = np.asarray(query, np.float64)
    pairs = [(query @ d.T, np.abs(query) @ np.abs(d).T) for d in np_float64(documents)]
    scores = np.array([products.max(axis=1).sum() for products, _ in pairs])
    bounds = np.array([1e-5 * sizes.max(axis=1).sum() + 1e-30 for _, sizes in pairs])
    return scores, bounds


def np_float64(arrays):
    return [np.asarray(array, np.float64) for array in arrays]


def assert_same(found, expected, bounds):
    """Scores within their bounds, and the same order wherever the bounds leave no doubt about it."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= bounds).all()
    sure = expected[:, None] - expected[None, :] > bounds[:, None] + bounds[None, :]
    assert (found[:, None] > found[None, :])[sure].all()
