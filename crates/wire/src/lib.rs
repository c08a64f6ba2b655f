//! iperf3's control protocol and its linerate extension, without IO.
//!
//! A test has one control connection. It carries state bytes and two JSON documents in each direction; the state
//! machines [`client::ClientMachine`] and [`server::ServerMachine`] implement both sides. They take events (`handle`),
//! return actions (`poll`), and the latest time of the next call (`deadline`). They own no socket and read no clock, so
//! a conversation of minutes is tested in microseconds.
//!
//! | part | contents |
//! |---|---|
//! | [`state`], [`cookie`], [`frame`], [`error`] | the elements of the control connection |
//! | [`parameters`], [`results`] | the two JSON documents |
//! | [`client`], [`server`], [`failure`] | the state machines and their errors |
//! | [`extension`] | additional messages between two linerates |
//! | [`probe`] | messages of a probe session |
//! | [`quic`] | messages within the connections of a QUIC measurement |
//! | [`key_pin`] | the digest by which a client recognizes its server, over TLS and QUIC |
//! | [`udp`], [`sequence`] | the header of UDP data and the receiver's accounting |
//! | [`stamp`] | probe packets and reflected packets: RFC 8762 and RFC 8972 |
//! | [`hop_probe`], [`icmp_extension`] | probes of hops, and MPLS labels in the errors that they get |
//! | [`dns`] | TXT records, in which autonomous systems are looked up |
//! | [`authentication`] | user names and passwords, encrypted with RSA |
//!
//! The profile is that of iperf3 3.21; nothing newer than 3.1 is required of a peer. The peer is never trusted: every
//! length has a limit, memory grows with the bytes received, not with those announced, and each wait for the remainder
//! of a message has a deadline.

#![forbid(unsafe_code)]

pub mod authentication;
pub mod client;
pub mod cookie;
pub mod dns;
pub mod error;
pub mod extension;
pub mod failure;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod hop_probe;
pub mod icmp_extension;
mod json;
pub mod key_pin;
pub mod parameters;
pub mod probe;
pub mod quic;
pub mod results;
pub mod sequence;
pub mod server;
pub mod stamp;
pub mod state;
mod timer;
pub mod udp;

pub use timer::ControlDeadlines;
