"""The client of the drop-ins, whose signatures have no room for one."""

import os
import threading

from maxsimd._client import Client

_lock = threading.Lock()
_client: Client | None = None


def use(client: Client | None) -> None:
    """Has the functions of `maxsimd.compat` call this client; it stays the caller's to close.

    Args:
        client: ``None``: as if `use` had never been called.
    """
    global _client  # The originals are functions of a module: their place is a module's too.
    with _lock:
        _client = client


def client_or_default(client: Client | None) -> Client:
    """The given client, else the one of `use`, else a new one that later calls share."""
    global _client
    if client is not None:
        return client
    with _lock:
        if _client is None:
            targets = os.environ.get("MAXSIMD_TARGET", "127.0.0.1:50051")
            _client = Client(targets.split(","))
        return _client
