//! Table of the autonomous systems that announce addresses, from a file of this host.

use std::collections::HashMap;
use std::net::IpAddr;

use super::route::AutonomousSystem;

/// Announced ranges of addresses.
#[derive(Clone, Debug, Default)]
pub struct AutonomousSystemTable {
    /// In the order of their first addresses.
    ranges: Vec<AnnouncedRange>,
    /// Largest last address of all ranges up to this one.
    reach: Vec<u128>,
    holders: Vec<String>,
}

/// Range of addresses of one autonomous system; IPv4 is mapped into IPv6.
#[derive(Clone, Copy, Debug)]
struct AnnouncedRange {
    first: u128,
    last: u128,
    number: u32,
    /// Index of the holder's name.
    holder: Option<u32>,
}

/// Line of a file that has neither format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLineError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Problem with it.
    pub problem: &'static str,
}

impl AutonomousSystemTable {
    /// Reads lines with tabulators: those of iptoasn.com (first address, last address, number, country, holder) and those
    /// of CAIDA's prefix2as (prefix, length, number; of several numbers the first). Addresses without a number are left
    /// out, comments (`#`) and empty lines too.
    ///
    /// # Errors
    /// The first line of another format.
    pub fn parse(text: &str) -> Result<Self, TableLineError> {
        let (mut table, mut known) = (Self::default(), HashMap::new());
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let range = table.range(line, &mut known).map_err(|problem| TableLineError { line: index + 1, problem })?;
            table.ranges.extend(range);
        }
        table.ranges.sort_unstable_by_key(|range| range.first);
        let mut reach = 0;
        for range in &table.ranges {
            reach = reach.max(range.last);
            table.reach.push(reach);
        }
        Ok(table)
    }

    fn range<'t>(
        &mut self,
        line: &'t str,
        known: &mut HashMap<&'t str, u32>,
    ) -> Result<Option<AnnouncedRange>, &'static str> {
        let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
        let [start, end, numbers, ..] = fields[..] else { return Err("fewer than three columns") };
        let start: IpAddr = start.parse().map_err(|_| "the first column is no address")?;
        let (first, last) = match end.parse::<IpAddr>() {
            Ok(end) if end.is_ipv4() == start.is_ipv4() => (number_of(start), number_of(end)),
            Ok(_) => return Err("an IPv4 and an IPv6 address"),
            Err(_) => prefix(start, end).ok_or("the second column is neither an address nor a length of a prefix")?,
        };
        if last < first {
            return Err("the last address is before the first");
        }
        let digits: &str =
            numbers.trim_start_matches("AS").split(['_', ',', '{', '}']).find(|one| !one.is_empty()).unwrap_or("");
        let number: u32 = digits.parse().map_err(|_| "the third column is no number of an autonomous system")?;
        let holder = fields.get(4).copied().filter(|holder| !holder.is_empty()).map(|holder| {
            *known.entry(holder).or_insert_with(|| {
                self.holders.push(holder.to_owned());
                u32::try_from(self.holders.len() - 1).unwrap_or(u32::MAX)
            })
        });
        // Number 0 means "not announced" (iptoasn.com; RFC 7607).
        Ok((number != 0).then_some(AnnouncedRange { first, last, number, holder }))
    }

    /// Number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True when no range is announced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The autonomous system of the smallest range that has the address.
    #[must_use]
    pub fn find(&self, address: IpAddr) -> Option<AutonomousSystem> {
        let address = number_of(address);
        let end = self.ranges.partition_point(|range| range.first <= address);
        let candidates = self.ranges[..end].iter().zip(&self.reach[..end]).rev();
        let containing =
            candidates.take_while(|(_, reach)| **reach >= address).filter(|(range, _)| range.last >= address);
        let (range, _) = containing.min_by_key(|(range, _)| range.last - range.first)?;
        let holder = range.holder.and_then(|index| self.holders.get(usize::try_from(index).ok()?)).cloned();
        Some(AutonomousSystem { number: range.number, holder })
    }
}

/// An address as a number; IPv4 is mapped into IPv6.
fn number_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// First and last address of a prefix.
fn prefix(address: IpAddr, length: &str) -> Option<(u128, u128)> {
    let length: u32 = length.parse().ok()?;
    let length = if address.is_ipv4() { length.checked_add(96)? } else { length };
    let host = 128_u32.checked_sub(length)?;
    let mask = u128::MAX.checked_shr(length).unwrap_or(0);
    debug_assert_eq!(mask.count_ones(), host);
    let first = number_of(address) & !mask;
    Some((first, first | mask))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find(table: &AutonomousSystemTable, address: &str) -> Option<(u32, Option<String>)> {
        let found = table.find(address.parse().expect("an address"))?;
        Some((found.number, found.holder))
    }

    #[test]
    fn both_formats_are_read() {
        let text = "# made up\n192.0.2.0\t192.0.2.127\t64500\tDE\tEXAMPLE-A\n192.0.2.128\t192.0.2.255\t0\tNone\tNot routed\n\
                    198.51.0.0\t16\t64501_64502\n198.51.100.0\t24\t{64503,64504}\n2001:db8::\t32\t64505\n";
        let table = AutonomousSystemTable::parse(text).expect("both formats");
        assert_eq!(table.len(), 4);
        assert_eq!(find(&table, "192.0.2.1"), Some((64_500, Some("EXAMPLE-A".to_owned()))));
        assert_eq!(find(&table, "192.0.2.200"), None, "not announced");
        assert_eq!(find(&table, "198.51.1.1"), Some((64_501, None)));
        assert_eq!(find(&table, "198.51.100.7"), Some((64_503, None)), "the smaller prefix");
        assert_eq!(find(&table, "198.51.101.7"), Some((64_501, None)), "behind the smaller one");
        assert_eq!(find(&table, "2001:db8::7"), Some((64_505, None)));
        assert_eq!(find(&table, "203.0.113.1"), None);
    }

    #[test]
    fn other_lines_are_named() {
        let problem = |line: &str| AutonomousSystemTable::parse(&format!("\n{line}\n")).expect_err("no such format");
        for line in [
            "192.0.2.0\t24",
            "x\t24\t1",
            "192.0.2.0\t33\t1",
            "192.0.2.0\t24\tx",
            "192.0.2.9\t192.0.2.1\t1",
            "::\t0.0.0.0\t1",
        ] {
            assert_eq!(problem(line).line, 2, "{line}");
        }
        assert_eq!(problem("192.0.2.0 24 1").problem, "fewer than three columns");
        assert!(AutonomousSystemTable::parse("").expect("no line").is_empty());
    }

    proptest! {
        #[test]
        fn the_smallest_prefix_wins(
            prefixes in prop::collection::vec((any::<u32>(), 0_u32..=32), 1..30), address in any::<u32>()
        ) {
            let line = |(index, (first, length)): (usize, &(u32, u32))| {
                format!("{}\t{length}\t{}", std::net::Ipv4Addr::from(*first), index + 1)
            };
            let lines: Vec<String> = prefixes.iter().enumerate().map(line).collect();
            let table = AutonomousSystemTable::parse(&lines.join("\n")).expect("prefixes");
            let matches = |(first, length): &&(u32, u32)| (first ^ address).checked_shr(32 - length).unwrap_or(0) == 0;
            let longest = prefixes.iter().filter(matches).map(|(_, length)| *length).max();
            let found = table.find(std::net::Ipv4Addr::from(address).into()).map(|found| prefixes[found.number as usize - 1].1);
            prop_assert_eq!(found, longest);
        }

        #[test]
        fn any_text_is_read_without_panic(text in "([0-9a-f:.]{0,9}\t?){0,8}\n?") {
            let _ = AutonomousSystemTable::parse(&text);
        }
    }
}
