//! Diagnosis of a transfer: observations at both hosts ([`TransferObservation`]), and conclusions ([`TransferDiagnosis`]).
//!
//! The rules that derive one from the other are in `linerate-rules`.

use core::fmt;

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_units::serde::{Nanoseconds, OptionalNanoseconds};
use linerate_units::{BitRate, ByteCount, Ratio};

use crate::far::HostEvidence;
use crate::parameters::{EndCondition, TestDirection, TestParameters};
use crate::path::{PathDirection, PathDocument};
use crate::report::{Outcome, TestReport};
use crate::sample::{IntervalReport, SocketSample};
use crate::stream::{StreamId, StreamRole};

mod cause;
mod located_cause;
mod path_label;

pub use cause::{Cause, CauseLocation};
pub use path_label::PathLabel;

/// Observations of a transfer at both hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferObservation {
    /// Settings of the application.
    pub asked: TransferSettings,
    /// Measured time, without the omitted part.
    #[serde(rename = "elapsed_ns", with = "Nanoseconds")]
    pub elapsed: Duration,
    /// Outcome of the test; `None` where connections of other programs were watched, which may go on.
    pub outcome: Option<Outcome>,
    /// Payload bytes received in that time.
    #[serde(rename = "received_bytes")]
    pub received: ByteCount,
    /// Congestion control of the sender.
    pub congestion_control: Option<String>,
    /// Connections.
    pub connections: Vec<ObservedConnection>,
    /// The sending host.
    pub sender: Option<HostEvidence>,
    /// The receiving host.
    pub receiver: Option<HostEvidence>,
    /// Idle path, in the direction of the data.
    pub path: Option<PathEvidence>,
}

/// Settings that the application chose for the transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferSettings {
    /// Maximum rate at which the application wrote.
    #[serde(rename = "rate_bits_per_second")]
    pub rate: Option<BitRate>,
    /// Pacing rate set on each connection (`SO_MAX_PACING_RATE`).
    #[serde(rename = "pacing_bits_per_second")]
    pub pacing: Option<BitRate>,
    /// Socket buffer size set by the application, before the kernel doubles it.
    #[serde(rename = "buffer_bytes")]
    pub buffer: Option<ByteCount>,
    /// Bytes of the whole transfer, where that was its end condition.
    pub bytes: Option<ByteCount>,
    /// True when the data flowed from the remote to the local host.
    pub from_far: bool,
}

/// One connection of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedConnection {
    /// Samples of the sender's socket, in order of time.
    pub sender: Vec<SocketInterval>,
    /// Samples of the receiver's socket; empty where the remote host does not report them.
    pub receiver: Vec<SocketInterval>,
    /// Share of a processor that its sending thread used.
    pub sender_processor: Option<Ratio>,
    /// Share of a processor that its receiving thread used.
    pub receiver_processor: Option<Ratio>,
    /// Share of the time for which its sending thread waited for a processor.
    pub sender_wait: Option<Ratio>,
    /// Share of the time for which its receiving thread waited for a processor.
    pub receiver_wait: Option<Ratio>,
}

/// Socket sample at the end of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketInterval {
    /// Start of the interval, since counting began.
    #[serde(rename = "from_ns", with = "Nanoseconds")]
    pub from: Duration,
    /// End of the interval.
    #[serde(rename = "to_ns", with = "Nanoseconds")]
    pub to: Duration,
    /// Payload bytes that this host sent or received in the interval.
    pub bytes: ByteCount,
    /// Socket sample.
    pub socket: SocketSample,
}

/// Properties of a path without the transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathEvidence {
    /// Smallest round trip.
    #[serde(rename = "round_trip_ns", with = "OptionalNanoseconds")]
    pub round_trip: Option<Duration>,
    /// Median and 95th percentile of the round trip.
    #[serde(rename = "usual_round_trip_ns", with = "Nanoseconds::<Option<(Duration, Duration)>>")]
    pub usual_round_trip: Option<(Duration, Duration)>,
    /// Direction of the data.
    pub with_data: PathDirection,
    /// Direction of the acknowledgements.
    pub with_acknowledgements: PathDirection,
}

impl TransferObservation {
    /// Combines the client's observations and the server's report; `near` are the client's own intervals.
    #[must_use]
    pub fn new(
        parameters: &TestParameters,
        near: &[IntervalReport],
        report: &TestReport,
        path: Option<&PathDocument>,
    ) -> Self {
        let from_far = parameters.direction == TestDirection::Reverse;
        let far = report.far.as_ref();
        let (near_host, far_host) = (report.host.clone(), far.and_then(|far| far.host.clone()));
        let (sender, receiver) = if from_far { (far_host, near_host) } else { (near_host, far_host) };
        let far_intervals = far.map_or(&[][..], |far| &far.intervals);
        let counted = |stream: &crate::report::StreamReport| stream.received.or(stream.sent);
        Self {
            asked: TransferSettings {
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
            outcome: Some(report.termination.outcome()),
            received: report.streams.iter().filter_map(counted).map(|side| side.bytes).sum(),
            congestion_control: if from_far { &report.remote_congestion } else { &report.local_congestion }.clone(),
            connections: connections(report, near, far_intervals),
            sender,
            receiver,
            path: path.map(|path| PathEvidence::new(path, from_far)),
        }
    }

    /// Payload bits received per second, over all connections.
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
            round_trip: best.map(|rtt| rtt.min),
            usual_round_trip: best.map(|rtt| (rtt.median, rtt.p95)),
            with_data: with_data.clone(),
            with_acknowledgements: with_acknowledgements.clone(),
        }
    }
}

fn connections(report: &TestReport, near: &[IntervalReport], far: &[IntervalReport]) -> Vec<ObservedConnection> {
    let of = |stream: &crate::report::StreamReport| {
        let (id, role) = (stream.description.id, stream.description.role);
        let shares = stream.tcp.as_ref().and_then(|tcp| tcp.limits.as_ref());
        let (here, there) = (socket_intervals(near, id), socket_intervals(far, id));
        let (sender, receiver) = if role == StreamRole::Sender { (here, there) } else { (there, here) };
        ObservedConnection {
            sender,
            receiver,
            sender_processor: shares.and_then(|shares| shares.sender_cpu),
            receiver_processor: shares.and_then(|shares| shares.receiver_cpu),
            sender_wait: shares.and_then(|shares| shares.sender_wait),
            receiver_wait: shares.and_then(|shares| shares.receiver_wait),
        }
    };
    report.streams.iter().map(of).collect()
}

fn socket_intervals(intervals: &[IntervalReport], id: StreamId) -> Vec<SocketInterval> {
    let counted = intervals.iter().filter(|interval| !interval.omitted);
    counted
        .filter_map(|interval| {
            let stream = interval.streams.iter().find(|stream| stream.stream == id)?;
            let socket = (**stream.socket.as_ref()?).clone();
            Some(SocketInterval { from: interval.start, to: interval.end, bytes: stream.bytes, socket })
        })
        .collect()
}

/// Confidence of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Low: it fits, and so do other causes.
    Low,
    /// Medium: two independent figures agree.
    Medium,
    /// High: the figures exclude all other known causes.
    High,
}

impl Confidence {
    /// Name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Goodput expected without a cause, with a range for the errors of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoodputEstimate {
    /// Lower end of the range, never below the measured goodput.
    #[serde(rename = "low_bits_per_second")]
    pub low: BitRate,
    /// Expected goodput.
    #[serde(rename = "bits_per_second")]
    pub expected: BitRate,
    /// Upper end of the range.
    #[serde(rename = "high_bits_per_second")]
    pub high: BitRate,
}

/// Cause that limits, or limited for part of the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosisVerdict {
    /// Cause; documents name its location, too.
    #[serde(flatten, with = "located_cause")]
    #[cfg_attr(feature = "schema", schemars(with = "located_cause::LocatedCause"))]
    pub cause: Cause,
    /// Confidence.
    pub confidence: Confidence,
    /// Explanation in one sentence, with its figures.
    pub text: String,
    /// Share of the transfer's time that the cause explains; `None` where it cannot be attributed to one.
    #[serde(default)]
    pub share: Option<Ratio>,
    /// Goodput without this cause, and without [`DiagnosisVerdict::together_with`]; `None` where no next bound is known.
    #[serde(default)]
    pub without: Option<GoodputEstimate>,
    /// Cause that has to go as well: each of the two holds the transfer alone. `None` where this one's removal is enough.
    #[serde(default)]
    pub together_with: Option<Cause>,
    /// Supporting figures, each with its unit.
    pub evidence: Vec<String>,
    /// Advice; empty where no change to a host would help.
    pub advice: Vec<String>,
    /// Run of `linerate tune` that tries a remedy; `None` where it would propose nothing, and for later verdicts.
    #[serde(default)]
    pub tune: Option<TuneScope>,
}

/// Scope of a run of `linerate tune`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneScope {
    /// True where the far host has to change (`--far`).
    pub far: bool,
    /// True where it works around a cause on the path (`--work-around`).
    pub work_around: bool,
}

/// State of a sender during part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SenderState {
    /// The application had nothing to send.
    Application,
    /// The send buffer was full.
    SendBuffer,
    /// The receiver's window was closed.
    ReceiveWindow,
    /// Nothing was acknowledged: the retransmission timer was running.
    Stalled,
    /// Losses were being repaired.
    Recovery,
    /// Slow start.
    SlowStart,
    /// A queue was present on the path.
    Queueing,
    /// The congestion window limited, without a queue.
    CongestionWindow,
}

impl SenderState {
    /// All variants.
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

    /// Name used in documents.
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

    /// Display name.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Application => "the application had nothing to send",
            Self::SendBuffer => "the send buffer was full",
            Self::ReceiveWindow => "the receiver's window was closed",
            Self::Stalled => "nothing was acknowledged",
            Self::Recovery => "losses were repaired",
            Self::SlowStart => "slow start",
            Self::Queueing => "a queue was present on the path",
            Self::CongestionWindow => "the congestion window, without a queue",
        }
    }
}

/// Resources that bound the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// Capacity of the path.
    Path,
    /// Receive window.
    ReceiveWindow,
    /// Send buffer.
    SendBuffer,
    /// Loss rate, by the congestion control's formula.
    Loss,
    /// Pacing rate of the socket.
    Pacing,
    /// Rate requested by the application.
    Application,
}

impl BoundKind {
    /// Display text.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Path => "the path",
            Self::ReceiveWindow => "the receive window",
            Self::SendBuffer => "the send buffer",
            Self::Loss => "the loss rate",
            Self::Pacing => "pacing of the socket",
            Self::Application => "the application",
        }
    }
}

/// Share of a transfer's time in one state of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateShare {
    /// State of the sender.
    pub state: SenderState,
    /// Share from 0 to 1.
    pub share: Ratio,
}

/// Upper bound of the throughput by one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThroughputBound {
    /// Resource.
    pub kind: BoundKind,
    /// Maximum goodput that it allows.
    #[serde(rename = "bits_per_second")]
    pub rate: BitRate,
    /// Formula with its inputs.
    pub arithmetic: String,
}

/// Result of a diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferDiagnosis {
    /// Limiting causes, most important first; never empty.
    pub verdicts: Vec<DiagnosisVerdict>,
    /// Shares of the transfer's time, largest first; they sum to one where anything is known.
    pub states: Vec<StateShare>,
    /// Goodput; zero where it is read from a test's document of an earlier version, which had it as the test's rate alone.
    #[serde(rename = "goodput_bits_per_second", default)]
    pub goodput: BitRate,
    /// Known bounds, lowest first.
    pub bounds: Vec<ThroughputBound>,
    /// Next bound, if the cause of the first verdict were removed.
    pub next: Option<ThroughputBound>,
    /// Figures that contradict the measurement, each with what refutes it; they decide nothing, and lower the confidence.
    #[serde(default)]
    pub contradictions: Vec<String>,
    /// Observations that a reader may take for a limit and that are none, each a sentence.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl TransferDiagnosis {
    /// Most important verdict.
    #[must_use]
    pub fn main_verdict(&self) -> Option<&DiagnosisVerdict> {
        self.verdicts.first()
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
