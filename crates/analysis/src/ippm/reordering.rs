use core::time::Duration;

use linerate_units::{MonotonicTime, PacketCount, Ratio};

use super::{PacketArrival, PacketStream};
use crate::statistics::SampleSummary;

/// Number of later packets after which TCP considers a packet lost: three duplicate acknowledgements (RFC 5681 §3.2).
const DUPLICATE_ACK_THRESHOLD: usize = 3;

/// Reordering-free runs: packets in order between reordered ones (RFC 4737 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeRuns {
    /// Number of runs that ended with a reordered packet.
    pub count: PacketCount,
    /// Packets of the shortest run.
    pub shortest: PacketCount,
    /// Packets per run.
    pub mean: Ratio,
    /// Packets of the longest run.
    pub longest: PacketCount,
}

/// Reordering of a stream, computed from its first copies in order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReordering {
    /// Packets that arrived.
    pub received: PacketCount,
    /// Packets that arrived after one with a higher number (`Type-P-Reordered`, RFC 4737 §3.3).
    pub reordered: PacketCount,
    /// Reordered ratio (RFC 4737 §4.1); `None` when nothing was received.
    pub ratio: Option<Ratio>,
    /// Extents of the reordered packets, in packets (RFC 4737 §4.2): distance to the first earlier arrival with a
    /// higher number. `None` when none was reordered.
    pub extent: Option<SampleSummary<f64>>,
    /// Late times of the reordered packets, relative to that first arrival (RFC 4737 §4.3).
    pub late_time: Option<SampleSummary<Duration>>,
    /// Packets that directly follow three with higher numbers: TCP without SACK would retransmit them needlessly
    /// (n-reordering with n = 3, RFC 4737 §5.4).
    pub three_reordered: PacketCount,
    /// Ratio of those to received packets: the degree of 3-reordering.
    pub three_reordered_ratio: Option<Ratio>,
    /// Runs in order; `None` when nothing was reordered.
    pub free_runs: Option<FreeRuns>,
    /// Share of the sent packets that arrived directly after another than the one before them in number, a packet
    /// before the first counting as received (draft-ietf-ippm-reporting). A packet after a lost one counts too, so that
    /// this is not zero on a path with loss. `None` when nothing was sent.
    pub out_of_sequence: Option<Ratio>,
}

impl StreamReordering {
    /// Computes the reordering of a stream.
    #[must_use]
    pub fn of(stream: &PacketStream) -> Self {
        let arrivals: Vec<&PacketArrival> = stream.first_copies().collect();
        let found = reordered(&arrivals);
        let received = PacketCount::new(arrivals.len() as u64);
        let count = PacketCount::new(found.len() as u64);
        let three_reordered = PacketCount::new(three_reordered(&arrivals));
        let extents: Vec<f64> = found.iter().map(|packet| PacketCount::new(packet.extent).as_f64()).collect();
        let late: Vec<Duration> = found.iter().map(|packet| packet.late).collect();
        Self {
            received,
            reordered: count,
            ratio: count.share_of(received),
            extent: SampleSummary::of(&extents),
            late_time: SampleSummary::of(&late),
            three_reordered,
            three_reordered_ratio: three_reordered.share_of(received),
            free_runs: free_runs(&found),
            out_of_sequence: out_of_sequence(&arrivals).share_of(stream.sent),
        }
    }
}

/// Reordered packet.
struct ReorderedPacket {
    place: u64,
    extent: u64,
    late: Duration,
}

/// Finds the reordered packets: those below the highest number so far. Of the former highest numbers, which ascend, the
/// first one above a packet's own number is found by bisection.
fn reordered(arrivals: &[&PacketArrival]) -> Vec<ReorderedPacket> {
    let mut highest: Vec<(u64, usize, MonotonicTime)> = Vec::new();
    let mut found = Vec::new();
    for (place, arrival) in arrivals.iter().enumerate() {
        if highest.last().is_none_or(|(sequence, ..)| *sequence < arrival.sequence) {
            highest.push((arrival.sequence, place, arrival.received));
            continue;
        }
        let first_above = highest.partition_point(|(sequence, ..)| *sequence < arrival.sequence);
        let (_, before, received) = highest[first_above];
        found.push(ReorderedPacket {
            place: place as u64,
            extent: (place - before) as u64,
            late: arrival.received.since(received),
        });
    }
    found
}

/// Number of packets that directly follow three with higher numbers.
fn three_reordered(arrivals: &[&PacketArrival]) -> u64 {
    let is = |window: &&[&PacketArrival]| {
        window[..DUPLICATE_ACK_THRESHOLD]
            .iter()
            .all(|before| before.sequence > window[DUPLICATE_ACK_THRESHOLD].sequence)
    };
    arrivals.windows(DUPLICATE_ACK_THRESHOLD + 1).filter(is).count() as u64
}

/// Runs of packets in order that end with a reordered packet, which is not counted.
fn free_runs(found: &[ReorderedPacket]) -> Option<FreeRuns> {
    let starts = core::iter::once(0).chain(found.iter().map(|packet| packet.place + 1));
    let lengths: Vec<u64> = starts.zip(found).map(|(start, packet)| packet.place - start).collect();
    let count = PacketCount::new(lengths.len() as u64);
    Some(FreeRuns {
        count,
        shortest: PacketCount::new(*lengths.iter().min()?),
        mean: PacketCount::new(lengths.iter().sum()).share_of(count)?,
        longest: PacketCount::new(*lengths.iter().max()?),
    })
}

fn out_of_sequence(arrivals: &[&PacketArrival]) -> PacketCount {
    let mut expected = 0;
    let count = arrivals.iter().filter(|arrival| {
        let other = arrival.sequence != expected;
        expected = arrival.sequence + 1;
        other
    });
    PacketCount::new(count.count() as u64)
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small counts")]
mod tests {
    use proptest::prelude::*;

    use super::super::stream::stream;
    use super::*;

    /// Packets in this order, one each millisecond.
    fn order(numbers: &[u64]) -> PacketStream {
        let mut result = stream(numbers.iter().max().map_or(0, |last| last + 1), &[]);
        for (place, &sequence) in (0_u64..).zip(numbers) {
            let mut arrival = stream(sequence + 1, &[(sequence, 0)]).arrivals[0];
            arrival.received = MonotonicTime::from_nanos(place * 1_000_000);
            result.arrivals.push(arrival);
        }
        result
    }

    #[test]
    fn orders_in_the_manner_of_rfc_4737_section_7() {
        // 1 2 3 7 8 9 10 4 5 6: 4, 5 and 6 are reordered, with extents 4, 5 and 6; 4 is 3-reordered, 5
        // and 6 only follow other packets that came late.
        let reordering = StreamReordering::of(&order(&[1, 2, 3, 7, 8, 9, 10, 4, 5, 6]));
        assert_eq!(reordering.reordered, PacketCount::new(3));
        let extent = reordering.extent.expect("reordered");
        assert_eq!((extent.min, extent.median, extent.max), (4.0, 5.0, 6.0));
        assert_eq!(reordering.late_time.map(|late| late.max), Some(Duration::from_millis(6)));
        assert_eq!(reordering.three_reordered, PacketCount::new(1));
        assert_eq!(reordering.ratio, Ratio::new(0.3));
        // 1 4 3 5 2 7 8 6: 3, 2 and 6 are reordered, extents 1, 3, 2; none but 2 follows three higher ones.
        let reordering = StreamReordering::of(&order(&[1, 4, 3, 5, 2, 7, 8, 6]));
        let extent = reordering.extent.expect("reordered");
        assert_eq!((reordering.reordered.get(), extent.min, extent.max), (3, 1.0, 3.0));
        assert_eq!(reordering.three_reordered.get(), 1);
        // Runs in order: 1 4; 5; 7 8.
        let runs = reordering.free_runs.expect("reordered");
        assert_eq!((runs.count.get(), runs.shortest.get(), runs.longest.get()), (3, 1, 2));
    }

    #[test]
    fn loss_and_duplicates_are_no_reordering() {
        let mut stream = order(&[0, 1, 4, 5, 9]);
        stream.arrivals.push(stream.arrivals[1]);
        let reordering = StreamReordering::of(&stream);
        assert_eq!((reordering.reordered, reordering.ratio), (PacketCount::ZERO, Some(Ratio::ZERO)));
        assert_eq!((reordering.extent, reordering.free_runs, reordering.late_time), (None, None, None));
        // By the draft's rule 4 and 9 are out of sequence, of ten that were sent.
        assert_eq!(reordering.out_of_sequence, Ratio::new(0.2));
        assert_eq!(StreamReordering::of(&order(&[])).ratio, None);
    }

    #[test]
    fn one_packet_that_is_overtaken_by_one() {
        let reordering = StreamReordering::of(&order(&[0, 2, 1, 3]));
        assert_eq!((reordering.reordered.get(), reordering.three_reordered.get()), (1, 0));
        assert_eq!(reordering.out_of_sequence, Ratio::new(0.75));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definitions(numbers in proptest::collection::vec(0_u64..60, 0..120)) {
            let mut seen = std::collections::BTreeSet::new();
            let numbers: Vec<u64> = numbers.into_iter().filter(|number| seen.insert(*number)).collect();
            let reordering = StreamReordering::of(&order(&numbers));
            let extents: Vec<usize> = (0..numbers.len())
                .filter_map(|i| (0..i).find(|j| numbers[*j] > numbers[i]).map(|j| i - j))
                .collect();
            prop_assert_eq!(reordering.reordered.get(), extents.len() as u64);
            prop_assert_eq!(reordering.extent.map(|extent| extent.max), extents.iter().max().map(|most| *most as f64));
            let three = (3..numbers.len()).filter(|i| (1..=3).all(|back| numbers[i - back] > numbers[*i])).count();
            prop_assert_eq!(reordering.three_reordered.get(), three as u64);
            prop_assert!(reordering.three_reordered <= reordering.reordered);
        }
    }
}
