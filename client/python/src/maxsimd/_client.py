"""The client for code with threads."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import grpc
import numpy.typing as npt

from maxsimd._arrays import TokenArray
from maxsimd._base import BaseClient, to_error
from maxsimd._channel import CHANNEL_OPTIONS, TlsLike, Token, as_targets, credentials
from maxsimd._documents import DocumentsLike, PackedDocuments
from maxsimd._endpoint import Endpoint, health_request
from maxsimd._feed import Feed
from maxsimd._merge import Merger
from maxsimd._plan import Call
from maxsimd._request import Aggregation, Job, Scoring, check_scoring
from maxsimd._results import Limits, RerankResult, ScoredDocument, ServerInfo, ServingStatus
from maxsimd._retry import RetryPolicy
from maxsimd._stream import ChunkBuilder
from maxsimd.v1 import rerank_pb2

_T = TypeVar("_T")


class Client(BaseClient):
    """Calls one or several maxsimd servers.

    All methods may be called by several threads at the same time.  A client is a context manager.

    Args:
        target: ``"host:port"``, ``"unix:/path"``, ``"dns:///name:port"``, or several of them, of
            servers that are alike: the calls go to them in turn, and on to the next where one can't
            be reached.  Of a name with several addresses the same holds for these.
        token: sent with each call as ``authorization: Bearer TOKEN``; a string, or a function that
            returns one where it changes.
        tls: ``True`` for TLS with the system's certificates, the path or the contents of the
            authorities' certificates, or a `Tls`.  ``None``: no TLS.
        timeout: seconds for each call as a whole, retries and waits included, unless the call has
            its own.  ``None``: no limit.
        retry: how often failed calls are repeated, see `RetryPolicy`.

    Raises:
        InvalidArgument: `target` or `tls` is wrong.
    """

    def __init__(
        self,
        target: str | Sequence[str] = "127.0.0.1:50051",
        *,
        token: Token | None = None,
        tls: TlsLike = None,
        timeout: float | None = None,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 (it is frozen)
    ) -> None:
        endpoints = [Endpoint(_channel(one, tls)) for one in as_targets(target)]
        super().__init__(endpoints, token, timeout, retry)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections; calls in progress end as `Cancelled`."""
        self._closed = True
        for endpoint in self._endpoints:
            endpoint.channel.close()

    def rerank(
        self,
        query: TokenArray,
        documents: DocumentsLike,
        *,
        top_k: int | None = None,
        normalize: bool = False,
        aggregation: Aggregation = "sum",
        token_weights: npt.ArrayLike | None = None,
        ids: Sequence[Any] | npt.NDArray[Any] | None = None,
        return_matches: bool = False,
        timeout: float | None = None,
    ) -> RerankResult:
        """Scores documents against a query and ranks them.

            score(q, d) = sum over query tokens i of  w_i * max over document tokens j of  <q_i, d_j>

        A set of any size is cut to fit the server's limits; the result is the same however it is cut.

        Args:
            query: [query_tokens, dim], float32, float16 or bfloat16; a numpy array (with ml_dtypes
                for bfloat16) or a torch tensor, on any device.
            documents: one [tokens, dim] array for each document; or one array [documents, tokens,
                dim] where all are equally long; or `PackedDocuments`.  Of the query's type and dim.
            top_k: return the k best only; ``None``: all.
            normalize: divide each row by its norm first (cosine similarity).
            aggregation: ``"sum"``, or ``"mean"``: the sum divided by that of the weights.
            token_weights: w, float [query_tokens]; ``None``: 1 for each.
            ids: one name of any kind for each document; they stay here.
            return_matches: also tell which document token each query token matched.
            timeout: seconds for all of it; ``None``: the client's.

        Returns:
            The ranking, best first.

        Raises:
            InvalidArgument: a shape, type or value is wrong; its `argument` is the argument's name.
                Shapes and types are checked before anything is sent.
            LimitExceeded: the query or one document by itself is over a limit of the server.
            Overloaded: the server has no room, also after the retries.
            Unavailable: no server could be reached, also after the retries.
            DeadlineExceeded: the timeout passed.
            Unauthenticated, PermissionDenied, Cancelled, InternalError: as they say.
        """
        scoring = check_scoring(
            query,
            top_k=top_k,
            normalize=normalize,
            aggregation=aggregation,
            token_weights=token_weights,
            return_matches=return_matches,
        )
        job = Job(scoring, documents, ids)
        deadline = self._deadline(timeout)
        merger = Merger(scoring.top_k, scoring.query_tokens if return_matches else None)
        for call in job.plan(self._known_limits(deadline)):
            responses = self._repeat(deadline, partial(self._run, job, call))
            merger.add(call.first, call.count, responses)
        return merger.result(job.ids)

    def rerank_stream(
        self,
        query: TokenArray,
        documents: Iterable[TokenArray | PackedDocuments],
        *,
        top_k: int | None = None,
        normalize: bool = False,
        aggregation: Aggregation = "sum",
        token_weights: npt.ArrayLike | None = None,
        ids: Iterable[Any] | None = None,
        return_matches: bool = False,
        timeout: float | None = None,
    ) -> Iterator[ScoredDocument]:
        """Scores documents as they come, more than memory holds, and gives results as they arrive.

        At any time about 32 MiB of documents are held: those sent without a result yet, which are
        sent again where a connection is lost.  `documents` and `ids` are iterated on another
        thread, ahead of the results; what they raise is raised here.

        Args:
            query: see `rerank`.
            documents: one [tokens, dim] array after the other, or `PackedDocuments` of several; each
                is copied when it comes, so its memory may be used again.
            top_k: only the k best are given, best first, once all are scored; ``None``: all, in the
                order in which they are scored.
            normalize: see `rerank`.
            aggregation: see `rerank`.
            token_weights: see `rerank`.
            ids: one name of any kind for each document.
            return_matches: see `rerank`.
            timeout: seconds for all of it, the time that `documents` takes included.

        Yields:
            A `ScoredDocument` for each document; its `index` counts over all of `documents`.

        Raises:
            As `rerank`; what was given before is right.  InvalidArgument for the query and the
            options comes at once, the rest while iterating.  A source that pauses for longer than
            the server's ``--stream-idle-timeout`` (60 s) ends the call as DeadlineExceeded.
        """
        scoring = check_scoring(
            query,
            top_k=top_k,
            normalize=normalize,
            aggregation=aggregation,
            token_weights=token_weights,
            return_matches=return_matches,
            top_k_on_server=False,
        )
        return self._stream(scoring, documents, ids, self._deadline(timeout))

    def info(self, *, timeout: float | None = None) -> ServerInfo:
        """What a server is and which limits it has, as it says now.

        Raises:
            Unavailable, DeadlineExceeded, Unauthenticated, ...: see `rerank`.
        """
        return self._info(self._deadline(timeout))

    def health(self, service: str = "", *, timeout: float | None = None) -> ServingStatus:
        """What a server says about its health (grpc.health.v1); not repeated on failure.

        Args:
            service: ``""`` for the whole server, or ``"maxsimd.v1.RerankService"``.
            timeout: seconds; ``None``: the client's.

        Raises:
            Unavailable, DeadlineExceeded, ...: see `rerank`.
        """
        arguments = self._arguments(self._deadline(timeout))
        try:
            status: ServingStatus = self._next_endpoint().health(
                health_request(service), **arguments
            )
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return ServingStatus.SERVICE_UNKNOWN
            raise to_error(error) from None
        return status

    @staticmethod
    def _run(
        job: Job, call: Call, endpoint: Endpoint, arguments: dict[str, Any]
    ) -> list[rerank_pb2.RerankResponse]:
        if not call.stream:
            return list(endpoint.rerank(job.message(call, 0), **arguments))
        messages = (job.message(call, i) for i in range(len(call.chunks)))
        running = endpoint.rerank_stream(messages, **arguments)
        try:
            return list(running)
        finally:
            running.cancel()  # Does nothing to a call that has ended.

    def _stream(
        self,
        scoring: Scoring,
        documents: Iterable[TokenArray | PackedDocuments],
        ids: Iterable[Any] | None,
        deadline: float | None,
    ) -> Iterator[ScoredDocument]:
        builder = ChunkBuilder(scoring, self._known_limits(deadline), ids)
        feed = Feed(scoring, builder, documents)
        attempts = 1
        try:
            while not feed.done:
                progress = False
                try:
                    arguments = self._arguments(deadline)
                    for results in feed.run(self._next_endpoint(), arguments):
                        progress = progress or bool(results)
                        yield from results
                except grpc.RpcError as error:
                    attempts = 1 if progress else attempts
                    delay = self._delay(error, attempts, deadline)
                    if delay is None:
                        raise to_error(error) from None
                    time.sleep(delay)
                    attempts += 1
        finally:
            feed.close()
        yield from feed.session.best()

    def _info(self, deadline: float | None) -> ServerInfo:
        message = self._repeat(
            deadline, lambda endpoint, arguments: endpoint.info(b"", **arguments)
        )
        return self._keep(message)

    def _known_limits(self, deadline: float | None) -> Limits:
        with self._lock:
            limits = self._limits
        return limits or self._info(deadline).limits

    def _repeat(
        self, deadline: float | None, attempt: Callable[[Endpoint, dict[str, Any]], _T]
    ) -> _T:
        for attempts in itertools.count(1):
            try:
                return attempt(self._next_endpoint(), self._arguments(deadline))
            except grpc.RpcError as error:
                delay = self._delay(error, attempts, deadline)
                if delay is None:
                    raise to_error(error) from None
            time.sleep(delay)
        raise AssertionError("unreachable")


def _channel(target: str, tls: TlsLike) -> grpc.Channel:
    secret, options = credentials(tls)
    options_of_channel = [*CHANNEL_OPTIONS, *options]
    if secret is None:
        return grpc.insecure_channel(target, options_of_channel)
    return grpc.secure_channel(target, secret, options_of_channel)
