"""The examples, run as their readers would, against a real server."""

import json
import os
import subprocess
import sys

import pytest
from embeddings import expected_answers
from server import ROOT

EXAMPLES = ROOT / "client" / "python" / "examples"

_CHECK_NOTEBOOK = """
assert len(axes.patches) == len(query.tokens)
for row, frame in enumerate(axes.patches):
    assert frame.get_y() + 0.5 == row
    assert similarities[row, int(frame.get_x() + 0.5)] == similarities[row].max()
figure.savefig(os.environ["FIGURE"])
"""


def _needs(*modules):
    for module in modules:
        pytest.importorskip(module, reason=f"{module} is not installed")


@pytest.fixture
def run(target, tmp_path):
    """Runs Python with these arguments in the examples' folder and gives what it prints."""
    _needs("safetensors")
    environment = os.environ | {
        "MAXSIMD_TARGET": target, "MPLCONFIGDIR": str(tmp_path),
        "FIGURE": str(tmp_path / "figure.png"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=EXAMPLES,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    return run


def test_rerank_in_ten_lines(run):
    lines = run("rerank.py")
    assert lines[0] == "why is the sky blue during the day?"
    assert "The sky looks blue because" in lines[1]
    code = [line for line in (EXAMPLES / "rerank.py").read_text().splitlines() if line]
    assert len(code) - 1 <= 10  # But for the docstring.


def test_vector_store(run):
    _needs("qdrant_client")
    lines = run("vector_store.py")  # It fails where the store's own ranking differs.
    passages = (ROOT / "tests/data/sample/passages.txt").read_text().splitlines()
    best = [lines[i] for i in range(1, len(lines), 6)]
    for line, answer in zip(best, expected_answers(), strict=True):
        ours, store, *_ = line.split()
        assert ours == store
        assert passages[answer][:70] in line


def test_late_chunking(run):
    first, *lines = run("late_chunking.py")
    assert first.startswith("104 windows of 48 tokens over 1291, 991488 bytes")
    assert len(lines) == 8 * 4
    assert "deadlock arises" in "".join(lines[6 * 4 + 1 : 7 * 4])


def _notebook():
    return json.loads((EXAMPLES / "matches.ipynb").read_text())


def test_notebook(run, tmp_path):
    _needs("matplotlib")
    cells = ["".join(c["source"]) for c in _notebook()["cells"] if c["cell_type"] == "code"]
    headless = "import matplotlib; matplotlib.use('Agg')"
    lines = run("-c", "\n".join([headless, *cells, _CHECK_NOTEBOOK]))
    assert "Descale a kettle" in lines[0]
    assert len(lines) == 3 + 12
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_the_notebook_holds_its_output():
    shown = [
        output["output_type"] for cell in _notebook()["cells"] for output in cell.get("outputs", [])
    ]
    assert shown == ["stream", "display_data", "stream"]


def test_notebook_in_a_kernel(run, tmp_path):
    _needs("matplotlib", "nbclient", "ipykernel")
    done = tmp_path / "done.ipynb"
    run("-m", "jupyter", "execute", "matches.ipynb", f"--output={done}")
    assert done.stat().st_size > 10_000
