//! How much memory a path needs, so that nothing but what is described limits it.
//!
//! Linux counts the memory of all TCP sockets together, and starts to refuse at `net.ipv4.tcp_mem`, whose default is a
//! share of the machine's memory. A path of 10 Gbit/s and 117 ms that is emulated in a small guest would measure that
//! default. So the guest gets what the connections can hold at once, and `tcp_mem` is set to fit.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, display};

use crate::compile::sysctl;
use crate::description::{Direction, Host, PathDescription, TrafficProtocol};
use crate::plan::Sizing;

/// Streams that a test opens in parallel unless told otherwise.
const STREAMS: u64 = 4;

/// What a kernel with its programs needs besides the sockets.
const SYSTEM: ByteCount = ByteCount::from_mebibytes(768);

/// No guest gets less.
const LEAST: ByteCount = ByteCount::from_mebibytes(1024);

/// Guests come in these steps.
const STEP: u64 = 256 << 20;

/// The kernel counts `tcp_mem` in these.
const PAGE: u64 = 4096;

/// Memory that a byte in flight takes at one end: buffers are counted with the kernel's own structures, almost as much
/// again at an MTU of 1500, and grow to twice what is in flight.
const PER_BYTE: u64 = 4;

/// The result: the guest's memory, and `net.ipv4.tcp_mem` as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sized {
    /// What the guest gets, with the reason.
    pub sizing: Sizing,
    /// Low, pressure and high, in pages.
    pub tcp_mem: String,
}

/// Sizes the guest of a path. A `tcp_mem` that the description sets stays as it is.
#[must_use]
pub fn sized(path: &PathDescription) -> Sized {
    let own = path.hosts.first().and_then(|near| setting(near, "net.ipv4.tcp_mem"));
    let needed = sockets(path);
    let own_limit = own.and_then(sysctl::triple).map(|[_, _, high]| high * PAGE);
    // Sockets cannot take more than the limit allows them.
    let taken = own_limit.map_or(needed, |limit| limit.min(needed));
    let memory = round_up((taken + taken_by_pages(taken) + SYSTEM).max(LEAST));
    let tcp_mem = own.map_or_else(|| thresholds(needed.max(share_of(memory))), str::to_owned);
    let reason = match own_limit {
        Some(limit) => format!(
            "{} of memory for a system whose TCP sockets may hold {} together, because the path sets net.ipv4.tcp_mem \
             itself",
            display::size_binary(memory),
            display::size_binary(limit)
        ),
        None => reason(path, memory, needed),
    };
    Sized { sizing: Sizing { memory, reason }, tcp_mem }
}

fn reason(path: &PathDescription, memory: ByteCount, needed: ByteCount) -> String {
    let forward = Flow::of(path, true);
    let holds = match forward.path_holds {
        Some(size) => format!("the path holds {} in flight and in its queue", display::size_binary(size)),
        None => "no queue of the path is bounded, so windows decide".to_owned(),
    };
    format!(
        "{} of memory: the sockets of {STREAMS} streams at once can hold {} (send buffers up to {}, receive buffers up \
         to {}; {holds})",
        display::size_binary(memory),
        display::size_binary(needed),
        display::size_binary(forward.send),
        display::size_binary(forward.receive),
    )
}

/// What all sockets can hold at once.
fn sockets(path: &PathDescription) -> ByteCount {
    let flows = [Flow::of(path, true), Flow::of(path, false)];
    let parallel = flows.iter().map(|flow| flow.streams(STREAMS)).max().unwrap_or_default();
    let both_ways = flows.iter().map(|flow| flow.streams(1)).sum();
    let traffic: ByteCount = path
        .traffic
        .iter()
        .filter(|traffic| traffic.protocol == TrafficProtocol::Tcp)
        .map(|traffic| flows[usize::from(traffic.from != crate::plan::NEAR)].streams(traffic.streams.get()))
        .sum();
    parallel.max(both_ways) + traffic
}

/// What limits the memory of one connection.
struct Flow {
    /// The largest send buffer.
    send: ByteCount,
    /// The largest receive buffer.
    receive: ByteCount,
    /// What fits into the path and its queues; `None` without a limit.
    path_holds: Option<ByteCount>,
}

impl Flow {
    fn of(path: &PathDescription, forward: bool) -> Self {
        let ends = (path.hosts.first(), path.hosts.last());
        let (sender, receiver) = if forward { ends } else { (ends.1, ends.0) };
        let largest =
            |host: Option<&Host>, key, default| host.map_or(ByteCount::ZERO, |host| maximum(host, key, default));
        Self {
            send: largest(sender, "net.ipv4.tcp_wmem", sysctl::DEFAULT_TCP_WMEM),
            receive: largest(receiver, "net.ipv4.tcp_rmem", sysctl::DEFAULT_TCP_RMEM),
            path_holds: path_holds(path, forward),
        }
    }

    /// The memory of that many parallel connections. All senders together have in flight what the path holds; what a
    /// receiver has not yet read is bounded by its buffer alone.
    fn streams(&self, count: u64) -> ByteCount {
        let bound = |buffer: ByteCount| match self.path_holds {
            Some(holds) => (buffer * count).min(holds * PER_BYTE + buffer),
            None => buffer * count,
        };
        bound(self.send) + bound(self.receive)
    }
}

/// The bytes that fit into one direction of the path: its bandwidth-delay product and all its queues. `None` where a
/// queue has no limit, or nothing has a rate.
fn path_holds(path: &PathDescription, forward: bool) -> Option<ByteCount> {
    let round_trip = path.propagation();
    let directions = path.links.iter().map(|link| (if forward { &link.forward } else { &link.backward }, link.mtu));
    let mut slowest: Option<BitRate> = None;
    let mut queues = ByteCount::ZERO;
    for (direction, mtu) in directions {
        let Some(rate) = rate_of(direction) else { continue };
        slowest = Some(slowest.map_or(rate, |slowest| slowest.min(rate)));
        if let Some(rate) = direction.rate {
            queues += direction.buffer?.size(rate, round_trip, mtu);
        }
    }
    slowest.map(|rate| rate * round_trip.max(Duration::from_millis(1)) + queues)
}

/// A direction's rate, or that of its policer where it is lower.
fn rate_of(direction: &Direction) -> Option<BitRate> {
    let policed = direction.policer.map(|policer| policer.rate);
    [direction.rate, policed].into_iter().flatten().min()
}

/// The value of a setting that the description gives to a host.
pub(crate) fn setting<'a>(host: &'a Host, key: &str) -> Option<&'a str> {
    host.sysctls.iter().find(|setting| setting.key == key).map(|setting| setting.value.as_str())
}

/// The third number of a setting, or that of the lab's default.
pub(crate) fn maximum(host: &Host, key: &str, default: &str) -> ByteCount {
    let numbers = setting(host, key).and_then(sysctl::triple).or_else(|| sysctl::triple(default));
    numbers.map_or(ByteCount::ZERO, |[_, _, high]| high)
}

/// The kernel's tables of pages and what is lost to rounding: an eighth.
fn taken_by_pages(size: ByteCount) -> ByteCount {
    ByteCount::new(size.get() / 8)
}

/// What the kernel itself would let TCP sockets have: a sixteenth of the memory.
fn share_of(memory: ByteCount) -> ByteCount {
    ByteCount::new(memory.get() / 16)
}

fn round_up(size: ByteCount) -> ByteCount {
    ByteCount::new(size.get().div_ceil(STEP).saturating_mul(STEP))
}

/// Low, pressure and high: no pressure up to what is needed.
fn thresholds(needed: ByteCount) -> String {
    let pages = needed.get().div_ceil(PAGE);
    format!("{pages} {} {}", pages + pages / 8, pages + pages / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized_path(near: &str, far: &str, link: &str) -> Sized {
        let text = format!(
            "story = \"A test.\"\nsource = \"This file.\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n{near}\n\
             [host.far]\n{far}\n[[link]]\nbetween = [\"near\", \"far\"]\n{link}\n"
        );
        sized(&PathDescription::parse("test", &text).unwrap_or_else(|error| panic!("{error}")))
    }

    const RHEL: &str = "rate = \"10 Gbit/s\"\ndelay = \"58.5 ms\"";

    fn large(more: &str) -> String {
        format!(
            "sysctl = {{ \"net.ipv4.tcp_rmem\" = \"4096 131072 438750000\", \"net.ipv4.tcp_wmem\" = \"4096 16384 438750000\"{more} \
             }}"
        )
    }

    fn limit(sized: &Sized) -> u64 {
        sysctl::triple(&sized.tcp_mem).map_or(0, |[_, _, high]| high.get() * PAGE)
    }

    #[test]
    fn an_ordinary_path_gets_the_least() {
        let sized = sized_path("", "", "rate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"1 BDP\"");
        assert_eq!(sized.sizing.memory, LEAST);
        assert!(sized.sizing.reason.starts_with("1.0 GiB of memory: the sockets of 4 streams at once can hold "));
        assert!(sized.sizing.reason.contains("the path holds 488 KiB"), "{}", sized.sizing.reason);
    }

    #[test]
    fn windows_decide_where_no_queue_is_bounded() {
        let sized = sized_path(&large(""), &large(""), RHEL);
        // Four streams, a buffer of 438.75 MB at each end of each.
        let sockets = 8 * 438_750_000;
        assert!(limit(&sized) >= sockets && sized.sizing.memory.get() > sockets, "{sized:?}");
        assert!(sized.sizing.memory < ByteCount::from_mebibytes(6144), "{sized:?}");
        assert!(sized.sizing.reason.contains("windows decide"), "{}", sized.sizing.reason);
    }

    #[test]
    fn a_bounded_path_needs_less_than_its_windows_would() {
        let bounded = sized_path(&large(""), &large(""), &format!("{RHEL}\nbuffer = \"1 BDP\""));
        // What one connection's buffers can hold fits all the same.
        assert!(limit(&bounded) >= 2 * 438_750_000, "{bounded:?}");
        assert!(bounded.sizing.memory < sized_path(&large(""), &large(""), RHEL).sizing.memory);
    }

    #[test]
    fn an_explicit_limit_wins_and_the_guest_is_no_larger_than_it_needs() {
        let sized = sized_path(&large(", \"net.ipv4.tcp_mem\" = \"18000 24000 36000\""), &large(""), RHEL);
        assert_eq!(sized.tcp_mem, "18000 24000 36000");
        assert_eq!(sized.sizing.memory, LEAST);
        assert!(sized.sizing.reason.contains("sets net.ipv4.tcp_mem"), "{}", sized.sizing.reason);
    }

    #[test]
    fn traffic_adds_its_own() {
        let flow = "\n[[traffic]]\nkind = \"bulk\"\nfrom = \"near\"\nto = \"far\"\nstreams = 8";
        let (alone, shared) = (sized_path("", "", RHEL), sized_path("", "", &format!("{RHEL}{flow}")));
        assert!(limit(&shared) >= limit(&alone) + 8 * (4_194_304 + 6_291_456) / 4, "{alone:?} {shared:?}");
    }

    #[test]
    fn the_three_numbers_ascend() {
        for needed in [1, 4096, 1 << 30] {
            assert!(sysctl::triple(&thresholds(ByteCount::new(needed))).is_some(), "{needed}");
        }
    }
}
