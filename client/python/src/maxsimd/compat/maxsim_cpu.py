"""The functions of maxsim-cpu, by a maxsimd server.

Use::

    from maxsimd.compat import maxsim_cpu   # was: import maxsim_cpu
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxsimd._arrays import TokenArray
from maxsimd._client import Client
from maxsimd._embeddings import as_documents, as_token_array, score_in_order
from maxsimd.compat._default import client_or_default

__all__ = ["maxsim_scores", "maxsim_scores_variable"]


def maxsim_scores(
    query: TokenArray,
    docs: npt.NDArray[Any] | Sequence[TokenArray],
    *,
    client: Client | None = None,
) -> npt.NDArray[np.float32]:
    """Scores documents for a query, as `maxsim_cpu.maxsim_scores` and `maxsim_scores_variable`.

    Args:
        query: [query_tokens, dim].
        docs: [documents, tokens, dim], or one [tokens, dim] array for each.
        client: see `maxsimd.compat`.

    Returns:
        float32 [documents], in the documents' order.

    Raises:
        InvalidArgument: a shape or type is wrong.
        MaxsimdError: see `maxsimd.Client.rerank`.
    """
    query = as_token_array(query, "query")
    return score_in_order(client_or_default(client), query, as_documents(docs, "docs"))


def maxsim_scores_variable(
    query: TokenArray, docs: Sequence[TokenArray], *, client: Client | None = None
) -> npt.NDArray[np.float32]:
    """As `maxsim_scores`, which takes documents of different lengths too."""
    return maxsim_scores(query, docs, client=client)
