//! Results of a test. An aborted test has a report too: partial, with the reason in [`TestReport::termination`].

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_units::{ByteCount, PacketCount, Ratio, SegmentCount};

use crate::far::HostEvidence;
use crate::limit::LimitShares;
use crate::sample::IntervalReport;
use crate::stream::StreamDescription;
use crate::summary::DurationDistribution;
use crate::tcp_info::TcpInfo;

/// Result of one stream over the whole test, without the omitted part.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReport {
    /// Description of the stream.
    pub description: StreamDescription,
    /// The sending side's figures; `None` when that side is the peer and has not reported.
    pub sent: Option<SideReport>,
    /// The receiving side's figures; `None` when that side is the peer and has not reported.
    pub received: Option<SideReport>,
    /// TCP only.
    pub tcp: Option<TcpReport>,
    /// UDP only.
    pub udp: Option<UdpReport>,
    /// Processor time of the local thread that moved the data.
    pub thread_cpu: Option<Duration>,
}

/// Counters of one end of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideReport {
    /// Payload bytes written or read.
    pub bytes: ByteCount,
    /// Time from the start of counting until that end stopped.
    pub duration: Duration,
}

/// TCP figures of one stream over the whole test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpReport {
    /// Retransmitted segments by the sender's count; `None` when it does not report them.
    pub retransmits: Option<SegmentCount>,
    /// Reordering events; the local sender only.
    pub reordering_seen: Option<SegmentCount>,
    /// Largest congestion window over the interval ends; the local sender only.
    pub max_congestion_window: Option<ByteCount>,
    /// Largest peer window over the interval ends; the local sender only.
    pub max_send_window: Option<ByteCount>,
    /// Smoothed round-trip time read once per interval, as iperf3 does; the local sender only.
    pub interval_rtt: Option<RttRange>,
    /// Distribution of the round-trip times sampled on this host; the local sender only.
    pub rtt_samples: Option<DurationDistribution>,
    /// Last sample of the local socket.
    pub last_info: Option<TcpInfo>,
    /// Last sample of the remote socket, where the remote host runs linerate.
    pub far_info: Option<TcpInfo>,
    /// Limits of the sender; from the sending side, local or remote.
    pub limits: Option<LimitShares>,
}

/// Extremes and mean of a few samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttRange {
    /// Smallest.
    pub min: Duration,
    /// Arithmetic mean.
    pub mean: Duration,
    /// Largest.
    pub max: Duration,
}

/// UDP figures of one stream over the whole test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UdpReport {
    /// Datagrams sent, by the sender's count; `None` when the sender is the peer and has not reported.
    pub sent: Option<PacketCount>,
    /// The receiving side's figures; `None` when that side is the peer and has not reported.
    pub received: Option<UdpReceived>,
}

/// Final counters of a UDP receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpReceived {
    /// Expected datagrams: the highest number received, less the omitted part.
    pub expected: PacketCount,
    /// Lost datagrams; `None` when the peer does not report losses of the omitted part (iperf3 before 3.16).
    pub lost: Option<PacketCount>,
    /// Smoothed jitter at the end (RFC 1889 A.8).
    pub jitter: Duration,
    /// Datagrams that arrived after a higher-numbered one; `None` when the receiver is a peer that does not report
    /// them.
    pub out_of_order: Option<PacketCount>,
    /// Datagrams that arrived more than once; `None` when the receiver is a peer that does not report them.
    pub duplicates: Option<PacketCount>,
    /// Lost datagrams that were dropped at the full socket buffer of the receiving host; `None` when unknown.
    pub dropped_in_host: Option<PacketCount>,
}

/// Processor time of one process over wall time; above one with several threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUtilization {
    /// User and system together.
    pub total: Ratio,
    /// In user mode.
    pub user: Ratio,
    /// In the kernel.
    pub system: Ratio,
}

/// Outcome of a test, with its details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TestTermination {
    /// Complete, as requested.
    Complete,
    /// This process received a signal.
    Interrupted {
        /// Name and number of the signal as iperf3 prints them, for example `Interrupt(2)`; `None` where only the
        /// interruption is known.
        signal: Option<String>,
    },
    /// The peer reported that it received a signal.
    PeerTerminated,
    /// An error, with its complete text for the user.
    Failed {
        /// Error message.
        message: String,
    },
}

impl TestTermination {
    /// Outcome without its details.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Complete => Outcome::Complete,
            Self::Interrupted { .. } => Outcome::Interrupted,
            Self::PeerTerminated => Outcome::PeerTerminated,
            Self::Failed { .. } => Outcome::Failed,
        }
    }

    /// Error message, for [`Self::Failed`].
    #[must_use]
    pub const fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message } => Some(message.as_str()),
            _ => None,
        }
    }
}

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Complete, as requested.
    Complete,
    /// The process that measured received a signal.
    Interrupted,
    /// The peer received a signal.
    PeerTerminated,
    /// An error.
    Failed,
}

/// Output of the server, transferred to the client (`--get-server-output`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOutput {
    /// Text output. Untrusted: must be escaped before it reaches a terminal.
    Text(String),
    /// JSON document, unparsed but known to be valid JSON.
    Json(String),
}

/// Report of a remote host that runs linerate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FarReport {
    /// Version of the remote linerate.
    pub version: String,
    /// Intervals, on the remote clock.
    pub intervals: Vec<IntervalReport>,
    /// Maximum number of other bandwidth tests on that host during this one.
    pub overlapping_tests: u64,
    /// Host evidence, where details were requested.
    pub host: Option<HostEvidence>,
}

/// Report of the whole test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestReport {
    /// Streams in order of creation.
    pub streams: Vec<StreamReport>,
    /// Processor use of this process.
    pub local_cpu: Option<CpuUtilization>,
    /// Processor use of the peer, if it has reported.
    pub remote_cpu: Option<CpuUtilization>,
    /// Congestion control of the local end (TCP).
    pub local_congestion: Option<String>,
    /// Congestion control of the peer (TCP), if it has reported.
    pub remote_congestion: Option<String>,
    /// Output of the server, when requested and received.
    pub server_output: Option<ServerOutput>,
    /// File that was sent from or received into (`-F`).
    pub file: Option<FileReport>,
    /// Maximum number of other tests in this server at the same time; `None` on a client.
    pub overlapping_tests: Option<u64>,
    /// Report of the remote linerate.
    pub far: Option<FarReport>,
    /// Local host during the test, where details were requested.
    pub host: Option<HostEvidence>,
    /// Outcome of the test.
    pub termination: TestTermination,
}

/// File of the option `-F`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Name as given.
    pub name: String,
    /// Size when the test ended.
    pub size: ByteCount,
}
