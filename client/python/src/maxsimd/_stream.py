"""What `rerank_stream` of both clients shares: documents become messages, responses become results.

Of the documents only those are held that were sent and have no result yet: they are what a repeated
call sends again.  Nothing here waits; threads and tasks are the clients' business.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxsimd._arrays import TokenArray, as_rows
from maxsimd._documents import Packed, PackedDocuments, check_packed
from maxsimd._errors import InternalError, InvalidArgument, LimitExceeded
from maxsimd._merge import decode_matches
from maxsimd._plan import CHUNK_OVERHEAD_BYTES, TARGET_CHUNK_BYTES, Planner, chunk_parts
from maxsimd._request import Scoring
from maxsimd._results import DocumentStatus, Limits, ScoredDocument
from maxsimd._wire import DocumentsParts, stream_documents
from maxsimd.v1 import rerank_pb2

# Sent without a result yet.  A server that answers within 30 ms keeps 1 GB/s busy with this.
WINDOW_BYTES = 32 << 20

_NO_OFFSETS = np.zeros(0, np.uint64)
_END = object()


@dataclass(eq=False)
class StreamChunk:
    """Consecutive documents of one message.

    Attributes:
        message: a RerankStreamRequest with them, serialized; the same bytes, appended to a
            RerankRequest, add them to it.
        first: of them, counted over the whole iterator.
        count: of them.
        alone: it, or the query, is too big for a stream's message, so it goes by Rerank.
        ids: one for each, or None.
    """

    message: bytes
    first: int
    count: int
    alone: bool
    ids: list[Any] | None

    def __post_init__(self) -> None:
        self.scored = bytearray(self.count)  # Whether there is a result.
        self.begin_call(0)

    def begin_call(self, base: int) -> None:
        """It goes with a call, with its first document at this index."""
        self.base = base
        self.seen = bytearray(self.count)  # Whether there is a result from this call.
        self.missing = self.count  # Without one.


class ChunkBuilder:
    """Cuts an iterator's items into chunks that fit the limits; each array is copied as it comes.

    Args:
        scoring: what is asked for.
        limits: of the server.
        ids: one for each document, taken as they come; or None.
    """

    def __init__(self, scoring: Scoring, limits: Limits, ids: Iterable[Any] | None) -> None:
        self._scoring = scoring
        self._limits = limits
        self._ids = None if ids is None else iter(ids)
        self._max_rows = _per(limits.max_multiply_adds_per_message, scoring)
        self._max_documents = limits.max_documents_per_message or 2**32
        start_bytes = len(scoring.start)
        stream_bytes = limits.max_stream_message_bytes or 2**62
        streams = start_bytes + CHUNK_OVERHEAD_BYTES <= stream_bytes
        self._max_together = (stream_bytes if streams else 0) - CHUNK_OVERHEAD_BYTES
        most = stream_bytes if streams else (limits.max_message_bytes or 2**62) - start_bytes
        self._target = min(TARGET_CHUNK_BYTES, most) - CHUNK_OVERHEAD_BYTES
        self._first = 0
        self._clear()

    def _clear(self) -> None:
        self._arrays: list[bytes] = []
        self._lengths: list[int] = []
        self._bytes = 0
        self._rows = 0

    def add(self, item: TokenArray | PackedDocuments) -> Iterator[StreamChunk]:
        """The chunks that are complete with this item.

        Raises:
            InvalidArgument, LimitExceeded: the item is wrong, or too big for any message.
        """
        if isinstance(item, PackedDocuments):
            yield from self.finish(last=False)
            yield from self._cut(check_packed(item, self._scoring.query))
            return
        name = f"documents[{self._first + len(self._lengths)}]"
        rows = as_rows(item, name, self._scoring.query).data
        size = rows.nbytes + 5
        if (
            self._bytes + size > self._target
            or self._rows + len(rows) > self._max_rows
            or len(self._lengths) == self._max_documents
        ):
            yield from self.finish(last=False)
        if size > self._target or len(rows) > self._max_rows:
            single = Packed(
                as_rows(item, name, self._scoring.query), np.array([len(rows)], np.uint32)
            )
            yield from self._cut(single)
            return
        self._check_tokens(len(rows), name)
        self._arrays.append(rows.tobytes())
        self._lengths.append(len(rows))
        self._bytes += size
        self._rows += len(rows)

    def finish(self, *, last: bool = True) -> Iterator[StreamChunk]:
        """What is left; with `last`, that is all there is."""
        if self._lengths:
            lengths = np.array(self._lengths, np.uint32)
            size = self._bytes - 5 * len(lengths)
            query = self._scoring.query
            parts = DocumentsParts(
                query.element_type, query.dim, self._arrays, size, lengths, _NO_OFFSETS
            )
            self._clear()
            yield self._chunk(parts, len(lengths))
        if last and self._ids is not None and next(self._ids, _END) is not _END:
            raise InvalidArgument(f"ids: more than {self._first} documents", argument="ids")

    def _check_tokens(self, tokens: int, name: str) -> None:
        limit = self._limits.max_document_tokens
        if limit and tokens > limit:
            raise LimitExceeded(
                f"{name}: {tokens} tokens, over the server's limit max_document_tokens = {limit}",
                limit="max_document_tokens",
            )

    def _cut(self, documents: Packed) -> Iterator[StreamChunk]:
        query = self._scoring.query
        calls = Planner(
            documents,
            self._scoring.row_bytes,
            self._scoring.query_tokens * query.dim,
            self._limits,
            len(self._scoring.start),
            first_name=self._first,
        ).plan()
        for call in calls:
            for chunk in call.chunks:
                parts = chunk_parts(documents, query.element_type, query.dim, chunk)
                if parts is not None:
                    yield self._chunk(parts, chunk.count)

    def _chunk(self, parts: DocumentsParts, count: int) -> StreamChunk:
        ids = None
        if self._ids is not None:
            ids = [next(self._ids, _END) for _ in range(count)]
            if ids[-1] is _END:
                raise InvalidArgument("ids: fewer than documents", argument="ids")
        alone = parts.size > self._max_together
        chunk = StreamChunk(stream_documents(parts), self._first, count, alone, ids)
        self._first += count
        return chunk


def _per(limit: int, scoring: Scoring) -> int:
    """Rows of work that the limit leaves for one message."""
    return limit // (scoring.query_tokens * scoring.query.dim) if limit else 2**62


class Session:
    """Which chunks are to be sent, which were, and what came back.

    Args:
        scoring: what is asked for.
    """

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring
        self._sent: deque[StreamChunk] = deque()  # With the current call, without all results.
        self._sent_documents = 0
        self._best: list[tuple[float, int, ScoredDocument]] = []  # A heap, the worst first.
        self.waiting: deque[StreamChunk] = deque()  # To be sent, before what is yet to come.
        self.in_flight_bytes = 0

    def begin_call(self) -> None:
        """What the last call left without results is to be sent again."""
        self.waiting.extendleft(reversed(self._sent))
        self._sent.clear()
        self._sent_documents = 0
        self.in_flight_bytes = 0

    def sending(self, chunk: StreamChunk) -> None:
        """The current call's next chunk."""
        chunk.begin_call(self._sent_documents)
        self._sent_documents += chunk.count
        self._sent.append(chunk)
        self.in_flight_bytes += len(chunk.message)

    def receive(self, response: rerank_pb2.RerankResponse) -> list[ScoredDocument]:
        """The results that weren't there before.

        Raises:
            InternalError: a document that wasn't sent, or twice the same one.
        """
        results = []
        for result in response.results:
            chunk = self._chunk_of(result.index)
            i = result.index - chunk.base
            if chunk.seen[i]:
                raise InternalError(f"the server returned document {chunk.first + i} twice")
            chunk.seen[i] = 1
            chunk.missing -= 1
            if not chunk.scored[i]:  # Else a call before this one had it.
                chunk.scored[i] = 1
                results.append(self._scored(chunk, i, result))
            if not chunk.missing:
                self._sent.remove(chunk)
                self.in_flight_bytes -= len(chunk.message)
        return self._keep_best(results) if self._scoring.top_k else results

    def _chunk_of(self, index: int) -> StreamChunk:
        for chunk in self._sent:  # A few, and mostly the first.
            if chunk.base <= index < chunk.base + chunk.count:
                return chunk
        raise InternalError(f"the server returned document {index} of a call, out of turn")

    def _scored(
        self, chunk: StreamChunk, i: int, result: rerank_pb2.ScoredDocument
    ) -> ScoredDocument:
        matches = None
        if self._scoring.return_matches:
            matches = decode_matches([result], self._scoring.query_tokens)[0]
        return ScoredDocument(
            chunk.first + i,
            result.score,
            None if chunk.ids is None else chunk.ids[i],
            DocumentStatus(result.status),
            matches,
        )

    def _keep_best(self, results: list[ScoredDocument]) -> list[ScoredDocument]:
        for result in results:
            entry = (result.score, -result.index, result)
            if len(self._best) < self._scoring.top_k:
                heapq.heappush(self._best, entry)
            else:
                heapq.heappushpop(self._best, entry)
        return []

    def end_call(self, *, has_summary: bool) -> None:
        """The call ended OK.

        Raises:
            InternalError: it left documents without results.
        """
        if self._sent or not has_summary:
            missing = sum(chunk.missing for chunk in self._sent)
            raise InternalError(
                f"the server ended the call OK with {missing} results missing"
                + ("" if has_summary else " and no summary")
            )

    def best(self) -> list[ScoredDocument]:
        """With top_k: the best ones of all, best first."""
        return [result for _, _, result in sorted(self._best, key=lambda e: e[:2], reverse=True)]
