"""The candidates of a call that is in memory: packed rows, or one array for each document."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maxsimd._arrays import (
    Rows,
    TokenArray,
    as_array,
    as_counts,
    as_rows,
    check_pairs,
    gather,
    on_accelerator,
)
from maxsimd._errors import InvalidArgument


@dataclass(frozen=True, eq=False)
class PackedDocuments:
    """Documents packed into one array: document i is `rows[offsets[i] : offsets[i] + lengths[i]]`.

    Attributes:
        rows: [rows, dim], float32, float16 or bfloat16, numpy or torch.
        lengths: integers [documents], tokens of each; 0 is allowed and scores -infinity.
        offsets: integers [documents], first row of each.  ``None``: the documents lie back to back
            from row 0 and fill `rows` exactly.  Given, documents may overlap, repeat, stand in any
            order and leave rows unused, so windows over one long text share their rows.
    """

    rows: TokenArray
    lengths: npt.ArrayLike
    offsets: npt.ArrayLike | None = None

    def __len__(self) -> int:
        return len(self.lengths)  # type: ignore[arg-type]


# What `documents` may be.
DocumentsLike: TypeAlias = Sequence[TokenArray] | TokenArray | PackedDocuments

_NO_OFFSETS = np.zeros(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Packed:
    """Checked `PackedDocuments`."""

    rows: Rows
    lengths: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.uint64] = field(default_factory=lambda: _NO_OFFSETS)


@dataclass(frozen=True, eq=False)
class Separate:
    """Checked arrays, one for each document."""

    arrays: list[npt.NDArray[Any]]
    lengths: npt.NDArray[np.uint32]


Documents: TypeAlias = Packed | Separate


def _wrong_rows(details: str, argument: str) -> InvalidArgument:
    return InvalidArgument(f"{argument}: {details}", argument=argument)


def check_packed(documents: PackedDocuments, query: Rows, name: str = "documents") -> Packed:
    """The documents, seen as what goes on the wire.

    Raises:
        InvalidArgument: a shape or type is wrong; its argument is `documents`, `lengths` or `offsets`.
    """
    rows = as_rows(documents.rows, f"{name}.rows", query)
    lengths = as_counts(documents.lengths, "lengths", np.uint32)
    count = len(rows.data)
    if documents.offsets is None:
        total = int(lengths.sum(dtype=np.uint64))
        if total != count:
            raise _wrong_rows(
                f"their sum is {total}, but rows are {count} and there are no offsets", "lengths"
            )
        return Packed(rows, lengths)
    offsets = as_counts(documents.offsets, "offsets", np.uint64)
    if len(offsets) != len(lengths):
        raise _wrong_rows(f"{len(offsets)} for {len(lengths)} lengths", "offsets")
    beyond = (offsets > count) | (lengths > count - np.minimum(offsets, count))
    if beyond.any():
        i = int(beyond.argmax())
        raise _wrong_rows(
            f"document {i} begins at row {offsets[i]} and has {lengths[i]} tokens, beyond the "
            f"{count} rows",
            "offsets",
        )
    return Packed(rows, lengths, offsets)


def _check_separate(documents: Sequence[TokenArray], query: Rows) -> Separate:
    dtype, dim = query.data.dtype, query.dim
    arrays: list[npt.NDArray[Any]] = list(documents)  # type: ignore[arg-type]
    plain = query.element_type != 3  # bfloat16 is never seen as it comes.
    for i, document in enumerate(arrays):
        if not (
            plain
            and type(document) is np.ndarray
            and document.dtype == dtype
            and document.ndim == 2
            and document.shape[1] == dim
            and document.flags.c_contiguous
        ):
            arrays[i] = as_rows(document, f"documents[{i}]", query).data
    lengths = np.fromiter(map(len, arrays), np.uint32, len(arrays))
    return Separate(arrays, lengths)


def check_documents(documents: DocumentsLike, query: Rows) -> Documents:
    """The documents, seen as what goes on the wire.

    Raises:
        InvalidArgument: a shape or type is wrong; the message names the document.
    """
    if isinstance(documents, PackedDocuments):
        return check_packed(documents, query)
    if isinstance(documents, list | tuple):
        if on_accelerator(documents):
            rows = gather(documents, "documents", query)
            if rows is not None:
                return check_packed(PackedDocuments(rows, [len(d) for d in documents]), query)
        return _check_separate(documents, query)
    if hasattr(documents, "shape"):
        if len(documents.shape) == 2:
            raise InvalidArgument(
                "documents: has 2 dimensions; wrap packed rows in PackedDocuments with their "
                "lengths, or pass [document] for a single document",
                argument="documents",
            )
        element_type, array = as_array(documents, "documents", ndim=3)  # type: ignore[arg-type]
        check_pairs(element_type, array.shape[2], query, "documents")
        count, tokens, dim = array.shape
        return Packed(
            Rows(element_type, array.reshape(count * tokens, dim)),
            np.full(count, tokens, np.uint32),
        )
    if isinstance(documents, Sequence) and not isinstance(documents, str | bytes):
        return check_documents(list(documents), query)
    raise InvalidArgument(
        f"documents: is {type(documents).__name__}, must be a sequence of arrays, one array "
        "[documents, tokens, dim] or PackedDocuments",
        argument="documents",
    )
