#!/usr/bin/env bash
# Builds the Python package as PyPI would get it, the wheel from the source distribution; installs the wheel
# into a fresh environment of the newest Python there is, and runs the package's tests against the server.
#
#   tests/python_wheel.sh        after tests/run.sh, whose environment and binary it uses
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly output=build/python-wheel

# Prints the newest Python that starts, among those on the path and pyenv's.
newest_python() {
  local version candidate
  for version in 3.15 3.14 3.13 3.12 3.11; do
    for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
      if "$candidate" -c "import sys, venv, ensurepip" >/dev/null 2>&1; then
        echo "$candidate"
        return
      fi
    done
  done
  echo "python_wheel.sh: there is no Python 3.11 or newer" >&2
  return 1
}

rm -rf "$output"
build/venv/bin/python -m build --outdir "$output/dist" client/python >"$output.log" 2>&1 || {
  tail -n 40 "$output.log" >&2
  exit 1
}
python=$(newest_python)
"$python" --version
"$python" -m venv "$output/venv"
"$output/venv/bin/pip" install --quiet --disable-pip-version-check "$output"/dist/*.whl ml_dtypes pytest trustme
MAXSIMD_BINARY=$PWD/build/release/bin/maxsimd \
  "$output/venv/bin/python" -m pytest -q -p no:cacheprovider client/python/tests
