#!/usr/bin/env python3
"""Times maxsimd's CPU kernels and other programs in turn on the same data, and prints the ratios.

    python3 cpu_peers.py [--program build/release/bin/maxsimd_score_files] [--threads 1,2] [--json FILE]

Peers: `maxsim-cpu` (its uniform and its ragged entry), PyTorch (padded documents, packed rows with a
segmented maximum, and padded bfloat16) and NumPy (packed rows, maximum.reduceat); `sgemm`, the faster of
NumPy's OpenBLAS and PyTorch's MKL on 2048 x 2048 matrices, is the ceiling.  Padding and lists of views are
made before the clock starts.  What isn't installed goes into a virtual environment under build/; with
--here nothing is installed, and peers that can't be imported are left out.

Every round runs each entry once, for at least 30 ms, so that all of them see the same machine; a figure is
the median over the rounds of the ratio within a round.  Rates count two operations for each multiply-add
of the true lengths.  error/bound is the largest |score - float64| over all documents as a part of
1e-5 * sum_i max_j sum_k |q_ik * d_jk|, the inputs being those of the entry's own element type.
"""
import argparse, importlib.util, json, math, os, pathlib, platform, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGES = {"numpy": "numpy", "torch": "torch", "maxsim_cpu": "maxsim-cpu"}
UNIFORM, RAGGED = "passage_uniform", "passage_ragged"
GEMM = 2048


def ensure_packages():
    """Runs this script again in a virtual environment of its own where a package is missing."""
    if all(importlib.util.find_spec(module) for module in PACKAGES):
        return
    python = ROOT / "build" / "cpu_peers" / "bin" / "python"
    if pathlib.Path(sys.prefix) == python.parent.parent:
        sys.exit("cpu_peers.py: a peer could not be installed; --here measures what there is")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES.values()], check=True)
    os.execv(python, [python, *sys.argv])


# --- data -----------------------------------------------------------------------------------------------

def read_shape(name):
    tokens, dim, *lengths = map(int, (HERE / "shapes" / f"{name}.txt").read_text().split())
    return tokens, dim, lengths


def flops(name):
    tokens, dim, lengths = read_shape(name)
    return 2.0 * tokens * dim * sum(lengths)


def unit_rows(rng, rows, dim):
    import numpy as np
    values = rng.standard_normal((rows, dim), dtype=np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def to_type(values, element_type):
    """The stored form and the float32 values that it stands for."""
    import numpy as np
    if element_type == "float32":
        return values, values
    if element_type == "float16":
        stored = values.astype(np.float16)
        return stored, stored.astype(np.float32)
    bits = values.view(np.uint32)
    stored = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)  # To nearest even.
    return stored, (stored.astype(np.uint32) << 16).view(np.float32)


def exact_scores(query, rows, lengths):
    """Scores and bounds in float64."""
    import numpy as np
    starts = np.cumsum([0, *lengths[:-1]])
    transposed = query.T.astype(np.float64)
    best, size = [], []
    for start, length in zip(starts, lengths):
        document = rows[start:start + length].astype(np.float64)
        best.append((document @ transposed).max(0).sum())
        size.append((abs(document) @ abs(transposed)).max(0).sum())
    return np.array(best), 1e-5 * np.array(size)


def make_data(folder, shapes):
    import numpy as np
    rng, exact = np.random.default_rng(1), {}
    for shape in shapes:
        tokens, dim, lengths = read_shape(shape)
        query, rows = unit_rows(rng, tokens, dim), unit_rows(rng, sum(lengths), dim)
        for element_type in ("float32", "float16", "bfloat16"):
            stored_query, query_values = to_type(query, element_type)
            stored_rows, rows_values = to_type(rows, element_type)
            stored_query.tofile(folder / f"{shape}.{element_type}.query")
            stored_rows.tofile(folder / f"{shape}.{element_type}.rows")
            exact[shape, element_type] = exact_scores(query_values, rows_values, lengths)
    return exact


# --- the worker: all peers with one number of threads --------------------------------------------------

def load(folder, shape):
    import numpy as np
    _, dim, lengths = read_shape(shape)
    read = lambda part: np.fromfile(folder / f"{shape}.float32.{part}", np.float32).reshape(-1, dim)
    return read("query"), read("rows"), lengths


def numpy_peers(query, rows, lengths):
    import numpy as np
    starts = np.cumsum([0, *lengths[:-1]])
    yield "numpy", lambda: np.maximum.reduceat(rows @ query.T, starts, axis=0).sum(1)


def maxsim_cpu_peers(query, rows, lengths):
    import maxsim_cpu
    import numpy as np
    documents = np.split(rows, np.cumsum(lengths)[:-1])
    if len(set(lengths)) == 1:
        stacked = rows.reshape(len(lengths), lengths[0], -1)
        yield "maxsim_cpu", lambda: maxsim_cpu.maxsim_scores(query, stacked)
    else:
        yield "maxsim_cpu", lambda: maxsim_cpu.maxsim_scores_variable(query, documents)


def torch_peers(query, rows, lengths):
    import torch
    q, packed, counts = torch.from_numpy(query), torch.from_numpy(rows), torch.tensor(lengths)
    padded = torch.nn.utils.rnn.pad_sequence(packed.split(lengths), batch_first=True)
    absent = torch.arange(padded.shape[1])[None] >= counts[:, None]
    bias = torch.zeros(absent.shape).masked_fill_(absent, -math.inf)[:, :, None]

    def score_padded(q, padded, bias):
        similarity = torch.matmul(padded, q.T)
        return (similarity if bias is None else similarity.add_(bias)).amax(1).float().sum(1)

    bias = bias if bool(absent.any()) else None
    yield "torch_padded", lambda: score_padded(q, padded, bias)
    yield "torch_packed", lambda: torch.segment_reduce(packed @ q.T, "max", lengths=counts, axis=0).sum(1)
    low = (q.bfloat16(), padded.bfloat16(), None if bias is None else bias.bfloat16())
    yield "torch_bfloat16", lambda: score_padded(*low)


def gemm_peers():
    import numpy as np
    a = np.random.default_rng(2).standard_normal((GEMM, GEMM), dtype=np.float32)
    yield "sgemm_openblas", lambda: a @ a
    try:
        import torch
        b = torch.from_numpy(a)
        yield "sgemm_mkl", lambda: b @ b
    except ImportError:
        pass


def work(folder, threads, shapes):
    """Answers each line `ENTRY SHAPE CALLS` with the mean seconds, and with the scores."""
    try:
        import torch
        torch.set_num_threads(threads)
    except ImportError:
        pass
    entries = {}
    for shape in shapes:
        data = load(folder, shape)
        for peers in (numpy_peers, maxsim_cpu_peers, torch_peers):
            try:
                entries.update({(name, shape): call for name, call in peers(*data)})
            except ImportError:
                pass
    entries.update({(name, "-"): call for name, call in gemm_peers()})
    print(" ".join(f"{name}/{shape}" for name, shape in entries), flush=True)
    for line in sys.stdin:
        name, shape, calls = line.split()
        start = time.perf_counter()
        for _ in range(int(calls)):
            result = entries[name, shape]()
        seconds = (time.perf_counter() - start) / int(calls)
        scores = [] if shape == "-" else [float(score) for score in result]
        print(seconds, *scores, flush=True)


# --- the rounds ----------------------------------------------------------------------------------------

class Entry:
    """One program on one shape with one number of threads."""

    def __init__(self, process, name, shape, element_type, threads, request):
        self.process, self.request, self.calls, self.rates = process, request, 1, []
        self.name, self.shape, self.element_type, self.threads = name, shape, element_type, threads
        self.work = 2.0 * GEMM**3 if shape == "-" else flops(shape)

    def run(self):
        self.process.stdin.write(self.request.format(self.calls) + "\n")
        self.process.stdin.flush()
        seconds, *self.scores = map(float, self.process.stdout.readline().split())
        return seconds

    def warm_up(self):
        self.run()
        self.calls = max(1, math.ceil(0.03 / self.run()))


def start(command, threads):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    process = subprocess.Popen([str(part) for part in command], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=os.environ | {n: str(threads) for n in names})
    return process, process.stdout.readline().split()


def make_entries(program, folder, shapes, threads_list):
    entries = []
    for shape in shapes:
        for element_type in ("float32", "float16", "bfloat16"):
            stem = folder / f"{shape}.{element_type}"
            process, isas = start([program, HERE / "shapes" / f"{shape}.txt", element_type,
                                   f"{stem}.query", f"{stem}.rows"], max(threads_list))
            tried = isas[:1]
            tried += [isa for isa in ("avx512", "avx512_bf16") if isa in isas[1:] and element_type != "float32"]
            entries += [Entry(process, f"maxsimd {isa}", shape, element_type, threads, f"{isa} {threads} {{}}")
                        for threads in threads_list for isa in tried]
    for threads in threads_list:
        process, peers = start([sys.executable, __file__, "--work", folder, threads, *shapes], threads)
        for peer in peers:
            name, shape = peer.split("/")
            element_type = "bfloat16" if name == "torch_bfloat16" else "float32"
            entries.append(Entry(process, name, shape, element_type, threads, f"{name} {shape} {{}}"))
    # What is compared stands close together: the machine's speed changes within a round, too.
    return sorted(entries, key=lambda entry: (entry.threads, entry.shape))


def measure(entries, rounds):
    for entry in entries:
        entry.warm_up()
    for _ in range(rounds):
        for entry in entries:
            time.sleep(0.02)  # The threads of the entry before stop spinning.
            entry.rates.append(entry.work / entry.run() * 1e-9)


def best(entries, prefix, shape, threads, element_type="float32"):
    """The rates of the entry whose median is the highest; None where there is none."""
    found = [e for e in entries if e.name.startswith(prefix) and e.shape == shape and e.threads == threads
             and e.element_type == element_type]
    return max((e.rates for e in found), key=statistics.median, default=None)


def figures(entries, threads_list):
    rows = []

    def add(name, ours, theirs, target):
        if ours is not None and theirs is not None:
            ratio = statistics.median(a / b for a, b in zip(ours, theirs))
            rows.append((name, round(ratio, 2), f">= {target}"))

    for threads in threads_list:
        of = lambda prefix, shape=RAGGED, type="float32": best(entries, prefix, shape, threads, type)
        label = f"{threads} thread{'s' if threads > 1 else ''}"
        ours = of("maxsimd")
        add(f"float32 ragged over maxsim-cpu uniform, {label}", ours, of("maxsim_cpu", UNIFORM), 1.5)
        add(f"float32 ragged over maxsim-cpu ragged, {label}", ours, of("maxsim_cpu"), 2)
        add(f"float32 ragged over torch, {label}", ours, of("torch"), 3)
        add(f"float32 ragged over sgemm, {label}", ours, of("sgemm", "-"), 0.75)
        add(f"float16 over float32, {label}", of("maxsimd", type="float16"), ours, 1)
        add(f"bfloat16 over float32, {label}", of("maxsimd", type="bfloat16"), ours,
            1.6 if of("maxsimd avx512_bf16", type="bfloat16") else 1)
        add(f"bfloat16 by AMX over AVX-512-BF16, {label}", of("maxsimd amx_bf16", type="bfloat16"),
            of("maxsimd avx512_bf16", type="bfloat16"), 2.5)
    return rows


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def largest_error(entry, exact):
    import numpy as np
    scores, bounds = exact[entry.shape, entry.element_type]
    return float((abs(np.array(entry.scores) - scores) / bounds).max())


def print_tables(entries, exact, rows):
    print(f"{machine()}\n\n| entry | type | shape | threads | GFLOP/s | lowest to highest | error/bound |")
    print("| --- " * 7 + "|")
    for e in sorted(entries, key=lambda e: (e.shape, e.threads, e.element_type)):
        error = "" if e.shape == "-" else f"{largest_error(e, exact):.2g}"
        print(f"| {e.name} | {e.element_type} | {e.shape} | {e.threads} | {statistics.median(e.rates):.0f} "
              f"| {min(e.rates):.0f} to {max(e.rates):.0f} | {error} |")
    print("\n| ratio | figure | target |\n| --- | --- | --- |")
    for name, figure, target in rows:
        print(f"| {name} | {figure} | {target} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/maxsimd_score_files")
    parser.add_argument("--threads", default=f"1,{len(os.sched_getaffinity(0))}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--here", action="store_true", help="install nothing")
    options = parser.parse_args()
    if not options.program.exists():
        sys.exit(f"cpu_peers.py: no {options.program}: build the target maxsimd_score_files")
    if not options.here:
        ensure_packages()
    threads_list = sorted({int(threads) for threads in options.threads.split(",")})
    with tempfile.TemporaryDirectory() as folder:
        shapes = (UNIFORM, RAGGED)
        exact = make_data(pathlib.Path(folder), shapes)
        entries = make_entries(options.program, pathlib.Path(folder), shapes, threads_list)
        measure(entries, options.rounds)
        for process in {entry.process for entry in entries}:
            process.stdin.close()
            process.wait()
    rows = figures(entries, threads_list)
    print_tables(entries, exact, rows)
    if options.json:
        options.json.write_text(json.dumps([{"name": name, "figure": figure, "target": target, "unit": "ratio",
                                             "machine": machine()} for name, figure, target in rows], indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        main()
