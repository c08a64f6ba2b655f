//! Hook for measurements over QUIC: an engine without runtime of its own leaves them to a service of the process.

use core::fmt::Debug;

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
}
