# Runs in the near host of the lab: MODE SECONDS FLOWS. linerate's own probes of several classes under the same load.
if [ -f mtu ]; then
	ip route change 10.0.0.0/30 dev eth0 mtu lock "$(cat mtu)" advmss $(($(cat mtu) - 40)) || exit 1
	ip route add default via 10.0.0.2 || exit 1
fi
export LINERATE_STATE=/tmp/linerate
[ ! -f shape ] || linerate shape $(cat shape) --quiet >/dev/null || exit 1
linerate --no-history load far -4 -C cubic -P "$3" -t "$2s" --phases "$1" --json --quiet >load.json
