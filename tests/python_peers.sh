#!/usr/bin/env bash
# Runs the Python package's tests with everything installed that they otherwise skip: the libraries whose
# functions maxsimd.compat stands in for, the frameworks of maxsimd.integrations, torch, and a kernel for the
# notebook.  Installs about 6 GB into build/python-peers, once.
#
#   tests/python_peers.sh [PYTEST_ARGUMENT...]       after a release build
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=$PWD/build/python-peers
readonly requirements=(tests/requirements.txt tests/python_peers.txt)

if ! cat "${requirements[@]}" | cmp -s - "$venv/requirements"; then
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "${requirements[@]/#/-r}"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --editable client/python
  cat "${requirements[@]}" >"$venv/requirements"
fi
cd client/python
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider -rs "$@"
