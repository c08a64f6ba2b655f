//! What the two ends of a probe session tell each other.
//!
//! A client that connects with a cookie of [`ExtensionVersion::Probes`](crate::cookie::ExtensionVersion::Probes) asks
//! for no test but for the far half of a path measurement: reflected, recorded and sent STAMP packets (RFC 8762,
//! RFC 8972), load on TCP connections, facts about the host. The server introduces itself with a [`Hello`] whose features
//! have [`FEATURE`]; then the client sends [`Request`]s, and the server [`Answer`]s, in order, with events between them.
//! Whoever knows no probe sessions (a stock iperf3, an older linerate) answers the cookie with byte 9, as it does to any
//! iperf3 client, and so says that it has none.
//!
//! Each message is the byte [`MARKER`], a 32-bit big-endian length, and a JSON object with one key that names the
//! message, as in [`crate::extension`]:
//!
//! ```text
//! 4C 00 00 00 1D {"receiving":{"stream":1000}}
//! ```
//!
//! What comes by the thousand is written as arrays, as the measurement itself must be small against what it measures.
//! Times are whole nanoseconds (civil ones since 1970), sizes bytes, rates whole bit/s. A message with an unknown name
//! and a key with an unknown name are skipped; whatever is known must have its type and be within its range.
//!
//! | part | what it is |
//! |---|---|
//! | [`Request`], [`Answer`], [`Decoder`] | the messages and their frames |
//! | [`ReceiveOrder`], [`SendOrder`], [`LoadOrder`] … | what a client can ask for |
//! | [`PacketRecord`], [`Feedback`], [`SentReport`] | what is known of a stream of packets |
//! | [`LoadSample`], [`LoadProgress`], [`LoadEnd`] | what is known of a load connection |
//! | [`FarFacts`] | what is known of the host |
//! | [`load_frame`] | what travels on a load connection |

mod facts;
mod load;
pub mod load_frame;
mod message;
mod orders;
mod records;
mod scalar;

#[cfg(test)]
mod tests;

pub use crate::extension::{Hello, MARKER, UnreadableMessage};
pub use facts::{FarFacts, InterfaceCounters, MOST_NAMES, SynFacts, TcpInfoFact};
pub use load::{Goodput, LoadEnd, LoadProgress, LoadSample, LoadSamples, MOST_SAMPLES};
pub use message::{Answer, DecodeError, Decoder, Request};
pub use orders::{
    ConnectionNumber, ConnectionRef, Detail, Empty, LoadDirection, LoadOrder, LoadReady, Opened, RateOrder, Ready,
    ReceiveOrder, Refused, SendLimit, SendOrder, Spacing, StreamNumber, StreamRef,
};
pub use records::{Feedback, MOST_RECORDS, PacketRecord, Records, SentReport};

use linerate_units::ByteCount;

/// The feature of a server that has probe sessions, in its hello.
pub const FEATURE: &str = "probe";

/// Largest request that a server takes.
pub const REQUEST_LIMIT: ByteCount = ByteCount::from_kibibytes(16);

/// Largest answer that a client takes: a batch of records.
pub const ANSWER_LIMIT: ByteCount = ByteCount::from_mebibytes(1);

/// Streams and load connections that a session has at once, at most.
pub const MOST_STREAMS: usize = 64;
