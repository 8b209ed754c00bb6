#!/usr/bin/env bash
# Installs what building and running maxsimd needs, by apt, on Debian 12 and Ubuntu 24.04.
#
#   deploy/install-deps.sh            compiler, CMake and the libraries
#   deploy/install-deps.sh --tests    also what tests/run.sh and .ci/run need
#
# Runs as root or through sudo.  Where every package is present it does nothing: no root, no network.
set -euo pipefail

# GoogleTest and Google Benchmark are here, not with the tests' tools: the default build makes the tests.
# What gRPC's CMake files look for (c-ares, RE2, OpenSSL, zlib, pkg-config) comes with libgrpc++-dev.
packages=(
  cmake g++ ninja-build
  libabsl-dev libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libcli11-dev libspdlog-dev nlohmann-json3-dev
  libbenchmark-dev libgmock-dev libgtest-dev
)
# clang-format is pinned to the one version that both systems have: versions disagree about the layout.
test_packages=(ccache clang clang-format-14 git python3-venv)

fail() {
  echo "install-deps.sh: $*" >&2
  exit 1
}

case "$*" in
  "") ;;
  --tests) packages+=("${test_packages[@]}") ;;
  *)
    echo "usage: deploy/install-deps.sh [--tests]" >&2
    exit 2
    ;;
esac

# `dpkg-query` knows packages by name only where they have been seen; an unknown one is missing too.
is_installed() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
else
  missing=("${packages[@]}")
fi
if ((${#missing[@]} == 0)); then
  exit 0
fi

# shellcheck source=/dev/null
system=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}") || system=unknown
case "$system" in
  "debian 12" | "ubuntu 24.04") ;;
  *) fail "this is $system, and only Debian 12 and Ubuntu 24.04 are supported.  Missing: ${missing[*]}" ;;
esac

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "must run as root, since there is no sudo.  Missing: ${missing[*]}"
  as_root=(sudo)
fi

# A freshly started machine may still be installing updates: wait for it to let go of the lock.
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
}

echo "Installing ${missing[*]}" >&2
# One unreachable third-party list must not stop what doesn't need it: the installation decides.
apt_get update >&2 || echo "install-deps.sh: apt-get update failed; going on with the lists there are" >&2
apt_get install --no-install-recommends "${missing[@]}" >&2 || fail "apt-get install failed"
