//! Capacity of each direction, by a search over a stream whose rate follows what its receiver tells (RFC 9097), and what
//! a policer leaves in a stream above it.

use core::time::Duration;

use linerate_model::capacity::{
    Action, Bound, FEEDBACK_INTERVAL, Feedback as SearchFeedback, Limits, Outcome, Packet, Reason, Search,
};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::Capacity;
use linerate_model::schema::run::{Panel, Series, Unit};
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::{Bootstrap, Sample, Signed, Statistic};
use linerate_sys::clock;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio, TypeOfService};

use super::convert::on_line;
use super::linerate::{BOTH, Way, index, name};
use super::policer;
use super::record::Record;
use super::{PathEvent, PathPhase};
use crate::course::Halt;
use crate::probe::messages::{Detail, Feedback, SendLimit, SendOrder, Spacing, StreamNumber};
use crate::probe::{ProbeError, Reception, Sending};

/// A search takes no longer than this.
const LONGEST: Duration = Duration::from_secs(6);

/// Without another limit, what a search may send: enough for 25 Gbit/s.
const MOST_BYTES: ByteCount = ByteCount::from_mebibytes(8 << 10);

/// What it may send at least, as a guess by a short train may be wrong.
const LEAST_BYTES: ByteCount = ByteCount::from_mebibytes(64);

/// The guess may be wrong by so much.
const DOUBT: f64 = 4.0;

/// From this rate on, a search goes no further above the guess than by this factor.
const FAST: f64 = 5e9;
const LEEWAY: f64 = 1.6;

/// No host sends more.
const FASTEST: f64 = 1e11;

/// Larger packets than jumbo frames, as loopback has them, are too few a second to be counted well.
pub(super) const LARGEST: ByteCount = ByteCount::new(9216);

/// Without a word for this long, the search is told so.
const SILENCE: Duration = Duration::from_millis(110);

pub(super) fn measure(record: &mut Record<'_>, way: &Way<'_>) -> Result<(), Halt> {
    let limits = BOTH.map(|direction| limits(record, way, direction));
    let most: ByteCount = limits.iter().map(Limits::most_traffic).sum();
    record.tell(&PathEvent::Announcement(most));
    let phases = [PathPhase::CapacityUp, PathPhase::CapacityDown];
    let mut outcomes: [Option<Outcome>; 2] = [None, None];
    for ((direction, phase), limits) in BOTH.into_iter().zip(phases).zip(limits) {
        record.check()?;
        record.phase(phase, Duration::from_secs(4));
        match search(record, way, direction, limits) {
            Ok(outcome) => outcomes[index(direction)] = Some(outcome),
            Err(Halt::Failed(error)) => record.without(&[&format!("{}.capacity", name(direction))], error)?,
            Err(halt) => return Err(halt),
        }
    }
    record.phase(PathPhase::Policer, Duration::from_secs(2));
    for (direction, outcome) in BOTH.into_iter().zip(outcomes) {
        record.check()?;
        if let Some(outcome) = outcome {
            policer::measure(record, way, direction, &outcome)?;
        }
    }
    Ok(())
}

fn limits(record: &Record<'_>, way: &Way<'_>, direction: Direction) -> Limits {
    let guess = way.train_rate[index(direction)].map(|rate| (rate * DOUBT) * LONGEST);
    let bytes = guess.unwrap_or(MOST_BYTES).max(LEAST_BYTES).min(MOST_BYTES);
    // The faster the path, the more a moment of too much fills buffers, and the better a short train tells the rate.
    let fastest = way.train_rate[index(direction)]
        .filter(|rate| rate.bits_per_second() >= FAST)
        .map_or(FASTEST, |rate| rate.bits_per_second() * LEEWAY);
    Limits {
        duration: LONGEST,
        bytes: record.options.max_traffic.unwrap_or(bytes),
        max_rate: record.options.max_rate.unwrap_or(BitRate::from_bits_per_second(fastest.min(FASTEST))),
    }
}

/// The stream of a search, whichever way it goes.
enum Stream {
    Up { stream: StreamNumber, sending: Sending, newest: Option<Duration> },
    Down { stream: StreamNumber, reception: Reception },
}

impl Stream {
    fn start(way: &Way<'_>, direction: Direction, order: SendOrder) -> Result<Self, ProbeError> {
        let (session, stream) = (way.session, order.stream);
        Ok(match direction {
            Direction::Up => {
                session.far_receive(stream, Detail::Counts)?;
                Self::Up { stream, sending: session.send(order)?, newest: None }
            }
            Direction::Down => {
                let reception = session.receive(stream, Detail::Counts)?;
                session.far_send(order)?;
                Self::Down { stream, reception }
            }
        })
    }

    /// What the receiver has told since the last call, waiting for it as long as it usually takes.
    fn feedback(&mut self, way: &Way<'_>) -> Result<Option<Feedback>, ProbeError> {
        match self {
            Self::Up { stream, newest, .. } => {
                let feedback = way.session.wait_feedback(*stream, *newest, SILENCE)?;
                *newest = feedback.map(|feedback| feedback.time).or(*newest);
                Ok(feedback)
            }
            Self::Down { reception, .. } => {
                clock::sleep_until(clock::monotonic_now() + FEEDBACK_INTERVAL);
                Ok(Some(reception.feedback()))
            }
        }
    }

    fn set_rate(&self, way: &Way<'_>, rate: BitRate) -> Result<(), ProbeError> {
        match self {
            Self::Up { sending, .. } => {
                sending.set_rate(rate);
                Ok(())
            }
            Self::Down { stream, .. } => way.session.far_rate(*stream, rate),
        }
    }

    /// Ends it: how much it sent.
    fn stop(self, way: &Way<'_>) -> Result<ByteCount, ProbeError> {
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

/// The order of a stream of full packets.
pub(super) fn full_packets(stream: StreamNumber, packet: &Packet, rate: BitRate, duration: Duration) -> SendOrder {
    let most = BitRate::from_bits_per_second(SendOrder::MOST_BITS_PER_SECOND);
    SendOrder {
        stream,
        size: packet.payload,
        rate: packet.payload_rate(rate).clamp(BitRate::from_bits_per_second(1e3), most),
        spacing: Spacing::Periodic,
        limit: SendLimit { count: None, duration: Some(duration) },
        type_of_service: TypeOfService::default(),
        dont_fragment: true,
    }
}

pub(super) fn packet(record: &mut Record<'_>, way: &Way<'_>, direction: Direction) -> Packet {
    Packet { payload: way.mtu(record, direction).byte_count().min(LARGEST) - way.headers, headers: way.headers }
}

fn search(record: &mut Record<'_>, way: &Way<'_>, direction: Direction, limits: Limits) -> Result<Outcome, Halt> {
    let packet = packet(record, way, direction);
    let started = clock::monotonic_now();
    let mut search = Search::new(limits, packet, way.round_trip, started);
    let order = full_packets(way.session.new_stream(), &packet, search.rate(), limits.duration * 2);
    let mut stream = Stream::start(way, direction, order)?;
    let mut newest = None;
    loop {
        record.check()?;
        let feedback = stream.feedback(way)?.filter(|feedback| !feedback.packets.is_zero());
        let now = clock::monotonic_now();
        let action = match feedback {
            Some(feedback) if newest != Some(feedback.packets) => {
                newest = Some(feedback.packets);
                search.feedback(now, &of_wire(&feedback))
            }
            _ => search.silence(now),
        };
        match action {
            Action::Send(rate) => stream.set_rate(way, packet.payload_rate(rate))?,
            Action::Finish => break,
        }
        if let Some(reading) = search.reading() {
            record.tell(&PathEvent::Rate(direction, reading.received));
        }
    }
    let sent = stream.stop(way)?;
    // What still stands in queues must not meet what comes next.
    let outcome = search.outcome();
    let growth = outcome.delay_growth.map_or(Duration::ZERO, |(_, most)| most);
    record.wait((growth + way.round_trip).min(Duration::from_secs(5)))?;
    let packets = PacketCount::new(sent.get() / packet.payload.get().max(1));
    let traffic = packet.bytes(packets);
    record.count_traffic(direction, traffic);
    note_capacity(record, direction, &outcome, &packet, traffic);
    Ok(outcome)
}

fn of_wire(feedback: &Feedback) -> SearchFeedback {
    let delay = |nanoseconds: Option<i64>| nanoseconds.map(Signed::from_nanos);
    SearchFeedback {
        packets: feedback.packets - feedback.duplicates,
        duplicates: feedback.duplicates,
        reordered: feedback.reordered,
        highest_sequence: feedback.highest.map(u64::from),
        highest_sent: feedback.highest_sent.map(on_line),
        last_arrival: feedback.newest.map(on_line),
        min_delay: delay(feedback.least_delay),
        max_delay: delay(feedback.most_delay),
        receiver_dropped: feedback.dropped_in_host,
    }
}

fn note_capacity(
    record: &mut Record<'_>,
    direction: Direction,
    outcome: &Outcome,
    packet: &Packet,
    traffic: ByteCount,
) {
    let way = name(direction);
    series(record, direction, outcome);
    let Some(rate) = outcome.capacity else {
        record.unknown(&format!("{way}.capacity"), "no packet of the search arrived");
        return;
    };
    if outcome.bound == Bound::Unknown {
        record.note(format!("Capacity {way}: the readings do not agree, so that what limited is not known."));
    }
    if let Some(dropped) = outcome.receiver_dropped.filter(|count| !count.is_zero()) {
        record.note(format!(
            "Capacity {way}: the receiving host itself dropped {dropped} packets for want of buffer space."
        ));
    }
    if outcome.shared {
        record.note(format!(
            "Capacity {way}: others share the bottleneck and do not give way: this is what they leave over."
        ));
    }
    let interval = confidence(outcome, rate);
    let limited_by = match outcome.bound {
        Bound::Path => None,
        Bound::AtLeast(reason) => Some(describe(reason).to_owned()),
        Bound::Unknown => Some("something that is not known".to_owned()),
    };
    record.direction(direction).capacity = Some(Capacity {
        bits_per_second: rate.bits_per_second(),
        low_bits_per_second: interval.map(|(low, _)| low.bits_per_second()),
        high_bits_per_second: interval.map(|(_, high)| high.bits_per_second()),
        at_least: matches!(outcome.bound, Bound::AtLeast(_)),
        limited_by: limited_by.filter(|_| outcome.bound != Bound::Path),
        shared: Some(outcome.shared),
        packet_bytes: packet.size().get(),
        loss: outcome.loss.map(Ratio::get),
        queueing_ns: outcome.delay_growth.map(|(_, most)| nanoseconds(most)),
        sent_bytes: traffic.get(),
        duration_ns: nanoseconds(outcome.elapsed),
        method: "udp_search".to_owned(),
    });
}

/// The readings in which more was sent than arrived are readings of the capacity.
fn confidence(outcome: &Outcome, rate: BitRate) -> Option<(BitRate, BitRate)> {
    let full: Vec<BitRate> = outcome
        .readings
        .iter()
        .filter(|reading| reading.sent >= rate * 0.98 && reading.received >= rate * 0.5)
        .map(|reading| reading.received)
        .collect();
    let interval = Sample::independent(&full).estimate(Statistic::Mean, &Bootstrap::with_seed(1))?.interval?;
    Some((interval.low.min(rate), interval.high.max(rate)))
}

const fn describe(reason: Reason) -> &'static str {
    match reason {
        Reason::Sender => "the sending host",
        Reason::Receiver => "the receiving host",
        Reason::MaximumRate => "the rate limit (--max-rate)",
        Reason::Duration => "the time for the search",
        Reason::Bytes => "the traffic limit (--max-traffic)",
    }
}

fn series(record: &mut Record<'_>, direction: Direction, outcome: &Outcome) {
    // Readings are on the receiver's clock: the last one was made when the search ended.
    let Some(last) = outcome.readings.last().map(|reading| reading.at) else { return };
    let end = record.elapsed();
    let time = |at: MonotonicTime| end.saturating_sub(nanoseconds(last.since(at)));
    record.series.push(Series {
        panel: Panel::Throughput,
        name: format!("capacity search {}", name(direction)),
        direction: Some(direction),
        stream: None,
        unit: Unit::BitsPerSecond,
        times_ns: outcome.readings.iter().map(|reading| time(reading.at)).collect(),
        values: outcome.readings.iter().map(|reading| Some(reading.received.bits_per_second())).collect(),
    });
}
