//! The Simple Two-Way Active Measurement Protocol: RFC 8762, its options in RFC 8972, and TWAMP Light.
//!
//! A Session-Sender numbers and timestamps its test packets; a Session-Reflector reflects each with a copy of these
//! fields, its receive and transmit timestamps, and, when stateful, a sequence number of its own. So the sender
//! measures the round trip without the reflector's turn-around time, one-way delays up to the difference of the clocks,
//! and the direction of losses.
//!
//! | part | contents |
//! |---|---|
//! | [`StampTimestamp`], [`ErrorEstimate`] | clocks on the wire, in both formats |
//! | [`SenderPacket`], [`ReflectorPacket`] | the base packets, with and without authentication |
//! | [`tlv`] | the options after them (RFC 8972) |
//! | [`HmacKey`] | the key of the authenticated mode |
//! | [`reflector`] | the Session-Reflector as a state machine |
//!
//! Reflectors listen on [`linerate_units::Port::STAMP`]. Packets of both directions have the same length by default
//! (RFC 8762 §4), so that a reflector cannot be used for amplification. The one exception is required by RFC 8762 §4.6:
//! a packet of a TWAMP Light sender shorter than the base packet (at least 14 bytes) is answered with a base packet of
//! 44 bytes, since nothing shorter can hold the answer. On IPv4 that is 72 bytes for 42.

mod error_estimate;
mod key;
mod packet;
pub mod reflector;
mod reflector_packet;
mod sender_packet;
mod timestamp;
pub mod tlv;

pub use error_estimate::ErrorEstimate;
pub use key::{HmacKey, HmacKeyError};
pub(crate) use packet::seal;
pub use packet::{AuthenticationMode, PacketError, SessionIdentifier};
pub use reflector_packet::ReflectorPacket;
pub use sender_packet::{SenderPacket, options};
pub use timestamp::{StampTimestamp, TimestampFormat};

use linerate_units::ByteCount;

/// Bytes of the base packets of either direction without authentication (RFC 8762 §4.2.1, §4.3.1).
pub const BASE_LENGTH: ByteCount = ByteCount::new(44);

/// Bytes of the base packets of either direction with authentication (RFC 8762 §4.2.2, §4.3.2).
pub const AUTHENTICATED_LENGTH: ByteCount = ByteCount::new(112);

/// Bytes of the shortest packet of a TWAMP Light sender: number, timestamp and error estimate (RFC 5357 §4.1.2).
pub const MIN_SENDER_LENGTH: ByteCount = ByteCount::new(14);
