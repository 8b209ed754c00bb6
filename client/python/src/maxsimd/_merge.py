"""Puts the results of one or several calls together, and finds out servers that answer wrongly.  Pure."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from maxsimd._errors import InternalError
from maxsimd._results import Matches, RerankResult, Timings
from maxsimd.v1 import rerank_pb2


def decode_matches(results: Sequence[rerank_pb2.ScoredDocument], query_tokens: int) -> Matches:
    """The matches of all results as arrays."""
    tokens = np.full((len(results), query_tokens), -1, np.int64)
    similarities = np.full((len(results), query_tokens), np.nan, np.float32)
    for row, result in enumerate(results):
        if not result.matches:
            continue
        if len(result.matches) != query_tokens:
            raise InternalError(
                f"the server returned {len(result.matches)} matches for {query_tokens} query tokens"
            )
        tokens[row] = [match.document_token for match in result.matches]
        similarities[row] = [match.similarity for match in result.matches]
    return Matches(tokens, similarities)


class Merger:
    """The results of calls over consecutive documents.

    Args:
        top_k: 0: every document.
        query_tokens: for `matches`; None: they weren't asked for.
    """

    def __init__(self, top_k: int, query_tokens: int | None) -> None:
        self._top_k = top_k
        self._query_tokens = query_tokens
        self._indices: list[npt.NDArray[np.int64]] = []
        self._results: list[rerank_pb2.ScoredDocument] = []
        self._document_tokens = 0
        self._seconds = dict.fromkeys((f.name for f in fields(Timings)), 0.0)

    def add(self, first: int, count: int, responses: Sequence[rerank_pb2.RerankResponse]) -> None:
        """The responses of a call that ended OK, over `count` documents from `first` on.

        Raises:
            InternalError: an index is unknown or comes twice, a document is missing, or there is no
                summary.
        """
        results = [result for response in responses for result in response.results]
        indices = np.fromiter((result.index for result in results), np.int64, len(results))
        expected = min(self._top_k, count) if self._top_k else count
        if len(results) and int(indices.max()) >= count:
            raise InternalError(
                f"the server returned document {indices.max()}, but only {count} were sent"
            )
        if len(np.unique(indices)) != len(results) or len(results) != expected:
            raise InternalError(
                f"the server returned {len(results)} results, {len(np.unique(indices))} of them "
                f"different, but {expected} were to come"
            )
        if not responses or not responses[-1].HasField("summary"):
            raise InternalError("the server ended the call without a summary")
        self._add_summary(responses[-1].summary)
        self._indices.append(indices + first)
        self._results += results

    def _add_summary(self, summary: rerank_pb2.RerankSummary) -> None:
        self._document_tokens += summary.document_tokens
        timings = summary.timings
        self._seconds["batches"] += timings.batches
        for name in self._seconds:
            if name != "batches":
                duration = getattr(timings, name)
                self._seconds[name] += duration.seconds + duration.nanos * 1e-9

    def result(self, ids: npt.NDArray[np.generic] | None) -> RerankResult:
        """All of it, in rank order."""
        results = self._results
        indices = np.concatenate(self._indices) if self._indices else np.zeros(0, np.int64)
        scores = np.fromiter((result.score for result in results), np.float32, len(results))
        status = np.fromiter((result.status for result in results), np.uint8, len(results))
        order = np.lexsort((indices, -scores))
        if self._top_k:
            order = order[: self._top_k]
        matches = None
        if self._query_tokens is not None:
            matches = decode_matches([results[i] for i in order], self._query_tokens)
        indices = indices[order]
        return RerankResult(
            indices=indices,
            scores=scores[order],
            status=status[order],
            ids=None if ids is None else ids[indices],
            matches=matches,
            document_tokens=self._document_tokens,
            timings=Timings(
                **{**self._seconds, "batches": int(self._seconds["batches"])}  # type: ignore[arg-type]
            ),
        )
