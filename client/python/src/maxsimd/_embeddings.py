"""Embeddings as other libraries hold them, made fit for a call: one type, no nested lists."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from maxsimd._arrays import TokenArray
from maxsimd._client import Client
from maxsimd._errors import InvalidArgument

_T = TypeVar("_T")

# Calls of one batch of queries in flight: enough to keep the server busy while this side packs.
_CONCURRENT_CALLS = 4


def is_tensor(value: object) -> bool:
    """Whether it is a torch tensor; doesn't import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_token_array(value: Any, name: str) -> TokenArray:
    """A numpy array or tensor as it is; rows in lists, or arrays in a list, as one float32 array.

    Raises:
        InvalidArgument: they are no numbers, or the rows differ in length.
    """
    if isinstance(value, np.ndarray) or is_tensor(value):
        return value  # type: ignore[no-any-return]
    try:
        if len(value) > 0 and is_tensor(value[0]):
            return sys.modules["torch"].stack(list(value))  # type: ignore[no-any-return]
        return np.asarray(value, np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        argument = name.partition("[")[0]
        raise InvalidArgument(f"{name}: {error}", argument=argument) from None


def as_documents(value: Any, name: str) -> TokenArray | list[TokenArray]:
    """One array [documents, tokens, dim] as it is, else a list of arrays.

    Raises:
        InvalidArgument: see `as_token_array`.
    """
    if getattr(value, "ndim", 0) == 3:
        return value  # type: ignore[no-any-return]
    return [as_token_array(document, name) for document in value]


def _type_name(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _as_float32(array: Any) -> TokenArray:
    if is_tensor(array):
        return array.float()  # type: ignore[no-any-return]
    return array.astype(np.float32, copy=False)  # type: ignore[no-any-return]


def of_one_type(
    query: TokenArray, documents: TokenArray | list[TokenArray]
) -> tuple[TokenArray, TokenArray | list[TokenArray]]:
    """Both as they are where all have one type that the server takes, else as float32.

    float16 and bfloat16 values are float32's too; float64 is rounded.
    """
    listed = documents if isinstance(documents, list) else [documents]
    types = {_type_name(array) for array in (query, *listed)}
    if len(types) == 1 and types <= {"float32", "float16", "bfloat16"}:
        return query, documents
    if not isinstance(documents, list):
        return _as_float32(query), _as_float32(documents)
    return _as_float32(query), [_as_float32(document) for document in documents]


def score_in_order(
    client: Client, query: TokenArray, documents: TokenArray | list[TokenArray]
) -> npt.NDArray[np.float32]:
    """float32 [documents]: the scores in the documents' order."""
    result = client.rerank(*of_one_type(query, documents))
    scores = np.empty(len(result), np.float32)
    scores[result.indices] = result.scores
    return scores


def map_concurrently(call: Callable[..., _T], *arguments: Sequence[Any]) -> list[_T]:
    """As `list(map(call, *arguments))`, a few at a time."""
    if len(arguments[0]) == 1:
        return [call(*(argument[0] for argument in arguments))]
    with ThreadPoolExecutor(_CONCURRENT_CALLS) as threads:
        return list(threads.map(call, *arguments))
