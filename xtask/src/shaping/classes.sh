# Many classes on a virtual link of this host or of the lab: LINERATE COUNT BACK_END SECONDS. Prints lines `name: value`.
set -u
L=$1 count=$2 back_end=$3 seconds=$4
D=$(mktemp -d)
cd "$D" || exit 1
export LINERATE_STATE="$D/state" LINERATE_HISTORY=off
mkfifo ready
unshare -n sh -c 'echo ready >ready; exec sleep 100000' &
far=$! servers=
# shellcheck disable=SC2086
trap 'kill $far $servers 2>/dev/null; rm -rf "$D"' EXIT
read -r _ <ready
ip link add v0 type veth peer name v1 netns $far
ip address add 10.8.0.1/24 dev v0
ip link set v0 up
for host in 1 2 3; do ip address add 10.7.0.$host/32 dev v0; done
in_far() { nsenter -t $far -n "$@"; }
in_far ip address add 10.8.0.2/24 dev v1
in_far ip link set v1 gso_max_segs 1 up
in_far ip route add 10.7.0.0/16 via 10.8.0.1
for port in 1 2 3; do
	# Not by the function: $! would be its shell, and the server would outlive it.
	nsenter -t $far -n "$L" iperf3 -s -p 520$port >server$port 2>&1 &
	servers="$servers $!"
done
until [ "$(cat server? | grep -c listening)" = 3 ]; do sleep 0.1; done
awk -v count="$count" 'BEGIN { print "match,name,down,up"
	for (n = 1; n <= count; n++) printf "10.7.%d.%d,d%d,10k:100M,10k:100M\n", n / 250, n % 250, n }' >classes.csv
tree() {
	{ ip -o link; tc qdisc show; tc class show dev v0; tc filter show dev v0; tc filter show dev v0 ingress; } |
		sed -E 's/ direct_packets_stat [0-9]+//'
}
slab() { awk '/^Slab:|^Percpu:/ { sum += $2 } END { print sum }' /proc/meminfo; }
tree >before
was=$(slab)
command time -f 'memory: %M
set-up: %U %S' -o figures "$L" shape v0 --up 100M --down 100M --classes classes.csv --back-end "$back_end" -q >out 2>&1 || cat out
cat figures
echo "kernel: $(($(slab) - was))"
echo "objects: $(tc class show dev v0 | wc -l) $(tc filter show dev v0 | grep -c flowid)"
for direction in up down; do
	reverse=
	[ $direction = up ] || reverse=-R
	clients=
	for host in 1 2 3; do
		streams=1
		[ $host != 3 ] || streams=20
		# shellcheck disable=SC2086
		"$L" iperf3 -4 -c 10.8.0.2 -B 10.7.0.$host -p 520$host -P $streams -C cubic $reverse -O 2 -t "$seconds" -J >client$host &
		clients="$clients $!"
	done
	# shellcheck disable=SC2086
	wait $clients
	for host in 1 2 3; do
		echo "$direction $host: $(sed -n '/"sum_received"/,/}/p' client$host | sed -n 's/.*"bits_per_second":[^0-9]*\([0-9]*\).*/\1/p')"
	done
done
command time -f 'off: %U %S' -o figures "$L" shape v0 off -q >out 2>&1 || cat out
cat figures
tree >now
cmp before now && echo "undo: exact"
