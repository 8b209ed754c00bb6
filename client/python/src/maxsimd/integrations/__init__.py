"""Rerankers for frameworks, each in a module of its own that needs the framework installed.

`langchain.MaxsimdRerank`, `llama_index.MaxsimdRerank` and `haystack.MaxsimdRanker`; the extras
``maxsimd[langchain]``, ``[llama-index]`` and ``[haystack]`` install what they need.

Frameworks pass texts and maxsimd takes embeddings, so each reranker is given `encode_query`, a function
from a text to its token embeddings, [tokens, dim].  Those of a document are in its metadata, under
`metadata_key`, as an array or as nested lists; documents that have none there are given to
`encode_documents`, a function from a list of texts to a list of token embeddings.
"""
