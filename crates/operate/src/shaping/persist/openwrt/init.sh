USE_PROCD=1
START=95
STOP=10
EXTRA_COMMANDS="release"
EXTRA_HELP="	release	End the processes of all sections, or of one; their shapers stay active"

PROGRAM=@PROGRAM@
# Sections in effect: a file each, with the interface and the mode.
STATE=/var/run/linerate-shapers

# Appends an argument to $arguments, quoted for eval.
shaper_argument() {
	local rest="$1" text=""
	while [ "${rest#*\'}" != "$rest" ]; do
		text="$text${rest%%\'*}'\\''"
		rest="${rest#*\'}"
	done
	arguments="$arguments '$text$rest'"
}

# Appends an element of the list `options`: an option and, after a blank, its value.
shaper_option() {
	shaper_argument "${1%% *}"
	case "$1" in
		*" "*) shaper_argument "${1#* }" ;;
	esac
}

# Sets $device and $mode of a section; an empty $device: not in effect now.
shaper_read() {
	local enabled logical flag
	device=""
	mode=fixed
	config_get_bool enabled "$1" enabled 1
	[ "$enabled" = 1 ] || return 0
	config_get_bool flag "$1" follow 0
	[ "$flag" = 0 ] || mode=follow
	config_get_bool flag "$1" autorate 0
	[ "$flag" = 0 ] || mode=autorate
	config_get device "$1" device
	config_get logical "$1" interface
	if [ -n "$logical" ]; then
		. /lib/functions/network.sh
		network_get_device device "$logical" || device=""
	fi
}

shaper_start() {
	local section="$1" only="$2" device mode name value arguments=""
	[ -z "$only" ] || [ "$only" = "$section" ] || return 0
	shaper_read "$section"
	[ -n "$device" ] || return 0
	shaper_argument shape
	shaper_argument "$device"
	for name in up down; do
		config_get value "$section" "$name"
		[ -z "$value" ] || { shaper_argument "--$name"; shaper_argument "$value"; }
	done
	config_list_foreach "$section" options shaper_option
	shaper_argument --replace
	if [ "$mode" = fixed ]; then
		# The hotplug script sets it up when the interface appears.
		[ -d "/sys/class/net/$device" ] || return 0
		shaper_argument --quiet
		# A link without a shaper is better than no link: this never fails.
		eval "\"\$PROGRAM\" $arguments" || logger -t linerate "the shaper of $device was not set up"
	else
		shaper_argument "--$mode"
		procd_open_instance "$section"
		eval "procd_set_param command \"\$PROGRAM\" $arguments"
		procd_set_param respawn 3600 10 30
		procd_set_param netdev "$device"
		procd_set_param stderr 1
		procd_close_instance
	fi
	mkdir -p "$STATE"
	echo "$device $mode" > "$STATE/$section"
}

# Ends a section: its process first, which would set its shaper up again.
shaper_stop() {
	local section="$1" device mode
	read -r device mode < "$STATE/$section"
	procd_kill linerate "$section"
	rm -f "$STATE/$section"
	"$PROGRAM" shape "$device" off --quiet || logger -t linerate "the shaper of $device was not removed"
}

start_service() {
	config_load linerate
	config_foreach shaper_start shaper "$1"
}

stop_service() {
	local file
	for file in "$STATE"/*; do
		[ -f "$file" ] || continue
		[ -z "$1" ] || [ "$1" = "${file##*/}" ] || continue
		shaper_stop "${file##*/}"
	done
}

# Sections that are gone, switched off, or of another interface or mode end; the others follow their new options.
reload_service() {
	local file device mode was
	config_load linerate
	for file in "$STATE"/*; do
		[ -f "$file" ] || continue
		read -r was < "$file"
		shaper_read "${file##*/}"
		[ "$was" = "$device $mode" ] || shaper_stop "${file##*/}"
	done
	start
}

release() {
	procd_kill linerate "$1"
	if [ -n "$1" ]; then
		rm -f "$STATE/$1"
	else
		rm -rf "$STATE"
	fi
}

shaper_trigger() {
	local logical
	config_get logical "$1" interface
	[ -z "$logical" ] || procd_add_reload_interface_trigger "$logical"
}

service_triggers() {
	procd_add_reload_trigger linerate
	config_load linerate
	config_foreach shaper_trigger shaper
}
