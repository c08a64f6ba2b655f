//! Compiles a description into a plan: every line of `ip` and `tc`, every kernel setting, every seed.
//!
//! Each link is a stretch of wire between two hosts. All its queues, delays and losses are in a namespace of their own
//! ([`crate::plan::WIRE`]), so that none of them counts against a host: near:`eth0` — wire:`l0a` … wire:`l0b` —
//! far:`eth0`. Packets that arrive at one end of the wire are filtered, pass the stages of their direction, and leave
//! at the other end. `docs/paths.md` documents how each key is implemented, and what is approximate.

pub(crate) mod address;
mod hosts;
mod netem;
mod queue;
mod seed;
pub(crate) mod sender;
pub(crate) mod sysctl;
mod traffic;
mod wire;

use linerate_units::ByteCount;

use crate::description::{BottleneckQueue, LinkDirection, PathDescription};
use crate::plan::{NamespacePlan, PathPlan, SysctlSetting};
use crate::sizing::{self, PathSizing};

pub use seed::netem_seed;
pub use traffic::FIRST_TRAFFIC_PORT;

/// The plan of a path. The same description always gives the same plan.
#[must_use]
pub fn compile(path: &PathDescription) -> PathPlan {
    let sized = sizing::sized(path);
    let (wire, pairs, changes) = wire::wire(path);
    let mut namespaces: Vec<NamespacePlan> = (0..path.hosts.len()).map(|index| hosts::namespace(path, index)).collect();
    namespaces.push(wire);
    PathPlan {
        path: path.name.clone(),
        system: system(path, &sized),
        namespaces,
        pairs,
        names: address::names(path),
        sizing: sized.sizing,
        traffic: traffic::traffic(path),
        changes,
    }
}

/// Settings of the whole system: near's own, else values that make two runs on different machines the same.
fn system(path: &PathDescription, sized: &PathSizing) -> Vec<SysctlSetting> {
    let near = path.hosts.first().map(|host| host.sysctls.as_slice()).unwrap_or_default();
    let mut settings: Vec<SysctlSetting> =
        near.iter().filter(|setting| sysctl::is_system_wide(&setting.key)).cloned().collect();
    let defaults = [
        ("net.core.rmem_max", sysctl::DEFAULT_SOCKET_BUFFER.to_owned()),
        ("net.core.wmem_max", sysctl::DEFAULT_SOCKET_BUFFER.to_owned()),
        ("net.ipv4.tcp_mem", sized.tcp_mem.clone()),
        ("net.ipv4.tcp_allowed_congestion_control", congestion_controls(path)),
    ];
    for (key, value) in defaults {
        if !settings.iter().any(|setting| setting.key == key) {
            settings.push(SysctlSetting { key: key.to_owned(), value });
        }
    }
    settings
}

/// All congestion controls of the path: a namespace other than the first can only use those that the system allows.
fn congestion_controls(path: &PathDescription) -> String {
    let hosts = path.hosts.iter().map(|host| host.congestion_control.as_str());
    let traffic = path.traffic.iter().filter_map(|traffic| traffic.congestion_control.as_deref());
    let mut names = vec!["reno", "cubic"];
    for name in hosts.chain(traffic) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" ")
}

/// True when the hosts of this path may send many segments as one packet, where they do not specify it themselves.
///
/// Such a super-packet of up to 64 KiB is one packet to the path: lost, delayed, marked or policed as a whole, and one
/// slot in a queue. They are used only where nothing of that kind is described and they save much time: on links of at
/// least 1 Gbit/s, with queues that hold at least 128 of them.
#[must_use]
pub fn offloads_fit(path: &PathDescription) -> bool {
    let round_trip = path.propagation();
    path.links.iter().all(|link| {
        [&link.forward, &link.backward].into_iter().all(|direction| {
            let Some(rate) = direction.rate else { return allows_super_packets(direction) };
            let buffer = direction.buffer_size(round_trip, link.mtu);
            let is_counted_in_packets = matches!(direction.buffer, Some(crate::description::BufferSize::Packets(_)));
            allows_super_packets(direction)
                && rate.bits_per_second() >= MIN_OFFLOAD_RATE
                && !is_counted_in_packets
                && buffer.is_none_or(|size| size >= MIN_OFFLOAD_BUFFER)
        })
    })
}

/// Rate from which single packets cost too much time.
const MIN_OFFLOAD_RATE: f64 = 1e9;

/// 128 super-packets.
const MIN_OFFLOAD_BUFFER: ByteCount = ByteCount::from_mebibytes(8);

/// True when nothing in this direction treats packets one by one.
fn allows_super_packets(direction: &LinkDirection) -> bool {
    direction.policer.is_none()
        && direction.drop_larger_than.is_none()
        && !direction.bleach_ecn
        && !direction.rewrite_ect1
        && direction.queue == BottleneckQueue::Fifo
        && direction.jitter.is_none()
        && direction.loss.is_none()
        && direction.duplicate.is_none()
        && direction.corrupt.is_none()
        && direction.reorder.is_none()
        && direction.layer.is_virtual_ethernet()
}

/// True when the host `index` of the path sends super-packets.
fn has_offloads(path: &PathDescription, index: usize) -> bool {
    let own = path.hosts.get(index).and_then(|host| host.offload);
    own.unwrap_or_else(|| offloads_fit(path))
}

#[cfg(test)]
mod tests;
