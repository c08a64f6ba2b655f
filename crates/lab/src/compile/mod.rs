//! A description becomes a plan: every line of `ip` and `tc`, every kernel setting, every seed.
//!
//! Each link is a stretch of wire between two hosts. All its queues, delays and losses stand in a namespace of their own
//! ([`crate::plan::WIRE`]), so that nothing that is done there counts against a host: near:`eth0` — wire:`l0a` … wire:`l0b` —
//! far:`eth0`. What arrives at one end of the wire is filtered, goes through the stages of its direction, and leaves at
//! the other end. `docs/paths.md` says how each key is realised, and what is approximate.

mod address;
mod hosts;
mod netem;
mod queue;
mod seed;
pub(crate) mod sysctl;
mod traffic;
mod wire;

use linerate_units::ByteCount;

use crate::description::{Direction, PathDescription, Queue};
use crate::plan::{Namespace, Plan, Sysctl};
use crate::sizing::{self, Sized};

pub use seed::netem_seed;
pub use traffic::FIRST_TRAFFIC_PORT;

/// The plan of a path. The same description always gives the same plan.
#[must_use]
pub fn compile(path: &PathDescription) -> Plan {
    let sized = sizing::sized(path);
    let (wire, pairs, changes) = wire::wire(path);
    let mut namespaces: Vec<Namespace> = (0..path.hosts.len()).map(|index| hosts::namespace(path, index)).collect();
    namespaces.push(wire);
    Plan {
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

/// The settings of the whole system: near's own, and for those that it does not mention the figures that make two runs
/// on different machines the same.
fn system(path: &PathDescription, sized: &Sized) -> Vec<Sysctl> {
    let near = path.hosts.first().map(|host| host.sysctls.as_slice()).unwrap_or_default();
    let mut settings: Vec<Sysctl> =
        near.iter().filter(|setting| sysctl::is_system_wide(&setting.key)).cloned().collect();
    let defaults = [
        ("net.core.rmem_max", sysctl::DEFAULT_SOCKET_BUFFER.to_owned()),
        ("net.core.wmem_max", sysctl::DEFAULT_SOCKET_BUFFER.to_owned()),
        ("net.ipv4.tcp_mem", sized.tcp_mem.clone()),
        ("net.ipv4.tcp_allowed_congestion_control", congestion_controls(path)),
    ];
    for (key, value) in defaults {
        if !settings.iter().any(|setting| setting.key == key) {
            settings.push(Sysctl { key: key.to_owned(), value });
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

/// Whether the hosts of this path may hand over many segments as one, where they do not say themselves.
///
/// Such a super-packet of up to 64 KiB is one packet to the path: lost, delayed, marked or policed as a whole, and one
/// place in a queue. So they are only used where nothing of that kind is described and they save much time: on links of
/// at least 1 Gbit/s, with queues that hold at least 128 of them.
#[must_use]
pub fn offloads_fit(path: &PathDescription) -> bool {
    let round_trip = path.propagation();
    path.links.iter().all(|link| {
        [&link.forward, &link.backward].into_iter().all(|direction| {
            let Some(rate) = direction.rate else { return is_plain(direction) };
            let buffer = direction.buffer.map(|buffer| buffer.size(rate, round_trip, link.mtu));
            let is_counted_in_packets = matches!(direction.buffer, Some(crate::description::Buffer::Packets(_)));
            is_plain(direction)
                && rate.bits_per_second() >= FAST
                && !is_counted_in_packets
                && buffer.is_none_or(|size| size >= LARGE_BUFFER)
        })
    })
}

/// From here on, packets one by one cost more time than most would wait.
const FAST: f64 = 1e9;

/// 128 super-packets.
const LARGE_BUFFER: ByteCount = ByteCount::from_mebibytes(8);

/// Whether nothing in this direction treats packets one by one.
fn is_plain(direction: &Direction) -> bool {
    direction.policer.is_none()
        && direction.drop_larger_than.is_none()
        && !direction.bleach_ecn
        && direction.queue == Queue::Fifo
        && direction.jitter.is_none()
        && direction.loss.is_none()
        && direction.duplicate.is_none()
        && direction.corrupt.is_none()
        && direction.reorder.is_none()
}

/// Whether the host `index` of the path hands over super-packets.
fn has_offloads(path: &PathDescription, index: usize) -> bool {
    let own = path.hosts.get(index).and_then(|host| host.offload);
    own.unwrap_or_else(|| offloads_fit(path))
}

#[cfg(test)]
mod tests;
