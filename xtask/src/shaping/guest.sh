# Runs in the near host of the lab: MODE SECONDS WARM FLOWS INTERVAL PAUSE. ./shape, if present, has the arguments of
# the shaper to set up before.
# Starts the load, waits for the warm-up, then pings; the counters meanwhile go to the standard output.
mode=$1 seconds=$2 warm=$3 flows=$4 interval=$5 pause=$6
if [ -f mtu ]; then
	# The far host is a neighbour: its route is not the default one, whose MTU the shaper sets.
	ip route change 10.0.0.0/30 dev eth0 mtu lock "$(cat mtu)" advmss $(($(cat mtu) - 40)) || exit 1
	ip route add default via 10.0.0.2 || exit 1
fi
export LINERATE_STATE=/tmp/linerate
[ ! -f shape ] || linerate shape $(cat shape) --quiet >/dev/null || exit 1
all=$((seconds + warm + 3))
case $mode in
up | both) iperf3 -4 -c far -C cubic -P "$flows" -t $all -i 1 -J >up.json & ;;
esac
case $mode in
down | both) iperf3 -4 -c far -R -C cubic -P "$flows" -t $all -i 1 -J >down.json & ;;
esac
sleep "$warm"
sleep "$pause"
counters() {
	for device in eth0 ifb4eth0; do
		statistics=/sys/class/net/$device/statistics
		[ ! -d $statistics ] ||
			echo "counters $(cut -d' ' -f1 /proc/uptime) $device $(cat $statistics/tx_bytes) $(cat $statistics/rx_bytes)"
	done
}
counters
ping -4 -n -i "$interval" -w "$seconds" far
counters
wait
