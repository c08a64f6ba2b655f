//! Questions for TXT records and their answers (RFC 1035), and the records in which Team Cymru's service reports the
//! autonomous system of an address.

use core::fmt::Write as _;
use std::net::IpAddr;

/// Type of TXT records, and class of the internet.
const TXT: u16 = 16;
const INTERNET: u16 = 1;
/// Length of a message's header.
const HEADER: usize = 12;
/// Length of a record behind its name: type, class, time to live, length.
const RECORD: usize = 10;
/// Longest name in a message.
const MAX_NAME: usize = 255;
/// Largest number of records that are read.
const MAX_RECORDS: u16 = 32;

/// Message that asks for the TXT records of a name; `None` for what is no name.
#[must_use]
pub fn txt_query(id: u16, name: &str) -> Option<Vec<u8>> {
    let mut message = id.to_be_bytes().to_vec();
    // Recursion desired, one question.
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        message.push(length);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(TXT.to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    (message.len() <= HEADER + MAX_NAME + 4).then_some(message)
}

/// TXT records of an answer to the question with this id; empty where the name has none. `None` for another message.
#[must_use]
pub fn txt_records(message: &[u8], id: u16) -> Option<Vec<String>> {
    let field = |place: usize| Some(u16::from_be_bytes(*message.get(place..)?.first_chunk()?));
    let is_answer = field(0)? == id && message.get(2)? & 0x80 != 0;
    is_answer.then_some(())?;
    let (questions, answers) = (field(4)?, field(6)?);
    let mut at = message.get(HEADER..)?;
    for _ in 0..questions.min(MAX_RECORDS) {
        at = after_name(at)?.get(4..)?;
    }
    let mut texts = Vec::new();
    for _ in 0..answers.min(MAX_RECORDS) {
        let record = after_name(at)?;
        let fields = record.first_chunk::<RECORD>()?;
        let length = usize::from(u16::from_be_bytes([fields[8], fields[9]]));
        let data = record.get(RECORD..RECORD + length)?;
        if u16::from_be_bytes([fields[0], fields[1]]) == TXT {
            texts.push(text(data));
        }
        at = &record[RECORD + length..];
    }
    Some(texts)
}

/// Bytes after a name, which ends with an empty label or a pointer.
fn after_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (length, rest) = bytes.split_first()?;
        match length {
            0 => return Some(rest),
            192.. => return rest.get(1..),
            1..=63 => bytes = rest.get(usize::from(*length)..)?,
            _ => return None,
        }
    }
}

/// The strings of a TXT record, joined.
fn text(mut data: &[u8]) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = data.split_first() {
        let end = usize::from(*length).min(rest.len());
        text.push_str(&String::from_utf8_lossy(&rest[..end]));
        data = &rest[end..];
    }
    text
}

/// Name whose TXT record has the autonomous system of an address.
#[must_use]
pub fn origin_name(address: IpAddr) -> String {
    let mut name = String::new();
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            let _ = write!(name, "{d}.{c}.{b}.{a}.origin.asn.cymru.com");
        }
        IpAddr::V6(address) => {
            for octet in address.octets().iter().rev() {
                let _ = write!(name, "{:x}.{:x}.", octet & 15, octet >> 4);
            }
            name.push_str("origin6.asn.cymru.com");
        }
    }
    name
}

/// Name whose TXT record has the holder of an autonomous system.
#[must_use]
pub fn holder_name(number: u32) -> String {
    format!("AS{number}.asn.cymru.com")
}

/// Number in a record of [`origin_name`], `13335 | 192.0.2.0/24 | US | arin | 2010-07-14`; of several the first.
#[must_use]
pub fn origin(record: &str) -> Option<u32> {
    record.split('|').next()?.split_whitespace().next()?.parse().ok()
}

/// Holder in a record of [`holder_name`], `64500 | US | arin | 2010-07-14 | EXAMPLE, US`.
#[must_use]
pub fn holder(record: &str) -> Option<String> {
    let holder = record.split('|').nth(4)?.trim();
    (!holder.is_empty()).then(|| holder.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Answer to a query with these records, whose names point to the question's.
    fn answer(query: &[u8], records: &[(u16, &[&str])]) -> Vec<u8> {
        let mut message = query.to_vec();
        message[2] |= 0x80;
        message[7] = u8::try_from(records.len()).expect("few");
        for (kind, strings) in records {
            let mut data = Vec::new();
            for string in *strings {
                data.push(u8::try_from(string.len()).expect("short"));
                data.extend(string.as_bytes());
            }
            message.extend([0xc0, 12]);
            message.extend(kind.to_be_bytes());
            message.extend([0, 1, 0, 0, 0, 60]);
            message.extend(u16::try_from(data.len()).expect("short").to_be_bytes());
            message.extend(data);
        }
        message
    }

    #[test]
    fn records_of_an_answer() {
        let query = txt_query(7, "1.2.0.192.origin.asn.cymru.com").expect("a name");
        assert_eq!(&query[..HEADER + 2], [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'1']);
        let records: [(u16, &[&str]); 3] = [(5, &["x"]), (TXT, &["64500 | 192.0.2.0/24", " | ZZ"]), (TXT, &[])];
        let reply = answer(&query, &records);
        let texts = txt_records(&reply, 7).expect("an answer");
        assert_eq!(texts, ["64500 | 192.0.2.0/24 | ZZ", ""]);
        assert_eq!(origin(&texts[0]), Some(64_500));
        assert_eq!(txt_records(&reply, 8), None, "another question's");
        assert_eq!(txt_records(&query, 7), None, "a question");
        for length in 0..reply.len() {
            assert_eq!(txt_records(&reply[..length], 7), None, "{length}");
        }
    }

    #[test]
    fn names_and_fields_of_the_service() {
        assert_eq!(origin_name([192, 0, 2, 1].into()), "1.2.0.192.origin.asn.cymru.com");
        let name = origin_name("2001:db8::1".parse().expect("an address"));
        assert!(name.starts_with("1.0.0.0.") && name.ends_with(".8.b.d.0.1.0.0.2.origin6.asn.cymru.com"), "{name}");
        assert_eq!(holder_name(64_500), "AS64500.asn.cymru.com");
        assert_eq!(holder("64500 | US | arin | 2010-07-14 | EXAMPLE, US").as_deref(), Some("EXAMPLE, US"));
        assert_eq!(holder("64500 | US | arin"), None);
        assert_eq!((origin("23028 64501 | 192.0.2.0/24"), origin("NA | x"), origin("")), (Some(23_028), None, None));
        assert_eq!(txt_query(1, "a..b"), None);
        assert_eq!(txt_query(1, &"a".repeat(64)), None);
    }

    proptest! {
        #[test]
        fn any_message_is_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), id in any::<u16>()) {
            prop_assert!(txt_records(&bytes, id).is_none_or(|texts| texts.len() <= usize::from(MAX_RECORDS)));
        }

        #[test]
        fn every_name_is_skipped_as_a_whole(labels in prop::collection::vec("[a-z0-9]{1,20}", 1..6)) {
            let query = txt_query(1, &labels.join(".")).expect("a name");
            prop_assert_eq!(after_name(&query[HEADER..]).map(<[u8]>::len), Some(4));
        }
    }
}
