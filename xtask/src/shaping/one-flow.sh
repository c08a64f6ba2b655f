# One flow of TCP with CUBIC through a shaper, up and then down: FAR LINERATE RATE WARM SECONDS, the rate in kbit/s. With
# the address 10.9.0.2 as the far host, in network namespaces of this host, over a virtual link without delay.
set -eu
far_host=$1 L=$2 rate=$3 warm=$4 seconds=$5
if [ "$far_host" = 10.9.0.2 ]; then
	trap 'kill $far $server 2>/dev/null || :' EXIT
	mkfifo ready
	unshare -n sh -c 'echo ready >ready; exec sleep 600' &
	far=$! server=
	read -r _ <ready
	ip link add eth0 type veth peer name eth1 netns $far
	ip address add 10.9.0.1/24 dev eth0
	ip link set eth0 up
	nsenter -t $far -n ip address add 10.9.0.2/24 dev eth1
	nsenter -t $far -n ip link set eth1 up
	nsenter -t $far -n "$L" serve 2>serve &
	server=$! tries=0
	until grep -q 5201 serve; do
		tries=$((tries + 1))
		[ $tries -lt 300 ]
		sleep 0.1
	done
fi
export LINERATE_STATE="$PWD/state" LINERATE_HISTORY=off
"$L" shape eth0 --up "${rate}k" --down "${rate}k" --back-end htb+bfifo --quiet >/dev/null
for direction in up down; do
	reverse=-R
	[ $direction = down ] || reverse=
	# shellcheck disable=SC2086
	"$L" iperf3 -4 -c "$far_host" -C cubic -O "$warm" -t "$seconds" $reverse -J >$direction.json
done
