"""Whether, and after how long, a failed call is worth repeating.  Pure; chance is passed in.

Every call of the service may be repeated.  What is repeated: UNAVAILABLE (draining, or no connection)
and RESOURCE_EXHAUSTED for which the server names a time (overload); never what the server's trailer
grpc-retry-pushback-ms says not to: a negative or unreadable value.  Wait: what the server says, else a
random part of initial * multiplier^n, capped.  Source: gRPC proposal A6.
"""

from dataclasses import dataclass

import grpc

PUSHBACK_TRAILER = "grpc-retry-pushback-ms"
_MAX_PUSHBACK_SECONDS = 60.0  # Who says to come back in an hour is not overloaded for a moment.


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how fast a call is repeated.

    Attributes:
        max_attempts: the first one counts; 1 never repeats.
        initial_backoff: seconds, the most to wait before the second attempt.
        multiplier: of that, for each further attempt.
        max_backoff: seconds, the most to wait at all.
    """

    max_attempts: int = 5
    initial_backoff: float = 0.1
    multiplier: float = 2.0
    max_backoff: float = 5.0


def pushback_seconds(trailer: str | None) -> float | None:
    """The trailer's value in seconds; negative where it forbids to retry; None without a trailer."""
    if trailer is None:
        return None
    try:
        return int(trailer) / 1000
    except ValueError:
        return -1.0


def retry_delay(
    policy: RetryPolicy,
    attempts: int,
    code: grpc.StatusCode,
    pushback: float | None,
    chance: float,
) -> float | None:
    """Seconds to wait before the attempt after the `attempts`-th, which failed; None: give up.

    Args:
        policy: how often and how fast.
        attempts: made so far, at least 1.
        code: what the last one ended with.
        pushback: of `pushback_seconds`.
        chance: in [0, 1).
    """
    if attempts >= policy.max_attempts:
        return None
    overloaded = code is grpc.StatusCode.RESOURCE_EXHAUSTED and pushback is not None
    if code is not grpc.StatusCode.UNAVAILABLE and not overloaded:
        return None
    if pushback is not None:
        return pushback if 0 <= pushback <= _MAX_PUSHBACK_SECONDS else None
    backoff = policy.initial_backoff * policy.multiplier ** min(attempts - 1, 60)
    return chance * min(backoff, policy.max_backoff)
