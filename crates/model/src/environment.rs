//! The host that a measurement is made on, as it is at the time: what may explain a result, or its difference from an
//! earlier one.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Ratio};

use crate::schema::environment as schema;

/// A host and its way to the other end. What could not be read is `None`, and [`Environment::unreadable`] says why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// Its name.
    pub host_name: Option<String>,
    /// Release of the kernel, for example `6.12.117`.
    pub kernel: Option<String>,
    /// Architecture of the machine, for example `x86_64`.
    pub architecture: Option<String>,
    /// Processors and memory.
    pub machine: Machine,
    /// How busy it is.
    pub load: Load,
    /// Its clock.
    pub clock: Clock,
    /// Congestion control of new connections.
    pub congestion_control: Option<String>,
    /// Congestion controls that can be chosen.
    pub congestion_controls: Option<Vec<String>>,
    /// The interface that leads to the other end; `None` when there is no other end, or no way to it.
    pub interface: Option<InterfaceFacts>,
    /// Settings of the kernel that matter, by the name that `sysctl` has for them, for example `net.ipv4.tcp_rmem`.
    /// Numbers that belong together have one blank between them. Settings that this kernel lacks are left out.
    pub settings: BTreeMap<String, String>,
    /// What could not be read: name of the fact → why.
    pub unreadable: BTreeMap<String, String>,
}

/// Processors and memory of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Model of the processor, as the kernel has it.
    pub processor: Option<String>,
    /// Logical processors that are switched on.
    pub processors: Option<usize>,
    /// How many of them this process may use.
    pub usable_processors: Option<usize>,
    /// How their clock rate is chosen, for example `performance`.
    pub frequency_governor: Option<String>,
    /// Memory.
    pub memory: Option<ByteCount>,
    /// What it runs in, a hypervisor or container by name, or both (`docker on KVM`); `None` when nothing hints at one.
    pub virtualisation: Option<String>,
}

/// How busy a host is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Time since it booted.
    pub uptime: Option<Duration>,
    /// Runnable processes, means of the last 1, 5 and 15 minutes.
    pub averages: Option<[f64; 3]>,
    /// Share of all processors' time since boot that a hypervisor took away (`steal`).
    pub stolen: Option<Ratio>,
}

/// The clock of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// What the kernel counts, for example `tsc`.
    pub source: Option<String>,
    /// What else it could count.
    pub sources: Option<Vec<String>>,
    /// What the kernel knows of its being right.
    pub state: Option<ClockState>,
}

/// What the kernel knows of its clock's being right (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockState {
    /// Whether a program keeps it synchronised (`STA_UNSYNC` is off and the kernel sees no error).
    pub synchronised: bool,
    /// How wrong it is by that program's estimate (`esterror`).
    pub estimated_error: Duration,
    /// How wrong it is at the most (`maxerror`); grows while nobody corrects it. 16 s is the kernel's word for "unknown".
    pub largest_error: Duration,
    /// By how much its rate is corrected, in parts per million: positive makes it faster (`freq`).
    pub rate_correction: f64,
}

/// An interface of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// Its MTU.
    pub mtu: Option<Mtu>,
    /// The path MTU that the host's routing has for the other end, where that is not the interface's.
    pub route_mtu: Option<Mtu>,
    /// Its driver.
    pub driver: Option<String>,
    /// Its speed; `None` also for devices that have none.
    pub speed: Option<BitRate>,
    /// Offloads that concern how packets are cut, joined and summed up, by ethtool's names; whether they are on.
    pub offloads: BTreeMap<String, bool>,
    /// Root queueing discipline.
    pub queueing: Option<QueueingDiscipline>,
    /// Length of the device's queue (`txqueuelen`).
    pub transmit_queue: Option<PacketCount>,
    /// Hardware queues for sending and receiving.
    pub queues: Option<(u32, u32)>,
    /// What has passed through it.
    pub counters: Option<InterfaceCounters>,
}

/// A queueing discipline (tc(8)).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueingDiscipline {
    /// Its kind, for example `fq_codel`.
    pub kind: String,
    /// Its settings as `tc -j` has them; empty where `tc` is missing.
    pub settings: BTreeMap<String, String>,
    /// What has passed through it.
    pub statistics: Option<QueueStatistics>,
}

/// What has passed through a queueing discipline since it was made, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Bytes sent.
    pub sent: ByteCount,
    /// Packets sent; trains of segments that the device cuts count as one.
    pub packets: PacketCount,
    /// Packets dropped.
    pub dropped: PacketCount,
    /// Times that a packet had to wait for the rate to be kept.
    pub overlimits: PacketCount,
    /// Times that the device had no room for a packet.
    pub requeues: PacketCount,
    /// Bytes waiting now.
    pub backlog: ByteCount,
    /// Packets waiting now.
    pub backlog_packets: PacketCount,
}

/// What has passed through an interface since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// On the way in.
    pub received: DirectionCounters,
    /// On the way out.
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
    /// Packets dropped for want of room, or because nobody wanted them.
    pub dropped: PacketCount,
}

impl InterfaceCounters {
    /// What has passed since an earlier reading of the same interface. A counter that began anew counts from there on.
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

/// The kernel's counters of IP, ICMP, UDP and TCP (`/proc/net/snmp`, `/proc/net/netstat`, `/proc/net/snmp6`), by group
/// and name as `nstat` has them: `TcpRetransSegs`, `TcpExtTCPTimeouts`, `UdpRcvbufErrors`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtocolCounters(pub BTreeMap<String, u64>);

impl ProtocolCounters {
    /// Reads the kernel's lists: pairs of lines `Group: name name …` and `Group: number number …`, or lines
    /// `GroupName number` (`/proc/net/snmp6`). What is not a counter (negative) is left out.
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

    /// The counters that have grown since an earlier reading, and by how much.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = self.0.iter().filter_map(|(name, now)| {
            let increase = now.checked_sub(earlier.0.get(name).copied().unwrap_or(0)).filter(|more| *more > 0)?;
            Some((name.clone(), increase))
        });
        Self(grown.collect())
    }

    /// One counter by its name; `None` when this kernel lacks it, or when it has not grown.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

impl From<&Environment> for schema::Environment {
    fn from(host: &Environment) -> Self {
        let state = host.clock.state;
        Self {
            host_name: host.host_name.clone(),
            kernel: host.kernel.clone(),
            architecture: host.architecture.clone(),
            processor: host.machine.processor.clone(),
            processors: host.machine.processors.map(|count| count as u64),
            virtualisation: host.machine.virtualisation.clone(),
            congestion_control: host.congestion_control.clone(),
            congestion_controls: host.congestion_controls.clone(),
            clock_source: host.clock.source.clone(),
            clock_synchronised: state.map(|state| state.synchronised),
            clock_error_bound_ns: state
                .and_then(ClockState::error_bound)
                .map(|error| u64::try_from(error.as_nanos()).unwrap_or(u64::MAX)),
            load_average: host.load.averages.map(|averages| averages[0]),
            interface: host.interface.as_ref().map(schema::Interface::from),
            sysctls: host.settings.clone(),
            other_traffic: None,
            unreadable: host.unreadable.clone(),
        }
    }
}

impl ClockState {
    /// The most that the clock can be wrong by; `None` when nobody knows.
    #[must_use]
    pub fn error_bound(self) -> Option<Duration> {
        // NTP_PHASE_LIMIT of the kernel: what it says of a clock that was never set.
        const UNKNOWN: Duration = Duration::from_secs(16);
        (self.synchronised && self.largest_error < UNKNOWN).then_some(self.largest_error)
    }
}

impl From<&InterfaceFacts> for schema::Interface {
    fn from(interface: &InterfaceFacts) -> Self {
        Self {
            name: interface.name.clone(),
            mtu_bytes: interface.mtu.map(|mtu| mtu.byte_count().get()),
            driver: interface.driver.clone(),
            speed_bits_per_second: interface.speed.map(BitRate::bits_per_second),
            offloads: interface.offloads.clone(),
            queueing_discipline: interface.queueing.as_ref().map(|queueing| queueing.kind.clone()),
            transmit_queue_packets: interface.transmit_queue.map(PacketCount::get),
        }
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
    fn cut_off_lists_are_read_as_far_as_they_go() {
        let whole = ProtocolCounters::parse(SNMP);
        for length in 0..SNMP.len() {
            let part = ProtocolCounters::parse(&SNMP[..length]);
            assert!(part.0.keys().all(|name| whole.0.contains_key(name) || name.starts_with("Ip6")), "{part:?}");
        }
    }

    #[test]
    fn interface_counters_that_began_anew() {
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
    fn a_clock_that_nobody_set_has_no_error_bound() {
        let state = |synchronised, seconds| ClockState {
            synchronised,
            estimated_error: Duration::ZERO,
            largest_error: Duration::from_secs(seconds),
            rate_correction: 0.0,
        };
        assert_eq!(state(true, 1).error_bound(), Some(Duration::from_secs(1)));
        assert_eq!(state(true, 16).error_bound(), None);
        assert_eq!(state(false, 1).error_bound(), None);
        let clock = Clock { state: Some(state(true, 1)), ..Clock::default() };
        let document = schema::Environment::from(&Environment { clock, ..Environment::default() });
        assert_eq!((document.clock_synchronised, document.clock_error_bound_ns), (Some(true), Some(1_000_000_000)));
    }
}
