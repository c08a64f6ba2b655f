# Functions of the checks of packages; sourced, not run.
# shellcheck shell=bash

# fail MESSAGE: ends the check.
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# in_root ROOT COMMAND...: runs a command in a root directory with its own processes, mounts and network, which is
# loopback only. All that it starts ends with it.
in_root() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --net --pid --fork --kill-child bash -c '
        set -e
        root=$1; shift
        ip link set lo up
        mkdir -p "$root/proc" "$root/dev" "$root/sys" "$root/tmp"
        mount -t proc proc "$root/proc"
        mount -t sysfs sysfs "$root/sys"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME=/root LC_ALL=C.UTF-8 "$@"' bash "$@"
}

# in_root_online ROOT COMMAND...: the same with the network of the host, for a package manager.
in_root_online() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --fork --kill-child bash -c '
        set -e
        root=$1; shift
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" "$@"' bash "$@"
}

# make_debian SUITE ROOT [OPTION...]: a Debian of that release, with apt.
make_debian() {
    local suite=$1 root=$2
    shift 2
    mmdebstrap --quiet --mode=root --variant=apt --format=directory --dpkgopt=force-unsafe-io \
        "$@" "$suite" "$root" >"$root.log" 2>&1 ||
        { tail -5 "$root.log" >&2; return 1; }
}

# The measurement that each system has to do: version, a test over loopback to its verdict, and an audit. PROGRAM is the
# command of linerate; a shell script for the root, for any POSIX shell.
# shellcheck disable=SC2016,SC2034 # expanded in the root, by the scripts that source this file
measure='
set -e
version=$($PROGRAM --version)
echo "  $version"
$PROGRAM serve >/tmp/serve.out 2>&1 &
server=$!
tries=0
until $PROGRAM test 127.0.0.1 --up -P 1 -t 1 -q >/tmp/test.out 2>/tmp/test.err; do
    # A test that fails for another reason than a server that still starts fails again.
    tries=$((tries + 1))
    if [ $tries -ge 100 ] || ! grep -q refused /tmp/test.err; then cat /tmp/test.out /tmp/test.err; exit 1; fi
done
grep -E -m 1 "bit/s" /tmp/test.out
status=0
$PROGRAM audit >/tmp/audit.out 2>/tmp/audit.err || status=$?
# 1: it has findings.
if [ $status -gt 1 ]; then cat /tmp/audit.out /tmp/audit.err; exit 1; fi
echo "  audit: $(wc -l </tmp/audit.out) lines, exit code $status"
kill $server
'
