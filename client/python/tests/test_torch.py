"""torch tensors; only where torch is installed."""

import numpy as np
import pytest

import maxsimd

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    ),
]


@pytest.fixture
def tensors():
    torch.manual_seed(0)
    return torch.randn(4, 16), [torch.randn(n, 16) for n in (3, 1, 8)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_score_as_their_values(calls, tensors, dtype, device):
    query, documents = (tensors[0].to(device, dtype), [d.to(device, dtype) for d in tensors[1]])
    result = calls.rerank(query, documents)
    exact = [(query.double() @ d.double().T).amax(1).sum().item() for d in documents]
    np.testing.assert_allclose(result.scores, np.sort(exact)[::-1], rtol=1e-4)
    packed = maxsimd.PackedDocuments(torch.cat(documents), torch.tensor([3, 1, 8]))
    assert calls.rerank(query, packed).scores.tolist() == result.scores.tolist()
    streamed = calls.rerank_stream(query, iter(documents))
    assert {r.index: r.score for r in streamed} == dict(
        zip(result.indices.tolist(), result.scores.tolist(), strict=True)
    )


def test_a_tensor_with_gradients_and_weights(calls, tensors):
    query, documents = tensors
    plain = calls.rerank(query, documents, token_weights=[1, 2, 0, 1])
    traced = calls.rerank(
        query.requires_grad_(), documents, token_weights=torch.tensor([1.0, 2.0, 0.0, 1.0])
    )
    assert traced.scores.tolist() == plain.scores.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_a_wrong_tensor_is_named(client, tensors, device):
    query, documents = tensors[0].to(device), [d.to(device) for d in tensors[1]]
    for wrong, message in (
        (documents[1].double(), "torch.float64 is not supported"),
        (documents[1].half(), "is float16"),
        (documents[1][:, :3], "dim is 3"),
        (documents[1][0], "1 dimensions"),
    ):
        with pytest.raises(maxsimd.InvalidArgument, match=rf"documents\[1\].* {message}|{message}"):
            client.rerank(query, [documents[0], wrong])
