"""The client for code with threads."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

import grpc
import numpy.typing as npt

from maxsimd._arrays import TokenArray
from maxsimd._channel import (
    CHANNEL_OPTIONS,
    TlsLike,
    Token,
    as_targets,
    credentials,
    metadata,
)
from maxsimd._documents import DocumentsLike
from maxsimd._endpoint import Endpoint, health_request
from maxsimd._errors import DeadlineExceeded, error_of_status
from maxsimd._merge import Merger
from maxsimd._plan import Call
from maxsimd._request import Aggregation, Job, check_scoring
from maxsimd._results import Limits, RerankResult, ServerInfo, ServingStatus, info_of_message
from maxsimd._retry import PUSHBACK_TRAILER, RetryPolicy, pushback_seconds, retry_delay

_T = TypeVar("_T")


class Client:
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
        self._endpoints = [Endpoint(_channel(one, tls)) for one in as_targets(target)]
        self._turn = itertools.count()
        self._token = token
        self._timeout = timeout
        self._retry = retry
        self._lock = threading.Lock()
        self._limits: Limits | None = None  # Guarded by _lock.

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
            responses = self._repeat(
                deadline, lambda endpoint, left, call=call: self._run(endpoint, left, job, call)
            )
            merger.add(call.first, call.count, responses)
        return merger.result(job.ids)

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
        deadline = self._deadline(timeout)
        request = health_request(service)
        try:
            status: ServingStatus = self._next_endpoint().health(
                request, timeout=_left(deadline), metadata=metadata(self._token)
            )
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return ServingStatus.SERVICE_UNKNOWN
            raise _to_error(error) from None
        return status

    def _run(
        self, endpoint: Endpoint, timeout: float | None, job: Job, call: Call
    ) -> list[Any]:
        arguments = {"timeout": timeout, "metadata": metadata(self._token)}
        if not call.stream:
            return list(endpoint.rerank(job.message(call, 0), **arguments))
        messages = (job.message(call, i) for i in range(len(call.chunks)))
        running = endpoint.rerank_stream(messages, **arguments)
        try:
            return list(running)
        finally:
            running.cancel()  # Does nothing to a call that has ended.

    def _info(self, deadline: float | None) -> ServerInfo:
        message = self._repeat(
            deadline,
            lambda endpoint, left: endpoint.info(
                b"", timeout=left, metadata=metadata(self._token)
            ),
        )
        info = info_of_message(message)
        with self._lock:
            self._limits = info.limits
        return info

    def _known_limits(self, deadline: float | None) -> Limits:
        with self._lock:
            limits = self._limits
        return limits or self._info(deadline).limits

    def _next_endpoint(self) -> Endpoint:
        return self._endpoints[next(self._turn) % len(self._endpoints)]

    def _deadline(self, timeout: float | None) -> float | None:
        if timeout is None:
            timeout = self._timeout
        return None if timeout is None else time.monotonic() + timeout

    def _repeat(
        self, deadline: float | None, attempt: Callable[[Endpoint, float | None], _T]
    ) -> _T:
        for attempts in itertools.count(1):
            try:
                return attempt(self._next_endpoint(), _left(deadline))
            except grpc.RpcError as error:
                delay = self._delay(error, attempts, deadline)
                if delay is None:
                    raise _to_error(error) from None
            time.sleep(delay)
        raise AssertionError("unreachable")

    def _delay(
        self, error: grpc.RpcError, attempts: int, deadline: float | None
    ) -> float | None:
        """Seconds to wait before the next attempt; None: there is none."""
        code, pushback = error.code(), _pushback(error)
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            with self._lock:
                self._limits = None  # The server may have other limits by now.
        delay = retry_delay(self._retry, attempts, code, pushback, random.random())
        if delay is not None and pushback is None and attempts < len(self._endpoints):
            delay = 0.0  # Another server is next.
        if delay is None or (deadline is not None and time.monotonic() + delay >= deadline):
            return None  # A wait that ends after the deadline would only hide why the call fails.
        return delay


def _channel(target: str, tls: TlsLike) -> grpc.Channel:
    secret, options = credentials(tls)
    options_of_channel = [*CHANNEL_OPTIONS, *options]
    if secret is None:
        return grpc.insecure_channel(target, options_of_channel)
    return grpc.secure_channel(target, secret, options_of_channel)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise DeadlineExceeded("the timeout passed before the server was asked")
    return left


def _pushback(error: grpc.RpcError) -> float | None:
    trailers = dict(error.trailing_metadata() or ())
    value = trailers.get(PUSHBACK_TRAILER)
    return pushback_seconds(value.decode() if isinstance(value, bytes) else value)


def _to_error(error: grpc.RpcError) -> Exception:
    pushback = _pushback(error)
    retry_after = pushback if pushback is not None and pushback >= 0 else None
    return error_of_status(error.code(), error.details() or "", retry_after)
