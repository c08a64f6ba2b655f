//! Lines of a journal: one JSON object each, with its number and a checksum of all before it in the line.

use serde::Deserialize;

use super::record::{JournalRecord, SCHEMA};

const CHECKSUM: &str = ",\"checksum\":\"";

/// Bytes of a line from its checksum: the key, eight digits, a quote and a brace.
const FIELD_LENGTH: usize = CHECKSUM.len() + 10;

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
    Ok(format!("{head}{}\n", checksum_field(&head)))
}

/// End of a line that begins with `head`: the checksum of that.
fn checksum_field(head: &str) -> String {
    format!("{CHECKSUM}{:08x}\"}}", checksum(head.as_bytes()))
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
    let end = text.len().checked_sub(FIELD_LENGTH).and_then(|length| text.split_at_checked(length));
    let (head, tail) = end.ok_or(LineError::Damaged("a line is incomplete"))?;
    if tail != checksum_field(head) {
        return Err(LineError::Damaged("a line's checksum is wrong"));
    }
    let line: JournalLine = serde_json::from_str(text).map_err(|_| without_record(text))?;
    if line.schema != SCHEMA {
        return Err(LineError::Newer(line.schema));
    }
    if line.sequence != sequence {
        return Err(LineError::Damaged("a line is missing or duplicated"));
    }
    Ok(line.entry)
}

/// Reason why a line has no record. One of a newer schema may have a record that this version does not know.
fn without_record(text: &str) -> LineError {
    match serde_json::from_str(text).map(|LineSchema { schema }| schema) {
        Ok(SCHEMA) => LineError::Damaged("a line is not a record"),
        Ok(newer) => LineError::Newer(newer),
        Err(_) => LineError::Damaged("a line has no schema"),
    }
}

/// A line as it is read: without a JSON value between, as a rollback reads all journals several times.
#[derive(Deserialize)]
struct JournalLine {
    schema: u64,
    sequence: u64,
    entry: JournalRecord,
}

/// Part that lines of every schema have.
#[derive(Deserialize)]
struct LineSchema {
    schema: u64,
}

/// The line as a newer linerate writes it, with a right checksum.
#[cfg(test)]
pub(crate) fn in_newer_schema(line: &[u8]) -> Vec<u8> {
    let text = core::str::from_utf8(line).expect("text");
    let (head, _) = text.rsplit_once(CHECKSUM).expect("a line");
    let head = head.replacen(&format!("\"schema\":{SCHEMA},"), &format!("\"schema\":{},", SCHEMA + 1), 1);
    format!("{head}{}", checksum_field(&head)).into_bytes()
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
