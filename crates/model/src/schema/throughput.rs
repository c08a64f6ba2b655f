//! The document of `linerate test --json`.
//!
//! The shape is stable: within [`SCHEMA`] 1 keys may be added, none renamed or removed, and no unit changed. Each key
//! names its unit (`_ns`, `_bytes`, `bits_per_second`, `_percent`, `_segments`, `_packets`; ratios are bare numbers
//! from 0 to 1). What is not known is `null`, never 0: for example what only the sender's kernel knows of a download
//! from a stock iperf3 server. A test that was cut short has a document too; [`Termination`] says why.
//!
//! The parts that iperf3's documents share (the object `"linerate"`) are public, so that both use the same words.

mod convert;
mod figures;
mod tcp_info;

use serde::{Deserialize, Serialize};

use super::diagnose;

pub use figures::{LoadedRtt, MeasuredRate};
pub use tcp_info::TcpInfo;

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// A series of throughput tests over one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThroughputDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// Whether the server is a linerate; if not, what only a linerate tells is `null`.
    pub peer_is_linerate: bool,
    /// The server's version, when it is a linerate.
    pub peer_version: Option<String>,
    /// Round-trip times of handshakes before any load.
    pub idle_rtt: Option<TimeDistribution>,
    /// The tests in the order in which they ran.
    pub runs: Vec<Run>,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// Which way the data flowed, seen from the client.
    pub direction: Direction,
    /// Parallel streams.
    pub streams: u64,
    /// When data began to flow: nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: Option<u64>,
    /// How it ended.
    pub termination: Termination,
    /// Payload bytes over time, at the end named by `measured_at`; the omitted part left out.
    pub bits_per_second: Option<f64>,
    /// Whose counters the rate is from: the receiver's where they are known.
    pub measured_at: Option<Role>,
    /// The time that the rate is over.
    pub duration_ns: Option<u64>,
    /// Payload bytes that the sender wrote.
    pub sent_bytes: Option<u64>,
    /// Payload bytes that the receiver read.
    pub received_bytes: Option<u64>,
    /// TCP segments sent again, all streams.
    pub retransmitted_segments: Option<u64>,
    /// Round-trip times of the sender's connections under this load.
    pub loaded_rtt: Option<RttUnderLoad>,
    /// Processor time of the client's process over wall time; above 100 with several threads.
    pub client_cpu_percent: Option<f64>,
    /// The same of the server's process.
    pub server_cpu_percent: Option<f64>,
    /// Congestion control of the sender.
    pub sender_congestion_control: Option<String>,
    /// Congestion control of the receiver.
    pub receiver_congestion_control: Option<String>,
    /// What held the sender back, mean over the streams.
    pub limit: Option<Limit>,
    /// What limited the test, from what both ends saw, the path's capacity unknown; `null` where that says nothing:
    /// the sender's sockets were not seen, as in downloads from a stock iperf3 server, readings were asked for more often
    /// than every 200 ms, or what the far end tells would take a part of a slow path.
    #[serde(default)]
    pub diagnosis: Option<Diagnosis>,
    /// Most other tests that ran in the server at the same time; they disturb this one.
    pub overlapping_tests: Option<u64>,
    /// Each stream, in order of creation.
    pub stream_results: Vec<StreamResult>,
    /// Each interval as the client saw it.
    pub intervals: Vec<Interval>,
    /// Each interval as the server saw it, on its own clock.
    pub server_intervals: Option<Vec<Interval>>,
}

/// What limited a test, in the words of the document of `linerate diagnose`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// What limits, most important first.
    pub verdicts: Vec<diagnose::Verdict>,
    /// Shares of the test's time by what the sender was doing, classified for each interval and stream; largest first.
    pub states: Vec<diagnose::StateShare>,
    /// What each resource allows at most, lowest first.
    pub bounds: Vec<diagnose::Bound>,
    /// The bound that would come next without the first verdict's cause.
    pub next: Option<diagnose::Bound>,
}

/// Which way data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// What an end does on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It sends.
    Sender,
    /// It receives.
    Receiver,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Termination {
    /// In one word.
    pub outcome: Outcome,
    /// The signal that ended it, for [`Outcome::Interrupted`], for example `Interrupt(2)`.
    pub signal: Option<String>,
    /// What failed, for [`Outcome::Failed`].
    pub message: Option<String>,
}

/// How a test ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As asked.
    Complete,
    /// The process that writes the document got a signal.
    Interrupted,
    /// The other end got a signal.
    PeerTerminated,
    /// An error.
    Failed,
}

/// Order statistics of measured times (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimeDistribution {
    /// Number of readings.
    pub count: u64,
    /// Smallest.
    pub min_ns: u64,
    /// 50th percentile.
    pub median_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// Round-trip times while the path is loaded, over all streams ([`LoadedRtt`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RttUnderLoad {
    /// Median of the streams' (or intervals') medians.
    pub median_ns: u64,
    /// Largest of the streams' (or intervals') 95th percentiles.
    pub p95_ns: u64,
}

/// What held a TCP sender back, as shares of the time from 0 to 1 (`linerate_model::limit`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limit {
    /// The one that decided.
    pub verdict: Verdict,
    /// Nothing to send.
    pub application: f64,
    /// Waiting for room in the send buffer (`tcpi_sndbuf_limited`).
    pub send_buffer: f64,
    /// Waiting for the receiver's window (`tcpi_rwnd_limited`).
    pub receive_window: f64,
    /// Waiting for the congestion window: the rest of `tcpi_busy_time`.
    pub network: f64,
    /// How busy the sending thread's processor was.
    pub sender_cpu: Option<f64>,
    /// How busy the receiving thread's processor was.
    pub receiver_cpu: Option<f64>,
}

/// What a transfer is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The sending application.
    Application,
    /// The sending host.
    Sender,
    /// The receiving host.
    Receiver,
    /// The network.
    Network,
}

/// One stream over the whole test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StreamResult {
    /// Number on the wire.
    pub id: u32,
    /// Payload rate, by the receiver's counters where they are known.
    pub bits_per_second: Option<f64>,
    /// Payload bytes that the sender wrote.
    pub sent_bytes: Option<u64>,
    /// Payload bytes that the receiver read.
    pub received_bytes: Option<u64>,
    /// TCP segments sent again.
    pub retransmitted_segments: Option<u64>,
    /// Round-trip times at the sampler's cadence; known where the client sends.
    pub rtt: Option<TimeDistribution>,
    /// What held the sender back.
    pub limit: Option<Limit>,
    /// Processor time of the client's thread that moved the data.
    pub client_thread_cpu_ns: Option<u64>,
    /// The last reading of the client's socket.
    pub client_tcp_info: Option<TcpInfo>,
    /// The last reading of the server's socket.
    pub server_tcp_info: Option<TcpInfo>,
}

/// All streams during one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// Start, since the end of the omitted part; for an omitted interval since the start of the test.
    pub start_ns: u64,
    /// End, on the same clock.
    pub end_ns: u64,
    /// Whether it belongs to the omitted part.
    pub omitted: bool,
    /// Payload bytes.
    pub bytes: u64,
    /// Payload rate.
    pub bits_per_second: f64,
    /// TCP segments sent again.
    pub retransmitted_segments: Option<u64>,
    /// Round-trip times under this load.
    pub rtt: Option<RttUnderLoad>,
}
