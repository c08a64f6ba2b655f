use std::collections::BTreeMap;

use linerate_units::{CompactSort, PacketCount, TypeOfService};

use super::PacketStream;

/// Header fields on arrival, with counts, the most frequent first: several hop limits mean several routes or a change
/// of route, other classes than sent mean that the path rewrites them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivalMarks {
    /// TTLs or hop limits.
    pub ttl: Vec<(u8, PacketCount)>,
    /// Types of service or traffic classes (DSCP and ECN).
    pub type_of_service: Vec<(TypeOfService, PacketCount)>,
}

impl ArrivalMarks {
    /// Collects the marks of all arrivals, duplicates included; empty where they were not read.
    #[must_use]
    pub fn of(stream: &PacketStream) -> Self {
        let classes = counted(stream.known().filter_map(|arrival| arrival.type_of_service.map(TypeOfService::get)));
        Self {
            ttl: counted(stream.known().filter_map(|arrival| arrival.ttl)),
            type_of_service: classes.into_iter().map(|(octet, count)| (TypeOfService::new(octet), count)).collect(),
        }
    }
}

/// Counts of values, the most frequent first, then by value.
fn counted(values: impl Iterator<Item = u8>) -> Vec<(u8, PacketCount)> {
    let mut counts = BTreeMap::<u8, u64>::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().map(|(value, count)| (value, PacketCount::new(count))).collect();
    counts.sort_compactly_by_key(|(_, count)| core::cmp::Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::super::stream::stream;
    use super::*;

    #[test]
    fn the_most_frequent_first() {
        let mut stream = stream(4, &[(0, 0), (1, 0), (2, 0), (3, 0)]);
        for (arrival, ttl) in stream.arrivals.iter_mut().zip([57, 60, 60]) {
            arrival.ttl = Some(ttl);
        }
        stream.arrivals[3].type_of_service = Some(TypeOfService::new(0xB8));
        let marks = ArrivalMarks::of(&stream);
        assert_eq!(marks.ttl, [(60, PacketCount::new(2)), (57, PacketCount::new(1))]);
        assert_eq!(marks.type_of_service, [(TypeOfService::new(0xB8), PacketCount::new(1))]);
    }
}
