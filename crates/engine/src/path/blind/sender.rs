//! Sender of a stream, which needs nothing from the far end and uses what a reflector returns.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_analysis::ippm::{ClockRelation, DirectionCount, PacketStream, ReflectedStream, RoundTrip};
use linerate_analysis::statistics::clopper_pearson;
use linerate_model::direction::Direction;
use linerate_model::path::{PacketMetrics, PathClock, PeerKind, TimeStampSource};
use linerate_sys::clock;
use linerate_sys::data::train::DatagramMarking;
use linerate_sys::net::{self, UdpOptions};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio, TypeOfService, WallTime};
use linerate_wire::probe::{PacketSpacing, SendLimit, SendOrder, SentReport, StreamNumber};
use linerate_wire::stamp::{SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat};

use super::answers::ReturnLog;
use super::{rate_between, span};
use crate::path::convert;
use crate::path::idle::{choose_best, latency_series, one_way_series, stream_metrics};
use crate::path::record::PathRecord;
use crate::path::{PathEvent, PathPhase};
use crate::phases::AbortReason;
use crate::probe::ProbeError;
use crate::probe::SendingThread;
use crate::probe::datagrams::{CLIENT_BATCH, DatagramSocket};
use crate::probe::stream::StreamAllowance;

/// Session identifier of the packets.
const STREAM: StreamNumber = StreamNumber::new(1000);

/// Polling interval for progress displays and interrupts.
const LOOK: Duration = Duration::from_millis(200);

/// Most samples of a series: a document is no place for a million.
const MAX_SAMPLES: usize = 10_000;

/// Packets per second from which the limits of reflectors matter.
const MANY_PER_SECOND: f64 = 1000.0;

/// Time stamp of a packet that is not part of the stream, since 1970: none is as old.
pub(super) const LEAD_IN_TIME: Duration = Duration::from_secs(1);

/// A stream to send.
#[derive(Clone, Copy)]
pub(in crate::path) struct StreamPlan {
    /// UDP payload of each packet.
    pub(in crate::path) size: ByteCount,
    /// Rate of the payload.
    pub(in crate::path) rate: BitRate,
    pub(in crate::path) count: PacketCount,
}

impl StreamPlan {
    fn interval(&self) -> Duration {
        self.rate.time_to_send(self.size).unwrap_or_default()
    }

    fn duration(&self) -> Duration {
        self.interval().mul_f64(self.count.as_f64())
    }
}

/// A sent stream, and what returned.
pub(in crate::path) struct SentStream {
    sent: SentReport,
    headers: ByteCount,
    interval: Duration,
    returned: ReflectedStream,
    stamps: Option<TimeStampSource>,
    /// True when the far host reported that nothing listens there.
    refused: bool,
}

/// Sends a stream as the whole measurement.
pub(super) fn measure_alone(
    record: &mut PathRecord<'_>,
    peer: SocketAddr,
    rate: BitRate,
    packet: ByteCount,
    count: PacketCount,
) -> Result<(), AbortReason> {
    let size = packet - convert::headers(peer);
    let plan = StreamPlan { size, rate: rate * (size.as_f64() / packet.as_f64()), count };
    record.phase(PathPhase::Stream, plan.duration());
    let (stream, ended) = send(record, peer, plan)?;
    if !stream.sent.refused_too_large.is_zero() {
        let reason = format!("packets of {} B exceed the MTU of this host's interface (--size)", packet.get());
        return Err(AbortReason::Failed(ProbeError::System(reason)));
    }
    stream.describe(record);
    stream.add_rates(record);
    stream.add_notes(record, peer);
    choose_best(record);
    if stream.refused {
        let reason = format!("the far host reports that nothing listens on UDP port {} (--stamp-port)", peer.port());
        return Err(AbortReason::Failed(ProbeError::System(reason)));
    }
    ended
}

/// Sends a stream and waits for what returns. An interrupt ends it early: the second value.
pub(in crate::path) fn send(
    record: &mut PathRecord<'_>,
    peer: SocketAddr,
    plan: StreamPlan,
) -> Result<(SentStream, Result<(), AbortReason>), AbortReason> {
    let target = &record.options.target;
    let options = UdpOptions { address: target.bind, device: target.device.clone(), ..UdpOptions::default() };
    let socket = net::connect_udp(&options, peer).map_err(ProbeError::from)?;
    let log = Arc::new(ReturnLog::new(clock::realtime_now(), plan.count));
    let datagrams = DatagramSocket::new(socket, Some(log.clone()))?;
    let receiving = datagrams.start(CLIENT_BATCH)?;
    lead_in(&datagrams, plan.size);
    let order = SendOrder {
        stream: STREAM,
        size: plan.size,
        rate: plan.rate,
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: Some(plan.count), duration: None },
        type_of_service: TypeOfService::default(),
        dont_fragment: true,
    };
    let sending = SendingThread::start(&datagrams, order, &StreamAllowance::unlimited(), None)?;
    let mut ended = follow(record, &sending, &log, convert::headers(peer));
    let sent = sending.stop();
    if ended.is_ok() {
        ended = wait_for_returns(record, &log, sent.packets);
    }
    let refused = datagrams.is_peer_gone();
    drop(receiving);
    let (packets, stamps) = log.take();
    let returned = ReflectedStream::new(sent.packets, packets);
    let headers = convert::headers(peer);
    let whole = |packets: PacketCount| packets * (plan.size + headers);
    record.count_traffic(Direction::Up, whole(sent.packets));
    record.count_traffic(Direction::Down, whole(returned.returned()));
    Ok((SentStream { sent, headers, interval: plan.interval(), returned, stamps, refused }, ended))
}

/// Sends a packet before the stream, with the number of the stream's first one: a reflector that counts is then one
/// ahead of the stream, and so known to count although no packet was lost on the way to it.
///
/// Its time stamp is that of no stream, so that no answer to it counts.
fn lead_in(datagrams: &DatagramSocket, size: ByteCount) {
    let packet = SenderPacket { session: SessionIdentifier::new(STREAM.get()), ..SenderPacket::default() };
    let mut datagram = packet.encode(size);
    let time = StampTimestamp::from_wall(WallTime::from_unix(LEAD_IN_TIME), TimestampFormat::Ntp);
    SenderPacket::renumber(&mut datagram, 0, time);
    let mark = DatagramMarking::of(datagrams.socket(), Some(TypeOfService::default()));
    // A refused one leaves the reflector's kind to be found by a loss.
    let _ = datagrams.send(&datagram, mark);
}

/// Reports progress until the stream is sent.
fn follow(
    record: &mut PathRecord<'_>,
    sending: &SendingThread,
    log: &ReturnLog,
    headers: ByteCount,
) -> Result<(), AbortReason> {
    let (mut at, mut before) = (clock::monotonic_now(), ByteCount::ZERO);
    while !sending.is_over() {
        if record.wait_phase(LOOK)? {
            return Ok(());
        }
        let progress = sending.progress();
        let (now, bytes) = (clock::monotonic_now(), progress.bytes + progress.packets * headers);
        let passed = now.since(at).as_secs_f64().max(1e-6);
        let rate = BitRate::from_bits_per_second((bytes - before).as_f64() * 8.0 / passed);
        (at, before) = (now, bytes);
        record.tell(&PathEvent::Rate(Direction::Up, rate));
        if let (_, Some(last)) = log.latest() {
            record.tell(&PathEvent::RoundTrip(last.received.since(last.sent)));
        }
    }
    Ok(())
}

/// Waits until all packets have returned, or none for a while.
fn wait_for_returns(record: &PathRecord<'_>, log: &ReturnLog, sent: PacketCount) -> Result<(), AbortReason> {
    const QUIET: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(3);
    let (mut known, _) = log.latest();
    let end = clock::monotonic_now() + LONGEST;
    let mut quiet_until = clock::monotonic_now() + QUIET;
    while known < sent.to_usize() && clock::monotonic_now() < end.min(quiet_until) {
        record.wait(Duration::from_millis(50))?;
        let (now_known, _) = log.latest();
        if now_known != known {
            (known, quiet_until) = (now_known, clock::monotonic_now() + QUIET);
        }
    }
    Ok(())
}

impl SentStream {
    fn packet(&self) -> ByteCount {
        let payload = ByteCount::new(self.sent.bytes.get() / self.sent.packets.get().max(1));
        payload + self.headers
    }

    /// Writes round trips, clocks, losses and delays.
    pub(in crate::path) fn describe(&self, record: &mut PathRecord<'_>) {
        let trips = self.returned.round_trips();
        if trips.is_empty() {
            return;
        }
        record.document.peer = PeerKind::Stamp;
        let begin =
            convert::to_monotonic(WallTime::from_unix(Duration::from_nanos(record.document.started_at_unix_ns)));
        let times: Vec<(MonotonicTime, Duration)> = trips
            .iter()
            .step_by(trips.len().div_ceil(MAX_SAMPLES))
            .map(|trip| (record.started + trip.sent.since(begin), trip.time()))
            .collect();
        latency_series(record, "STAMP", &times, record.started);
        record.document.rtt.udp = convert::distribution(&trips.iter().map(RoundTrip::time).collect::<Vec<_>>());
        let clocks = ClockRelation::of(&trips);
        if let (Some(relation), Some(time_stamps)) = (&clocks, self.stamps) {
            record.document.clock = Some(PathClock {
                offset_ns: relation.offset.as_nanos(),
                error_ns: nanoseconds(relation.error_bound),
                drift_ppm: Some(relation.drift.parts_per_million()),
                time_stamps,
            });
        }
        self.losses(record, clocks.as_ref());
    }

    fn losses(&self, record: &mut PathRecord<'_>, clocks: Option<&ClockRelation>) {
        let (Some(count), Some(back)) = (self.returned.to_far(), self.returned.to_near()) else {
            let reason = "packets were lost, and the reflector does not count, so that their direction is unknown";
            return record.add_unknown_both("packets", reason);
        };
        let there = self.returned.arrivals_at_far();
        let (packet_bytes, interval_ns) = (self.packet().get(), nanoseconds(self.interval));
        record.unknown("up.packets.longest_loss_packets", "a packet that did not return has no direction by itself");
        let delays = stream_metrics(&there, None, Direction::Up, clocks);
        record.document.up.packets = Some(PacketMetrics { packet_bytes, interval_ns, ..counted(count, &delays) });
        let mut down = stream_metrics(&back, None, Direction::Down, clocks);
        if !self.returned.is_counted() {
            // Copies may have been made in either direction.
            (down.duplicates, down.duplication) = (down.duplicates.filter(|copies| *copies == 0), None);
        }
        record.document.down.packets = Some(PacketMetrics { packet_bytes, interval_ns, ..down });
        if record.options.blind.is_none() {
            return;
        }
        for (stream, direction) in [(&there, Direction::Up), (&back, Direction::Down)] {
            let sparse = stream.arrivals.iter().step_by(stream.arrivals.len().div_ceil(MAX_SAMPLES).max(1));
            let sparse = PacketStream { sent: stream.sent, arrivals: sparse.copied().collect() };
            one_way_series(record, &sparse, direction, clocks);
        }
    }

    /// Adds the rates at which the stream was sent and arrived.
    fn add_rates(&self, record: &mut PathRecord<'_>) {
        let packet = self.packet();
        let sent = self
            .sent
            .first
            .zip(self.sent.newest)
            .map(|(first, last)| (convert::to_monotonic(first), convert::to_monotonic(last)));
        let sent_rate = rate_between(self.sent.packets, packet, sent);
        let up = record.document.up.packets.get_or_insert_with(|| PacketMetrics {
            sent: self.sent.packets.get(),
            packet_bytes: packet.get(),
            interval_ns: nanoseconds(self.interval),
            ..PacketMetrics::default()
        });
        up.sent_bits_per_second = sent_rate;
        let trips = self.returned.round_trips();
        let reached = up.received.map(PacketCount::new).unwrap_or_default();
        up.received_bits_per_second = rate_between(reached, packet, span(trips.iter().map(|trip| trip.far_received)));
        let reached_rate = up.received_bits_per_second;
        if let Some(down) = &mut record.document.down.packets {
            down.sent_bits_per_second = reached_rate;
            let times = span(trips.iter().map(|trip| trip.received));
            down.received_bits_per_second = rate_between(self.returned.returned(), packet, times);
        }
    }

    fn add_notes(&self, record: &mut PathRecord<'_>, peer: SocketAddr) {
        if self.returned.returned().is_zero() && !self.refused {
            let (port, sent) = (peer.port(), self.sent.packets.get());
            record.note(format!(
                "Nothing returned. Without a reflector, or where replies are lost, the far host measures: there \
                 `linerate path THIS-HOST --receive --stamp-port {port} --count {sent}`, started before this stream."
            ));
        }
        let undecided = self.returned.undecided().get();
        if undecided > 0 && !self.returned.returned().is_zero() && record.document.up.packets.is_some() {
            record.note(format!(
                "Lost in an unknown direction, before the first or after the last returned packet, and left out of the \
                 losses: {undecided} of {} packets.",
                self.sent.packets.get()
            ));
        }
        let per_second = 1.0 / self.interval.as_secs_f64().max(1e-9);
        let lost = record.document.up.packets.as_ref().and_then(|packets| packets.loss).is_some_and(|loss| loss > 0.0);
        if lost && per_second > MANY_PER_SECOND {
            record.note(
                "A reflector may return fewer packets a second than this stream has (linerate's: `serve \
                 --stamp-rate`); those above its limit count as lost up. Larger packets (--size) need fewer.",
            );
        }
    }
}

/// Figures of the direction to a reflector: counts by its numbers, delays and order by what returned.
fn counted(count: DirectionCount, delays: &PacketMetrics) -> PacketMetrics {
    let lost = count.sent - count.received;
    let interval = Ratio::new(0.95).and_then(|confidence| clopper_pearson(lost, count.sent, confidence));
    let copies = count.duplicates.get();
    PacketMetrics {
        sent: count.sent.get(),
        received: Some(count.received.get()),
        loss: lost.share_of(count.sent).map(Ratio::get),
        loss_low: interval.as_ref().map(|interval| interval.low.get()),
        loss_high: interval.as_ref().map(|interval| interval.high.get()),
        // A packet that did not return may have been lost in either direction: runs are unknown, except of none.
        loss_episodes: lost.is_zero().then_some(0),
        longest_loss_packets: lost.is_zero().then_some(0),
        duplicates: Some(copies),
        duplication: Ratio::of(count.duplicates.as_f64(), (count.received + count.duplicates).as_f64()).map(Ratio::get),
        ..delays.clone()
    }
}
