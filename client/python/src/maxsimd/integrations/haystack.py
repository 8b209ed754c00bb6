"""A ranker for Haystack.

Use::

    pipeline.add_component("ranker", MaxsimdRanker(encode_query, target="127.0.0.1:50051", top_k=10))
    pipeline.connect("retriever.documents", "ranker.documents")
"""

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret, deserialize_callable, serialize_callable

from maxsimd._client import Client
from maxsimd.integrations._ranking import (
    METADATA_KEY,
    Candidate,
    EncodeDocuments,
    EncodeQuery,
    rank,
)

__all__ = ["MaxsimdRanker"]


@component
class MaxsimdRanker:
    """Ranks documents by MaxSim; a document's score becomes that of the ranking.

    Connects at the first run, and can be serialised where the two functions are a module's.

    Args:
        encode_query: a text's token embeddings, [query_tokens, dim].
        encode_documents: those of a list of texts, [tokens, dim] each; for documents without any in
            their meta.
        target: the address or addresses of the servers, see `maxsimd.Client`.
        token: sent with each call, see `maxsimd.Client`.
        tls: whether to use TLS, or the path of the authorities' certificates.
        timeout: seconds for each run; ``None``: no limit.
        metadata_key: where a document's meta has its token embeddings.
        top_k: how many documents come back; ``None``: all.
        normalize: divide each row by its norm first (cosine similarity).
    """

    def __init__(
        self,
        encode_query: EncodeQuery,
        encode_documents: EncodeDocuments | None = None,
        *,
        target: str | list[str] = "127.0.0.1:50051",
        token: Secret | None = None,
        tls: bool | str = False,
        timeout: float | None = None,
        metadata_key: str = METADATA_KEY,
        top_k: int | None = None,
        normalize: bool = False,
    ) -> None:
        self.encode_query = encode_query
        self.encode_documents = encode_documents
        self.target = target
        self.token = token
        self.tls = tls
        self.timeout = timeout
        self.metadata_key = metadata_key
        self.top_k = top_k
        self.normalize = normalize
        self._client: Client | None = None

    def warm_up(self) -> None:
        """Makes the client; `run` does so too."""
        if self._client is None:
            self._client = Client(
                self.target,
                token=self.token.resolve_value() if self.token else None,
                tls=self.tls or None,
                timeout=self.timeout,
            )

    def close(self) -> None:
        """Closes the connections; a later run opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Ranks the documents.

        Args:
            query: the query's text.
            documents: what to rank.
            top_k: instead of the component's.

        Returns:
            ``{"documents": ...}``: the best of them, best first, as copies.

        Raises:
            InvalidArgument, MaxsimdError: see `maxsimd.Client.rerank`.
        """
        if not documents:
            return {"documents": []}
        self.warm_up()
        assert self._client is not None
        result = rank(
            self._client,
            query,
            [Candidate(document.meta, document.content or "") for document in documents],
            encode_query=self.encode_query,
            encode_documents=self.encode_documents,
            metadata_key=self.metadata_key,
            top_k=self.top_k if top_k is None else top_k,
            normalize=self.normalize,
        )
        return {"documents": [replace(documents[r.index], score=r.score) for r in result]}

    def to_dict(self) -> dict[str, Any]:
        """The component as a pipeline's file holds it."""
        documents = self.encode_documents
        data: dict[str, Any] = default_to_dict(
            self,
            encode_query=serialize_callable(self.encode_query),
            encode_documents=None if documents is None else serialize_callable(documents),
            target=self.target,
            token=self.token.to_dict() if self.token else None,
            tls=self.tls,
            timeout=self.timeout,
            metadata_key=self.metadata_key,
            top_k=self.top_k,
            normalize=self.normalize,
        )
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "MaxsimdRanker":
        """The component of `to_dict`."""
        made = data["init_parameters"]
        for name in ("encode_query", "encode_documents"):
            if made.get(name) is not None:
                made[name] = deserialize_callable(made[name])
        if isinstance(made.get("token"), dict):
            made["token"] = Secret.from_dict(made["token"])
        ranker: MaxsimdRanker = default_from_dict(cls, data)
        return ranker
