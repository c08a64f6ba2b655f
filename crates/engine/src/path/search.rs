//! Capacity of each direction, by a search over a stream whose rate follows its receiver's feedback (RFC 9097).

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::capacity::{
    CapacityBound, CapacityEstimate, CapacitySearch, FEEDBACK_INTERVAL, PacketLayout, ProbeDelays,
    ReceiverFeedback as SearchFeedback, SearchAction, SearchLimiter, SearchLimits, share_of_others,
};
use linerate_analysis::statistics::SignedDifference;
use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::path::{CapacityLimiter, CapacityMeasurement, CapacityMethod};
use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio, TypeOfService};

use super::below_capacity;
use super::convert::to_monotonic;
use super::linerate::{BOTH_DIRECTIONS, PathKnowledge, index, name};
use super::policer;
use super::record::PathRecord;
use super::{PathEvent, PathPhase};
use crate::phases::AbortReason;
use crate::probe::messages::{PacketSpacing, RecordDetail, SendLimit, SendOrder, StreamFeedback, StreamNumber};
use crate::probe::{ProbeError, SendingThread, StreamReception};

/// Longest duration of a search whose reports arrive in time.
const LONGEST: Duration = Duration::from_secs(6);

/// Duration after which a stream ends by itself, as a multiple of the search's: late reports prolong that up to three times.
const STREAM_DURATION_FACTOR: u32 = 4;

/// Default traffic limit of a search: enough for 25 Gbit/s.
const MOST_BYTES: ByteCount = ByteCount::from_mebibytes(8 << 10);

/// Smallest traffic limit, as an estimate by a short burst may be wrong.
const MIN_BYTES: ByteCount = ByteCount::from_mebibytes(64);

/// Factor by which the estimate may be wrong.
const ESTIMATE_TOLERANCE: f64 = 4.0;

/// From this rate on, the factor by which a search may exceed the estimate.
const FAST_RATE: f64 = 5e9;
const FAST_RATE_TOLERANCE: f64 = 1.6;

/// Highest rate of any host.
const MAX_RATE: f64 = 1e11;

/// Largest packet: larger ones than jumbo frames, as on loopback, are too few per second to be counted well.
pub(super) const LARGEST: ByteCount = ByteCount::new(9216);

/// Time without feedback after which the search is notified.
const FEEDBACK_TIMEOUT: Duration = Duration::from_millis(110);

pub(super) fn measure(record: &mut PathRecord<'_>, way: &PathKnowledge<'_>) -> Result<(), AbortReason> {
    let limits = BOTH_DIRECTIONS.map(|direction| limits(record, way, direction));
    let most: ByteCount = limits.iter().map(SearchLimits::max_traffic).sum();
    record.tell(&PathEvent::Announcement(most));
    let phases = [PathPhase::CapacityUp, PathPhase::CapacityDown];
    let mut outcomes: [Option<CapacityEstimate>; 2] = [None, None];
    for ((direction, phase), limits) in BOTH_DIRECTIONS.into_iter().zip(phases).zip(limits) {
        record.check()?;
        record.phase(phase, Duration::from_secs(4));
        match search(record, way, direction, limits) {
            Ok(outcome) => outcomes[index(direction)] = Some(outcome),
            Err(AbortReason::Failed(error)) => record.without(&[&format!("{}.capacity", name(direction))], error)?,
            Err(halt) => return Err(halt),
        }
    }
    record.phase(PathPhase::Policer, Duration::from_secs(2));
    for (direction, outcome) in BOTH_DIRECTIONS.into_iter().zip(outcomes) {
        record.check()?;
        if let Some(outcome) = outcome {
            policer::measure(record, way, direction, &outcome)?;
            below_capacity::measure(record, way, direction, &outcome)?;
        }
    }
    Ok(())
}

fn limits(record: &PathRecord<'_>, way: &PathKnowledge<'_>, direction: Direction) -> SearchLimits {
    let guess = way.train_rate[index(direction)].map(|rate| (rate * ESTIMATE_TOLERANCE) * LONGEST);
    let bytes = guess.unwrap_or(MOST_BYTES).max(MIN_BYTES).min(MOST_BYTES);
    // The faster the path, the more a brief overload fills buffers, and the better a short burst estimates the rate.
    let fastest = way.train_rate[index(direction)]
        .filter(|rate| rate.bits_per_second() >= FAST_RATE)
        .map_or(MAX_RATE, |rate| rate.bits_per_second() * FAST_RATE_TOLERANCE);
    SearchLimits {
        duration: LONGEST,
        bytes: record.options.max_traffic.unwrap_or(bytes),
        max_rate: record.options.max_rate.unwrap_or(BitRate::from_bits_per_second(fastest.min(MAX_RATE))),
    }
}

/// Stream of a search, in either direction.
enum SearchStream {
    Up { stream: StreamNumber, sending: SendingThread, newest: Option<Duration> },
    Down { stream: StreamNumber, reception: StreamReception },
}

impl SearchStream {
    fn start(way: &PathKnowledge<'_>, direction: Direction, order: SendOrder) -> Result<Self, ProbeError> {
        let (session, stream) = (way.session, order.stream);
        Ok(match direction {
            Direction::Up => {
                session.far_receive(stream, RecordDetail::Counts)?;
                Self::Up { stream, sending: session.send(order)?, newest: None }
            }
            Direction::Down => {
                let reception = session.receive(stream, RecordDetail::Counts)?;
                session.far_send(order)?;
                Self::Down { stream, reception }
            }
        })
    }

    /// Feedback since the last call, waiting for it for its usual interval.
    fn feedback(&mut self, way: &PathKnowledge<'_>) -> Result<Option<StreamFeedback>, ProbeError> {
        match self {
            Self::Up { stream, newest, .. } => {
                let feedback = way.session.wait_feedback(*stream, *newest, FEEDBACK_TIMEOUT)?;
                *newest = feedback.map(|feedback| feedback.time).or(*newest);
                Ok(feedback)
            }
            Self::Down { reception, .. } => {
                clock::sleep_until(clock::monotonic_now() + FEEDBACK_INTERVAL);
                Ok(Some(reception.feedback()))
            }
        }
    }

    fn set_rate(&self, way: &PathKnowledge<'_>, rate: BitRate) -> Result<(), ProbeError> {
        match self {
            Self::Up { sending, .. } => {
                sending.set_rate(rate);
                Ok(())
            }
            Self::Down { stream, .. } => way.session.far_rate(*stream, rate),
        }
    }

    /// Ends the stream; returns the bytes sent.
    fn stop(self, way: &PathKnowledge<'_>) -> Result<ByteCount, ProbeError> {
        match self {
            Self::Up { stream, sending, .. } => {
                let sent = sending.stop();
                way.session.far_stop_receiving(stream)?;
                Ok(sent.bytes)
            }
            Self::Down { stream, reception } => {
                let sent = way.session.far_stop_sending(stream)?;
                let _ = reception.finish();
                Ok(sent.bytes)
            }
        }
    }
}

/// Order for a stream of full packets.
pub(super) fn full_packets(
    stream: StreamNumber,
    packet: &PacketLayout,
    rate: BitRate,
    duration: Duration,
) -> SendOrder {
    let most = BitRate::from_bits_per_second(SendOrder::MAX_BITS_PER_SECOND);
    SendOrder {
        stream,
        size: packet.payload,
        rate: packet.payload_rate(rate).clamp(BitRate::from_bits_per_second(1e3), most),
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: None, duration: Some(duration) },
        type_of_service: TypeOfService::default(),
        dont_fragment: true,
    }
}

pub(super) fn packet(record: &mut PathRecord<'_>, way: &PathKnowledge<'_>, direction: Direction) -> PacketLayout {
    PacketLayout { payload: way.mtu(record, direction).byte_count().min(LARGEST) - way.headers, headers: way.headers }
}

fn search(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
    limits: SearchLimits,
) -> Result<CapacityEstimate, AbortReason> {
    let packet = packet(record, way, direction);
    let started = clock::monotonic_now();
    let mut search = CapacitySearch::new(limits, packet, way.round_trip, started);
    let order =
        full_packets(way.session.new_stream(), &packet, search.rate(), limits.duration * STREAM_DURATION_FACTOR);
    let mut stream = SearchStream::start(way, direction, order)?;
    let mut newest = None;
    loop {
        record.check()?;
        if record.is_phase_ended() {
            stream.stop(way)?;
            return Err(AbortReason::Failed(ProbeError::System(
                "the search was ended before it had a result".to_owned(),
            )));
        }
        let feedback = stream.feedback(way)?.filter(|feedback| !feedback.packets.is_zero());
        let now = clock::monotonic_now();
        let action = match feedback {
            Some(feedback) if newest != Some(feedback.packets) => {
                newest = Some(feedback.packets);
                search.handle_feedback(now, &of_wire(&feedback))
            }
            _ => search.handle_silence(now),
        };
        match action {
            SearchAction::Send(rate) => stream.set_rate(way, packet.payload_rate(rate))?,
            SearchAction::Finish => break,
        }
        if let Some(reading) = search.latest_sample() {
            record.tell(&PathEvent::Rate(direction, reading.received));
        }
    }
    let sent = stream.stop(way)?;
    // Packets still queued must not disturb the next phase.
    let outcome = search.outcome();
    let growth = outcome.delay_growth.map_or(Duration::ZERO, |(_, most)| most);
    record.wait((growth + way.round_trip).min(Duration::from_secs(5)))?;
    let packets = PacketCount::new(sent.get() / packet.payload.get().max(1));
    let traffic = packet.bytes(packets);
    record.count_traffic(direction, traffic);
    note_capacity(record, direction, &outcome, &packet, traffic);
    Ok(outcome)
}

fn of_wire(feedback: &StreamFeedback) -> SearchFeedback {
    let delay = |nanoseconds: Option<i64>| nanoseconds.map(SignedDifference::from_nanos);
    SearchFeedback {
        packets: feedback.packets - feedback.duplicates,
        duplicates: feedback.duplicates,
        reordered: feedback.reordered,
        highest_sequence: feedback.highest.map(u64::from),
        highest_sent: feedback.highest_sent.map(to_monotonic),
        last_arrival: feedback.newest.map(to_monotonic),
        min_delay: delay(feedback.least_delay),
        max_delay: delay(feedback.most_delay),
        receiver_dropped: feedback.dropped_in_host,
    }
}

fn note_capacity(
    record: &mut PathRecord<'_>,
    direction: Direction,
    outcome: &CapacityEstimate,
    packet: &PacketLayout,
    traffic: ByteCount,
) {
    let way = name(direction);
    series(record, direction, outcome);
    let Some(rate) = outcome.capacity else {
        record.unknown(&format!("{way}.capacity"), "no packet of the search arrived");
        return;
    };
    if outcome.bound == CapacityBound::Unknown {
        record.note(format!("Capacity {way}: the samples do not agree, so that the limiting factor is unknown."));
    }
    if let Some(dropped) = outcome.receiver_dropped.filter(|count| !count.is_zero()) {
        record.note(format!(
            "Capacity {way}: the receiving host itself dropped {dropped} packets for lack of buffer space."
        ));
    }
    if outcome.shared {
        record.note(format!(
            "Capacity {way}: other traffic shares the bottleneck and does not yield: this is the rate that it leaves."
        ));
    }
    let others = others_at_rest(record, direction, rate, packet);
    if let Some(share) = others {
        record.note(format!(
            "Capacity {way}: probes waited for other traffic at rest, which takes up to {:.0} % of the path: a fair queue \
            leaves only the remainder to the search, and the path may carry more.",
            share.percent()
        ));
    }
    let interval = outcome
        .interval(packet)
        .map(|(low, high)| (low, others.map_or(high, |share| CapacityEstimate::with_others(high, share))));
    let limited_by = match outcome.bound {
        CapacityBound::Path => None,
        CapacityBound::AtLeast(reason) => Some(limiter(reason)),
        CapacityBound::Unknown => Some(CapacityLimiter::Unknown),
    };
    record.direction(direction).capacity = Some(CapacityMeasurement {
        bits_per_second: rate.bits_per_second(),
        low_bits_per_second: interval.map(|(low, _)| low.bits_per_second()),
        high_bits_per_second: interval.map(|(_, high)| high.bits_per_second()).filter(|_| !outcome.shared),
        at_least: matches!(outcome.bound, CapacityBound::AtLeast(_)),
        limited_by,
        shared: Some(outcome.shared),
        packet_bytes: packet.size().get(),
        loss: outcome.loss.map(Ratio::get),
        loss_below: None,
        packets_below: None,
        queueing_ns: outcome.delay_growth.map(|(_, most)| nanoseconds(most)),
        sent_bytes: traffic.get(),
        duration_ns: nanoseconds(outcome.elapsed),
        method: CapacityMethod::UdpSearch,
    });
}

/// Share of the path that other traffic takes at rest, by the waits of the probes sent before the search.
fn others_at_rest(
    record: &mut PathRecord<'_>,
    direction: Direction,
    rate: BitRate,
    packet: &PacketLayout,
) -> Option<Ratio> {
    let delays = record.direction(direction).packets.as_ref()?.one_way_delay.as_ref()?;
    let delays = ProbeDelays { least: delays.min, median: delays.median, mean: delays.mean, high: delays.p95 };
    share_of_others(&delays, packet.gap(rate)?)
}

const fn limiter(reason: SearchLimiter) -> CapacityLimiter {
    match reason {
        SearchLimiter::Sender => CapacityLimiter::Sender,
        SearchLimiter::Receiver => CapacityLimiter::Receiver,
        SearchLimiter::MaximumRate => CapacityLimiter::MaximumRate,
        SearchLimiter::Duration => CapacityLimiter::Duration,
        SearchLimiter::Bytes => CapacityLimiter::Bytes,
    }
}

fn series(record: &mut PathRecord<'_>, direction: Direction, outcome: &CapacityEstimate) {
    // Samples are on the receiver's clock: the last one was made when the search ended.
    let Some(last) = outcome.readings.last().map(|reading| reading.at) else { return };
    let end = record.elapsed();
    let time = |at: MonotonicTime| end.saturating_sub(nanoseconds(last.since(at)));
    record.series.push(SampleSeries {
        panel: ChartPanel::Throughput,
        name: format!("capacity search {}", name(direction)),
        direction: Some(direction),
        stream: None,
        unit: FigureUnit::BitsPerSecond,
        times_ns: outcome.readings.iter().map(|reading| time(reading.at)).collect(),
        values: outcome.readings.iter().map(|reading| Some(reading.received.bits_per_second())).collect(),
    });
}

#[cfg(test)]
mod tests {
    use linerate_analysis::capacity::RateSample;

    use super::super::PathOptions;
    use super::super::test_support::{found, options, recorded, session, way};
    use super::*;

    const PACKET: PacketLayout = PacketLayout { payload: ByteCount::new(1472), headers: ByteCount::new(28) };

    fn rate(megabits: f64) -> BitRate {
        BitRate::from_bits_per_second(megabits * 1e6)
    }

    fn limits_of(options: &PathOptions, burst: Option<f64>) -> SearchLimits {
        let session = session();
        recorded(options, |record| limits(record, &way(&session, [burst, None]), Direction::Up)).0
    }

    #[test]
    fn limits_follow_the_rate_of_a_short_burst() {
        // Four times the burst's rate for six seconds: 3 MB per Mbit/s.
        for (burst, bytes, fastest) in [
            (None, MOST_BYTES, 1e5),
            (Some(1.0), MIN_BYTES, 1e5),
            (Some(100.0), ByteCount::new(300_000_000), 1e5),
            (Some(4999.0), MOST_BYTES, 1e5),
            (Some(5000.0), MOST_BYTES, 8000.0),
            (Some(50_000.0), MOST_BYTES, 80_000.0),
            (Some(90_000.0), MOST_BYTES, 1e5),
        ] {
            let found = limits_of(&options(), burst);
            assert_eq!((found.duration, found.bytes), (Duration::from_secs(6), bytes), "{burst:?} Mbit/s");
            assert!((found.max_rate.bits_per_second() / (fastest * 1e6) - 1.0).abs() < 1e-9, "{burst:?}: {found:?}");
        }
        let limited = PathOptions { max_rate: Some(rate(7.0)), max_traffic: Some(ByteCount::new(1000)), ..options() };
        let found = limits_of(&limited, Some(9000.0));
        assert_eq!((found.bytes, found.max_rate), (ByteCount::new(1000), rate(7.0)), "the user's limits precede");
    }

    #[test]
    fn orders_have_full_packets_at_a_payload_rate_within_bounds() {
        let stream = StreamNumber::FIRST_RECORDED;
        let order = |megabits| full_packets(stream, &PACKET, rate(megabits), Duration::from_secs(1));
        let found = order(150.0);
        assert_eq!((found.size, found.dont_fragment), (ByteCount::new(1472), true));
        assert!((found.rate.bits_per_second() - 150e6 * 1472.0 / 1500.0).abs() < 1.0);
        assert_eq!(found.limit, SendLimit { count: None, duration: Some(Duration::from_secs(1)) });
        assert_eq!(order(1e-9).rate, BitRate::from_bits_per_second(1e3));
        assert_eq!(order(1e12).rate, BitRate::from_bits_per_second(SendOrder::MAX_BITS_PER_SECOND));
    }

    #[test]
    fn feedback_is_without_duplicates() {
        let feedback = StreamFeedback {
            stream: StreamNumber::FIRST_RECORDED,
            time: Duration::from_secs(1),
            packets: PacketCount::new(110),
            bytes: ByteCount::new(110_000),
            highest: Some(120),
            highest_sent: None,
            duplicates: PacketCount::new(10),
            reordered: PacketCount::new(3),
            least_delay: Some(-5),
            most_delay: Some(70),
            first: None,
            newest: None,
            dropped_in_host: Some(PacketCount::new(2)),
            last: false,
        };
        let found = of_wire(&feedback);
        assert_eq!((found.packets, found.duplicates), (PacketCount::new(100), PacketCount::new(10)));
        assert_eq!((found.highest_sequence, found.receiver_dropped), (Some(120), Some(PacketCount::new(2))));
        assert_eq!(found.min_delay, Some(SignedDifference::from_nanos(-5)));
        assert_eq!(found.max_delay, Some(SignedDifference::from_nanos(70)));
    }

    #[test]
    fn the_document_has_the_capacity_and_its_bound() {
        for (bound, at_least, limited_by) in [
            (CapacityBound::Path, false, None),
            (CapacityBound::Unknown, false, Some(CapacityLimiter::Unknown)),
            (CapacityBound::AtLeast(SearchLimiter::Sender), true, Some(CapacityLimiter::Sender)),
            (CapacityBound::AtLeast(SearchLimiter::Receiver), true, Some(CapacityLimiter::Receiver)),
            (CapacityBound::AtLeast(SearchLimiter::MaximumRate), true, Some(CapacityLimiter::MaximumRate)),
            (CapacityBound::AtLeast(SearchLimiter::Duration), true, Some(CapacityLimiter::Duration)),
            (CapacityBound::AtLeast(SearchLimiter::Bytes), true, Some(CapacityLimiter::Bytes)),
        ] {
            let outcome = CapacityEstimate {
                bound,
                shared: true,
                loss: Ratio::new(0.25),
                delay_growth: Some((Duration::from_millis(1), Duration::from_millis(30))),
                receiver_dropped: Some(PacketCount::new(9)),
                ..found(Some(50.0))
            };
            let ((), finished, _) = recorded(&options(), |record| {
                note_capacity(record, Direction::Down, &outcome, &PACKET, ByteCount::new(77));
            });
            let capacity = finished.document.down.capacity.expect("found");
            assert_eq!((capacity.bits_per_second, capacity.at_least), (50e6, at_least));
            assert_eq!(capacity.limited_by, limited_by, "{bound:?}");
            assert_eq!((capacity.packet_bytes, capacity.sent_bytes, capacity.loss), (1500, 77, Some(0.25)));
            assert_eq!((capacity.queueing_ns, capacity.duration_ns), (Some(30_000_000), 2_000_000_000));
            let notes = finished.document.notes.join("\n");
            assert!(notes.contains("dropped 9 packets for lack of buffer space"), "{notes}");
            assert!(notes.contains("other traffic shares the bottleneck"), "{notes}");
            assert_eq!(notes.contains("the samples do not agree"), bound == CapacityBound::Unknown, "{notes}");
        }
    }

    #[test]
    fn without_arrivals_the_capacity_is_unknown() {
        let ((), finished, _) =
            recorded(&options(), |record| note_capacity(record, Direction::Up, &found(None), &PACKET, ByteCount::ZERO));
        assert_eq!(finished.document.up.capacity, None);
        let reason = finished.document.unknown.iter().find(|unknown| unknown.key == "up.capacity").expect("a reason");
        assert_eq!(reason.reason, "no packet of the search arrived");
    }

    #[test]
    fn the_interval_is_of_the_samples_above_the_capacity_and_includes_it() {
        let sample = |sent, received| RateSample {
            at: MonotonicTime::from_nanos(1),
            sent: rate(sent),
            received: rate(received),
        };
        let mut outcome = found(Some(100.0));
        // Below the capacity, or nearly nothing: no samples of it.
        outcome.readings = vec![sample(50.0, 50.0), sample(97.0, 97.0), sample(150.0, 10.0)];
        assert_eq!(outcome.interval(&PACKET), None);
        outcome.readings.extend((0..40).map(|step| sample(150.0, 96.0 + f64::from(step % 5))));
        let (low, high) = outcome.interval(&PACKET).expect("samples");
        assert!(low <= high && low >= rate(95.0), "{low:?}");
        // The mean of the samples is 98: the interval reaches to the capacity, and as far beyond as it is uncertain.
        assert!(high > rate(100.5) && high < rate(103.0), "{high:?}");
        assert_eq!(outcome.interval(&PACKET), Some((low, high)), "a seed makes it repeatable");
        outcome.bound = CapacityBound::AtLeast(SearchLimiter::Sender);
        assert_eq!(outcome.interval(&PACKET), None, "a lower bound has no upper end");
    }

    #[test]
    fn samples_are_charted_up_to_the_end_of_the_search() {
        let sample = |milliseconds: u64, received| RateSample {
            at: MonotonicTime::from_nanos(milliseconds * 1_000_000),
            sent: rate(200.0),
            received: rate(received),
        };
        let outcome = CapacityEstimate { readings: vec![sample(100, 10.0), sample(350, 20.0)], ..found(Some(20.0)) };
        let (before, finished, _) = recorded(&options(), |record| {
            // The search has lasted for a second.
            record.started = MonotonicTime::from_nanos(record.started.as_nanos() - 1_000_000_000);
            let before = record.elapsed();
            series(record, Direction::Up, &outcome);
            series(record, Direction::Up, &found(Some(20.0)));
            before
        });
        assert_eq!(finished.series.len(), 1, "no samples, no chart");
        let chart = &finished.series[0];
        assert_eq!((chart.name.as_str(), chart.direction), ("capacity search up", Some(Direction::Up)));
        assert_eq!(chart.values, [Some(10e6), Some(20e6)]);
        assert_eq!(chart.times_ns[1] - chart.times_ns[0], 250_000_000);
        assert!(chart.times_ns[1] >= before && chart.times_ns[1] <= finished.document.duration_ns);
    }
}
