#!/usr/bin/env bash
# systems.sh DIRECTORY: runs the static programs of the tarballs and of the .rpm in other systems: Debian 11, BusyBox
# alone as on Alpine, a root that only rpm has filled, and the container image; aarch64 under qemu. Needs root.
set -euo pipefail
# shellcheck source=packaging/check/library.sh
. "$(dirname "$0")/library.sh"

directory=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
machine=$(uname -m)

# emulator PROCESSOR ROOT: makes programs of that processor run in the root; prints the prefix of their commands.
emulator() {
    [ "$1" = "$machine" ] && return
    cp "$(command -v "qemu-$1-static")" "$2/usr/bin/qemu"
    echo "/usr/bin/qemu "
}

# busybox_root ROOT: nothing but BusyBox.
busybox_root() {
    mkdir -p "$1"/{bin,usr/bin,tmp,root,etc}
    cp "$(command -v busybox)" "$1/bin/busybox"
    chroot "$1" /bin/busybox --install -s /bin
    ln -sf /bin/env "$1/usr/bin/env"
}

# try NAME ROOT PROCESSOR PROGRAM: measures in the root.
try() {
    local prefix
    echo "$1, $3"
    prefix=$(emulator "$3" "$2")
    in_root "$2" /bin/sh -c "PROGRAM='$prefix$4'; $measure" || fail "$1, $3"
}

for processor in x86_64 aarch64; do
    tarball=$(ls "$directory"/linerate-*-"$processor"-linux-musl.tar.gz 2>/dev/null) || continue
    root=$work/busybox-$processor
    busybox_root "$root"
    mkdir -p "$root/usr/local"
    tar --extract --gzip --strip-components=1 --directory "$root/usr/local" --file "$tarball"
    try "BusyBox alone" "$root" "$processor" /usr/local/bin/linerate

    root=$work/rpm-$processor
    busybox_root "$root"
    rpm --root "$root" --initdb
    # A database without other packages: nothing in it provides the shell that is there.
    rpm --root "$root" --install --nodeps --ignorearch "$directory"/linerate-*."$processor".rpm
    rpm --root "$root" --verify --nodeps linerate || fail "rpm --verify"
    try "rpm --root" "$root" "$processor" /usr/bin/linerate
    rpm --root "$root" --erase --nodeps linerate
    [ ! -e "$root/usr/bin/linerate" ] || fail "rpm --erase leaves the program"
    rm -rf --one-file-system "$root"
done

if make_debian bullseye "$work/debian-11"; then
    for processor in x86_64 aarch64; do
        tarball=$(ls "$directory"/linerate-*-"$processor"-linux-musl.tar.gz 2>/dev/null) || continue
        tar --extract --gzip --strip-components=1 --directory "$work/debian-11/usr/local" --file "$tarball"
        try "Debian 11, $(chroot "$work/debian-11" ldd --version | head -1 | grep -o '[^ ]*$')" "$work/debian-11" \
            "$processor" /usr/local/bin/linerate
    done
    rm -rf --one-file-system "$work/debian-11"
else
    fail "no Debian 11 from this mirror"
fi

image=$(ls "$directory"/linerate-*-oci.tar)
# Of the image's processors, skopeo chooses that of this machine.
skopeo --insecure-policy copy --quiet "oci-archive:$image" "oci:$work/image:one" || fail "skopeo does not read the image"
umoci raw unpack --image "$work/image:one" "$work/image-root" || fail "umoci does not unpack the image"
in_root_image() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --net --pid --fork --kill-child bash -c '
        ip link set lo up
        mkdir -p "$0/proc"
        mount -t proc proc "$0/proc"
        chroot --userspec=65534:65534 "$0" /usr/bin/linerate serve &
        until chroot --userspec=65534:65534 "$0" /usr/bin/linerate test 127.0.0.1 --up -P 1 -t 1 -q --brief; do
            [ $((tries += 1)) -lt 100 ] || exit 1
        done 2>/dev/null' "$1"
}
echo "container image: $(find "$work/image-root" -type f | wc -l) file, as user 65534"
in_root_image "$work/image-root" || fail "the image's program"
echo "systems: passed"
