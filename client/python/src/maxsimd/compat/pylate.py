"""`pylate.rank.rerank`, by a maxsimd server.

Use::

    from maxsimd.compat import pylate as rank   # was: from pylate import rank
"""

from collections.abc import Sequence
from typing import Any, TypedDict

from maxsimd._client import Client
from maxsimd._embeddings import as_documents, as_token_array, map_concurrently, of_one_type
from maxsimd._errors import InvalidArgument
from maxsimd.compat._default import client_or_default

__all__ = ["RerankResult", "rerank"]


class RerankResult(TypedDict):
    """One document of a ranking: its id and its score."""

    id: int | str
    score: float


def rerank(
    documents_ids: Sequence[Sequence[int | str]],
    queries_embeddings: Sequence[Any] | Any,
    documents_embeddings: Sequence[Sequence[Any]] | Any,
    device: str | None = None,
    *,
    client: Client | None = None,
) -> list[list[RerankResult]]:
    """Ranks each query's documents, as `pylate.rank.rerank`.

    Args:
        documents_ids: for each query the ids of its documents.
        queries_embeddings: for each query its token embeddings, [query_tokens, dim]: numpy arrays,
            torch tensors or nested lists; or one array [queries, query_tokens, dim]; or, of a single
            query, [query_tokens, dim].
        documents_embeddings: for each query its documents, [tokens, dim] each.
        device: not used; the server has its own.
        client: see `maxsimd.compat`.

    Returns:
        For each query its documents, best first; at equal scores the one given first.

    Raises:
        InvalidArgument: the three differ in length (PyLate leaves out what is too much), or a shape or
            type is wrong.
        MaxsimdError: see `maxsimd.Client.rerank`.
    """
    del device
    if getattr(queries_embeddings, "ndim", 3) == 2:
        queries_embeddings = [queries_embeddings]
    queries = list(queries_embeddings)
    documents = list(documents_embeddings)
    for name, found in (("documents_ids", documents_ids), ("documents_embeddings", documents)):
        if len(found) != len(queries):
            raise InvalidArgument(
                f"{name}: are of {len(found)} queries, but there are {len(queries)} queries",
                argument=name,
            )
    if not queries:
        return []
    caller = client_or_default(client)

    def rank(ids: Sequence[int | str], query: Any, candidates: Sequence[Any]) -> list[RerankResult]:
        if len(ids) != len(candidates):
            raise InvalidArgument(
                f"documents_ids: {len(ids)} for {len(candidates)} documents of a query",
                argument="documents_ids",
            )
        array = as_token_array(query, "queries_embeddings")
        arrays = as_documents(candidates, "documents_embeddings")
        result = caller.rerank(*of_one_type(array, arrays))
        return [
            RerankResult(id=ids[index], score=score)
            for index, score in zip(result.indices.tolist(), result.scores.tolist(), strict=True)
        ]

    return map_concurrently(rank, documents_ids, queries, documents)
