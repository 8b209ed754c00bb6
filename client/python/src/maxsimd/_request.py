"""The arguments of a call, checked, and as the start of its request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from maxsimd._arrays import Rows, TokenArray, as_rows, as_weights
from maxsimd._documents import Documents, DocumentsLike, check_documents
from maxsimd._errors import InvalidArgument
from maxsimd._plan import Call, Chunk, Planner, chunk_parts
from maxsimd._results import Limits
from maxsimd._wire import request, stream_documents, stream_start
from maxsimd.v1 import rerank_pb2

Aggregation: TypeAlias = Literal["sum", "mean"]

_AGGREGATIONS = {
    "sum": rerank_pb2.AGGREGATION_SUM,
    "mean": rerank_pb2.AGGREGATION_MEAN,
}


@dataclass(frozen=True, eq=False)
class Scoring:
    """What is asked for, apart from the documents.

    Attributes:
        query: its rows.
        start: the RerankRequest without documents, serialized.
        top_k: 0: every document.
        return_matches: see `Matches`.
    """

    query: Rows
    start: bytes
    top_k: int
    return_matches: bool

    @property
    def query_tokens(self) -> int:
        return len(self.query.data)

    @property
    def row_bytes(self) -> int:
        return self.query.dim * self.query.data.dtype.itemsize


def check_scoring(
    query: TokenArray,
    *,
    top_k: int | None,
    normalize: bool,
    aggregation: Aggregation,
    token_weights: npt.ArrayLike | None,
    return_matches: bool,
    top_k_on_server: bool = True,
) -> Scoring:
    """Checks the arguments that both `rerank` and `rerank_stream` have.

    Raises:
        InvalidArgument: one of them is wrong; the message begins with its name.
    """
    rows = as_rows(query, "query")
    if not len(rows.data):
        raise InvalidArgument("query: has no tokens, must have at least 1", argument="query")
    if top_k is not None and not 1 <= int(top_k) <= 2**32 - 1:
        raise InvalidArgument(f"top_k: is {top_k}, must be at least 1 or None", argument="top_k")
    if aggregation not in _AGGREGATIONS:
        raise InvalidArgument(
            f"aggregation: is {aggregation!r}, must be 'sum' or 'mean'", argument="aggregation"
        )
    k = int(top_k or 0)
    message = rerank_pb2.RerankRequest(
        query=rerank_pb2.Query(
            tokens=rerank_pb2.TokenMatrix(
                element_type=rows.element_type,  # type: ignore[arg-type]
                dim=rows.dim,
                data=rows.data.tobytes(),
            ),
            token_weights=as_weights(token_weights, len(rows.data)).tolist(),
        ),
        options=rerank_pb2.RerankOptions(
            top_k=k if top_k_on_server else 0,
            normalize=bool(normalize),
            aggregation=_AGGREGATIONS[aggregation],
            return_matches=bool(return_matches),
        ),
    )
    return Scoring(rows, message.SerializeToString(), k, bool(return_matches))


def as_ids(ids: Sequence[Any] | npt.NDArray[Any] | None, count: int) -> npt.NDArray[Any] | None:
    """`ids` as an array of what they are."""
    if ids is None:
        return None
    if len(ids) != count:
        raise InvalidArgument(f"ids: {len(ids)} for {count} documents", argument="ids")
    if isinstance(ids, np.ndarray):
        return ids
    array = np.empty(count, object)
    array[:] = ids
    return array


class Job:
    """One `rerank`: what to send.

    Args:
        scoring: what is asked for.
        documents: the candidates.
        ids: their names, or None.
    """

    def __init__(
        self,
        scoring: Scoring,
        documents: DocumentsLike,
        ids: Sequence[Any] | npt.NDArray[Any] | None,
    ) -> None:
        self.scoring = scoring
        self.documents: Documents = check_documents(documents, scoring.query)
        self.ids = as_ids(ids, len(self.documents.lengths))

    def plan(self, limits: Limits) -> list[Call]:
        """The calls to make."""
        query = self.scoring.query
        work_per_row = self.scoring.query_tokens * query.dim
        start_bytes = len(self.scoring.start)
        return Planner(
            self.documents, self.scoring.row_bytes, work_per_row, limits, start_bytes
        ).plan()

    def message(self, call: Call, index: int) -> bytes:
        """The index-th message of a call."""
        chunk: Chunk = call.chunks[index]
        query = self.scoring.query
        parts = chunk_parts(self.documents, query.element_type, query.dim, chunk)
        if not call.stream:
            return request(self.scoring.start, parts)
        if index == 0:
            return stream_start(self.scoring.start, parts)
        assert parts is not None  # Only a stream's first chunk may be without documents.
        return stream_documents(parts)
