"""Compares maxsimd with the server beside this file, both driven by `maxsimd-cli bench` in turn.

    compare.py BIN_FOLDER [--rounds=N] [--seconds=S]

16 callers, 100 documents x 100 tokens x 128 float16, a query of 32 tokens; the best round of each counts.
requirements.txt is what it needs.  First it checks that both give the same scores.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import maxsimd

BASELINE = pathlib.Path(__file__).with_name("server.py")


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[str]:
    """Starts a server on a free port; gives its address."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "listening on " in line:
                yield line.split("listening on ")[1].strip()
                return
        raise RuntimeError(f"{command} ended while starting")
    finally:
        process.terminate()
        process.communicate()


def bench(binaries: pathlib.Path, target: str, seconds: int) -> dict[str, Any]:
    """What `maxsimd-cli bench` measures."""
    run = subprocess.run(
        [
            str(binaries / "maxsimd-cli"), "bench", f"--target={target}", "--concurrency=16",
            "--documents=100", "--document-tokens=100", "--uniform", "--query-tokens=32", "--dim=128",
            "--element-type=float16", f"--duration={seconds}s", "--output=json",
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    result = json.loads(run.stdout)
    assert not result["failed"], result
    return result


def scores(target: str) -> np.ndarray:
    """Of fixed random documents."""
    random = np.random.default_rng(0)
    query = random.standard_normal((32, 128)).astype(np.float16)
    documents = random.standard_normal((100, 100, 128)).astype(np.float16)  # Padding would do harm.
    with maxsimd.Client(target, timeout=60) as client:
        result = client.rerank(query, documents)
    return result.scores[np.argsort(result.indices)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binaries", type=pathlib.Path, metavar="BIN_FOLDER")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    arguments = parser.parse_args()
    servers = {
        "maxsimd": [str(arguments.binaries / "maxsimd"), "--listen=127.0.0.1:0", "--drain-delay=0"],
        "grpcio + torch, padded": [sys.executable, str(BASELINE), "--scoring=padded"],
        "grpcio + torch, packed": [sys.executable, str(BASELINE), "--scoring=packed"],
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in servers}
    exact = None
    for _ in range(arguments.rounds):
        for name, command in servers.items():
            with running(command) as target:
                exact = scores(target) if exact is None else exact
                np.testing.assert_allclose(scores(target), exact, rtol=1e-4)
                found[name].append(bench(arguments.binaries, target, arguments.seconds))
    best = {name: max(rounds, key=lambda r: r["calls_per_s"]) for name, rounds in found.items()}
    for name, result in best.items():
        latency = result["latency_ms"]
        print(
            f"{name:24} {result['calls_per_s']:8.1f} calls/s  p50 {latency['p50']:7.1f} ms  "
            f"p99 {latency['p99']:7.1f} ms"
        )
    ours, *others = best.items()
    for name, other in others:
        calls = ours[1]["calls_per_s"] / other["calls_per_s"]
        p99 = ours[1]["latency_ms"]["p99"] / other["latency_ms"]["p99"]
        print(f"maxsimd against {name}: {calls:.1f} times the calls/s, p99 {p99:.2f} times")


if __name__ == "__main__":
    main()
