"""Channels to one or several servers, with TLS and a token."""

import json
import os
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import grpc

from maxsimd._errors import InvalidArgument

# A DNS name with several addresses (a headless Kubernetes service) gets the calls in turn.  The calls
# are repeated by this package: gRPC could only repeat what fits its retry buffer.
CHANNEL_OPTIONS = (
    ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
    ("grpc.enable_retries", 0),
)

PathOrBytes: TypeAlias = str | os.PathLike[str] | bytes

# Credentials that change (tokens that expire) come from a function; it is asked at each call.
Token: TypeAlias = str | Callable[[], str]


@dataclass(frozen=True)
class Tls:
    """What a connection over TLS needs; each is a file's path, or its contents as bytes (PEM).

    Attributes:
        ca: the certificates that the server's must be signed by; ``None``: the system's.
        cert: this client's certificate chain, where the server asks for one.
        key: its private key; needed with `cert`.
        server_name: the name that the server's certificate has, where it isn't the target's.
    """

    ca: PathOrBytes | None = None
    cert: PathOrBytes | None = None
    key: PathOrBytes | None = None
    server_name: str | None = None


# True: TLS with the system's certificates.  A path or bytes: as Tls(ca=...).
TlsLike: TypeAlias = bool | PathOrBytes | Tls | None


def as_targets(target: str | Sequence[str]) -> list[str]:
    """The addresses of `target`."""
    targets = [target] if isinstance(target, str) else list(target)
    if not targets or not all(isinstance(one, str) and one for one in targets):
        raise InvalidArgument("target: must be an address or several", argument="target")
    return targets


def _read(value: PathOrBytes | None, name: str) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    try:
        return pathlib.Path(value).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"tls: {name}: {error}", argument="tls") from error


def credentials(tls: TlsLike) -> tuple[grpc.ChannelCredentials | None, list[tuple[str, str]]]:
    """Credentials for gRPC, None for a connection without TLS; and channel options."""
    if tls is None or tls is False:
        return None, []
    if tls is True:
        tls = Tls()
    elif not isinstance(tls, Tls):
        tls = Tls(ca=tls)
    if (tls.cert is None) != (tls.key is None):
        raise InvalidArgument("tls: cert and key go together", argument="tls")
    options = []
    if tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    return (
        grpc.ssl_channel_credentials(
            _read(tls.ca, "ca"), _read(tls.key, "key"), _read(tls.cert, "cert")
        ),
        options,
    )


def metadata(token: Token | None) -> tuple[tuple[str, str], ...]:
    """What goes with each call."""
    if token is None:
        return ()
    return (("authorization", f"Bearer {token() if callable(token) else token}"),)
