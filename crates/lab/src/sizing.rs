//! Memory that a path needs, so that only its description limits it.
//!
//! Linux counts the memory of all TCP sockets together, and starts to refuse at `net.ipv4.tcp_mem`, whose default is a
//! share of the machine's memory. A path of 10 Gbit/s and 117 ms that is emulated in a small guest would measure that
//! default. So the guest gets what the connections can hold at once, and `tcp_mem` is set to fit.
//!
//! Where a host's settings limit a transfer to less than the path capacity, users will correct them in the guest. The
//! correct settings must fit into its memory, too: no advice is good that gives a large part of a host's memory to one
//! buffer. The guest's kernel then counts more memory than is ever written to, and the host has to provide only what is
//! written to.

use core::fmt::Write as _;
use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, display};

use crate::compile::sysctl;
use crate::description::{HostDescription, LinkDirection, PathDescription, TrafficProtocol};
use crate::plan::GuestSizing;

/// Default number of parallel streams of a test.
const DEFAULT_STREAMS: u64 = 4;

/// Memory of a kernel with its programs, without the sockets.
const SYSTEM_MEMORY: ByteCount = ByteCount::from_mebibytes(768);

/// Minimum memory of a guest.
const MIN_MEMORY: ByteCount = ByteCount::from_mebibytes(1024);

/// Step of the sizes of guests.
const MEMORY_STEP: u64 = 256 << 20;

/// Unit in which the kernel counts `tcp_mem`.
const PAGE_SIZE: u64 = 4096;

/// Memory that a byte in flight takes at one end: buffers are counted with the kernel's own structures, almost as much
/// again at an MTU of 1500, and grow to twice what is in flight.
const MEMORY_PER_BYTE_IN_FLIGHT: u64 = 4;

/// Bytes in flight of a connection, in bandwidth-delay products, with a margin for retransmissions.
const IN_FLIGHT_BDP: f64 = 1.25;

/// Share of a receive buffer that becomes window at an MTU of 1500. A send buffer needs less.
const WINDOW_SHARE: f64 = 0.62;

/// Memory of the guest per byte of a buffer: a buffer gets an eighth of a host's memory at most, and both hosts have
/// the same here.
const MEMORY_PER_BUFFER: f64 = 16.0;

/// Memory of the guest per byte that all buffers hold: they come under pressure at 3/16 of the memory at most, and need
/// half as much again as they hold.
const MEMORY_PER_HELD: f64 = 1.5 * 16.0 / 3.0;

/// All sockets together get one part of this many of a host's memory at most.
const SOCKETS_DIVISOR: u64 = 4;

/// Margin of a tenth: a kernel counts less than it was given, and computed settings are rounded.
const MEMORY_MARGIN: f64 = 1.1;

/// The result: the guest's memory, and `net.ipv4.tcp_mem` as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSizing {
    /// Resources of the guest, with the reason.
    pub sizing: GuestSizing,
    /// Low, pressure and high, in pages.
    pub tcp_mem: String,
}

/// Sizes the guest of a path. A `tcp_mem` that the description sets stays as it is.
#[must_use]
pub fn sized(path: &PathDescription) -> PathSizing {
    let own = path.hosts.first().and_then(|near| setting(near, "net.ipv4.tcp_mem"));
    let needed = sockets(path);
    let own_limit = own.and_then(sysctl::triple).map(|[_, _, high]| high * PAGE_SIZE);
    // Sockets cannot take more than the limit allows them.
    let taken = own_limit.map_or(needed, |limit| limit.min(needed));
    let as_it_is = round_up((taken + page_table_size(taken) + SYSTEM_MEMORY).max(MIN_MEMORY));
    let repaired = if own.is_some() { memory_for_total(path) } else { memory_for_buffers(path) };
    let memory = round_up(repaired.unwrap_or_default()).max(as_it_is);
    let tcp_mem = own.map_or_else(|| thresholds(needed.max(share_of(memory))), str::to_owned);
    let mut reason = match own_limit {
        Some(limit) => format!(
            "{} of memory for a system whose TCP sockets may hold {} together, because the path sets net.ipv4.tcp_mem \
             itself",
            display::size_binary(memory),
            display::size_binary(limit)
        ),
        None => reason(path, memory, needed),
    };
    let mut at_most = as_it_is;
    if memory > as_it_is {
        let sockets = taken.max(ByteCount::new(memory.get() / SOCKETS_DIVISOR));
        at_most =
            round_up(sockets + page_table_size(sockets) + page_structure_size(memory) + SYSTEM_MEMORY).min(memory);
        let _ = write!(
            reason,
            "; this allows settings with which a transfer fills the path; at most {} of it are ever taken from \
             the host",
            display::size_binary(at_most)
        );
    }
    PathSizing { sizing: GuestSizing { memory, taken: at_most, reason }, tcp_mem }
}

/// Memory of a guest in which one connection's buffers can be set to what the path needs; `None` where they are, in
/// both directions.
fn memory_for_buffers(path: &PathDescription) -> Option<ByteCount> {
    let ways = [true, false].into_iter().filter_map(|forward| {
        let (flow, buffer) = (ConnectionLimits::of(path, forward), buffer_for(path, forward)?);
        (flow.send.min(flow.receive) < buffer).then_some(buffer)
    });
    ways.max().map(|buffer| ByteCount::from_f64(buffer.as_f64() * MEMORY_PER_BUFFER * MEMORY_MARGIN))
}

/// Memory of a guest in which all sockets together can be given what one connection holds: of each buffer what its
/// setting allows, but not more than twice what the path needs.
fn memory_for_total(path: &PathDescription) -> Option<ByteCount> {
    let ways = [true, false].into_iter().filter_map(|forward| {
        let (flow, twice) = (ConnectionLimits::of(path, forward), buffer_for(path, forward)? * 2);
        Some(flow.send.min(twice) + flow.receive.min(twice))
    });
    ways.max().map(|held| ByteCount::from_f64(held.as_f64() * MEMORY_PER_HELD * MEMORY_MARGIN))
}

/// The buffer that lets one connection fill this direction of the path; `None` where nothing has a rate.
fn buffer_for(path: &PathDescription, forward: bool) -> Option<ByteCount> {
    let product = slowest(path, forward)? * path.propagation();
    Some(ByteCount::from_f64(product.as_f64() * IN_FLIGHT_BDP / WINDOW_SHARE))
}

fn reason(path: &PathDescription, memory: ByteCount, needed: ByteCount) -> String {
    let forward = ConnectionLimits::of(path, true);
    let holds = match forward.path_holds {
        Some(size) => format!("the path holds {} in flight and in its queue", display::size_binary(size)),
        None => "no queue of the path is bounded, so windows decide".to_owned(),
    };
    format!(
        "{} of memory: the sockets of {DEFAULT_STREAMS} streams at once can hold {} (send buffers up to {}, receive buffers up \
         to {}; {holds})",
        display::size_binary(memory),
        display::size_binary(needed),
        display::size_binary(forward.send),
        display::size_binary(forward.receive),
    )
}

/// Memory that all sockets can hold at once.
fn sockets(path: &PathDescription) -> ByteCount {
    let flows = [ConnectionLimits::of(path, true), ConnectionLimits::of(path, false)];
    let parallel = flows.iter().map(|flow| flow.streams(DEFAULT_STREAMS)).max().unwrap_or_default();
    let both_ways = flows.iter().map(|flow| flow.streams(1)).sum();
    let traffic: ByteCount = path
        .traffic
        .iter()
        .filter(|traffic| traffic.protocol == TrafficProtocol::Tcp)
        .map(|traffic| flows[usize::from(traffic.from != crate::plan::NEAR)].streams(traffic.streams.get()))
        .sum();
    parallel.max(both_ways) + traffic
}

/// Limits of the memory of one connection.
struct ConnectionLimits {
    /// The largest send buffer.
    send: ByteCount,
    /// The largest receive buffer.
    receive: ByteCount,
    /// Bytes that fit into the path and its queues; `None` without a limit.
    path_holds: Option<ByteCount>,
}

impl ConnectionLimits {
    fn of(path: &PathDescription, forward: bool) -> Self {
        let ends = (path.hosts.first(), path.hosts.last());
        let (sender, receiver) = if forward { ends } else { (ends.1, ends.0) };
        let largest = |host: Option<&HostDescription>, key, default| {
            host.map_or(ByteCount::ZERO, |host| maximum(host, key, default))
        };
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
            Some(holds) => (buffer * count).min(holds * MEMORY_PER_BYTE_IN_FLIGHT + buffer),
            None => buffer * count,
        };
        bound(self.send) + bound(self.receive)
    }
}

/// The bytes that fit into one direction of the path: its bandwidth-delay product and all its queues. `None` where a
/// queue has no limit, or nothing has a rate.
fn path_holds(path: &PathDescription, forward: bool) -> Option<ByteCount> {
    let round_trip = path.propagation();
    let mut queues = ByteCount::ZERO;
    for (direction, mtu) in directions(path, forward) {
        if direction.rate.is_some() {
            queues += direction.buffer_size(round_trip, mtu)?;
        }
    }
    slowest(path, forward).map(|rate| rate * round_trip.max(Duration::from_millis(1)) + queues)
}

/// All links in one direction, with their MTUs.
fn directions(path: &PathDescription, forward: bool) -> impl Iterator<Item = (&LinkDirection, Mtu)> {
    path.links.iter().map(move |link| (if forward { &link.forward } else { &link.backward }, link.mtu))
}

/// The lowest rate in one direction; `None` where nothing has one.
fn slowest(path: &PathDescription, forward: bool) -> Option<BitRate> {
    directions(path, forward).filter_map(|(direction, _)| rate_of(direction)).min()
}

/// A direction's rate, or that of its policer where it is lower.
fn rate_of(direction: &LinkDirection) -> Option<BitRate> {
    let policed = direction.policer.map(|policer| policer.rate);
    [direction.rate, policed].into_iter().flatten().min()
}

/// Value of a setting that the description gives to a host.
pub(crate) fn setting<'a>(host: &'a HostDescription, key: &str) -> Option<&'a str> {
    host.sysctls.iter().find(|setting| setting.key == key).map(|setting| setting.value.as_str())
}

/// Third number of a setting, or that of the lab's default.
pub(crate) fn maximum(host: &HostDescription, key: &str, default: &str) -> ByteCount {
    let numbers = setting(host, key).and_then(sysctl::triple).or_else(|| sysctl::triple(default));
    numbers.map_or(ByteCount::ZERO, |[_, _, high]| high)
}

/// The kernel's page tables and losses by rounding: an eighth.
fn page_table_size(size: ByteCount) -> ByteCount {
    ByteCount::new(size.get() / 8)
}

/// Structures that a kernel writes for each page that it counts, used or not: 64 B for 4096 B.
fn page_structure_size(memory: ByteCount) -> ByteCount {
    ByteCount::new(memory.get() / 64)
}

/// The kernel's own default for TCP sockets: a sixteenth of the memory.
fn share_of(memory: ByteCount) -> ByteCount {
    ByteCount::new(memory.get() / 16)
}

fn round_up(size: ByteCount) -> ByteCount {
    ByteCount::new(size.get().div_ceil(MEMORY_STEP).saturating_mul(MEMORY_STEP))
}

/// Low, pressure and high: no pressure up to the needed size.
fn thresholds(needed: ByteCount) -> String {
    let pages = needed.get().div_ceil(PAGE_SIZE);
    format!("{pages} {} {}", pages + pages / 8, pages + pages / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized_path(near: &str, far: &str, link: &str) -> PathSizing {
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

    fn limit(sized: &PathSizing) -> u64 {
        sysctl::triple(&sized.tcp_mem).map_or(0, |[_, _, high]| high.get() * PAGE_SIZE)
    }

    #[test]
    fn an_ordinary_path_gets_the_least() {
        let sized = sized_path("", "", "rate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"1 BDP\"");
        assert_eq!(sized.sizing.memory, MIN_MEMORY);
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
    fn an_explicit_limit_wins_and_a_larger_one_would_fit() {
        let sized = sized_path(&large(", \"net.ipv4.tcp_mem\" = \"18000 24000 36000\""), &large(""), RHEL);
        assert_eq!(sized.tcp_mem, "18000 24000 36000");
        assert!(sized.sizing.reason.contains("sets net.ipv4.tcp_mem"), "{}", sized.sizing.reason);
        // 1.5 times both buffers, 438.75 MB each, within 3/16 of the memory; what is taken stays far below.
        assert!(sized.sizing.memory.as_f64() * 3.0 / 16.0 >= 1.5 * 2.0 * 438.75e6, "{sized:?}");
        assert!(sized.sizing.taken <= ByteCount::from_mebibytes(3 << 10), "{sized:?}");
    }

    #[test]
    fn a_guest_has_memory_for_the_buffers_that_its_path_needs() {
        let sized = sized_path("", "", RHEL);
        // 1.12 products of 146.25 MB, of which 0.62 become window: 264 MB, a sixteenth of the memory.
        let needed = 16.0 * 1.12 * 146.25e6 / 0.62;
        assert!(sized.sizing.memory.as_f64() >= needed && sized.sizing.memory.as_f64() <= 1.3 * needed, "{sized:?}");
        assert!(sized.sizing.taken <= ByteCount::from_mebibytes(2560), "{sized:?}");
        assert!(sized.sizing.reason.starts_with("5.0 GiB of memory: "), "{}", sized.sizing.reason);
        assert!(sized.sizing.reason.ends_with("are ever taken from the host"), "{}", sized.sizing.reason);
        // One host alone, either of them, is reason enough; large buffers at both are none.
        for (near, far) in [(large(""), String::new()), (String::new(), large(""))] {
            assert!(sized_path(&near, &far, RHEL).sizing.memory.as_f64() >= needed);
        }
        let enough = sized_path(&large(""), &large(""), &format!("{RHEL}\nbuffer = \"1 BDP\""));
        assert_eq!(enough.sizing.taken, enough.sizing.memory);
        assert!(!enough.sizing.reason.contains("ever taken"), "{}", enough.sizing.reason);
    }

    #[test]
    fn a_limit_of_all_sockets_follows_the_memory_that_its_kernel_counts() {
        let sized = sized_path("", "", RHEL);
        // What Linux itself would set: low at 3/64 of the memory, high at 6/64, or more.
        assert!(limit(&sized) >= sized.sizing.memory.get() / 64 * 5, "{sized:?}");
    }

    #[test]
    fn traffic_adds_its_own() {
        let flow = "\n[[traffic]]\nkind = \"bulk\"\nfrom = \"near\"\nto = \"far\"\nstreams = 8";
        let short = "rate = \"10 Gbit/s\"\ndelay = \"5 ms\"";
        let (alone, shared) = (sized_path("", "", short), sized_path("", "", &format!("{short}{flow}")));
        assert!(limit(&shared) >= limit(&alone) + 8 * (4_194_304 + 6_291_456) / 4, "{alone:?} {shared:?}");
    }

    #[test]
    fn the_three_numbers_ascend() {
        for needed in [1, 4096, 1 << 30] {
            assert!(sysctl::triple(&thresholds(ByteCount::new(needed))).is_some(), "{needed}");
        }
    }
}
