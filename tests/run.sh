#!/usr/bin/env bash
# Installs what the tests need, builds everything and runs all tests; ends with ctest's summary.
#
#   tests/run.sh [CTEST_ARGUMENT...]      for example: tests/run.sh -R Codec
#
# Tests what is deployed, so the release preset: the accuracy tests need the optimised kernels, and the
# assertions are the sanitizer presets' business (.ci/run).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=$PWD/build/venv
readonly requirements=tests/requirements.txt

# The system's own Python, to which the installed python3-venv belongs.  The copy of the requirements is written last: an installation that was cut short doesn't count.
make_venv() {
  cmp -s "$requirements" "$venv/requirements.txt" && return
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r "$requirements"
  cp "$requirements" "$venv/requirements.txt"
}

deploy/install-deps.sh --tests
make_venv
cmake --preset release -DMAXSIMD_TESTS=ON -DMAXSIMD_PYTHON="$venv/bin/python"
cmake --build --preset release
ctest --preset release --parallel "$(nproc)" "$@"
