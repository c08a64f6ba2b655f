//! Requests and responses: the kinds of transaction that `linerate rr` measures.

use serde::{Deserialize, Serialize};

/// Kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RrMode {
    /// A request and its response on an open TCP connection (netperf's `TCP_RR`).
    Tcp,
    /// A new TCP connection for each request and its response (netperf's `TCP_CRR`).
    Connect,
    /// A request and its response in UDP datagrams (netperf's `UDP_RR`).
    Udp,
}

impl RrMode {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Connect, Self::Udp];

    /// Name, as in documents and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Connect => "connect",
            Self::Udp => "udp",
        }
    }

    /// Title of a transaction's kind.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP, open connections",
            Self::Connect => "TCP, a connection per transaction",
            Self::Udp => "UDP",
        }
    }

    /// Largest request or response, in bytes.
    #[must_use]
    pub const fn max_message_bytes(self) -> u64 {
        match self {
            Self::Tcp | Self::Connect => 16 << 20,
            // A UDP datagram over IPv4.
            Self::Udp => 65_507,
        }
    }
}
