//! Detection of a token-bucket policer on the path, with its rate and burst.
//!
//! Based on Flach et al., "An Internet-Wide Analysis of Traffic Policing" (SIGCOMM 2016), whose detector examines the
//! trace of a TCP sender. Here the trace is a stream of UDP packets at a constant rate, clearly above the suspected
//! one, with the receiver's time stamps, so that more is visible:
//!
//! 1. **Loss begins after a burst** that fills a bucket, and does not end.
//! 2. **A bucket explains which packets pass.** Filled at the rate at which packets arrive from the first loss on, it
//!    holds less than a packet (and the effect of jitter) whenever one is lost, and enough whenever one passes. Random
//!    and bursty loss do not follow that: their "bucket" drifts like the square root of the number of packets.
//! 3. **No packet is queued.** A policer does not delay, a queue does: by its length before the first loss, and by the
//!    spacing of its departures. In front of a link even ten packets of buffer delay by ten packet times, and no two
//!    packets leave it closer than one packet time; a policer passes them as they come.
//!
//! The rate of the stream should not be a whole multiple of the suspected one: then packets pass a policer as evenly as
//! they leave a link, and only the delay differs. 1.5 times that rate is good. The bucket must have had the time to
//! fill before: a pause of some seconds.
//!
//! About a hundred packets after the first loss are needed: 2 s above some Mbit/s, more below. A bucket of fewer than
//! four packets is indistinguishable from a short buffer, and is not reported.
//!
//! Negative cases, with tests: tail-drop queues of any length, managed queues, random and bursty loss, slow receivers
//! whose kernel reports its drops. A policer behind a queue that the stream fills is not found: the stream must not
//! exceed the capacity of the links.

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};

use crate::ippm::{PacketArrival, PacketStream};
use crate::statistics::{SampleSummary, percentile};

/// Minimum number of losses, and of passes after the first loss (Flach et al. §4.1: 15 of each).
const MIN_LOSSES: usize = 15;
/// Minimum share of losses after the first loss.
const MIN_LOSS: f64 = 0.03;
/// Maximum share of losses and passes that do not fit the bucket (Flach et al.: 10 % and 3 %).
const MAX_MISFITS: f64 = 0.05;
/// Tolerance of the bucket level, in packets, without any jitter: simultaneous passes, and packets in flight.
const MAX_BUCKET_ERROR_PACKETS: f64 = 2.5;
/// Maximum ratio of that tolerance to the drift of random loss: else the test has no power.
const MAX_SLACK_RATIO: f64 = 0.4;
/// Delay in packet times, at the passing rate, from which on there is a queue.
const MAX_DELAY_PACKET_TIMES: f64 = 1.0;
/// Passes after the first loss whose delay is examined: soon after it, so that clocks have not drifted apart.
const EXAMINED_PASSES: usize = 100;
/// Minimum bucket size in packets; smaller ones are indistinguishable from a buffer.
const MIN_BURST_PACKETS: f64 = 4.0;
/// Share of gaps shorter than a link would leave from which on no link sends them.
const MIN_TIGHT_GAP_SHARE: f64 = 0.1;
/// Ratio to the packet time at the passing rate below which a gap is short.
const MAX_TIGHT_GAP: f64 = 0.85;

/// Token-bucket policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// Rate at which the bucket fills, for IP packets of the stream's size.
    pub rate: BitRate,
    /// Size of the bucket: volume that passes at once after a pause. A lower bound when the stream came through a
    /// slower link first.
    pub burst: ByteCount,
    /// Share of packets that the bucket does not explain.
    pub misfits: Ratio,
}

/// Reason why no policer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoPolicerReason {
    /// Too little was lost: the stream was not above a policer's rate, or there is none.
    LittleLoss,
    /// Packets were queued before they were lost: a link, or a queue in front of it, limits.
    Queue,
    /// Losses do not follow a bucket: random, bursty, or of a queue that drops early.
    Irregular,
    /// The receiving host dropped packets that had arrived.
    Receiver,
    /// Delays vary too much to distinguish a policer from other causes.
    Unclear,
}

/// Result of the detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicerFinding {
    /// Policer found.
    Policer(Policer),
    /// No policer found, with the reason.
    None(NoPolicerReason),
}

/// Searches for a policer in a stream of evenly sent packets of one IP size, with the interval `gap`.
/// `receiver_dropped` is the number of them that the receiving host dropped; `None` when it does not report it.
#[must_use]
pub fn detect(
    stream: &PacketStream,
    size: ByteCount,
    gap: Duration,
    receiver_dropped: Option<PacketCount>,
) -> PolicerFinding {
    let Some(trace) = LossTrace::of(stream, gap) else { return PolicerFinding::None(NoPolicerReason::LittleLoss) };
    if receiver_dropped
        .is_some_and(|dropped| dropped.as_f64() > 0.1 * PacketCount::new(trace.lost.len() as u64).as_f64())
    {
        return PolicerFinding::None(NoPolicerReason::Receiver);
    }
    let jitter = trace.jitter();
    let fit = trace.fit(jitter);
    let queue = trace.queue(jitter);
    let found = match (queue, fit) {
        (QueueEvidence::Waits, _) => Err(NoPolicerReason::Queue),
        (_, BucketFit::Powerless) | (QueueEvidence::Unclear, _) => Err(NoPolicerReason::Unclear),
        (_, BucketFit::Misfit) => Err(NoPolicerReason::Irregular),
        (QueueEvidence::None, BucketFit::Explains(misfits)) => Ok(misfits),
    };
    match found {
        Ok(misfits) => PolicerFinding::Policer(trace.policer(size, misfits)),
        Err(otherwise) => PolicerFinding::None(otherwise),
    }
}

/// Packet that passed: both times in nanoseconds since the stream's first packet, by each clock.
#[derive(Clone, Copy, Debug)]
struct PassedPacket {
    sequence: u64,
    sent: f64,
    received: f64,
}

/// Packets before the first loss, and between it and the last.
struct LossTrace {
    /// Nanoseconds from packet to packet.
    gap: f64,
    before: Vec<PassedPacket>,
    passed: Vec<PassedPacket>,
    /// Numbers of lost packets.
    lost: Vec<f64>,
}

enum BucketFit {
    /// With this share of misfits.
    Explains(f64),
    Misfit,
    /// Delays vary too much.
    Powerless,
}

enum QueueEvidence {
    None,
    Waits,
    Unclear,
}

impl LossTrace {
    /// Creates a trace; `None` when too little was lost, or too little passed after.
    fn of(stream: &PacketStream, gap: Duration) -> Option<Self> {
        let mut arrivals: Vec<&PacketArrival> = stream.first_copies().collect();
        arrivals.sort_unstable_by_key(|arrival| arrival.sequence);
        let (sent, received) = (arrivals.first()?.sent, arrivals.iter().map(|arrival| arrival.received).min()?);
        let lost = lost(&arrivals, stream.sent);
        if lost.len() < MIN_LOSSES {
            return None;
        }
        // One loss may be an accident: the trace begins where losses become as frequent as they are in the end.
        let (start, end) = (onset(&lost, stream.sent), *lost.last()?);
        let lost: Vec<f64> = lost.into_iter().filter(|number| *number >= start).map(as_number).collect();
        let pass = |arrival: &&PacketArrival| PassedPacket {
            sequence: arrival.sequence,
            sent: nanos(arrival.sent, sent),
            received: nanos(arrival.received, received),
        };
        let before: Vec<PassedPacket> = arrivals.iter().filter(|arrival| arrival.sequence < start).map(pass).collect();
        let inside = |arrival: &&&PacketArrival| arrival.sequence > start && arrival.sequence < end;
        let passed: Vec<PassedPacket> = arrivals.iter().filter(inside).map(pass).collect();
        let gap = gap.as_secs_f64() * 1e9;
        let trace = Self { gap, before, passed, lost };
        let enough = trace.passed.len() >= MIN_LOSSES && trace.lost.len() >= MIN_LOSSES && gap > 0.0;
        (enough && trace.loss() >= MIN_LOSS).then_some(trace)
    }

    /// Share of packets lost from the first loss on.
    fn loss(&self) -> f64 {
        let (lost, passed) = (count(self.lost.len()), count(self.passed.len()));
        lost / (lost + passed)
    }

    /// Nanoseconds per packet at the passing rate.
    fn packet_time(&self) -> f64 {
        self.gap / (1.0 - self.loss())
    }

    /// Variation of the delay without queueing: between the 5th and the 95th percentile of the difference of neighbours
    /// that both passed, which excludes the slow growth of a queue. In nanoseconds.
    fn jitter(&self) -> f64 {
        let neighbours = |passes: &[PassedPacket]| -> Vec<f64> {
            passes
                .windows(2)
                .filter(|pair| pair[1].sequence == pair[0].sequence + 1)
                .map(|pair| (pair[1].received - pair[0].received) - (pair[1].sent - pair[0].sent))
                .collect()
        };
        let mut changes = neighbours(&self.before);
        changes.extend(neighbours(&self.passed));
        SampleSummary::of(&changes).map_or(0.0, |summary| (summary.p95 - summary.p5).max(0.0) / 2.0)
    }

    /// Tests whether a bucket that fills at the passing rate explains losses and passes.
    fn fit(&self, jitter: f64) -> BucketFit {
        // In packets, from an empty bucket at the first loss: inflow less passed packets.
        let per_packet = self.packet_time() / self.gap;
        let start = self.lost[0];
        let level = |number: f64, passed: usize| (number - start) / per_packet - count(passed);
        let mut levels: Vec<(bool, f64)> = Vec::with_capacity(self.lost.len() + self.passed.len());
        let (mut passes, mut losses) = (self.passed.iter().peekable(), self.lost.iter().peekable());
        let mut so_far = 0;
        while let Some(&&lost) = losses.peek() {
            if let Some(pass) = passes.next_if(|pass| as_number(pass.sequence) < lost) {
                levels.push((true, level(as_number(pass.sequence), so_far)));
                so_far += 1;
            } else {
                levels.push((false, level(lost, so_far)));
                losses.next();
            }
        }
        let at_loss: Vec<f64> = levels.iter().filter(|(passed, _)| !passed).map(|(_, level)| *level).collect();
        let Some(usual) = SampleSummary::of(&at_loss).map(|summary| summary.median) else { return BucketFit::Misfit };
        let slack = MAX_BUCKET_ERROR_PACKETS + 2.0 * jitter / self.packet_time();
        let (whole, loss) = (count(levels.len()), self.loss());
        if slack > MAX_SLACK_RATIO * (whole * loss * (1.0 - loss)).sqrt() {
            return BucketFit::Powerless;
        }
        let misfit = |(passed, level): &&(bool, f64)| {
            if *passed { *level < usual - slack } else { (*level - usual).abs() > slack }
        };
        let misfits = count(levels.iter().filter(misfit).count()) / whole;
        if misfits <= MAX_MISFITS { BucketFit::Explains(misfits) } else { BucketFit::Misfit }
    }

    /// Tests whether packets are queued, by their delay after the first loss relative to that of the stream's first
    /// packets, and by the gaps between them.
    fn queue(&self, jitter: f64) -> QueueEvidence {
        let first = &self.before[..self.before.len().div_ceil(3)];
        let soon = &self.passed[..self.passed.len().min(EXAMINED_PASSES)];
        let median = |passes: &[PassedPacket]| {
            let delays: Vec<f64> = passes.iter().map(|pass| pass.received - pass.sent).collect();
            SampleSummary::of(&delays).map(|summary| summary.median)
        };
        let (Some(rest), Some(full)) = (median(first), median(soon)) else { return QueueEvidence::Unclear };
        let packet_time = self.packet_time();
        let chance = 3.0 * jitter / count(first.len().min(soon.len())).sqrt();
        if full - rest > MAX_DELAY_PACKET_TIMES * packet_time + chance {
            return QueueEvidence::Waits;
        }
        let burst = self.burst();
        if burst < MIN_BURST_PACKETS || chance > 0.25 * burst * packet_time {
            return QueueEvidence::Unclear;
        }
        // A link with next to no buffer: hardly any delay, but even gaps.
        let even = self.tight_gaps() < MIN_TIGHT_GAP_SHARE && full - rest > 0.5 * packet_time;
        if even { QueueEvidence::Waits } else { QueueEvidence::None }
    }

    /// Packets passed before the first loss, less the inflow meanwhile.
    fn burst(&self) -> f64 {
        (self.lost[0] * self.loss()).max(1.0)
    }

    /// Share of gaps between arrivals that are shorter than a link of the passing rate leaves.
    fn tight_gaps(&self) -> f64 {
        let shorter = self
            .passed
            .windows(2)
            .filter(|pair| pair[1].received - pair[0].received < MAX_TIGHT_GAP * self.packet_time());
        count(shorter.count()) / count(self.passed.len())
    }

    fn policer(&self, size: ByteCount, misfits: f64) -> Policer {
        let packets = 1e9 / self.packet_time();
        Policer {
            rate: BitRate::from_bits_per_second(packets * size.as_f64() * 8.0),
            burst: ByteCount::from_f64(self.burst() * size.as_f64()),
            misfits: Ratio::new(misfits).unwrap_or_default(),
        }
    }
}

/// Missing numbers.
fn lost(arrivals: &[&PacketArrival], sent: PacketCount) -> Vec<u64> {
    let mut lost = Vec::new();
    let mut expected = 0;
    for arrival in arrivals {
        lost.extend(expected..arrival.sequence);
        expected = arrival.sequence + 1;
    }
    lost.extend(expected..sent.get());
    lost
}

/// First loss from which on losses are as dense as at the end: a quarter of the typical distance of the last half.
fn onset(lost: &[u64], sent: PacketCount) -> u64 {
    let half: Vec<f64> = lost[lost.len() / 2..].windows(2).map(|pair| as_number(pair[1] - pair[0])).collect();
    let usual = Ratio::from_percent(90.0).and_then(|share| percentile(&half, share)).unwrap_or(sent.as_f64());
    let thin = lost.windows(2).take(MIN_LOSSES / 2).rposition(|pair| as_number(pair[1] - pair[0]) > 20.0 * usual);
    lost[thin.map_or(0, |index| index + 1)]
}

fn as_number(sequence: u64) -> f64 {
    PacketCount::new(sequence).as_f64()
}

fn count(length: usize) -> f64 {
    PacketCount::new(length as u64).as_f64()
}

fn nanos(later: MonotonicTime, earlier: MonotonicTime) -> f64 {
    let sign = if later < earlier { -1.0 } else { 1.0 };
    sign * as_number(later.as_nanos().abs_diff(earlier.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::simulation::{CrossTraffic, QueueManagement, SimulatedNetwork, SimulatedPath};

    const MEGABIT: f64 = 1e6;
    const SIZE: f64 = 1476.0;

    fn at(seconds: f64) -> MonotonicTime {
        MonotonicTime::from_nanos(u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).expect("a short time"))
    }

    /// Creates a stream of two seconds at this rate, and of 600 packets at least.
    fn look(path: SimulatedPath, rate: f64, seed: u64) -> PolicerFinding {
        let path = SimulatedPath { packet: SIZE, ..path };
        let gap = SIZE * 8.0 / rate;
        let mut network = SimulatedNetwork::new(path, seed);
        let mut arrivals = Vec::new();
        let mut sequence = 0;
        while as_number(sequence) * gap < 2.0 || sequence < 600 {
            let sent = 0.001 + as_number(sequence) * gap;
            if let Some(arrival) = network.carry(sent) {
                let (sent, received) = (at(sent), at(arrival) + Duration::from_secs(77));
                arrivals.push(PacketArrival { sequence, sent, received, ttl: None, type_of_service: None });
            }
            sequence += 1;
        }
        arrivals.sort_by_key(|arrival| arrival.received);
        let stream = PacketStream { sent: PacketCount::new(sequence), arrivals };
        detect(&stream, ByteCount::from_f64(SIZE), Duration::from_secs_f64(gap), None)
    }

    fn policed(rate: f64, burst: f64, link: f64) -> SimulatedPath {
        SimulatedPath { policer: Some((rate, burst)), ..SimulatedPath::new(link, 0.02, 1.5e6) }
    }

    #[test]
    fn policers_are_found_with_rate_and_burst() {
        for (path, over) in [
            (policed(100.0 * MEGABIT, 200e3, 300.0 * MEGABIT), 1.5),
            (policed(100.0 * MEGABIT, 200e3, 300.0 * MEGABIT), 2.0),
            (policed(100.0 * MEGABIT, 200e3, 300.0 * MEGABIT), 1.05),
            (policed(100.0 * MEGABIT, 200e3, 108.0 * MEGABIT), 1.06),
            (policed(100.0 * MEGABIT, 10_240.0, 1000.0 * MEGABIT), 1.5),
            (policed(100.0 * MEGABIT, 10_240.0, 1000.0 * MEGABIT), 3.0),
            (policed(100.0 * MEGABIT, 2e6, 1000.0 * MEGABIT), 1.5),
            (policed(950e3, 10e3, 10.0 * MEGABIT), 1.5),
            (policed(5.0 * MEGABIT, 64e3, 100.0 * MEGABIT), 1.5),
            (SimulatedPath { loss: (0.001, 0.0), ..policed(100.0 * MEGABIT, 200e3, 300.0 * MEGABIT) }, 1.5),
            (SimulatedPath { jitter: (0.000_02, true), ..policed(100.0 * MEGABIT, 200e3, 300.0 * MEGABIT) }, 1.5),
        ] {
            let (rate, burst) = path.policer.expect("a policer");
            for seed in 1..4 {
                let finding = look(path, rate * over, seed);
                let PolicerFinding::Policer(policer) = finding else { panic!("{rate} {burst} {over}: {finding:?}") };
                let found = policer.rate.bits_per_second() / rate;
                assert!((found - 1.0).abs() < 0.01, "{rate} {burst} {over}: rate {found}");
                let apart = (policer.burst.as_f64() - burst).abs();
                assert!(apart < 0.05 * burst + 2.0 * SIZE, "{rate} {burst} {over}: burst {:?}", policer.burst);
            }
        }
    }

    #[track_caller]
    fn finds_none(name: &str, path: SimulatedPath, rate: f64) {
        for seed in 1..6 {
            let finding = look(path, rate, seed);
            assert!(matches!(finding, PolicerFinding::None(_)), "{name} at {rate}, seed {seed}: {finding:?}");
        }
    }

    #[test]
    fn queues_are_no_policers() {
        for packets in [2.0, 3.0, 5.0, 10.0, 45.0, 1000.0] {
            for (rate, over) in [
                (300.0 * MEGABIT, 1.5),
                (300.0 * MEGABIT, 2.0),
                (300.0 * MEGABIT, 1.1),
                (300.0 * MEGABIT, 1.06),
                (10.0 * MEGABIT, 1.06),
                (10.0 * MEGABIT, 1.5),
                (10.0 * MEGABIT, 3.0),
            ] {
                let path = SimulatedPath::new(rate, 0.02, packets * 1514.0);
                finds_none(&format!("{packets} packets of buffer"), path, rate * over);
                let path = SimulatedPath { jitter: (0.000_02, true), ..path };
                finds_none(&format!("{packets} packets of buffer, some jitter"), path, rate * over);
            }
        }
        for management in [QueueManagement::Pie, QueueManagement::CoDel] {
            for rate in [4.4 * MEGABIT, 24.0 * MEGABIT, 300.0 * MEGABIT] {
                let path = SimulatedPath { management, ..SimulatedPath::new(rate, 0.065, rate / 8.0) };
                finds_none(&format!("{management:?}"), path, rate * 1.5);
                finds_none(&format!("{management:?}"), path, rate * 1.06);
            }
        }
    }

    #[test]
    fn loss_is_no_policer() {
        let base = SimulatedPath::new(1000.0 * MEGABIT, 0.02, 1.5e6);
        for loss in [0.001, 0.02, 0.05, 0.33] {
            for rate in [5.0 * MEGABIT, 100.0 * MEGABIT, 450.0 * MEGABIT] {
                finds_none("random loss", SimulatedPath { loss: (loss, 0.0), ..base }, rate);
            }
        }
        for bursty_loss in [Some((0.0001, 0.1)), Some((0.01, 0.2)), Some((0.05, 0.1))] {
            finds_none("bursts of loss", SimulatedPath { bursty_loss, ..base }, 150.0 * MEGABIT);
            finds_none("bursts of loss", SimulatedPath { bursty_loss, ..base }, 10.0 * MEGABIT);
        }
        finds_none("nothing lost", base, 450.0 * MEGABIT);
        finds_none("everything lost", SimulatedPath { loss: (1.0, 0.0), ..base }, 450.0 * MEGABIT);
    }

    #[test]
    fn jitter_and_cross_traffic_are_no_policer() {
        for order in [true, false] {
            let jitter = (0.01, order);
            finds_none(
                "jitter",
                SimulatedPath { jitter, ..SimulatedPath::new(300.0 * MEGABIT, 0.05, 1.5e6) },
                450.0 * MEGABIT,
            );
            finds_none(
                "jitter and little buffer",
                SimulatedPath { jitter, ..SimulatedPath::new(90.0 * MEGABIT, 0.05, 15e3) },
                135.0 * MEGABIT,
            );
            let path = SimulatedPath { jitter, loss: (0.02, 0.0), ..SimulatedPath::new(300.0 * MEGABIT, 0.05, 1.5e6) };
            finds_none("jitter and loss", path, 100.0 * MEGABIT);
        }
        let path = SimulatedPath {
            cross_traffic: CrossTraffic::Constant(100.0 * MEGABIT),
            ..SimulatedPath::new(300.0 * MEGABIT, 0.02, 1.5e6)
        };
        finds_none("others", path, 300.0 * MEGABIT);
    }

    #[test]
    fn a_receiver_that_drops_is_named() {
        let path = policed(100.0 * MEGABIT, 200e3, 300.0 * MEGABIT);
        let finding = look(path, 150.0 * MEGABIT, 1);
        assert!(matches!(finding, PolicerFinding::Policer(_)));
        let arrival = |sequence: u64| PacketArrival {
            sequence,
            sent: MonotonicTime::from_nanos(sequence * 100_000),
            received: MonotonicTime::from_nanos(sequence * 100_000 + 5_000_000),
            ttl: None,
            type_of_service: None,
        };
        let stream = PacketStream {
            sent: PacketCount::new(3000),
            arrivals: (0..3000).filter(|number| *number < 200 || number % 3 != 0).map(arrival).collect(),
        };
        let look = |dropped| detect(&stream, ByteCount::new(1476), Duration::from_micros(100), dropped);
        assert!(matches!(look(None), PolicerFinding::Policer(_)), "{:?}", look(None));
        assert_eq!(look(Some(PacketCount::new(900))), PolicerFinding::None(NoPolicerReason::Receiver));
    }
}
