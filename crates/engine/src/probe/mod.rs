//! Probe sessions: two linerates measure the path between them.
//!
//! [`ProbeSession`] is the client's half: one control connection and one connected UDP socket, shared by threads. The
//! far half is the server's (`server::probe_session`); both use the parts below.
//!
//! | part | purpose |
//! |---|---|
//! | [`session`], [`ProbeTarget`] | the control connection, requests and answers |
//! | `datagrams` | the UDP socket: one thread receives and dispatches datagrams by their stream number |
//! | [`stream`] | a paced stream of STAMP packets; [`recorder`] counts or records a received one |
//! | [`prober`] | round-trip probes at an interval |
//! | [`load`] | bulk data on TCP connections, interleaved with pings; `load_link` is its thread, at either end |
//!
//! Threads sleep or poll, never spin, so that all of it also works with virtual time. Times of packets are civil times
//! of the host that wrote them ([`linerate_units::WallTime`]): differences between the hosts are meaningful up to the
//! offset of their clocks.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) mod datagrams;
mod error;
mod link;
pub mod load;
pub(crate) mod load_link;
pub mod prober;
pub mod recorder;
pub mod session;
mod stall;
pub mod stream;
mod target;

#[cfg(test)]
mod tests;

pub use error::{AnsweringService, ProbeError, Result};
pub use linerate_wire::probe as messages;
pub use load::{ApplicationPing, LoadConnection, LoadOptions, LoadOutcome, LoadSide};
pub use prober::{ProbeAnswer, ProbeOrder, ProbeResult, ProbeSeries};
pub use recorder::{PacketArrivals, StreamReception};
pub(crate) use session::token_packet;
pub use session::{DatagramAddresses, ProbeSession};
pub use stream::SendingThread;
pub use target::ProbeTarget;

/// A poisoned lock only means that a thread panicked; its data is consistent, as every change is one statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
