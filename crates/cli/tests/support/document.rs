//! Access to JSON documents of iperf3.

use std::collections::BTreeSet;

use serde_json::Value;

/// Number at `pointer` (RFC 6901), which must exist.
#[track_caller]
pub(crate) fn number(document: &Value, pointer: &str) -> f64 {
    let value = document.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {document:#}"));
    value.as_f64().unwrap_or_else(|| panic!("{pointer} is {value}, not a number"))
}

/// Non-negative whole number at `pointer`.
#[track_caller]
pub(crate) fn count(document: &Value, pointer: &str) -> u64 {
    let value = document.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {document:#}"));
    value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}, not a whole number"))
}

/// Text at `pointer`.
#[track_caller]
pub(crate) fn text<'a>(document: &'a Value, pointer: &str) -> &'a str {
    let value = document.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {document:#}"));
    value.as_str().unwrap_or_else(|| panic!("{pointer} is {value}, not a text"))
}

/// Array at `pointer`.
#[track_caller]
pub(crate) fn array<'a>(document: &'a Value, pointer: &str) -> &'a [Value] {
    let value = document.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {document:#}"));
    value.as_array().unwrap_or_else(|| panic!("{pointer} is {value}, not an array"))
}

/// Sum of `key` over all intervals that count, from their object `sum`.
#[track_caller]
pub(crate) fn sum_of_intervals(document: &Value, sum: &str, key: &str) -> u64 {
    let intervals = array(document, "/intervals").iter();
    let counted = intervals.filter(|interval| interval[sum]["omitted"] == Value::Bool(false));
    counted.map(|interval| count(interval, &format!("/{sum}/{key}"))).sum()
}

/// Path of each value with its type, array elements as one: `intervals[].streams[].rtt: number`.
pub(crate) fn key_paths(document: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    collect(document, "", &mut paths);
    paths
}

fn collect(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(members) => {
            for (key, member) in members {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(member, &below, paths);
            }
            "object"
        }
        Value::Array(elements) => {
            for element in elements {
                collect(element, &format!("{path}[]"), paths);
            }
            "array"
        }
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    paths.insert(format!("{path}: {kind}"));
}
