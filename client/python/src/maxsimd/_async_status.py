"""The status that a server ended a stream with, where grpc.aio lost it.

When a server ends a stream while a message is being written to it, grpc.aio puts INTERNAL, "Internal
error from Core" in the place of the server's status: https://github.com/grpc/grpc/issues/36066.  The
server's comes before that, or soon after.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import grpc
import grpc.aio

_LOST = "Internal error from Core"
_SECONDS = 0.1  # For a status that has arrived, to be looked at by the event loop.
_T = TypeVar("_T")


class StatusWatch:
    """Of one stream.

    Args:
        call: just started.
    """

    def __init__(self, call: Any) -> None:
        self._call = call
        self._status: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._done)

    async def error(self, error: grpc.RpcError) -> grpc.RpcError:
        """The server's status in place of `error`, which the call raised."""
        if error.details() != _LOST:
            return error
        for _ in range(100):
            if self._status is not None:
                break
            await asyncio.sleep(_SECONDS / 100)
            self._done(self._call)
        return self._status or error

    def _done(self, call: Any) -> None:
        details = _result(call.details())
        if details != _LOST and self._status is None:
            self._status = grpc.aio.AioRpcError(
                _result(call.code()),
                grpc.aio.Metadata(),
                _result(call.trailing_metadata()),
                details,
            )


def _result(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Of a coroutine that needn't wait: a call that has ended knows its status."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("the call has ended and doesn't know its status")
