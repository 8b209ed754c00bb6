"""The embeddings that the examples rerank: those of tests/data/sample/, by a real transformer."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

FOLDER = Path(__file__).resolve().parents[3] / "tests" / "data" / "sample"


class Text(NamedTuple):
    """A text, its tokens, and one row for each of them."""

    text: str
    tokens: list[str]
    rows: npt.NDArray[Any]  # float16 [tokens, 384]


def load(name: str, token_file: str) -> list[Text]:
    """The texts of NAME.txt with the rows of NAME.safetensors."""
    tensors = load_file(FOLDER / f"{name}.safetensors")
    rows = np.split(tensors["tokens"], np.cumsum(tensors["lengths"])[:-1])
    texts = (FOLDER / f"{name}.txt").read_text().splitlines()
    tokens = json.loads((FOLDER / token_file).read_text())
    return [Text(*text) for text in zip(texts, tokens, rows, strict=True)]


QUERIES = load("queries", "query_tokens.json")
PASSAGES = load("passages", "passage_tokens.json")
