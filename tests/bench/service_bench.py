#!/usr/bin/env python3
"""Benchmarks of the service; run.sh says how to call it, README.md what each line compares.

The two sides of a comparison run in turn, with the same client, payload and connections, and the
figure is the median of the ratios (or differences) of the alternations.
"""
import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from processes import Server, machine, run_client, start_client

HERE = pathlib.Path(__file__).parent
NAMES = ["receive", "small_calls", "fairness", "batching", "memory", "cpu_kernels"]


def shape(documents, tokens):
    return [f"--documents={documents}", f"--document-tokens={tokens}"]


SMALL = (10, 32)  # Documents x tokens; 32 x 128 float16 queries, so 0.1 MB.
HUNDRED = (100, 100)  # 2.6 MB.
STREAM_64_MIB = (2048, 128)


def load(payload, callers=1, rpc="unary"):
    return [*shape(*payload), f"--concurrency={callers}", f"--connections={callers}", f"--rpc={rpc}"]


class Bench:
    def __init__(self, options):
        self.options = options
        self.bin = pathlib.Path(options.bin)
        self.cli = self.bin / "maxsimd-cli"
        self.machine = machine()
        self.lines = []

    # Servers.

    def null(self, payload, *arguments):
        return Server(self.bin / "maxsimd_bench_server", "--kind=null", f"--documents={payload[0]}",
                      *arguments)

    def stub(self, *arguments):
        return Server(self.bin / "maxsimd_bench_server", "--kind=stub", *arguments)

    def counted(self, *arguments):
        """maxsimd with counters."""
        return Server(self.bin / "maxsimd_bench_server", "--kind=maxsimd",
                      f"--backend={self.options.backend}", *arguments)

    def maxsimd(self, backend=None, *arguments):
        return Server(self.bin / "maxsimd", f"--backend={backend or self.options.backend}",
                      "--drain-delay=0", *arguments)

    # Measuring.

    def run(self, server, arguments):
        seconds = self.options.seconds
        # In a very short run a call that starts in the warm-up may be the only one.
        warm_up = seconds / 3 if seconds >= 0.3 else 0
        return run_client(self.cli, server, *arguments, f"--duration={seconds}s",
                          f"--warm-up={warm_up}s")

    def alternate(self, sides, measure):
        """sides: name -> what `measure` takes.  name -> its results, in turn."""
        results = {name: [] for name in sides}
        for _ in range(self.options.alternations):
            for name, side in sides.items():
                results[name].append(measure(side))
        return results

    def compare(self, servers, arguments):
        return self.alternate(servers, lambda server: self.run(server, arguments))

    def report(self, name, figure, target, unit, detail):
        line = {"name": name, "figure": round(figure, 3), "target": target, "unit": unit,
                "machine": self.machine}
        self.lines.append(line)
        verdict = "" if meets(figure, target) else "MISSED"
        print(f"{name:<64} {line['figure']:>10g} {target:>8} {unit:<6} {verdict:<7} {detail}",
              flush=True)

    def report_rate(self, name, results, key, target, scale, unit, reference="null"):
        """maxsimd's rate as a part of the reference's."""
        figure = statistics.median([ours[key] / its[key] for ours, its in
                                    zip(results["maxsimd"], results[reference])])
        detail = " ".join(f"{side} {median(runs, key) / scale:.4g}" for side, runs in results.items())
        self.report(name, figure, target, "ratio", f"{detail} {unit}")


def median(runs, key):
    return statistics.median([run[key] for run in runs])


def p50_us(run):
    return run["latency_ms"]["p50"] * 1000


def p99_us(run):
    return run["latency_ms"]["p99"] * 1000


def meets(figure, target):
    comparison, bound = target.split()
    return figure >= float(bound) if comparison == ">=" else figure <= float(bound)


def receive(bench):
    def compare(name, payload, callers, rpc, ours, target):
        with bench.null(payload) as null, bench.null(payload, "--copy") as copying, \
                bench.null(payload, "--plain") as plain, ours as maxsimd:
            results = bench.compare({"null": null, "copying": copying, "plain": plain,
                                     "maxsimd": maxsimd}, load(payload, callers, rpc))
        bench.report_rate(name, results, "bytes_per_s", target, 1e9, "GB/s")
        bench.report_rate(f"{name}, of a plain null", results, "bytes_per_s", target, 1e9,
                          "GB/s", "plain")

    for callers in (1, 4):
        compare(f"stream of 64 MiB, {callers} connections, discarding", STREAM_64_MIB, callers,
                "stream", bench.stub(), ">= 0.9")
    for megabytes, documents in ((4, 122), (16, 488)):
        compare(f"unary of {megabytes} MB, discarding", (documents, 128), 1, "unary", bench.stub(),
                ">= 0.9")
    if bench.options.backend == "cuda":
        compare("stream of 64 MiB, 8 connections, CUDA", STREAM_64_MIB, 8, "stream",
                bench.maxsimd("cuda"), ">= 0.8")
        return
    for callers in (1, 4):
        compare(f"stream of 64 MiB, {callers} connections, CPU backend", STREAM_64_MIB, callers,
                "stream", bench.maxsimd("cpu"), ">= 0.7")


def scoring_us(bench):
    """What the kernel benchmark says of the call of 100 documents, with the best instruction set."""
    result = subprocess.run(
        [bench.bin / "maxsimd_kernel_bench", "--benchmark_format=json",
         f"--benchmark_min_time={min(0.3, bench.options.seconds)}",
         "--benchmark_filter=^hundred_passages/float16/(avx|amx|neon)"], capture_output=True, check=True, text=True)
    return min(run["real_time"] for run in json.loads(result.stdout)["benchmarks"]) * 1000


def small_calls(bench):
    with bench.null(SMALL) as null, bench.maxsimd() as maxsimd:
        results = bench.compare({"null": null, "maxsimd": maxsimd}, load(SMALL))
        report_p50_above(bench, "lone call of 10 x 32 tokens: p50 over null's", results, 1, 0, "<= 120")
    with bench.null(HUNDRED, "--copy") as null, bench.maxsimd() as maxsimd:
        results = bench.compare({"null": null, "maxsimd": maxsimd}, load(HUNDRED))
    if bench.options.backend == "cuda":
        report_p50_above(bench, "lone call of 100 x 100 tokens: p50 over 1.15 null's", results, 1.15, 0,
                         "<= 60")
        hundred_against_cpu(bench)
    else:
        report_p50_above(bench, "lone call of 100 x 100 tokens: p50 over 1.15 null's + scoring",
                         results, 1.15, scoring_us(bench), "<= 100")
    for payload, name in ((SMALL, "10 x 32"), (HUNDRED, "100 x 100")):
        with bench.null(payload) as null, bench.maxsimd() as maxsimd:
            results = bench.compare({"null": null, "maxsimd": maxsimd}, load(payload, 64))
        bench.report_rate(f"64 clients, {name} tokens", results, "calls_per_s", ">= 0.75", 1, "calls/s")


def report_p50_above(bench, name, results, factor, allowed_us, target):
    figure = statistics.median(
        [p50_us(ours) - factor * p50_us(null) - allowed_us
         for ours, null in zip(results["maxsimd"], results["null"])])
    detail = " ".join(f"{side} {statistics.median(map(p50_us, runs)):.0f}"
                      for side, runs in results.items())
    scoring = f" scoring {allowed_us:.0f}" if allowed_us else ""
    bench.report(name, figure, target, "us", detail + scoring + " us")


def hundred_against_cpu(bench):
    with bench.maxsimd("cpu") as cpu, bench.maxsimd("cuda") as cuda:
        results = bench.compare({"cpu": cpu, "cuda": cuda}, load(HUNDRED))
    figure = statistics.median(
        [p50_us(cuda) / p50_us(cpu) for cuda, cpu in zip(results["cuda"], results["cpu"])])
    detail = " ".join(f"{side} {statistics.median(map(p50_us, runs)):.0f}"
                      for side, runs in results.items())
    bench.report("lone call of 100 x 100 tokens: p50, CUDA of CPU", figure, "<= 1", "ratio",
                 detail + " us")


def fairness(bench):
    """One server; the stream's client is stopped while the small calls run alone."""
    chunks = [*load((32768, 128), 1, "stream"), "--duration=10m", "--warm-up=0", "--timeout=10m"]
    if bench.options.seconds < 0.5:
        chunks[:2] = shape(*STREAM_64_MIB)
    with bench.maxsimd() as server:
        stream = start_client(bench.cli, server, *chunks)
        try:
            before = server.processor_ticks()
            while server.processor_ticks() - before < 20:  # It makes its gigabyte first.
                if stream.poll() is not None:
                    raise RuntimeError(stream.stderr.read())
                time.sleep(0.05)

            def measure(signal_to_stream):
                stream.send_signal(signal_to_stream)
                return bench.run(server, load(SMALL))

            results = bench.alternate({"alone": signal.SIGSTOP, "beside": signal.SIGCONT}, measure)
        finally:
            stream.kill()
            stream.communicate()
    figure = statistics.median(
        [p99_us(beside) / p99_us(alone) for beside, alone in zip(results["beside"], results["alone"])])
    detail = " ".join(f"{side} {statistics.median(map(p99_us, runs)):.0f}"
                      for side, runs in results.items())
    bench.report("small calls beside a 1 GiB stream: p99", figure, "<= 4", "ratio", detail + " us")


def batching(bench):
    # All calls have as many tokens as a batch may then have, so that each rides alone.
    off = f"--max-batch-tokens={SMALL[0] * SMALL[1]}"
    arguments = load(SMALL, 64)
    if bench.options.backend == "cuda":
        sides = {"on": bench.counted(), "off": bench.counted(off)}
        name, target = "CUDA", ">= 1"
    else:
        sides = {"on": bench.stub("--batch-time=200us"), "off": bench.stub("--batch-time=200us", off)}
        name, target = "200 us a batch", ">= 3"
    with sides["on"] as on, sides["off"] as without:
        results = bench.compare({"on": on, "off": without}, arguments)

    def compare(what, value, bound, unit):
        pairs = zip(results["on"], results["off"])
        detail = " ".join(f"{side} {statistics.median(map(value, runs)):.0f}"
                          for side, runs in results.items())
        bench.report(f"batching on against off, {name}: {what}",
                     statistics.median([value(a) / value(b) for a, b in pairs]), bound, "ratio",
                     f"{detail} {unit}")

    compare("calls/s", lambda run: run["calls_per_s"], target, "calls/s")
    compare("p99", p99_us, "<= 1", "us")
    calls = {side: server.counters["batches"] / server.counters["documents"] * SMALL[0]
             for side, server in sides.items()}
    bench.report(f"batching on against off, {name}: batches per call", calls["on"] / calls["off"],
                 "<= 1", "ratio", f"on {calls['on']:.3f} off {calls['off']:.3f}")


def memory(bench):
    calls = 1000 if bench.options.seconds >= 0.5 else 60
    for name, payload, rpc in (("0.1 MB", SMALL, "unary"), ("1 MB", (31, 128), "unary"),
                               ("4 MB", (122, 128), "unary"), ("16 MB", (488, 128), "unary"),
                               ("16 MB in chunks", (488, 128), "stream")):
        arguments = [*load(payload, 4, rpc), "--warm-up=0"]
        with bench.maxsimd() as server:
            run_client(bench.cli, server, *arguments, "--calls=50")
            first = server.resident_mib()
            run_client(bench.cli, server, *arguments, f"--calls={calls}")
            last = server.resident_mib()
        bench.report(f"resident after {calls} calls of {name}, of after 50", last / first, "<= 1.05",
                     "ratio", f"{first:.0f} then {last:.0f} MiB")


def cpu_kernels(bench):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([sys.executable, HERE / "cpu_peers.py", f"--json={file.name}"], check=True)
        bench.lines += json.loads(pathlib.Path(file.name).read_text())


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*NAMES, "all"])
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--json", help="file to write the figures to")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--alternations", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    bench = Bench(options)
    print(bench.machine)
    for name in NAMES if options.name == "all" else [options.name]:
        globals()[name](bench)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(bench.lines, indent=2) + "\n")


if __name__ == "__main__":
    main()
