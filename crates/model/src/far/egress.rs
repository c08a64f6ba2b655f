//! Interface and queueing disciplines of a host through which a test's packets leave.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Rate limit of a queueing discipline or class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueRateLimit {
    /// Highest rate in bit/s of packets with their link-layer header (`rate` of tbf, `ceil` of an htb class, `maxrate` of
    /// fq, `bandwidth` of cake).
    pub bits_per_second: u64,
    /// True when each flow has this rate (fq), false when all packets share it.
    pub per_flow: bool,
}

/// One queueing discipline or class during a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueEvidence {
    /// Kind, for example `tbf`.
    pub kind: String,
    /// True for a class.
    pub is_class: bool,
    /// Handle: `1:` of a discipline, `1:10` of a class.
    pub handle: String,
    /// Rate limit, where it has one.
    pub limit: Option<QueueRateLimit>,
    /// Bytes that left it during the test.
    pub sent_bytes: u64,
    /// Packets that it dropped during the test.
    pub dropped_packets: u64,
    /// Most bytes waiting at a sample.
    pub peak_backlog_bytes: u64,
    /// Share of the samples at which packets waited; `None` without samples.
    pub backlog_share: Option<f64>,
}

/// Interface of a host towards its peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkEvidence {
    /// Name.
    pub interface: String,
    /// Kind of virtual device by rtnetlink's name, for example `wireguard`; `None` for others.
    pub kind: Option<String>,
    /// True for the loopback device.
    pub is_loopback: bool,
    /// Negotiated speed in bit/s.
    pub speed_bits_per_second: Option<u64>,
    /// Highest speed in bit/s that the device supports.
    pub max_speed_bits_per_second: Option<u64>,
    /// True when the duplex mode is half.
    pub is_half_duplex: Option<bool>,
    /// MTU of the interface in bytes.
    pub mtu_bytes: Option<u32>,
    /// Bytes of the link-layer header that queueing disciplines count in addition to the IP packet.
    pub link_header_bytes: Option<u32>,
    /// Offloads by ethtool's names; true when active.
    pub offloads: BTreeMap<String, bool>,
    /// Errors that the interface counted during the test, in both directions.
    pub errors: Option<u64>,
}
