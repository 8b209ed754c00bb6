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

# What the environment is made from: the Python package is installed as a link to its source, so only
# its stubs and its metadata age.
venv_sources() {
  cat "$requirements" client/python/pyproject.toml client/python/hatch_build.py proto/maxsimd/v1/*.proto
}

# The system's own Python, to which the installed python3-venv belongs.  The copy of the sources is written
# last: an installation that was cut short doesn't count.
make_venv() {
  venv_sources | cmp -s - "$venv/sources" && return
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r "$requirements"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --editable client/python
  venv_sources >"$venv/sources"
}

deploy/install-deps.sh --tests
make_venv
cmake --preset release -DMAXSIMD_TESTS=ON -DMAXSIMD_PYTHON="$venv/bin/python"
cmake --build --preset release
ctest --preset release --parallel "$(nproc)" "$@"
