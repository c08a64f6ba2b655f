//! Networks for tests.

use core::time::Duration;

use crate::command;
use crate::namespace::{self, NetworkNamespace};

/// Three network namespaces in a row: near, router, far. Addresses are 10.99.1.1 and `fd99:1::1` (near), 10.99.1.2 and
/// `fd99:1::2`, 10.99.2.1 and `fd99:2::1` (router), 10.99.2.2 and `fd99:2::2` (far).
pub(crate) struct NamespaceChain {
    pub(crate) near: NetworkNamespace,
    pub(crate) router: NetworkNamespace,
    pub(crate) far: NetworkNamespace,
}

impl NamespaceChain {
    /// The second link has this MTU. Needs root and ip.
    pub(crate) fn new(mtu: u32) -> Self {
        let create = || NetworkNamespace::create().expect("root");
        let chain = Self { near: create(), router: create(), far: create() };
        chain.router.within(|| chain.link(mtu)).expect("entered");
        chain.near.within(|| end("near0", "1", "1", "2")).expect("entered");
        chain.far.within(|| end("far0", "2", "2", "1")).expect("entered");
        chain
    }

    fn link(&self, mtu: u32) {
        for (device, other, namespace) in [("r1", "near0", &self.near), ("r2", "far0", &self.far)] {
            ip(&["link", "add", device, "type", "veth", "peer", "name", other]);
            let there = format!(
                "/proc/{}/fd/{}",
                std::process::id(),
                std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(namespace))
            );
            ip(&["link", "set", other, "netns", &there]);
        }
        namespace::take_loopback_up().expect("up");
        for switch in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/net/{switch}"), "1").expect("this namespace's");
        }
        address("r1", "10.99.1.2/24", "fd99:1::2/64");
        address("r2", "10.99.2.1/24", "fd99:2::1/64");
        ip(&["link", "set", "r2", "mtu", &mtu.to_string()]);
    }
}

fn end(device: &str, network: &str, own: &str, router: &str) {
    namespace::take_loopback_up().expect("up");
    address(device, &format!("10.99.{network}.{own}/24"), &format!("fd99:{network}::{own}/64"));
    ip(&["route", "add", "default", "via", &format!("10.99.{network}.{router}")]);
    ip(&["-6", "route", "add", "default", "via", &format!("fd99:{network}::{router}")]);
}

fn address(device: &str, ipv4: &str, ipv6: &str) {
    ip(&["address", "add", ipv4, "dev", device]);
    ip(&["address", "add", ipv6, "dev", device, "nodad"]);
    ip(&["link", "set", device, "up"]);
}

fn ip(arguments: &[&str]) {
    command::run_checked("ip", arguments, None, Duration::from_secs(10)).expect("ip");
}
