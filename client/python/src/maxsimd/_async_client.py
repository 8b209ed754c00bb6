"""The client for code with asyncio."""

import asyncio
import itertools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import grpc
import grpc.aio
import numpy.typing as npt

from maxsimd._arrays import TokenArray
from maxsimd._async_feed import AsyncFeed
from maxsimd._async_status import StatusWatch
from maxsimd._base import BaseClient, to_error
from maxsimd._channel import CHANNEL_OPTIONS, TlsLike, Token, as_targets, credentials
from maxsimd._documents import DocumentsLike, PackedDocuments
from maxsimd._endpoint import Endpoint, health_request
from maxsimd._merge import Merger
from maxsimd._plan import Call
from maxsimd._request import Aggregation, Job, Scoring, check_scoring
from maxsimd._results import Limits, RerankResult, ScoredDocument, ServerInfo, ServingStatus
from maxsimd._retry import RetryPolicy
from maxsimd._stream import ChunkBuilder
from maxsimd.v1 import rerank_pb2

_T = TypeVar("_T")


class AsyncClient(BaseClient):
    """Calls one or several maxsimd servers from one event loop, in which it is made and used.

    All methods may be awaited at the same time.  A client is an asynchronous context manager.
    Arguments, results and errors are those of `Client`.

    Args:
        target: see `Client`.
        token: see `Client`.
        tls: see `Client`.
        timeout: see `Client`.
        retry: see `Client`.

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

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections; calls in progress end as `Cancelled`."""
        self._closed = True
        for endpoint in self._endpoints:
            await endpoint.channel.close()

    async def rerank(
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
        """Scores documents against a query and ranks them; see `Client.rerank`."""
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
        for call in job.plan(await self._known_limits(deadline)):
            responses = await self._repeat(deadline, partial(self._run, job, call))
            merger.add(call.first, call.count, responses)
        return merger.result(job.ids)

    def rerank_stream(
        self,
        query: TokenArray,
        documents: Iterable[TokenArray | PackedDocuments]
        | AsyncIterable[TokenArray | PackedDocuments],
        *,
        top_k: int | None = None,
        normalize: bool = False,
        aggregation: Aggregation = "sum",
        token_weights: npt.ArrayLike | None = None,
        ids: Iterable[Any] | None = None,
        return_matches: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[ScoredDocument]:
        """Scores documents as they come; see `Client.rerank_stream`.

        `documents` may be an asynchronous iterable.  A plain one is iterated in the event loop, so
        it must not block; `ids` always is.
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

    async def info(self, *, timeout: float | None = None) -> ServerInfo:
        """What a server is and which limits it has; see `Client.info`."""
        return await self._info(self._deadline(timeout))

    async def health(self, service: str = "", *, timeout: float | None = None) -> ServingStatus:
        """What a server says about its health; see `Client.health`."""
        arguments = self._arguments(self._deadline(timeout))
        try:
            status: ServingStatus = await self._next_endpoint().health(
                health_request(service), **arguments
            )
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return ServingStatus.SERVICE_UNKNOWN
            raise to_error(error) from None
        return status

    @staticmethod
    async def _run(
        job: Job, call: Call, endpoint: Endpoint, arguments: dict[str, Any]
    ) -> list[rerank_pb2.RerankResponse]:
        if not call.stream:
            return [r async for r in endpoint.rerank(job.message(call, 0), **arguments)]
        messages = (job.message(call, i) for i in range(len(call.chunks)))
        running = endpoint.rerank_stream(messages, **arguments)
        watch = StatusWatch(running)
        try:
            return [response async for response in running]
        except grpc.RpcError as error:
            raise await watch.error(error) from None
        finally:
            running.cancel()  # Does nothing to a call that has ended.

    async def _stream(
        self,
        scoring: Scoring,
        documents: Iterable[TokenArray | PackedDocuments]
        | AsyncIterable[TokenArray | PackedDocuments],
        ids: Iterable[Any] | None,
        deadline: float | None,
    ) -> AsyncIterator[ScoredDocument]:
        builder = ChunkBuilder(scoring, await self._known_limits(deadline), ids)
        feed = AsyncFeed(scoring, builder, documents)
        attempts = 1
        try:
            while not feed.done:
                progress = False
                try:
                    arguments = self._arguments(deadline)
                    async with aclosing(feed.run(self._next_endpoint(), arguments)) as batches:
                        async for results in batches:
                            progress = progress or bool(results)
                            for result in results:
                                yield result
                except grpc.RpcError as error:
                    attempts = 1 if progress else attempts
                    delay = self._delay(error, attempts, deadline)
                    if delay is None:
                        raise to_error(error) from None
                    await asyncio.sleep(delay)
                    attempts += 1
        finally:
            await feed.close()
        for result in feed.session.best():
            yield result

    async def _info(self, deadline: float | None) -> ServerInfo:
        message = await self._repeat(
            deadline, lambda endpoint, arguments: endpoint.info(b"", **arguments)
        )
        return self._keep(message)

    async def _known_limits(self, deadline: float | None) -> Limits:
        with self._lock:
            limits = self._limits
        return limits or (await self._info(deadline)).limits

    async def _repeat(
        self, deadline: float | None, attempt: Callable[[Endpoint, dict[str, Any]], Awaitable[_T]]
    ) -> _T:
        for attempts in itertools.count(1):
            try:
                return await attempt(self._next_endpoint(), self._arguments(deadline))
            except grpc.RpcError as error:
                delay = self._delay(error, attempts, deadline)
                if delay is None:
                    raise to_error(error) from None
            await asyncio.sleep(delay)
        raise AssertionError("unreachable")


def _channel(target: str, tls: TlsLike) -> grpc.aio.Channel:
    secret, options = credentials(tls)
    options_of_channel = [*CHANNEL_OPTIONS, *options]
    if secret is None:
        return grpc.aio.insecure_channel(target, options_of_channel)
    return grpc.aio.secure_channel(target, secret, options_of_channel)
