"""The request messages on the wire, with the embeddings copied once, into the message.

A generated message would copy all embeddings into its `bytes` field and again when it is serialized.
Here the few bytes around them are written by hand and joined with them.  The bytes are those that the
generated code would write.  Source: https://protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_START = b"\x0a"  # RerankStreamRequest.start; fields 1, of bytes or a message.
_TOKENS = b"\x0a"  # Documents.tokens
_DOCUMENTS = b"\x12"  # RerankStreamRequest.documents, RerankRequest.documents; fields 2.
_LENGTHS = b"\x12"
_OFFSETS = b"\x1a"
_ELEMENT_TYPE = b"\x08"
_DIM = b"\x10"
_DATA = b"\x1a"


def varint(value: int) -> bytes:
    """`value` >= 0 in groups of 7 bits, the lowest first."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def packed_varints(values: npt.NDArray[np.unsignedinteger]) -> bytes:
    """The varints of all values, one after the other."""
    if not values.size:
        return b""
    most_groups = len(varint(int(values.max())))
    if most_groups == 1:
        return values.astype(np.uint8).tobytes()
    shifts = np.arange(0, 7 * most_groups, 7, dtype=np.uint64)
    rest = values.astype(np.uint64)[:, np.newaxis] >> shifts  # [values, groups]
    groups = (rest & np.uint64(127)).astype(np.uint8)
    groups[:, :-1] |= (rest[:, 1:] > 0).astype(np.uint8) << 7
    used = rest > 0
    used[:, 0] = True
    return groups[used].tobytes()


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content if content else b""


class DocumentsParts:
    """A `Documents` message as parts to join.

    Args:
        element_type: of the contract's enum.
        dim: of the rows.
        buffers: the memory of the rows: arrays or bytes, in their order.
        data_bytes: its size.
        lengths: tokens of each document, unsigned.
        offsets: first row of each document, unsigned; empty: back to back.
    """

    def __init__(
        self,
        element_type: int,
        dim: int,
        buffers: Sequence[Any],
        data_bytes: int,
        lengths: npt.NDArray[np.uint32],
        offsets: npt.NDArray[np.uint64],
    ) -> None:
        matrix = _ELEMENT_TYPE + varint(element_type) + _DIM + varint(dim)
        if data_bytes:
            matrix += _DATA + varint(data_bytes)
        self._head = _TOKENS + varint(len(matrix) + data_bytes) + matrix
        self._buffers = buffers
        self._tail = _field(_LENGTHS, packed_varints(lengths)) + _field(
            _OFFSETS, packed_varints(offsets)
        )
        self.size = len(self._head) + data_bytes + len(self._tail)

    def join(self, before: bytes = b"") -> bytes:
        """The serialized message after `before`."""
        return b"".join((before, self._head, *self._buffers, self._tail))


def request(start: bytes, documents: DocumentsParts | None) -> bytes:
    """A RerankRequest; `start` is one without documents, serialized."""
    if documents is None:
        return start
    return documents.join(start + _DOCUMENTS + varint(documents.size))


def stream_start(start: bytes, documents: DocumentsParts | None) -> bytes:
    """The first RerankStreamRequest of a stream."""
    if documents is None:
        return _START + varint(len(start)) + start
    inner = start + _DOCUMENTS + varint(documents.size)
    return documents.join(_START + varint(len(inner) + documents.size) + inner)


def stream_documents(documents: DocumentsParts) -> bytes:
    """A later RerankStreamRequest of a stream."""
    return documents.join(_DOCUMENTS + varint(documents.size))
