//! What rules of tuning look at: two hosts, the path between them, and what was seen of a transfer.

use core::time::Duration;
use std::collections::BTreeMap;

use linerate_model::diagnosis::{Cause, Diagnosis, Observation, PathEvidence};
use linerate_model::fact::Fact;
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;
use linerate_model::host::kernel::KernelVersion;
use linerate_model::host::memory::Memory;
use linerate_model::host::settings::Writing;
use linerate_model::schema::far::{HostEvidence, ReceivingEvidence};
use linerate_model::schema::path::PathDirection;
use linerate_units::{BitRate, ByteCount, Mss, Mtu, PacketCount, Ratio, StreamCount};

use super::goal::Goal;
use super::proposal::End;
use crate::diagnosis::Evidence;

/// Everything that the rules look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// What the hosts are for.
    pub goal: Goal,
    /// The host on which linerate runs.
    pub near: Host,
    /// The other one; `None` where nothing is known of it, and nothing is proposed for it.
    pub far: Option<Host>,
    /// Whether both are namespaces of one kernel (the lab, containers), and so share its memory.
    pub one_kernel: bool,
    /// The path.
    pub path: Path,
    /// Which way the data are to flow.
    pub data: Data,
    /// Connections that are expected to carry much data at the same time.
    pub flows: Option<StreamCount>,
    /// What limits a transfer, where one was measured. Its first verdict decides which rules are asked.
    pub diagnosis: Option<Diagnosis>,
    /// What was seen of that transfer.
    pub seen: Seen,
}

/// Which way data flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Data {
    /// Both ways, one after the other.
    #[default]
    Both,
    /// From the near host to the far one.
    ToFar,
    /// From the far host to the near one.
    FromFar,
}

/// A host, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Version of its kernel.
    pub kernel: Option<KernelVersion>,
    /// Its settings by sysctl's names; numbers that belong together have one blank between them.
    pub settings: BTreeMap<String, String>,
    /// Settings that cannot be written there, with the reason.
    pub unwritable: BTreeMap<String, String>,
    /// Its memory.
    pub memory: Option<ByteCount>,
    /// Size of a page; 4096 bytes where that is not known.
    pub page: Option<ByteCount>,
    /// Its TCP sockets.
    pub sockets: Option<StreamCount>,
    /// What its processors could not take in while the transfer was measured.
    pub receiving: Option<Receiving>,
    /// The interface towards the other end.
    pub interface: Option<Interface>,
    /// The route towards the other end.
    pub route: Option<RouteText>,
}

/// What `/proc/net/softnet_stat` counted during a measurement, and under which settings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Receiving {
    /// How long.
    pub elapsed: Duration,
    /// Processors that received.
    pub processors: u32,
    /// Packets dropped at a full backlog.
    pub dropped: PacketCount,
    /// Times that a processor stopped with packets left.
    pub squeezed: u64,
    /// `net.core.netdev_max_backlog` meanwhile.
    pub backlog: PacketCount,
    /// `net.core.netdev_budget_usecs` meanwhile.
    pub budget: Duration,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its queueing disciplines, as [`linerate_model::change::Target::Queueing`] has them.
    pub queueing: Option<String>,
}

/// A route, as `ip route` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteText {
    /// Its destination.
    pub destination: String,
    /// What follows the destination.
    pub attributes: String,
}

/// The path between the hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Smallest round trip.
    pub round_trip: Option<Duration>,
    /// From the near host to the far one.
    pub out: Way,
    /// Back.
    pub back: Way,
}

/// One direction of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    /// What it carries, in bits of IP packets per second.
    pub capacity: Option<BitRate>,
    /// Whether that is only known to be the least.
    pub at_least: bool,
    /// The share of packets that is lost when nothing else is under way.
    pub loss: Option<Ratio>,
    /// Rate of the policer on it; `None` where none was found.
    pub policer: Option<BitRate>,
    /// Path MTU.
    pub mtu: Option<Mtu>,
    /// The smallest packet that vanishes without a word.
    pub black_hole: Option<ByteCount>,
}

/// What was seen of a transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// What arrived.
    pub goodput: Option<BitRate>,
    /// Congestion control of the sender.
    pub congestion_control: Option<String>,
    /// Its segments.
    pub segment: Option<Mss>,
    /// The share of bytes that were sent again.
    pub retransmitted: Option<Ratio>,
    /// The largest window as a share of the receive buffer.
    pub window_share: Option<Ratio>,
    /// Largest receive buffer of a socket.
    pub receive_buffer: Option<ByteCount>,
    /// Largest send buffer of a socket.
    pub send_buffer: Option<ByteCount>,
    /// The socket buffer that the program asked for.
    pub asked_buffer: Option<ByteCount>,
    /// What was written and not sent yet, usually.
    pub not_sent: Option<ByteCount>,
}

/// Data on their way from one host to the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer<'i> {
    pub(super) sender: End,
    pub(super) receiver: End,
    pub(super) way: &'i Way,
}

impl Inputs {
    /// Without a measurement: a rate and a round trip that somebody knows, the same both ways.
    #[must_use]
    pub fn given(goal: Goal, near: Host, far: Option<Host>, rate: BitRate, round_trip: Duration) -> Self {
        let way = Way { capacity: Some(rate), ..Way::default() };
        let path = Path { round_trip: Some(round_trip), out: way.clone(), back: way };
        Self { goal, near, far, path, ..Self::default() }
    }

    /// With a measured transfer and what limits it. What `hosts` does not say of settings is taken from what each end told
    /// during the transfer.
    #[must_use]
    pub fn measured(
        goal: Goal,
        (mut near, mut far): (Host, Option<Host>),
        observation: &Observation,
        diagnosis: Diagnosis,
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
        for (host, told) in [(Some(&mut near), of_near), (far.as_mut(), of_far)] {
            let seen = told.as_ref().and_then(|evidence| evidence.receiving);
            if let Some((host, seen)) = host.zip(seen) {
                host.receiving = host.receiving.or_else(|| Receiving::of(&seen, host, observation.elapsed));
            }
        }
        let evidence = Evidence::of(observation);
        let mut path = observation.path.as_ref().map_or_else(Path::default, |path| Path::of(path, from_far));
        path.round_trip = evidence.base.or(path.round_trip);
        Self {
            goal,
            near,
            far,
            one_kernel: false,
            path,
            data: if from_far { Data::FromFar } else { Data::ToFar },
            flows: Some(StreamCount::new(observation.connections.len() as u64)).filter(|flows| !flows.is_zero()),
            diagnosis: Some(diagnosis),
            seen: Seen::of(&evidence),
        }
    }

    /// What limits, where it was measured.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.diagnosis.as_ref()?.verdicts.first().map(|verdict| verdict.cause)
    }

    /// A host; `None` where nothing is known of it.
    #[must_use]
    pub const fn host(&self, end: End) -> Option<&Host> {
        match end {
            End::Near => Some(&self.near),
            End::Far => self.far.as_ref(),
        }
    }

    /// The hosts of which something is known.
    pub(super) fn ends(&self) -> impl Iterator<Item = (End, &Host)> {
        [End::Near, End::Far].into_iter().filter_map(|end| Some((end, self.host(end)?)))
    }

    /// The data that are to flow.
    pub(super) fn transfers(&self) -> Vec<Transfer<'_>> {
        let out = Transfer { sender: End::Near, receiver: End::Far, way: &self.path.out };
        let back = Transfer { sender: End::Far, receiver: End::Near, way: &self.path.back };
        match self.data {
            Data::Both => vec![out, back],
            Data::ToFar => vec![out],
            Data::FromFar => vec![back],
        }
    }

    /// The sender's congestion control: as it was seen, else as it is set.
    pub(super) fn congestion_control(&self, sender: End) -> Option<&str> {
        let set = || self.host(sender)?.settings.get("net.ipv4.tcp_congestion_control").map(String::as_str);
        self.seen.congestion_control.as_deref().or_else(set)
    }
}

impl Receiving {
    /// With the settings of the host during a measurement that took this long.
    fn of(seen: &ReceivingEvidence, host: &Host, elapsed: Duration) -> Option<Self> {
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

impl Host {
    /// From everything that is known of a host; what is not read there has no reason here.
    #[must_use]
    pub fn of_facts(facts: &HostFacts) -> Self {
        let value = |(key, setting): (&String, &linerate_model::host::settings::Setting)| {
            Some((key.clone(), setting.value.known()?.clone()))
        };
        let unwritable = facts.settings.values.iter().filter_map(|(key, setting)| match &setting.writing {
            Writing::Impossible(reason) => Some((key.clone(), reason.clone())),
            Writing::Unknown | Writing::Possible | Writing::NeedsPrivilege => None,
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

    /// From what a host told of itself during a test.
    #[must_use]
    pub fn of_evidence(evidence: &HostEvidence) -> Self {
        let mut host = Self::default();
        host.complete(Some(evidence));
        host
    }

    /// Adds what it does not know yet.
    fn complete(&mut self, evidence: Option<&HostEvidence>) {
        let Some(evidence) = evidence else { return };
        self.kernel = self.kernel.or_else(|| KernelVersion::parse(evidence.kernel.as_deref()?));
        self.memory = self.memory.or_else(|| evidence.memory_bytes.map(ByteCount::new));
        for (key, value) in &evidence.settings {
            self.settings.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }

    /// A setting that is one number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.settings.get(key)?.trim().parse().ok()
    }

    /// A setting that is three numbers.
    #[must_use]
    pub fn three(&self, key: &str) -> Option<[u64; 3]> {
        three(self.settings.get(key)?)
    }

    /// The size of its pages.
    #[must_use]
    pub fn page(&self) -> ByteCount {
        self.page.filter(|page| !page.is_zero()).unwrap_or(linerate_model::formulas::PAGE)
    }

    /// The three numbers that its kernel sets by itself.
    pub(super) fn default_three(&self, key: &str) -> Option<[u64; 3]> {
        let memory =
            Memory { total: Fact::Known(self.memory?), page_size: Fact::Known(self.page()), ..Memory::default() };
        three(&default_of(key, self.kernel?, &memory)?.value)
    }
}

pub(super) fn three(value: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = value.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}

impl Path {
    /// From a measured path. Its directions are those of the data and of the acknowledgements.
    #[must_use]
    pub fn of(evidence: &PathEvidence, from_far: bool) -> Self {
        let (with_data, against) = (Way::of(&evidence.with_data), Way::of(&evidence.with_acknowledgements));
        let (out, back) = if from_far { (against, with_data) } else { (with_data, against) };
        Self { round_trip: evidence.round_trip, out, back }
    }
}

impl Way {
    fn of(direction: &PathDirection) -> Self {
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

impl Seen {
    /// From the figures of a transfer.
    #[must_use]
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let buffer = evidence.receive_buffer.map(|(size, _)| size);
        let observation = evidence.observation;
        Self {
            goodput: Some(evidence.goodput),
            congestion_control: observation.congestion_control.clone(),
            segment: evidence.segment,
            retransmitted: evidence.retransmitted,
            window_share: evidence.largest_window.zip(buffer).and_then(|(window, buffer)| window / buffer),
            receive_buffer: buffer,
            send_buffer: evidence.send_buffer.map(|(size, _)| size),
            asked_buffer: observation.asked.buffer,
            not_sent: evidence.not_sent,
        }
    }
}
