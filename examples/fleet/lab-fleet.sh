#!/usr/bin/env bash
# A fleet in the lab, in virtual time: hosts of 10 Mbit/s behind shared uplinks of 25 Mbit/s, 20 ms apart, with three faults that
# the matrix must name: loss on the uplink of site 1, a small receive buffer at host h02, a deep buffer in front of h03.
#
#     linerate lab run --rate 10G --rtt 200ms -- bash examples/fleet/lab-fleet.sh LINERATE DIRECTORY HOSTS SITES TIME
#
# The lab's own path is not used; its size gives the guest the memory for a hundred programs. The directory gets the description, the results and a line per agent. It is made for a guest: it changes the network of the
# machine on which it runs.
set -euo pipefail

linerate=$1 directory=$2 hosts=$3 sites=$4 time=$5
export LINERATE_HISTORY=off LINERATE_STATE=/tmp/state
PATH=$PATH:/usr/sbin:/sbin

name() { printf 'h%02d' "$1"; }

address() { printf '10.1.%d.%d' $(($1 % sites)) $(($1 / sites + 2)); }
# Segments of the link's size, as on a wire: run NAMESPACE-COMMAND DEVICE.
unsegmented() { "$@" tso off gso off gro off >/dev/null; }

mkdir -p "$directory/results"
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
sysctl -q -w net.ipv4.ip_forward=1
# A router per site, with its uplink to this namespace.
for site in $(seq 0 $((sites - 1))); do
    ip netns add "site$site"
    ip netns exec "site$site" sysctl -q -w net.ipv4.ip_forward=1
    ip link add name "down$site" type veth peer name uplink netns "site$site"
    ip link set "down$site" up
    ip address add "10.2.$site.1/30" dev "down$site"
    ip -n "site$site" link set uplink up
    ip -n "site$site" address add "10.2.$site.2/30" dev uplink
    ip -n "site$site" route add default via "10.2.$site.1"
    ip route add "10.1.$site.0/24" via "10.2.$site.2"
    tc qdisc add dev "down$site" root handle 1: tbf rate 25mbit burst 16k limit 125k
    tc -n "site$site" qdisc add dev uplink root handle 1: tbf rate 25mbit burst 16k limit 125k
    unsegmented ethtool -K "down$site"
    unsegmented ip netns exec "site$site" ethtool -K uplink
done
for number in $(seq 0 $((hosts - 1))); do
    host=$(name "$number") site=site$((number % sites)) own=$(address "$number")
    ip netns add "$host"
    ip -n "$site" link add name "$host" type veth peer name eth0 netns "$host"
    ip -n "$host" link set lo up
    ip -n "$host" link set eth0 up
    ip -n "$host" address add "$own/32" dev eth0
    ip -n "$host" route add 169.254.1.1 dev eth0 scope link
    ip -n "$host" route add default via 169.254.1.1 dev eth0 src "$own"
    ip -n "$site" link set "$host" up
    ip -n "$site" address add 169.254.1.1/32 dev "$host"
    ip -n "$site" route add "$own" dev "$host"
    ip netns exec "$host" sysctl -q -w net.ipv4.tcp_congestion_control=cubic
    # Half of the round trip each way, and the host's link.
    tc -n "$host" qdisc add dev eth0 root netem delay 10ms limit 4000
    tc -n "$site" qdisc add dev "$host" root handle 1: tbf rate 10mbit burst 16k limit 50k
    unsegmented ip netns exec "$host" ethtool -K eth0
    unsegmented ip netns exec "$site" ethtool -K "$host"
done
# The faults.
tc qdisc add dev down1 parent 1: netem loss 2% limit 1000
tc -n site1 qdisc add dev uplink parent 1: netem loss 2% limit 1000
ip netns exec h02 sysctl -q -w net.ipv4.tcp_rmem="4096 8192 8192"
tc -n "site$((3 % sites))" qdisc change dev h03 root handle 1: tbf rate 10mbit burst 16k limit 1250k

entries() {
    for number in $(seq 0 $((hosts - 1))); do
        printf '%s"%s": { "address": "%s", "_meta": { "linerate": { "rate": "10M", "uplink": "site%d" } } }' \
            "$([ "$number" -eq 0 ] || echo ', ')" "$(name "$number")" "$(address "$number")" $((number % sites))
    done
}
members() {
    for number in $(seq 0 $((hosts - 1))); do
        printf '%s{ "name": "%s" }' "$([ "$number" -eq 0 ] || echo ', ')" "$(name "$number")"
    done
}
uplinks() {
    for site in $(seq 0 $((sites - 1))); do
        printf '%s"site%d": { "capacity": "25M" }' "$([ "$site" -eq 0 ] || echo ', ')" "$site"
    done
}
cat >"$directory/fleet.json" <<END
{
    "_meta": { "display-name": "$hosts hosts behind $sites uplinks", "linerate": { "clock-guard": "PT0.5S", "uplinks": { $(uplinks) } } },
    "addresses": { $(entries) },
    "groups": { "all": { "type": "mesh", "addresses": [ $(members) ] } },
    "tests": { "goodput": { "type": "throughput", "spec": { "duration": "PT5S" } }, "delay": { "type": "rtt", "spec": {} } },
    "schedules": { "daily": { "repeat": "PT24H" }, "light": { "repeat": "PT24H" } },
    "tasks": { "goodput": { "group": "all", "test": "goodput", "schedule": "daily" },
               "delay": { "group": "all", "test": "delay", "schedule": "light" } }
}
END
"$linerate" fleet plan "$directory/fleet.json"

agents=()
for number in $(seq 0 $((hosts - 1))); do
    host=$(name "$number")
    ip netns exec "$host" "$linerate" serve >/dev/null 2>"$directory/serve-$host.log" &
done
sleep 2
for number in $(seq 0 $((hosts - 1))); do
    host=$(name "$number")
    ip netns exec "$host" "$linerate" fleet agent "$directory/fleet.json" --address "$host" --for "$time" \
        --results "$directory/results" >/dev/null 2>"$directory/agent-$host.log" &
    agents+=($!)
done
for agent in "${agents[@]}"; do wait "$agent"; done
