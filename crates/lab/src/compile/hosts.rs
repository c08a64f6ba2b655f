//! A host: its settings, its devices, its routes.

use super::address::{self, LinkEnd};
use super::has_offloads;
use super::netem::bits;
use super::sysctl;
use crate::description::{EmulatedLink, HostDescription, PARALLEL, PathDescription};
use crate::plan::{NamespacePlan, SysctlSetting};

/// A device of a host, by its link.
#[derive(Clone, Copy)]
struct HostDevice {
    link: usize,
    /// End of the link at which the host is.
    end: LinkEnd,
}

impl HostDevice {
    const fn name(self) -> &'static str {
        address::host_device(self.link, self.end)
    }
}

/// The namespace of the host `index`.
pub(super) fn namespace(path: &PathDescription, index: usize) -> NamespacePlan {
    let host = &path.hosts[index];
    let devices = devices(path, index);
    let names = || devices.iter().map(|device| device.name().to_owned());
    let tc = names().flat_map(|name| queueing_lines(&name, host));
    NamespacePlan {
        name: host.name.clone(),
        sysctls: sysctls(path, index),
        without_offloads: if has_offloads(path, index) { Vec::new() } else { names().collect() },
        ip: ip_lines(path, &devices),
        tc: tc.collect(),
        seeds: Vec::new(),
        server: host.server.clone(),
    }
}

/// Root discipline of a device, and its rate: `fq` limits each flow itself, all others are inside of an `htb` class.
fn queueing_lines(device: &str, host: &HostDescription) -> Vec<String> {
    let root = |words: &str| format!("qdisc replace dev {device} root handle 1: {words}");
    match (host.queueing.as_deref(), host.queueing_rate) {
        (None, None) => Vec::new(),
        (Some(queueing), None) => vec![root(queueing)],
        (Some("fq"), Some(rate)) => vec![root(&format!("fq maxrate {}", bits(rate)))],
        (queueing, Some(rate)) => {
            let class = format!("class add dev {device} parent 1: classid 1:1 htb rate {} quantum 60000", bits(rate));
            let inner = queueing.map(|words| format!("qdisc add dev {device} parent 1:1 handle 10: {words}"));
            [root("htb default 1"), class].into_iter().chain(inner).collect()
        }
    }
}

/// The host's devices, the one towards near first, those at second parallel links last.
fn devices(path: &PathDescription, index: usize) -> Vec<HostDevice> {
    let towards_near = index.checked_sub(1).map(|link| HostDevice { link, end: LinkEnd::Far });
    let towards_far = (index < path.links.len()).then_some(HostDevice { link: index, end: LinkEnd::Near });
    let single: Vec<HostDevice> = towards_near.into_iter().chain(towards_far).collect();
    let parallel = single.iter().filter(|device| path.link(device.link).is_parallel);
    let second: Vec<HostDevice> =
        parallel.map(|device| HostDevice { link: device.link + PARALLEL, ..*device }).collect();
    [single, second].concat()
}

/// Settings of the hosts at a parallel link: the one at its near end chooses by addresses and ports, the one at its far end
/// sends ICMP errors from the address at which a packet arrived, so that the link is seen.
fn parallel_settings(path: &PathDescription, index: usize) -> Vec<(&'static str, &'static str)> {
    let is_parallel = |link: Option<&EmulatedLink>| link.is_some_and(|link| link.is_parallel);
    let mut settings = Vec::new();
    if is_parallel(path.links.get(index)) {
        settings.push(("net.ipv4.fib_multipath_hash_policy", "1"));
        settings.extend(path.has_ipv6().then_some(("net.ipv6.fib_multipath_hash_policy", "1")));
    }
    if is_parallel(index.checked_sub(1).and_then(|link| path.links.get(link))) {
        settings.push(("net.ipv4.icmp_errors_use_inbound_ifaddr", "1"));
    }
    settings
}

/// Settings of this namespace: the lab's defaults, overridden by the host's own.
fn sysctls(path: &PathDescription, index: usize) -> Vec<SysctlSetting> {
    let host = &path.hosts[index];
    let is_router = index > 0 && index < path.links.len();
    let forward = if is_router { "1" } else { "0" };
    let mut settings = vec![
        ("net.ipv4.ip_forward", forward),
        ("net.ipv4.tcp_congestion_control", host.congestion_control.as_str()),
        ("net.ipv4.tcp_rmem", sysctl::DEFAULT_TCP_RMEM),
        ("net.ipv4.tcp_wmem", sysctl::DEFAULT_TCP_WMEM),
        // Metrics that one connection has cached of a path would change the next one.
        ("net.ipv4.tcp_no_metrics_save", "1"),
        // Tests with ping need each answer.
        ("net.ipv4.icmp_ratelimit", "0"),
    ];
    settings.extend(parallel_settings(path, index));
    if path.has_ipv6() {
        settings.push(("net.ipv6.conf.all.forwarding", forward));
    } else {
        settings.push(("net.ipv6.conf.all.disable_ipv6", "1"));
        settings.push(("net.ipv6.conf.default.disable_ipv6", "1"));
    }
    let own = host.sysctls.iter().filter(|setting| !sysctl::is_system_wide(&setting.key));
    settings
        .into_iter()
        .filter(|(key, _)| host.sysctls.iter().all(|setting| setting.key != *key))
        .map(|(key, value)| SysctlSetting { key: key.to_owned(), value: value.to_owned() })
        .chain(own.cloned())
        .collect()
}

fn ip_lines(path: &PathDescription, devices: &[HostDevice]) -> Vec<String> {
    let mut lines = vec!["link set dev lo up".to_owned()];
    for device in devices {
        device_lines(path, *device, &mut lines);
    }
    for device in devices {
        route_lines(path, *device, &mut lines);
    }
    lines
}

/// The device, its addresses and its neighbour. No link-local address, no duplicate address detection, no neighbour
/// discovery: the first packet on the wire is the first that a program sends.
fn device_lines(path: &PathDescription, device: HostDevice, lines: &mut Vec<String>) {
    let HostDevice { link, end } = device;
    let name = device.name();
    let neighbour = address::host_mac(link, end.other());
    let mtu = path.link(link).mtu;
    // A device without IPv6 does not accept this keyword.
    let without_link_local = if path.has_ipv6() { " addrgenmode none" } else { "" };
    lines.push(format!("link set dev {name} mtu {mtu}{without_link_local}"));
    lines.push(format!("link set dev {name} up"));
    lines.push(format!("addr add {}/30 dev {name}", address::ipv4(link, end)));
    let ipv4 = address::ipv4(link, end.other());
    lines.push(format!("neigh replace {ipv4} lladdr {neighbour} dev {name} nud permanent"));
    if path.has_ipv6() {
        lines.push(format!("addr add {}/64 dev {name} nodad", address::ipv6(link, end)));
        let ipv6 = address::ipv6(link, end.other());
        lines.push(format!("neigh replace {ipv6} lladdr {neighbour} dev {name} nud permanent"));
    }
}

/// Routes to the networks behind the neighbour at this device; over both of two parallel links away from near.
fn route_lines(path: &PathDescription, device: HostDevice, lines: &mut Vec<String>) {
    let HostDevice { link, end } = device;
    if link >= PARALLEL {
        return;
    }
    let behind = match end {
        LinkEnd::Far => 0..link,
        LinkEnd::Near => link + 1..path.links.len(),
    };
    let both = end == LinkEnd::Near && path.link(link).is_parallel;
    let through = |address: &dyn Fn(usize) -> String| {
        if both {
            format!("nexthop via {} nexthop via {}", address(link), address(link + PARALLEL))
        } else {
            format!("via {}", address(link))
        }
    };
    for network in behind {
        let next = through(&|link| address::ipv4(link, end.other()).to_string());
        lines.push(format!("route add {}/30 {next}", address::ipv4_network(network)));
        if path.has_ipv6() {
            let next = through(&|link| address::ipv6(link, end.other()).to_string());
            lines.push(format!("route add {}/64 {next}", address::ipv6_network(network)));
        }
    }
}
