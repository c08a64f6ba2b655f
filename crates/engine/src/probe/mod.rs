//! Probe sessions: two linerates measure the path between them.
//!
//! [`ProbeSession`] is the client's half: one control connection and one connected UDP socket, which threads share. Its
//! far half is the server's (`server::probe_session`); both use the parts below.
//!
//! | part | what it is |
//! |---|---|
//! | [`session`], [`Target`] | the control connection, requests and answers |
//! | `datagrams` | the UDP socket: one thread receives, and gives each datagram to whom its number belongs |
//! | [`stream`] | a paced stream of STAMP packets; [`recorder`] counts or keeps one that arrives |
//! | [`prober`] | round-trip probes at an interval |
//! | [`load`] | bulk data on TCP connections, with pings between; `load_link` is its thread, at either end |
//!
//! Threads sleep or poll, never spin, so that all of it also works where time is virtual. Times of packets are civil
//! times of the host that wrote them ([`linerate_units::WallTime`]): differences between the two hosts' mean something
//! up to the difference of their clocks.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) mod datagrams;
mod error;
mod link;
pub mod load;
pub(crate) mod load_link;
pub mod prober;
pub mod recorder;
pub mod session;
pub mod stream;
mod target;

#[cfg(test)]
mod tests;

pub use error::{Answering, ProbeError, Result};
pub use linerate_wire::probe as messages;
pub use load::{ApplicationPing, LoadConnection, LoadOptions, LoadOutcome, LoadSide};
pub use prober::{ProbeAnswer, ProbeOrder, ProbeResult, Prober};
pub use recorder::{Arrivals, Reception};
pub use session::{DatagramWay, ProbeSession};
pub use stream::Sending;
pub use target::Target;

/// A poisoned lock only means that a thread panicked; what it left is consistent, as every change is one statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
