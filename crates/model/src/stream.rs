//! One stream (flow) of a test, and who plays which part in it.

use std::net::SocketAddr;

/// Which end of the control connection this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It connected.
    Client,
    /// It accepted.
    Server,
}

/// What this end does on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// This end sends.
    Sender,
    /// This end receives.
    Receiver,
}

/// A stream's number on the wire: 1, 3, 4, 5, … in order of creation; iperf3 never uses 2 (`iperf_add_stream`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The number of the stream created after `earlier` others.
    #[must_use]
    pub fn nth(earlier: usize) -> Self {
        let earlier = u32::try_from(earlier).unwrap_or(u32::MAX - 2);
        Self(if earlier == 0 { 1 } else { earlier + 2 })
    }
}

/// A stream that has been set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDescription {
    /// Number on the wire.
    pub id: StreamId,
    /// What iperf3 prints in square brackets: the socket's file descriptor.
    pub socket: i32,
    /// This end's address; IPv4 addresses are never shown mapped into IPv6.
    pub local: SocketAddr,
    /// The other end's address.
    pub remote: SocketAddr,
    /// What this end does on it.
    pub role: Role,
}
