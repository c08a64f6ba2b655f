//! What is known of the far host.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::schema::far::TcpInfo;
use linerate_units::{ByteCount, Mtu, PacketCount, TypeOfService, WallTime};
use serde::{Deserialize, Serialize};

use super::scalar::{bytes, maybe_mtu, maybe_nanos, maybe_packets, octet, packets, wall};

/// Most congestion controls named.
pub const MOST_NAMES: usize = 64;

/// Facts about a host, by itself. What it does not know is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FarFacts {
    /// Kernel release, for example `6.12.48-amd64`.
    pub kernel: Option<String>,
    /// Name of the machine's architecture.
    pub architecture: Option<String>,
    /// Processors that the server may use.
    pub processors: Option<u32>,
    /// Congestion controls that it can use now.
    pub congestion_controls: Vec<String>,
    /// The one in use when nobody chooses.
    pub default_congestion_control: Option<String>,
    /// Clock source of the kernel, for example `tsc`.
    pub clock_source: Option<String>,
    /// Whether the kernel holds its clock for synchronised (`adjtimex(2)`).
    pub clock_synchronised: Option<bool>,
    /// Largest error of its civil clock, by its own account (`adjtimex(2)`, maxerror).
    #[serde(with = "maybe_nanos")]
    pub clock_error_bound: Option<Duration>,
    /// Its civil time when it wrote this.
    #[serde(with = "super::scalar::maybe_wall")]
    pub time: Option<WallTime>,
    /// The interface by which it reaches the client.
    pub interface: Option<String>,
    /// MTU of that interface.
    #[serde(with = "maybe_mtu")]
    pub mtu: Option<Mtu>,
    /// What that interface has carried.
    pub counters: Option<InterfaceCounters>,
    /// Queueing discipline of that interface, for example `fq_codel`.
    pub queueing_discipline: Option<String>,
    /// The session's control connection, as the far kernel sees it.
    pub control: Option<TcpInfoFact>,
    /// The first packet of the control connection as it arrived there.
    pub syn: Option<SynFacts>,
    /// Other sessions that run there now.
    #[serde(with = "maybe_packets")]
    pub other_sessions: Option<PacketCount>,
}

/// The first packet of a TCP connection (SYN) as it arrived: what differs from what was sent was changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SynFacts {
    /// Its source, behind any translation of addresses.
    pub source: SocketAddr,
    /// Its mark.
    #[serde(with = "octet")]
    pub type_of_service: TypeOfService,
    /// Hop limit (time to live) that was left.
    pub hop_limit: u8,
    /// Whether it asks for explicit congestion notification (RFC 3168 §6.1.1).
    pub asks_for_ecn: bool,
    /// Maximum segment size option, in bytes.
    #[serde(default)]
    pub mss: Option<u16>,
    /// Window scale option: its shift count (RFC 7323 §2).
    #[serde(default)]
    pub window_scale: Option<u8>,
    /// SACK-permitted option (RFC 2018 §2).
    pub selective_acknowledgements: bool,
    /// Timestamps option (RFC 7323 §3).
    pub timestamps: bool,
}

/// One reading of a socket; compared by what it says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TcpInfoFact(pub TcpInfo);

impl PartialEq for TcpInfoFact {
    fn eq(&self, other: &Self) -> bool {
        let model = |fact: &Self| linerate_model::tcp_info::TcpInfo::from(fact.0.clone());
        model(self) == model(other)
    }
}

/// What an interface has carried since it came up: the difference of two readings, less the measurement's own, is the
/// traffic of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// When it was read, on the host's civil clock.
    #[serde(with = "wall")]
    pub time: WallTime,
    /// Bytes received.
    #[serde(with = "bytes")]
    pub received_bytes: ByteCount,
    /// Packets received.
    #[serde(with = "packets")]
    pub received_packets: PacketCount,
    /// Bytes sent.
    #[serde(with = "bytes")]
    pub sent_bytes: ByteCount,
    /// Packets sent.
    #[serde(with = "packets")]
    pub sent_packets: PacketCount,
}

impl FarFacts {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let names = [
            &self.kernel,
            &self.architecture,
            &self.default_congestion_control,
            &self.clock_source,
            &self.interface,
            &self.queueing_discipline,
        ];
        let lengths = names.into_iter().flatten().chain(&self.congestion_controls).map(String::len);
        if lengths.max().unwrap_or(0) > 256 || self.congestion_controls.len() > MOST_NAMES {
            return Err("a name has at most 256 bytes, and there are at most 64 congestion controls");
        }
        Ok(())
    }
}
