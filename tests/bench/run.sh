#!/usr/bin/env bash
# Benchmarks of the service, each against what bounds it, measured in the same run.
#
#   run.sh NAME [--json=FILE] [--backend=cpu|cuda] [--alternations=N] [--seconds=S]
#
# NAME: receive, small_calls, fairness, batching, memory, cpu_kernels, or all of them.  Prints a table;
# FILE gets a JSON list of {"name", "figure", "target", "unit", "machine"}.
#
# Builds what it needs, or takes the programs from the folder that MAXSIMD_BENCH_BIN names.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { sed -n '2,9p' "$0" >&2; exit 2; }

if [ -z "${MAXSIMD_BENCH_BIN:-}" ]; then
  cd "$here/../.."
  cmake --preset release >&2
  cmake --build --preset release --target maxsimd maxsimd-cli maxsimd_bench_server \
    maxsimd_kernel_bench >&2
  MAXSIMD_BENCH_BIN=$PWD/build/release/bin
fi
exec python3 "$here/service_bench.py" --bin="$MAXSIMD_BENCH_BIN" "$@"
