//! The Simple Two-Way Active Measurement Protocol: RFC 8762, its options in RFC 8972, and TWAMP Light before it.
//!
//! A session-sender numbers its test packets and writes its clock into them; a session-reflector answers each with
//! a copy of that, the time at which it arrived, the time at which the answer left, and, where it keeps state, a number
//! of its own. So the sender knows the round trip without the reflector's turn-around time, delays of each direction up
//! to the difference of the clocks, and in which direction a packet was lost.
//!
//! | part | what it is |
//! |---|---|
//! | [`Timestamp`], [`ErrorEstimate`] | clocks on the wire, in both formats |
//! | [`SenderPacket`], [`ReflectorPacket`] | the base packets, with and without authentication |
//! | [`tlv`] | what may follow them (RFC 8972) |
//! | [`HmacKey`] | the key of the authenticated mode |
//! | [`reflector`] | the answering side as a machine |
//!
//! Reflectors listen on [`linerate_units::Port::STAMP`]. Packets of both directions have the same length by default
//! (RFC 8762 §4), so that a reflector cannot be used to amplify traffic. The one exception is demanded by RFC 8762 §4.6: a
//! packet of a TWAMP Light sender that is shorter than the base packet (14 bytes is the least) is answered with a base
//! packet of 44 bytes, since nothing shorter can hold the answer. On IPv4 that is 72 bytes for 42.

mod error_estimate;
mod key;
mod packet;
pub mod reflector;
mod reflector_packet;
mod sender_packet;
mod timestamp;
pub mod tlv;

pub use error_estimate::ErrorEstimate;
pub use key::{HmacKey, KeyError};
pub(crate) use packet::seal;
pub use packet::{Mode, PacketError, SessionIdentifier};
pub use reflector_packet::ReflectorPacket;
pub use sender_packet::{SenderPacket, options};
pub use timestamp::{Timestamp, TimestampFormat};

use linerate_units::ByteCount;

/// Bytes of the base packets of either direction without authentication (RFC 8762 §4.2.1, §4.3.1).
pub const BASE_LENGTH: ByteCount = ByteCount::new(44);

/// Bytes of the base packets of either direction with authentication (RFC 8762 §4.2.2, §4.3.2).
pub const AUTHENTICATED_LENGTH: ByteCount = ByteCount::new(112);

/// Bytes of the shortest packet that a TWAMP Light sender makes: number, time and error estimate (RFC 5357 §4.1.2).
pub const SHORTEST_LENGTH: ByteCount = ByteCount::new(14);
