#!/usr/bin/env bash
# Tests that change interfaces of network namespaces of their own, which needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
    echo "not run: the tests of traffic control in network namespaces (they need root: sudo make test)"
    exit 0
fi
cargo test --package linerate-sys --lib --locked -- --ignored \
    traffic_control queue_statistics route_events
cargo test --package linerate-change --test traffic_control --locked -- --include-ignored
