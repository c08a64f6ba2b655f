# The shell functions of OpenWrt that the scripts call, reduced for the tests: `emulation.sh SCRIPT ACTION…`.
#
# $ROOT is the host's root. What the scripts ask of procd and of the log becomes lines of $ROOT/record.

note() { printf '%s\n' "$*" >> "$ROOT/record"; }
note_words() {
	local line="$1"
	shift
	[ "$#" -eq 0 ] || line="$line$(printf ' [%s]' "$@")"
	note "$line"
}

# A file of UCI is a list of these commands.
config() {
	TYPE="$1" SECTION="$2"
	SECTIONS="$SECTIONS $2"
	eval "TYPE_$2=\$1 COUNT_$2_options=0"
}
option() { eval "VALUE_${SECTION}_$1=\$2"; }
list() {
	local count
	eval "count=\$((COUNT_${SECTION}_$1 + 1))"
	eval "COUNT_${SECTION}_$1=$count ITEM_${SECTION}_$1_$count=\$2"
}
config_load() {
	SECTIONS=""
	[ -f "$ROOT/etc/config/$1" ] && . "$ROOT/etc/config/$1"
}
config_get() { eval "$1=\${VALUE_$2_$3:-\$4}"; }
config_get_bool() {
	config_get "$@"
	eval "case \"\$$1\" in 1|on|true|yes|enabled) $1=1 ;; 0|off|false|no|disabled) $1=0 ;; *) $1=\$4 ;; esac"
}
config_foreach() {
	local callback="$1" type="$2" one found
	shift 2
	for one in $SECTIONS; do
		eval "found=\$TYPE_$one"
		[ "$found" != "$type" ] || eval "$callback \"\$one\" \"\$@\""
	done
}
config_list_foreach() {
	local count number=1 value
	eval "count=\${COUNT_$1_$2:-0}"
	while [ "$number" -le "$count" ]; do
		eval "value=\$ITEM_$1_$2_$number"
		"$3" "$value"
		number=$((number + 1))
	done
}
network_get_device() { [ "$2" = wan ] && eval "$1=pppoe-wan"; }

procd_open_instance() { note "instance $1"; }
procd_set_param() { note_words "$@"; }
procd_close_instance() { note "instance complete"; }
procd_kill() { note "kill $*"; }
procd_add_reload_trigger() { note "trigger config $1"; }
procd_add_reload_interface_trigger() { note "trigger interface $1"; }
logger() { note "log $*"; }

start() {
	start_service "$@"
	service_triggers
}
stop() { stop_service "$@"; }
reload() { reload_service "$@"; }
enabled() { [ -e "$ROOT/etc/rc.d/S95linerate" ]; }

script="$1"
shift
. "$script"
"$@"
