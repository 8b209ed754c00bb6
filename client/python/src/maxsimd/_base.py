"""What both clients share: addresses in turn, deadlines, known limits, whether to repeat a call."""

import itertools
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

import grpc

from maxsimd._channel import Token, metadata
from maxsimd._endpoint import Endpoint
from maxsimd._errors import Cancelled, DeadlineExceeded, error_of_status
from maxsimd._results import Limits, ServerInfo, info_of_message
from maxsimd._retry import PUSHBACK_TRAILER, RetryPolicy, pushback_seconds, retry_delay
from maxsimd.v1 import rerank_pb2

# glibc gives the memory of a freed message back to the system and page-faults it in again for the next
# one, which takes a tenth of a call's time, until a process has freed a block as large as this once.
# The block itself is never touched.
_LARGE_BLOCK_BYTES = 31 << 20


class BaseClient:
    """State of a client; see `Client` for the arguments."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        token: Token | None,
        timeout: float | None,
        retry: RetryPolicy,
    ) -> None:
        self._endpoints = endpoints
        self._turn = itertools.count()
        self._token = token
        self._timeout = timeout
        self._retry = retry
        self._closed = False
        self._lock = threading.Lock()
        self._limits: Limits | None = None  # Guarded by _lock.
        bytearray(_LARGE_BLOCK_BYTES)

    def _next_endpoint(self) -> Endpoint:
        if self._closed:
            raise Cancelled("the client is closed")
        return self._endpoints[next(self._turn) % len(self._endpoints)]

    def _deadline(self, timeout: float | None) -> float | None:
        if timeout is None:
            timeout = self._timeout
        return None if timeout is None else time.monotonic() + timeout

    def _arguments(self, deadline: float | None) -> dict[str, Any]:
        """What gRPC is told with each attempt.

        Raises:
            DeadlineExceeded: there is no time left.
        """
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise DeadlineExceeded("the timeout passed before the server was asked")
        return {"timeout": left, "metadata": metadata(self._token)}

    def _keep(self, message: rerank_pb2.GetServerInfoResponse) -> ServerInfo:
        info = info_of_message(message)
        with self._lock:
            self._limits = info.limits
        return info

    def _delay(self, error: grpc.RpcError, attempts: int, deadline: float | None) -> float | None:
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


def _pushback(error: grpc.RpcError) -> float | None:
    trailers = dict[str, str | bytes](error.trailing_metadata() or ())  # type: ignore[arg-type]
    value = trailers.get(PUSHBACK_TRAILER)
    return pushback_seconds(value.decode() if isinstance(value, bytes) else value)


def to_error(error: grpc.RpcError) -> Exception:
    """The exception for a call that gRPC says has failed."""
    pushback = _pushback(error)
    retry_after = pushback if pushback is not None and pushback >= 0 else None
    return error_of_status(error.code(), error.details() or "", retry_after)
