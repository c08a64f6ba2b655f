//! Comparison of wanted and present values. The kernel and its tools print values in their own form: masks with leading
//! zeros, `285Mbit` for `285mbit`, a queueing discipline with all its options after two were given.

use std::borrow::Cow;

use linerate_model::change::ChangeTarget;
use linerate_sys::traffic_control;
use linerate_units::display;

/// True when the value read (`seen`) satisfies `wanted`.
#[must_use]
pub fn value_matches(target: &ChangeTarget, wanted: &str, seen: &str) -> bool {
    match target {
        ChangeTarget::Queueing { .. } => queueing_matches(wanted, seen),
        // Two records of one tree are equal; commands are never read back.
        ChangeTarget::TrafficControl { .. } => wanted == seen,
        ChangeTarget::FirewallTable { .. } => wanted == seen || rule_values(wanted) == rule_values(seen),
        ChangeTarget::Route { .. } => contains_tokens(wanted, seen),
        ChangeTarget::File { .. } => {
            tokens_match(wanted, seen)
                || parse_cpu_mask(wanted).is_some_and(|wanted| parse_cpu_mask(seen) == Some(wanted))
        }
        ChangeTarget::Setting { .. }
        | ChangeTarget::Link { .. }
        | ChangeTarget::Offload { .. }
        | ChangeTarget::Device { .. } => tokens_match(wanted, seen),
    }
}

/// [`value_matches`] for targets that may be absent.
#[must_use]
pub fn optional_value_matches(target: &ChangeTarget, wanted: Option<&str>, seen: Option<&str>) -> bool {
    match (wanted, seen) {
        (Some(wanted), Some(seen)) => value_matches(target, wanted, seen),
        (wanted, seen) => wanted == seen,
    }
}

/// True when the present value is the one read after the change was written. Rates of traffic control may have changed
/// since, and parts may have been removed.
#[must_use]
pub fn is_unchanged(target: &ChangeTarget, put: Option<&str>, now: Option<&str>) -> bool {
    match (target, put, now) {
        (ChangeTarget::TrafficControl { .. }, Some(put), Some(now)) => traffic_control::is_still_installed(put, now),
        _ => put == now,
    }
}

/// A value for display: a one-line summary of traffic control and of tables, any other value unchanged.
#[must_use]
pub fn shown<'a>(target: &ChangeTarget, value: &'a str) -> Cow<'a, str> {
    match target {
        ChangeTarget::TrafficControl { .. } => Cow::Owned(traffic_control::summary(value)),
        ChangeTarget::FirewallTable { .. } if value.contains('\n') => {
            Cow::Owned(format!("a table with {}", display::counted(rule_values(value).len(), "rule")))
        }
        _ => Cow::Borrowed(value),
    }
}

/// Values that the rules of a table set, in order: nft prints the remainder of a rule in the form of its version.
fn rule_values(table: &str) -> Vec<&str> {
    let rules = table.lines().filter(|line| line.contains(" set "));
    rules.filter_map(|rule| rule.split_ascii_whitespace().last()).collect()
}

/// Compares token by token, numbers by value.
fn tokens_match(wanted: &str, seen: &str) -> bool {
    let mut seen = seen.split_ascii_whitespace();
    let same = |token: &str| {
        seen.next()
            .is_some_and(|other| token == other || number(token).is_some_and(|value| number(other) == Some(value)))
    };
    wanted.split_ascii_whitespace().all(same) && seen.next().is_none()
}

fn number(token: &str) -> Option<i128> {
    token.parse().ok()
}

/// A CPU mask: hexadecimal in groups of eight digits, as in `00000000,0000000f`.
fn parse_cpu_mask(text: &str) -> Option<String> {
    let digits: String = text.trim().chars().filter(|character| *character != ',').collect();
    let is_mask = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_mask.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
}

/// True when each wanted line is present: same parent, same kind, and every option that it names.
fn queueing_matches(wanted: &str, seen: &str) -> bool {
    let plain = |text: &str| -> Vec<String> {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    };
    let (wanted_lines, seen_lines) = (plain(wanted), plain(seen));
    if wanted_lines.is_empty() || seen_lines.is_empty() {
        // The kernel's default discipline is named in a comment, or not at all.
        return wanted_lines.is_empty()
            && seen_lines.is_empty()
            && (wanted.trim().is_empty() || wanted.trim() == seen.trim());
    }
    wanted_lines.iter().all(|line| seen_lines.iter().any(|other| line_matches(line, other)))
}

/// Object, parent or class ID, and kind with options of a discipline or class.
fn split_tc_line(line: &str) -> (&str, String, Vec<&str>) {
    let mut tokens = line.split_ascii_whitespace();
    let object = tokens.next().unwrap_or_default();
    let (mut location, mut options) = (String::new(), Vec::new());
    let mut tokens = tokens.peekable();
    while let Some(token) = tokens.next() {
        match token {
            "add" | "replace" | "change" | "root" => {}
            "dev" | "handle" => drop(tokens.next()),
            "parent" | "classid" => {
                let value = tokens.next().unwrap_or_default();
                location.extend([token, " ", value, " "]);
            }
            _ => {
                options.push(token);
                options.extend(tokens.by_ref());
            }
        }
    }
    (object, location, options)
}

fn line_matches(wanted: &str, seen: &str) -> bool {
    let ((object, location, wanted), (other, other_location, seen)) = (split_tc_line(wanted), split_tc_line(seen));
    let same_kind = wanted.first() == seen.first();
    object == other && location == other_location && same_kind && contains_tokens(&wanted.join(" "), &seen.join(" "))
}

/// True when `seen` has all tokens of `wanted`, each value after its option.
fn contains_tokens(wanted: &str, seen: &str) -> bool {
    let seen: Vec<&str> = seen.split_ascii_whitespace().collect();
    let wanted: Vec<&str> = wanted.split_ascii_whitespace().collect();
    // By pairs of neighbours, so that a value is matched with its option at any position.
    wanted.iter().enumerate().all(|(index, token)| {
        seen.iter().enumerate().any(|(position, other)| {
            let is_value = index > 0 && parse_quantity(token).is_some();
            token_matches(token, other)
                && (!is_value
                    || position > 0
                        && (token_matches(wanted[index - 1], seen[position - 1])
                            || parse_quantity(wanted[index - 1]).is_some()))
        })
    })
}

fn token_matches(token: &str, other: &str) -> bool {
    let long = |token: &str| if token == "lat" { "latency".to_owned() } else { token.to_ascii_lowercase() };
    long(token) == long(other)
        || matches!((parse_quantity(token), parse_quantity(other)), (Some(one), Some(two)) if close(one, two))
}

/// `tc` rounds the values that it prints.
fn close(one: f64, two: f64) -> bool {
    (one - two).abs() <= 0.01 * one.abs().max(two.abs())
}

/// A number with a `tc` unit, in the base unit: bit/s, bytes, microseconds, or none.
fn parse_quantity(token: &str) -> Option<f64> {
    let split = token.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(token.len());
    let (digits, unit) = token.split_at(split);
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
        let setting = ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".into() };
        assert!(value_matches(&setting, "4096  131072 6291456", "4096 131072 6291456"));
        assert!(!value_matches(&setting, "4096 131072", "4096 131072 6291456"));
        assert!(!value_matches(&setting, "4096 131072 6291456", "4096 131072"));
        let file = ChangeTarget::File { path: "/sys/class/net/eth0/queues/rx-0/rps_cpus".into() };
        assert!(value_matches(&file, "f", "00000000,0000000f") && !value_matches(&file, "f", "00000000,0000001f"));
        assert!(
            optional_value_matches(&setting, None, None)
                && !optional_value_matches(&setting, Some("1"), None)
                && !optional_value_matches(&setting, None, Some("1"))
        );
    }

    #[test]
    fn qdiscs_match_by_the_requested_options() {
        let target = ChangeTarget::Queueing { interface: "eth0".into() };
        let seen = "qdisc replace dev eth0 root fq limit 10000 flow_limit 100 maxrate 285Mbit horizon 10s horizon_drop";
        let is = |wanted: &str| value_matches(&target, wanted, seen);
        assert!(is("qdisc replace dev eth0 root fq") && is("qdisc add dev eth0 root handle 8001: fq maxrate 285mbit"));
        assert!(!is("qdisc replace dev eth0 root fq maxrate 300mbit"));
        assert!(!is("qdisc replace dev eth0 root fq flow_limit 10000"));
        assert!(!is("qdisc replace dev eth0 root fq_codel") && !is("qdisc replace dev eth0 parent 1:1 fq") && !is(""));
        let tree = "qdisc replace dev eth0 root handle 1: mq\nqdisc replace dev eth0 parent 1:1 fq limit 3";
        assert!(
            value_matches(&target, tree, tree)
                && !value_matches(&target, tree, "qdisc replace dev eth0 root handle 1: mq")
        );
        let own = "# made by the kernel: fq_codel";
        assert!(
            value_matches(&target, own, own) && value_matches(&target, "", own) && !value_matches(&target, own, seen)
        );
        assert!(!value_matches(&target, own, "# made by the kernel: fq"));
    }

    #[test]
    fn traffic_control_matches_only_as_a_whole() {
        let target = ChangeTarget::TrafficControl { interface: "eth0".into() };
        let record = "traffic control of eth0\nqdisc dev eth0 parent root handle 1: kind tbf options 01";
        let faster = record.replace("01", "02");
        assert!(value_matches(&target, record, record) && !value_matches(&target, record, &faster));
        assert!(is_unchanged(&target, Some(record), Some(&faster)) && !is_unchanged(&target, Some(record), None));
        assert_eq!(shown(&target, record), "tbf");
        let link =
            ChangeTarget::Link { interface: "eth0".into(), attribute: linerate_model::change::LinkAttribute::Mtu };
        assert!(!is_unchanged(&link, Some("1"), Some("2")) && shown(&link, record) == record);
    }

    #[test]
    fn tables_match_by_the_values_that_they_set() {
        let target = ChangeTarget::FirewallTable { name: "marks".into() };
        let wanted = "create table inet marks\nadd chain inet marks store { type filter hook postrouting priority -150 ; }\n\
                      add rule inet marks store ip dscp 0x2e ct mark set ct mark and 0x02ffffff or 0xb9000000";
        let seen = "table inet marks {\n\tchain store {\n\t\ttype filter hook postrouting priority mangle; policy accept;\n\
                    \t\tip dscp ef ct mark set ct mark & 0xbbffffff | 0xb9000000\n\t}\n}";
        assert!(value_matches(&target, wanted, seen) && !is_unchanged(&target, Some(wanted), Some(seen)));
        assert!(!value_matches(&target, wanted, &seen.replace("0xb9000000", "0xb1000000")));
        assert!(!value_matches(&target, wanted, "table inet marks {\n}"));
        assert_eq!(shown(&target, seen), "a table with 1 rule");
    }

    #[test]
    fn routes_match_by_their_attributes() {
        let target = ChangeTarget::Route { destination: "default".into() };
        let seen = "via 192.0.2.1 dev eth0 proto dhcp metric 100 initcwnd 20 congctl bbr";
        assert!(value_matches(&target, "via 192.0.2.1 dev eth0 initcwnd 20", seen));
        assert!(!value_matches(&target, "via 192.0.2.1 dev eth0 initcwnd 100", seen), "100 is the metric");
    }
}
