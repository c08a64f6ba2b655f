//! Stream (flow) of a test, and the roles of its ends.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Local end of the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointRole {
    /// Client: it connected.
    Client,
    /// Server: it accepted.
    Server,
}

/// Role of the local end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StreamRole {
    /// Sender.
    Sender,
    /// Receiver.
    Receiver,
}

/// Stream number on the wire: 1, 3, 4, 5, … in order of creation; iperf3 never uses 2 (`iperf_add_stream`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamId(pub u32);

impl StreamId {
    /// Number of the stream created after `earlier` others.
    #[must_use]
    pub fn nth(earlier: usize) -> Self {
        let earlier = u32::try_from(earlier).unwrap_or(u32::MAX - 2);
        Self(if earlier == 0 { 1 } else { earlier + 2 })
    }
}

/// Established stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDescription {
    /// Stream number on the wire.
    pub id: StreamId,
    /// File descriptor of the socket, which iperf3 prints in square brackets.
    pub socket: i32,
    /// Local address; IPv4 addresses are never shown mapped into IPv6.
    pub local: SocketAddr,
    /// Remote address.
    pub remote: SocketAddr,
    /// Role of the local end.
    pub role: StreamRole,
}
