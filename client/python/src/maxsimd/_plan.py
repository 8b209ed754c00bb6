"""How a candidate set is cut into messages and calls that fit a server's limits.  Pure.

Documents keep their order and are never split.  A message carries the union of its documents' rows
once: documents that overlap and stand next to each other share a message as far as the hard limits
allow, even past the target size; where they must part, the shared rows are sent in both.

What fits one message of the target size goes as one unary call.  More goes as a stream.  A document too
big for a stream's message goes in a unary call of its own, whose message may be bigger; a query too big
for one makes all calls unary.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxsimd._documents import Documents, Packed
from maxsimd._errors import LimitExceeded
from maxsimd._results import Limits
from maxsimd._wire import DocumentsParts

# Of a stream's message.  Each costs a turn of Python's threads, so more than the 1 MiB that a server would
# be fed with from C++.
TARGET_CHUNK_BYTES = 2 << 20

_NONE = 2**63 - 1  # Where there is no limit.

# Tags and lengths of the messages around a chunk's data: at most six of each, of 1 and 10 bytes, and the
# two scalars of TokenMatrix.
CHUNK_OVERHEAD_BYTES = 80


def beside_rows(documents: Documents) -> int:
    """Most bytes that a document takes beside its rows: its length (a uint32 varint) and its offset."""
    return 15 if isinstance(documents, Packed) and len(documents.offsets) else 5


@dataclass
class Chunk:
    """Consecutive documents of one message, and the rows that it carries: ascending, apart."""

    first: int
    count: int
    ranges: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Call:
    """RerankStream, or Rerank with exactly one chunk."""

    stream: bool
    chunks: list[Chunk]

    @property
    def first(self) -> int:
        return self.chunks[0].first if self.chunks else 0

    @property
    def count(self) -> int:
        return sum(chunk.count for chunk in self.chunks)


class Planner:
    """Plans one set of documents.

    Args:
        documents: in memory.
        row_bytes: of one token.
        work_per_row: query_tokens * dim, the multiply-adds of one token.
        limits: of the server; 0 is none.
        start_bytes: what query and options take on the wire.
        first_name: the number that errors give the first document.
    """

    def __init__(
        self,
        documents: Documents,
        row_bytes: int,
        work_per_row: int,
        limits: Limits,
        start_bytes: int,
        first_name: int = 0,
    ) -> None:
        self._first_name = first_name
        self._documents = documents
        self._row_bytes = row_bytes
        self._beside = beside_rows(documents)
        self._start_bytes = start_bytes
        self._max_message = limits.max_message_bytes or _NONE
        self._max_stream_message = limits.max_stream_message_bytes or _NONE
        self._max_documents = limits.max_documents_per_message or _NONE
        self._max_stream_documents = limits.max_documents_per_stream or _NONE
        self._max_rows = (limits.max_multiply_adds_per_message or _NONE) // max(work_per_row, 1)
        self._streams = start_bytes + CHUNK_OVERHEAD_BYTES <= self._max_stream_message
        self._max_bytes = self._max_stream_message if self._streams else self._max_message
        self._target = (
            min(TARGET_CHUNK_BYTES, self._max_bytes) if self._streams else self._max_bytes
        )
        self._alone = documents.lengths.astype(np.int64) * row_bytes + (
            CHUNK_OVERHEAD_BYTES + self._beside
        )
        self._check_each(limits, work_per_row)

    def _check_each(self, limits: Limits, work_per_row: int) -> None:
        if self._start_bytes + CHUNK_OVERHEAD_BYTES > self._max_message:
            raise LimitExceeded(
                f"query: takes {self._start_bytes} bytes, over the server's limit "
                f"max_message_bytes = {self._max_message}",
                limit="max_message_bytes",
            )
        lengths = self._documents.lengths
        needs_unary = self._alone > self._max_stream_message if self._streams else self._alone > 0
        with_query = np.where(needs_unary, self._alone + self._start_bytes, 0)
        self._refuse(lengths, limits.max_document_tokens, "max_document_tokens", "tokens")
        self._refuse(
            lengths.astype(np.int64) * work_per_row,
            limits.max_multiply_adds_per_message,
            "max_multiply_adds_per_message",
            "multiply-adds",
        )
        self._refuse(
            with_query, limits.max_message_bytes, "max_message_bytes", "bytes with the query"
        )

    def _refuse(
        self, values: npt.NDArray[np.integer[Any]], limit: int, name: str, what: str
    ) -> None:
        if not limit or not (values > limit).any():
            return
        i = int((values > limit).argmax())
        raise LimitExceeded(
            f"documents[{self._first_name + i}]: {values[i]} {what}, over the server's limit "
            f"{name} = {limit}",
            limit=name,
        )

    def plan(self) -> list[Call]:
        """The calls, in the order of their documents; at least one."""
        calls: list[Call] = []
        too_big = self._alone > (self._max_stream_message if self._streams else _NONE)
        apart: list[int] = np.flatnonzero(too_big).tolist()
        begin = 0
        for document in [*apart, len(self._alone)]:
            calls += self._calls_over(begin, document)
            if document < len(self._alone):
                row = self._first_row(document)
                rows = (row, row + int(self._documents.lengths[document]))
                calls.append(Call(False, [Chunk(document, 1, [rows])]))
            begin = document + 1
        if not calls:
            return [Call(False, [Chunk(0, 0)])]
        if len(calls) == 1 and len(calls[0].chunks) == 1:
            calls[0].stream = calls[0].stream and not self._fits_unary()
        return calls

    def _fits_unary(self) -> bool:
        most = int(self._alone.sum()) + self._start_bytes + CHUNK_OVERHEAD_BYTES
        return most <= self._max_message

    def _calls_over(self, begin: int, end: int) -> Iterator[Call]:
        """Streams over documents that each fit a stream's message; unary calls without streams."""
        while begin < end:
            stop = min(end, begin + self._max_stream_documents) if self._streams else end
            chunks = list(self._chunks_over(begin, stop))
            if self._streams:
                yield Call(True, chunks)
            else:
                yield from (Call(False, [chunk]) for chunk in chunks)
            begin = stop

    def _chunks_over(self, begin: int, end: int) -> Iterator[Chunk]:
        used = CHUNK_OVERHEAD_BYTES + self._start_bytes
        if self._streams and used + int(self._alone[begin]) > self._max_bytes:
            yield Chunk(begin, 0)
            used = CHUNK_OVERHEAD_BYTES
        while begin < end:
            if isinstance(self._documents, Packed) and len(self._documents.offsets):
                chunk = self._grow_over_ranges(begin, end, used)
            else:
                chunk = self._grow(begin, end, used)
            yield chunk
            begin += chunk.count
            if self._streams:
                used = CHUNK_OVERHEAD_BYTES

    def _first_row(self, document: int) -> int:
        if isinstance(self._documents, Packed) and len(self._documents.offsets):
            return int(self._documents.offsets[document])
        return int(self._first_rows[document])

    @cached_property
    def _first_rows(self) -> npt.NDArray[np.int64]:
        """Of documents back to back, and the end of the last."""
        return np.concatenate(([0], np.cumsum(self._documents.lengths, dtype=np.int64)))

    @cached_property
    def _bytes_before(self) -> npt.NDArray[np.int64]:
        """Of documents back to back, on the wire."""
        rows = self._first_rows
        return rows * self._row_bytes + self._beside * np.arange(len(rows))

    def _grow(self, begin: int, end: int, used: int) -> Chunk:
        """The longest chunk from `begin` on of documents back to back."""
        rows = self._first_rows
        bytes_before = self._bytes_before
        fits = min(
            int(bytes_before.searchsorted(bytes_before[begin] + self._target - used, "right")) - 1,
            int(rows.searchsorted(int(rows[begin]) + min(self._max_rows, 2**62), "right")) - 1,
            begin + self._max_documents,
            end,
        )
        stop = max(fits, begin + 1)  # One alone may be over the target.
        return Chunk(begin, stop - begin, [(int(rows[begin]), int(rows[stop]))])

    def _grow_over_ranges(self, begin: int, end: int, used: int) -> Chunk:
        """The same of documents that may overlap."""
        ranges = RowSet()
        rows = 0
        stop = begin
        while stop < end and stop - begin < self._max_documents:
            first, length = self._first_row(stop), int(self._documents.lengths[stop])
            added = ranges.missing(first, first + length)
            total = used + added * self._row_bytes + self._beside
            shares = added < length
            if stop > begin and (
                rows + length > self._max_rows
                or total > self._max_bytes
                or (total > self._target and not shares)
            ):
                break
            ranges.add(first, first + length)
            used, rows, stop = total, rows + length, stop + 1
        return Chunk(begin, stop - begin, ranges.ranges())


class RowSet:
    """A set of rows, kept as ascending ranges that neither touch nor overlap."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def _touched(self, begin: int, end: int) -> tuple[int, int]:
        """The ranges that touch or overlap this one."""
        return bisect_left(self._ends, begin), bisect_right(self._begins, end)

    def missing(self, begin: int, end: int) -> int:
        """How many of these rows aren't in the set."""
        low, high = self._touched(begin, end)
        found = sum(
            max(0, min(end, self._ends[i]) - max(begin, self._begins[i])) for i in range(low, high)
        )
        return end - begin - found

    def add(self, begin: int, end: int) -> None:
        """Puts these rows into the set."""
        if begin == end:
            return
        low, high = self._touched(begin, end)
        if low < high:
            begin, end = min(begin, self._begins[low]), max(end, self._ends[high - 1])
        self._begins[low:high] = [begin]
        self._ends[low:high] = [end]

    def ranges(self) -> list[tuple[int, int]]:
        """All of it."""
        return list(zip(self._begins, self._ends, strict=True))


def chunk_parts(
    documents: Documents, element_type: int, dim: int, chunk: Chunk
) -> DocumentsParts | None:
    """What goes on the wire for a chunk; None for one without documents."""
    if not chunk.count:
        return None
    last = chunk.first + chunk.count
    lengths = documents.lengths[chunk.first : last]
    offsets = np.zeros(0, np.uint64)
    if not isinstance(documents, Packed):
        arrays = documents.arrays[chunk.first : last]
        size = sum(map(_nbytes, arrays))
        return DocumentsParts(element_type, dim, arrays, size, lengths, offsets)
    buffers = [documents.rows.data[begin:end] for begin, end in chunk.ranges]
    if len(documents.offsets):
        offsets = _rebase(documents.offsets[chunk.first : last], lengths, chunk.ranges)
    size = sum(map(_nbytes, buffers))
    return DocumentsParts(element_type, dim, buffers, size, lengths, offsets)


def _nbytes(array: npt.NDArray[np.generic]) -> int:
    return array.nbytes


def _rebase(
    offsets: npt.NDArray[np.uint64], lengths: npt.NDArray[np.uint32], ranges: list[tuple[int, int]]
) -> npt.NDArray[np.uint64]:
    """First row of each document within its message; 0 for empty documents."""
    if not ranges:
        return np.zeros(len(offsets), np.uint64)
    begins, ends = (np.array(side, np.int64) for side in zip(*ranges, strict=True))
    rows_before = np.concatenate(([0], np.cumsum(ends - begins)[:-1]))
    signed = offsets.astype(np.int64)
    range_of = np.maximum(begins.searchsorted(signed, "right") - 1, 0)
    rebased = signed - begins[range_of] + rows_before[range_of]
    rebased[lengths == 0] = 0
    return rebased.astype(np.uint64)
