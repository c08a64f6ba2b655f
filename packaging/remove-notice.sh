#!/bin/sh
# Part of the scripts that run before .deb and .rpm are removed: names what linerate has changed on this host, while the
# program that rolls it back is still there. `cargo xtask dist` puts the commands below into both.

if linerate rollback --list 2>/dev/null | grep -q '(in effect)'; then
    echo "linerate: its changes of this host stay in effect. To undo them, install it again and run 'linerate rollback'." >&2
fi
for unit in /etc/systemd/system/linerate-shape-*.service; do
    if [ -e "$unit" ]; then
        echo "linerate: $unit starts a shaper at boot and fails without linerate. Remove it, or install linerate again." >&2
    fi
done
