//! The path without load: round trips by every method, and a recorded stream in each direction.
//!
//! Losses are those of the paced one-way streams alone, which account for every packet in its own direction. A second,
//! short stream in each direction has closely spaced packets, as packets five milliseconds apart are rarely reordered;
//! its losses are not counted, as it may fill a queue.

mod metrics;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::ippm::{ClockRelation, PacketStream, RoundTrip};
use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::path::{PacketMetrics, PathClock, RttMethod};
use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, TypeOfService};

pub(super) use self::metrics::{one_way_series, stream_metrics};
use super::convert::{self, to_monotonic};
use super::linerate::{BOTH_DIRECTIONS, PathKnowledge, index, name};
use super::record::{PathRecord, source};
use super::{PathEvent, echo};
use crate::pace::whole;
use crate::phases::AbortReason;
use crate::probe::messages::{PacketSpacing, RecordDetail, SendLimit, SendOrder};
use crate::probe::{ApplicationPing, LoadOptions, ProbeError, ProbeOrder, ProbeResult};

/// Longest duration of the paced streams, even on slow links.
pub(super) const LONGEST: Duration = Duration::from_secs(6);

/// UDP payload of all probes: a STAMP packet with some padding, as large as a ping with its usual 64 bytes.
const SIZE: ByteCount = ByteCount::new(64);

/// Largest share of a link's rate for each kind of probes.
const SHARE: f64 = 0.03;

/// Fewest packets of a paced stream.
const FEWEST: u64 = 50;

/// Packets of the dense stream.
const DENSE_PACKETS: u64 = 300;

/// Their interval on a fast link.
const DENSE_GAP: Duration = Duration::from_micros(150);

/// Largest share of the link's rate for the dense stream, so that it builds no queue of its own.
const MAX_DENSE_SHARE: f64 = 0.5;

/// Longest duration of the dense stream.
const MAX_DENSE_DURATION: Duration = Duration::from_millis(1500);

/// Polling interval for progress displays.
const LOOK: Duration = Duration::from_millis(200);

/// Interval of round-trip probes of one kind: fifty a second on a fast link.
const ROUND_TRIP_INTERVAL: Duration = Duration::from_millis(20);

/// Interval of the probes of the other kinds: where they coincide, one waits for the other.
const OTHER_PROBE_INTERVAL: Duration = Duration::from_millis(90);

/// Duration of the round-trip measurement,
const ROUND_TRIP_TIME: Duration = Duration::from_millis(2500);
/// or that of this number of probes, if longer.
const MIN_ROUND_TRIPS: u32 = 30;

/// Schedule of the streams.
#[derive(Clone, Copy)]
struct StreamSchedule {
    interval: Duration,
    count: PacketCount,
    round_trip_interval: Duration,
    close_gap: Duration,
    close_count: PacketCount,
}

impl StreamSchedule {
    fn new(record: &PathRecord<'_>, way: &PathKnowledge<'_>) -> Self {
        let slowest = way.train_rate.into_iter().flatten().min();
        // A slow link also carries the link layer's own headers.
        let packet = SIZE + way.headers + ByteCount::new(18);
        let at_share = |share: f64| slowest.and_then(|rate| (rate * share).time_to_send(packet)).unwrap_or_default();
        let interval = record.options.interval.max(at_share(SHARE)).max(Duration::from_micros(100));
        let fitting = whole(LONGEST.as_secs_f64() / interval.as_secs_f64()).max(FEWEST);
        let close_gap = DENSE_GAP.max(at_share(MAX_DENSE_SHARE));
        let close = whole(MAX_DENSE_DURATION.as_secs_f64() / close_gap.as_secs_f64()).clamp(10, DENSE_PACKETS);
        Self {
            interval,
            // A requested count is kept, however long it takes.
            count: if interval > record.options.interval {
                PacketCount::new(fitting.min(record.options.count.get()))
            } else {
                record.options.count
            },
            round_trip_interval: ROUND_TRIP_INTERVAL.max(at_share(SHARE)),
            close_gap,
            close_count: PacketCount::new(close),
        }
    }

    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.interval.as_secs_f64() * self.count.as_f64())
    }
}

/// Concurrent measurements.
struct IdleMeasurement {
    round_trips: Vec<ProbeResult>,
    paced: [PacketStream; 2],
    close: [Option<PacketStream>; 2],
    /// Packets dropped by the receiving hosts themselves.
    dropped: [Option<PacketCount>; 2],
    icmp: Result<Vec<Duration>, String>,
    tcp: Result<Vec<(MonotonicTime, Duration)>, ProbeError>,
}

pub(super) fn measure(record: &mut PathRecord<'_>, way: &mut PathKnowledge<'_>) -> Result<(), AbortReason> {
    let plan = StreamSchedule::new(record, way);
    let done = AtomicBool::new(false);
    let peer = way.session.peer();
    let (bind, device) = (record.options.target.bind, record.options.target.device.clone());
    let begun = clock::monotonic_now();
    let measured = std::thread::scope(|scope| {
        let pings = plan.round_trip_interval.max(OTHER_PROBE_INTERVAL);
        let icmp = scope.spawn({
            let done = &done;
            move || echo::until(done, peer, bind, device, pings)
        });
        let measured = streams(record, way, &plan, &done, begun);
        done.store(true, Ordering::Release);
        let icmp = icmp.join().unwrap_or_else(|_| Err("the thread that sent ICMP echoes ended early".to_owned()));
        measured.map(|measured| IdleMeasurement { icmp, ..measured })
    })?;
    let least = measured.round_trips.iter().filter_map(|probe| Some(probe.answer.as_ref()?.round_trip)).min();
    way.round_trip = least.unwrap_or(way.round_trip);
    way.routers = routers(&measured.round_trips);
    round_trips(record, &measured);
    let clocks = clocks(record, &measured);
    for direction in BOTH_DIRECTIONS {
        let packets = metrics(way, &plan, &measured, direction, clocks.as_ref());
        one_way_series(record, &measured.paced[index(direction)], direction, clocks.as_ref());
        record.direction(direction).packets = Some(packets);
        let dropped = measured.dropped[index(direction)].filter(|count| !count.is_zero());
        if let Some(count) = dropped {
            record.note(format!(
                "The receiving host itself dropped {count} probes of the direction {}: its losses are not the path's.",
                name(direction)
            ));
        }
    }
    Ok(())
}

/// Measures the round trips first, then the streams: where delays vary and packets keep their order, each packet may
/// delay those behind it, so that closely spaced ones would measure each other.
fn streams(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    plan: &StreamSchedule,
    done: &AtomicBool,
    begun: MonotonicTime,
) -> Result<IdleMeasurement, AbortReason> {
    let (round_trips, tcp) = measure_round_trips(record, way, plan, begun)?;
    done.store(true, Ordering::Release);
    let paced = StreamPair::start(way, plan.interval, plan.count, record.options.poisson)?;
    let is_early = record.wait_phase(plan.duration() + way.patience())?;
    let sent = paced.stop(way)?;
    if is_early {
        // The last packets arrive before the counting.
        record.wait(way.patience())?;
    }
    let (paced, dropped) = sent.collect(way)?;
    let close = StreamPair::start(way, plan.close_gap, plan.close_count, false)?;
    let time = Duration::from_secs_f64(plan.close_gap.as_secs_f64() * plan.close_count.as_f64());
    record.wait(time + way.patience())?;
    let ([up, down], _) = close.stop(way)?.collect(way)?;
    let packets = round_trips.len() as u64 + plan.count.get() + plan.close_count.get();
    for direction in BOTH_DIRECTIONS {
        record.count_traffic(direction, ByteCount::new((SIZE + way.headers).get() * packets));
    }
    Ok(IdleMeasurement { round_trips, paced, close: [Some(up), Some(down)], dropped, icmp: Ok(Vec::new()), tcp })
}

type TcpTimes = Result<Vec<(MonotonicTime, Duration)>, ProbeError>;

/// Round trips of UDP probes, and of small messages over an otherwise idle TCP connection.
///
/// ICMP echoes have been sent since `begun`.
fn measure_round_trips(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    plan: &StreamSchedule,
    begun: MonotonicTime,
) -> Result<(Vec<ProbeResult>, TcpTimes), AbortReason> {
    let session = way.session;
    let quiet = session.open_load(&LoadOptions {
        direction: Direction::Up,
        congestion_control: None,
        type_of_service: TypeOfService::default(),
        sampling: Duration::from_secs(1),
        ping_interval: Some(plan.round_trip_interval.max(OTHER_PROBE_INTERVAL)),
    });
    record.wait(apart(clock::monotonic_now().since(begun), plan.round_trip_interval))?;
    let prober = session.probe(ProbeOrder {
        interval: plan.round_trip_interval,
        size: SIZE,
        spacing: PacketSpacing::Periodic,
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
        count: None,
    })?;
    let until = clock::monotonic_now() + ROUND_TRIP_TIME.max(plan.round_trip_interval * MIN_ROUND_TRIPS);
    let mut shown = 0;
    while clock::monotonic_now() < until {
        if record.wait_phase(LOOK.min(until.since(clock::monotonic_now())))? {
            break;
        }
        let new = prober.since(shown);
        let latest = new.iter().filter_map(|probe| Some(probe.answer.as_ref()?.round_trip)).next_back();
        shown += new.len().saturating_sub(64);
        if let Some(round_trip) = latest {
            record.tell(&PathEvent::RoundTrip(round_trip));
        }
    }
    let round_trips = prober.stop(way.patience());
    let tcp = quiet.map(|connection| {
        let pings = connection.pings(0);
        let _ = connection.stop();
        let answered = |ping: ApplicationPing| Some((ping.sent, ping.round_trip?));
        pings.into_iter().filter_map(answered).collect()
    });
    Ok((round_trips, tcp))
}

/// Wait that keeps packets sent every `interval` apart from those that began now and those that began `elapsed` ago,
/// with the same interval: on a slow link, one would wait behind the other.
fn apart(elapsed: Duration, interval: Duration) -> Duration {
    let interval_nanos = interval.as_nanos().max(1);
    let since_last = Duration::from_nanos(u64::try_from(elapsed.as_nanos() % interval_nanos).unwrap_or(0));
    let until_next = interval.saturating_sub(since_last);
    if until_next >= since_last { until_next / 2 } else { until_next + since_last / 2 }
}

/// A stream in each direction.
struct StreamPair {
    up: crate::probe::messages::StreamNumber,
    down: crate::probe::messages::StreamNumber,
    sending: crate::probe::SendingThread,
    reception: crate::probe::StreamReception,
}

impl StreamPair {
    fn start(way: &PathKnowledge<'_>, gap: Duration, count: PacketCount, poisson: bool) -> Result<Self, ProbeError> {
        let session = way.session;
        let (up, down) = (session.new_stream(), session.new_stream());
        session.far_receive(up, RecordDetail::Arrivals)?;
        let reception = session.receive(down, RecordDetail::Arrivals)?;
        let order = |stream, seed| SendOrder {
            stream,
            size: SIZE,
            rate: BitRate::from_bits_per_second(SIZE.as_f64() * 8.0 / gap.as_secs_f64()),
            spacing: if poisson { PacketSpacing::Poisson { seed } } else { PacketSpacing::Periodic },
            limit: SendLimit { count: Some(count), duration: None },
            type_of_service: TypeOfService::default(),
            dont_fragment: false,
        };
        session.far_send(order(down, 3))?;
        let sending = session.send(order(up, 2))?;
        Ok(Self { up, down, sending, reception })
    }

    /// Ends the sending in both directions.
    fn stop(self, way: &PathKnowledge<'_>) -> Result<SentPair, ProbeError> {
        let sent = [self.sending.stop().packets, way.session.far_stop_sending(self.down)?.packets];
        Ok(SentPair { up: self.up, sent, reception: self.reception })
    }
}

/// Streams of both directions that are no longer sent: the packets of each.
struct SentPair {
    up: crate::probe::messages::StreamNumber,
    sent: [PacketCount; 2],
    reception: crate::probe::StreamReception,
}

impl SentPair {
    /// Arrivals of both streams, and the drops of the receiving hosts.
    fn collect(self, way: &PathKnowledge<'_>) -> Result<([PacketStream; 2], [Option<PacketCount>; 2]), ProbeError> {
        let far = way.session.far_collect(self.up)?;
        let (_, near) = self.reception.finish();
        let [sent_up, sent_down] = self.sent;
        let up = convert::stream(sent_up, &far.packets);
        let down = convert::stream(sent_down, &near.packets);
        Ok(([up, down], [far.dropped_in_host, near.dropped_in_host]))
    }
}

fn round_trips(record: &mut PathRecord<'_>, measured: &IdleMeasurement) {
    let started = record.started;
    let mut udp = Vec::new();
    for probe in &measured.round_trips {
        if let Some(answer) = &probe.answer {
            udp.push((probe.sent.monotonic, answer.round_trip));
        }
    }
    latency_series(record, "UDP", &udp, started);
    record.document.rtt.udp = convert::distribution(&times(&udp));
    match &measured.tcp {
        Ok(tcp) => {
            latency_series(record, "TCP", tcp, started);
            record.document.rtt.tcp = convert::distribution(&times(tcp));
        }
        Err(error) => record.unknown("rtt.tcp", error.to_string()),
    }
    match &measured.icmp {
        Ok(icmp) => record.document.rtt.icmp = convert::distribution(icmp),
        Err(reason) => record.unknown("rtt.icmp", reason.clone()),
    }
    if record.document.rtt.icmp.is_none() {
        record.unknown("rtt.icmp", "no ICMP echo was answered");
    }
    if record.document.rtt.udp.is_none() {
        record.unknown("rtt.udp", "no probe was answered");
    }
    choose_best(record);
}

/// Chooses the round trip to use: an in-band one, else any available.
pub(super) fn choose_best(record: &mut PathRecord<'_>) {
    let rtt = &mut record.document.rtt;
    let kinds = [
        (RttMethod::Udp, &rtt.udp),
        (RttMethod::Tcp, &rtt.tcp),
        (RttMethod::Icmp, &rtt.icmp),
        (RttMethod::Handshake, &rtt.handshake),
    ];
    let best = kinds.into_iter().find_map(|(method, times)| Some((method, (*times)?)));
    if let Some((method, times)) = best {
        (rtt.best, rtt.method) = (Some(times), Some(method));
    }
}

fn times(readings: &[(MonotonicTime, Duration)]) -> Vec<Duration> {
    readings.iter().map(|(_, time)| *time).collect()
}

pub(super) fn latency_series(
    record: &mut PathRecord<'_>,
    kind: &str,
    readings: &[(MonotonicTime, Duration)],
    started: MonotonicTime,
) {
    if readings.is_empty() {
        return;
    }
    record.series.push(SampleSeries {
        panel: ChartPanel::Latency,
        name: kind.to_owned(),
        direction: None,
        stream: None,
        unit: FigureUnit::Nanoseconds,
        times_ns: readings.iter().map(|(sent, _)| nanoseconds(sent.since(started))).collect(),
        values: readings.iter().map(|(_, time)| Some(time.as_secs_f64() * 1e9)).collect(),
    });
}

/// Relation of the two clocks, by the answered probes.
fn clocks(record: &mut PathRecord<'_>, measured: &IdleMeasurement) -> Option<ClockRelation> {
    let round_trips: Vec<RoundTrip> = measured
        .round_trips
        .iter()
        .filter_map(|probe| {
            let answer = probe.answer.as_ref()?;
            Some(RoundTrip {
                sent: to_monotonic(probe.sent.wall),
                far_received: to_monotonic(answer.far_received?),
                far_sent: to_monotonic(answer.far_sent?),
                received: to_monotonic(answer.received.wall),
            })
        })
        .collect();
    let relation = ClockRelation::of(&round_trips)?;
    let stamp = measured.round_trips.iter().find_map(|probe| Some(probe.answer.as_ref()?.received.source))?;
    record.document.clock = Some(PathClock {
        offset_ns: relation.offset.as_nanos(),
        error_ns: nanoseconds(relation.error_bound),
        drift_ppm: Some(relation.drift.parts_per_million()),
        time_stamps: source(stamp),
    });
    Some(relation)
}

/// Number of routers on the way up, by the received hop limit of the usual 64.
fn routers(probes: &[ProbeResult]) -> Option<u8> {
    let left = probes.iter().find_map(|probe| probe.answer.as_ref()?.up_time_to_live)?;
    64_u8.checked_sub(left)
}

fn metrics(
    way: &PathKnowledge<'_>,
    plan: &StreamSchedule,
    measured: &IdleMeasurement,
    direction: Direction,
    clocks: Option<&ClockRelation>,
) -> PacketMetrics {
    let paced = &measured.paced[index(direction)];
    PacketMetrics {
        packet_bytes: (SIZE + way.headers).get(),
        interval_ns: nanoseconds(plan.interval),
        ..stream_metrics(paced, measured.close[index(direction)].as_ref(), direction, clocks)
    }
}

/// Round trips where no datagram gets through.
pub(super) fn without_datagrams(record: &mut PathRecord<'_>, way: &mut PathKnowledge<'_>) -> Result<(), AbortReason> {
    const TIME: Duration = Duration::from_secs(2);
    const INTERVAL: Duration = Duration::from_millis(50);
    let quiet = way.session.open_load(&LoadOptions {
        direction: Direction::Up,
        congestion_control: None,
        type_of_service: TypeOfService::default(),
        sampling: Duration::from_secs(1),
        ping_interval: Some(INTERVAL),
    });
    let icmp = echo::measure(record, way.session.peer(), INTERVAL, TIME)?;
    match icmp {
        Ok(icmp) => record.document.rtt.icmp = convert::distribution(&icmp),
        Err(reason) => record.unknown("rtt.icmp", reason),
    }
    match quiet {
        Ok(connection) => {
            if record.document.rtt.icmp.is_none() {
                record.wait(TIME)?;
            }
            let pings = connection.pings(0);
            let _ = connection.stop();
            let tcp: Vec<_> = pings.into_iter().filter_map(|ping| Some((ping.sent, ping.round_trip?))).collect();
            let started = record.started;
            latency_series(record, "TCP", &tcp, started);
            record.document.rtt.tcp = convert::distribution(&times(&tcp));
        }
        Err(error) => record.without(&["rtt.tcp"], error)?,
    }
    choose_best(record);
    Ok(())
}

#[cfg(test)]
mod tests;
