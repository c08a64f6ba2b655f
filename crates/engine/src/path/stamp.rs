//! A STAMP reflector (RFC 8762) that is no linerate, or one whose control port cannot be reached.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::ippm::{ClockRelation, RoundTrip};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::{Clock, PacketMetrics};
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::clopper_pearson;
use linerate_sys::clock;
use linerate_sys::data::probe_socket::{Outgoing, ProbeOptions, ProbeSocket};
use linerate_sys::net::{self, UdpOptions};
use linerate_sys::time_stamp::TimeStamp;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, Ratio};
use linerate_wire::stamp::{
    ErrorEstimate, ReflectorPacket, SenderPacket, SessionIdentifier, Timestamp, TimestampFormat,
};

use super::PathEvent;
use super::convert::{self, on_line};
use super::idle::latency_series;
use super::record::{Record, source};
use crate::course::Halt;

/// UDP payload of the probes.
const SIZE: ByteCount = ByteCount::new(64);

/// Probes to find out whether a reflector is there, and how long it has to answer each.
const TRIES: u32 = 3;
const PATIENCE: Duration = Duration::from_millis(700);

/// A measurement takes no longer than this.
const LONGEST: Duration = Duration::from_secs(6);

/// The distance of probes at least: somebody else's reflector is not to be flooded.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// One answer.
#[derive(Clone, Copy)]
struct Answer {
    sent: TimeStamp,
    received: TimeStamp,
    packet: ReflectorPacket,
}

/// Whether a reflector answers there.
pub(super) fn find(record: &mut Record<'_>, peer: SocketAddr) -> Result<bool, Halt> {
    let Some(mut session) = Session::open(record, peer) else { return Ok(false) };
    for _ in 0..TRIES {
        session.send();
        let end = clock::monotonic_now() + PATIENCE;
        while clock::monotonic_now() < end {
            record.check()?;
            match session.receive(end.since(clock::monotonic_now()).min(Duration::from_millis(200))) {
                Heard::Answer => return Ok(true),
                Heard::Refusal => return Ok(false),
                Heard::Nothing => {}
            }
        }
    }
    Ok(false)
}

/// Round trips, and the losses of each direction where the reflector keeps count.
pub(super) fn measure(record: &mut Record<'_>, peer: SocketAddr) -> Result<(), Halt> {
    let Some(mut session) = Session::open(record, peer) else { return Ok(()) };
    let interval = record.options.interval.max(LEAST_INTERVAL);
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

fn round_trip(answer: &Answer) -> Duration {
    let format = answer.packet.error_estimate.format();
    let whole = answer.received.monotonic.since(answer.sent.monotonic);
    let inside = |packet: &ReflectorPacket| {
        let received = packet.received_at.to_wall(format)?.since_unix_epoch();
        packet.timestamp.to_wall(format)?.since_unix_epoch().checked_sub(received)
    };
    // A turn that took longer than the round trip is told by a clock that was set meanwhile.
    inside(&answer.packet).and_then(|turn| whole.checked_sub(turn)).unwrap_or(whole)
}

struct Session {
    socket: ProbeSocket,
    sent: Vec<TimeStamp>,
    answers: BTreeMap<u32, Answer>,
    duplicates: u64,
}

enum Heard {
    Answer,
    Refusal,
    Nothing,
}

impl Session {
    fn open(record: &mut Record<'_>, peer: SocketAddr) -> Option<Self> {
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
            timestamp: Timestamp::from_wall(now.wall, TimestampFormat::Ntp),
            error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
            session: SessionIdentifier::new(1),
        };
        // What the kernel says against it is about an earlier one, or it counts as lost.
        let _ = self.socket.send(&packet.encode(SIZE), &Outgoing::default());
        self.sent.push(now);
    }

    fn receive(&mut self, timeout: Duration) -> Heard {
        let mut buffer = [0; 2048];
        let arrival = match self.socket.receive(&mut buffer, Some(timeout)) {
            Ok(Some(arrival)) => arrival,
            Ok(None) => return Heard::Nothing,
            Err(_) => return Heard::Refusal,
        };
        let Ok(packet) = ReflectorPacket::decode(&buffer[..arrival.filled]) else { return Heard::Nothing };
        let number = packet.sender_sequence;
        let Some(sent) = self.sent.get(number as usize).copied() else { return Heard::Nothing };
        if self.answers.insert(number, Answer { sent, received: arrival.arrived, packet }).is_some() {
            self.duplicates += 1;
        }
        Heard::Answer
    }

    fn tell(&self, record: &mut Record<'_>, interval: Duration, headers: ByteCount) {
        let readings: Vec<(MonotonicTime, Duration)> =
            self.answers.values().map(|answer| (answer.sent.monotonic, round_trip(answer))).collect();
        let started = record.started;
        latency_series(record, "STAMP", &readings, started);
        let times: Vec<Duration> = readings.iter().map(|(_, time)| *time).collect();
        record.document.rtt.udp = convert::distribution(&times);
        self.clocks(record);
        self.losses(record, interval, headers);
    }

    fn clocks(&self, record: &mut Record<'_>) {
        let round_trips: Vec<RoundTrip> = self
            .answers
            .values()
            .filter_map(|answer| {
                let format = answer.packet.error_estimate.format();
                Some(RoundTrip {
                    sent: on_line(answer.sent.wall),
                    far_received: on_line(answer.packet.received_at.to_wall(format)?),
                    far_sent: on_line(answer.packet.timestamp.to_wall(format)?),
                    received: on_line(answer.received.wall),
                })
            })
            .collect();
        let stamps = self.answers.values().next().map(|answer| source(answer.received.source));
        if let (Some(relation), Some(time_stamps)) = (ClockRelation::of(&round_trips), stamps) {
            record.document.clock = Some(Clock {
                offset_ns: relation.offset.as_nanos(),
                error_ns: nanoseconds(relation.error_bound),
                drift_ppm: Some(relation.drift.parts_per_million()),
                time_stamps,
            });
        }
    }

    /// A reflector that keeps count numbers its own packets: so it is known how many reached it (RFC 8762 §4.3).
    fn losses(&self, record: &mut Record<'_>, interval: Duration, headers: ByteCount) {
        let (sent, came) = (self.sent.len() as u64, self.answers.len() as u64);
        let counts = self.answers.iter().any(|(number, answer)| answer.packet.sequence != *number);
        let reached = self.answers.values().map(|answer| u64::from(answer.packet.sequence) + 1).max();
        let reached = match reached {
            _ if came == sent => sent,
            Some(reached) if counts => reached.clamp(came, sent),
            _ => {
                let reason = "packets were lost, and the reflector does not count, so that it is not known in which \
                              direction";
                return record.unknown_both_ways("packets", reason);
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
