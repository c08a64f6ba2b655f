//! Network counters of a host, and their growth between two samples.

use std::collections::BTreeMap;

use linerate_units::{PacketCount, Ratio};

pub use crate::environment::ProtocolCounters;
use crate::fact::Fact;
use crate::host::link::LinkCounters;
use crate::host::processors::ProcessorTicks;

/// Counters of a host's network stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkCounters {
    /// Protocol counters since the creation of the network namespace: `/proc/net/snmp`, `netstat` and `snmp6`.
    pub protocol: Fact<ProtocolCounters>,
    /// Sockets and their memory (`/proc/net/sockstat`, `sockstat6`), by protocol and name: `TCP inuse`, `TCP mem`
    /// (pages).
    pub sockets: Fact<BTreeMap<String, u64>>,
    /// Receive counters of each processor.
    pub softnet: Fact<Vec<SoftnetRow>>,
    /// Use of the connection tracking table.
    pub tracked_connections: Fact<ConntrackUsage>,
}

/// Receive counters of one processor since boot (`/proc/net/softnet_stat`). The kernel's counters have 32 bits and
/// wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftnetRow {
    /// Processor.
    pub processor: u32,
    /// Packets processed.
    pub processed: PacketCount,
    /// Packets dropped because the processor's queue was full (`net.core.netdev_max_backlog`).
    pub dropped: PacketCount,
    /// Number of times that it stopped with packets left, having used up `net.core.netdev_budget` or
    /// `netdev_budget_usecs`.
    pub squeezed: u32,
    /// Number of times that another processor steered packets to it (receive packet steering).
    pub steered: u32,
    /// Packets dropped so that one large flow does not fill the queue (`net.core.flow_limit_cpu_bitmap`).
    pub flow_limited: PacketCount,
}

impl SoftnetRow {
    /// Parses a line: hexadecimal numbers, of which the first is packets, the second drops, the third time squeezes,
    /// the tenth steering, the eleventh the flow limit, the thirteenth the processor. Kernels before 5.10 do not list
    /// the processor: then it is `row`, which is right while none is offline.
    #[must_use]
    pub fn parse(line: &str, row: u32) -> Option<Self> {
        let columns: Vec<u32> =
            line.split_ascii_whitespace().map_while(|word| u32::from_str_radix(word, 16).ok()).collect();
        let packets = |column: usize| columns.get(column).map(|count| PacketCount::new((*count).into()));
        Some(Self {
            processor: columns.get(12).copied().unwrap_or(row),
            processed: packets(0)?,
            dropped: packets(1)?,
            squeezed: *columns.get(2)?,
            steered: columns.get(9).copied().unwrap_or_default(),
            flow_limited: packets(10).unwrap_or_default(),
        })
    }

    /// Parses the whole file.
    #[must_use]
    pub fn parse_all(text: &str) -> Vec<Self> {
        (0..).zip(text.lines()).filter_map(|(row, line)| Self::parse(line, row)).collect()
    }

    /// Difference from an earlier sample of the same processor.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let packets = |now: PacketCount, then: PacketCount| {
            // The kernel's counters have 32 bits.
            PacketCount::new(now.get().wrapping_sub(then.get()) & u64::from(u32::MAX))
        };
        Self {
            processor: self.processor,
            processed: packets(self.processed, earlier.processed),
            dropped: packets(self.dropped, earlier.dropped),
            squeezed: self.squeezed.wrapping_sub(earlier.squeezed),
            steered: self.steered.wrapping_sub(earlier.steered),
            flow_limited: packets(self.flow_limited, earlier.flow_limited),
        }
    }
}

/// Connection tracking table (`nf_conntrack`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConntrackUsage {
    /// Tracked connections.
    pub count: u64,
    /// Maximum number of connections (`net.netfilter.nf_conntrack_max`).
    pub most: u64,
}

impl ConntrackUsage {
    /// Fill level; `None` for a maximum of zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of two counts; exact up to 2^53")]
    pub fn fill_ratio(&self) -> Option<Ratio> {
        Ratio::of(self.count as f64, self.most as f64)
    }
}

/// Parses `/proc/net/sockstat` and `sockstat6`: lines of `TCP: inuse 5 orphan 0`, as `TCP inuse` → 5.
#[must_use]
pub fn parse_sockets(text: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (protocol, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let pair = |pair: &[&str]| Some((format!("{protocol} {}", pair[0]), pair[1].parse().ok()?));
        found.extend(words.chunks_exact(2).filter_map(pair));
    }
    found
}

/// Counters that a transfer may change, cheap to read: at its start and at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostCounters {
    /// Protocol counters of the network namespace.
    pub protocol: ProtocolCounters,
    /// Receive counters of each processor of the host; empty when they could not be read.
    pub softnet: Vec<SoftnetRow>,
    /// Processor time of each processor; empty when it could not be read.
    pub processors: BTreeMap<u32, ProcessorTicks>,
    /// Traffic counters of each interface of the network namespace, by name; empty when they could not be read.
    pub interfaces: BTreeMap<String, LinkCounters>,
}

impl HostCounters {
    /// Difference from an earlier sample. Processors and interfaces that the earlier one lacks are left out, as their
    /// counts then are unknown.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let row = |row: &SoftnetRow| {
            earlier.softnet.iter().find(|then| then.processor == row.processor).map(|then| row.since(then))
        };
        let processor = |(number, now): (&u32, &ProcessorTicks)| {
            earlier.processors.get(number).map(|then| (*number, now.since(then)))
        };
        let interface = |(name, now): (&String, &LinkCounters)| {
            earlier.interfaces.get(name).map(|then| (name.clone(), now.since(then)))
        };
        Self {
            protocol: self.protocol.since(&earlier.protocol),
            softnet: self.softnet.iter().filter_map(row).collect(),
            processors: self.processors.iter().filter_map(processor).collect(),
            interfaces: self.interfaces.iter().filter_map(interface).collect(),
        }
    }

    /// Busiest processor and its utilisation; `None` when unknown.
    #[must_use]
    pub fn busiest(&self) -> Option<(u32, Ratio)> {
        let shares = self.processors.iter().filter_map(|(number, ticks)| Some((*number, ticks.busy()?)));
        shares.max_by(|(_, one), (_, other)| one.get().total_cmp(&other.get()))
    }

    /// Number of times that a processor stopped receiving with packets left; `None` when unknown.
    #[must_use]
    pub fn squeezes(&self) -> Option<u64> {
        (!self.softnet.is_empty()).then(|| self.softnet.iter().map(|row| u64::from(row.squeezed)).sum())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOFTNET: &str = "02084682 00000007 00000004 00000000 00000000 00000000 00000000 00000000 00000000 00000002 \
                           00000001 00000000 00000000 00000000 00000000\n\
                           01f76efd 00000000 00000009 0 0 0 0 0 0 0 0 0 00000003 0 0\n";

    #[test]
    fn rows_of_softnet() {
        let rows = SoftnetRow::parse_all(SOFTNET);
        let packets = PacketCount::new;
        assert_eq!((rows[0].processor, rows[0].processed, rows[0].dropped), (0, packets(0x0208_4682), packets(7)));
        assert_eq!((rows[0].squeezed, rows[0].steered, rows[0].flow_limited), (4, 2, packets(1)));
        assert_eq!((rows[1].processor, rows[1].squeezed), (3, 9));
        let old = SoftnetRow::parse_all("1 2 3\n4 5 6 0 0\nx\n");
        assert_eq!(old.iter().map(|row| (row.processor, row.squeezed)).collect::<Vec<_>>(), [(0, 3), (1, 6)]);
    }

    #[test]
    fn softnet_wraps_at_32_bits() {
        let then = SoftnetRow::parse("fffffff0 0 ffffffff", 0).expect("a row");
        let now = SoftnetRow::parse("10 5 1", 0).expect("a row");
        let passed = now.since(&then);
        assert_eq!((passed.processed, passed.dropped, passed.squeezed), (PacketCount::new(32), PacketCount::new(5), 2));
    }

    #[test]
    fn sockets_by_protocol_and_name() {
        let found = parse_sockets("sockets: used 205\nTCP: inuse 5 orphan 0 mem 3\nUDP: inuse\nTCP6: inuse 4\nx\n");
        let expected = [("TCP inuse", 5), ("TCP mem", 3), ("TCP orphan", 0), ("TCP6 inuse", 4), ("sockets used", 205)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn differences_between_two_samples() {
        let ticks = |user, idle| ProcessorTicks { user, idle, ..ProcessorTicks::default() };
        let reading = |rows: &str, processors: [(u32, ProcessorTicks); 2]| HostCounters {
            softnet: SoftnetRow::parse_all(rows),
            processors: processors.into(),
            ..HostCounters::default()
        };
        let before = reading("1 2 3\n", [(0, ticks(0, 0)), (1, ticks(0, 0))]);
        let after = reading("5 3 4\n1 1 1\n", [(0, ticks(1, 9)), (2, ticks(100, 0))]);
        let passed = after.since(&before);
        let dropped: Vec<PacketCount> = passed.softnet.iter().map(|row| row.dropped).collect();
        assert_eq!(dropped, [PacketCount::new(1)], "the second row has no earlier one");
        assert_eq!((passed.squeezes(), passed.busiest()), (Some(1), Ratio::new(0.1).map(|share| (0, share))));
        assert_eq!(HostCounters::default().squeezes(), None);
        assert_eq!(ConntrackUsage { count: 80, most: 100 }.fill_ratio(), Ratio::new(0.8));
        assert_eq!(ConntrackUsage::default().fill_ratio(), None);
    }

    proptest! {
        #[test]
        fn a_row_of_any_numbers_is_read(columns in proptest::collection::vec(any::<u32>(), 3..20)) {
            let line = columns.iter().map(|number| format!("{number:08x}")).collect::<Vec<_>>().join(" ");
            let row = SoftnetRow::parse(&line, 77).expect("three columns are enough");
            prop_assert_eq!(row.squeezed, columns[2]);
            prop_assert_eq!(row.processor, columns.get(12).copied().unwrap_or(77));
            prop_assert_eq!(row.since(&row).processed, PacketCount::ZERO);
        }

        #[test]
        fn parsing_never_panics(text in ".{0,200}") {
            prop_assert!(SoftnetRow::parse_all(&text).len() <= text.lines().count());
            prop_assert!(parse_sockets(&text).len() <= text.len());
        }
    }
}
