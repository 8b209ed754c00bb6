"""Candidates from a vector store, reranked by maxsimd and, to compare, by the store's own MaxSim.

    pip install qdrant-client safetensors

The store finds candidates by one vector for each passage, the mean of its tokens, and hands over their token
vectors.  Any store that keeps token vectors beside what it searches by can take Qdrant's place.
"""

import os

import numpy as np
from qdrant_client import QdrantClient, models
from sample import PASSAGES, QUERIES, Text

import maxsimd

CANDIDATES, TOP_K = 20, 5


def make_store() -> QdrantClient:
    """A store in memory that holds the passages."""
    store = QdrantClient(":memory:")
    dim = PASSAGES[0].rows.shape[1]
    tokens = models.VectorParams(
        size=dim,
        distance=models.Distance.DOT,
        multivector_config=models.MultiVectorConfig(
            comparator=models.MultiVectorComparator.MAX_SIM
        ),
    )
    mean = models.VectorParams(size=dim, distance=models.Distance.COSINE)
    store.create_collection("passages", vectors_config={"tokens": tokens, "mean": mean})
    points = [
        models.PointStruct(
            id=i,
            vector={"tokens": p.rows.tolist(), "mean": p.rows.mean(axis=0).tolist()},
            payload={"text": p.text},
        )
        for i, p in enumerate(PASSAGES)
    ]
    store.upsert("passages", points)
    return store


def rerank(store: QdrantClient, client: maxsimd.Client, query: Text) -> list[tuple[int, float]]:
    """The best passages' ids and scores: candidates from the store, scores from maxsimd."""
    mean = query.rows.mean(axis=0).tolist()
    found = store.query_points(
        "passages", query=mean, using="mean", limit=CANDIDATES, with_vectors=["tokens"]
    ).points
    documents = [np.array(point.vector["tokens"], np.float32) for point in found]
    ranking = client.rerank(
        query.rows.astype(np.float32), documents, ids=[point.id for point in found], top_k=TOP_K
    )
    return [(place.id, place.score) for place in ranking]


def rerank_in_store(store: QdrantClient, query: Text) -> list[tuple[int, float]]:
    """The same by the store alone."""
    mean = query.rows.mean(axis=0).tolist()
    found = store.query_points(
        "passages",
        prefetch=models.Prefetch(query=mean, using="mean", limit=CANDIDATES),
        query=query.rows.tolist(),
        using="tokens",
        limit=TOP_K,
    ).points
    return [(point.id, point.score) for point in found]


def main() -> None:
    """Ranks for each query by both; they must agree."""
    store = make_store()
    with maxsimd.Client(os.environ.get("MAXSIMD_TARGET", "127.0.0.1:50051"), timeout=10) as client:
        for query in QUERIES:
            ours, theirs = rerank(store, client, query), rerank_in_store(store, query)
            print(query.text)
            for (name, score), (other_name, other_score) in zip(ours, theirs, strict=True):
                print(f"{score:8.4f}  {other_score:8.4f}  {PASSAGES[name].text[:70]}")
                if name != other_name or abs(score - other_score) > 1e-3:
                    raise SystemExit(f"the store ranks passage {other_name} here")


if __name__ == "__main__":
    main()
