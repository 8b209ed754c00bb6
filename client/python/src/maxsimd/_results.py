"""What calls return."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxsimd.v1 import rerank_pb2


class DocumentStatus(IntEnum):
    """Whether a document has a score.

    `SCORED`; `EMPTY`: no tokens, the score is -infinity; `NON_FINITE`: NaN or infinity among its
    elements, or its score overflows float32, the score is -infinity.
    """

    SCORED = 1
    EMPTY = 2
    NON_FINITE = 3


class ServingStatus(IntEnum):
    """What a server says about its health, as grpc.health.v1 has it."""

    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


@dataclass(frozen=True, eq=False, slots=True)
class Matches:
    """Which document token each query token matched; row r belongs to result r.

    Attributes:
        document_tokens: int64 [results, query_tokens], the row within the document, the lowest of
            equally similar ones; -1 where the document isn't `SCORED`.
        similarities: float32 [results, query_tokens], after normalisation, before the weight; NaN
            where the document isn't `SCORED`.
    """

    document_tokens: npt.NDArray[np.int64]
    similarities: npt.NDArray[np.float32]

    def __getitem__(self, rows: Any) -> "Matches":
        return Matches(self.document_tokens[rows], self.similarities[rows])


class ScoredDocument(NamedTuple):
    """One document's result.

    Attributes:
        index: position among the documents of the call, from 0.
        score: float32's value; -infinity unless the status is `SCORED`.
        id: what `ids` has at that position; ``None`` without `ids`.
        status: see `DocumentStatus`.
        matches: with `return_matches`, of one document: arrays [query_tokens].
    """

    index: int  # type: ignore[assignment]  # Instead of tuple's method.
    score: float
    id: Any = None
    status: DocumentStatus = DocumentStatus.SCORED
    matches: Matches | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Where a call's time went, in seconds, as the server saw it.

    Of a call that spans several batches the sums over them, each counted whole; so the parts may
    overlap and exceed `total`.
    """

    total: float = 0.0
    receive: float = 0.0
    queue: float = 0.0
    pack: float = 0.0
    upload: float = 0.0
    compute: float = 0.0
    batches: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class RerankResult:
    """The ranking: best first, at equal scores the lower index first; all arrays are in this order.

    Iterating gives `ScoredDocument`s.

    Attributes:
        indices: int64 [results], positions among the documents of the call.
        scores: float32 [results].
        status: uint8 [results], values of `DocumentStatus`.
        ids: [results], `ids[indices]`; ``None`` where the call had no `ids`.
        matches: with `return_matches`, see `Matches`; else ``None``.
        document_tokens: tokens of all documents that the server received.
        timings: see `Timings`; summed over the calls that the work was split into.
    """

    indices: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    status: npt.NDArray[np.uint8]
    ids: npt.NDArray[Any] | None = None
    matches: Matches | None = None
    document_tokens: int = 0
    timings: Timings = Timings()

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[ScoredDocument]:
        for rank in range(len(self)):
            yield ScoredDocument(
                int(self.indices[rank]),
                float(self.scores[rank]),
                None if self.ids is None else self.ids[rank],
                DocumentStatus(int(self.status[rank])),
                None if self.matches is None else self.matches[rank],
            )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may not exceed; 0 stands for no limit.

    The client cuts its work to fit `max_message_bytes`, `max_stream_message_bytes`,
    `max_documents_per_message`, `max_documents_per_stream` and `max_multiply_adds_per_message`.
    """

    max_message_bytes: int = 0
    max_stream_message_bytes: int = 0
    max_query_tokens: int = 0
    max_document_tokens: int = 0
    max_dim: int = 0
    max_documents_per_message: int = 0
    max_documents_per_stream: int = 0
    max_id_bytes: int = 0
    max_multiply_adds_per_message: int = 0
    max_held_result_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What is running.

    Attributes:
        version: the server's.
        backend: ``"cpu"`` or ``"cuda"``.
        devices: ``"NVIDIA H200"``, or the CPU's name and the instruction set in use.
        element_types: ``"float32"``, ``"float16"``, ``"bfloat16"``.
        limits: see `Limits`.
        features: names of what was added to the contract since its first version.
    """

    version: str
    backend: str
    devices: tuple[str, ...]
    element_types: tuple[str, ...]
    limits: Limits
    features: tuple[str, ...]


def info_of_message(message: rerank_pb2.GetServerInfoResponse) -> ServerInfo:
    """The message without its protobuf."""
    names = {
        rerank_pb2.ELEMENT_TYPE_FLOAT32: "float32",
        rerank_pb2.ELEMENT_TYPE_FLOAT16: "float16",
        rerank_pb2.ELEMENT_TYPE_BFLOAT16: "bfloat16",
    }
    limits = message.limits
    return ServerInfo(
        version=message.version,
        backend=message.backend,
        devices=tuple(message.devices),
        element_types=tuple(names.get(t, str(t)) for t in message.element_types),
        limits=Limits(**{name: getattr(limits, name) for name in Limits.__dataclass_fields__}),
        features=tuple(message.features),
    )
