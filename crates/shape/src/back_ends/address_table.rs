//! Hash tables of `u32` that find the class of an address at a cost that does not grow with their number.
//!
//! Prefixes of one number of whole bytes form a tree: a table of 256 buckets by one of these bytes, and below each
//! bucket with more than [`MAX_BUCKET`] entries another one. The byte is the one that divides the entries best.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::plan::{FilterProtocol, QdiscHandle};
use crate::policy::HostPrefix;

/// Number of entries that are compared one by one.
const MAX_BUCKET: usize = 16;

/// Largest depth of tables: `u32` follows at most eight links (`TC_U32_MAXDEPTH`).
const MAX_DEPTH: usize = 5;

/// Numbers of tables that users may choose, without those of the back ends.
const TABLES: core::ops::RangeInclusive<u16> = 0x10..=0x7ff;

/// Address field of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressField {
    Source,
    Destination,
}

impl AddressField {
    /// Offset in the header.
    const fn offset(self, family: FilterProtocol) -> usize {
        match (family, self) {
            (FilterProtocol::Ipv6, Self::Source) => 8,
            (FilterProtocol::Ipv6, Self::Destination) => 24,
            (_, Self::Source) => 12,
            (_, Self::Destination) => 16,
        }
    }
}

/// Filter into or out of a table: its `tc` options and the class that it selects.
pub(super) type TableFilter = (String, Option<QdiscHandle>);

/// Tables of one discipline, whose numbers are shared by its filters.
pub(super) struct AddressTables {
    next: u16,
}

struct Entry {
    bytes: [u8; 16],
    length: u8,
    class: QdiscHandle,
}

impl Entry {
    fn new((prefix, class): &(HostPrefix, QdiscHandle)) -> Self {
        let mut bytes = [0; 16];
        match prefix.address() {
            IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes = address.octets(),
        }
        Self { bytes, length: prefix.length(), class: *class }
    }

    /// Matches of the whole prefix, one for each of its words.
    fn matches(&self, offset: usize) -> String {
        let mut text = String::new();
        for (word, bytes) in self.bytes.chunks_exact(4).enumerate() {
            let bits = usize::from(self.length).saturating_sub(word * 32).min(32);
            if bits > 0 {
                let mask = u32::MAX << (32 - bits);
                let value = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                let _ = write!(text, "match u32 {value:#010x} {mask:#010x} at {} ", offset + word * 4);
            }
        }
        if text.is_empty() { "match u32 0 0 ".to_owned() } else { text }
    }
}

impl AddressTables {
    pub(super) const fn new() -> Self {
        Self { next: *TABLES.start() }
    }

    /// Filters of one family that select the class of an address, tables first. `None` when the kernel has too few
    /// tables.
    pub(super) fn filters(
        &mut self,
        family: FilterProtocol,
        field: AddressField,
        classes: &[(HostPrefix, QdiscHandle)],
    ) -> Option<Vec<TableFilter>> {
        let is_ipv6 = family == FilterProtocol::Ipv6;
        let mut by_bytes: BTreeMap<u8, Vec<Entry>> = BTreeMap::new();
        for entry in classes.iter().filter(|(prefix, _)| prefix.is_ipv6() == is_ipv6).map(Entry::new) {
            by_bytes.entry(entry.length / 8).or_default().push(entry);
        }
        let mut filters = Vec::new();
        for (bytes, entries) in by_bytes.into_iter().rev() {
            let offset = field.offset(family);
            self.place((entries.iter().collect(), usize::from(bytes)), offset, ("", 0), &mut filters)?;
        }
        Some(filters)
    }

    /// Places entries, which have this number of whole bytes, in the bucket that `place` names.
    fn place(
        &mut self,
        (entries, bytes): (Vec<&Entry>, usize),
        offset: usize,
        (place, depth): (&str, usize),
        filters: &mut Vec<TableFilter>,
    ) -> Option<()> {
        let byte = if entries.len() > MAX_BUCKET && depth < MAX_DEPTH { dividing_byte(&entries, bytes) } else { None };
        let Some(byte) = byte else {
            filters.extend(
                entries.iter().map(|entry| {
                    (format!("{place}{}flowid {}", entry.matches(offset), entry.class), Some(entry.class))
                }),
            );
            return Some(());
        };
        let table = self.next;
        self.next = Some(table + 1).filter(|_| TABLES.contains(&table))?;
        filters.push((format!("handle {table:x}: divisor 256"), None));
        let mut buckets: BTreeMap<u8, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            buckets.entry(entry.bytes[byte]).or_default().push(entry);
        }
        for (bucket, entries) in buckets {
            self.place((entries, bytes), offset, (&format!("ht {table:x}:{bucket:x}: "), depth + 1), filters)?;
        }
        let (word, mask) = (offset + byte / 4 * 4, 0xff00_0000_u32 >> (byte % 4 * 8));
        filters.push((format!("{place}match u32 0 0 hashkey mask {mask:#010x} at {word} link {table:x}:"), None));
        Some(())
    }
}

/// Byte with the smallest sum of squares of its buckets; `None` when all have the same bytes.
fn dividing_byte(entries: &[&Entry], bytes: usize) -> Option<usize> {
    let cost = |byte: usize| {
        let mut counts = [0_u64; 256];
        for entry in entries {
            counts[usize::from(entry.bytes[byte])] += 1;
        }
        counts.iter().map(|count| count * count).sum::<u64>()
    };
    let all = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    (0..bytes)
        .map(|byte| (cost(byte), byte))
        .filter(|(cost, _)| *cost < all.saturating_mul(all))
        .min()
        .map(|(_, byte)| byte)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::plan::arguments;

    /// Entries of each bucket, in order; those of the first list are at "".
    type Lists = BTreeMap<String, Vec<Vec<String>>>;

    fn lists(filters: &[TableFilter]) -> Lists {
        let mut lists = Lists::new();
        for (text, _) in filters {
            let mut words = arguments(text);
            if words[0] == "handle" {
                continue;
            }
            let list = if words[0] == "ht" { words.drain(..2).nth(1).expect("a bucket") } else { String::new() };
            lists.entry(list).or_default().push(words);
        }
        lists
    }

    /// The kernel's lookup: class, and number of entries compared.
    fn look_up(lists: &Lists, packet: &[u8]) -> (Option<String>, usize) {
        let mut compared = 0;
        (search(lists, "", packet, &mut compared), compared)
    }

    fn number(text: &str) -> u32 {
        text.strip_prefix("0x")
            .map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16))
            .expect("a number")
    }

    fn word(packet: &[u8], at: &str) -> u32 {
        let at: usize = at.parse().expect("an offset");
        u32::from_be_bytes(packet[at..at + 4].try_into().expect("four bytes"))
    }

    fn search(lists: &Lists, list: &str, packet: &[u8], compared: &mut usize) -> Option<String> {
        for words in lists.get(list).into_iter().flatten() {
            *compared += 1;
            let mut words = words.as_slice();
            let mut fits = true;
            while let ["match", "u32", ..] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                let any = words[2] == "0";
                fits &= any || word(packet, &words[5]) & number(&words[3]) == number(&words[2]);
                words = &words[if any { 4 } else { 6 }..];
            }
            if !fits {
                continue;
            }
            if words[0] == "flowid" {
                return Some(words[1].clone());
            }
            let mask = number(&words[2]);
            let bucket = (word(packet, &words[4]) & mask) >> mask.trailing_zeros();
            let found = search(lists, &format!("{}{bucket:x}:", words[6]), packet, compared);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn packet(address: IpAddr, field: AddressField) -> Vec<u8> {
        let mut packet = vec![0; 60];
        match address {
            IpAddr::V4(address) => {
                let at = field.offset(FilterProtocol::Ipv4);
                packet[at..at + 4].copy_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                let at = field.offset(FilterProtocol::Ipv6);
                packet[at..at + 16].copy_from_slice(&address.octets());
            }
        }
        packet
    }

    fn class(number: usize) -> QdiscHandle {
        QdiscHandle::class(1, 0x1000 + u16::try_from(number).expect("few"))
    }

    #[test]
    fn the_cost_does_not_grow_with_the_number() {
        for count in [1_u32, 16, 17, 300, 2_000, 16_000] {
            for spread in [1_u32, 7, 256, 65_536] {
                let address = |place: u32| Ipv4Addr::from(0x0a00_0000_u32.wrapping_add(place.wrapping_mul(spread)));
                let classes: Vec<(HostPrefix, QdiscHandle)> = (0..count)
                    .map(|place| (address(place).to_string().parse().expect("an address"), class(place as usize)))
                    .collect();
                let filters = AddressTables::new().filters(FilterProtocol::Ipv4, AddressField::Source, &classes);
                let filters = lists(&filters.expect("enough tables"));
                for place in (0..count).step_by(count.div_ceil(300) as usize) {
                    let packet = packet(address(place).into(), AddressField::Source);
                    let (found, compared) = look_up(&filters, &packet);
                    assert_eq!(found, Some(class(place as usize).to_string()), "{count} {spread}");
                    assert!(compared <= MAX_BUCKET + 3, "{compared} of {count} at {spread}");
                }
            }
        }
    }

    #[test]
    fn too_many_tables_are_refused() {
        let mut tables = AddressTables { next: *TABLES.end() };
        let classes: Vec<(HostPrefix, QdiscHandle)> = (0..5000_u32)
            .map(|place| (Ipv4Addr::from(place).to_string().parse().expect("an address"), class(place as usize)))
            .collect();
        assert_eq!(tables.filters(FilterProtocol::Ipv4, AddressField::Source, &classes), None);
    }

    fn prefixes() -> impl Strategy<Value = Vec<HostPrefix>> {
        let ipv4 = (any::<u32>(), 0_u8..=32).prop_map(|(address, length)| {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            format!("{}/{length}", Ipv4Addr::from((address & 0x0303_0303) & mask))
        });
        let ipv6 = (any::<u128>(), 0_u8..=128).prop_map(|(address, length)| {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            format!("{}/{length}", Ipv6Addr::from(address & 0x0101_0101_0101_0101_0101_0101_0101_0101 & mask))
        });
        let one = prop_oneof![ipv4, ipv6].prop_map(|text| text.parse::<HostPrefix>().expect("a prefix"));
        prop::collection::vec(one, 1..80)
    }

    fn contains(prefix: &HostPrefix, address: IpAddr) -> bool {
        let differ =
            |one: u128, other: u128, bits: u32| bits != 0 && (one ^ other).checked_shr(128 - bits).unwrap_or(0) != 0;
        let bits = u32::from(prefix.length());
        match (prefix.address(), address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                !differ(u128::from(one.to_bits()) << 96, u128::from(other.to_bits()) << 96, bits)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => !differ(one.to_bits(), other.to_bits(), bits),
            _ => false,
        }
    }

    proptest! {
        /// Every address has the class of the longest whole-byte group that contains it, and no other one has a class.
        #[test]
        fn tables_select_what_a_list_would(prefixes in prefixes(), seed in any::<u128>()) {
            let classes: Vec<_> = prefixes.iter().enumerate().map(|(number, prefix)| (*prefix, class(number))).collect();
            let mut tables = AddressTables::new();
            for family in [FilterProtocol::Ipv4, FilterProtocol::Ipv6] {
                for field in [AddressField::Source, AddressField::Destination] {
                    let filters = lists(&tables.filters(family, field, &classes).expect("enough tables"));
                    let own = prefixes.iter().filter(|prefix| prefix.is_ipv6() == (family == FilterProtocol::Ipv6));
                    let others: IpAddr = if family == FilterProtocol::Ipv6 {
                        Ipv6Addr::from(seed & 0x0101_0101_0101_0101_0101_0101_0101_0101).into()
                    } else {
                        Ipv4Addr::from((seed & 0x0303_0303) as u32).into()
                    };
                    for address in own.map(HostPrefix::address).chain([others]) {
                        let (found, _) = look_up(&filters, &packet(address, field));
                        let fitting = classes.iter().filter(|(prefix, _)| contains(prefix, address));
                        let longest = fitting.clone().map(|(prefix, _)| prefix.length() / 8).max();
                        let mut allowed = fitting.filter(|(prefix, _)| Some(prefix.length() / 8) == longest);
                        match found {
                            None => prop_assert_eq!(longest, None),
                            Some(found) => prop_assert!(allowed.any(|(_, class)| class.to_string() == found)),
                        }
                    }
                }
            }
        }
    }
}
