#!/usr/bin/env bash
# The main job, for real. First a server on loopback, linerate's own test against it, and a stock iperf3 client against the
# same server; it is stopped at the end, also after an error or Ctrl-C. Then the whole loop on an emulated path of 10 Gbit/s
# and 117 ms, on a real kernel in virtual time: find what limits it, change that on trial, prove it, keep it, report.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

say "building the release binary"
cargo build --release --locked --package linerate-cli
target=$(cargo metadata --no-deps --locked --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
linerate=$target/release/linerate

# The kernel's tables of sockets: a look into them disturbs nobody.
sockets=()
for table in /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6; do
    if [ -e "$table" ]; then sockets+=("$table"); fi
done
is_free() { ! grep -qi ":$(printf '%04X' "$1") " "${sockets[@]}"; }

port=5201
until is_free "$port"; do
    port=$((20000 + RANDOM % 10000))
done

server=
log=$(mktemp)
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -f "$log"
}
trap stop EXIT
trap 'exit 130' INT TERM

say "linerate serve --port $port"
"$linerate" serve --port "$port" >"$log" 2>&1 &
server=$!
for _ in $(seq 100); do
    if ! is_free "$port"; then break; fi
    if ! kill -0 "$server" 2>/dev/null; then break; fi
    sleep 0.05
done
if is_free "$port"; then
    echo "the server did not start; it said:" >&2
    cat "$log" >&2
    exit 1
fi
echo "listening, process $server"

say "linerate test 127.0.0.1 --port $port"
status=0
timeout 120 "$linerate" test 127.0.0.1 --port "$port" || status=$?
# 1 is a measurement that was done and found something.
if [ "$status" -gt 1 ]; then
    echo "the test ended with status $status; the server said:" >&2
    cat "$log" >&2
    exit "$status"
fi

say "a stock iperf3 client against the same server"
if command -v iperf3 >/dev/null; then
    timeout 60 iperf3 --client 127.0.0.1 --port "$port" --time 3
else
    echo "iperf3 is not installed, so this step is left out (apt-get install iperf3)"
fi

say "the lab's kernel (built once, in about three minutes; then it stays in your cache)"
"$linerate" lab kernel build --if-missing

say "linerate doctor lab:rhel-10g-117ms (about three minutes)"
reports=$(mktemp -d)
"$linerate" doctor lab:rhel-10g-117ms --html "$reports/report.html"
echo "the report with its charts: $reports/report.html"

say "done"
