#!/usr/bin/env bash
# A fleet of three hosts on this machine, from the description to the matrix of what limits each direction: three network
# namespaces on one bridge, each with a server and an agent. One host has a slow link with a deep buffer, another a forgotten
# rate limit. Nothing outside of the namespaces changes, and they end with this program, also after an error or Ctrl-C.
#
#     packaging/demo-fleet.sh [DIRECTORY]     the results and linerate-fleet.html go there [default: target/demo-fleet]
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

if [ "${LINERATE_DEMO_FLEET:-}" != inside ]; then
    export PATH=$PATH:/usr/sbin:/sbin
    for program in ip:iproute2 tc:iproute2 unshare:util-linux; do
        if ! command -v "${program%:*}" >/dev/null; then
            echo "demo-fleet: ${program%:*} is missing: install the package ${program#*:}" >&2
            exit 1
        fi
    done
    # All processes end with the first one of their own process namespace.
    namespaces=(--net --mount --pid --fork --kill-child --mount-proc)
    if [ "$(id -u)" -ne 0 ]; then namespaces+=(--user --map-root-user); fi
    # What cannot work is found before anything is built. A missing type of device is named by ip.
    if ! reason=$(unshare "${namespaces[@]}" ip link add name site type bridge 2>&1); then
        echo "demo-fleet: this user cannot make network namespaces with a bridge: ${reason##*$'\n'}" >&2
        if [ "$(id -u)" -ne 0 ]; then
            echo "Run it as root, or permit user namespaces: sysctl -w user.max_user_namespaces=10000, and where they are there" >&2
            echo "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0." >&2
        fi
        exit 1
    fi
    linerate=${LINERATE:-}
    if [ -z "$linerate" ]; then
        say "building the release binary"
        cargo build --release --locked --package linerate-cli
        target=$(cargo metadata --no-deps --locked --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
        linerate=$target/release/linerate
    fi
    # Three servers of NATS carry the description and the results, where they are installed or Go can build them.
    version=$(sed -n 's/^nats_version=//p' packaging/prerequisites.sh)
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/linerate/nats-server-$version
    if [ ! -x "$cache/nats-server" ] && command -v go >/dev/null; then
        say "building nats-server $version"
        GOBIN=$cache GOTOOLCHAIN=auto GOFLAGS=-trimpath go install "github.com/nats-io/nats-server/v2@v$version" || true
    fi
    if [ -x "$cache/nats-server" ]; then
        export NATS_SERVER=$cache/nats-server
    else
        echo "Without NATS: install Go 1.21 or later (https://go.dev/dl) to see the fleet meet there."
    fi
    directory=$(realpath -m "${1:-target/demo-fleet}")
    if [ -n "$(ls -A "$directory" 2>/dev/null)" ] && [ ! -e "$directory/fleet.json" ]; then
        echo "demo-fleet: $directory has other files: name a directory that is empty or not there" >&2
        exit 1
    fi
    rm -rf "$directory"
    mkdir -p "$directory"
    LINERATE_DEMO_FLEET=inside LINERATE=$linerate exec unshare "${namespaces[@]}" "$0" "$directory"
fi

directory=$1
hosts=(berlin lisbon oslo)

mount -t tmpfs tmpfs /run
mkdir -p /run/netns
ip link set lo up
ip link add name site type bridge
ip link set site up
number=0
for host in "${hosts[@]}"; do
    number=$((number + 1))
    ip netns add "$host"
    ip link add "to-$host" type veth peer name eth0 netns "$host"
    ip link set "to-$host" master site up
    ip -n "$host" link set lo up
    ip -n "$host" link set eth0 up
    ip -n "$host" address add "10.77.0.$number/24" dev eth0
    # 100 Mbit/s to each host.
    tc qdisc add dev "to-$host" root tbf rate 100mbit burst 32k limit 60k
done
# What is to be found: a slow link with a deep buffer in front of lisbon, and a forgotten limit in oslo's own queue.
tc qdisc change dev to-lisbon root tbf rate 20mbit burst 32k limit 500k
tc -n oslo qdisc add dev eth0 root tbf rate 10mbit burst 32k limit 60k

cat >"$directory/fleet.json" <<'END'
{
    "_meta": { "display-name": "Three hosts on one machine", "linerate": { "clock-guard": "PT0.5S" } },
    "addresses": {
        "berlin": { "address": "10.77.0.1" },
        "lisbon": { "address": "10.77.0.2" },
        "oslo": { "address": "10.77.0.3" }
    },
    "groups": { "all": { "type": "mesh", "addresses": [ { "name": "berlin" }, { "name": "lisbon" }, { "name": "oslo" } ] } },
    "tests": {
        "goodput": { "type": "throughput", "spec": { "duration": "PT4S", "congestion": "cubic" } },
        "delay": { "type": "rtt", "spec": {} }
    },
    "schedules": { "often": { "repeat": "PT30S" } },
    "tasks": {
        "goodput": { "group": "all", "test": "goodput" },
        "delay": { "group": "all", "test": "delay", "schedule": "often" }
    }
}
END

say "linerate fleet plan fleet.json"
"$LINERATE" fleet plan "$directory/fleet.json"

transport=("$directory/fleet.json")
if [ -n "${NATS_SERVER:-}" ]; then
    say "three servers of NATS, and linerate fleet publish fleet.json"
    servers=nats://10.77.0.1:4222,nats://10.77.0.2:4222,nats://10.77.0.3:4222
    number=0
    for host in "${hosts[@]}"; do
        number=$((number + 1))
        mkdir -p "$directory/$host"
        ip netns exec "$host" "$NATS_SERVER" -js -sd "$directory/$host/nats" -n "$host" -a "10.77.0.$number" \
            --cluster "nats://10.77.0.$number:6222" --cluster_name demo \
            --routes nats://10.77.0.1:6222,nats://10.77.0.2:6222,nats://10.77.0.3:6222 >"$directory/$host/nats.log" 2>&1 &
    done
    published=0
    for _ in $(seq 30); do
        if ip netns exec berlin "$LINERATE" fleet publish "$directory/fleet.json" --nats "$servers" 2>"$directory/publish.log"; then
            published=1
            break
        fi
        sleep 1
    done
    cat "$directory/publish.log"
    [ "$published" -eq 1 ]
    transport=(--nats "$servers")
fi

say "an agent and a server on each host, for one cycle"
agents=()
for host in "${hosts[@]}"; do
    export LINERATE_HISTORY="$directory/$host/history.sqlite" LINERATE_STATE="$directory/$host/state"
    mkdir -p "$directory/$host"
    ip netns exec "$host" "$LINERATE" serve >"$directory/$host/serve.log" 2>&1 &
    ip netns exec "$host" "$LINERATE" fleet agent "${transport[@]}" --address "$host" \
        --results "$directory/$host/results" --for "${LINERATE_DEMO_TIME:-95s}" &
    agents+=($!)
done
if [ -n "${NATS_SERVER:-}" ]; then
    results=("$directory/results.jsonl")
    ip netns exec berlin "$LINERATE" fleet collect --results "${results[0]}" --nats "$servers" >"$directory/collect.log" 2>&1 &
    collect=$!
    sleep 5
    ip netns exec berlin "$LINERATE" fleet members --nats "$servers"
fi
for agent in "${agents[@]}"; do wait "$agent"; done
if [ -n "${NATS_SERVER:-}" ]; then
    sleep 3
    kill "$collect"
    wait "$collect" || true
fi

say "linerate fleet report"
[ -n "${NATS_SERVER:-}" ] || results=("$directory"/*/results)
"$LINERATE" fleet report "${results[@]}" --format text
"$LINERATE" fleet report "${results[@]}" --title "Three hosts on one machine" --out "$directory/linerate-fleet.html"
