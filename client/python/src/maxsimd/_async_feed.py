"""`rerank_stream` with tasks: the caller's reads results, another pulls documents and sends them."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from typing import Any

import grpc

from maxsimd._async_status import StatusWatch
from maxsimd._endpoint import Endpoint
from maxsimd._request import Scoring
from maxsimd._results import ScoredDocument
from maxsimd._stream import WINDOW_BYTES, ChunkBuilder, Session, StreamChunk
from maxsimd._wire import stream_start


async def _chunks(
    builder: ChunkBuilder, documents: Iterable[Any] | AsyncIterable[Any]
) -> AsyncGenerator[StreamChunk, None]:
    if isinstance(documents, AsyncIterable):
        iterator = aiter(documents)
        try:
            async for document in iterator:
                for chunk in builder.add(document):
                    yield chunk
        finally:
            if isinstance(iterator, AsyncGenerator):
                await iterator.aclose()
    else:
        for document in documents:
            for chunk in builder.add(document):
                yield chunk
    for chunk in builder.finish():
        yield chunk


class AsyncFeed:
    """All calls of one `rerank_stream`; see `Feed`, which this is for one event loop.

    Args:
        scoring: what is asked for.
        builder: makes chunks.
        documents: the caller's.
    """

    def __init__(
        self,
        scoring: Scoring,
        builder: ChunkBuilder,
        documents: Iterable[Any] | AsyncIterable[Any],
    ) -> None:
        self.session = Session(scoring)
        self._start = scoring.start
        self._chunks = _chunks(builder, documents)
        self._pulling: asyncio.Task[StreamChunk | None] | None = None  # Outlives a call.
        self._room = asyncio.Event()
        self._exhausted = False
        self._failure: Exception | None = None  # What the caller's iterator raised.

    @property
    def done(self) -> bool:
        """Whether everything was sent and has its results."""
        return self._exhausted and not self.session.waiting

    async def close(self) -> None:
        """Ends the caller's iterator."""
        if self._pulling is not None:
            self._pulling.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._pulling
        await self._chunks.aclose()

    async def run(
        self, endpoint: Endpoint, arguments: dict[str, Any]
    ) -> AsyncGenerator[list[ScoredDocument], None]:
        """One call; gives results as they arrive.

        Raises:
            grpc.RpcError: it failed.
            InternalError: the server answered wrongly.
        """
        self.session.begin_call()
        writer = None
        if self.session.waiting and self.session.waiting[0].alone:
            chunk = self.session.waiting.popleft()
            self.session.sending(chunk)
            running = endpoint.rerank(self._start + chunk.message, **arguments)
        else:
            running = endpoint.rerank_stream(**arguments)
            writer = asyncio.create_task(self._write(running))
        watch = StatusWatch(running)
        try:
            has_summary = False
            async for response in running:
                results = self.session.receive(response)
                self._room.set()
                has_summary = response.HasField("summary")
                yield results
            if self._failure is not None:
                raise self._failure
            self.session.end_call(has_summary=has_summary)
        except grpc.RpcError as error:
            raise await watch.error(error) from None
        finally:
            running.cancel()
            if writer is not None:
                writer.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await writer
            self.session.begin_call()

    async def _write(self, running: Any) -> None:
        # A call that can't be written to any more has ended, and its reader knows why.
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            await running.write(stream_start(self._start, None))
            while (chunk := await self._next()) is not None:
                await running.write(chunk.message)
            await running.done_writing()

    async def _next(self) -> StreamChunk | None:
        while self.session.in_flight_bytes >= WINDOW_BYTES:
            self._room.clear()
            await self._room.wait()
        if not self.session.waiting:
            chunk = await self._pull()
            if chunk is None:
                return None
            self.session.waiting.append(chunk)
        if self.session.waiting[0].alone:
            return None  # This call ends here.
        chunk = self.session.waiting.popleft()
        self.session.sending(chunk)
        return chunk

    async def _pull(self) -> StreamChunk | None:
        """The caller's next chunk; where this call ends meanwhile, the next one gets it."""
        if self._exhausted:
            return None
        if self._pulling is None:
            self._pulling = asyncio.create_task(self._take())
        chunk = await asyncio.shield(self._pulling)
        self._pulling = None
        return chunk

    async def _take(self) -> StreamChunk | None:
        try:
            async for chunk in self._chunks:
                return chunk
        except Exception as error:
            self._failure = error
        self._exhausted = True
        return None
