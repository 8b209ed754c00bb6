"""Fixtures: one real server for the whole run, and a client of it."""

from collections.abc import Iterator

import pytest
from server import running_server

import maxsimd


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    """Address of a server with small limits, so that work must be cut."""
    with running_server("--max-message-bytes=8MiB") as address:
        yield address


@pytest.fixture
def client(target: str) -> Iterator[maxsimd.Client]:
    with maxsimd.Client(target, timeout=60) as client:
        yield client
