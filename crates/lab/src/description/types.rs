//! A path, understood and possible.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Ratio, StreamCount};

use super::Label;
use crate::plan::Sysctl;

/// A path: hosts in a chain of links, what is set on them, and who else uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct PathDescription {
    /// Name: that of the file, without `.toml`.
    pub name: String,
    /// What it is and what it teaches, in a line.
    pub story: String,
    /// Where the figures come from.
    pub source: String,
    /// The cause that was built in.
    pub label: Label,
    /// The command that shows it, in words: one of linerate's own, without the program's name.
    pub scenario: Vec<String>,
    /// From which the seeds of all that is random on the path are derived.
    pub seed: u64,
    /// The hosts in the order of the path: near, routers, far.
    pub hosts: Vec<Host>,
    /// The links in the order of the path: link `i` joins hosts `i` and `i + 1`.
    pub links: Vec<Link>,
    /// Other traffic.
    pub traffic: Vec<Traffic>,
}

impl PathDescription {
    /// The host of this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The round trip from near to far and back of a packet that waits nowhere and takes no time to send: the sum of
    /// all delays.
    #[must_use]
    pub fn propagation(&self) -> Duration {
        self.links.iter().map(|link| link.forward.delay + link.backward.delay).sum()
    }

    /// Whether the rate of a link changes with time.
    #[must_use]
    pub fn varies(&self) -> bool {
        self.links.iter().any(|link| !link.forward.steps.is_empty() || !link.backward.steps.is_empty())
    }

    /// Whether the path has IPv6: every link must carry its smallest MTU (RFC 8200 §5).
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        self.links.iter().all(|link| link.mtu >= SMALLEST_IPV6_MTU)
    }
}

/// RFC 8200 §5.
const SMALLEST_IPV6_MTU: Mtu = Mtu::new(1280);

/// Bytes of the Ethernet header, which the kernel's queues and shapers count with each IP packet; the checksum and the
/// gap between frames do not exist on virtual Ethernet.
pub const ETHERNET_HEADER: ByteCount = ByteCount::new(14);

/// A host and what is set on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, also that of its namespace.
    pub name: String,
    /// Name of its congestion control.
    pub congestion_control: String,
    /// Root queueing discipline of its devices; `None` for none, as virtual Ethernet has it.
    pub queueing: Option<String>,
    /// Kernel settings, by name.
    pub sysctls: Vec<Sysctl>,
    /// Segmentation and receive offloads; `None` where the path decides.
    pub offload: Option<bool>,
    /// Further arguments of the server that runs here; `None` for no server.
    pub server: Option<Vec<String>>,
}

/// A link between two neighbours of the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Largest IP packet.
    pub mtu: Mtu,
    /// Away from near.
    pub forward: Direction,
    /// Towards near.
    pub backward: Direction,
}

/// One direction of a link, in the order in which a packet meets it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Direction {
    /// Drops what exceeds a rate, before any queue.
    pub policer: Option<Policer>,
    /// IP packets larger than this vanish.
    pub drop_larger_than: Option<ByteCount>,
    /// The two ECN bits are cleared.
    pub bleach_ecn: bool,
    /// Discipline of the bottleneck's queue.
    pub queue: Queue,
    /// How much the queue holds; `None` for no limit.
    pub buffer: Option<Buffer>,
    /// Queue above which packets are marked.
    pub ecn_threshold: Option<ByteCount>,
    /// Rate, Ethernet headers included; `None` for no limit.
    pub rate: Option<BitRate>,
    /// When the rate becomes another one, in the order of time; empty where it stays.
    pub steps: Vec<RateStep>,
    /// Propagation delay.
    pub delay: Duration,
    /// How the delay varies.
    pub jitter: Option<Jitter>,
    /// How packets are lost.
    pub loss: Option<Loss>,
    /// Share that arrives twice.
    pub duplicate: Option<Ratio>,
    /// Share in which a bit is turned over.
    pub corrupt: Option<Ratio>,
    /// Packets that overtake others.
    pub reorder: Option<Reorder>,
}

impl Direction {
    /// The lowest and the highest rate that it has at any time; `None` without a rate.
    #[must_use]
    pub fn range_of_rates(&self) -> Option<(BitRate, BitRate)> {
        let first = self.rate?;
        let widen = |(low, high): (BitRate, BitRate), step: &RateStep| (low.min(step.rate), high.max(step.rate));
        Some(self.steps.iter().fold((first, first), widen))
    }
}

/// A rate that holds from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// When, after the set-up.
    pub at: Duration,
    /// The rate, Ethernet headers included.
    pub rate: BitRate,
}

/// A token bucket without a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// Rate of IP bytes.
    pub rate: BitRate,
    /// Size of the bucket.
    pub burst: ByteCount,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Bytes, Ethernet headers included.
    Bytes(ByteCount),
    /// Packets.
    Packets(PacketCount),
    /// What the link sends in this time.
    Time(Duration),
    /// That many bandwidth-delay products of this link's rate and the path's round trip.
    Multiple(Ratio),
}

impl Buffer {
    /// Its size in bytes with Ethernet headers, on a link with this rate and MTU of a path with this round trip;
    /// packets count as full ones.
    #[must_use]
    pub fn size(self, rate: BitRate, round_trip: Duration, mtu: Mtu) -> ByteCount {
        match self {
            Self::Bytes(size) => size,
            Self::Packets(packets) => packets * (mtu.byte_count() + ETHERNET_HEADER),
            Self::Time(time) => rate * time,
            Self::Multiple(multiple) => ByteCount::from_f64((rate * round_trip).as_f64() * multiple.get()),
        }
    }

    /// Its size in full packets, at least one.
    #[must_use]
    pub fn packets(self, rate: BitRate, round_trip: Duration, mtu: Mtu) -> PacketCount {
        if let Self::Packets(packets) = self {
            return packets;
        }
        let packet = (mtu.byte_count() + ETHERNET_HEADER).get();
        PacketCount::new((self.size(rate, round_trip, mtu).get() / packet).max(1))
    }
}

/// A queueing discipline of the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
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
}

impl Queue {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Fifo, Self::FqCodel, Self::Codel, Self::Cake, Self::Pie, Self::FqPie, Self::Red, Self::Sfq];

    /// Its name, as `tc` has it (but for `fifo`, which is `bfifo` or `pfifo` there).
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
        }
    }

    /// Whether it can mark above a threshold.
    #[must_use]
    pub const fn has_threshold(self) -> bool {
        matches!(self, Self::FqCodel | Self::Codel | Self::Red)
    }
}

/// Variation of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Its size: half the width of a uniform distribution, the standard deviation of the others.
    pub by: Duration,
    /// Its shape.
    pub distribution: Distribution,
}

/// The shape of jitter, from the tables of iproute2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
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

impl Distribution {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Normal, Self::Pareto, Self::ParetoNormal];

    /// Its name, as `tc` has it.
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

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each with this probability.
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

impl Loss {
    /// The share of packets that is lost over a long time.
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

/// Packets that overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// Share of packets that does.
    pub share: Ratio,
    /// By how much these are earlier; all others have the link's whole delay.
    pub by: Duration,
}

/// A flow besides the one that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// How it behaves.
    pub kind: TrafficKind,
    /// Host that sends.
    pub from: String,
    /// Host that receives.
    pub to: String,
    /// What carries it.
    pub protocol: TrafficProtocol,
    /// Flows at once; they share the rate evenly.
    pub streams: StreamCount,
    /// Congestion control; `None` for the sending host's.
    pub congestion_control: Option<String>,
    /// When it starts, after the set-up.
    pub start: Duration,
    /// How long it lasts; `None` for as long as the path stands.
    pub duration: Option<Duration>,
}

/// How a flow behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// As much as the path takes.
    Bulk,
    /// Spread evenly at a rate: TCP by the socket's pacing, UDP by the sender's clock.
    Paced {
        /// Of all streams together.
        rate: BitRate,
    },
    /// Bursts and pauses in turn.
    OnOff {
        /// Of all streams together while on.
        rate: BitRate,
        /// How long a burst lasts.
        on: Duration,
        /// How long a pause lasts.
        off: Duration,
    },
    /// As much as a slow receiver reads.
    SlowReader {
        /// Of the reading.
        rate: BitRate,
    },
    /// The application writes at a rate; the socket is free to send in bursts.
    ApplicationPaced {
        /// Of all streams together.
        rate: BitRate,
    },
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}
