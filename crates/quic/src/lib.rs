//! Measurements over QUIC (RFC 9000) by quinn, whose protocol is a program: what it costs at both ends is part of the result.
//!
//! [`QuicServer`] is the service of a server for its probe sessions ([`linerate_engine::server::QuicService`]), [`QuicClient`]
//! the client's end, and [`QuicExchanges`] that of handshakes as transactions. Both block: the runtime that quinn asks for is one thread inside, at a client the calling one.
//!
//! The server has a raw public key (RFC 7250) that it makes at its start; its hash travels over the session's control
//! connection, and the client accepts that key alone. Packets of strangers have no answer: the first destination connection
//! identifier admits a connection, once ([`linerate_wire::quic`]).

mod client;
mod connection;
mod error;
mod exchange;
mod gaps;
mod key;
mod meter;
mod numbers;
mod server;
mod socket;
mod stream;
mod transport;

pub use client::{QuicClient, QuicProgress, QuicTarget};
pub use error::QuicError;
pub use exchange::QuicExchanges;
pub use server::{QuicServer, QuicServerOptions};
