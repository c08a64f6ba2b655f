//! What limits a transfer: what was seen of it at both ends ([`Observation`]), and what follows ([`Diagnosis`]).
//!
//! The rules that lead from one to the other are in `linerate-rules`.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, Ratio};

use crate::parameters::{Direction, EndCondition, TestParameters};
use crate::report::TestReport;
use crate::sample::{IntervalReport, SocketSample};
use crate::schema::far::HostEvidence;
use crate::schema::path::{PathDirection, PathDocument};
use crate::stream::{Role, StreamId};

mod cause;

pub use cause::{Cause, Place};

/// A transfer, as both of its ends saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// What the application asked for.
    pub asked: Asked,
    /// How long it counted.
    pub elapsed: Duration,
    /// Payload bytes that arrived meanwhile.
    pub received: ByteCount,
    /// Congestion control of the sender.
    pub congestion_control: Option<String>,
    /// Its connections.
    pub connections: Vec<Connection>,
    /// The sending host.
    pub sender: Option<HostEvidence>,
    /// The receiving host.
    pub receiver: Option<HostEvidence>,
    /// The path without the transfer, in the direction of the data.
    pub path: Option<PathEvidence>,
}

/// What the application asked of the kernel, and of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// The rate at which it wrote at most.
    pub rate: Option<BitRate>,
    /// The rate at which it had the kernel pace each connection (`SO_MAX_PACING_RATE`).
    pub pacing: Option<BitRate>,
    /// The socket buffers that it set, before the kernel doubled them.
    pub buffer: Option<ByteCount>,
    /// Bytes of the whole transfer, where that was what ended it.
    pub bytes: Option<ByteCount>,
    /// Whether the data flowed from the far end to this one.
    pub from_far: bool,
}

/// One connection of a transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connection {
    /// The sender's socket, in the order of time.
    pub sender: Vec<Moment>,
    /// The receiver's socket; empty where the far end does not tell.
    pub receiver: Vec<Moment>,
    /// Share of a processor that its sending thread used.
    pub sender_processor: Option<Ratio>,
    /// Share of a processor that its receiving thread used.
    pub receiver_processor: Option<Ratio>,
}

/// A socket at the end of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// When the interval began, since counting began.
    pub from: Duration,
    /// When it ended.
    pub to: Duration,
    /// Payload bytes that this end moved meanwhile.
    pub bytes: ByteCount,
    /// The socket.
    pub socket: SocketSample,
}

/// What a path does to packets when the transfer is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathEvidence {
    /// Smallest round trip.
    pub round_trip: Option<Duration>,
    /// Middle round trip, and that of the slowest twentieth.
    pub usual_round_trip: Option<(Duration, Duration)>,
    /// In the direction of the data.
    pub with_data: PathDirection,
    /// In the direction of the acknowledgements.
    pub with_acknowledgements: PathDirection,
}

impl Observation {
    /// Puts together what the client of a test saw and what its server told; `near` are the client's own intervals.
    #[must_use]
    pub fn new(
        parameters: &TestParameters,
        near: &[IntervalReport],
        report: &TestReport,
        path: Option<&PathDocument>,
    ) -> Self {
        let from_far = parameters.direction == Direction::Reverse;
        let far = report.far.as_ref();
        let (near_host, far_host) = (report.host.clone(), far.and_then(|far| far.host.clone()));
        let (sender, receiver) = if from_far { (far_host, near_host) } else { (near_host, far_host) };
        let far_intervals = far.map_or(&[][..], |far| &far.intervals);
        let counted = |stream: &crate::report::StreamReport| stream.received.or(stream.sent);
        Self {
            asked: Asked {
                rate: parameters.rate.filter(|rate| !rate.is_zero()),
                pacing: parameters.fq_rate,
                buffer: parameters.window,
                bytes: match parameters.end {
                    EndCondition::Time(_) => None,
                    EndCondition::Bytes(bytes) => Some(bytes),
                    EndCondition::Blocks(blocks) => Some(parameters.block_size * blocks.get()),
                },
                from_far,
            },
            elapsed: report.streams.iter().filter_map(counted).map(|side| side.duration).max().unwrap_or_default(),
            received: report.streams.iter().filter_map(counted).map(|side| side.bytes).sum(),
            congestion_control: if from_far { &report.remote_congestion } else { &report.local_congestion }.clone(),
            connections: connections(report, near, far_intervals),
            sender,
            receiver,
            path: path.map(|path| PathEvidence::new(path, from_far)),
        }
    }

    /// Payload bits that arrived per second, over all connections.
    #[must_use]
    pub fn goodput(&self) -> BitRate {
        self.received.rate_over(self.elapsed)
    }
}

impl PathEvidence {
    fn new(path: &PathDocument, from_far: bool) -> Self {
        let (with_data, with_acknowledgements) = if from_far { (&path.down, &path.up) } else { (&path.up, &path.down) };
        let best = path.rtt.best.as_ref();
        Self {
            round_trip: best.map(|rtt| Duration::from_nanos(rtt.min_ns)),
            usual_round_trip: best.map(|rtt| (Duration::from_nanos(rtt.median_ns), Duration::from_nanos(rtt.p95_ns))),
            with_data: with_data.clone(),
            with_acknowledgements: with_acknowledgements.clone(),
        }
    }
}

fn connections(report: &TestReport, near: &[IntervalReport], far: &[IntervalReport]) -> Vec<Connection> {
    let of = |stream: &crate::report::StreamReport| {
        let (id, role) = (stream.description.id, stream.description.role);
        let shares = stream.tcp.as_ref().and_then(|tcp| tcp.limits.as_ref());
        let (here, there) = (moments(near, id), moments(far, id));
        let (sender, receiver) = if role == Role::Sender { (here, there) } else { (there, here) };
        Connection {
            sender,
            receiver,
            sender_processor: shares.and_then(|shares| shares.sender_cpu),
            receiver_processor: shares.and_then(|shares| shares.receiver_cpu),
        }
    };
    report.streams.iter().map(of).collect()
}

fn moments(intervals: &[IntervalReport], id: StreamId) -> Vec<Moment> {
    let counted = intervals.iter().filter(|interval| !interval.omitted);
    counted
        .filter_map(|interval| {
            let stream = interval.streams.iter().find(|stream| stream.stream == id)?;
            let socket = (**stream.socket.as_ref()?).clone();
            Some(Moment { from: interval.start, to: interval.end, bytes: stream.bytes, socket })
        })
        .collect()
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It fits, and so would something else.
    Low,
    /// Two independent figures say so.
    Medium,
    /// The figures leave no room for anything else that is known.
    High,
}

impl Confidence {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// One thing that limits, or limited for part of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What it is.
    pub cause: Cause,
    /// How sure.
    pub confidence: Confidence,
    /// What it rests on, in one sentence with its figures.
    pub text: String,
    /// The figures one by one, each with its unit.
    pub evidence: Vec<String>,
    /// What to do about it; empty where nothing on a host would help.
    pub advice: Vec<String>,
}

/// What a connection was doing during part of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The application had nothing to send.
    Application,
    /// Room in the send buffer was missing.
    SendBuffer,
    /// The receiver's window was closed.
    ReceiveWindow,
    /// Nothing was acknowledged: a retransmission timeout was running.
    Stalled,
    /// Losses were being repaired.
    Recovery,
    /// Slow start.
    SlowStart,
    /// A queue was standing on the path.
    Queueing,
    /// The congestion window, without a queue.
    CongestionWindow,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Application,
        Self::SendBuffer,
        Self::ReceiveWindow,
        Self::Stalled,
        Self::Recovery,
        Self::SlowStart,
        Self::Queueing,
        Self::CongestionWindow,
    ];

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::SendBuffer => "send_buffer",
            Self::ReceiveWindow => "receive_window",
            Self::Stalled => "stalled",
            Self::Recovery => "recovery",
            Self::SlowStart => "slow_start",
            Self::Queueing => "queueing",
            Self::CongestionWindow => "congestion_window",
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Application => "the application had nothing to send",
            Self::SendBuffer => "the send buffer was full",
            Self::ReceiveWindow => "the receiver's window was closed",
            Self::Stalled => "nothing was acknowledged",
            Self::Recovery => "losses were repaired",
            Self::SlowStart => "slow start",
            Self::Queueing => "a queue stood on the path",
            Self::CongestionWindow => "the congestion window, without a queue",
        }
    }
}

/// What else would limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// What.
    pub name: String,
    /// The goodput that it allows at most.
    pub rate: BitRate,
    /// How that was computed, with the inputs.
    pub arithmetic: String,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// What limits, most important first; never empty.
    pub verdicts: Vec<Verdict>,
    /// Shares of the transfer's time; they add up to one where anything is known.
    pub states: Vec<(State, Ratio)>,
    /// What arrived.
    pub goodput: BitRate,
    /// The bounds that are known, lowest first.
    pub bounds: Vec<Bound>,
    /// The bound that would come next, if the first verdict's cause were removed.
    pub next: Option<Bound>,
}

impl Diagnosis {
    /// The verdict that counts.
    #[must_use]
    pub fn first(&self) -> Option<&Verdict> {
        self.verdicts.first()
    }
}
