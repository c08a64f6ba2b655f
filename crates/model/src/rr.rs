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
    /// A new TCP connection with a full TLS 1.3 handshake for each request and its response.
    Tls,
    /// A new QUIC connection with a full handshake for each request and its response.
    Quic,
}

impl RrMode {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Tcp, Self::Connect, Self::Udp, Self::Tls, Self::Quic];

    /// Name, as in documents and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Connect => "connect",
            Self::Udp => "udp",
            Self::Tls => "tls",
            Self::Quic => "quic",
        }
    }

    /// Title of a transaction's kind.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP, open connections",
            Self::Connect => "TCP, a connection per transaction",
            Self::Udp => "UDP",
            Self::Tls => "TCP and TLS, a full handshake per transaction",
            Self::Quic => "QUIC, a full handshake per transaction",
        }
    }

    /// True when each transaction has a handshake of TLS 1.3: one that fails is counted, and the flow goes on.
    #[must_use]
    pub const fn has_handshake(self) -> bool {
        matches!(self, Self::Tls | Self::Quic)
    }

    /// True when a transaction without a response is counted as lost, and does not end its flow.
    #[must_use]
    pub const fn counts_losses(self) -> bool {
        matches!(self, Self::Udp) || self.has_handshake()
    }

    /// Largest request or response, in bytes.
    #[must_use]
    pub const fn max_message_bytes(self) -> u64 {
        match self {
            Self::Tcp | Self::Connect | Self::Tls | Self::Quic => 16 << 20,
            // A UDP datagram over IPv4.
            Self::Udp => 65_507,
        }
    }
}
