"""What the rerankers share: where embeddings come from, and the call."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from maxsimd._client import Client
from maxsimd._embeddings import as_token_array, of_one_type
from maxsimd._errors import InvalidArgument
from maxsimd._results import RerankResult

METADATA_KEY = "token_embeddings"

EncodeQuery: TypeAlias = Callable[[str], Any]
EncodeDocuments: TypeAlias = Callable[[list[str]], Sequence[Any]]


class Candidate(NamedTuple):
    """A framework's document."""

    metadata: Mapping[str, Any]
    text: str


def rank(
    client: Client,
    query: str,
    candidates: Sequence[Candidate],
    *,
    encode_query: EncodeQuery,
    encode_documents: EncodeDocuments | None,
    metadata_key: str,
    top_k: int | None,
    normalize: bool,
) -> RerankResult:
    """The ranking of the candidates; its indices count over them.

    Raises:
        InvalidArgument: a document has no embeddings and there is no `encode_documents`, or it gave
            another number of them than texts; or see `Client.rerank`.
        MaxsimdError: see `Client.rerank`.
    """
    embeddings: list[Any] = [c.metadata.get(metadata_key) for c in candidates]
    missing = [i for i, embedding in enumerate(embeddings) if embedding is None]
    if missing and encode_documents is None:
        raise InvalidArgument(
            f"documents[{missing[0]}]: has no {metadata_key!r} in its metadata, and there is no "
            "encode_documents",
            argument="documents",
        )
    if missing and encode_documents is not None:
        encoded = encode_documents([candidates[i].text for i in missing])
        if len(encoded) != len(missing):
            raise InvalidArgument(
                f"encode_documents: gave {len(encoded)} embeddings for {len(missing)} texts",
                argument="encode_documents",
            )
        for i, embedding in zip(missing, encoded, strict=True):
            embeddings[i] = embedding
    documents = [as_token_array(e, f"documents[{i}]") for i, e in enumerate(embeddings)]
    arrays = of_one_type(as_token_array(encode_query(query), "encode_query"), documents)
    return client.rerank(*arrays, top_k=top_k, normalize=normalize)
