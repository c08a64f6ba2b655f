//! Returned packets of a stream, recorded as they arrive.

use std::sync::Mutex;

use linerate_analysis::ippm::ReflectedPacket;
use linerate_model::path::TimeStampSource;
use linerate_units::{MonotonicTime, PacketCount, WallTime};
use linerate_wire::stamp::{ReflectorPacket, TimestampFormat};

use crate::path::convert::to_monotonic;
use crate::path::record::source;
use crate::probe::datagrams::{DatagramRun, DatagramSink, DatagramSocket};
use crate::probe::lock;

/// Returned packets of a stream of `count`; at most twice as many are kept.
pub(super) struct ReturnLog {
    /// Earliest time at which a packet of the stream was sent: an answer to an earlier one is foreign.
    began: WallTime,
    most: usize,
    state: Mutex<ReturnState>,
}

#[derive(Default)]
struct ReturnState {
    packets: Vec<ReflectedPacket>,
    stamps: Option<TimeStampSource>,
}

impl ReturnLog {
    pub(super) fn new(began: WallTime, count: PacketCount) -> Self {
        Self { began, most: count.to_usize().saturating_mul(2), state: Mutex::default() }
    }

    /// Number of returned packets, and the last one.
    pub(super) fn latest(&self) -> (usize, Option<ReflectedPacket>) {
        let state = lock(&self.state);
        (state.packets.len(), state.packets.last().copied())
    }

    /// All returned packets, and the source of their receive time stamps.
    pub(super) fn take(&self) -> (Vec<ReflectedPacket>, Option<TimeStampSource>) {
        let mut state = lock(&self.state);
        (core::mem::take(&mut state.packets), state.stamps)
    }

    /// Reads a returned packet; `None` for one that is not of this stream.
    fn read(&self, datagram: &[u8], arrived: WallTime) -> Option<ReflectedPacket> {
        let packet = ReflectorPacket::decode(datagram).ok()?;
        let sent = packet.sender_timestamp.to_wall(TimestampFormat::Ntp)?;
        if sent < self.began || sent > arrived {
            return None;
        }
        let format = packet.error_estimate.format();
        let far = |time: Option<WallTime>| time.map_or(MonotonicTime::default(), to_monotonic);
        Some(ReflectedPacket {
            sequence: packet.sender_sequence.into(),
            far_sequence: packet.sequence.into(),
            sent: to_monotonic(sent),
            far_received: far(packet.received_at.to_wall(format)),
            far_sent: far(packet.timestamp.to_wall(format)),
            received: to_monotonic(arrived),
        })
    }
}

impl DatagramSink for ReturnLog {
    fn take(&self, run: &DatagramRun<'_>, _: &DatagramSocket) {
        let mut state = lock(&self.state);
        for datagram in run.bytes.chunks(run.datagram) {
            if state.packets.len() >= self.most {
                return;
            }
            if let Some(packet) = self.read(datagram, run.arrived.wall) {
                state.stamps.get_or_insert(source(run.arrived.source));
                state.packets.push(packet);
            }
        }
    }
}
