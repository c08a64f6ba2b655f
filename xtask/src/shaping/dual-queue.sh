# An L4S flow and a classic one through one shaper, in the near host of the lab: LINERATE OPTIONS WARM SECONDS. Prints lines
# `name: value`. Namespaces "lan" and "far" are 20 ms apart, the guest between them routes and shapes towards "far". The L4S
# flow is DCTCP whose packets leave with ECT(1), as no congestion control of Linux sends that.
# shellcheck disable=SC2086,SC2154
set -eu
L=$1 options=$2 warm=$3 seconds=$4
D=$(mktemp -d)
cd "$D"
export LINERATE_STATE="$D/state" LINERATE_HISTORY=off
mkfifo ready
for name in lan far; do
	unshare -n sh -c 'echo ready >ready; exec sleep 100000' &
	eval "$name=$!"
	read -r _ <ready
done
in_lan() { nsenter -t $lan -n "$@"; }
in_far() { nsenter -t $far -n "$@"; }
servers=
trap 'kill $lan $far $servers 2>/dev/null || :; rm -rf "$D"' EXIT
ip link add l0 type veth peer name eth1 netns $lan
ip link add v0 type veth peer name eth1 netns $far
ip address add 10.7.0.1/24 dev l0
ip address add 10.8.0.1/24 dev v0
ip link set l0 gso_max_segs 1 up
ip link set v0 gso_max_segs 1 up
echo 1 >/proc/sys/net/ipv4/ip_forward
for name in lan far; do
	[ $name = lan ] && net=7 other=8 || net=8 other=7
	in_$name ip address add 10.$net.0.2/24 dev eth1
	in_$name ip address add 10.$net.0.3/24 dev eth1
	in_$name ip link set eth1 gso_max_segs 1 up
	in_$name ip route add default via 10.$net.0.1
	# A route with DCTCP negotiates ECN, at both ends.
	in_$name ip route add 10.$other.0.3 via 10.$net.0.1 src 10.$net.0.3 congctl dctcp
	in_$name tc qdisc add dev eth1 root netem delay 10ms limit 20000
	in_$name tc qdisc add dev eth1 clsact
	in_$name tc filter add dev eth1 egress protocol ip u32 match ip protocol 6 0xff match ip dst 10.$other.0.3/32 \
		action pedit ex munge ip tos set 0x1 retain 0x3 pipe action csum ip4h
	eval "process=\$$name"
	for port in 5201 5202; do
		nsenter -t $process -n "$L" iperf3 -s -p $port >server.$name.$port 2>&1 &
		servers="$servers $!"
	done
done
until [ "$(cat server.* | grep -c listening)" = 4 ]; do sleep 0.1; done
tree() { tc qdisc show | grep -v 'dev lo '; }
tree >before
"$L" shape v0 --up 20M --down 50M --back-end $options --quiet >/dev/null
for direction in up down; do
	[ $direction = up ] && from=in_lan to=10.8.0 || from=in_far to=10.7.0
	$from "$L" iperf3 -4 -c $to.2 -p 5201 -C cubic -O "$warm" -t $((seconds + 1)) -J >classic &
	clients=$!
	$from "$L" iperf3 -4 -c $to.3 -p 5202 -O "$warm" -t $((seconds + 1)) -J >l4s &
	clients="$clients $!"
	sleep "$warm"
	$from ping -4 -n -i 0.0503 -w "$seconds" -Q 0 $to.2 >ping.classic &
	$from ping -4 -n -i 0.0503 -w "$seconds" -Q 1 $to.3 >ping.l4s &
	wait $clients
	for flow in classic l4s; do
		received=$(sed -n '/"sum_received"/,/}/p' $flow | sed -n 's/.*"bits_per_second":[^0-9]*\([0-9]*\).*/\1/p')
		own=$(sed -n 's/.*"mean_rtt":[^0-9]*\([0-9]*\).*/\1/p' $flow | head -n 1)
		echo "$direction $flow goodput: $received"
		echo "$direction $flow own: $own"
		echo "$direction $flow pings: $(sed -n 's/.* time=\([0-9.]*\) ms/\1/p' ping.$flow | tr '\n' ' ')"
	done
done
"$L" shape v0 off -q >/dev/null
tree >now
cmp before now
echo "undo: exact"
