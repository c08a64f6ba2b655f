//! `dualpi2` with options, made over rtnetlink: the `tc` of most distributions is older than its options.
//!
//! The words are those of `tc-dualpi2(8)`; the attributes are those of Linux 6.17 (`TCA_DUALPI2_…`).

use std::io;

use super::record::{ObjectCategory, ROOT, TrafficControlObject};
use crate::netlink::append_attribute;

const KIND: &str = "dualpi2";

/// Attributes with 32 bits, and their words: times in microseconds, gains in 1/256 Hz.
const LIMIT: u16 = 1;
const MEMORY_LIMIT: u16 = 2;
const TARGET: u16 = 3;
const UPDATE: u16 = 4;
const ALPHA: u16 = 5;
const BETA: u16 = 6;
const STEP_TIME: u16 = 8;
const MIN_STEP_PACKETS: u16 = 9;
/// Attributes with 8 bits.
const COUPLING: u16 = 10;
const DROP_OVERLOAD: u16 = 11;
const DROP_EARLY: u16 = 12;
const CLASSIC_PROTECTION: u16 = 13;
const ECN_MASK: u16 = 14;
const SPLIT_GSO: u16 = 15;

/// Words without a value.
const FLAGS: [(&str, u16, u8); 8] = [
    ("drop_on_overload", DROP_OVERLOAD, 1),
    ("overflow", DROP_OVERLOAD, 0),
    ("drop_enqueue", DROP_EARLY, 1),
    ("drop_dequeue", DROP_EARLY, 0),
    ("l4s_ect", ECN_MASK, 1),
    ("any_ect", ECN_MASK, 3),
    ("split_gso", SPLIT_GSO, 1),
    ("no_split_gso", SPLIT_GSO, 0),
];

/// The discipline of a command `qdisc add … dualpi2 OPTIONS`; `None` for every other command, and without options, which
/// any `tc` takes.
pub(super) fn object(words: &[String]) -> Option<Result<TrafficControlObject, String>> {
    let at = words.iter().position(|word| word == KIND)?;
    let (place, options) = (&words[..at], words.get(at + 1..).filter(|options| !options.is_empty())?);
    if place.first().map(String::as_str) != Some("qdisc") {
        return None;
    }
    Some(position(place).and_then(|(device, parent, handle)| {
        Ok(TrafficControlObject {
            what: ObjectCategory::Discipline,
            device,
            parent,
            handle,
            kind: KIND.to_owned(),
            options: Some(attributes(options)?),
            sizes: None,
            towards: Vec::new(),
            is_kernels: false,
        })
    }))
}

/// Device, parent and handle.
fn position(words: &[String]) -> Result<(String, u32, u32), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (device, parent, handle) = match words[..] {
        ["qdisc", "add", "dev", device, "root", "handle", handle] => (device, ROOT, handle),
        ["qdisc", "add", "dev", device, "parent", parent, "handle", handle] => (device, tc_handle(parent)?, handle),
        _ => return Err("expected qdisc add dev DEVICE parent PARENT handle HANDLE".to_owned()),
    };
    Ok((device.to_owned(), parent, tc_handle(handle)?))
}

/// Handle such as `1:20`, in hexadecimal.
fn tc_handle(text: &str) -> Result<u32, String> {
    let half = |part: &str| if part.is_empty() { Some(0) } else { u16::from_str_radix(part, 16).ok() };
    let parts = text.split_once(':').and_then(|(major, minor)| Some((half(major)?, half(minor)?)));
    let (major, minor) = parts.ok_or_else(|| format!("'{text}' is not a handle"))?;
    Ok(u32::from(major) << 16 | u32::from(minor))
}

/// The kernel's attributes of these options.
fn attributes(words: &[String]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if let Some((_, attribute, value)) = FLAGS.iter().find(|(name, ..)| *name == word) {
            add(&mut bytes, *attribute, &[*value])?;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("dualpi2: '{word}' has no value"))?;
        let refused = || format!("dualpi2: '{word} {value}' is not understood");
        let number = || value.parse::<u32>().ok();
        let octet = || value.trim_end_matches('%').parse::<u8>().ok().map(|value| vec![value]);
        let wide = |value: Option<u32>| value.map(|value| value.to_ne_bytes().to_vec());
        let (attribute, content) = match word {
            "limit" => (LIMIT, wide(number())),
            "memlimit" => (MEMORY_LIMIT, wide(number())),
            "target" => (TARGET, wide(micros(value))),
            "tupdate" => (UPDATE, wide(micros(value))),
            "alpha" => (ALPHA, wide(gain(value))),
            "beta" => (BETA, wide(gain(value))),
            "step_thresh" => (STEP_TIME, wide(micros(value))),
            "min_qlen_step" => (MIN_STEP_PACKETS, wide(number())),
            "coupling_factor" => (COUPLING, octet()),
            "classic_protection" => (CLASSIC_PROTECTION, octet()),
            _ => return Err(refused()),
        };
        add(&mut bytes, attribute, &content.ok_or_else(refused)?)?;
    }
    Ok(bytes)
}

fn add(bytes: &mut Vec<u8>, attribute: u16, content: &[u8]) -> Result<(), String> {
    append_attribute(bytes, attribute, content).map_err(|cause: io::Error| cause.to_string())
}

/// Whole microseconds of `16ms`, `1000us` or `1s`.
fn micros(text: &str) -> Option<u32> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &text[number.len()..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    whole(number.parse::<f64>().ok()? * factor)
}

/// 1/256 Hz of a gain in Hz.
fn gain(text: &str) -> Option<u32> {
    whole(text.parse::<f64>().ok()? * 256.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(value: f64) -> Option<u32> {
    (0.0..=f64::from(u32::MAX)).contains(&value).then(|| value.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{attribute, number};

    fn read(line: &str) -> Option<Result<TrafficControlObject, String>> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        object(&words)
    }

    #[test]
    fn options_become_attributes() {
        let line = "qdisc add dev eth0 parent 1:20 handle 20: dualpi2 target 20ms tupdate 16000us alpha 0.1602 beta 3.1992 \
                    coupling_factor 3 step_thresh 1000us classic_protection 10 drop_enqueue overflow no_split_gso any_ect";
        let made = read(line).expect("a dual queue").expect("understood");
        assert_eq!((made.device.as_str(), made.parent, made.handle), ("eth0", 0x1_0020, 0x20_0000));
        let options = made.options.expect("options");
        let wide = |kind| attribute(&options, kind).and_then(|content| number(content, 0));
        let found = [TARGET, UPDATE, ALPHA, BETA, STEP_TIME].map(wide);
        assert_eq!(found, [20_000, 16_000, 41, 819, 1000].map(Some));
        let narrow = |kind| attribute(&options, kind).map(<[u8]>::to_vec);
        let found = [COUPLING, CLASSIC_PROTECTION, DROP_EARLY, DROP_OVERLOAD, SPLIT_GSO, ECN_MASK].map(narrow);
        assert_eq!(found, [3, 10, 1, 0, 0, 3].map(|value| Some(vec![value])));
    }

    #[test]
    fn other_commands_are_left_to_tc() {
        for line in [
            "qdisc add dev eth0 root handle 1: htb default 20",
            "qdisc add dev eth0 parent 1:20 handle 20: dualpi2",
            "class add dev dualpi2 parent 1: classid 1:1 htb rate 1mbit",
        ] {
            assert!(read(line).is_none(), "{line}");
        }
        for line in [
            "qdisc add dev eth0 parent 1:20 handle 20: dualpi2 target",
            "qdisc add dev eth0 parent 1:20 handle 20: dualpi2 target soon",
            "qdisc add dev eth0 parent 1:20 handle 20: dualpi2 quantum 5",
            "qdisc add dev eth0 parent 1:zz handle 20: dualpi2 target 5ms",
            "qdisc replace dev eth0 root dualpi2 target 5ms",
            "qdisc add dev eth0 parent 1:20 handle 20: dualpi2 coupling_factor 256",
        ] {
            assert!(read(line).is_some_and(|read| read.is_err()), "{line}");
        }
    }
}
