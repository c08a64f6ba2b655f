//! The parameters document: what the client asks for, once, before the test (iperf3 `send_parameters`,
//! `get_parameters`).

mod decode;
mod encode;

use core::time::Duration;

use linerate_model::parameters::TestParameters;
use linerate_units::{BitRate, ByteCount, PacketCount, StreamCount};

pub use decode::decode;
pub use encode::encode;

use crate::error::ErrorCode;

/// Longest test (iperf3 `MAX_TIME`): a day.
pub const MAX_TIME: Duration = Duration::from_secs(86_400);
/// Longest omitted part (iperf3 `MAX_OMIT_TIME`).
pub const MAX_OMIT: Duration = Duration::from_secs(600);
/// Most parallel streams (iperf3 `MAX_STREAMS`).
pub const MAX_STREAMS: StreamCount = StreamCount::new(128);
/// Largest TCP block (iperf3 `MAX_BLOCKSIZE`).
pub const MAX_BLOCK_SIZE: ByteCount = ByteCount::from_mebibytes(1);
/// Smallest UDP datagram (iperf3 `MIN_UDP_BLOCKSIZE`): the longer of the two headers.
pub const MIN_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(16);
/// Largest UDP datagram (iperf3 `MAX_UDP_BLOCKSIZE`): the most that fits IPv4.
pub const MAX_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(65_507);
/// UDP block size of a server when the client names none (iperf3 `DEFAULT_UDP_BLKSIZE`).
pub const DEFAULT_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(1460);
/// Largest socket buffer (iperf3 `MAX_TCP_BUFFER`).
pub const MAX_WINDOW: ByteCount = ByteCount::from_mebibytes(512);
/// Largest segment size (iperf3 `MAX_MSS`).
pub const MAX_MSS: u32 = 32_767;
/// Longest burst (iperf3 `MAX_BURST`).
pub const MAX_BURST: PacketCount = PacketCount::new(1000);
/// Highest processor number for affinity.
pub const MAX_CPU: u16 = 1024;

/// Shortest time between the interval reports that a linerate sends to a client that asks ([`TestParameters::far_interval`]):
/// the cadence of the readings that they are made of.
pub const SHORTEST_FAR_INTERVAL: Duration = Duration::from_millis(10);
/// Longest such time.
pub const LONGEST_FAR_INTERVAL: Duration = Duration::from_secs(3600);

/// What the client's document says besides the test itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParametersExtra<'a> {
    /// From [`crate::authentication::encrypt_token`].
    pub authentication_token: Option<String>,
    /// Congestion control that the client's control socket uses.
    pub congestion_used: Option<String>,
    /// Version to announce, for example `3.21`. No iperf3 reads it.
    pub client_version: &'a str,
    /// Whether the server is a linerate and is to be told that the client is one, too.
    pub linerate: bool,
}

/// What a server permits. The default permits what iperf3's server permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Longest test, omitted part included (`--server-max-duration`); tests without a time limit are then refused.
    pub max_duration: Option<Duration>,
    /// Largest sum of target rates over all streams and directions (`--server-bitrate-limit`).
    pub max_total_rate: Option<BitRate>,
    /// Most parallel streams per direction; above [`MAX_STREAMS`] it has no effect.
    pub max_streams: StreamCount,
    /// Whether UDP is possible; it is not when the server writes what it receives to a file (`-F`).
    pub udp: bool,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { max_duration: None, max_total_rate: None, max_streams: MAX_STREAMS, udp: true }
    }
}

/// A client's document, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedParameters {
    /// The test. Texts in it are the client's: to be escaped before they reach a terminal.
    pub parameters: TestParameters,
    /// Whether the client named a block size; else it is iperf3's default for the protocol.
    pub block_size_given: bool,
    /// For [`crate::authentication::Authenticator::check`].
    pub authentication_token: Option<String>,
    /// Congestion control that the client's control socket uses.
    pub congestion_used: Option<String>,
    /// The client's version as it says.
    pub client_version: Option<String>,
    /// The version of a client that is a linerate and knows that we are one.
    pub linerate_version: Option<String>,
}

/// Why a server refuses a client's parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused the client's parameters: {detail} ({code})")]
pub struct Refusal {
    /// What the client is told.
    pub code: ErrorCode,
    /// For the server's operator.
    pub detail: String,
}
