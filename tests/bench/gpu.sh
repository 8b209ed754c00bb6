#!/bin/bash
# Times maxsimd's CUDA kernels and their peers in one go, on a machine with an NVIDIA GPU, PyTorch and
# Triton, and prints one table.  Use:
#
#   gpu.sh BENCH_PROGRAM REFERENCE_TEXT OUT_FOLDER [SHAPE...]
#
# BENCH_PROGRAM is maxsimd_cuda_bench; REFERENCE_TEXT the reference kernel's, or - for none.  Writes
# OUT_FOLDER/gpu.csv with gpu_peers.py's columns, and prints microseconds per shape and peer.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,8p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
bench=$1 reference=$2 out=$3
shift 3
mkdir -p "$out"
python3 "$here/gpu_peers.py" "$reference" "$@" >"$out/peers.csv"
# The floor is the same for all: by what the peers' run measured.
read=$(sed -n 's/^#.* read \([0-9.]*\) TB.*/\1/p' "$out/peers.csv" | head -1)
tflops=$(sed -n 's/^#.* fp16 \([0-9.]*\) TFLOP.*/\1/p' "$out/peers.csv" | head -1)
"$bench" "$here/shapes" --read="$read" --tflops="$tflops" "$@" >"$out/ours.csv"
"$bench" "$here/shapes" --read="$read" --tflops="$tflops" --serial "$@" >"$out/serial.csv"
cat "$out/peers.csv" <(grep -v '^#\|^shape,' "$out/ours.csv") \
  <(grep -v '^#\|^shape,' "$out/serial.csv") >"$out/gpu.csv"
python3 "$here/gpu_table.py" "$out/gpu.csv"
