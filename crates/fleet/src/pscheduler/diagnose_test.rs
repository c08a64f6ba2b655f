//! The test `diagnose`: what limits a transfer between two hosts. Methods of a test's plug-in as functions.

use serde_json::{Map, Value, json};

use super::maintainer;
use super::specification::{Specification, TestKind};

/// Kind of a value, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Text,
    Number,
    Switch,
}

/// Values of a specification: key, which is the option's name, its kind, and its title for people.
const VALUES: [(&str, ValueKind, &str); 14] = [
    ("source", ValueKind::Text, "Source"),
    ("source-node", ValueKind::Text, "Source Node"),
    ("dest", ValueKind::Text, "Destination"),
    ("dest-node", ValueKind::Text, "Destination Node"),
    ("ip-version", ValueKind::Number, "IP Version"),
    ("duration", ValueKind::Text, "Duration"),
    ("omit", ValueKind::Text, "Omit"),
    ("parallel", ValueKind::Number, "Parallel Streams"),
    ("window-size", ValueKind::Number, "Window Size"),
    ("congestion", ValueKind::Text, "Congestion Algorithm"),
    ("link-rtt", ValueKind::Text, "Link RTT"),
    ("local-address", ValueKind::Text, "Local Address"),
    ("reverse", ValueKind::Switch, "Reverse"),
    ("no-capacity", ValueKind::Switch, "No Capacity"),
];

/// Keys of the specification besides those of every test.
pub(super) const KEYS: &[&str] = &[
    "dest-node",
    "duration",
    "omit",
    "parallel",
    "window-size",
    "congestion",
    "link-rtt",
    "local-address",
    "reverse",
    "no-capacity",
];

/// Description of the test, for its method `enumerate`.
#[must_use]
pub fn test_description(version: &str) -> Value {
    json!({
        "schema": 1,
        "name": "diagnose",
        "description": "Find what limits a transfer between two hosts: application, host or network",
        "version": version,
        "maintainer": maintainer(),
        "scheduling-class": "exclusive",
    })
}

fn check(spec: &Value) -> Result<Specification, String> {
    if !spec.is_object() {
        return Err("the specification is not an object".to_owned());
    }
    let test = json!({ "type": TestKind::Diagnose.name(), "spec": spec });
    Specification::parse(&test).map_err(|reasons| reasons.join("; "))
}

/// Answer of the method `spec-is-valid`.
#[must_use]
pub fn spec_is_valid(spec: &Value) -> Value {
    validity(check(spec).err())
}

fn validity(error: Option<String>) -> Value {
    error.map_or_else(|| json!({ "valid": true }), |error| json!({ "valid": false, "error": error }))
}

/// Answer of the method `participants`.
pub fn participants(spec: &Value) -> Result<Value, String> {
    let values = check(spec)?.values;
    let source = values.source_node.or(values.source);
    let mut answer = json!({ "participants": [source, values.dest_node.or(values.dest)] });
    if answer["participants"][0].is_null() {
        answer["null-reason"] = json!("No source specified");
    }
    Ok(answer)
}

/// Answer of the method `cli-to-spec`: the specification that these arguments ask for.
pub fn cli_to_spec(arguments: &[String]) -> Result<Value, String> {
    let mut spec = Map::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, attached) =
            argument.split_once('=').map_or((argument.as_str(), None), |(name, value)| (name, Some(value)));
        let unknown = || {
            let options = VALUES.map(|(key, ..)| format!("--{key}")).join(", ");
            format!("unknown argument {argument:?} (expected one of {options})")
        };
        let name = name.strip_prefix("--").ok_or_else(unknown)?;
        if let Some((key, ..)) =
            VALUES.iter().find(|(key, kind, _)| *kind == ValueKind::Switch && name == format!("no-{key}"))
        {
            spec.insert((*key).to_owned(), json!(false));
            continue;
        }
        let (key, kind, _) = VALUES.iter().find(|(key, ..)| *key == name).ok_or_else(unknown)?;
        if *kind == ValueKind::Switch {
            spec.insert((*key).to_owned(), json!(true));
            continue;
        }
        let text = attached.or_else(|| arguments.next().map(String::as_str));
        let text = text.ok_or_else(|| format!("--{key} has no value"))?;
        let value = match kind {
            ValueKind::Number => {
                json!(text.parse::<u64>().map_err(|_| format!("--{key} {text:?} is no whole number"))?)
            }
            ValueKind::Text | ValueKind::Switch => json!(text),
        };
        spec.insert((*key).to_owned(), value);
    }
    spec.insert("schema".to_owned(), json!(1));
    let spec = Value::Object(spec);
    check(&spec)?;
    Ok(spec)
}

/// Answer of the method `spec-to-cli`: arguments from which `cli-to-spec` makes the same specification.
pub fn spec_to_cli(spec: &Value) -> Result<Value, String> {
    check(spec)?;
    let mut arguments = Vec::new();
    for (key, ..) in VALUES {
        match spec.get(key) {
            Some(Value::Bool(true)) => arguments.push(format!("--{key}")),
            Some(Value::Bool(false)) => arguments.push(format!("--no-{key}")),
            Some(value) => arguments.extend([format!("--{key}"), text_of(value)]),
            None => {}
        }
    }
    Ok(json!(arguments))
}

/// Answer of the method `spec-format`: the specification as `text/plain` or `text/html`.
pub fn format_spec(spec: &Value, mime_type: &str) -> Result<String, String> {
    check(spec)?;
    let rows = VALUES
        .map(|(key, _, title)| (title.to_owned(), spec.get(key).map_or_else(|| "Not Specified".to_owned(), text_of)));
    table(&rows, mime_type)
}

/// Answer of the method `result-format`: the `result` of its input as `text/plain` or `text/html`.
pub fn format_result(input: &Value, mime_type: &str) -> Result<String, String> {
    let result = input.get("result").filter(|result| result.is_object()).ok_or("the input has no \"result\"")?;
    if result.get("succeeded") != Some(&Value::Bool(true)) {
        let error = result.get("error").map_or_else(|| "no reason was reported".to_owned(), text_of);
        return table(&[("Diagnosis failed".to_owned(), error)], mime_type);
    }
    let mut rows = Vec::new();
    rows.extend(result.get("goodput-bits").and_then(Value::as_f64).map(|bits| ("Goodput".to_owned(), rate(bits))));
    for verdict in result.get("verdicts").and_then(Value::as_array).into_iter().flatten() {
        let of = |key: &str| verdict.get(key).map(text_of).unwrap_or_default();
        rows.push((format!("{} ({}, {})", of("cause"), of("location"), of("confidence")), of("text")));
        for advice in verdict.get("advice").and_then(Value::as_array).into_iter().flatten() {
            rows.push(("Advice".to_owned(), text_of(advice)));
        }
    }
    match mime_type {
        "text/plain" => {
            let blocks = rows.iter().map(|(title, text)| format!("{title}\n{}", indented(text)));
            Ok(blocks.collect::<Vec<_>>().join("\n"))
        }
        _ => table(&rows, mime_type),
    }
}

/// Longest line of a text for people.
const TEXT_WIDTH: usize = 76;

/// Lines of a sentence, indented.
fn indented(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= TEXT_WIDTH) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("  {word}")),
        }
    }
    lines.join("\n")
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn rate(bits: f64) -> String {
    let (value, unit) = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")]
        .into_iter()
        .find(|(size, _)| bits >= *size)
        .map_or((bits, "bit/s"), |(size, unit)| (bits / size, unit));
    format!("{value:.2} {unit}")
}

fn table(rows: &[(String, String)], mime_type: &str) -> Result<String, String> {
    match mime_type {
        "text/plain" => {
            let width = rows.iter().map(|(title, _)| title.chars().count()).max().unwrap_or(0);
            let line = |(title, value): &(String, String)| {
                let dots = ".".repeat(width + 3 - title.chars().count());
                format!("{title} {dots} {value}")
            };
            Ok(rows.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
        "text/html" => {
            let line = |(title, value): &(String, String)| {
                format!("<tr><td>{}</td><td>{}</td></tr>\n", escaped(title), escaped(value))
            };
            Ok(format!("<table>\n{}</table>", rows.iter().map(line).collect::<String>()))
        }
        _ => Err(format!("unsupported MIME type {mime_type:?} (expected text/plain or text/html)")),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Limits of the test: key, and the member that a limit of its kind needs.
const LIMITS: [(&str, &str); 7] = [
    ("duration", "range"),
    ("parallel", "range"),
    ("window-size", "range"),
    ("ip-version", "enumeration"),
    ("source", "cidr"),
    ("dest", "cidr"),
    ("endpoint", "cidr"),
];

/// Answer of the method `limit-is-valid`.
#[must_use]
pub fn limit_is_valid(limit: &Value) -> Value {
    validity(limit_error(limit))
}

fn limit_error(limit: &Value) -> Option<String> {
    let Some(limit) = limit.as_object() else { return Some("the limit is not an object".to_owned()) };
    limit.iter().filter(|(key, _)| *key != "schema").find_map(|(key, value)| {
        let Some((_, needed)) = LIMITS.iter().find(|(known, _)| known == key) else {
            let known = LIMITS.map(|(key, _)| key).join(", ");
            return Some(format!("unknown limit {key:?} (expected one of {known})"));
        };
        let members = value.as_object();
        let unknown = members
            .into_iter()
            .flat_map(Map::keys)
            .find(|member| !["description", "invert", needed].contains(&member.as_str()));
        match (members.and_then(|members| members.get(*needed)), unknown) {
            (_, Some(member)) => Some(format!("limit {key:?} has an unknown member {member:?}")),
            (None, None) => Some(format!("limit {key:?} has no {needed:?}")),
            (Some(range), None) if *needed == "range" => {
                let is_whole = ["lower", "upper"].iter().all(|bound| range.get(bound).is_some());
                (!is_whole).then(|| format!("the range of limit {key:?} needs \"lower\" and \"upper\""))
            }
            (Some(list), None) => (!list.is_array()).then(|| format!("{needed:?} of limit {key:?} is no list")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_key_has_its_option() {
        let common = ["source", "source-node", "dest", "ip-version"];
        let mut options: Vec<&str> = VALUES.iter().map(|(key, ..)| *key).filter(|key| !common.contains(key)).collect();
        let mut keys = KEYS.to_vec();
        options.sort_unstable();
        keys.sort_unstable();
        assert_eq!(options, keys);
    }

    #[test]
    fn arguments_and_specifications_are_the_same() {
        let line = "--source a --dest b --ip-version 6 --duration PT20S --parallel 4 --congestion cubic --reverse --no-no-capacity";
        let spec = cli_to_spec(&words(line)).expect("a specification");
        assert_eq!(spec["parallel"], 4);
        assert_eq!((&spec["reverse"], &spec["no-capacity"]), (&json!(true), &json!(false)));
        assert_eq!(spec_to_cli(&spec), Ok(json!(words(line))));
        assert_eq!(cli_to_spec(&words("--dest=b")), Ok(json!({ "dest": "b", "schema": 1 })));
        for (line, part) in [
            ("--parallel 4", "no \"dest\""),
            ("--dest", "--dest has no value"),
            ("--dest a --parallel x", "no whole number"),
            ("--dest a --port 3", "unknown argument \"--port\" (expected one of --source"),
            ("a", "unknown argument \"a\""),
        ] {
            let error = cli_to_spec(&words(line)).expect_err("no specification");
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn participants_are_the_nodes() {
        for (spec, answer) in [
            (json!({ "dest": "b" }), json!({ "participants": [null, "b"], "null-reason": "No source specified" })),
            (json!({ "source": "a", "dest": "b" }), json!({ "participants": ["a", "b"] })),
            (
                json!({ "source": "a", "source-node": "m", "dest": "b", "dest-node": "n" }),
                json!({ "participants": ["m", "n"] }),
            ),
        ] {
            assert_eq!(participants(&spec), Ok(answer));
        }
        assert_eq!(spec_is_valid(&json!({ "dest": "b" })), json!({ "valid": true }));
        let error = spec_is_valid(&json!({ "dest": "b", "udp": true }));
        assert_eq!(error["error"], "linerate does not support \"udp\" in a test diagnose");
        assert_eq!(spec_is_valid(&json!("x"))["valid"], false);
    }

    #[test]
    fn results_are_shown_for_people() {
        let sentence = format!("a < b {}", "word ".repeat(20).trim_end());
        let result = json!({
            "succeeded": true, "verdict": sentence, "goodput-bits": 12_340_000.0,
            "verdicts": [{ "cause": "receive_window", "location": "receiver", "confidence": "high", "text": sentence,
                           "advice": ["raise tcp_rmem"] }]
        });
        let input = json!({ "spec": {}, "result": result });
        let text = format_result(&input, "text/plain").expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["Goodput", "  12.34 Mbit/s", "receive_window (receiver, high)"], "{text}");
        assert_eq!(lines[5..], ["Advice", "  raise tcp_rmem"], "{text}");
        assert!(lines[3].starts_with("  a < b word") && lines.iter().all(|line| line.len() <= 76), "{text}");
        let html = format_result(&input, "text/html").expect("HTML");
        assert!(html.contains("<td>a &lt; b word") && html.contains("raise tcp_rmem"), "{html}");
        let failed = json!({ "result": { "succeeded": false, "error": "no route" } });
        assert_eq!(format_result(&failed, "text/plain"), Ok("Diagnosis failed ... no route".to_owned()));
        assert!(format_result(&input, "text/csv").is_err() && format_result(&json!({}), "text/plain").is_err());
        let spec = format_spec(&json!({ "dest": "b", "reverse": true }), "text/plain").expect("text");
        assert!(
            spec.contains("Destination ............ b") && spec.contains("Source ................. Not Specified"),
            "{spec}"
        );
    }

    #[test]
    fn limits_are_checked() {
        let range = json!({ "range": { "lower": "PT1S", "upper": "PT60S" } });
        assert_eq!(limit_is_valid(&json!({ "schema": 1, "duration": range })), json!({ "valid": true }));
        for (limit, part) in [
            (json!([]), "not an object"),
            (json!({ "bandwidth": {} }), "unknown limit \"bandwidth\" (expected one of duration"),
            (json!({ "duration": {} }), "has no \"range\""),
            (json!({ "duration": { "range": { "lower": "PT1S" } } }), "needs \"lower\" and \"upper\""),
            (json!({ "dest": { "cidr": "10.0.0.0/8" } }), "no list"),
            (json!({ "dest": { "cidr": [], "x": 1 } }), "unknown member \"x\""),
        ] {
            let answer = limit_is_valid(&limit);
            assert_eq!(answer["valid"], false);
            assert!(answer["error"].as_str().is_some_and(|error| error.contains(part)), "{part}: {answer}");
        }
    }
}
