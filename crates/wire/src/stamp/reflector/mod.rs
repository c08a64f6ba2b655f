//! The answering side (RFC 8762 §4.3) as a machine: datagrams and the time go in, answers come out.
//!
//! A datagram is read, checked and answered by [`Reflector::handle`]; the answer is finished by [`Reflector::finish`] as
//! late as possible, with the time at which it leaves. The caller owns the socket and the clock.
//!
//! What is never answered ([`Ignored`]): what is too short, what is itself an answer (two reflectors would keep one packet
//! going between them for ever), what comes from or went to an address that is not one host's, what a source sends beyond
//! its share, and, with authentication, what does not have the key. The answer is as long as the packet; a packet shorter
//! than the base is answered by a base packet, as RFC 8762 §4.6 demands for TWAMP Light senders.
//!
//! Sessions are told apart by the sender's address and port, the address and port it sent to, and its session identifier
//! (RFC 8972 §3). None is set up beforehand: whoever sends has one. Their number is bounded, and idle ones are forgotten,
//! after which a sender's count begins anew.

mod answer;
mod limiter;
mod options;
mod sessions;

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

use linerate_units::{MonotonicTime, PacketCount, TypeOfService, WallTime};

use super::tlv::{SynchronizationSource, TimestampMethod};
use super::{ErrorEstimate, HmacKey, Mode};

pub use answer::{Answer, Reflector};

/// How a reflector behaves.
#[derive(Clone, Debug)]
pub struct ReflectorOptions {
    /// Whether packets must be authentic.
    pub mode: Mode,
    /// Keys that a sender may have. In [`Mode::Unauthenticated`] they serve to check HMAC options only.
    pub keys: Vec<HmacKey>,
    /// Count the answers of each session (stateful, RFC 8762 §4.3), so that its sender can tell in which direction a
    /// packet was lost. Otherwise answers repeat the sender's numbers.
    pub stateful: bool,
    /// A session in which nothing comes for this long is forgotten.
    pub session_idle: Duration,
    /// Most sessions at once. Further ones are not answered until one has been forgotten.
    pub most_sessions: usize,
    /// Packets per second that one source may send, an IPv4 address or an IPv6 network of 64 bits; as many may come at
    /// once.
    pub rate_per_source: PacketCount,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Unauthenticated,
            keys: Vec::new(),
            stateful: true,
            session_idle: Duration::from_secs(120),
            most_sessions: 4096,
            rate_per_source: PacketCount::new(5000),
        }
    }
}

/// What is known of the reflector's clock; it may change while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Its error, and the format in which times are written. TWAMP Light senders understand NTP only (RFC 8762 §4.6).
    pub error_estimate: ErrorEstimate,
    /// What sets it; `None` when that is not known.
    pub source: Option<SynchronizationSource>,
}

/// A datagram as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// What it carries.
    pub bytes: &'a [u8],
    /// From where.
    pub source: SocketAddr,
    /// At which of this host's addresses, and at which port; the address is unspecified when it is not known.
    pub destination: SocketAddr,
    /// When, in civil time.
    pub at: WallTime,
    /// Who looked at the clock then.
    pub method: TimestampMethod,
    /// Time to live, or hop limit, that it arrived with; `None` when it is not known.
    pub ttl: Option<u8>,
    /// Its type of service, or traffic class; `None` when it is not known, and taken for zero.
    pub type_of_service: Option<TypeOfService>,
}

/// Why a datagram is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ignored {
    /// Too short for a test packet of the mode.
    TooShort,
    /// It has the HMAC of none of the keys.
    NotAuthentic,
    /// It is an answer of a reflector.
    IsAnswer,
    /// It comes from, or went to, what is not the address of one host, or comes from this very socket.
    Address,
    /// Its source has sent more than its share.
    TooMany,
    /// There are as many sessions as there may be.
    NoRoom,
}

/// Whether an answer may go there and the question came here: unicast both, and not the same.
fn may_be_answered(received: &Received<'_>) -> bool {
    let Received { source, destination, .. } = received;
    let one_host = !source.ip().is_unspecified() && !is_many(source.ip()) && source.port() != 0;
    one_host && !is_many(destination.ip()) && source != destination
}

fn is_many(address: IpAddr) -> bool {
    let canonical = address.to_canonical();
    canonical.is_multicast() || canonical == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests;

/// When something must have been done the last time, for work that is done once in a while.
#[derive(Clone, Copy, Debug, Default)]
struct Occasion(Option<MonotonicTime>);

impl Occasion {
    /// Whether `interval` has passed since this was last true.
    fn is_due(&mut self, now: MonotonicTime, interval: Duration) -> bool {
        let due = self.0.is_none_or(|last| now.since(last) >= interval);
        if due {
            self.0 = Some(now);
        }
        due
    }
}
