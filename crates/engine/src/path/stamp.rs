//! A STAMP reflector (RFC 8762) that is not linerate's, or one whose control port is unreachable.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_sys::clock;
use linerate_sys::data::probe_socket::{OutgoingDatagram, ProbeOptions, ProbeSocket};
use linerate_sys::net::{self, UdpOptions};
use linerate_units::{BitRate, ByteCount, PacketCount};
use linerate_wire::stamp::{
    ErrorEstimate, ReflectorPacket, SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat,
};

use super::blind::sender::{self, StreamPlan};
use super::record::PathRecord;
use crate::phases::AbortReason;

/// UDP payload of the probes.
const SIZE: ByteCount = ByteCount::new(64);

/// Probes that detect a reflector, and the time for each answer.
const DETECTION_PROBES: u32 = 3;
const PATIENCE: Duration = Duration::from_millis(700);

/// Longest duration of a measurement.
const LONGEST: Duration = Duration::from_secs(6);

/// Smallest interval of probes: a foreign reflector must not be flooded.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Returns `true` when a reflector answers.
pub(super) fn find(record: &mut PathRecord<'_>, peer: SocketAddr) -> Result<bool, AbortReason> {
    let Some(mut session) = StampSession::open(record, peer) else { return Ok(false) };
    for _ in 0..DETECTION_PROBES {
        session.send();
        let end = clock::monotonic_now() + PATIENCE;
        while clock::monotonic_now() < end {
            record.check()?;
            match session.receive(end.since(clock::monotonic_now()).min(Duration::from_millis(200))) {
                StampEvent::Answer => return Ok(true),
                StampEvent::Refusal => return Ok(false),
                StampEvent::Nothing => {}
            }
        }
    }
    Ok(false)
}

/// Measures round trips, and the losses of each direction where the reflector keeps count.
pub(super) fn measure(record: &mut PathRecord<'_>, peer: SocketAddr) -> Result<(), AbortReason> {
    let interval = record.options.interval.max(MIN_INTERVAL);
    let most = LONGEST.as_nanos() / interval.as_nanos().max(1);
    let count = record.options.count.get().min(u64::try_from(most).unwrap_or(u64::MAX));
    let rate = BitRate::from_bits_per_second(SIZE.as_f64() * 8.0 / interval.as_secs_f64());
    let plan = StreamPlan { size: SIZE, rate, count: PacketCount::new(count) };
    let to = net::with_port(peer, record.options.stamp_port);
    let (stream, ended) = sender::send(record, to, plan)?;
    stream.describe(record);
    ended
}

/// Single packets, to find out whether a reflector answers.
struct StampSession {
    socket: ProbeSocket,
    sent: u32,
}

enum StampEvent {
    Answer,
    Refusal,
    Nothing,
}

impl StampSession {
    fn open(record: &mut PathRecord<'_>, peer: SocketAddr) -> Option<Self> {
        let target = &record.options.target;
        let options = UdpOptions { address: target.bind, device: target.device.clone(), ..UdpOptions::default() };
        let to = net::with_port(peer, record.options.stamp_port);
        let socket = net::connect_udp(&options, to).ok()?;
        let socket = ProbeSocket::new(socket, ProbeOptions::default()).ok()?;
        Some(Self { socket, sent: 0 })
    }

    fn send(&mut self) {
        let now = self.socket.clocks().now();
        let packet = SenderPacket {
            sequence: self.sent,
            timestamp: StampTimestamp::from_wall(now.wall, TimestampFormat::Ntp),
            error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
            session: SessionIdentifier::new(1),
        };
        // An error belongs to an earlier packet, or this one counts as lost.
        let _ = self.socket.send(&packet.encode(SIZE), &OutgoingDatagram::default());
        self.sent += 1;
    }

    fn receive(&mut self, timeout: Duration) -> StampEvent {
        let mut buffer = [0; 2048];
        let arrival = match self.socket.receive(&mut buffer, Some(timeout)) {
            Ok(Some(arrival)) => arrival,
            Ok(None) => return StampEvent::Nothing,
            Err(_) => return StampEvent::Refusal,
        };
        let Ok(packet) = ReflectorPacket::decode(&buffer[..arrival.filled]) else { return StampEvent::Nothing };
        if packet.sender_sequence >= self.sent {
            return StampEvent::Nothing;
        }
        StampEvent::Answer
    }
}
