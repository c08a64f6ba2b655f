//! Inputs of the tuning rules: two hosts, the path between them, and the observation of a transfer.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::collections::BTreeMap;

use linerate_model::diagnosis::{Cause, PathEvidence, TransferDiagnosis, TransferObservation};
use linerate_model::fact::Fact;
use linerate_model::far::{HostEvidence, ReceivingEvidence};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;
use linerate_model::host::kernel::KernelVersion;
use linerate_model::host::memory::HostMemory;
use linerate_model::host::settings::SettingWritability;
use linerate_model::path::PathDirection;
use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, Ratio, StreamCount};
use serde::{Deserialize, Deserializer, Serialize};

use super::goal::TuningGoal;
use super::proposal::HostEnd;
use crate::diagnosis::TransferEvidence;

/// Inputs of the tuning rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuningInputs {
    /// Purpose of the hosts.
    pub goal: TuningGoal,
    /// Host on which linerate runs.
    pub near: TuningHost,
    /// Other host; `None` where it is unknown, so that nothing is proposed for it.
    pub far: Option<TuningHost>,
    /// True when both are namespaces of one kernel (the lab, containers), and share its memory.
    pub one_kernel: bool,
    /// Path between the hosts.
    pub path: TuningPath,
    /// Direction of the data.
    pub data: Option<Direction>,
    /// Expected number of simultaneous bulk connections.
    pub flows: Option<StreamCount>,
    /// Diagnosis of a transfer, where one was measured. The verdict of the cause in focus selects the rules.
    pub diagnosis: Option<TransferDiagnosis>,
    /// Cause to remove; `None` for that of the first verdict.
    pub focus: Option<Cause>,
    /// Observation of that transfer.
    pub seen: ObservedTransfer,
}

/// Facts about a host that tuning needs, as the other host receives them, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningHost {
    /// Kernel version.
    pub kernel: Option<KernelVersion>,
    /// Settings by sysctl name; the numbers of one value are separated by one space.
    pub settings: BTreeMap<String, String>,
    /// Settings that cannot be written, with the reason.
    pub unwritable: BTreeMap<String, String>,
    /// Total memory.
    #[serde(rename = "memory_bytes", default, deserialize_with = "memory_size")]
    pub memory: Option<ByteCount>,
    /// Page size; 4096 bytes where unknown.
    #[serde(rename = "page_bytes", default, deserialize_with = "page_size")]
    pub page: Option<ByteCount>,
    /// Number of TCP sockets.
    pub sockets: Option<StreamCount>,
    /// Softnet counters of the measurement; they stay on the host that measured.
    #[serde(skip)]
    pub receiving: Option<ReceiveCounters>,
    /// Interface towards the other host.
    pub interface: Option<EgressInterface>,
    /// Route to the other host.
    pub route: Option<RouteText>,
    /// Parts that could not be read, with the reason: nothing is proposed for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// Reads the memory of a host; zero is unknown.
fn memory_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteCount>, D::Error> {
    let memory: Option<ByteCount> = Deserialize::deserialize(deserializer)?;
    Ok(memory.filter(|memory| !memory.is_zero()))
}

/// Reads the page size of a host; another than a power of two is unknown, as a page of zero would divide by zero.
fn page_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteCount>, D::Error> {
    let page: Option<ByteCount> = Deserialize::deserialize(deserializer)?;
    Ok(page.filter(|page| page.get().is_power_of_two()))
}

/// Counters of `/proc/net/softnet_stat` during a measurement, with the settings in effect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiveCounters {
    /// Duration of the measurement.
    pub elapsed: Duration,
    /// Number of processors that received.
    pub processors: u32,
    /// Number of packets dropped at a full backlog.
    pub dropped: PacketCount,
    /// Number of times that a processor stopped with packets left (`time_squeeze`).
    pub squeezed: u64,
    /// `net.core.netdev_max_backlog` during the measurement.
    pub backlog: PacketCount,
    /// `net.core.netdev_budget_usecs` during the measurement.
    pub budget: Duration,
}

/// Interface with its qdiscs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressInterface {
    /// Interface name.
    pub name: String,
    /// Queueing disciplines, in the form of [`linerate_model::change::ChangeTarget::Queueing`].
    pub queueing: Option<String>,
}

/// Route in the form of `ip route`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteText {
    /// Destination prefix.
    pub destination: String,
    /// Attributes after the destination.
    pub attributes: String,
    /// Address of the other host; `None` where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

/// Path between the hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuningPath {
    /// Smallest round trip.
    pub round_trip: Option<Duration>,
    /// Direction from the near host to the far one.
    pub out: DirectionMetrics,
    /// Direction from the far host to the near one.
    pub back: DirectionMetrics,
}

/// One direction of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionMetrics {
    /// Capacity in bits of IP packets per second.
    pub capacity: Option<BitRate>,
    /// True when the capacity is only a lower limit.
    pub at_least: bool,
    /// Share of packets lost without load.
    pub loss: Option<Ratio>,
    /// Rate of the policer on it; `None` where none was found.
    pub policer: Option<BitRate>,
    /// Path MTU.
    pub mtu: Option<Mtu>,
    /// Size of the smallest packet that is dropped silently.
    pub black_hole: Option<ByteCount>,
}

/// Observation of a transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedTransfer {
    /// Payload rate at the receiver.
    pub goodput: Option<BitRate>,
    /// Congestion control of the sender.
    pub congestion_control: Option<String>,
    /// Segment size of the sender.
    pub segment: Option<Mss>,
    /// Retransmitted share of the bytes.
    pub retransmitted: Option<Ratio>,
    /// Largest window as a share of the receive buffer.
    pub window_share: Option<Ratio>,
    /// Largest receive buffer of a socket.
    pub receive_buffer: Option<ByteCount>,
    /// Largest send buffer of a socket.
    pub send_buffer: Option<ByteCount>,
    /// Socket buffer requested by the program.
    pub asked_buffer: Option<ByteCount>,
    /// Median of the bytes written but not sent yet.
    pub not_sent: Option<ByteCount>,
    /// Median round trip of the second half of the transfer.
    pub loaded_round_trip: Option<Duration>,
}

/// Data flow from one host to the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataFlow<'i> {
    pub(super) sender: HostEnd,
    pub(super) receiver: HostEnd,
    pub(super) way: &'i DirectionMetrics,
}

impl TuningInputs {
    /// Returns inputs without a measurement, from a given rate and round trip, equal in both directions.
    #[must_use]
    pub fn from_rate_and_rtt(
        goal: TuningGoal,
        near: TuningHost,
        far: Option<TuningHost>,
        rate: BitRate,
        round_trip: Duration,
    ) -> Self {
        let way = DirectionMetrics { capacity: Some(rate), ..DirectionMetrics::default() };
        let path = TuningPath { round_trip: Some(round_trip), out: way.clone(), back: way };
        Self { goal, near, far, path, ..Self::default() }
    }

    /// Returns inputs from a measured transfer and its diagnosis. Settings missing in the hosts are taken from the
    /// evidence that each end reported.
    #[must_use]
    pub fn from_measurement(
        goal: TuningGoal,
        (mut near, mut far): (TuningHost, Option<TuningHost>),
        observation: &TransferObservation,
        diagnosis: TransferDiagnosis,
    ) -> Self {
        let from_far = observation.asked.from_far;
        let (of_near, of_far) = if from_far {
            (&observation.receiver, &observation.sender)
        } else {
            (&observation.sender, &observation.receiver)
        };
        near.complete(of_near.as_ref());
        if let Some(evidence) = of_far {
            far.get_or_insert_default().complete(Some(evidence));
        }
        for (host, reported) in [(Some(&mut near), of_near), (far.as_mut(), of_far)] {
            let seen = reported.as_ref().and_then(|evidence| evidence.receiving);
            if let Some((host, seen)) = host.zip(seen) {
                host.receiving =
                    host.receiving.or_else(|| ReceiveCounters::from_evidence(&seen, host, observation.elapsed));
            }
        }
        let evidence = TransferEvidence::from_observation(observation);
        let mut path = observation
            .path
            .as_ref()
            .map_or_else(TuningPath::default, |path| TuningPath::from_evidence(path, from_far));
        path.round_trip = evidence.base.or(path.round_trip);
        Self {
            goal,
            near,
            far,
            one_kernel: false,
            path,
            data: if from_far { Some(Direction::Down) } else { Some(Direction::Up) },
            flows: Some(StreamCount::new(observation.connections.len() as u64)).filter(|flows| !flows.is_zero()),
            diagnosis: Some(diagnosis),
            focus: None,
            seen: ObservedTransfer::from_evidence(&evidence),
        }
    }

    /// Returns the measured cause to remove: the one in focus, else that of the first verdict.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        let first = self.diagnosis.as_ref()?.verdicts.first().map(|verdict| verdict.cause);
        self.focus.or(first)
    }

    /// Returns the same inputs with this cause to remove.
    pub(super) fn focused_on(&self, cause: Cause) -> Self {
        Self { focus: Some(cause), ..self.clone() }
    }

    /// Returns a host; `None` where it is unknown.
    #[must_use]
    pub const fn host(&self, end: HostEnd) -> Option<&TuningHost> {
        match end {
            HostEnd::Near => Some(&self.near),
            HostEnd::Far => self.far.as_ref(),
        }
    }

    /// Returns the known hosts.
    pub(super) fn known_hosts(&self) -> impl Iterator<Item = (HostEnd, &TuningHost)> {
        [HostEnd::Near, HostEnd::Far].into_iter().filter_map(|end| Some((end, self.host(end)?)))
    }

    /// Returns the data flows.
    pub(super) fn transfers(&self) -> Vec<DataFlow<'_>> {
        let out = DataFlow { sender: HostEnd::Near, receiver: HostEnd::Far, way: &self.path.out };
        let back = DataFlow { sender: HostEnd::Far, receiver: HostEnd::Near, way: &self.path.back };
        match self.data {
            None => vec![out, back],
            Some(Direction::Up) => vec![out],
            Some(Direction::Down) => vec![back],
        }
    }

    /// Returns the sender's congestion control: as observed, else as configured.
    pub(super) fn congestion_control(&self, sender: HostEnd) -> Option<&str> {
        let set = || self.host(sender)?.settings.get("net.ipv4.tcp_congestion_control").map(String::as_str);
        self.seen.congestion_control.as_deref().or_else(set)
    }
}

impl ReceiveCounters {
    /// Combines the counters of a measurement of this duration with the host's settings.
    fn from_evidence(seen: &ReceivingEvidence, host: &TuningHost, elapsed: Duration) -> Option<Self> {
        Some(Self {
            elapsed,
            processors: seen.processors,
            dropped: PacketCount::new(seen.dropped),
            squeezed: seen.squeezed,
            backlog: PacketCount::new(host.number("net.core.netdev_max_backlog")?),
            budget: Duration::from_micros(host.number("net.core.netdev_budget_usecs")?),
        })
    }
}

impl TuningHost {
    /// Returns the facts about a host that tuning needs; unknown ones are omitted.
    #[must_use]
    pub fn from_facts(facts: &HostFacts) -> Self {
        let value = |(key, setting): (&String, &linerate_model::host::settings::KernelSetting)| {
            Some((key.clone(), setting.value.known()?.clone()))
        };
        let unwritable = facts.settings.values.iter().filter_map(|(key, setting)| match &setting.writability {
            SettingWritability::Impossible(reason) => Some((key.clone(), reason.clone())),
            SettingWritability::Unknown | SettingWritability::Possible | SettingWritability::NeedsPrivilege => None,
        });
        Self {
            kernel: facts.kernel.version(),
            settings: facts.settings.values.iter().filter_map(value).collect(),
            unwritable: unwritable.collect(),
            memory: facts.memory.total.known().copied(),
            page: facts.memory.page_size.known().copied(),
            sockets: facts.memory.tcp_sockets.known().copied().map(StreamCount::new),
            ..Self::default()
        }
    }

    /// Returns the facts that a host reported during a test.
    #[must_use]
    pub fn from_evidence(evidence: &HostEvidence) -> Self {
        let mut host = Self::default();
        host.complete(Some(evidence));
        host
    }

    /// Adds missing facts.
    fn complete(&mut self, evidence: Option<&HostEvidence>) {
        let Some(evidence) = evidence else { return };
        self.kernel = self.kernel.or_else(|| KernelVersion::parse(evidence.kernel.as_deref()?));
        self.memory = self.memory.or_else(|| evidence.memory_bytes.map(ByteCount::new));
        for (key, value) in &evidence.settings {
            self.settings.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Returns a setting that is one number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.settings.get(key)?.trim().parse().ok()
    }

    /// Returns a setting that is three numbers.
    #[must_use]
    pub fn triple(&self, key: &str) -> Option<[u64; 3]> {
        parse_triple(self.settings.get(key)?)
    }

    /// Returns the page size, 4096 bytes by default.
    #[must_use]
    pub fn page_size(&self) -> ByteCount {
        self.page.filter(|page| !page.is_zero()).unwrap_or(linerate_analysis::formulas::DEFAULT_PAGE_SIZE)
    }

    /// Returns the three default numbers of the host's kernel.
    pub(super) fn default_triple(&self, key: &str) -> Option<[u64; 3]> {
        let memory = HostMemory {
            total: Fact::Known(self.memory?),
            page_size: Fact::Known(self.page_size()),
            ..HostMemory::default()
        };
        parse_triple(&default_of(key, self.kernel?, &memory)?.value)
    }
}

pub(super) fn parse_triple(value: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = value.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
    numbers.try_into().ok()
}

impl TuningPath {
    /// Returns the path from its measurement, whose directions are those of the data and of the acknowledgements.
    #[must_use]
    pub fn from_evidence(evidence: &PathEvidence, from_far: bool) -> Self {
        let (with_data, against) = (
            DirectionMetrics::from_direction(&evidence.with_data),
            DirectionMetrics::from_direction(&evidence.with_acknowledgements),
        );
        let (out, back) = if from_far { (against, with_data) } else { (with_data, against) };
        Self { round_trip: evidence.round_trip, out, back }
    }
}

impl DirectionMetrics {
    fn from_direction(direction: &PathDirection) -> Self {
        let capacity = direction.capacity.as_ref();
        let mtu = direction.mtu.as_ref();
        let policer = direction.policer.as_ref().filter(|policer| policer.present);
        Self {
            capacity: capacity.map(|found| BitRate::from_bits_per_second(found.bits_per_second)),
            at_least: capacity.is_some_and(|found| found.at_least),
            loss: direction.packets.as_ref().and_then(|packets| Ratio::new(packets.loss?)),
            policer: policer.and_then(|found| found.bits_per_second).map(BitRate::from_bits_per_second),
            mtu: mtu.and_then(|found| u32::try_from(found.bytes).ok()).map(Mtu::new),
            black_hole: mtu.and_then(|found| found.black_hole_bytes).map(ByteCount::new),
        }
    }
}

impl ObservedTransfer {
    /// Returns the observation from the figures of a transfer.
    #[must_use]
    pub fn from_evidence(evidence: &TransferEvidence<'_>) -> Self {
        let buffer = evidence.receive_buffer.map(|(size, _)| size);
        let observation = evidence.observation;
        Self {
            goodput: Some(evidence.goodput),
            congestion_control: observation.congestion_control.clone(),
            segment: evidence.segment,
            retransmitted: evidence.retransmitted,
            window_share: evidence.full_window().zip(buffer).and_then(|(window, buffer)| window / buffer),
            receive_buffer: buffer,
            send_buffer: evidence.send_buffer.map(|(size, _)| size),
            asked_buffer: observation.asked.buffer,
            not_sent: evidence.not_sent,
            loaded_round_trip: evidence.loaded.map(|(median, _)| median),
        }
    }
}
