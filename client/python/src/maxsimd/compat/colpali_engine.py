"""`score_multi_vector` of colpali-engine's processors, by a maxsimd server.

Use::

    from maxsimd.compat.colpali_engine import score_multi_vector
    scores = score_multi_vector(qs, ps)   # was: processor.score_multi_vector(qs, ps)
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from maxsimd._client import Client
from maxsimd._embeddings import (
    as_documents,
    as_token_array,
    is_tensor,
    map_concurrently,
    score_in_order,
)
from maxsimd.compat._default import client_or_default

__all__ = ["score_multi_vector"]


def score_multi_vector(
    qs: Sequence[Any] | Any,
    ps: Sequence[Any] | Any,
    batch_size: int = 128,
    device: Any = None,
    *,
    client: Client | None = None,
) -> Any:
    """Scores all passages for each query, as colpali-engine's `score_multi_vector`.

    Args:
        qs: the queries' embeddings, one [query_tokens, dim] array or tensor for each; or one array
            [queries, query_tokens, dim].  Rows of zeros, as padding has them, add nothing to a score.
        ps: the passages', likewise.  Rows of zeros count as tokens: the similarity to them is 0.
        batch_size: not used; the client cuts the work to the server's limits.
        device: not used; the server has its own.
        client: see `maxsimd.compat`.

    Returns:
        float32 [queries, passages]: a torch tensor on the CPU where the queries are tensors, else a numpy
        array.

    Raises:
        ValueError: there are no queries or no passages.
        InvalidArgument: a shape or type is wrong; it is a ValueError too.
        MaxsimdError: see `maxsimd.Client.rerank`.
    """
    del batch_size, device
    if len(qs) == 0:
        raise ValueError("No queries provided")
    if len(ps) == 0:
        raise ValueError("No passages provided")
    passages = as_documents(ps, "ps")
    queries = [as_token_array(query, "qs") for query in qs]
    score = partial(score_in_order, client_or_default(client), documents=passages)
    scores = np.stack(map_concurrently(score, queries))
    return sys.modules["torch"].from_numpy(scores) if is_tensor(queries[0]) else scores
