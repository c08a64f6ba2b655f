[ "$ACTION" = ifup ] || exit 0
/etc/init.d/linerate enabled || exit 0
. /lib/functions.sh

# Sets a section's shaper up again when its interface has come up.
shaper_ifup() {
	local device logical
	config_get device "$1" device
	config_get logical "$1" interface
	if [ -n "$logical" ]; then
		[ "$logical" = "$INTERFACE" ] || return 0
	else
		[ -n "$device" ] && [ "$device" = "$DEVICE" ] || return 0
	fi
	/etc/init.d/linerate start "$1"
}

config_load linerate
config_foreach shaper_ifup shaper
