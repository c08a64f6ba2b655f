//! The path's own loss, by an evenly paced stream well below its capacity: there no queue is full.

use core::time::Duration;
use std::collections::BTreeSet;

use linerate_analysis::capacity::{CapacityEstimate, PacketLayout};
use linerate_model::direction::Direction;
use linerate_units::{BitRate, ByteCount, CompactCollect, PacketCount};

use super::linerate::PathKnowledge;
use super::policer::stream;
use super::record::PathRecord;
use super::search::{full_packets, packet};
use crate::phases::AbortReason;
use crate::probe::ProbeError;
use crate::probe::messages::{PacketRecord, SendLimit, SendOrder};

/// Rate of the stream as a share of the capacity: low enough for an error of the search.
const RATE_SHARE: f64 = 0.7;

/// Number of packets that show losses of a few in ten thousand, if they fit into the longest time.
const PACKETS: f64 = 5000.0;
const LONGEST: Duration = Duration::from_secs(3);
/// Time that a fast path sends for, and its largest number of packets: they tell rarer losses from none.
const USUAL: Duration = Duration::from_secs(2);
const MOST_PACKETS: f64 = 30_000.0;

/// Measures the loss, and adds it to the capacity of the direction; a failure leaves it unknown.
pub(super) fn measure(
    record: &mut PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
    outcome: &CapacityEstimate,
) -> Result<(), AbortReason> {
    let Some(capacity) = outcome.capacity.filter(|capacity| !capacity.is_zero()) else { return Ok(()) };
    record.check()?;
    let layout = packet(record, way, direction);
    let Ok((sent, packets)) = send(record, way, direction, capacity * RATE_SHARE, &layout) else { return Ok(()) };
    record.count_traffic(direction, layout.bytes(sent));
    if let Some(capacity) = &mut record.direction(direction).capacity {
        let share = lost(sent, &packets).as_f64() / sent.as_f64().max(1.0);
        capacity.packets_below = Some(sent.get());
        capacity.loss_below = (!sent.is_zero()).then_some(share);
        // Loss behind the bottleneck hides its part of the capacity.
        capacity.high_bits_per_second = capacity.high_bits_per_second.map(|high| high / (1.0 - share.clamp(0.0, 0.5)));
    }
    Ok(())
}

fn send(
    record: &PathRecord<'_>,
    way: &PathKnowledge<'_>,
    direction: Direction,
    rate: BitRate,
    layout: &PacketLayout,
) -> Result<(PacketCount, Vec<PacketRecord>), ProbeError> {
    let gap = layout.gap(rate).unwrap_or(LONGEST).max(Duration::from_nanos(1));
    let count = packet_count(gap);
    let order = SendOrder {
        limit: SendLimit { count: Some(PacketCount::new(ByteCount::from_f64(count).get().max(1))), duration: None },
        ..full_packets(way.session.new_stream(), layout, rate, LONGEST)
    };
    let time = Duration::from_secs_f64(gap.as_secs_f64() * count);
    stream(record, way, direction, order, time).map(|(sent, packets, _)| (sent, packets))
}

/// Number of packets at this distance: 5000, or as many as the usual time holds, in the longest time.
fn packet_count(gap: Duration) -> f64 {
    let within = |time: Duration| time.as_secs_f64() / gap.as_secs_f64();
    within(USUAL).clamp(PACKETS, MOST_PACKETS).min(within(LONGEST)).max(1.0)
}

/// Packets that never arrived.
fn lost(sent: PacketCount, packets: &[PacketRecord]) -> PacketCount {
    let arrived: BTreeSet<u64> = packets.iter().map(|packet| u64::from(packet.sequence)).collect_compactly();
    PacketCount::new(sent.get().saturating_sub(arrived.len() as u64))
}

#[cfg(test)]
mod tests {
    use linerate_units::WallTime;

    use super::*;

    fn packet(sequence: u32) -> PacketRecord {
        PacketRecord {
            sequence,
            sent: WallTime::from_unix(Duration::ZERO),
            arrived: WallTime::from_unix(Duration::from_millis(1)),
            size: ByteCount::new(1472),
            time_to_live: None,
            type_of_service: None,
        }
    }

    #[test]
    fn faster_paths_send_more_packets_in_the_same_time() {
        let count = |gap: Duration| ByteCount::from_f64(packet_count(gap)).get();
        assert_eq!(count(Duration::from_secs(10)), 1);
        assert_eq!(count(Duration::from_millis(10)), 300, "three seconds");
        assert_eq!(count(Duration::from_micros(500)), 5000);
        assert_eq!(count(Duration::from_micros(100)), 20_000, "two seconds");
        assert_eq!(count(Duration::from_micros(1)), 30_000);
    }

    #[test]
    fn copies_and_late_packets_are_no_losses() {
        let arrived = [packet(0), packet(3), packet(1), packet(3)];
        assert_eq!(lost(PacketCount::new(5), &arrived), PacketCount::new(2));
        assert_eq!(lost(PacketCount::new(3), &arrived), PacketCount::ZERO);
        assert_eq!(lost(PacketCount::new(2), &[]), PacketCount::new(2));
    }
}
