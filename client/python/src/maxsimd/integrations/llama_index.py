"""A node postprocessor for LlamaIndex.

Use::

    reranker = MaxsimdRerank(client=maxsimd.Client(), encode_query=model.encode_query, top_n=10)
    engine = index.as_query_engine(similarity_top_k=1000, node_postprocessors=[reranker])
"""

from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from maxsimd._client import Client
from maxsimd._errors import InvalidArgument
from maxsimd.integrations._ranking import (
    METADATA_KEY,
    Candidate,
    EncodeDocuments,
    EncodeQuery,
    rank,
)

__all__ = ["MaxsimdRerank"]


class MaxsimdRerank(BaseNodePostprocessor):
    """Ranks nodes by MaxSim; a node's score becomes that of the ranking.

    LlamaIndex writes metadata into the prompts.  The nodes that come back keep the embeddings out of
    them (`excluded_llm_metadata_keys`); those given stay as they are.

    Attributes:
        client: calls the server; it stays the caller's to close.
        encode_query: a text's token embeddings, [query_tokens, dim].
        encode_documents: those of a list of texts, [tokens, dim] each; for nodes without any in their
            metadata.
        metadata_key: where a node's metadata has its token embeddings.
        top_n: how many nodes come back; ``None``: all.
        normalize: divide each row by its norm first (cosine similarity).
    """

    client: Client = Field(exclude=True)
    encode_query: EncodeQuery = Field(exclude=True)
    encode_documents: EncodeDocuments | None = Field(default=None, exclude=True)
    metadata_key: str = METADATA_KEY
    top_n: int | None = None
    normalize: bool = False

    @classmethod
    def class_name(cls) -> str:
        """Name of the class, for LlamaIndex's serialisation."""
        return "MaxsimdRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        if query_bundle is None:
            raise InvalidArgument("query_bundle: is missing", argument="query_bundle")
        result = rank(
            self.client,
            query_bundle.query_str,
            [Candidate(n.node.metadata, n.node.get_content(MetadataMode.NONE)) for n in nodes],
            encode_query=self.encode_query,
            encode_documents=self.encode_documents,
            metadata_key=self.metadata_key,
            top_k=self.top_n,
            normalize=self.normalize,
        )
        return [
            NodeWithScore(node=self._without_embeddings(nodes[r.index].node), score=r.score)
            for r in result
        ]

    def _without_embeddings(self, node: BaseNode) -> BaseNode:
        """The node, which shows everything but its embeddings to language models."""
        if self.metadata_key not in node.metadata:
            return node
        excluded = {*node.excluded_llm_metadata_keys, self.metadata_key}
        return node.model_copy(update={"excluded_llm_metadata_keys": sorted(excluded)})
