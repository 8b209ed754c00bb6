"""The exceptions that calls raise, and how a gRPC status becomes one."""

import re

import grpc


class MaxsimdError(Exception):
    """Base of all errors of this package.

    Attributes:
        code: the gRPC status; also errors that were found before anything was sent have one.
        details: the server's message, or the client's.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(self, details: str, *, code: grpc.StatusCode | None = None) -> None:
        super().__init__(details)
        self.details = details
        if code is not None:
            self.code = code


class InvalidArgument(MaxsimdError, ValueError):
    """A shape, type or option is wrong; repeating the call can't help.

    Attributes:
        argument: the name of the Python argument that is to blame (``"documents"``), or ``None``
            where the server's message doesn't tell.
    """

    code = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, details: str, *, argument: str | None = None) -> None:
        super().__init__(details)
        self.argument = argument


class LimitExceeded(MaxsimdError):
    """One document, the query or the options exceed a limit of the server; see `Client.info`.

    Attributes:
        limit: the limit's name, as in `Limits` (``"max_dim"``), or ``None`` where it isn't known.
    """

    code = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(self, details: str, *, limit: str | None = None) -> None:
        super().__init__(details)
        self.limit = limit


class Overloaded(MaxsimdError):
    """The server had no room, also after the retries that the timeout allowed.

    Attributes:
        retry_after: seconds after which the server wants to be asked again, or ``None``.
    """

    code = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(self, details: str, *, retry_after: float | None = None) -> None:
        super().__init__(details)
        self.retry_after = retry_after


class DeadlineExceeded(MaxsimdError, TimeoutError):
    """The call did not end within its timeout, retries included."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class Unavailable(MaxsimdError, ConnectionError):
    """No server could be reached, or it is draining; also after the retries."""

    code = grpc.StatusCode.UNAVAILABLE


class Unauthenticated(MaxsimdError):
    """The token is missing or wrong."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(MaxsimdError):
    """The server knows the caller and refuses the call."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Cancelled(MaxsimdError):
    """The call was cancelled, for example because its client was closed."""

    code = grpc.StatusCode.CANCELLED


class InternalError(MaxsimdError):
    """The server failed, or its answer is not what was asked for."""

    code = grpc.StatusCode.INTERNAL


# Where the server's field paths lead in this package's arguments; the first match counts.
_ARGUMENT_OF_FIELD = (
    ("query.token_weights", "token_weights"),
    ("query", "query"),
    ("documents.ids", "ids"),
    ("documents.lengths", "lengths"),
    ("documents.offsets", "offsets"),
    ("documents", "documents"),
    ("options.", ""),  # Their names are the same.
)
_LIMIT_NAME = re.compile(r"\bmax_[a-z_]+\b")
_BY_CODE: dict[grpc.StatusCode, type[MaxsimdError]] = {
    error.code: error
    for error in (
        DeadlineExceeded, Unavailable, Unauthenticated, PermissionDenied, Cancelled, InternalError,
    )
}  # fmt: skip


def _argument_of(details: str) -> str | None:
    path = details.partition(":")[0]
    for field, argument in _ARGUMENT_OF_FIELD:
        if path.startswith(field):
            return argument or path.removeprefix(field)
    return None


def error_of_status(
    code: grpc.StatusCode, details: str, retry_after: float | None = None
) -> MaxsimdError:
    """The exception for a failed call.

    Args:
        code: the status.
        details: the status message.
        retry_after: the server's push-back in seconds, where it gave one >= 0.
    """
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return InvalidArgument(details, argument=_argument_of(details))
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        limit = _LIMIT_NAME.search(details)
        if retry_after is None and limit:
            return LimitExceeded(details, limit=limit.group())
        return Overloaded(details, retry_after=retry_after)
    error = _BY_CODE.get(code)
    return error(details) if error else MaxsimdError(details, code=code)
