//! Requests and responses: the order for a test, its report, and the datagrams that open a UDP flow.

use core::time::Duration;

use linerate_model::rr::RrMode;
use linerate_units::{ByteCount, Port};
use serde::{Deserialize, Serialize};

use super::orders::maybe_port;
use super::scalar::{bytes, maybe_nanos};
use crate::cookie::{SessionToken, TOKEN_LENGTH};
use crate::key_pin::KeyPin;
use crate::quic::QuicReady;

/// Name of the feature "requests and responses" in a server's hello.
pub const RR_FEATURE: &str = "rr";

/// Name of the feature "handshakes as transactions" ([`RrMode::Tls`] and, with [`crate::quic::QUIC_FEATURE`],
/// [`RrMode::Quic`]) in a server's hello.
pub const RR_HANDSHAKE_FEATURE: &str = "rr-handshake";

/// Name of the feature "many requests on a connection with a handshake" ([`RrOrder::keeps_open`]) in a server's hello.
pub const RR_OPEN_FEATURE: &str = "rr-open";

/// Most requests in flight on a connection that stays open.
pub const MAX_OPEN_REQUESTS: u32 = 1024;

/// Most concurrent transactions of a session.
pub const MAX_RR_FLOWS: u32 = 256;

/// Order for the server's half of a test of requests and responses. It replaces an earlier one of the session.
///
/// TCP connections join the session with its token in their cookie, as load connections do; UDP flows open with
/// [`RrOpening`] datagrams. Each then carries requests of exactly `request` bytes, answered by `response` bytes. With a TLS
/// handshake, the cookie precedes the request within TLS; with one of QUIC, the token of [`QuicReady`] does on the first stream. A
/// connection that stays open carries further requests without it: in TLS one after another, answered in their order, and over
/// QUIC each on a stream of its own, at most [`MAX_OPEN_REQUESTS`] at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrOrder {
    /// Kind of transaction.
    pub mode: RrMode,
    /// Bytes of a request.
    #[serde(with = "bytes")]
    pub request: ByteCount,
    /// Bytes of a response.
    #[serde(with = "bytes")]
    pub response: ByteCount,
    /// Number of concurrent transactions: 1 to 256.
    pub flows: u32,
    /// True when a connection of [`RrMode::Tls`] or [`RrMode::Quic`] carries many requests, and its client ends it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub keeps_open: bool,
}

impl RrOrder {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let sizes = 1..=self.mode.max_message_bytes();
        if !sizes.contains(&self.request.get()) || !sizes.contains(&self.response.get()) {
            return Err("a request and a response have 1 byte to 16 MiB, in UDP 1 to 65507 bytes");
        }
        if !(1..=MAX_RR_FLOWS).contains(&self.flows) {
            return Err("a test has 1 to 256 concurrent transactions");
        }
        if self.keeps_open && !self.mode.has_handshake() {
            return Err("connections that stay open are those of TLS and QUIC");
        }
        Ok(())
    }
}

/// Reply when the server expects the connections or flows of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrReady {
    /// UDP port of the flows, or TCP port for a connection per transaction, with or without TLS; `None` for the server's own port.
    #[serde(default, with = "maybe_port")]
    pub port: Option<Port>,
    /// Digest of the key for TLS handshakes where the conversation is without TLS: the only one that the client accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyPin>,
    /// Connections for QUIC handshakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicReady>,
}

/// Report of the server at the end of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrReport {
    /// Requests answered.
    pub transactions: u64,
    /// Processor time of the threads that answered, in user and kernel mode; `None` when unknown.
    #[serde(default, with = "maybe_nanos")]
    pub processor: Option<Duration>,
    /// Limit of the server that ended the test before the client did (`--server-max-duration`); `None` for none.
    #[serde(default, with = "maybe_nanos")]
    pub ended_by_limit: Option<Duration>,
}

/// First bytes of an opening datagram.
const OPENING_MAGIC: [u8; 8] = *b"LNRTrr\x01O";

/// Bytes of an opening datagram and of its answer: no answer is larger than what it answers.
pub const RR_OPENING_LENGTH: usize = OPENING_MAGIC.len() + TOKEN_LENGTH;

/// Datagram that opens a UDP flow.
///
/// The client shows the session's token; the server sends a challenge of its own to the source of that datagram; the
/// client returns it, which verifies the source (return routability, RFC 9000 §8.2), and the server repeats it. Only then
/// are requests from there answered, as a response may be larger than its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RrOpening(pub SessionToken);

impl RrOpening {
    /// The datagram.
    #[must_use]
    pub fn encode(&self) -> [u8; RR_OPENING_LENGTH] {
        let mut datagram = [0; RR_OPENING_LENGTH];
        let (magic, token) = datagram.split_at_mut(OPENING_MAGIC.len());
        magic.copy_from_slice(&OPENING_MAGIC);
        token.copy_from_slice(self.0.as_bytes());
        datagram
    }

    /// Reads a datagram; `None` for any other one.
    #[must_use]
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let token: [u8; TOKEN_LENGTH] = datagram.strip_prefix(&OPENING_MAGIC)?.try_into().ok()?;
        SessionToken::from_characters(token).map(Self)
    }
}

/// Most bytes of a request's number, at its start.
const NUMBER_BYTES: usize = 8;

/// Writes the number of a transaction into a UDP request, which the response repeats: the low bytes of it that both have
/// room for. So a late response is not taken for that of the next request.
pub fn number_request(request: &mut [u8], number: u64) {
    let length = request.len().min(NUMBER_BYTES);
    request[..length].copy_from_slice(&number.to_le_bytes()[..length]);
}

/// Copies the number of a request into its response.
pub fn number_response(response: &mut [u8], request: &[u8]) {
    let length = response.len().min(request.len()).min(NUMBER_BYTES);
    response[..length].copy_from_slice(&request[..length]);
}

/// True when a response has the number of this request.
#[must_use]
pub fn answers(response: &[u8], request: &[u8]) -> bool {
    let length = response.len().min(request.len()).min(NUMBER_BYTES);
    response[..length] == request[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_round_trips_and_nothing_else_is_one() {
        let opening = RrOpening(SessionToken::random([3; TOKEN_LENGTH]));
        let datagram = opening.encode();
        assert_eq!(RrOpening::decode(&datagram), Some(opening));
        for length in 0..datagram.len() {
            assert_eq!(RrOpening::decode(&datagram[..length]), None, "{length}");
        }
        assert_eq!(RrOpening::decode(&[&datagram[..], &[0]].concat()), None);
        let mut other = datagram;
        other[3] ^= 1;
        assert_eq!(RrOpening::decode(&other), None);
    }

    #[test]
    fn a_response_has_the_number_of_its_request() {
        for (request_length, response_length) in [(1, 1), (1, 100), (100, 1), (8, 8), (64, 1200)] {
            let (mut request, mut response) = (vec![7; request_length], vec![9; response_length]);
            number_request(&mut request, 0x1234);
            number_response(&mut response, &request);
            assert!(answers(&response, &request));
            number_request(&mut request, 0x1235);
            assert!(!answers(&response, &request), "{request_length}, {response_length}");
        }
    }

    #[test]
    fn orders_are_within_their_bounds() {
        let order = |mode, request, response, flows| RrOrder {
            mode,
            request: ByteCount::new(request),
            response: ByteCount::new(response),
            flows,
            keeps_open: false,
        };
        let open = |mode| RrOrder { keeps_open: true, ..order(mode, 1, 1, 1) };
        assert_eq!([RrMode::Tls, RrMode::Quic].map(|mode| open(mode).check()), [Ok(()); 2]);
        assert!([RrMode::Tcp, RrMode::Connect, RrMode::Udp].iter().all(|mode| open(*mode).check().is_err()));
        assert_eq!(order(RrMode::Tcp, 1, 16 << 20, 256).check(), Ok(()));
        assert_eq!(order(RrMode::Udp, 65_507, 1, 1).check(), Ok(()));
        for wrong in [
            order(RrMode::Tcp, 0, 1, 1),
            order(RrMode::Tcp, 1, 0, 1),
            order(RrMode::Connect, (16 << 20) + 1, 1, 1),
            order(RrMode::Udp, 1, 65_508, 1),
            order(RrMode::Udp, 1, 1, 0),
            order(RrMode::Udp, 1, 1, 257),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
