#!/usr/bin/env bash
# debian.sh DIRECTORY DIRECTORY-OF-NEXT-REVISION: installs, uses, upgrades, downgrades, removes and purges the .deb of
# this machine in a fresh Debian. Needs root and mmdebstrap.
set -euo pipefail
# shellcheck source=packaging/check/library.sh
. "$(dirname "$0")/library.sh"

architecture=$(dpkg --print-architecture)
first=$(ls "$1"/linerate_*_"$architecture".deb)
next=$(ls "$2"/linerate_*_"$architecture".deb)
# shellcheck source=/dev/null
suite=$(. /etc/os-release; echo "${VERSION_CODENAME:-stable}")
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root

started=$SECONDS
make_debian "$suite" "$root" --skip=cleanup/apt/lists
cp "$first" "$root/first.deb"
cp "$next" "$root/next.deb"
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo "Debian $suite in $((SECONDS - started)) s"

# From the package to the first verdict, with the recommended iproute2.
started=$SECONDS
in_root_online "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y ./first.deb >"$work/apt.out" 2>&1 ||
    { cat "$work/apt.out"; fail "apt-get install"; }
installed=$((SECONDS - started))
in_root "$root" sh -c "PROGRAM=linerate; $measure"
verdict=$((SECONDS - started))
echo "apt-get install: $installed s; to the first verdict: $verdict s"
[ "$verdict" -lt 60 ] || fail "the first verdict took $verdict s, more than 60"

# What the package brings. minbase systems exclude manual pages: the list counts.
list=$(chroot "$root" dpkg -L linerate)
for file in /usr/bin/linerate /usr/share/man/man1/linerate-tune.1.gz /usr/share/bash-completion/completions/linerate \
    /usr/share/zsh/vendor-completions/_linerate /usr/share/fish/vendor_completions.d/linerate.fish \
    /usr/share/doc/linerate/copyright; do
    grep -qx "$file" <<<"$list" || fail "the package lacks $file"
done
plug_in=/usr/lib/pscheduler/classes/tool/linerate
[ "$(stat -c %a "$root$plug_in/run")" = 555 ] || fail "the plug-in's mode"
in_root "$root" "$plug_in/enumerate" </dev/null | grep -q '"name":"linerate"' || fail "the plug-in for pScheduler"
echo '{"test": {"type": "throughput", "spec": {"dest": "a"}}, "participant": 1}' >"$root/data.json"
in_root "$root" sh -c "$plug_in/participant-data </data.json" | grep -q '"port":5201' || fail "its port"
in_root "$root" "${plug_in%tool/*}test/diagnose/cli-to-spec" --dest a | grep -q '"dest":"a"' || fail "its test"
grep -q '/lib/systemd/system/linerate.service$' <<<"$list" || fail "the package lacks its unit"
[ -z "$(find "$root/etc/systemd" -name 'linerate*')" ] || fail "the server is enabled without being asked"

# A systemd that records what the scripts of packages ask of it, and a running server.
mkdir -p "$root/run/systemd/system" "$root/usr/local/bin"
cat >"$root/usr/local/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>/systemctl.log
END
chmod +x "$root/usr/local/bin/systemctl"
cp "$root/usr/local/bin/systemctl" "$root/bin/systemctl"

# asked TEXT: the last script asked systemd for it.
asked() {
    grep -q -- "$1" "$root/systemctl.log" || { cat "$root/systemctl.log"; fail "no request '$1' to systemd"; }
    : >"$root/systemctl.log"
}

# With a history, and with changes in effect, which the next and the first version have to find again.
cat >"$root/changes.sh" <<'END'
set -e
ip link add near type veth peer name far
ip link set near up
ip link set far up
history=$(linerate history list --json | grep -c '"id"')
linerate shape near --up 20M --down 50M >/tmp/shape.out 2>&1 || { cat /tmp/shape.out; exit 1; }
tc qdisc show dev near >/tmp/before
for package in next first; do
    dpkg --install /$package.deb >/tmp/dpkg.out 2>&1 || { cat /tmp/dpkg.out; exit 1; }
    echo "  $package: $(dpkg-query --show --showformat='${Version}' linerate)"
    tc qdisc show dev near | cmp - /tmp/before
    linerate rollback --list | grep -q '(in effect)'
    linerate shape near status >/dev/null
    [ "$(linerate history list --json | grep -c '"id"')" = "$history" ]
done
dpkg --remove linerate >/tmp/dpkg.out 2>&1
grep -q 'changes of this host stay in effect' /tmp/dpkg.out || { cat /tmp/dpkg.out; exit 1; }
tc qdisc show dev near | cmp - /tmp/before
dpkg --install /first.deb >/tmp/dpkg.out 2>&1
linerate rollback >/tmp/rollback.out 2>&1 || { cat /tmp/rollback.out; exit 1; }
! linerate rollback --list | grep -q '(in effect)'
! tc qdisc show dev near | cmp -s - /tmp/before
END
echo "upgrade, downgrade and removal with a shaper in effect"
in_root "$root" sh /changes.sh || fail "an upgrade or downgrade"
asked 'restart .*linerate.service'

# Files of a version that does not exist yet: refused with a message, and left as they are.
history=$(in_root "$root" linerate history path)
journal=$(find "$root/var/lib/linerate/changes" -name journal | head -1)
python3 - "$root$history" "$journal" <<'END'
import sqlite3, sys, zlib

connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode=DELETE")
connection.execute("PRAGMA user_version=99")
connection.commit()
with open(sys.argv[2]) as journal:
    heads = [line.rpartition(',"checksum":"')[0].replace('"schema":1,', '"schema":99,', 1) for line in journal]
with open(sys.argv[2], "w") as journal:
    for head in heads:
        journal.write('%s,"checksum":"%08x"}\n' % (head, zlib.crc32(head.encode())))
END
digests=$(sha256sum "$root$history" "$journal")
for command in 'history list' 'rollback --list' 'rollback'; do
    # shellcheck disable=SC2086 # the command's words
    message=$(in_root "$root" linerate $command 2>&1) || true
    grep -q -i 'newer' <<<"$message" || fail "linerate $command with newer files: $message"
    echo "  linerate $command: $(grep -i newer <<<"$message" | head -1 | cut -c1-100)"
done
[ "$digests" = "$(sha256sum "$root$history" "$journal")" ] || fail "files of a newer version were changed"

in_root "$root" dpkg --remove linerate >"$work/dpkg.out" 2>&1
asked 'stop .*linerate.service'
in_root "$root" dpkg --purge linerate >"$work/dpkg.out" 2>&1
left=$(cd "$root" && find . -xdev -path ./proc -prune -o -path ./dev -prune -o -name '*linerate*' -print | sort)
echo "left after purge: $(tr '\n' ' ' <<<"$left")"
expected="./root/.local/share/linerate
./var/lib/linerate"
[ "$left" = "$expected" ] || fail "purge leaves other files than the history and the journal"
[ "$digests" = "$(sha256sum "$root$history" "$journal")" ] || fail "purge changed the history or the journal"
echo "debian: passed"
