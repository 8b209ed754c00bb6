"""Fixtures: one real server for the whole run, and both kinds of client."""

from collections.abc import Iterator

import pytest
from calls import AsyncCalls, SyncCalls
from server import running_server

import maxsimd


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    """Address of a server."""
    with running_server("--max-message-bytes=8MiB") as address:
        yield address


@pytest.fixture
def client(target: str) -> Iterator[maxsimd.Client]:
    with maxsimd.Client(target, timeout=60) as client:
        yield client


@pytest.fixture(params=[SyncCalls, AsyncCalls], ids=["sync", "async"])
def make_calls(request):
    """Makes `SyncCalls` or `AsyncCalls` from a client's arguments."""
    return request.param


@pytest.fixture
def calls(make_calls, target):
    """A client of the real server."""
    return make_calls(target)
