//! Messages between the two hosts of a probe session.
//!
//! A client that connects with a cookie of [`ExtensionVersion::Probes`](crate::cookie::ExtensionVersion::Probes)
//! requests not a test but the far half of a path measurement: reflected, recorded and sent STAMP packets (RFC 8762,
//! RFC 8972), load on TCP connections, facts about the host. The server introduces itself with a [`ServerHello`] whose
//! features include [`PROBE_FEATURE`]; then the client sends [`StreamRequest`]s, and the server [`ProbeResponse`]s, in order, with events
//! between them. A server without probe sessions (a stock iperf3, an older linerate) answers the cookie with byte 9, as
//! it does to any iperf3 client.
//!
//! Each message is the byte [`MARKER`], a 32-bit big-endian length, and a JSON object with one key that names the
//! message, as in [`crate::extension`]:
//!
//! ```text
//! 4C 00 00 00 1D {"receiving":{"stream":1000}}
//! ```
//!
//! Numerous items are written as arrays, since the measurement itself must be small against the measured traffic. Times
//! are whole nanoseconds (times of day since 1970), sizes bytes, rates whole bit/s. Messages and keys with unknown
//! names are skipped; known ones must have their type and be within their range.
//!
//! | part | contents |
//! |---|---|
//! | [`StreamRequest`], [`ProbeResponse`], [`ProbeMessageDecoder`] | the messages and their frames |
//! | [`ReceiveOrder`], [`SendOrder`], [`LoadOrder`] … | contents of requests |
//! | [`PacketRecord`], [`StreamFeedback`], [`SentReport`] | reports about a stream of packets |
//! | [`LoadSample`], [`LoadProgress`], [`LoadEnd`] | reports about a load connection |
//! | [`RrOrder`], [`RrReport`], [`RrOpening`] | requests and responses |
//! | [`FarFacts`] | facts about the host |
//! | [`load_frame`] | frames on a load connection |

mod facts;
mod load;
pub mod load_frame;
mod message;
mod orders;
mod records;
mod rr;
mod scalar;

#[cfg(test)]
mod tests;

pub use crate::extension::{MARKER, ServerHello, UnreadableMessage};
pub use facts::{FarFacts, InterfaceCounterSample, MAX_CONGESTION_CONTROLS, SynFacts};
pub use load::{GoodputSample, LoadEnd, LoadProgress, LoadSample, LoadSamples, MAX_LOAD_SAMPLES};
pub use message::{ProbeDecodeError, ProbeMessageDecoder, ProbeResponse, StreamRequest};
pub use orders::{
    ConnectionNumber, ConnectionRef, DatagramsReady, EmptyContent, LoadOrder, LoadReady, PacketSpacing, RateOrder,
    ReceiveOrder, RecordDetail, ReflectorOpened, RequestRefused, SendLimit, SendOrder, StreamNumber, StreamRef,
};
pub(crate) use orders::{port, token};
pub use records::{MAX_SESSION_RECORDS, PacketRecord, RecordBatch, SentReport, StreamFeedback};
pub use rr::{
    MAX_OPEN_REQUESTS, MAX_RR_FLOWS, RR_FEATURE, RR_HANDSHAKE_FEATURE, RR_OPEN_FEATURE, RR_OPENING_LENGTH, RrOpening,
    RrOrder, RrReady, RrReport, answers, number_request, number_response,
};

use linerate_units::ByteCount;

/// Name of the feature "probe sessions" in a server's hello.
pub const PROBE_FEATURE: &str = "probe";

/// Name of the feature "streams of bursts" in a server's hello.
pub const BURSTS_FEATURE: &str = "bursts";

/// Largest request that a server accepts.
pub const MAX_REQUEST_LENGTH: ByteCount = ByteCount::from_kibibytes(16);

/// Largest answer that a client accepts: a batch of records.
pub const MAX_RESPONSE_LENGTH: ByteCount = ByteCount::from_mebibytes(1);

/// Maximum number of concurrent streams, and of concurrent load connections, of a session.
pub const MAX_SESSION_STREAMS: usize = 64;
