"""Reranks passages for a query, in ten lines."""

import os

from sample import PASSAGES, QUERIES

import maxsimd

query = QUERIES[2]
with maxsimd.Client(os.environ.get("MAXSIMD_TARGET", "127.0.0.1:50051"), timeout=10) as client:
    ranking = client.rerank(query.rows, [passage.rows for passage in PASSAGES], top_k=3)
print(query.text)
for place in ranking:
    print(f"{place.score:7.3f}  {PASSAGES[place.index].text}")
