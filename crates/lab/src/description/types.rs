//! A validated path.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Ratio, StreamCount};

use super::PathLabel;
use crate::plan::SysctlSetting;
use linerate_analysis::link_layer::LinkLayer;

/// A path: hosts in a chain of links, their settings, and other traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct PathDescription {
    /// Name: that of the file, without `.toml`.
    pub name: String,
    /// One-line description of the path and its purpose.
    pub story: String,
    /// Source of the figures.
    pub source: String,
    /// The built-in cause.
    pub label: PathLabel,
    /// Command that demonstrates it, as arguments: one of linerate's own, without the program's name.
    pub scenario: Vec<String>,
    /// Seed of all randomness on the path.
    pub seed: u64,
    /// The hosts in the order of the path: near, routers, far.
    pub hosts: Vec<HostDescription>,
    /// The links in the order of the path: link `i` joins hosts `i` and `i + 1`.
    pub links: Vec<EmulatedLink>,
    /// Other traffic.
    pub traffic: Vec<TrafficDescription>,
}

impl PathDescription {
    /// The link of an index, or the second of two parallel ones, whose index is larger by `PARALLEL`.
    #[must_use]
    pub fn link(&self, index: usize) -> &EmulatedLink {
        &self.links[index % PARALLEL]
    }

    /// Indices of all links, those of second parallel ones last.
    pub(crate) fn link_indices(&self) -> impl Iterator<Item = usize> {
        let second =
            self.links.iter().enumerate().filter(|(_, link)| link.is_parallel).map(|(index, _)| index + PARALLEL);
        (0..self.links.len()).chain(second)
    }

    /// The host of this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&HostDescription> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Round trip from near to far and back of a packet without queueing and serialisation: the sum of all delays.
    #[must_use]
    pub fn propagation(&self) -> Duration {
        self.links.iter().map(|link| link.forward.delay + link.backward.delay).sum()
    }

    /// True when the rate of a link changes with time.
    #[must_use]
    pub fn varies(&self) -> bool {
        self.links.iter().any(|link| !link.forward.steps.is_empty() || !link.backward.steps.is_empty())
    }

    /// True when the path has IPv6: every link must carry its smallest MTU (RFC 8200 §5).
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        self.links.iter().all(|link| link.mtu >= MIN_IPV6_MTU)
    }
}

/// Minimum MTU of IPv6 (RFC 8200 §5).
const MIN_IPV6_MTU: Mtu = Mtu::new(1280);

/// A host and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDescription {
    /// Name, also that of its namespace.
    pub name: String,
    /// Name of its congestion control.
    pub congestion_control: String,
    /// Root queueing discipline of its devices; `None` for none, the default of virtual Ethernet.
    pub queueing: Option<String>,
    /// Rate of that discipline, Ethernet header included: of each flow with `fq`, else of all packets of a device
    /// together; `None` for no limit.
    pub queueing_rate: Option<BitRate>,
    /// Kernel settings, by name.
    pub sysctls: Vec<SysctlSetting>,
    /// Segmentation and receive offloads; `None` where the path decides.
    pub offload: Option<bool>,
    /// Further arguments of the server that runs here; `None` for no server.
    pub server: Option<Vec<String>>,
}

/// Distance of the index of a second parallel link from that of the first: a description has at most 64 links.
pub(crate) const PARALLEL: usize = 64;

/// A link between two neighbours of the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedLink {
    /// True when there is a second link with the same properties: packets to far take one or the other, by flow.
    pub is_parallel: bool,
    /// Largest IP packet.
    pub mtu: Mtu,
    /// Direction away from near.
    pub forward: LinkDirection,
    /// Direction towards near.
    pub backward: LinkDirection,
}

impl EmulatedLink {
    /// Returns the features of a direction: up is from the near host to the far one.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &LinkDirection {
        match direction {
            Direction::Up => &self.forward,
            Direction::Down => &self.backward,
        }
    }
}

/// One direction of a link, in the order in which packets pass it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkDirection {
    /// Policer that drops packets above a rate, before any queue.
    pub policer: Option<PolicerDescription>,
    /// Size above which IP packets are dropped without an ICMP error.
    pub drop_larger_than: Option<ByteCount>,
    /// True when the two ECN bits are cleared.
    pub bleach_ecn: bool,
    /// True when ECT(1), the codepoint of L4S, becomes ECT(0).
    pub rewrite_ect1: bool,
    /// Discipline of the bottleneck's queue.
    pub queue: BottleneckQueue,
    /// Capacity of the queue; `None` for no limit.
    pub buffer: Option<BufferSize>,
    /// Queue length above which packets are marked.
    pub ecn_threshold: Option<ByteCount>,
    /// Rate, link layer included; `None` for no limit.
    pub rate: Option<BitRate>,
    /// Link layer, which determines the bytes that a packet occupies at this rate.
    pub layer: LinkLayer,
    /// Changes of the rate, in chronological order; empty where it is constant.
    pub steps: Vec<RateStep>,
    /// Time after which the steps begin again; `None` where the last rate stays. The rate is then their mean.
    pub steps_period: Option<Duration>,
    /// Propagation delay.
    pub delay: Duration,
    /// Variation of the delay.
    pub jitter: Option<DelayJitter>,
    /// Packet loss.
    pub loss: Option<LossModel>,
    /// Share of packets that arrive twice.
    pub duplicate: Option<Ratio>,
    /// Share of packets with a flipped bit.
    pub corrupt: Option<Ratio>,
    /// Reordering of packets.
    pub reorder: Option<LinkReordering>,
}

impl Default for LinkDirection {
    /// Virtual Ethernet without a limit, a delay or impairments.
    fn default() -> Self {
        Self {
            policer: None,
            drop_larger_than: None,
            bleach_ecn: false,
            rewrite_ect1: false,
            queue: BottleneckQueue::default(),
            buffer: None,
            ecn_threshold: None,
            rate: None,
            layer: LinkLayer::VIRTUAL_ETHERNET,
            steps: Vec::new(),
            steps_period: None,
            delay: Duration::ZERO,
            jitter: None,
            loss: None,
            duplicate: None,
            corrupt: None,
            reorder: None,
        }
    }
}

impl LinkDirection {
    /// Lowest and highest rate at any time; `None` without a rate.
    #[must_use]
    pub fn rate_range(&self) -> Option<(BitRate, BitRate)> {
        let first = self.rate?;
        let widen = |(low, high): (BitRate, BitRate), step: &RateStep| (low.min(step.rate), high.max(step.rate));
        Some(self.steps.iter().fold((first, first), widen))
    }
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// Time after the set-up.
    pub at: Duration,
    /// The rate, link layer included.
    pub rate: BitRate,
}

/// A token bucket without a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerDescription {
    /// Rate of IP bytes.
    pub rate: BitRate,
    /// Size of the bucket.
    pub burst: ByteCount,
}

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// Bytes, link layer included.
    Bytes(ByteCount),
    /// Packets.
    Packets(PacketCount),
    /// Bytes that the link sends in this time.
    Time(Duration),
    /// Bandwidth-delay products of this link's rate and the path's round trip.
    Multiple(Ratio),
}

impl BufferSize {
    /// Size in bytes, on a link with this rate and these bytes of a full packet, both as the link layer counts them, of a
    /// path with this round trip; packets count as full ones.
    #[must_use]
    pub fn size(self, rate: BitRate, round_trip: Duration, full_packet: ByteCount) -> ByteCount {
        match self {
            Self::Bytes(size) => size,
            Self::Packets(packets) => packets * full_packet,
            Self::Time(time) => rate * time,
            Self::Multiple(multiple) => ByteCount::from_f64((rate * round_trip).as_f64() * multiple.get()),
        }
    }

    /// Size in full packets, at least one.
    #[must_use]
    pub fn packets(self, rate: BitRate, round_trip: Duration, full_packet: ByteCount) -> PacketCount {
        if let Self::Packets(packets) = self {
            return packets;
        }
        let size = self.size(rate, round_trip, full_packet);
        PacketCount::new((size.get() / full_packet.get().max(1)).max(1))
    }
}

/// A queueing discipline of the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BottleneckQueue {
    /// First in, first out; packets that do not fit are dropped.
    #[default]
    Fifo,
    /// Fair queueing with `CoDel` in each flow (RFC 8290).
    FqCodel,
    /// `CoDel` (RFC 8289).
    Codel,
    /// CAKE, with its own shaper.
    Cake,
    /// PIE (RFC 8033).
    Pie,
    /// Fair queueing with PIE in each flow.
    FqPie,
    /// Random early detection.
    Red,
    /// Stochastic fairness queueing.
    Sfq,
    /// Two coupled queues, of which one is for L4S (RFC 9332).
    DualPi2,
}

impl BottleneckQueue {
    /// All disciplines.
    pub const ALL: [Self; 9] = [
        Self::Fifo,
        Self::FqCodel,
        Self::Codel,
        Self::Cake,
        Self::Pie,
        Self::FqPie,
        Self::Red,
        Self::Sfq,
        Self::DualPi2,
    ];

    /// Name, as in `tc` (but for `fifo`, which is `bfifo` or `pfifo` there).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::FqCodel => "fq_codel",
            Self::Codel => "codel",
            Self::Cake => "cake",
            Self::Pie => "pie",
            Self::FqPie => "fq_pie",
            Self::Red => "red",
            Self::Sfq => "sfq",
            Self::DualPi2 => "dualpi2",
        }
    }

    /// True when it can mark above a threshold.
    #[must_use]
    pub const fn has_threshold(self) -> bool {
        matches!(self, Self::FqCodel | Self::Codel | Self::Red)
    }
}

/// Variation of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayJitter {
    /// Size: half the width of a uniform distribution, the standard deviation of the others.
    pub by: Duration,
    /// Shape.
    pub distribution: JitterDistribution,
}

/// The shape of jitter, from the tables of iproute2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Every delay between delay − jitter and delay + jitter is as likely.
    #[default]
    Uniform,
    /// The bell curve.
    Normal,
    /// A long tail.
    Pareto,
    /// A quarter bell curve, three quarters long tail.
    ParetoNormal,
}

impl JitterDistribution {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Normal, Self::Pareto, Self::ParetoNormal];

    /// Name, as in `tc`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::ParetoNormal => "paretonormal",
        }
    }
}

/// Models of packet loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossModel {
    /// Each packet with this probability.
    Random(Ratio),
    /// In bursts: two states, each with a loss of its own (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability per packet to go from good to bad.
        good_to_bad: Ratio,
        /// Probability per packet to go back.
        bad_to_good: Ratio,
        /// Loss in the bad state.
        loss_in_bad: Ratio,
        /// Loss in the good state.
        loss_in_good: Ratio,
    },
    /// Each packet whose number is a multiple of this one, all protocols counted together.
    Every(PacketCount),
}

impl LossModel {
    /// Share of packets lost over a long time.
    #[must_use]
    pub fn mean(self) -> Ratio {
        match self {
            Self::Random(share) => share,
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good } => {
                let changes = good_to_bad.get() + bad_to_good.get();
                let bad = if changes > 0.0 { good_to_bad.get() / changes } else { 0.0 };
                Ratio::new(bad * loss_in_bad.get() + (1.0 - bad) * loss_in_good.get()).unwrap_or_default()
            }
            Self::Every(count) => Ratio::of(1.0, count.as_f64()).unwrap_or_default(),
        }
    }
}

/// Reordering of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReordering {
    /// Share of packets that overtake others.
    pub share: Ratio,
    /// Time by which these are earlier; all others have the link's whole delay.
    pub by: Duration,
}

/// A flow in addition to the measured one.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficDescription {
    /// Behaviour.
    pub kind: TrafficKind,
    /// Host that sends.
    pub from: String,
    /// Host that receives.
    pub to: String,
    /// Transport protocol.
    pub protocol: TrafficProtocol,
    /// Flows at once; they share the rate evenly.
    pub streams: StreamCount,
    /// Congestion control; `None` for the sending host's.
    pub congestion_control: Option<String>,
    /// Start time, after the set-up.
    pub start: Duration,
    /// Duration; `None` for the lifetime of the path.
    pub duration: Option<Duration>,
}

/// Behaviour of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// As much as the path carries.
    Bulk,
    /// Spread evenly at a rate: TCP by the socket's pacing, UDP by the sender's clock.
    Paced {
        /// Rate of all streams together.
        rate: BitRate,
    },
    /// Bursts and pauses in turn.
    OnOff {
        /// Rate of all streams together while on.
        rate: BitRate,
        /// Duration of a burst.
        on: Duration,
        /// Duration of a pause.
        off: Duration,
    },
    /// As much as a slow receiver reads.
    SlowReader {
        /// Read rate of the receiver.
        rate: BitRate,
    },
    /// The application writes at a rate; the socket is free to send in bursts.
    ApplicationPaced {
        /// Rate of all streams together.
        rate: BitRate,
    },
}

/// Transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}
