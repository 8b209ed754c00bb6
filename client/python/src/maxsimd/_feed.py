"""`rerank_stream` with threads: the caller's reads results, gRPC's own pulls documents and sends them."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from maxsimd._endpoint import Endpoint
from maxsimd._request import Scoring
from maxsimd._results import ScoredDocument
from maxsimd._stream import WINDOW_BYTES, ChunkBuilder, Session, StreamChunk
from maxsimd._wire import stream_start


def _chunks(builder: ChunkBuilder, documents: Iterable[Any]) -> Iterator[StreamChunk]:
    for document in documents:
        yield from builder.add(document)
    yield from builder.finish()


class Feed:
    """All calls of one `rerank_stream`.

    A call ends before its documents do where it fails, or where a document needs a call of its own;
    the next goes on.  A thread that sends for a call that has ended takes nothing more, and leaves
    what it took for the next.

    Args:
        scoring: what is asked for.
        builder: makes chunks.
        documents: the caller's.
    """

    def __init__(self, scoring: Scoring, builder: ChunkBuilder, documents: Iterable[Any]) -> None:
        self.session = Session(scoring)
        self._start = scoring.start
        self._pulling = threading.Lock()  # Held by the one thread that runs the caller's iterator.
        self._chunks = _chunks(builder, documents)
        self._changed = threading.Condition()  # Guards all below, and the session.
        self._call: object = None  # The one that may send.
        self._exhausted = False
        self._failure: BaseException | None = None  # What the caller's iterator raised.

    @property
    def done(self) -> bool:
        """Whether everything was sent and has its results."""
        with self._changed:
            return self._exhausted and not self.session.waiting

    def close(self) -> None:
        """Lets go of a thread that waits to send."""
        self._begin(None)

    def run(self, endpoint: Endpoint, arguments: dict[str, Any]) -> Iterator[list[ScoredDocument]]:
        """One call; gives results as they arrive.

        Raises:
            grpc.RpcError: it failed.
            InternalError: the server answered wrongly.
        """
        this = object()
        self._begin(this)
        alone = self._take_alone()
        if alone is not None:
            running = endpoint.rerank(self._start + alone.message, **arguments)
        else:
            running = endpoint.rerank_stream(self._messages(this), **arguments)
        try:
            yield from self._read(running)
        except Exception:
            if self._failure is not None:
                raise self._failure from None
            raise
        finally:
            self._begin(None)
            running.cancel()

    def _begin(self, call: object) -> None:
        with self._changed:
            self._call = call
            self.session.begin_call()
            self._changed.notify_all()

    def _take_alone(self) -> StreamChunk | None:
        with self._changed:
            if not self.session.waiting or not self.session.waiting[0].alone:
                return None
            chunk = self.session.waiting.popleft()
            self.session.sending(chunk)
            return chunk

    def _read(self, running: Any) -> Iterator[list[ScoredDocument]]:
        has_summary = False
        for response in running:
            with self._changed:
                results = self.session.receive(response)
                self._changed.notify_all()
            has_summary = response.HasField("summary")
            yield results
        with self._changed:
            if self._failure is not None:
                raise self._failure
            self.session.end_call(has_summary=has_summary)

    def _messages(self, call: object) -> Iterator[bytes]:
        """What gRPC's thread sends."""
        yield stream_start(self._start, None)
        while (chunk := self._next(call)) is not None:
            yield chunk.message

    def _next(self, call: object) -> StreamChunk | None:
        """The next chunk of this call's; None: there is none, or the call has ended."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._call is not call or self.session.in_flight_bytes < WINDOW_BYTES
            )
        with self._pulling:
            with self._changed:
                if self._call is not call:
                    return None
                if self.session.waiting:
                    return self._send_waiting()
            chunk = self._pull()
            with self._changed:
                if chunk is not None:
                    self.session.waiting.append(chunk)
                if chunk is None or self._call is not call:
                    return None
                return self._send_waiting()

    def _send_waiting(self) -> StreamChunk | None:
        if self.session.waiting[0].alone:
            return None  # This call ends here.
        chunk = self.session.waiting.popleft()
        self.session.sending(chunk)
        return chunk

    def _pull(self) -> StreamChunk | None:
        chunk = None
        try:
            chunk = next(self._chunks, None)
        except BaseException as error:  # (It is raised where the results are read.)
            self._failure = error
        if chunk is None:
            with self._changed:
                self._exhausted = True
        return chunk
