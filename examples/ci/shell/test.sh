#!/bin/sh
# A download over the path must be complete, and end within its deadline.
set -eu

deadline=${1:?usage: test.sh SECONDS}
work=$(mktemp -d)
head -c 200000 /dev/zero | tr '\0' 'x' > "$work/file"

# The server of the program under test runs on far; here it is Python's.
ip netns exec far python3 -m http.server --directory "$work" 8000 > "$work/log" 2>&1 &
server=$!
trap 'kill "$server"' EXIT

began=$(date +%s)
curl --fail --silent --show-error --retry 5 --retry-connrefused --max-time "$deadline" \
    --output "$work/got" http://far:8000/file
took=$(($(date +%s) - began))

cmp "$work/file" "$work/got"
echo "200000 bytes in $took s"
test "$took" -le "$deadline"
