//! Lines of a journal: one JSON object each, with its number and a checksum of all before it in the line.

use linerate_model::json;
use serde_json::Value;

use super::record::{JournalRecord, SCHEMA};

const CHECKSUM: &str = ",\"checksum\":\"";

/// Remainders of CRC-32 (IEEE 802.3) for each byte.
const REMAINDERS: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let (mut remainder, mut bit) = (byte, 0);
        while bit < 8 {
            remainder = if remainder & 1 == 1 { (remainder >> 1) ^ 0xEDB8_8320 } else { remainder >> 1 };
            bit += 1;
        }
        table[byte as usize] = remainder;
        byte += 1;
    }
    table
};

/// CRC-32 as in IEEE 802.3: it detects lines in torn or overwritten blocks.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        let [low, ..] = sum.to_le_bytes();
        (sum >> 8) ^ REMAINDERS[usize::from(low ^ byte)]
    })
}

/// Encodes a record as a line with its line feed.
pub(super) fn encode(sequence: u64, record: &JournalRecord) -> serde_json::Result<String> {
    let record = serde_json::to_string(record)?;
    let head = format!("{{\"schema\":{SCHEMA},\"sequence\":{sequence},\"entry\":{record}");
    let sum = checksum(head.as_bytes());
    Ok(format!("{head}{CHECKSUM}{sum:08x}\"}}\n"))
}

/// Reason why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineError {
    /// The line is incomplete or was altered.
    Damaged(&'static str),
    /// The line has a newer schema.
    Newer(u64),
}

/// Decodes a line without its line feed, whose sequence number must be `sequence`.
pub(super) fn decode(line: &[u8], sequence: u64) -> Result<JournalRecord, LineError> {
    let text = core::str::from_utf8(line).map_err(|_| LineError::Damaged("a line is not text"))?;
    let (head, tail) = text.rsplit_once(CHECKSUM).ok_or(LineError::Damaged("a line is incomplete"))?;
    let sum = format!("{:08x}", checksum(head.as_bytes()));
    if tail.strip_suffix("\"}") != Some(sum.as_str()) {
        return Err(LineError::Damaged("a line's checksum is wrong"));
    }
    let mut value: Value = serde_json::from_str(text).map_err(|_| LineError::Damaged("a line is not JSON"))?;
    match value["schema"].as_u64() {
        Some(SCHEMA) => {}
        Some(newer) => return Err(LineError::Newer(newer)),
        None => return Err(LineError::Damaged("a line has no schema")),
    }
    if value["sequence"].as_u64() != Some(sequence) {
        return Err(LineError::Damaged("a line is missing or duplicated"));
    }
    json::from_value(value["entry"].take()).map_err(|_| LineError::Damaged("a line is not a record"))
}

/// The line as a newer linerate writes it, with a right checksum.
#[cfg(test)]
pub(crate) fn in_newer_schema(line: &[u8]) -> Vec<u8> {
    let text = core::str::from_utf8(line).expect("text");
    let (head, _) = text.rsplit_once(CHECKSUM).expect("a line");
    let head = head.replacen(&format!("\"schema\":{SCHEMA},"), &format!("\"schema\":{},", SCHEMA + 1), 1);
    format!("{head}{CHECKSUM}{:08x}\"}}", checksum(head.as_bytes())).into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_crc_32() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }

    proptest! {
        #[test]
        fn a_line_with_one_wrong_byte_is_noticed(index in 0_usize..50, sequence in 0_u64..99, place: usize, flip in 1_u8..255) {
            let line = encode(sequence, &JournalRecord::Intent { index }).expect("JSON");
            let whole = line.trim_end().as_bytes();
            prop_assert_eq!(decode(whole, sequence), Ok(JournalRecord::Intent { index }));
            prop_assert!(decode(whole, sequence + 1).is_err());
            let mut wrong = whole.to_vec();
            let place = place % wrong.len();
            wrong[place] ^= flip;
            prop_assert!(decode(&wrong, sequence).is_err());
            prop_assert!(decode(&whole[..place], sequence).is_err());
        }
    }
}
