"""Late chunking: a long text is encoded once, and overlapping windows over its rows are ranked.

The windows share their rows, so the text is sent once however much they overlap.  The long text is the
sample's passages one after the other.
"""

import os

import numpy as np
from sample import PASSAGES, QUERIES

import maxsimd

WINDOW, STEP, TOP_K = 48, 12, 3

tokens = [token for passage in PASSAGES for token in passage.tokens]
rows = np.concatenate([passage.rows for passage in PASSAGES])
offsets = np.arange(0, len(rows) - WINDOW + 1, STEP)
windows = maxsimd.PackedDocuments(rows, np.full(len(offsets), WINDOW), offsets)

print(f"{len(windows)} windows of {WINDOW} tokens over {len(rows)}, {rows.nbytes} bytes once instead of "
      f"{len(windows) * WINDOW * rows.shape[1] * rows.itemsize}")  # fmt: skip
with maxsimd.Client(os.environ.get("MAXSIMD_TARGET", "127.0.0.1:50051"), timeout=10) as client:
    for query in QUERIES:
        print(query.text)
        for place in client.rerank(query.rows, windows, top_k=TOP_K):
            first = offsets[place.index]
            text = " ".join(tokens[first : first + WINDOW]).replace(" ##", "")
            print(f"{place.score:7.3f}  tokens {first:4} to {first + WINDOW:4}: {text[:80]}")
