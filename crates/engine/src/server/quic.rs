//! Hook for measurements over QUIC: an engine without runtime of its own leaves them to a service of the process.

use core::fmt::Debug;
use core::time::Duration;
use std::sync::Arc;

use linerate_units::ByteCount;
use linerate_wire::quic::{QuicOrder, QuicReady};

use super::service::ServiceShare;

/// Service that accepts the QUIC connections of probe sessions.
pub trait QuicService: Debug + Send + Sync {
    /// Expects connections of a session.
    ///
    /// # Errors
    ///
    /// The reason why there are none, for the client.
    fn open(&self, request: QuicSessionRequest) -> Result<QuicGrant, String>;
}

/// Request of a probe session.
#[derive(Debug)]
pub struct QuicSessionRequest {
    /// Settings that the client asks for.
    pub order: QuicOrder,
    /// Share of the client in the memory and the rate of the server.
    pub share: ServiceShare,
    /// Message that each connection answers; `None` for measurements that name theirs.
    pub exchange: Option<QuicExchange>,
}

/// Request and response of each connection of a session.
#[derive(Clone)]
pub struct QuicExchange {
    /// Bytes of a request.
    pub request: ByteCount,
    /// Bytes of a response.
    pub response: ByteCount,
    /// Connections at once.
    pub flows: u32,
    /// True when a connection carries many requests, each on a stream of its own.
    pub keeps_open: bool,
    /// Counts a response that has been sent.
    pub completed: Arc<dyn Fn() + Send + Sync>,
}

impl Debug for QuicExchange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("QuicExchange").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Granted connections.
#[derive(Debug)]
pub struct QuicGrant {
    /// Answer to the client.
    pub ready: QuicReady,
    /// The connections.
    pub session: Box<dyn QuicSession>,
}

/// QUIC connections of one probe session. Dropping it closes them.
pub trait QuicSession: Debug + Send {
    /// True while a transfer runs.
    fn is_active(&self) -> bool;

    /// Closes the connections; returns the processor time of a thread that served this session alone, `None` for a shared one.
    fn end(self: Box<Self>) -> Option<Duration>;
}
