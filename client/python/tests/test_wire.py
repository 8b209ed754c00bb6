"""The messages are those that the generated code writes."""

import numpy as np
import pytest

from maxsimd import _wire
from maxsimd.v1 import rerank_pb2 as pb


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16383, 16384, 2**32 - 1, 2**63])
def test_varint(value):
    assert _wire.packed_varints(np.array([value], np.uint64)) == _wire.varint(value)
    assert pb.Documents.FromString(b"\x18" + _wire.varint(value)).offsets == [value]


def test_packed_varints_of_mixed_sizes():
    values = np.array([0, 300, 5, 2**40, 127, 128, 2**64 - 1], np.uint64)
    encoded = pb.Documents(offsets=values.tolist()).SerializeToString()
    assert encoded.endswith(_wire.packed_varints(values))
    assert _wire.packed_varints(values[:0]) == b""


@pytest.mark.parametrize("offsets", [[], [0, 2, 1]])
@pytest.mark.parametrize("start", [b"", pb.RerankRequest(options={"top_k": 3}).SerializeToString()])
def test_messages_equal_the_generated_ones(offsets, start):
    rows = np.arange(900, dtype=np.float32).reshape(300, 3)
    lengths = np.array([200, 0, 100], np.uint32)
    parts = _wire.DocumentsParts(
        1, 3, [rows[:200], rows[200:]], rows.nbytes, lengths, np.array(offsets, np.uint64)
    )
    documents = pb.Documents(
        tokens=pb.TokenMatrix(element_type=1, dim=3, data=rows.tobytes()),
        lengths=lengths.tolist(),
        offsets=offsets,
    )
    assert parts.join() == documents.SerializeToString()
    assert parts.size == documents.ByteSize()
    request = pb.RerankRequest.FromString(start)
    request.documents.CopyFrom(documents)
    assert pb.RerankRequest.FromString(_wire.request(start, parts)) == request
    first = pb.RerankStreamRequest(start=request)
    assert pb.RerankStreamRequest.FromString(_wire.stream_start(start, parts)) == first
    later = pb.RerankStreamRequest(documents=documents).SerializeToString()
    assert _wire.stream_documents(parts) == later
    assert pb.RerankRequest.FromString(start + later) == request  # As `StreamChunk` says.


def test_messages_without_documents():
    start = pb.RerankRequest(options={"top_k": 3}).SerializeToString()
    assert _wire.request(start, None) == start
    assert (
        pb.RerankStreamRequest.FromString(_wire.stream_start(start, None)).start.options.top_k == 3
    )
