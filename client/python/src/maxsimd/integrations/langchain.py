"""A document compressor for LangChain.

Use::

    compressor = MaxsimdRerank(client=maxsimd.Client(), encode_query=model.encode_query, top_k=10)
    retriever = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=...)
"""

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field

from maxsimd._client import Client
from maxsimd.integrations._ranking import (
    METADATA_KEY,
    Candidate,
    EncodeDocuments,
    EncodeQuery,
    rank,
)

__all__ = ["MaxsimdRerank"]


class MaxsimdRerank(BaseDocumentCompressor):
    """Ranks documents by MaxSim; each comes back with its score as ``metadata["relevance_score"]``.

    Attributes:
        client: calls the server; it stays the caller's to close.
        encode_query: a text's token embeddings, [query_tokens, dim].
        encode_documents: those of a list of texts, [tokens, dim] each; for documents without any in
            their metadata.
        metadata_key: where a document's metadata has its token embeddings.
        top_k: how many documents come back; ``None``: all.
        normalize: divide each row by its norm first (cosine similarity).
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    client: Client = Field(exclude=True)
    encode_query: EncodeQuery = Field(exclude=True)
    encode_documents: EncodeDocuments | None = Field(default=None, exclude=True)
    metadata_key: str = METADATA_KEY
    top_k: int | None = None
    normalize: bool = False

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The best documents, best first, as copies.

        Raises:
            InvalidArgument, MaxsimdError: see `maxsimd.Client.rerank`.
        """
        del callbacks  # There are no steps to tell of.
        if not documents:
            return []
        result = rank(
            self.client,
            query,
            [Candidate(document.metadata, document.page_content) for document in documents],
            encode_query=self.encode_query,
            encode_documents=self.encode_documents,
            metadata_key=self.metadata_key,
            top_k=self.top_k,
            normalize=self.normalize,
        )
        return [
            documents[place.index].model_copy(
                update={
                    "metadata": {
                        **documents[place.index].metadata,
                        "relevance_score": place.score,
                    }
                }
            )
            for place in result
        ]
