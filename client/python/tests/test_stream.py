"""`rerank_stream` and the iterator that it is given."""

import asyncio
import subprocess
import sys
import threading

import numpy as np
import pytest

import maxsimd
from maxsimd import _async_feed, _feed, _stream

QUERY = np.ones((2, 64), np.float32)
DOCUMENT = np.ones((16, 64), np.float32)  # 4 KiB


@pytest.fixture
def _small_window(monkeypatch):
    """16 KiB messages, 64 KiB in flight: 4 documents and 16."""
    monkeypatch.setattr(_stream, "TARGET_CHUNK_BYTES", 17_000)
    monkeypatch.setattr(_feed, "WINDOW_BYTES", 65_000)
    monkeypatch.setattr(_async_feed, "WINDOW_BYTES", 65_000)


@pytest.mark.usefixtures("_small_window")
def test_few_documents_are_ahead_of_their_results(client):
    pulled = 0

    def documents():
        nonlocal pulled
        for _ in range(4000):
            pulled += 1
            yield DOCUMENT

    most = 0
    for scored, _ in enumerate(client.rerank_stream(QUERY, documents())):
        most = max(most, pulled - scored)
    assert scored == 3999
    # What is in flight, what was taken for the next message, and a response's worth of results.
    assert most <= 16 + 4 + 4 + 4 * 16


@pytest.mark.usefixtures("_small_window")
def test_few_documents_are_ahead_of_their_results_async(target):
    pulled = 0

    async def documents():
        nonlocal pulled
        for _ in range(4000):
            pulled += 1
            yield DOCUMENT

    async def run():
        most = scored = 0
        async with maxsimd.AsyncClient(target) as client:
            async for _ in client.rerank_stream(QUERY, documents()):
                most = max(most, pulled - scored)
                scored += 1
        assert scored == 4000
        assert most <= 16 + 4 + 4 + 4 * 16

    asyncio.run(run())


def test_memory_may_be_used_again(calls):
    buffer = np.empty((1, 64), np.float32)

    def documents():
        for value in range(100):
            buffer[:] = value
            yield buffer

    scores = {r.index: r.score for r in calls.rerank_stream(QUERY, documents())}
    assert scores == {value: 2.0 * 64 * value for value in range(100)}


def test_what_the_iterator_raises_is_raised(calls):
    def documents():
        yield DOCUMENT
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        calls.rerank_stream(QUERY, documents())


@pytest.mark.usefixtures("_small_window")
def test_leaving_early_lets_the_iterator_go(client):
    ended = threading.Event()

    def documents():
        try:
            while True:
                yield DOCUMENT
        finally:
            ended.set()

    results = client.rerank_stream(QUERY, documents())
    next(results)
    results.close()
    del results
    assert ended.wait(60)


@pytest.mark.usefixtures("_small_window")
def test_leaving_early_lets_the_iterator_go_async(target):
    ended = []

    async def documents():
        try:
            while True:
                yield DOCUMENT
        finally:
            ended.append(True)

    async def run():
        async with maxsimd.AsyncClient(target) as client:
            results = client.rerank_stream(QUERY, documents())
            await anext(results)
            await results.aclose()
            assert ended

    asyncio.run(run())


def test_top_k_of_a_stream_is_the_ranking(calls):
    random = np.random.default_rng(5)
    documents = [
        random.integers(0, 2, (3, 64)).astype(np.float32) for _ in range(300)
    ]  # With ties.
    result = calls.rerank(QUERY, documents, top_k=20)
    streamed = calls.rerank_stream(QUERY, iter(documents), top_k=20)
    assert [r.index for r in streamed] == result.indices.tolist()
    assert [r.score for r in streamed] == result.scores.tolist()


PEAK = """
import re, sys, numpy, maxsimd
document = numpy.ones((1024, 512), numpy.float32)  # 2 MiB
with maxsimd.Client(sys.argv[1]) as client:
    count = sum(1 for _ in client.rerank_stream(document[:1], (document for _ in range(512))))
# Not getrusage's maximum, which begins with that of the process that started this one.
print(count, re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


def test_peak_memory_of_a_gibibyte(target):
    run = subprocess.run(
        [sys.executable, "-c", PEAK, target], capture_output=True, text=True, check=True
    )
    count, kib = map(int, run.stdout.split())
    assert count == 512
    assert kib < 300 * 1024
