//! Streams of STAMP packets without a control connection: sent at a rate, or only received.
//!
//! A sender needs nothing from the far end. Where a reflector returns the packets, it measures both directions; where
//! nothing returns, it reports only what it sent, and a receiver (`receiver`) on the far host, which sends nothing,
//! measures the one direction that there is.

mod answers;
pub(super) mod receiver;
pub(super) mod sender;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use linerate_sys::net;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount};

use super::record::PathRecord;
use crate::phases::AbortReason;
use crate::probe::ProbeError;

/// Measurement without a control connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlindStream {
    /// Send a stream, and evaluate what a reflector returns.
    Send {
        /// IP-layer rate.
        rate: BitRate,
        /// Size of each IP packet.
        packet: ByteCount,
        /// Number of packets.
        count: PacketCount,
    },
    /// Receive a stream, and send nothing.
    Receive {
        /// Number of packets that the sender sends; `None` when it is unknown.
        count: Option<PacketCount>,
    },
}

impl BlindStream {
    /// Most packets of a stream: their times are kept in memory.
    pub const MOST: PacketCount = PacketCount::new(1_000_000);

    /// Smallest IP packet: IPv6, UDP, and a STAMP packet.
    pub const SMALLEST: ByteCount = ByteCount::new(40 + 8 + 44);

    /// Largest IP packet.
    pub const LARGEST: ByteCount = ByteCount::new(65_535);
}

/// Measures a stream and nothing else.
pub(super) fn measure(record: &mut PathRecord<'_>, stream: BlindStream) -> Result<(), AbortReason> {
    let target = &record.options.target;
    let resolved = net::resolve(target.address(), record.options.stamp_port, target.family);
    let addresses = resolved.map_err(|error| AbortReason::Failed(ProbeError::Unreachable(error.to_string())))?;
    match stream {
        BlindStream::Send { rate, packet, count } => {
            let Some(peer) = addresses.into_iter().next() else { return Ok(()) };
            record.document.address = Some(peer.ip().to_string());
            record.document.port = peer.port();
            sender::measure_alone(record, peer, rate, packet, count)
        }
        BlindStream::Receive { count } => {
            let senders: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
            record.document.port = record.options.stamp_port.get();
            receiver::measure(record, &senders, count)
        }
    }
}

/// IP-layer rate of `count` packets between the first and the last of these times; `None` for one packet.
fn rate_between(count: PacketCount, packet: ByteCount, times: Option<(MonotonicTime, MonotonicTime)>) -> Option<f64> {
    let (first, last) = times?;
    let span = last.since(first).as_secs_f64();
    let between = PacketCount::new(count.get().checked_sub(1)?);
    (span > 0.0 && !between.is_zero()).then(|| (between * packet).as_f64() * 8.0 / span)
}

/// First and last of some times.
fn span(times: impl Iterator<Item = MonotonicTime> + Clone) -> Option<(MonotonicTime, MonotonicTime)> {
    Some((times.clone().min()?, times.max()?))
}
