//! ICMP extension structures (RFC 4884 §7), with which routers report MPLS label stacks (RFC 4950).

use linerate_model::route::MplsLabel;

/// Version of the structure, in the upper half of its first octet.
const VERSION: u8 = 2;
/// Length of the structure's header, and of an object's.
const HEADER: usize = 4;
/// Class and type of an MPLS label stack that arrived with the packet (RFC 4950 §3).
const MPLS_INCOMING: (u8, u8) = (1, 1);
/// Largest number of labels taken: deeper stacks are nonsense of a stranger.
const MAX_LABELS: usize = 32;

/// Reads the label stack of an extension structure; empty where it has none. `None` for bytes that are no such structure.
#[must_use]
pub fn mpls_labels(bytes: &[u8]) -> Option<Vec<MplsLabel>> {
    let (header, mut objects) = bytes.split_first_chunk::<HEADER>()?;
    let has_checksum = header[2..] != [0, 0];
    if header[0] >> 4 != VERSION || (has_checksum && ones_complement_sum(bytes) != 0xffff) {
        return None;
    }
    let mut labels = Vec::new();
    while !objects.is_empty() {
        let length = usize::from(u16::from_be_bytes(*objects.first_chunk()?));
        let object = objects.get(..length)?;
        let [_, _, class, kind] = *object.first_chunk::<HEADER>()?;
        if (class, kind) == MPLS_INCOMING {
            labels.extend(object[HEADER..].chunks_exact(4).filter_map(label));
        }
        objects = &objects[length..];
    }
    labels.truncate(MAX_LABELS);
    Some(labels)
}

/// Label stack entry (RFC 3032 §2.1): 20 bits of label, 3 of traffic class, the bottom of the stack, 8 of time to live.
fn label(entry: &[u8]) -> Option<MplsLabel> {
    let [first, second, third, time_to_live] = *entry.first_chunk()?;
    let label = u32::from_be_bytes([0, first, second, third]) >> 4;
    Some(MplsLabel { label, traffic_class: third >> 1 & 7, time_to_live })
}

/// Sum of RFC 1071; 0xffff over bytes with a right checksum.
fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u64;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or_default();
        sum += u64::from(u16::from_be_bytes([pair[0], low]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Structure with these objects (class, type, content) and its checksum.
    fn structure(objects: &[(u8, u8, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![VERSION << 4, 0, 0, 0];
        for (class, kind, content) in objects {
            let length = u16::try_from(HEADER + content.len()).expect("short");
            bytes.extend(length.to_be_bytes());
            bytes.extend([*class, *kind]);
            bytes.extend(content);
        }
        let checksum = !ones_complement_sum(&bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn a_stack_of_two_labels() {
        // Label 24015, class 0, not the bottom, TTL 1; label 16, class 5, bottom, TTL 255.
        let stack = vec![0x05, 0xdc, 0xf0, 0x01, 0x00, 0x01, 0x0b, 0xff];
        let bytes = structure(&[(2, 15, vec![0; 8]), (1, 1, stack)]);
        let expected = [
            MplsLabel { label: 24_015, traffic_class: 0, time_to_live: 1 },
            MplsLabel { label: 16, traffic_class: 5, time_to_live: 255 },
        ];
        assert_eq!(mpls_labels(&bytes).as_deref(), Some(&expected[..]));
        let mut damaged = bytes.clone();
        damaged[17] ^= 1;
        assert_eq!(mpls_labels(&damaged), None, "the checksum is wrong");
        let mut without_checksum = bytes;
        without_checksum[2..4].fill(0);
        assert_eq!(mpls_labels(&without_checksum).map(|labels| labels.len()), Some(2));
    }

    #[test]
    fn what_is_no_structure_is_none() {
        assert_eq!(mpls_labels(&[]), None);
        assert_eq!(mpls_labels(&[0x10, 0, 0, 0]), None, "another version");
        assert_eq!(mpls_labels(&[0x20, 0, 0, 0]), Some(Vec::new()));
        assert_eq!(mpls_labels(&[0x20, 0, 0, 0, 0, 3, 1, 1]), None, "shorter than its own header");
        assert_eq!(mpls_labels(&[0x20, 0, 0, 0, 0, 9, 1, 1]), None, "longer than the structure");
    }

    proptest! {
        #[test]
        fn every_stack_is_read_as_written(entries in prop::collection::vec((0_u32..1 << 20, 0_u8..8, any::<u8>()), 0..20)) {
            let written: Vec<u8> = entries
                .iter()
                .flat_map(|(label, class, ttl)| (label << 12 | u32::from(*class) << 9 | u32::from(*ttl)).to_be_bytes())
                .collect();
            let read = mpls_labels(&structure(&[(1, 1, written)])).expect("a structure");
            let read: Vec<_> = read.iter().map(|one| (one.label, one.traffic_class, one.time_to_live)).collect();
            prop_assert_eq!(read, entries);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(mpls_labels(&bytes).is_none_or(|labels| labels.len() <= MAX_LABELS));
        }
    }
}
