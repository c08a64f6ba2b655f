//! Document of `linerate test --json`.
//!
//! The schema is stable: within [`SCHEMA`] 1 keys may be added, none renamed or removed, and no unit changed. Each key
//! names its unit (`_ns`, `_bytes`, `bits_per_second`, `_percent`, `_segments`, `_packets`; ratios are bare numbers
//! from 0 to 1). Unknown values are `null`, never 0: for example values known only to the sender's kernel in a download
//! from a stock iperf3 server. An interrupted test has a document too; [`TestTermination`] contains the reason.
//!
//! The parts shared with iperf3's documents (the object `"linerate"`) are public, so that both use the same keys.

mod convert;

use linerate_model::diagnosis::TransferDiagnosis;
use linerate_model::direction::Direction;
use linerate_model::limit::{LimitShares, TransferLimit};
use linerate_model::parameters::ReceiveMethod;
use linerate_model::quic::QuicResult;
use linerate_model::report::TestTermination;
use linerate_model::stream::StreamRole;
use linerate_model::summary::DurationDistribution;
use linerate_model::tcp_info::TcpInfo;
use linerate_model::tls::TlsProperties;
use serde::{Deserialize, Serialize};

pub use linerate_model::throughput::{LoadedRtt, MeasuredRate};

/// Version of this document's schema.
pub const SCHEMA: u32 = 1;

/// Series of throughput tests over one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThroughputDocument {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Version of linerate that measured.
    pub linerate_version: String,
    /// The host as the user wrote it.
    pub host: String,
    /// TCP port of the host.
    pub port: u16,
    /// True when the server runs linerate; if not, values that only linerate reports are `null`.
    pub peer_is_linerate: bool,
    /// Version of the server, when it runs linerate.
    pub peer_version: Option<String>,
    /// Round-trip times of handshakes before any load.
    pub idle_rtt: Option<DurationDistribution>,
    /// Tests in the order in which they ran.
    pub runs: Vec<ThroughputTest>,
    /// Handshakes and transfers over QUIC, and their comparison with TCP; `null` without `--quic`.
    #[serde(default)]
    pub quic: Option<QuicResult>,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThroughputTest {
    /// Direction of the data, seen from the client.
    pub direction: Direction,
    /// Parallel streams.
    pub streams: u64,
    /// Start of the data in nanoseconds since 1970-01-01 00:00 UTC.
    pub started_at_unix_ns: Option<u64>,
    /// Outcome of the run.
    pub termination: TestTermination,
    /// Payload bytes over time, at the end named by `measured_at`; without the omitted part.
    pub bits_per_second: Option<f64>,
    /// End that counted the rate: the receiver where its counters are known.
    pub measured_at: Option<StreamRole>,
    /// Time over which the rate was measured.
    pub duration_ns: Option<u64>,
    /// Payload bytes that the sender wrote.
    pub sent_bytes: Option<u64>,
    /// Payload bytes that the receiver read.
    pub received_bytes: Option<u64>,
    /// Retransmitted TCP segments of all streams.
    pub retransmitted_segments: Option<u64>,
    /// Round-trip times of the sender's connections under this load.
    pub loaded_rtt: Option<LoadedRtt>,
    /// Processor time of the client's process over wall time; above 100 with several threads.
    pub client_cpu_percent: Option<f64>,
    /// Processor time of the server's process over wall time.
    pub server_cpu_percent: Option<f64>,
    /// Method by which the receiver takes the payload: where it discards it, the processor times contain no copy, which
    /// an application needs; `null` where the receiver is an iperf3 server.
    #[serde(default)]
    pub receive_method: Option<ReceiveMethod>,
    /// TLS of the data (`--tls-data`), whose rate is that of the payload within; `null` for data in clear text.
    #[serde(default)]
    pub tls_data: Option<TlsProperties>,
    /// Congestion control of the sender.
    pub sender_congestion_control: Option<String>,
    /// Congestion control of the receiver.
    pub receiver_congestion_control: Option<String>,
    /// Limits of the sender, mean over the streams.
    pub limit: Option<SenderLimit>,
    /// Limiting causes of the test, from observations at both ends, the path's capacity unknown; `null` where that is
    /// not possible: the sender's sockets were not observed, as in downloads from a stock iperf3 server, intervals
    /// below 200 ms were requested, or the remote host's reports would use a part of a slow path.
    #[serde(default)]
    pub diagnosis: Option<TransferDiagnosis>,
    /// Maximum number of other tests in the server at the same time; they disturb this one.
    pub overlapping_tests: Option<u64>,
    /// Each stream, in order of creation.
    pub stream_results: Vec<StreamResult>,
    /// Each interval as the client saw it.
    pub intervals: Vec<IntervalResult>,
    /// Each interval as the server saw it, on its own clock.
    pub server_intervals: Option<Vec<IntervalResult>>,
}

/// Limits of a TCP sender, as shares of the time from 0 to 1 (`linerate_model::limit`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SenderLimit {
    /// Dominant limit.
    pub verdict: TransferLimit,
    /// Shares of the time.
    #[serde(flatten)]
    pub shares: LimitShares,
}

/// One stream over the whole test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StreamResult {
    /// Stream number on the wire.
    pub id: u32,
    /// Payload rate, by the receiver's counters where they are known.
    pub bits_per_second: Option<f64>,
    /// Payload bytes that the sender wrote.
    pub sent_bytes: Option<u64>,
    /// Payload bytes that the receiver read.
    pub received_bytes: Option<u64>,
    /// Retransmitted TCP segments.
    pub retransmitted_segments: Option<u64>,
    /// Distribution of the sampled round-trip times; known where the client sends.
    pub rtt: Option<DurationDistribution>,
    /// Limits of the sender, as shares of the time.
    pub limit: Option<SenderLimit>,
    /// Processor time of the client's thread that moved the data.
    pub client_thread_cpu_ns: Option<u64>,
    /// Last sample of the client's socket.
    pub client_tcp_info: Option<TcpInfo>,
    /// Last sample of the server's socket.
    pub server_tcp_info: Option<TcpInfo>,
}

/// All streams during one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IntervalResult {
    /// Start, since the end of the omitted part; for an omitted interval since the start of the test.
    pub start_ns: u64,
    /// End, on the same clock.
    pub end_ns: u64,
    /// True for an interval of the omitted part.
    pub omitted: bool,
    /// Payload bytes.
    pub bytes: u64,
    /// Payload rate.
    pub bits_per_second: f64,
    /// Retransmitted TCP segments.
    pub retransmitted_segments: Option<u64>,
    /// Round-trip times under this load.
    pub rtt: Option<LoadedRtt>,
}
