"""Client for maxsimd, the gRPC server that reranks documents by late interaction (MaxSim)."""

from importlib.metadata import version

from maxsimd._async_client import AsyncClient
from maxsimd._channel import Tls
from maxsimd._client import Client
from maxsimd._documents import PackedDocuments
from maxsimd._errors import (
    Cancelled,
    DeadlineExceeded,
    InternalError,
    InvalidArgument,
    LimitExceeded,
    MaxsimdError,
    Overloaded,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from maxsimd._results import (
    DocumentStatus,
    Limits,
    Matches,
    RerankResult,
    ScoredDocument,
    ServerInfo,
    ServingStatus,
    Timings,
)
from maxsimd._retry import RetryPolicy

__version__ = version("maxsimd")

__all__ = [
    "AsyncClient",
    "Cancelled",
    "Client",
    "DeadlineExceeded",
    "DocumentStatus",
    "InternalError",
    "InvalidArgument",
    "LimitExceeded",
    "Limits",
    "Matches",
    "MaxsimdError",
    "Overloaded",
    "PackedDocuments",
    "PermissionDenied",
    "RerankResult",
    "RetryPolicy",
    "ScoredDocument",
    "ServerInfo",
    "ServingStatus",
    "Timings",
    "Tls",
    "Unauthenticated",
    "Unavailable",
    "__version__",
]
