//! The parameters document: the client's request before the test (iperf3 `send_parameters`, `get_parameters`).

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
/// Maximum number of parallel streams (iperf3 `MAX_STREAMS`).
pub const MAX_STREAMS: StreamCount = StreamCount::new(128);
/// Largest TCP block (iperf3 `MAX_BLOCKSIZE`).
pub const MAX_BLOCK_SIZE: ByteCount = ByteCount::from_mebibytes(1);
/// Smallest UDP datagram (iperf3 `MIN_UDP_BLOCKSIZE`): the longer of the two headers.
pub const MIN_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(16);
/// Largest UDP datagram (iperf3 `MAX_UDP_BLOCKSIZE`): the maximum over IPv4.
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

/// Shortest interval between the reports that a linerate sends on request ([`TestParameters::far_interval`]): the
/// interval of the underlying samples.
pub const MIN_FAR_INTERVAL: Duration = Duration::from_millis(10);
/// Longest interval between these reports.
pub const MAX_FAR_INTERVAL: Duration = Duration::from_secs(3600);

/// Contents of the client's document in addition to the test itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParametersExtra<'a> {
    /// From [`crate::authentication::encrypt_token`].
    pub authentication_token: Option<String>,
    /// Congestion control of the client's control socket.
    pub congestion_used: Option<String>,
    /// Version to announce, for example `3.21`. No iperf3 reads it.
    pub client_version: &'a str,
    /// True to announce to a linerate server that the client is a linerate.
    pub announces_linerate: bool,
}

/// Limits of a server. The defaults are those of iperf3's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Longest test, omitted part included (`--server-max-duration`); tests without a time limit are then refused.
    pub max_duration: Option<Duration>,
    /// Largest sum of target rates over all streams and directions (`--server-bitrate-limit`).
    pub max_total_rate: Option<BitRate>,
    /// Maximum number of parallel streams per direction; above [`MAX_STREAMS`] it has no effect.
    pub max_streams: StreamCount,
    /// True when UDP is permitted; false when the server writes received data to a file (`-F`).
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
    /// The test. Its texts are the client's: escape them before printing.
    pub parameters: TestParameters,
    /// True when the client named a block size; else it is iperf3's default for the protocol.
    pub block_size_given: bool,
    /// For [`crate::authentication::Authenticator::check`].
    pub authentication_token: Option<String>,
    /// Congestion control of the client's control socket.
    pub congestion_used: Option<String>,
    /// Version that the client announces.
    pub client_version: Option<String>,
    /// Version of a linerate client that knows that the server is a linerate.
    pub linerate_version: Option<String>,
}

/// Refusal of a client's parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused the client's parameters: {detail} ({code})")]
pub struct ParametersRefusal {
    /// Error number sent to the client.
    pub code: ErrorCode,
    /// Detail for the server's operator.
    pub detail: String,
}
