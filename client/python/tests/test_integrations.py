"""The rerankers for frameworks, in the frameworks' own classes; each where it is installed."""

import asyncio
import json
import warnings

import numpy as np
import pytest
from embeddings import SAMPLE, expected_answers, load_sample

import maxsimd

pytestmark = pytest.mark.filterwarnings("default")

TEXTS = (SAMPLE / "passages.txt").read_text().splitlines()
QUERIES = (SAMPLE / "queries.txt").read_text().splitlines()


def _framework(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed")


# Module functions, since Haystack writes their names into files.
def encode_query(text):
    return load_sample("queries")[QUERIES.index(text)]


def encode_documents(texts):
    passages = load_sample("passages")
    return [passages[TEXTS.index(text)] for text in texts]


def metadata_of(index, number):
    """Every third document comes without embeddings, every third with nested lists."""
    rows = load_sample("passages")[index]
    return [{"n": number}, {"n": number, "token_embeddings": rows},
            {"n": number, "token_embeddings": rows.tolist()}][index % 3]  # fmt: skip


@pytest.fixture(params=[0, 5], ids=["query-0", "query-5"])
def asked(request):
    """A query, its answer, and the ranking of the passages by their numbers."""
    query = encode_query(QUERIES[request.param]).astype(np.float64)
    scores = [(query @ p.astype(np.float64).T).max(1).sum() for p in load_sample("passages")]
    ranking = np.argsort(scores)[::-1]
    assert ranking[0] == expected_answers()[request.param]
    return QUERIES[request.param], ranking, np.sort(scores)[::-1]


def test_langchain(client, asked):
    _framework("langchain_core")
    from langchain_core.documents import Document

    from maxsimd.integrations.langchain import MaxsimdRerank

    query, ranking, scores = asked
    documents = [
        Document(page_content=text, metadata=metadata_of(i, i)) for i, text in enumerate(TEXTS)
    ]
    compressor = MaxsimdRerank(
        client=client, encode_query=encode_query, encode_documents=encode_documents, top_k=7
    )
    for best in (
        compressor.compress_documents(documents, query),
        asyncio.run(compressor.acompress_documents(documents, query)),
    ):
        assert [d.metadata["n"] for d in best] == ranking[:7].tolist()
        assert [d.page_content for d in best] == [TEXTS[i] for i in ranking[:7]]
        np.testing.assert_allclose(
            [d.metadata["relevance_score"] for d in best], scores[:7], rtol=1e-5
        )
    assert all("relevance_score" not in d.metadata for d in documents)
    assert compressor.compress_documents([], query) == []


def test_langchain_wants_embeddings(client):
    _framework("langchain_core")
    from langchain_core.documents import Document

    from maxsimd.integrations.langchain import MaxsimdRerank

    documents = [
        Document(page_content=TEXTS[1], metadata=metadata_of(1, 1)),
        Document(page_content=TEXTS[0]),
    ]
    without = MaxsimdRerank(client=client, encode_query=encode_query)
    with pytest.raises(maxsimd.InvalidArgument, match=r"documents\[1\]: has no 'token_embeddings'"):
        without.compress_documents(documents, QUERIES[0])
    short = MaxsimdRerank(
        client=client, encode_query=encode_query, encode_documents=lambda texts: []
    )
    with pytest.raises(maxsimd.InvalidArgument, match="gave 0 embeddings for 1 texts"):
        short.compress_documents(documents, QUERIES[0])


def test_llama_index(client, asked):
    _framework("llama_index.core")
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

    from maxsimd.integrations.llama_index import MaxsimdRerank

    query, ranking, scores = asked
    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata=metadata_of(i, i)), score=0.5)
        for i, text in enumerate(TEXTS)
    ]
    reranker = MaxsimdRerank(
        client=client, encode_query=encode_query, encode_documents=encode_documents, top_n=7
    )
    for best in (
        reranker.postprocess_nodes(nodes, query_str=query),
        asyncio.run(reranker.apostprocess_nodes(nodes, QueryBundle(query))),
    ):
        assert [n.node.metadata["n"] for n in best] == ranking[:7].tolist()
        np.testing.assert_allclose([n.score for n in best], scores[:7], rtol=1e-5)
        prompts = [n.node.get_content(MetadataMode.LLM) for n in best]
        assert not any("token_embeddings" in prompt for prompt in prompts)
    assert {n.score for n in nodes} == {0.5}
    assert not any(n.node.excluded_llm_metadata_keys for n in nodes)
    assert reranker.postprocess_nodes([], query_str=query) == []
    with pytest.raises(maxsimd.InvalidArgument, match="query_bundle: is missing"):
        reranker.postprocess_nodes(nodes)


def test_haystack(target, asked):
    haystack = _framework("haystack")

    from maxsimd.integrations.haystack import MaxsimdRanker

    query, ranking, scores = asked
    documents = [
        haystack.Document(content=text, meta=metadata_of(i, i)) for i, text in enumerate(TEXTS)
    ]
    pipeline = haystack.Pipeline()
    ranker = MaxsimdRanker(encode_query, encode_documents, target=target, top_k=7)
    pipeline.add_component("ranker", ranker)
    best = pipeline.run({"ranker": {"query": query, "documents": documents}})["ranker"]["documents"]
    assert [d.meta["n"] for d in best] == ranking[:7].tolist()
    np.testing.assert_allclose([d.score for d in best], scores[:7], rtol=1e-5)
    assert all(d.score is None for d in documents)
    assert len(ranker.run(query, documents, top_k=2)["documents"]) == 2
    assert ranker.run(query, [])["documents"] == []
    ranker.close()


def test_a_haystack_component_can_be_stored(target, asked, monkeypatch):
    _framework("haystack")
    from haystack import Document
    from haystack.utils import Secret

    from maxsimd.integrations.haystack import MaxsimdRanker

    monkeypatch.setenv("MAXSIMD_TEST_TOKEN", "secret")
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", f"{__name__},maxsimd")
    ranker = MaxsimdRanker(
        encode_query,
        encode_documents,
        target=target,
        token=Secret.from_env_var("MAXSIMD_TEST_TOKEN"),
        timeout=30,
        normalize=True,
    )
    stored = json.loads(json.dumps(ranker.to_dict()))
    assert "secret" not in json.dumps(stored["init_parameters"])
    loaded = MaxsimdRanker.from_dict(stored)
    assert loaded.to_dict() == ranker.to_dict()
    query, ranking, _ = asked
    documents = [Document(content=text, meta=metadata_of(i, i)) for i, text in enumerate(TEXTS)]
    assert loaded.run(query, documents)["documents"][0].meta["n"] == ranking[0]
    loaded.close()
