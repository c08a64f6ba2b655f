//! State of the measuring host at the time of a measurement: facts that may explain a result, or its difference from an
//! earlier one.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Ratio};

/// Host and its route to the remote host. Facts that could not be read are `None`, with the reason in
/// [`HostEnvironment::unreadable`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostEnvironment {
    /// Host name.
    pub host_name: Option<String>,
    /// Release of the kernel, for example `6.12.117`.
    pub kernel: Option<String>,
    /// Architecture of the machine, for example `x86_64`.
    pub architecture: Option<String>,
    /// Processors and memory.
    pub machine: HostMachine,
    /// Load.
    pub load: HostLoad,
    /// Clock.
    pub clock: HostClock,
    /// Congestion control of new connections.
    pub congestion_control: Option<String>,
    /// Congestion controls that can be chosen.
    pub congestion_controls: Option<Vec<String>>,
    /// Interface of the route to the remote host; `None` without a remote host, or without a route to it.
    pub interface: Option<InterfaceFacts>,
    /// Relevant kernel settings by `sysctl` name, for example `net.ipv4.tcp_rmem`. Lists of numbers are separated by
    /// single blanks. Settings that this kernel lacks are left out.
    pub settings: BTreeMap<String, String>,
    /// Facts that could not be read: name → reason.
    pub unreadable: BTreeMap<String, String>,
}

/// Processors and memory of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostMachine {
    /// Processor model, as the kernel reports it.
    pub processor: Option<String>,
    /// Logical processors that are online.
    pub processors: Option<usize>,
    /// Number of those that this process may use.
    pub usable_processors: Option<usize>,
    /// Frequency governor, for example `performance`.
    pub frequency_governor: Option<String>,
    /// Physical memory.
    pub memory: Option<ByteCount>,
    /// Hypervisor or container by name, or both (`docker on KVM`); `None` when none was detected.
    pub virtualisation: Option<String>,
}

/// Load of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostLoad {
    /// Time since boot.
    pub uptime: Option<Duration>,
    /// Runnable processes, means of the last 1, 5 and 15 minutes.
    pub averages: Option<[f64; 3]>,
    /// Share of all processors' time since boot taken by a hypervisor (`steal`).
    pub stolen: Option<Ratio>,
}

/// The clock of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostClock {
    /// Clock source in use, for example `tsc`.
    pub source: Option<String>,
    /// Clock sources available.
    pub sources: Option<Vec<String>>,
    /// Synchronisation state.
    pub state: Option<ClockState>,
}

/// Synchronisation state of the clock, as known to the kernel (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockState {
    /// True when a program keeps it synchronised (`STA_UNSYNC` is off and the kernel reports no error).
    pub synchronised: bool,
    /// Estimated error, by that program (`esterror`).
    pub estimated_error: Duration,
    /// Maximum error (`maxerror`); grows while the clock is not corrected. 16 s means "unknown".
    pub largest_error: Duration,
    /// Rate correction in parts per million: positive makes the clock faster (`freq`).
    pub rate_correction: f64,
}

/// An interface of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceFacts {
    /// Name.
    pub name: String,
    /// MTU.
    pub mtu: Option<Mtu>,
    /// Path MTU of the host's route to the remote host, where it differs from the interface's.
    pub route_mtu: Option<Mtu>,
    /// Driver.
    pub driver: Option<String>,
    /// Speed; `None` also for devices that have none.
    pub speed: Option<BitRate>,
    /// Segmentation, receive and checksum offloads by ethtool's names, and their state.
    pub offloads: BTreeMap<String, bool>,
    /// Root queueing discipline.
    pub queueing: Option<QueueingDiscipline>,
    /// Length of the device's queue (`txqueuelen`).
    pub transmit_queue: Option<PacketCount>,
    /// Hardware queues for sending and receiving.
    pub queues: Option<(u32, u32)>,
    /// Traffic counters.
    pub counters: Option<InterfaceCounters>,
}

/// A queueing discipline (tc(8)).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueingDiscipline {
    /// Kind, for example `fq_codel`.
    pub kind: String,
    /// Settings as printed by `tc -j`; empty where `tc` is missing.
    pub settings: BTreeMap<String, String>,
    /// Traffic counters.
    pub statistics: Option<QueueStatistics>,
}

/// Counters of a queueing discipline since its creation, and its backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Bytes sent.
    pub sent: ByteCount,
    /// Packets sent; a GSO packet that the device segments counts as one.
    pub packets: PacketCount,
    /// Packets dropped.
    pub dropped: PacketCount,
    /// Number of times that a packet was delayed to keep the rate.
    pub overlimits: PacketCount,
    /// Number of times that the device had no space for a packet.
    pub requeues: PacketCount,
    /// Bytes waiting now.
    pub backlog: ByteCount,
    /// Packets waiting now.
    pub backlog_packets: PacketCount,
}

/// Traffic counters of an interface since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Received.
    pub received: DirectionCounters,
    /// Sent.
    pub sent: DirectionCounters,
}

/// One direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Bytes, with the link layer's headers.
    pub bytes: ByteCount,
    /// Packets.
    pub packets: PacketCount,
    /// Packets that were damaged or could not be sent.
    pub errors: PacketCount,
    /// Packets dropped for want of buffer space, or because no protocol handled them.
    pub dropped: PacketCount,
}

impl InterfaceCounters {
    /// Difference from an earlier sample of the same interface. A counter that was reset counts from zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self { received: self.received.since(&earlier.received), sent: self.sent.since(&earlier.sent) }
    }
}

impl DirectionCounters {
    fn since(&self, earlier: &Self) -> Self {
        let packets = |now: PacketCount, then: PacketCount| PacketCount::new(increase(now.get(), then.get()));
        Self {
            bytes: ByteCount::new(increase(self.bytes.get(), earlier.bytes.get())),
            packets: packets(self.packets, earlier.packets),
            errors: packets(self.errors, earlier.errors),
            dropped: packets(self.dropped, earlier.dropped),
        }
    }
}

fn increase(now: u64, then: u64) -> u64 {
    now.checked_sub(then).unwrap_or(now)
}

/// Kernel counters of IP, ICMP, UDP and TCP (`/proc/net/snmp`, `/proc/net/netstat`, `/proc/net/snmp6`), by group and
/// name as in `nstat`: `TcpRetransSegs`, `TcpExtTCPTimeouts`, `UdpRcvbufErrors`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtocolCounters(pub BTreeMap<String, u64>);

impl ProtocolCounters {
    /// Parses the kernel's lists: pairs of lines `Group: name name …` and `Group: number number …`, or lines `GroupName
    /// number` (`/proc/net/snmp6`). Negative values are not counters and are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut counters = BTreeMap::new();
        let mut names: Option<(&str, &str)> = None;
        for line in text.lines() {
            match (line.split_once(':'), names.take()) {
                (Some((group, numbers)), Some((same, list))) if group == same => {
                    let pairs = list.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
                    let read = |(name, number): (&str, &str)| Some((format!("{group}{name}"), number.parse().ok()?));
                    counters.extend(pairs.filter_map(read));
                }
                (Some(pair), _) => names = Some(pair),
                (None, _) => {
                    let mut words = line.split_ascii_whitespace();
                    if let (Some(name), Some(Ok(number))) = (words.next(), words.next().map(str::parse)) {
                        counters.insert(name.to_owned(), number);
                    }
                }
            }
        }
        Self(counters)
    }

    /// Counters that have grown since an earlier sample, with their growth.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = self.0.iter().filter_map(|(name, now)| {
            let increase = now.checked_sub(earlier.0.get(name).copied().unwrap_or(0)).filter(|more| *more > 0)?;
            Some((name.clone(), increase))
        });
        Self(grown.collect())
    }

    /// Counter by its name; `None` when this kernel lacks it, or when it has not grown.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

impl ClockState {
    /// Maximum error of the clock; `None` when unknown.
    #[must_use]
    pub fn error_bound(self) -> Option<Duration> {
        // NTP_PHASE_LIMIT of the kernel: its value for a clock that was never set.
        const UNKNOWN: Duration = Duration::from_secs(16);
        (self.synchronised && self.largest_error < UNKNOWN).then_some(self.largest_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 1000\nTcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 \
                        7\nTcpExt: TCPTimeouts\nTcpExt: 3\nIp6InReceives      \t55\nnonsense\n";

    #[test]
    fn counters_of_protocols() {
        let counters = ProtocolCounters::parse(SNMP);
        let expected = [
            ("Ip6InReceives", 55),
            ("IpDefaultTTL", 64),
            ("IpForwarding", 1),
            ("IpInReceives", 1000),
            ("TcpExtTCPTimeouts", 3),
            ("TcpRetransSegs", 7),
            ("TcpRtoAlgorithm", 1),
        ];
        assert_eq!(counters.0, expected.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(counters.get("TcpMaxConn"), None, "negative");
    }

    #[test]
    fn counters_grow() {
        let before = ProtocolCounters::parse(SNMP);
        let after = ProtocolCounters::parse(&SNMP.replace(" 7", " 12").replace("TcpExt: 3", "TcpExt: 2"));
        assert_eq!(after.since(&before).0, [("TcpRetransSegs".to_owned(), 5)].into());
        assert_eq!(before.since(&before), ProtocolCounters::default());
        assert_eq!(after.since(&ProtocolCounters::default()), ProtocolCounters(after.0.clone()));
    }

    #[test]
    fn truncated_lists_are_parsed_up_to_their_end() {
        let whole = ProtocolCounters::parse(SNMP);
        for length in 0..SNMP.len() {
            let part = ProtocolCounters::parse(&SNMP[..length]);
            assert!(part.0.keys().all(|name| whole.0.contains_key(name) || name.starts_with("Ip6")), "{part:?}");
        }
    }

    #[test]
    fn interface_counters_after_a_reset() {
        let reading = |bytes, packets| {
            let direction = DirectionCounters {
                bytes: ByteCount::new(bytes),
                packets: PacketCount::new(packets),
                ..DirectionCounters::default()
            };
            InterfaceCounters { received: direction, sent: DirectionCounters::default() }
        };
        assert_eq!(reading(150, 7).since(&reading(100, 5)), reading(50, 2));
        assert_eq!(reading(20, 1).since(&reading(100, 5)), reading(20, 1));
    }

    #[test]
    fn an_unsynchronised_clock_has_no_error_bound() {
        let state = |synchronised, seconds| ClockState {
            synchronised,
            estimated_error: Duration::ZERO,
            largest_error: Duration::from_secs(seconds),
            rate_correction: 0.0,
        };
        assert_eq!(state(true, 1).error_bound(), Some(Duration::from_secs(1)));
        assert_eq!(state(true, 16).error_bound(), None);
        assert_eq!(state(false, 1).error_bound(), None);
    }
}
