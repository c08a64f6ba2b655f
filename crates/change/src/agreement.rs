//! Whether what stands somewhere is what was wanted. The kernel and its tools answer in their own words: masks with
//! leading zeros, `285Mbit` for `285mbit`, a discipline with all its options for one that was given two.

use std::borrow::Cow;

use linerate_model::change::Target;
use linerate_sys::traffic_control;

/// Whether `seen`, as it was read, is what `wanted` asks for.
#[must_use]
pub fn agrees(target: &Target, wanted: &str, seen: &str) -> bool {
    match target {
        Target::Queueing { .. } => queueing_agrees(wanted, seen),
        // Records of one tree are equal, and commands are never what is read.
        Target::TrafficControl { .. } => wanted == seen,
        Target::Route { .. } => contains_all(wanted, seen),
        Target::File { .. } => {
            same_words(wanted, seen) || mask(wanted).is_some_and(|wanted| mask(seen) == Some(wanted))
        }
        Target::Setting { .. } | Target::Link { .. } | Target::Offload { .. } | Target::Device { .. } => {
            same_words(wanted, seen)
        }
    }
}

/// [`agrees`], where nothing may stand there and nothing may be wanted.
#[must_use]
pub fn agree(target: &Target, wanted: Option<&str>, seen: Option<&str>) -> bool {
    match (wanted, seen) {
        (Some(wanted), Some(seen)) => agrees(target, wanted, seen),
        (wanted, seen) => wanted == seen,
    }
}

/// Whether what stands somewhere now is what was read there after a change was written; of traffic control the rates may
/// have been changed since, and parts taken away.
#[must_use]
pub fn is_still(target: &Target, put: Option<&str>, now: Option<&str>) -> bool {
    match (target, put, now) {
        (Target::TrafficControl { .. }, Some(put), Some(now)) => traffic_control::is_still(put, now),
        _ => put == now,
    }
}

/// A value for people: of traffic control one line that says what it is, of all else the value itself.
#[must_use]
pub fn shown<'a>(target: &Target, value: &'a str) -> Cow<'a, str> {
    match target {
        Target::TrafficControl { .. } => Cow::Owned(traffic_control::summary(value)),
        _ => Cow::Borrowed(value),
    }
}

/// Word by word, numbers by their values.
fn same_words(wanted: &str, seen: &str) -> bool {
    let mut seen = seen.split_ascii_whitespace();
    let same = |word: &str| {
        seen.next().is_some_and(|other| word == other || number(word).is_some_and(|value| number(other) == Some(value)))
    };
    wanted.split_ascii_whitespace().all(same) && seen.next().is_none()
}

fn number(word: &str) -> Option<i128> {
    word.parse().ok()
}

/// A mask of processors: hexadecimal in groups of eight digits, as in `00000000,0000000f`.
fn mask(text: &str) -> Option<String> {
    let digits: String = text.trim().chars().filter(|character| *character != ',').collect();
    let is_mask = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_mask.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
}

/// Whether each line that is wanted is there: same place, same kind, and every option that it names.
fn queueing_agrees(wanted: &str, seen: &str) -> bool {
    let plain = |text: &str| -> Vec<String> {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    };
    let (wanted_lines, seen_lines) = (plain(wanted), plain(seen));
    if wanted_lines.is_empty() || seen_lines.is_empty() {
        // What the kernel makes by itself is named in a comment, or not at all.
        return wanted_lines.is_empty()
            && seen_lines.is_empty()
            && (wanted.trim().is_empty() || wanted.trim() == seen.trim());
    }
    wanted_lines.iter().all(|line| seen_lines.iter().any(|other| line_agrees(line, other)))
}

/// The place of a discipline or class, and what it is with which options.
fn parts(line: &str) -> (&str, String, Vec<&str>) {
    let mut words = line.split_ascii_whitespace();
    let what = words.next().unwrap_or_default();
    let (mut place, mut rest) = (String::new(), Vec::new());
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        match word {
            "add" | "replace" | "change" | "root" => {}
            "dev" | "handle" => drop(words.next()),
            "parent" | "classid" => {
                let value = words.next().unwrap_or_default();
                place.extend([word, " ", value, " "]);
            }
            _ => {
                rest.push(word);
                rest.extend(words.by_ref());
            }
        }
    }
    (what, place, rest)
}

fn line_agrees(wanted: &str, seen: &str) -> bool {
    let ((what, place, wanted), (other, elsewhere, seen)) = (parts(wanted), parts(seen));
    let same_kind = wanted.first() == seen.first();
    what == other && place == elsewhere && same_kind && contains_all(&wanted.join(" "), &seen.join(" "))
}

/// Whether `seen` has all words of `wanted`, in their order.
fn contains_all(wanted: &str, seen: &str) -> bool {
    let seen: Vec<&str> = seen.split_ascii_whitespace().collect();
    let wanted: Vec<&str> = wanted.split_ascii_whitespace().collect();
    // Each pair of neighbours, so that a value belongs to its option wherever that stands.
    wanted.iter().enumerate().all(|(index, word)| {
        seen.iter().enumerate().any(|(place, other)| {
            let is_value = index > 0 && quantity(word).is_some();
            same_word(word, other)
                && (!is_value
                    || place > 0
                        && (same_word(wanted[index - 1], seen[place - 1]) || quantity(wanted[index - 1]).is_some()))
        })
    })
}

fn same_word(word: &str, other: &str) -> bool {
    let long = |word: &str| if word == "lat" { "latency".to_owned() } else { word.to_ascii_lowercase() };
    long(word) == long(other) || matches!((quantity(word), quantity(other)), (Some(one), Some(two)) if close(one, two))
}

/// `tc` rounds what it shows.
fn close(one: f64, two: f64) -> bool {
    (one - two).abs() <= 0.01 * one.abs().max(two.abs())
}

/// A number with a unit of `tc`'s in its smallest: bit/s, bytes, microseconds, or none.
fn quantity(word: &str) -> Option<f64> {
    let split = word.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(word.len());
    let (digits, unit) = word.split_at(split);
    let value: f64 = digits.parse().ok()?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "bit" | "us" | "usec" | "p" | "%" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" | "ms" | "msec" => 1e3,
        "mbit" | "s" | "sec" => 1e6,
        "gbit" => 1e9,
        "tbit" => 1e12,
        "bps" => 8.0,
        "kbps" => 8e3,
        "mbps" => 8e6,
        "gbps" => 8e9,
        _ => return None,
    };
    Some(value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_masks() {
        let setting = Target::Setting { key: "net.ipv4.tcp_rmem".into() };
        assert!(agrees(&setting, "4096  131072 6291456", "4096 131072 6291456"));
        assert!(!agrees(&setting, "4096 131072", "4096 131072 6291456"));
        assert!(!agrees(&setting, "4096 131072 6291456", "4096 131072"));
        let file = Target::File { path: "/sys/class/net/eth0/queues/rx-0/rps_cpus".into() };
        assert!(agrees(&file, "f", "00000000,0000000f") && !agrees(&file, "f", "00000000,0000001f"));
        assert!(agree(&setting, None, None) && !agree(&setting, Some("1"), None) && !agree(&setting, None, Some("1")));
    }

    #[test]
    fn disciplines_by_what_was_asked_for() {
        let target = Target::Queueing { interface: "eth0".into() };
        let seen = "qdisc replace dev eth0 root fq limit 10000 flow_limit 100 maxrate 285Mbit horizon 10s horizon_drop";
        let is = |wanted: &str| agrees(&target, wanted, seen);
        assert!(is("qdisc replace dev eth0 root fq") && is("qdisc add dev eth0 root handle 8001: fq maxrate 285mbit"));
        assert!(!is("qdisc replace dev eth0 root fq maxrate 300mbit"));
        assert!(!is("qdisc replace dev eth0 root fq flow_limit 10000"));
        assert!(!is("qdisc replace dev eth0 root fq_codel") && !is("qdisc replace dev eth0 parent 1:1 fq") && !is(""));
        let tree = "qdisc replace dev eth0 root handle 1: mq\nqdisc replace dev eth0 parent 1:1 fq limit 3";
        assert!(agrees(&target, tree, tree) && !agrees(&target, tree, "qdisc replace dev eth0 root handle 1: mq"));
        let own = "# made by the kernel: fq_codel";
        assert!(agrees(&target, own, own) && agrees(&target, "", own) && !agrees(&target, own, seen));
        assert!(!agrees(&target, own, "# made by the kernel: fq"));
    }

    #[test]
    fn traffic_control_is_the_same_only_as_a_whole() {
        let target = Target::TrafficControl { interface: "eth0".into() };
        let record = "traffic control of eth0\nqdisc dev eth0 parent root handle 1: kind tbf options 01";
        let faster = record.replace("01", "02");
        assert!(agrees(&target, record, record) && !agrees(&target, record, &faster));
        assert!(is_still(&target, Some(record), Some(&faster)) && !is_still(&target, Some(record), None));
        assert_eq!(shown(&target, record), "tbf");
        let link = Target::Link { interface: "eth0".into(), attribute: linerate_model::change::LinkAttribute::Mtu };
        assert!(!is_still(&link, Some("1"), Some("2")) && shown(&link, record) == record);
    }

    #[test]
    fn routes_by_their_words() {
        let target = Target::Route { destination: "default".into() };
        let seen = "via 192.0.2.1 dev eth0 proto dhcp metric 100 initcwnd 20 congctl bbr";
        assert!(agrees(&target, "via 192.0.2.1 dev eth0 initcwnd 20", seen));
        assert!(!agrees(&target, "via 192.0.2.1 dev eth0 initcwnd 100", seen), "100 is the metric");
    }
}
