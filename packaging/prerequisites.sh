#!/usr/bin/env bash
# Sees to it that the programs are there that a task needs: `prerequisites.sh build|demo|test|dist`.
#
# What is missing is installed through apt when that is allowed (root, or sudo that asks for no password). Otherwise
# this says exactly what to install, and fails if the task cannot do without it.
set -euo pipefail

task=${1:?usage: prerequisites.sh build|demo|test|dist}
required=()
useful=()

# require PROGRAM PACKAGE: the task fails without it. use PROGRAM PACKAGE: the task does less without it.
require() { command -v "$1" >/dev/null || required+=("$2"); }
use() { command -v "$1" >/dev/null || useful+=("$2"); }

if ! command -v cargo >/dev/null; then
    echo "cargo is missing. Install Rust from https://rustup.rs, then run this again." >&2
    exit 1
fi
# The cryptography library for iperf3's authentication is C. It needs a compiler, but no cmake.
command -v "${CC:-cc}" >/dev/null || required+=(gcc libc6-dev)

# Servers of NATS, at the locked version: distributions have older ones. crates/nats/tests/support/mod.rs names it, too.
nats_version=2.15.2
nats_server=${XDG_CACHE_HOME:-$HOME/.cache}/linerate/nats-server-$nats_version

# The lab: `lab HOW` with require or use. Its kernel is built from the distribution's sources once; paths are set up with
# ip and tc.
lab() {
    # The kernel's build: its language, its configuration's, its arithmetic; its sources come as an archive.
    "$1" gcc gcc
    "$1" make make
    "$1" ld binutils
    "$1" flex flex
    "$1" bison bison
    "$1" bc bc
    "$1" xz xz-utils
    # The lab itself. Administration programs are not in everybody's PATH.
    PATH=$PATH:/usr/sbin:/sbin "$1" tc iproute2
    "$1" ping iputils-ping
}

# Packages of Debian and of Fedora, and what checks them in systems that it makes.
packages() {
    require dh debhelper
    require rpmbuild rpm
    require lintian lintian
    require rpmlint rpmlint
    require mmdebstrap mmdebstrap
    require systemd-analyze systemd
    require nix-instantiate nix-bin
}

case $task in
build) ;;
dist)
    packages
    # Static programs of both processors in further systems, and the container image.
    require qemu-aarch64-static qemu-user-static
    require busybox busybox-static
    require umoci umoci
    require skopeo skopeo
    # The static program runs the lab.
    lab require
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || required+=(debian-archive-keyring)
    python3 -c 'import ensurepip' 2>/dev/null || required+=(python3-venv)
    ;;
demo)
    use iperf3 iperf3
    lab use
    ;;
test)
    require iperf3 iperf3
    lab require
    # Tests that need root: rules of a firewall in a network namespace.
    PATH=$PATH:/usr/sbin:/sbin require nft nftables
    # Hosts over ssh: an sshd in a network namespace.
    PATH=$PATH:/usr/sbin:/sbin require sshd openssh-server
    require ssh openssh-client
    # The live picture is looked at in a terminal.
    require tmux tmux
    # The HTML report is looked at in a browser.
    require node nodejs
    require npm npm
    command -v chromium >/dev/null || required+=(chromium fonts-dejavu-core)
    # Links in the lab without segmentation by the sender.
    PATH=$PATH:/usr/sbin:/sbin require ethtool ethtool
    # Exports are checked by the tools that read them.
    require ansible-lint ansible-lint
    require ansible-playbook ansible-core
    require yamllint yamllint
    require shellcheck shellcheck
    # The scripts for OpenWrt run in BusyBox's shell.
    require busybox busybox
    # Metrics and alerts are checked by Prometheus, receivers behind TLS have certificates of openssl.
    require promtool prometheus
    require openssl openssl
    packages
    PATH=$PATH:/usr/sbin:/sbin require sysctl procps
    require udevadm udev
    python3 -c 'import ensurepip' 2>/dev/null || required+=(python3-venv)
    # Servers of NATS for the tests of fleets, and certificates for them.
    require openssl openssl
    [ -x "$nats_server/nats-server" ] || require go golang-go
    # A test checks that clippy refuses what the pure crates ban.
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
    ;;
*)
    echo "prerequisites.sh: unknown task $task" >&2
    exit 2
    ;;
esac

# What the browser's tests are written with, at the locked versions; nothing of it runs while it is installed.
node_packages() {
    local folder
    folder=$(dirname "$0")/../tests/browser
    if [ "$task" = test ] && ! [ "$folder/node_modules/.package-lock.json" -nt "$folder/package-lock.json" ]; then
        npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund
    fi
}

# The validator of Kubernetes' schemas, at the locked version: distributions have no package of it.
python_packages() {
    local folder
    folder=$(dirname "$0")/../tests/linters
    if [ "$task" = test ] && ! [ "$folder/venv/installed" -nt "$folder/requirements.txt" ]; then
        python3 -m venv "$folder/venv"
        "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
            -r "$folder/requirements.txt"
        touch "$folder/venv/installed"
    fi
}

go_packages() {
    if [ "$task" = test ] && ! [ -x "$nats_server/nats-server" ]; then
        # From 1.21 on, Go fetches the version that the module asks for.
        GOBIN=$nats_server GOTOOLCHAIN=auto GOFLAGS=-trimpath \
            go install "github.com/nats-io/nats-server/v2@v$nats_version" ||
            echo "Go 1.21 or later is needed for nats-server (https://go.dev/dl): its tests will fail as not run." >&2
    fi
}

wanted=("${required[@]}" "${useful[@]}")
if [ ${#wanted[@]} -eq 0 ]; then
    node_packages
    python_packages
    go_packages
    exit 0
fi

install_with_apt() {
    local elevate=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || return 1
        elevate=(sudo -n)
    fi
    command -v apt-get >/dev/null || return 1
    echo "installing with apt: ${wanted[*]}"
    local apt=("${elevate[@]}" env DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -q -o DPkg::Lock::Timeout=120)
    local install=("${apt[@]}" install -y --no-install-recommends "${wanted[@]}")
    # A fresh container has no package lists yet, an old one has stale ones: both show as a failed install.
    "${install[@]}" || { "${apt[@]}" update && "${install[@]}"; }
}

# The package prometheus starts its server, where the tests only use the programs. One that was there before is left alone.
stop_new_services() {
    case " ${wanted[*]} " in
    *" prometheus "*)
        local elevate=()
        [ "$(id -u)" -eq 0 ] || elevate=(sudo -n)
        if [ -d /run/systemd/system ]; then
            "${elevate[@]}" systemctl disable --now prometheus.service
        elif [ -x /etc/init.d/prometheus ]; then
            "${elevate[@]}" /etc/init.d/prometheus stop || true
        fi
        ;;
    esac
}

if install_with_apt; then
    stop_new_services
    node_packages
    python_packages
    go_packages
    exit 0
fi
echo "Could not install: ${wanted[*]}" >&2
echo "Please run as root:  apt-get install ${wanted[*]}" >&2
if [ ${#required[@]} -gt 0 ]; then
    exit 1
fi
echo "Going on without." >&2
