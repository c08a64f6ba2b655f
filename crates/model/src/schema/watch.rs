//! The document of `linerate watch --json`: every TCP flow of a host over one interval, one document on a line.

use serde::{Deserialize, Serialize};

/// Version of the shape.
pub const SCHEMA: u32 = 1;

/// The flows of one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The linerate that looked.
    pub linerate_version: String,
    /// The end of the interval: nanoseconds since 1970-01-01 00:00 UTC.
    pub at_unix_ns: u64,
    /// How long the interval was.
    pub interval_ns: u64,
    /// The fastest first; with `--listen`, the listening sockets.
    pub flows: Vec<WatchFlow>,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchFlow {
    /// This end, as ADDRESS:PORT.
    pub local: String,
    /// The far end.
    pub remote: String,
    /// The socket's number that no other socket has, in hexadecimal digits.
    pub cookie: String,
    /// As RFC 9293 names it, for example `ESTABLISHED`.
    pub state: String,
    /// The process that has it open; `null` when that cannot be said.
    pub process: Option<WatchProcess>,
    /// Why not.
    pub process_unknown_because: Option<String>,
    /// Number of the user whom it belongs to.
    pub user: u32,
    /// Control group (its inode) in which it was made.
    pub control_group: Option<u64>,
    /// Firewall mark; `null` also when this process may not see it.
    pub mark: Option<u32>,
    /// Type of service (IPv4) or traffic class (IPv6) of its packets.
    pub type_of_service: Option<u8>,
    /// Payload acknowledged by the far end per time; rates and shares are `null` for a socket that was not there at the
    /// interval's beginning.
    pub send_bits_per_second: Option<f64>,
    /// Payload received per time.
    pub receive_bits_per_second: Option<f64>,
    /// Payload acknowledged during the interval.
    pub acknowledged_bytes: Option<u64>,
    /// Payload received during the interval.
    pub received_bytes: Option<u64>,
    /// Segments sent again during the interval.
    pub retransmitted_segments: Option<u64>,
    /// Bytes sent again as a share of those sent during the interval; `null` also when none were.
    pub retransmission_share: Option<f64>,
    /// Smoothed round-trip time.
    pub rtt_ns: Option<u64>,
    /// Smallest round-trip time.
    pub min_rtt_ns: Option<u64>,
    /// Their difference.
    pub queueing_ns: Option<u64>,
    /// Congestion window.
    pub congestion_window_bytes: Option<u64>,
    /// Sent and not acknowledged.
    pub in_flight_bytes: Option<u64>,
    /// The kernel's latest sample.
    pub delivery_bits_per_second: Option<f64>,
    /// The pace at which the kernel sends.
    pub pacing_bits_per_second: Option<f64>,
    /// The far end's window.
    pub send_window_bytes: Option<u64>,
    /// This end's window.
    pub receive_window_bytes: Option<u64>,
    /// Recv-Q: arrived and not read; for a listener, connections that wait.
    pub receive_queue: u64,
    /// Send-Q: written and not acknowledged; for a listener, how many connections may wait.
    pub send_queue: u64,
    /// Name of the congestion control.
    pub congestion_control: Option<String>,
    /// The socket's memory.
    pub memory: Option<WatchMemory>,
    /// What limits it now; `null` for a socket that was not there at the interval's beginning.
    pub limit: Option<WatchLimit>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchProcess {
    /// Its number.
    pub id: u32,
    /// Its name, at most 15 characters.
    pub name: String,
}

/// A socket's memory as the kernel counts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchMemory {
    /// What arrived and was not read.
    pub receive_allocated_bytes: u64,
    /// How much that may become.
    pub receive_buffer_bytes: u64,
    /// What was written and is not acknowledged.
    pub send_queued_bytes: u64,
    /// How much that may become.
    pub send_buffer_bytes: u64,
    /// Packets dropped at this socket.
    pub drops: Option<u64>,
    /// Whether the send buffer's size seems to have been set by the application; `null` when it cannot be said.
    pub send_buffer_set: Option<bool>,
    /// The same of the receive buffer.
    pub receive_buffer_set: Option<bool>,
}

/// What limits a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchLimit {
    /// `application`, `send-buffer`, `receive-window`, `zero-window`, `pacing`, `loss`, `congestion-window`, `not-moving`,
    /// `slow-reader`, `own-window`, `far-end`, `accepting`, `handshake`, `idle` or `unknown`.
    pub by: String,
    /// In a few words, with the figure.
    pub summary: String,
    /// In sentences.
    pub explanation: String,
    /// Shares of the time; `null` on kernels without these stop-watches.
    pub shares: Option<WatchShares>,
}

/// Shares of the interval's time by what held the sender back, by the kernel's stop-watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchShares {
    /// Nothing to send.
    pub application: f64,
    /// The send buffer was full.
    pub send_buffer: f64,
    /// The far end's window was used up.
    pub receive_window: f64,
    /// The congestion window.
    pub network: f64,
}
