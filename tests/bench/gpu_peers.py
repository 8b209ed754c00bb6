#!/usr/bin/env python3
"""Times GPU MaxSim peers on the shapes in shapes/ and prints one CSV row per shape and peer.

Run on a machine with an NVIDIA GPU, PyTorch and Triton:

    python3 gpu_peers.py REFERENCE_TEXT [shape ...] > peers.csv

Peers: `reference`, the Triton kernel in the reference text, with the Hopper autotune list that its
project uses (left out where the text is `-`); `eager`, padded fp16 matmul in PyTorch, and
`eager_float32`, the same in float32 without TF32; and, where their packages are importable,
`flash_maxsim` (flash_maxsim_packed) and `late_interaction_kernels` (maxsim_varlen); another peer is
one more entry in peers().  Each time is the median
of CUDA-graph replays over several document sets larger together than the L2 cache, in
microseconds per call.  `floor_us` is the larger of bytes / read bandwidth and FLOPs / fp16 rate,
both measured in the same run.  `error` is the largest |score - float64| over 8 documents divided
by the query length.
"""
import csv, math, os, pathlib, sys, tempfile
import torch, triton
import triton.language as tl

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = "cuda"


def next_pow2(x):
    return 1 << (x - 1).bit_length()


def hopper_configs():
    tiles = [(16, 16, 2, 2), (16, 32, 2, 2), (32, 16, 2, 2), (32, 32, 4, 2), (32, 64, 4, 3),
             (32, 128, 8, 3), (64, 64, 4, 3), (64, 128, 8, 3), (128, 64, 8, 2), (128, 128, 8, 2)]
    return [triton.Config({"BLOCK_Q": q, "BLOCK_D": d}, num_warps=w, num_stages=s) for q, d, w, s in tiles]


def prune(configs, named_args, **_):
    lq, d = named_args.get("Lq", 32), named_args.get("d", 128)
    keep = [c for c in configs if c.kwargs["BLOCK_Q"] <= 2 * lq and
            (c.kwargs["BLOCK_Q"] + c.kwargs["BLOCK_D"]) * d * 2 +
            c.kwargs["BLOCK_Q"] * c.kwargs["BLOCK_D"] * 4 <= 220_000]
    return keep or configs[:4]


def load_reference(path):
    """Makes a module of the code blocks in the reference text; its two free helpers are ours."""
    text = pathlib.Path(path).read_text()

    def between(start, end):
        a = text.index(start)
        return text[a:text.index(end, a)]

    body = (between("@triton.autotune(", "_round_to_bucket(x)\n\nRound up")
            + between("def _round_to_bucket(x):", "_run_rerank_kernel(Q, D_tensor, doc_offsets, doc_lengths, max_seqlen_d)\n\nCommon")
            + between("def _run_rerank_kernel(", "flash_maxsim_rerank_direct(Q, batch_tensor, doc_offsets, doc_lengths, max_seqlen_d)\n\nTRUE"))
    folder = tempfile.mkdtemp()
    pathlib.Path(folder, "reference_kernel.py").write_text(
        "import torch, triton, triton.language as tl\n"
        "from __main__ import next_pow2 as _next_pow2, hopper_configs as _get_configs, prune as _prune_configs\n" + body)
    sys.path.insert(0, folder)
    import reference_kernel
    return reference_kernel


def median_us(run, repeats):
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(); run(); end.record(); end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return sorted(times)[repeats // 2]


def graph_us(call, sets):
    """Median time of one call inside a CUDA graph that goes once through all document sets."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(sets):
            call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(sets):
            call(i)
    return median_us(graph.replay, 25) / sets


@triton.jit
def read_kernel(src, out, blocks, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.int32)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        total ^= tl.load(src + block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK), eviction_policy="evict_first")
    if tl.sum(total) == 1234567:  # Never true in practice; keeps the loads alive.
        tl.store(out, 1)


def ceilings():
    """Bytes/s of copying (read + written) and of reading, FLOP/s of an fp16 product; medians of 15."""
    a = torch.randint(0, 2**31 - 1, (2**30,), dtype=torch.int32, device=DEVICE)
    b = torch.empty_like(a)
    flag, block = torch.zeros(1, dtype=torch.int32, device=DEVICE), 4096
    programs = 8 * torch.cuda.get_device_properties(0).multi_processor_count
    copy = 2 * 2**32 / median_us(lambda: b.copy_(a), 15) * 1e6
    read_kernel[(programs,)](a, flag, a.numel() // block, BLOCK=block, num_warps=8)
    read = 2**32 / median_us(lambda: read_kernel[(programs,)](a, flag, a.numel() // block, BLOCK=block, num_warps=8), 15) * 1e6
    del a, b
    x = torch.randn(8192, 8192, device=DEVICE, dtype=torch.float16)
    y = torch.randn(8192, 8192, device=DEVICE, dtype=torch.float16)
    x @ y
    flops = 2 * 8192**3 / median_us(lambda: x @ y, 15) * 1e6
    return copy, max(read, copy), flops


def peers(reference):
    def eager_setup(q, docs, lengths):
        longest = int(lengths.max())
        padded = torch.zeros(len(lengths), longest, q.shape[1], device=DEVICE, dtype=q.dtype)
        mask = torch.arange(longest, device=DEVICE)[None] >= lengths[:, None]
        def call(_):
            s = torch.matmul(padded, q.T)
            return s.masked_fill_(mask[:, :, None], float("-inf")).amax(1).float().sum(1)
        return call

    def reference_setup(q, docs, lengths):
        offsets = (lengths.cumsum(0) - lengths).to(torch.int32)
        lengths32, longest = lengths.to(torch.int32), int(lengths.max())
        return lambda i: reference._run_rerank_kernel(q, docs[i], offsets, lengths32, longest)

    def eager_float32_setup(q, docs, lengths):
        return eager_setup(q.float(), docs, lengths)

    found = {"eager": eager_setup, "eager_float32": eager_float32_setup}
    if reference is not None:
        found["reference"] = reference_setup
    try:
        import flash_maxsim
        def packed_setup(q, docs, lengths):
            cu = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(torch.int32)
            longest = int(lengths.max())
            return lambda i: flash_maxsim.flash_maxsim_packed(q, docs[i], cu, longest)
        if hasattr(flash_maxsim, "flash_maxsim_packed"):
            found["flash_maxsim"] = packed_setup
    except ImportError:
        pass
    try:
        from late_interaction_kernels.varlen import maxsim_varlen
        def varlen_setup(q, docs, lengths):
            cu = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(torch.int32)
            cu_q = torch.tensor([0, q.shape[0]], dtype=torch.int32, device=DEVICE)
            longest = int(lengths.max())
            return lambda i: maxsim_varlen(q, docs[i], cu_q, cu, q.shape[0], longest)[0]
        found["late_interaction_kernels"] = varlen_setup
    except ImportError:
        pass
    return found


def main():
    reference = None if sys.argv[1] == "-" else load_reference(sys.argv[1])
    torch.backends.cuda.matmul.allow_tf32 = False
    names = sys.argv[2:] or sorted(p.stem for p in (HERE / "shapes").glob("*.txt"))
    copy, read, flops = ceilings()
    print(f"# {torch.cuda.get_device_name()}, copy {copy/1e12:.2f} TB/s, read {read/1e12:.2f} TB/s, "
          f"fp16 {flops/1e12:.0f} TFLOP/s, torch {torch.__version__}, triton {triton.__version__}")
    out = csv.writer(sys.stdout)
    out.writerow("shape query_tokens dim documents tokens floor_us peer us error".split())
    torch.manual_seed(0)
    for name in names:
        first, *rest = (HERE / "shapes" / f"{name}.txt").read_text().split("\n", 1)
        lq, d = map(int, first.split())
        lengths = torch.tensor([int(x) for x in rest[0].split()], device=DEVICE)
        tokens = int(lengths.sum())
        sets = max(2, min(256, math.ceil(400e6 / (tokens * d * 2))))
        normal = torch.nn.functional.normalize
        q = normal(torch.randn(lq, d, device=DEVICE), dim=-1).half()
        # Views far apart in one buffer of at least 400 MB, so that even one document is never in L2.
        apart = max(tokens, math.ceil(400e6 / (sets * d * 2)))
        rows = torch.cat([normal(torch.randn(min(apart, 65536), d, device=DEVICE), dim=-1).half()
                          for _ in range(math.ceil(sets * apart / min(apart, 65536)))])
        docs = [rows[i * apart:i * apart + tokens] for i in range(sets)]
        floor = max(tokens * d * 2 / read, 2 * lq * d * tokens / flops) * 1e6
        starts = (lengths.cumsum(0) - lengths).tolist()
        exact = [(q.double() @ docs[0][s:s + n].double().T).amax(1).sum().item()
                 for s, n in list(zip(starts, lengths.tolist()))[:8]]
        for peer, setup in peers(reference).items():
            if peer.startswith("eager") and len(lengths) * int(lengths.max()) * max(lq * 2, d) * 2 > 30e9:
                continue
            try:
                call = setup(q, docs, lengths)
                scores = call(0)[:8].tolist()
                error = max(abs(a - b) for a, b in zip(scores, exact)) / lq if not peer.startswith("eager") else float("nan")
                us = graph_us(call, sets)
            except Exception as e:  # A peer that can't run a shape is a finding, not our failure.
                print(f"# {name} {peer}: {type(e).__name__}: {str(e)[:90]!r}")
                continue
            out.writerow([name, lq, d, len(lengths), tokens, f"{floor:.2f}", peer, f"{us:.2f}", f"{error:.1e}"])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
