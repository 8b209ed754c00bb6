"""`Client.rerank` against the real server."""

import numpy as np
import pytest

import maxsimd


def test_ranks_best_first(client):
    random = np.random.default_rng(1)
    query = random.standard_normal((5, 16), np.float32)
    documents = [random.standard_normal((n, 16), np.float32) for n in (3, 0, 7, 1)]
    result = client.rerank(query, documents, ids=["a", "b", "c", "d"])
    exact = [(query @ d.T).max(axis=1).sum() if len(d) else -np.inf for d in documents]
    order = np.argsort(exact)[::-1]
    assert result.indices.tolist() == order.tolist()
    np.testing.assert_allclose(result.scores, np.array(exact)[order], rtol=1e-5)
    assert result.ids.tolist() == [["a", "b", "c", "d"][i] for i in order]
    assert result.status.tolist() == [1, 1, 1, maxsimd.DocumentStatus.EMPTY]


def test_a_wrong_dim_is_named(client):
    with pytest.raises(maxsimd.InvalidArgument, match=r"documents\[1\]: dim is 4") as error:
        client.rerank(
            np.zeros((2, 3), np.float32),
            [np.zeros((1, 3), np.float32), np.zeros((1, 4), np.float32)],
        )
    assert error.value.argument == "documents"
