//! What came out of a test. An aborted test has a report too: partial, with the reason in [`TestReport::termination`].

use core::time::Duration;

use linerate_units::{ByteCount, PacketCount, Ratio, SegmentCount};

use crate::limit::LimitShares;
use crate::sample::IntervalReport;
use crate::schema::far::HostEvidence;
use crate::stream::StreamDescription;
use crate::summary::Distribution;
use crate::tcp_info::TcpInfo;

/// One stream over the whole test, the omitted part left out.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReport {
    /// Which stream.
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

/// What one side counted on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideReport {
    /// Payload bytes written or read.
    pub bytes: ByteCount,
    /// From the start of counting until that side stopped.
    pub duration: Duration,
}

/// TCP figures of one stream over the whole test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpReport {
    /// Retransmitted segments by the sending side's count; `None` when it cannot tell.
    pub retransmits: Option<SegmentCount>,
    /// Reordering events; the local sender only.
    pub reordering_seen: Option<SegmentCount>,
    /// Largest congestion window over the interval ends; the local sender only.
    pub max_congestion_window: Option<ByteCount>,
    /// Largest peer window over the interval ends; the local sender only.
    pub max_send_window: Option<ByteCount>,
    /// Smoothed round-trip time read once per interval, as iperf3 does; the local sender only.
    pub interval_rtt: Option<RttRange>,
    /// Round-trip times at the sampler's cadence; the local sender only.
    pub rtt_samples: Option<Distribution>,
    /// The last reading of the local socket.
    pub last_info: Option<TcpInfo>,
    /// The last reading of the far socket, where the far end is a linerate.
    pub far_info: Option<TcpInfo>,
    /// What held the sender back; from the sending side, local or far.
    pub limits: Option<LimitShares>,
}

/// Extremes and mean of a few readings.
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

/// What a UDP receiver knows at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpReceived {
    /// Datagrams that should have arrived: the highest number seen, less the omitted part.
    pub expected: PacketCount,
    /// Lost datagrams; `None` when the peer cannot say what it lost during the omitted part (iperf3 before 3.16).
    pub lost: Option<PacketCount>,
    /// Smoothed jitter at the end (RFC 1889 A.8).
    pub jitter: Duration,
    /// Datagrams that arrived after a higher-numbered one; `None` when the receiver is a peer that does not say.
    pub out_of_order: Option<PacketCount>,
    /// Datagrams that arrived more than once; `None` when the receiver is a peer that does not say.
    pub duplicates: Option<PacketCount>,
    /// Of the lost ones, how many were dropped at the full socket buffer of the receiving host; `None` when unknown.
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

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Termination {
    /// As asked.
    Complete,
    /// This process got a signal.
    Interrupted {
        /// Its name and number as iperf3 prints them, for example `Interrupt(2)`.
        signal: String,
    },
    /// The other end said that it got a signal.
    PeerTerminated,
    /// An error; the text is complete, as a person is to read it.
    Failed {
        /// What failed.
        message: String,
    },
}

/// The server's own output, brought to the client (`--get-server-output`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOutput {
    /// What it printed. Untrusted: to be escaped before it reaches a terminal.
    Text(String),
    /// Its JSON document, unparsed but known to be valid JSON.
    Json(String),
}

/// What only a linerate at the far end tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FarReport {
    /// Its version.
    pub version: String,
    /// Its intervals, on its own clock.
    pub intervals: Vec<IntervalReport>,
    /// The largest number of other bandwidth tests that ran there during this one.
    pub overlapping_tests: u64,
    /// Its host, where details were asked for.
    pub host: Option<HostEvidence>,
}

/// The whole test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestReport {
    /// In order of creation.
    pub streams: Vec<StreamReport>,
    /// This process's processor use.
    pub local_cpu: Option<CpuUtilization>,
    /// The peer's, if it has reported.
    pub remote_cpu: Option<CpuUtilization>,
    /// Congestion control in use on this side (TCP).
    pub local_congestion: Option<String>,
    /// Congestion control in use on the peer's side (TCP), if it has reported.
    pub remote_congestion: Option<String>,
    /// The server's output, when asked for and given.
    pub server_output: Option<ServerOutput>,
    /// File that was sent from or received into (`-F`).
    pub file: Option<FileReport>,
    /// How many other tests ran in this server at the same time, at most; `None` on a client.
    pub overlapping_tests: Option<u64>,
    /// From a linerate at the far end.
    pub far: Option<FarReport>,
    /// This host meanwhile, where details were asked for.
    pub host: Option<HostEvidence>,
    /// How it ended.
    pub termination: Termination,
}

/// What became of the file of `-F`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Its name as given.
    pub name: String,
    /// Its size when the test ended.
    pub size: ByteCount,
}
