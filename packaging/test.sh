#!/usr/bin/env bash
# All tests from one build; arguments are those of `cargo xtask test`. The program that runs the tests comes from that
# build too: `cargo xtask` would compile what it shares with the workspace a second time, with fewer features.
set -euo pipefail
cd "$(dirname "$0")/.."

packaging/prerequisites.sh test
cargo test --workspace --locked --no-run --quiet
target=$(cargo metadata --no-deps --locked --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
exec "$target/debug/xtask" test "$@"
