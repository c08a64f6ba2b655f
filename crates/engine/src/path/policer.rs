//! Policer detection, by a stream half as fast again as the measured capacity.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_analysis::capacity::{CapacityBound, CapacityEstimate, PacketLayout};
use linerate_analysis::policer::{NoPolicerReason, PolicerFinding, detect};
use linerate_model::path::PolicerDetection;
use linerate_units::{BitRate, ByteCount, PacketCount, Ratio};

use super::convert;
use super::linerate::{PathKnowledge, name};
use super::record::PathRecord;
use super::search::{full_packets, packet};
use crate::phases::AbortReason;
use crate::probe::ProbeError;
use crate::probe::messages::{PacketRecord, RecordDetail, SendLimit, SendOrder};

/// Stream rate as a multiple of the capacity: not an integer, see [`linerate_analysis::policer`].
const RATE_FACTOR: f64 = 1.5;

/// The same where a stream at that rate had to wait for the path's link, which may be little faster than a policer: as much
/// as the search sent, which then hardly waited.
const LOW_RATE_FACTOR: f64 = 1.06;
const MAX_SEARCH_WAIT_PACKETS: f64 = 6.0;

/// Duration of the stream, unless that makes too many packets, or too few.
const TIME: f64 = 1.0;
const LONGEST: Duration = Duration::from_secs(4);
const FEWEST: f64 = 500.0;
const MOST: f64 = 30_000.0;

/// Factor of the duration and of the packets of a second stream, where the first one lost little: credit for a second of
/// traffic is usual for token buckets, and has to be used up first.
const SECOND_STREAM_FACTOR: f64 = 4.0;

/// A queue that held packets back for longer than this, and for longer than this number of packets takes, is no
/// policer's.
const MAX_POLICER_DELAY: Duration = Duration::from_millis(10);
const MAX_POLICER_DELAY_PACKETS: f64 = 30.0;

pub(super) fn measure(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
    outcome: &CapacityEstimate,
) -> Result<(), AbortReason> {
    let Some(capacity) = outcome.capacity else {
        record.unknown(&format!("{}.policer", name(direction)), "no packet of the search arrived");
        return Ok(());
    };
    let packet = packet(record, way, direction);
    let verdict = match skip_reason(outcome, capacity, &packet) {
        Some(evidence) => Ok(PolicerDetection { present: false, bits_per_second: None, burst_bytes: None, evidence }),
        None => test(record, way, direction, capacity, (&packet, waited_packets(outcome, capacity, &packet))),
    };
    match verdict {
        Ok(policer) => record.direction(direction).policer = Some(policer),
        Err(error) => record.without(&[&format!("{}.policer", name(direction))], error)?,
    }
    Ok(())
}

/// Reason to skip the test, from the capacity search.
fn skip_reason(outcome: &CapacityEstimate, capacity: BitRate, packet: &PacketLayout) -> Option<String> {
    if let CapacityBound::AtLeast(_) = outcome.bound {
        let rate = linerate_units::display::rate(capacity);
        return Some(format!("nothing held packets back up to {rate}, the highest rate that was reached"));
    }
    if outcome.loss.is_none_or(|loss| loss == Ratio::ZERO) {
        return Some("nothing was lost while more was sent than the path carries: a queue held the surplus".to_owned());
    }
    let waited = outcome.delay_growth.map_or(Duration::ZERO, |(_, most)| most);
    let packets = packet.gap(capacity).unwrap_or_default().mul_f64(MAX_POLICER_DELAY_PACKETS);
    (waited > MAX_POLICER_DELAY.max(packets)).then(|| {
        let shown = linerate_units::display::duration(waited);
        format!("packets waited up to {shown} before any was lost: a queue, not a policer")
    })
}

/// Longest wait of the search's packets, in the time that one of them takes.
fn waited_packets(outcome: &CapacityEstimate, capacity: BitRate, packet: &PacketLayout) -> f64 {
    let waited = outcome.delay_growth.map_or(Duration::ZERO, |(_, most)| most);
    let gap = packet.gap(capacity).unwrap_or(LONGEST);
    waited.as_secs_f64() / gap.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn test(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
    capacity: BitRate,
    (packet, waited): (&PacketLayout, f64),
) -> Result<PolicerDetection, ProbeError> {
    let rate = capacity * RATE_FACTOR;
    let found = match send_above(record, way, direction, (rate, packet), 1.0)? {
        PolicerFinding::None(NoPolicerReason::LittleLoss) => {
            send_above(record, way, direction, (rate, packet), SECOND_STREAM_FACTOR)?
        }
        queue @ PolicerFinding::None(NoPolicerReason::Queue) if waited <= MAX_SEARCH_WAIT_PACKETS => {
            let rate = capacity * LOW_RATE_FACTOR;
            match send_above(record, way, direction, (rate, packet), SECOND_STREAM_FACTOR)? {
                PolicerFinding::None(_) => queue,
                found @ PolicerFinding::Policer(_) => found,
            }
        }
        found => found,
    };
    Ok(describe(found))
}

/// Sends a stream at this rate, for that many times the usual duration, and judges its losses.
fn send_above(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
    (rate, packet): (BitRate, &PacketLayout),
    factor: f64,
) -> Result<PolicerFinding, ProbeError> {
    let gap = packet.gap(rate).unwrap_or(LONGEST);
    let usual = (TIME / gap.as_secs_f64()).clamp(FEWEST, MOST);
    let count = (usual * factor).min(LONGEST.as_secs_f64() / gap.as_secs_f64());
    let order = SendOrder {
        limit: SendLimit { count: Some(PacketCount::new(ByteCount::from_f64(count).get().max(1))), duration: None },
        ..full_packets(way.session.new_stream(), packet, rate, LONGEST)
    };
    let time = Duration::from_secs_f64(gap.as_secs_f64() * count);
    let (sent, packets, dropped) = stream(record, way, direction, order, time)?;
    record.count_traffic(direction, packet.bytes(sent));
    Ok(detect(&convert::stream(sent, &packets), packet.size(), gap, dropped))
}

pub(super) type StreamRecord = (PacketCount, Vec<PacketRecord>, Option<PacketCount>);

/// Sends a stream of this duration and collects its packets.
pub(super) fn stream(
    record: &PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
    order: SendOrder,
    time: Duration,
) -> Result<StreamRecord, ProbeError> {
    let session = way.session;
    let interrupted = |_: AbortReason| ProbeError::Interrupted;
    Ok(match direction {
        Direction::Up => {
            session.far_receive(order.stream, RecordDetail::Arrivals)?;
            let sending = session.send(order)?;
            record.wait(time + way.patience()).map_err(interrupted)?;
            let sent = sending.stop().packets;
            let far = session.far_collect(order.stream)?;
            (sent, far.packets, far.dropped_in_host)
        }
        Direction::Down => {
            let reception = session.receive(order.stream, RecordDetail::Arrivals)?;
            session.far_send(order)?;
            record.wait(time + way.patience()).map_err(interrupted)?;
            let sent = session.far_stop_sending(order.stream)?.packets;
            let (_, near) = reception.finish();
            (sent, near.packets, near.dropped_in_host)
        }
    })
}

fn describe(found: PolicerFinding) -> PolicerDetection {
    let none = |evidence: &str| PolicerDetection {
        present: false,
        bits_per_second: None,
        burst_bytes: None,
        evidence: evidence.to_owned(),
    };
    match found {
        PolicerFinding::Policer(policer) => PolicerDetection {
            present: true,
            bits_per_second: Some(policer.rate.bits_per_second()),
            burst_bytes: Some(policer.burst.get()),
            evidence: format!(
                "a token bucket explains which packets passed and which were lost, but for {:.1} %, and none waited",
                policer.misfits.get() * 100.0
            ),
        },
        PolicerFinding::None(NoPolicerReason::LittleLoss) => none("too little was lost of a stream above the capacity"),
        PolicerFinding::None(NoPolicerReason::Queue) => {
            none("packets waited before any was lost: a queue, not a policer")
        }
        PolicerFinding::None(NoPolicerReason::Irregular) => none("losses do not follow a bucket that fills at a rate"),
        PolicerFinding::None(NoPolicerReason::Receiver) => {
            none("the receiving host itself dropped packets that had arrived")
        }
        PolicerFinding::None(NoPolicerReason::Unclear) => {
            none("delays vary so much that a policer cannot be distinguished from other causes")
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_analysis::capacity::SearchLimiter;
    use linerate_analysis::policer::Policer;

    use super::super::test_support::found;
    use super::*;

    const PACKET: PacketLayout = PacketLayout { payload: ByteCount::new(1472), headers: ByteCount::new(28) };

    fn rate(megabits: f64) -> BitRate {
        BitRate::from_bits_per_second(megabits * 1e6)
    }

    #[test]
    fn a_search_that_found_no_bottleneck_found_no_policer() {
        for limiter in [SearchLimiter::Sender, SearchLimiter::MaximumRate, SearchLimiter::Bytes] {
            let outcome = CapacityEstimate { bound: CapacityBound::AtLeast(limiter), ..found(Some(100.0)) };
            let reason = skip_reason(&outcome, rate(100.0), &PACKET).expect("nothing held packets back");
            assert_eq!(reason, "nothing held packets back up to 100 Mbit/s, the highest rate that was reached");
        }
    }

    #[test]
    fn without_loss_a_queue_held_the_surplus() {
        for loss in [None, Some(Ratio::ZERO)] {
            let outcome = CapacityEstimate { loss, ..found(Some(100.0)) };
            let reason = skip_reason(&outcome, rate(100.0), &PACKET).expect("a queue");
            assert!(reason.starts_with("nothing was lost while more was sent"), "{reason}");
        }
    }

    #[test]
    fn packets_that_waited_long_were_in_a_queue() {
        // 30 packets of 1500 bytes take 3.6 ms at 100 Mbit/s, and 36 ms at 10 Mbit/s.
        for (megabits, waited, skips) in [
            (100.0, None, false),
            (100.0, Some(10_000), false),
            (100.0, Some(10_001), true),
            (10.0, Some(35_999), false),
            (10.0, Some(36_001), true),
        ] {
            let outcome = CapacityEstimate {
                loss: Ratio::new(0.1),
                delay_growth: waited.map(|time| (Duration::ZERO, Duration::from_micros(time))),
                ..found(Some(megabits))
            };
            let reason = skip_reason(&outcome, rate(megabits), &PACKET);
            assert_eq!(reason.is_some(), skips, "{megabits} Mbit/s, {waited:?} µs: {reason:?}");
        }
    }

    #[test]
    fn only_a_found_policer_has_figures() {
        let policer =
            Policer { rate: rate(20.0), burst: ByteCount::new(60_000), misfits: Ratio::new(0.004).expect("finite") };
        let described = describe(PolicerFinding::Policer(policer));
        assert_eq!(
            (described.present, described.bits_per_second, described.burst_bytes),
            (true, Some(20e6), Some(60_000))
        );
        assert!(described.evidence.contains("but for 0.4 %"), "{}", described.evidence);
        let mut evidences = std::collections::HashSet::new();
        for reason in [
            NoPolicerReason::LittleLoss,
            NoPolicerReason::Queue,
            NoPolicerReason::Irregular,
            NoPolicerReason::Receiver,
            NoPolicerReason::Unclear,
        ] {
            let described = describe(PolicerFinding::None(reason));
            assert_eq!((described.present, described.bits_per_second, described.burst_bytes), (false, None, None));
            assert!(evidences.insert(described.evidence), "each reason has its own text");
        }
    }
}
