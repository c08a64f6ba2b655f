//! Lines of a journal: one JSON object each, with its number and a checksum of all before it in the line.

use serde_json::Value;

use super::record::{Record, SCHEMA};

const CHECKSUM: &str = ",\"checksum\":\"";

/// CRC-32 as in IEEE 802.3: it finds what a torn or overwritten block does to a line.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xEDB8_8320 } else { sum >> 1 })
    })
}

/// The line of a record, with its line feed.
pub(super) fn encode(sequence: u64, record: &Record) -> serde_json::Result<String> {
    let record = serde_json::to_string(record)?;
    let head = format!("{{\"schema\":{SCHEMA},\"sequence\":{sequence},\"entry\":{record}");
    let sum = checksum(head.as_bytes());
    Ok(format!("{head}{CHECKSUM}{sum:08x}\"}}\n"))
}

/// Why a line is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is not whole, or was changed.
    Damaged(&'static str),
    /// It is of a newer schema.
    Newer(u64),
}

/// The record of a line without its line feed, which has to be the one of this number.
pub(super) fn decode(line: &[u8], sequence: u64) -> Result<Record, Wrong> {
    let text = core::str::from_utf8(line).map_err(|_| Wrong::Damaged("a line is not text"))?;
    let (head, tail) = text.rsplit_once(CHECKSUM).ok_or(Wrong::Damaged("a line is not whole"))?;
    let sum = tail.strip_suffix("\"}").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    if sum != Some(checksum(head.as_bytes())) {
        return Err(Wrong::Damaged("a line's checksum is wrong"));
    }
    let mut value: Value = serde_json::from_str(text).map_err(|_| Wrong::Damaged("a line is no JSON"))?;
    match value["schema"].as_u64() {
        Some(SCHEMA) => {}
        Some(newer) => return Err(Wrong::Newer(newer)),
        None => return Err(Wrong::Damaged("a line has no schema")),
    }
    if value["sequence"].as_u64() != Some(sequence) {
        return Err(Wrong::Damaged("a line is missing, or there twice"));
    }
    serde_json::from_value(value["entry"].take()).map_err(|_| Wrong::Damaged("a line is no record"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }

    proptest! {
        #[test]
        fn a_line_with_one_wrong_byte_is_noticed(index in 0_usize..50, sequence in 0_u64..99, place: usize, flip in 1_u8..255) {
            let line = encode(sequence, &Record::Intent { index }).expect("JSON");
            let whole = line.trim_end().as_bytes();
            prop_assert_eq!(decode(whole, sequence), Ok(Record::Intent { index }));
            prop_assert!(decode(whole, sequence + 1).is_err());
            let mut wrong = whole.to_vec();
            let place = place % wrong.len();
            wrong[place] ^= flip;
            // In the checksum itself, a letter may change its case.
            let same = wrong.to_ascii_lowercase() == whole && place + 10 > whole.len();
            prop_assert!(decode(&wrong, sequence).is_err() || same);
            prop_assert!(decode(&whole[..place], sequence).is_err());
        }
    }
}
