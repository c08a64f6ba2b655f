//! iperf3's control protocol and its linerate extension, without IO.
//!
//! A test has one control connection. On it run state bytes and two JSON documents in each direction; the machines
//! [`client::ClientMachine`] and [`server::ServerMachine`] speak both sides of it. They are told what happened
//! (`handle`), say what to do (`poll`) and when to call again at the latest (`deadline`). They own no socket and read
//! no clock, so a conversation of minutes is tested in microseconds.
//!
//! | part | what it is |
//! |---|---|
//! | [`state`], [`cookie`], [`frame`], [`error`] | the pieces of the control connection |
//! | [`parameters`], [`results`] | the two JSON documents |
//! | [`client`], [`server`], [`failure`] | the conversation, and how it can fail |
//! | [`extension`] | what two linerates tell each other besides |
//! | [`probe`] | what the two ends of a probe session tell each other |
//! | [`udp`], [`sequence`] | the header of UDP data and the receiver's accounting |
//! | [`stamp`] | probes and their answers: RFC 8762 and RFC 8972 |
//! | [`authentication`] | user names and passwords under RSA |
//!
//! The profile is that of iperf3 3.21; nothing newer than 3.1 is required of a peer. The peer is never trusted: every
//! length has a limit, memory grows with the bytes that have come, not with those that were announced, and each wait
//! for the rest of a message ends.

#![forbid(unsafe_code)]

pub mod authentication;
pub mod client;
pub mod cookie;
pub mod error;
pub mod extension;
pub mod failure;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod json;
pub mod parameters;
pub mod probe;
pub mod results;
pub mod sequence;
pub mod server;
pub mod stamp;
pub mod state;
mod timer;
pub mod udp;

pub use timer::Deadlines;
