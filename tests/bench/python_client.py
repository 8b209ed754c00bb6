"""What calling maxsimd from Python costs, beside the C++ client, on the same server and in turn.

    python_client.py BIN_FOLDER [--rounds=N]

1,000 documents x 100 tokens x 128 float16, already in numpy, a query of 32 tokens, one caller: the median
of each round's calls, and the median of the rounds.  The C++ client is `maxsimd-cli bench --rpc=stream`, which
sends messages that it made before it began.  Then 4 GiB from an iterator, and its peak memory.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import time
from collections.abc import Callable

import numpy as np

import maxsimd

DOCUMENTS, TOKENS, DIM = 1000, 100, 128


def start(binaries: pathlib.Path) -> tuple[subprocess.Popen[str], str]:
    """A server and its address."""
    process = subprocess.Popen(
        [str(binaries / "maxsimd"), "--listen=127.0.0.1:0", "--drain-delay=0"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    line = next(line for line in process.stderr if "listening on " in line)
    return process, line.split("listening on ")[1].strip()


def cpp_ms(binaries: pathlib.Path, target: str) -> float:
    """Median of the C++ client's calls."""
    run = subprocess.run(
        [
            str(binaries / "maxsimd-cli"), "bench", f"--target={target}", "--concurrency=1", "--rpc=stream",
            f"--documents={DOCUMENTS}", f"--document-tokens={TOKENS}", "--uniform", f"--dim={DIM}",
            "--query-tokens=32", "--element-type=float16", "--duration=2s", "--warm-up=500ms",
            "--output=json",
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(json.loads(run.stdout)["latency_ms"]["p50"])


def python_ms(call: Callable[[], object]) -> float:
    """Median of the calls of two seconds."""
    for _ in range(10):
        call()
    times = []
    end = time.perf_counter() + 2
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def measure_calls(binaries: pathlib.Path, target: str, rounds: int) -> None:
    random = np.random.default_rng(0)
    query = random.standard_normal((32, DIM)).astype(np.float16)
    documents = [random.standard_normal((TOKENS, DIM)).astype(np.float16) for _ in range(DOCUMENTS)]
    packed = maxsimd.PackedDocuments(np.concatenate(documents), [TOKENS] * DOCUMENTS)
    with maxsimd.Client(target) as client:
        ways: dict[str, Callable[[], float]] = {
            "C++": lambda: cpp_ms(binaries, target),
            "Python, list of arrays": lambda: python_ms(lambda: client.rerank(query, documents)),
            "Python, packed rows": lambda: python_ms(lambda: client.rerank(query, packed)),
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                found[name].append(way())
    base = statistics.median(found["C++"])
    for name, times in found.items():
        middle = statistics.median(times)
        print(f"{name:24} {middle:6.1f} ms  {middle / base:5.2f} times  {[round(t, 1) for t in times]}")


def measure_stream(target: str) -> None:
    """Before the calls, whose arrays would count."""
    document = np.ones((TOKENS, DIM), np.float16)
    count = (4 << 30) // document.nbytes + 1
    with maxsimd.Client(target) as client:
        begin = time.perf_counter()
        scored = sum(1 for _ in client.rerank_stream(document[:32], (document for _ in range(count))))
        seconds = time.perf_counter() - begin
    assert scored == count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = count * document.nbytes / 1e9
    print(f"rerank_stream: {size:.2f} GB in {seconds:.1f} s, {size / seconds:.2f} GB/s, peak {peak:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binaries", type=pathlib.Path, metavar="BIN_FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    server, target = start(arguments.binaries)
    try:
        measure_stream(target)
        measure_calls(arguments.binaries, target, arguments.rounds)
    finally:
        server.terminate()
        server.communicate()


if __name__ == "__main__":
    main()
