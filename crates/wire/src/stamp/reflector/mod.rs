//! A Session-Reflector (RFC 8762 §4.3) as a state machine, without IO.
//!
//! [`StampReflector::handle`] parses, checks and answers a datagram; [`StampReflector::finish`] completes the answer as late as
//! possible with its transmit timestamp. The caller owns the socket and the clock.
//!
//! Ignored ([`IgnoredReason`]) are packets that are too short, are themselves reflected (two reflectors would loop a packet
//! for ever), come from or went to an address that is not one host's, exceed the rate limit of their source, or, with
//! authentication, do not have the key. The answer has the length of the packet; a packet shorter than the base is
//! answered with a base packet, as RFC 8762 §4.6 requires for TWAMP Light senders.
//!
//! A session is identified by the sender's address and port, the address and port it sent to, and its session
//! identifier (RFC 8972 §3). The first packet creates it. The number of sessions is bounded, and idle ones are removed,
//! after which a sender's count restarts.

mod answer;
mod limiter;
mod options;
mod sessions;

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

use linerate_units::{MonotonicTime, PacketCount, TypeOfService, WallTime};

use super::tlv::{SynchronizationSource, TimestampMethod};
use super::{AuthenticationMode, ErrorEstimate, HmacKey};

pub use answer::{ProbeResponse, StampReflector};

/// Options of a reflector.
#[derive(Clone, Debug)]
pub struct ReflectorOptions {
    /// Mode of the packets.
    pub mode: AuthenticationMode,
    /// Keys of the senders. In [`AuthenticationMode::Unauthenticated`] they only verify HMAC options.
    pub keys: Vec<HmacKey>,
    /// Number the answers of each session (stateful, RFC 8762 §4.3), so that its sender can attribute losses to a
    /// direction. Otherwise answers repeat the sender's numbers.
    pub stateful: bool,
    /// Idle time after which a session is removed.
    pub session_idle: Duration,
    /// Maximum number of sessions. Further ones are answered without a count of their own.
    pub most_sessions: usize,
    /// Packets of up to 1500 bytes answered per second for one source, an IPv4 address or an IPv6 /64; also the size of
    /// its burst. A longer packet counts as several.
    pub rate_per_source: PacketCount,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            mode: AuthenticationMode::Unauthenticated,
            keys: Vec::new(),
            stateful: true,
            session_idle: Duration::from_secs(120),
            most_sessions: 4096,
            rate_per_source: PacketCount::new(5000),
        }
    }
}

/// Facts about the reflector's clock; may change while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflectorClock {
    /// Error estimate, and format of the timestamps. TWAMP Light senders understand NTP only (RFC 8762 §4.6).
    pub error_estimate: ErrorEstimate,
    /// Synchronization source; `None` when unknown.
    pub source: Option<SynchronizationSource>,
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDatagram<'a> {
    /// UDP payload.
    pub bytes: &'a [u8],
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port; the address is unspecified when unknown.
    pub destination: SocketAddr,
    /// Arrival time on the realtime clock.
    pub at: WallTime,
    /// Method of that timestamp.
    pub method: TimestampMethod,
    /// Time to live, or hop limit, on arrival; `None` when unknown.
    pub ttl: Option<u8>,
    /// Type of service, or traffic class; `None` when unknown, and treated as zero.
    pub type_of_service: Option<TypeOfService>,
}

/// Reason why a datagram is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IgnoredReason {
    /// Too short for a test packet of the mode.
    TooShort,
    /// No key matches its HMAC.
    NotAuthentic,
    /// It is a packet of a reflector.
    IsAnswer,
    /// The source or destination is not the address of one host, or the packet comes from this socket itself.
    Address,
    /// The source exceeds its rate limit.
    TooMany,
}

/// True when source and destination are unicast and differ.
fn is_answerable(received: &ReceivedDatagram<'_>) -> bool {
    let ReceivedDatagram { source, destination, .. } = received;
    let one_host = !source.ip().is_unspecified() && !is_group_address(source.ip()) && source.port() != 0;
    one_host && !is_group_address(destination.ip()) && source != destination
}

fn is_group_address(address: IpAddr) -> bool {
    let canonical = address.to_canonical();
    canonical.is_multicast() || canonical == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests;

/// Timer for work that is done at intervals: the time of the last run.
#[derive(Clone, Copy, Debug, Default)]
struct IntervalTimer(Option<MonotonicTime>);

impl IntervalTimer {
    /// Returns true when `interval` has passed since it last returned true.
    fn is_due(&mut self, now: MonotonicTime, interval: Duration) -> bool {
        let due = self.0.is_none_or(|last| now.since(last) >= interval);
        if due {
            self.0 = Some(now);
        }
        due
    }
}
