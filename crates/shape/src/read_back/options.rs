//! Comparison of the options of a queueing discipline that were asked for with those that `tc -j` shows.

use linerate_model::socket::FirewallMark;
use serde_json::{Map, Value};

use crate::plan::PlannedDiscipline;

/// Form of an option in `tc`'s JSON.
enum OptionForm {
    /// Number after the keyword.
    Number,
    /// Time after the keyword; the kernel counts in units of its own, 1.024 µs for `CoDel`.
    Time,
    /// Firewall mark after the keyword, as a hexadecimal text in JSON.
    Mark,
    /// One of these words in the command, its value in JSON, and its name as asked for.
    Words(&'static [OptionWord]),
}

/// Word in the command of `tc`, value in its JSON, and name as asked for.
type OptionWord = (&'static str, &'static str, &'static str);

/// Each option: name as asked for, keyword of `tc`, key of its JSON, and form. An absent flag is `false`; any other absent key
/// is unknown to that `tc`, and is not compared.
const OPTIONS: [(&str, &str, &str, OptionForm); 15] = [
    ("limit", "limit", "limit", OptionForm::Number),
    ("flows", "flows", "flows", OptionForm::Number),
    ("quantum", "quantum", "quantum", OptionForm::Number),
    ("perturb", "perturb", "perturb", OptionForm::Number),
    ("interval", "interval", "interval", OptionForm::Time),
    ("ce-threshold", "ce_threshold", "ce_threshold", OptionForm::Time),
    ("target", "target", "target", OptionForm::Time),
    ("rtt", "rtt", "rtt", OptionForm::Time),
    ("memory", "memory_limit", "memory_limit", OptionForm::Number),
    ("memory", "memlimit", "memlimit", OptionForm::Number),
    ("fwmark", "fwmark", "fwmark", OptionForm::Mark),
    ("tins", "", "diffserv", OptionForm::Words(&TINS)),
    ("ack-filter", "", "ack-filter", OptionForm::Words(&FILTERS)),
    ("split-gso", "", "split_gso", OptionForm::Words(&[("split-gso", "true", "on"), ("no-split-gso", "false", "off")])),
    ("mode", "", "ingress", OptionForm::Words(&[("ingress", "true", "ingress"), ("egress", "false", "egress")])),
];

const TINS: [OptionWord; 5] = [
    ("besteffort", "besteffort", "besteffort"),
    ("precedence", "precedence", "precedence"),
    ("diffserv3", "diffserv3", "diffserv3"),
    ("diffserv4", "diffserv4", "diffserv4"),
    ("diffserv8", "diffserv8", "diffserv8"),
];
const FILTERS: [OptionWord; 3] = [
    ("no-ack-filter", "disabled", "off"),
    ("ack-filter", "enabled", "on"),
    ("ack-filter-aggressive", "aggressive", "aggressive"),
];
const ECN: [OptionWord; 2] = [("ecn", "true", "on"), ("noecn", "false", "off")];

/// Relative tolerance of times.
const TIME_TOLERANCE: f64 = 0.001;
/// Absolute tolerance of times, in µs.
const TIME_STEP: f64 = 2.0;

/// Differences of the options that were asked for: name and value found, and the planned one.
pub(super) fn differences(planned: &PlannedDiscipline, found: &Map<String, Value>) -> Vec<String> {
    let asked = |name: &str| planned.requested.contains(&name);
    let mut differences: Vec<String> = OPTIONS
        .iter()
        .filter(|(name, ..)| asked(name))
        .filter_map(|(name, keyword, key, form)| match form {
            OptionForm::Words(words) => word_difference(name, planned, words, found.get(*key)?),
            OptionForm::Mark => mark_difference(name, value_of(planned, keyword)?, found.get(*key)?),
            OptionForm::Number | OptionForm::Time => {
                let is_time = matches!(form, OptionForm::Time);
                number_difference(name, is_time, value_of(planned, keyword)?, found.get(*key)?)
            }
        })
        .collect();
    if asked("ecn") && matches!(planned.kind, "fq_codel" | "fq_pie") && !found.is_empty() {
        let is_marking = found.get("ecn").unwrap_or(&Value::Bool(false));
        differences.extend(word_difference("ecn", planned, &ECN, is_marking));
    }
    differences
}

/// Word after a keyword of the command.
fn value_of<'p>(planned: &'p PlannedDiscipline, keyword: &str) -> Option<&'p str> {
    planned.options.windows(2).find(|pair| pair[0] == keyword).map(|pair| pair[1].as_str())
}

fn number_difference(name: &str, is_time: bool, planned: &str, found: &Value) -> Option<String> {
    let (found, wanted) = (found.as_f64()?, planned.trim_end_matches("us").parse::<f64>().ok()?);
    let tolerance = if is_time { (wanted * TIME_TOLERANCE).max(TIME_STEP) } else { 0.0 };
    let unit = if is_time { " µs" } else { "" };
    ((found - wanted).abs() > tolerance).then(|| format!("{name} {found}{unit} instead of {wanted}{unit}"))
}

fn mark_difference(name: &str, planned: &str, found: &Value) -> Option<String> {
    let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    (FirewallMark::parse(&found) != FirewallMark::parse(planned))
        .then(|| format!("{name} {found} instead of {planned}"))
}

fn word_difference(name: &str, planned: &PlannedDiscipline, words: &[OptionWord], found: &Value) -> Option<String> {
    let (_, value, wanted) = words.iter().find(|(word, ..)| planned.options.iter().any(|option| option == word))?;
    let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    let shown = words.iter().find(|(_, value, _)| *value == found).map_or(found.as_str(), |(.., shown)| shown);
    (found != *value).then(|| format!("{name} {shown} instead of {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{QdiscHandle, TcParent};

    fn planned(kind: &'static str, options: &str, requested: &[&'static str]) -> PlannedDiscipline {
        PlannedDiscipline {
            device: "eth0".to_owned(),
            parent: TcParent::Root,
            handle: QdiscHandle::class(1, 0),
            kind,
            rate: None,
            options: options.split(' ').map(str::to_owned).collect(),
            requested: requested.to_vec(),
        }
    }

    fn found(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).expect("JSON")
    }

    /// Output of iproute2 6.1 on Linux 6.18.
    const CAKE: &str = r#"{"bandwidth":2500000,"diffserv":"diffserv8","flowmode":"dual-srchost","nat":false,"wash":false,
        "ingress":false,"ack-filter":"aggressive","split_gso":false,"rtt":60000,"raw":true,"overhead":0,"memlimit":3000000,"fwmark":"0xf0"}"#;
    const FQ_CODEL: &str = r#"{"limit":1001,"flows":64,"quantum":300,"target":4999,"ce_threshold":1999,"interval":99999,
        "memory_limit":3000000,"ecn":true,"drop_batch":8}"#;

    #[test]
    fn options_that_were_asked_for_are_compared() {
        let names = ["memory", "tins", "ack-filter", "split-gso", "mode", "rtt", "fwmark"];
        let same = "diffserv8 egress ack-filter-aggressive no-split-gso rtt 60000us memlimit 3000000 fwmark 0xf0";
        assert_eq!(differences(&planned("cake", same, &names), &found(CAKE)), [""; 0]);
        let other = "diffserv3 ingress ack-filter split-gso rtt 61000us memlimit 4000000 fwmark 0xff";
        assert_eq!(
            differences(&planned("cake", other, &names), &found(CAKE)),
            [
                "rtt 60000 µs instead of 61000 µs",
                "memory 3000000 instead of 4000000",
                "fwmark 0xf0 instead of 0xff",
                "tins diffserv8 instead of diffserv3",
                "ack-filter aggressive instead of on",
                "split-gso off instead of on",
                "mode egress instead of ingress",
            ]
        );
        assert_eq!(differences(&planned("cake", other, &[]), &found(CAKE)), [""; 0], "only what was asked for");
    }

    #[test]
    fn the_kernel_s_units_are_no_difference() {
        let names = ["limit", "flows", "quantum", "interval", "ce-threshold", "target", "memory", "ecn"];
        let same = "limit 1001 flows 64 quantum 300 target 5000us ce_threshold 2000us interval 100000us ecn memory_limit 3000000";
        assert_eq!(differences(&planned("fq_codel", same, &names), &found(FQ_CODEL)), [""; 0]);
        let other = same.replace("5000us", "6000us").replace("1001", "1002").replace(" ecn", " noecn");
        let found = differences(&planned("fq_codel", &other, &names), &found(FQ_CODEL));
        assert_eq!(found, ["limit 1001 instead of 1002", "target 4999 µs instead of 6000 µs", "ecn on instead of off"]);
        let unknown = Map::new();
        assert_eq!(differences(&planned("fq_codel", same, &names), &unknown), [""; 0], "a tc without these keys");
    }
}
