//! A STAMP reflector (RFC 8762) that is not linerate's, or one whose control port is unreachable.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_analysis::ippm::{ClockRelation, RoundTrip};
use linerate_analysis::statistics::clopper_pearson;
use linerate_model::path::{PacketMetrics, PathClock};
use linerate_sys::clock;
use linerate_sys::data::probe_socket::{OutgoingDatagram, ProbeOptions, ProbeSocket};
use linerate_sys::net::{self, UdpOptions};
use linerate_sys::time_stamp::TimeStamp;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, Ratio};
use linerate_wire::stamp::{
    ErrorEstimate, ReflectorPacket, SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat,
};

use super::PathEvent;
use super::convert::{self, to_monotonic};
use super::idle::latency_series;
use super::record::{PathRecord, source};
use crate::course::AbortReason;

/// UDP payload of the probes.
const SIZE: ByteCount = ByteCount::new(64);

/// Probes that detect a reflector, and the time for each answer.
const DETECTION_PROBES: u32 = 3;
const PATIENCE: Duration = Duration::from_millis(700);

/// Longest duration of a measurement.
const LONGEST: Duration = Duration::from_secs(6);

/// Smallest interval of probes: a foreign reflector must not be flooded.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// An answer.
#[derive(Clone, Copy)]
struct StampAnswer {
    sent: TimeStamp,
    received: TimeStamp,
    packet: ReflectorPacket,
}

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
    let Some(mut session) = StampSession::open(record, peer) else { return Ok(()) };
    let interval = record.options.interval.max(MIN_INTERVAL);
    let most = LONGEST.as_nanos() / interval.as_nanos().max(1);
    let count = record.options.count.get().min(u64::try_from(most).unwrap_or(u64::MAX));
    let begun = clock::monotonic_now();
    let mut next = begun;
    while session.sent.len() as u64 != count {
        record.check()?;
        session.send();
        next = next + interval;
        let mut left = next.since(clock::monotonic_now());
        while !left.is_zero() {
            let _ = session.receive(left);
            left = next.since(clock::monotonic_now());
        }
        if let Some(last) = session.answers.values().next_back().filter(|_| session.sent.len() % 20 == 0) {
            record.tell(&PathEvent::RoundTrip(round_trip(last)));
        }
    }
    let end = clock::monotonic_now() + Duration::from_secs(1);
    while clock::monotonic_now() < end && (session.answers.len() as u64) < count {
        record.check()?;
        let _ = session.receive(end.since(clock::monotonic_now()).min(Duration::from_millis(200)));
    }
    let headers = convert::headers(peer);
    let whole = (SIZE + headers).get();
    record.count_traffic(Direction::Up, ByteCount::new(whole * count));
    record.count_traffic(Direction::Down, ByteCount::new(whole * session.answers.len() as u64));
    session.tell(record, interval, headers);
    Ok(())
}

fn round_trip(answer: &StampAnswer) -> Duration {
    let format = answer.packet.error_estimate.format();
    let whole = answer.received.monotonic.since(answer.sent.monotonic);
    let inside = |packet: &ReflectorPacket| {
        let received = packet.received_at.to_wall(format)?.since_unix_epoch();
        packet.timestamp.to_wall(format)?.since_unix_epoch().checked_sub(received)
    };
    // A turnaround longer than the round trip means that a clock was set meanwhile.
    inside(&answer.packet).and_then(|turn| whole.checked_sub(turn)).unwrap_or(whole)
}

struct StampSession {
    socket: ProbeSocket,
    sent: Vec<TimeStamp>,
    answers: BTreeMap<u32, StampAnswer>,
    duplicates: u64,
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
        let to = SocketAddr::new(peer.ip(), record.options.stamp_port.get());
        let socket = net::connect_udp(&options, to).ok()?;
        let socket = ProbeSocket::new(socket, ProbeOptions::default()).ok()?;
        Some(Self { socket, sent: Vec::new(), answers: BTreeMap::new(), duplicates: 0 })
    }

    fn send(&mut self) {
        let now = self.socket.clocks().now();
        let packet = SenderPacket {
            sequence: u32::try_from(self.sent.len()).unwrap_or(u32::MAX),
            timestamp: StampTimestamp::from_wall(now.wall, TimestampFormat::Ntp),
            error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
            session: SessionIdentifier::new(1),
        };
        // An error belongs to an earlier packet, or this one counts as lost.
        let _ = self.socket.send(&packet.encode(SIZE), &OutgoingDatagram::default());
        self.sent.push(now);
    }

    fn receive(&mut self, timeout: Duration) -> StampEvent {
        let mut buffer = [0; 2048];
        let arrival = match self.socket.receive(&mut buffer, Some(timeout)) {
            Ok(Some(arrival)) => arrival,
            Ok(None) => return StampEvent::Nothing,
            Err(_) => return StampEvent::Refusal,
        };
        let Ok(packet) = ReflectorPacket::decode(&buffer[..arrival.filled]) else { return StampEvent::Nothing };
        let number = packet.sender_sequence;
        let Some(sent) = self.sent.get(number as usize).copied() else { return StampEvent::Nothing };
        if self.answers.insert(number, StampAnswer { sent, received: arrival.arrived, packet }).is_some() {
            self.duplicates += 1;
        }
        StampEvent::Answer
    }

    fn tell(&self, record: &mut PathRecord<'_>, interval: Duration, headers: ByteCount) {
        let readings: Vec<(MonotonicTime, Duration)> =
            self.answers.values().map(|answer| (answer.sent.monotonic, round_trip(answer))).collect();
        let started = record.started;
        latency_series(record, "STAMP", &readings, started);
        let times: Vec<Duration> = readings.iter().map(|(_, time)| *time).collect();
        record.document.rtt.udp = convert::distribution(&times);
        self.clocks(record);
        self.losses(record, interval, headers);
    }

    fn clocks(&self, record: &mut PathRecord<'_>) {
        let round_trips: Vec<RoundTrip> = self
            .answers
            .values()
            .filter_map(|answer| {
                let format = answer.packet.error_estimate.format();
                Some(RoundTrip {
                    sent: to_monotonic(answer.sent.wall),
                    far_received: to_monotonic(answer.packet.received_at.to_wall(format)?),
                    far_sent: to_monotonic(answer.packet.timestamp.to_wall(format)?),
                    received: to_monotonic(answer.received.wall),
                })
            })
            .collect();
        let stamps = self.answers.values().next().map(|answer| source(answer.received.source));
        if let (Some(relation), Some(time_stamps)) = (ClockRelation::of(&round_trips), stamps) {
            record.document.clock = Some(PathClock {
                offset_ns: relation.offset.as_nanos(),
                error_ns: nanoseconds(relation.error_bound),
                drift_ppm: Some(relation.drift.parts_per_million()),
                time_stamps,
            });
        }
    }

    /// A counting reflector numbers its own packets, which reveals how many probes reached it (RFC 8762 §4.3).
    fn losses(&self, record: &mut PathRecord<'_>, interval: Duration, headers: ByteCount) {
        let (sent, came) = (self.sent.len() as u64, self.answers.len() as u64);
        let counts = self.answers.iter().any(|(number, answer)| answer.packet.sequence != *number);
        let reached = self.answers.values().map(|answer| u64::from(answer.packet.sequence) + 1).max();
        let reached = match reached {
            _ if came == sent => sent,
            Some(reached) if counts => reached.clamp(came, sent),
            _ => {
                let reason = "packets were lost, and the reflector does not count, so that their direction is \
                              unknown";
                return record.add_unknown_both("packets", reason);
            }
        };
        let metrics = |sent: u64, received: u64| {
            let (sent, lost) = (PacketCount::new(sent), PacketCount::new(sent - received));
            let interval_of = Ratio::new(0.95).and_then(|confidence| clopper_pearson(lost, sent, confidence));
            PacketMetrics {
                sent: sent.get(),
                received: Some(received),
                loss: Ratio::of(lost.as_f64(), sent.as_f64()).map(Ratio::get),
                loss_low: interval_of.as_ref().map(|interval| interval.low.get()),
                loss_high: interval_of.as_ref().map(|interval| interval.high.get()),
                packet_bytes: (SIZE + headers).get(),
                interval_ns: nanoseconds(interval),
                ..PacketMetrics::default()
            }
        };
        record.document.up.packets = Some(metrics(sent, reached));
        record.document.down.packets =
            Some(PacketMetrics { duplicates: Some(self.duplicates), ..metrics(reached, came) });
    }
}
