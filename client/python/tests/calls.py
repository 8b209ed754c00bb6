"""Both clients behind one face, so that each test holds for both."""

import asyncio
from typing import Any

import maxsimd


class SyncCalls:
    """`Client`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._made = arguments, options

    def rerank(self, *arguments: Any, **options: Any) -> maxsimd.RerankResult:
        with self._client() as client:
            return client.rerank(*arguments, **options)

    def rerank_stream(self, *arguments: Any, **options: Any) -> list[maxsimd.ScoredDocument]:
        with self._client() as client:
            return list(client.rerank_stream(*arguments, **options))

    def info(self) -> maxsimd.ServerInfo:
        with self._client() as client:
            return client.info()

    def health(self, service: str = "") -> maxsimd.ServingStatus:
        with self._client() as client:
            return client.health(service)

    def _client(self) -> maxsimd.Client:
        arguments, options = self._made
        return maxsimd.Client(*arguments, **{"timeout": 60, **options})


class AsyncCalls:
    """`AsyncClient`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._made = arguments, options

    def rerank(self, *arguments: Any, **options: Any) -> maxsimd.RerankResult:
        return self._run(lambda client: client.rerank(*arguments, **options))

    def rerank_stream(self, *arguments: Any, **options: Any) -> list[maxsimd.ScoredDocument]:
        async def collect(client: maxsimd.AsyncClient) -> list[maxsimd.ScoredDocument]:
            return [r async for r in client.rerank_stream(*arguments, **options)]

        return self._run(collect)

    def info(self) -> maxsimd.ServerInfo:
        return self._run(lambda client: client.info())

    def health(self, service: str = "") -> maxsimd.ServingStatus:
        return self._run(lambda client: client.health(service))

    def _run(self, call: Any) -> Any:
        async def run() -> Any:
            arguments, options = self._made
            async with maxsimd.AsyncClient(*arguments, **{"timeout": 60, **options}) as client:
                return await call(client)

        return asyncio.run(run())
