"""What callers pass as embeddings, checked and seen as rows of bytes.

numpy arrays are seen in place where they are C-contiguous and little-endian, else copied once.  torch
tensors are recognised without importing torch, ml_dtypes' bfloat16 without importing ml_dtypes.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from maxsimd._errors import InvalidArgument

FLOAT32, FLOAT16, BFLOAT16 = 1, 2, 3  # Of the contract's ElementType.
ELEMENT_TYPE_NAMES = {FLOAT32: "float32", FLOAT16: "float16", BFLOAT16: "bfloat16"}

# How rows are seen: bfloat16 by its bits, which is what numpy can hand to others.
_STORED: dict[int, np.dtype[Any]] = {
    FLOAT32: np.dtype("<f4"),
    FLOAT16: np.dtype("<f2"),
    BFLOAT16: np.dtype("<u2"),
}

_MAX_UINT32 = 2**32 - 1


class _Tensor(Protocol):
    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...


# A numpy array or a torch tensor.
TokenArray: TypeAlias = npt.NDArray[Any] | _Tensor


class Rows(NamedTuple):
    """A [tokens, dim] matrix in C order and little-endian."""

    element_type: int
    data: npt.NDArray[Any]

    @property
    def dim(self) -> int:
        return int(self.data.shape[1])


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _unsupported(name: str, found: object) -> InvalidArgument:
    return InvalidArgument(
        f"{name}: {found} is not supported; use float32, float16 or bfloat16", argument=root(name)
    )


def root(name: str) -> str:
    """The argument that a name like `documents[3]` belongs to."""
    return name.partition("[")[0].partition(".")[0]


def _of_tensor(tensor: Any, name: str) -> tuple[int, npt.NDArray[Any]]:
    torch = sys.modules["torch"]
    element_type = {
        torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16,
    }.get(tensor.dtype)  # fmt: skip
    if element_type is None:
        raise _unsupported(name, tensor.dtype)
    tensor = tensor.detach().cpu().contiguous()
    if element_type == BFLOAT16:
        tensor = tensor.view(torch.int16)
    return element_type, tensor.numpy().view(_STORED[element_type])


def _of_array(array: npt.NDArray[Any], name: str) -> tuple[int, npt.NDArray[Any]]:
    if array.dtype.name == "float32":
        element_type = FLOAT32
    elif array.dtype.name == "float16":
        element_type = FLOAT16
    elif array.dtype.name == "bfloat16" and array.dtype.itemsize == 2:
        return BFLOAT16, np.ascontiguousarray(array).view(_STORED[BFLOAT16])
    else:
        raise _unsupported(name, array.dtype)
    return element_type, np.ascontiguousarray(array, dtype=_STORED[element_type])


def as_array(value: TokenArray, name: str, ndim: int = 2) -> tuple[int, npt.NDArray[Any]]:
    """Element type and contents of an argument with so many dimensions.

    Raises:
        InvalidArgument: it is no array, or of another type or number of dimensions.
    """
    if isinstance(value, np.ndarray):
        found = value.ndim
    elif _is_tensor(value):
        found = len(value.shape)
    else:
        raise InvalidArgument(
            f"{name}: is {type(value).__name__}, must be a numpy array or a torch tensor",
            argument=root(name),
        )
    if found != ndim:
        shape = "[tokens, dim]" if ndim == 2 else "[documents, tokens, dim]"
        raise InvalidArgument(
            f"{name}: has {found} dimensions, must have {ndim}: {shape}", argument=root(name)
        )
    return _of_array(value, name) if isinstance(value, np.ndarray) else _of_tensor(value, name)


def as_rows(value: TokenArray, name: str, like: Rows | None = None) -> Rows:
    """The argument as rows; with `like` they must have its type and dim."""
    rows = Rows(*as_array(value, name))
    if rows.dim == 0:
        raise InvalidArgument(f"{name}: dim is 0, must be at least 1", argument=root(name))
    if like is not None:
        check_pairs(rows.element_type, rows.dim, like, name)
    return rows


def check_pairs(element_type: int, dim: int, query: Rows, name: str) -> None:
    """Raises InvalidArgument unless documents of this type and dim go with the query."""
    if element_type != query.element_type:
        raise InvalidArgument(
            f"{name}: is {ELEMENT_TYPE_NAMES[element_type]}, but query is "
            f"{ELEMENT_TYPE_NAMES[query.element_type]}; convert one of them",
            argument=root(name),
        )
    if dim != query.dim:
        raise InvalidArgument(
            f"{name}: dim is {dim}, but the query's is {query.dim}", argument=root(name)
        )


def as_counts(value: npt.ArrayLike, name: str, dtype: type[np.unsignedinteger[Any]]) -> Any:
    """A one-dimensional array of integers that fit `dtype`."""
    if _is_tensor(value):
        value = value.detach().cpu().numpy()  # type: ignore[union-attr]
    array = np.asarray(value)
    if array.ndim != 1:
        raise InvalidArgument(f"{name}: has {array.ndim} dimensions, must have 1", argument=name)
    if array.size == 0:
        return np.zeros(0, dtype)
    if not np.issubdtype(array.dtype, np.integer):
        raise InvalidArgument(f"{name}: is {array.dtype}, must be integers", argument=name)
    if array.min() < 0 or array.max() > np.iinfo(dtype).max:
        raise InvalidArgument(f"{name}: must lie in 0 to {np.iinfo(dtype).max}", argument=name)
    return np.ascontiguousarray(array, dtype)


def as_weights(value: npt.ArrayLike | None, query_tokens: int) -> npt.NDArray[np.float32]:
    """`token_weights` as float32, empty for none."""
    if value is None:
        return np.zeros(0, np.float32)
    if _is_tensor(value):
        value = value.detach().cpu().float().numpy()  # type: ignore[union-attr]
    try:
        weights = np.asarray(value, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"token_weights: {error}", argument="token_weights") from None
    if weights.shape != (query_tokens,):
        raise InvalidArgument(
            f"token_weights: has shape {list(weights.shape)}, must be one for each of the "
            f"query's {query_tokens} tokens",
            argument="token_weights",
        )
    return weights


def on_accelerator(documents: Sequence[Any]) -> bool:
    """Whether these are tensors that aren't in host memory."""
    return bool(documents) and _is_tensor(documents[0]) and documents[0].device.type != "cpu"


def gather(documents: Iterable[Any], name: str, query: Rows) -> Any:
    """One tensor of all rows, gathered where they are: one transfer instead of one for each."""
    torch = sys.modules["torch"]
    documents = list(documents)
    for i, document in enumerate(documents):
        if not _is_tensor(document) or document.ndim != 2 or document.dtype != documents[0].dtype:
            as_rows(document, f"{name}[{i}]", query)  # Says what is wrong, if anything is.
            return None
        if document.shape[1] != query.dim or document.device != documents[0].device:
            as_rows(document, f"{name}[{i}]", query)
            return None
    return torch.cat(documents)
