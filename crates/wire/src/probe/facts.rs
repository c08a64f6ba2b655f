//! Facts about the far host.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::tcp_info::TcpInfo;
use linerate_units::{ByteCount, Mtu, PacketCount, TypeOfService, WallTime};
use serde::{Deserialize, Serialize};

use super::scalar::{bytes, maybe_mtu, maybe_nanos, maybe_packets, octet, packets, wall};

/// Maximum number of congestion controls.
pub const MAX_CONGESTION_CONTROLS: usize = 64;

/// Facts that a host reports about itself; unknown ones are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FarFacts {
    /// Kernel release, for example `6.12.48-amd64`.
    pub kernel: Option<String>,
    /// Name of the machine's architecture.
    pub architecture: Option<String>,
    /// Processors that the server may use.
    pub processors: Option<u32>,
    /// Congestion controls available to the server.
    pub congestion_controls: Vec<String>,
    /// Default congestion control.
    pub default_congestion_control: Option<String>,
    /// Clock source of the kernel, for example `tsc`.
    pub clock_source: Option<String>,
    /// True when the kernel's clock is synchronised (`adjtimex(2)`).
    pub clock_synchronised: Option<bool>,
    /// Largest error of the realtime clock, as the kernel reports it (`adjtimex(2)`, maxerror).
    #[serde(with = "maybe_nanos")]
    pub clock_error_bound: Option<Duration>,
    /// Realtime clock at the time of this message.
    #[serde(with = "super::scalar::maybe_wall")]
    pub time: Option<WallTime>,
    /// Interface of the route to the client.
    pub interface: Option<String>,
    /// MTU of that interface.
    #[serde(with = "maybe_mtu")]
    pub mtu: Option<Mtu>,
    /// Counters of that interface.
    pub counters: Option<InterfaceCounterSample>,
    /// Queueing discipline of that interface, for example `fq_codel`.
    pub queueing_discipline: Option<String>,
    /// `tcp_info` of the session's control connection on the far host.
    pub control: Option<TcpInfo>,
    /// SYN of the control connection as it arrived on the far host.
    pub syn: Option<SynFacts>,
    /// Number of other sessions on the server.
    #[serde(with = "maybe_packets")]
    pub other_sessions: Option<PacketCount>,
}

/// SYN of a TCP connection as it arrived: differences from the one sent were made by the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SynFacts {
    /// Source address and port, after any address translation.
    pub source: SocketAddr,
    /// Type-of-service octet.
    #[serde(with = "octet")]
    pub type_of_service: TypeOfService,
    /// Hop limit (time to live) on arrival.
    pub hop_limit: u8,
    /// True when it requests explicit congestion notification (RFC 3168 §6.1.1).
    pub asks_for_ecn: bool,
    /// True when it requests Accurate ECN (RFC 9768 §3.1.1); older servers do not report it.
    #[serde(default)]
    pub asks_for_accurate_ecn: Option<bool>,
    /// Maximum segment size option, in bytes.
    #[serde(default)]
    pub mss: Option<u16>,
    /// Shift count of the window scale option (RFC 7323 §2).
    #[serde(default)]
    pub window_scale: Option<u8>,
    /// SACK-permitted option (RFC 2018 §2).
    pub selective_acknowledgements: bool,
    /// Timestamps option (RFC 7323 §3).
    pub timestamps: bool,
}

/// Counters of an interface since it came up: the difference of two samples, less the measurement's own, is the traffic
/// of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounterSample {
    /// Time of the sample, on the host's realtime clock.
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
        if lengths.max().unwrap_or(0) > 256 || self.congestion_controls.len() > MAX_CONGESTION_CONTROLS {
            return Err("a name has at most 256 bytes, and there are at most 64 congestion controls");
        }
        Ok(())
    }
}
