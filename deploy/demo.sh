#!/usr/bin/env bash
# From nothing to the main job: installs, builds, starts the server on a free loopback port, reranks real
# passages with the command-line client and stops the server.
#
#   deploy/demo.sh
#
# MAXSIMD_... in the environment reaches the server (MAXSIMD_BACKEND=cpu deploy/demo.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly bin=build/release/bin
readonly sample=tests/data/sample
readonly build_log=build/demo-build.log
readonly server_log=build/demo-server.log
server_pid=

fail() {
  echo "demo.sh: $1; the end of $2:" >&2
  tail -n 40 "$2" >&2
  exit 1
}

# wait_for SECONDS COMMAND...: whether the command succeeds within that time.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

server_is_gone() {
  ! kill -0 "$server_pid" 2>/dev/null
}

# Ends only the server that this script started, whatever happened to the script.
clean_up() {
  local status=$?
  trap - EXIT
  if [[ -n $server_pid ]] && ! server_is_gone; then
    kill -TERM "$server_pid" 2>/dev/null || true
    wait_for 5 server_is_gone || kill -KILL "$server_pid" 2>/dev/null || true
  fi
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build() {
  mkdir -p build
  echo "Installing and building; the first time takes minutes (log: $build_log)"
  {
    deploy/install-deps.sh &&
      cmake --preset release &&
      cmake --build --preset release --target maxsimd maxsimd-cli
  } >"$build_log" 2>&1 || fail "the build failed" "$build_log"
}

# The server takes port 0, so the system picks a free one and nobody can take it in between.
find_target() {
  target=$(sed -nE 's/.*listening on (127\.0\.0\.1:[1-9][0-9]*).*/\1/p' "$server_log" | head -n 1)
  [[ -n $target ]]
}

has_started() {
  server_is_gone && fail "the server ended while starting" "$server_log"
  find_target && timeout 5 "$bin/maxsimd-cli" health --target "$target" >/dev/null 2>&1
}

start_server() {
  : >"$server_log"  # find_target may read it before the server has opened it.
  "$bin/maxsimd" --listen=127.0.0.1:0 --drain-delay=0 --log-level=info >"$server_log" 2>&1 &
  server_pid=$!
  wait_for 30 has_started || fail "the server was not ready within 30 s" "$server_log"
  echo "The server listens on $target (log: $server_log)"
}

# rerank INDEX [FLAG...]: prints one query of the sample and the passages that answer it best.
rerank() {
  local index=$1
  shift
  printf '\nQuery: %s\n' "$(sed -n "$((index + 1))p" "$sample/queries.txt")"
  "$bin/maxsimd-cli" rerank --target "$target" \
    --query "$sample/queries.safetensors" --query-index "$index" \
    --documents "$sample/passages.safetensors" --text "$sample/passages.txt" "$@"
}

stop_server() {
  local status=0
  kill -TERM "$server_pid"
  wait_for 30 server_is_gone || fail "the server did not stop within 30 s" "$server_log"
  wait "$server_pid" || status=$?
  ((status == 0)) || fail "the server exited with $status" "$server_log"
  printf '\nThe server has drained and stopped.\n'
}

build
start_server
rerank 2 --top-k 5
rerank 0 --top-k 3 --explain \
  --query-tokens "$sample/query_tokens.json" --document-tokens "$sample/passage_tokens.json"
stop_server
echo "By yourself: $bin/maxsimd & $bin/maxsimd-cli rerank --query $sample/queries.safetensors" \
  "--query-index 0 --documents $sample/passages.safetensors --text $sample/passages.txt --top-k 5"
