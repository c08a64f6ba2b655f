//! Report of a document that is not a run: its keys and lists as tables, in the document's order of keys.

use linerate_documents::civil_time;
use linerate_documents::label::DocumentKind;
use linerate_documents::run::FigureUnit;
use serde_json::{Map, Value};

use super::{NamedFact, Presentation, Quantity, ReportTable, SettingsInEffect, TableCell};

/// Largest number of columns of a table of objects; larger objects become rows of key and value.
const MAX_COLUMNS: usize = 5;

/// Keys that identify the document and have no table.
const HEAD_KEYS: [&str; 4] = ["$schema", "kind", "schema", "linerate_version"];

/// Report of a document as printed by `--json`.
#[must_use]
pub fn present_document(kind: DocumentKind, document: &Map<String, Value>) -> Presentation<'static> {
    let version = document.get("linerate_version").and_then(Value::as_str);
    let mut presentation = Presentation {
        title: kind.title().to_owned(),
        facts: version.map(|version| NamedFact::new("linerate", version)).into_iter().collect(),
        verdict: document.get("sentence").and_then(Value::as_str).unwrap_or_default().to_owned(),
        badge: None,
        figures: Vec::new(),
        settings: SettingsInEffect::default(),
        charts: Vec::new(),
        tables: Vec::new(),
        notes: Vec::new(),
        missing: Vec::new(),
        environment: Vec::new(),
        next: None,
    };
    let mut values = ReportTable::new("values", "Values", &["Name", "Value"]);
    for (key, value) in document.iter().filter(|(key, _)| !HEAD_KEYS.contains(&key.as_str())) {
        match value {
            Value::Array(notes) if key == "notes" => {
                presentation.notes.extend(notes.iter().map(|note| text_of(note).into_owned()));
            }
            Value::Array(items) if items.is_empty() => values.push_row(words(key), vec![TableCell::text("none")]),
            Value::Array(items) => presentation.tables.extend(list_table(key, items)),
            Value::Object(object) => presentation.tables.extend(object_table(key, object)),
            scalar => values.push_row(words(key), vec![cell(key, scalar)]),
        }
    }
    presentation.tables.splice(0..0, values.non_empty());
    presentation
}

/// Name of a key as words, without its unit.
fn words(key: &str) -> String {
    let unit = ["_unix_ns", "_ns", "_bits_per_second", "_bytes"].into_iter().find_map(|unit| key.strip_suffix(unit));
    unit.unwrap_or(key).replace('_', " ")
}

fn text_of(value: &Value) -> std::borrow::Cow<'_, str> {
    match value {
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

/// Cell of a value whose key names its unit.
fn cell(key: &str, value: &Value) -> TableCell {
    let number = value.as_f64();
    let unit = [
        ("_ns", FigureUnit::Nanoseconds),
        ("_bits_per_second", FigureUnit::BitsPerSecond),
        ("_bytes", FigureUnit::Bytes),
    ]
    .into_iter()
    .find_map(|(suffix, unit)| key.ends_with(suffix).then_some(unit));
    match (value, number, unit) {
        (_, Some(number), _) if key.ends_with("_unix_ns") => {
            TableCell::Text(civil_time::of_unix_ns(value.as_u64().unwrap_or_else(|| super::quantity::whole(number))))
        }
        (_, Some(number), Some(unit)) => TableCell::Value(Quantity::new(number, unit)),
        (Value::Null, ..) => TableCell::Nothing,
        (Value::Bool(is_true), ..) => TableCell::text(if *is_true { "yes" } else { "no" }),
        (Value::Array(items), ..) => {
            let items = items.iter().map(|item| cell("", item).display_text().into_owned());
            TableCell::Text(items.collect::<Vec<_>>().join("; "))
        }
        (Value::Object(fact), ..) if is_fact(fact) => match &fact["value"] {
            Value::Null => TableCell::Unknown(fact.get("reason").map(text_of).unwrap_or_default().into_owned()),
            known => cell(key, known),
        },
        (Value::Object(object), ..) => TableCell::Text(joined(object)),
        (other, ..) => TableCell::Text(text_of(other).into_owned()),
    }
}

/// True for a value that may be unknown ([`linerate_model::fact::Fact`]).
fn is_fact(object: &Map<String, Value>) -> bool {
    object.contains_key("obstacle") && object.contains_key("value")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Names and cells of an object's members, those of objects in it with both names. Empty members are left out.
fn members(prefix: &str, object: &Map<String, Value>) -> Vec<(String, TableCell)> {
    let member = |(key, value): (&String, &Value)| match value {
        Value::Object(inner) if !is_fact(inner) => members(&format!("{prefix}{} ", words(key)), inner),
        value => vec![(format!("{prefix}{}", words(key)), cell(key, value))],
    };
    object.iter().filter(|(_, value)| !is_empty(value)).flat_map(member).collect()
}

/// Members of a nested object in one cell.
fn joined(object: &Map<String, Value>) -> String {
    let member = |(name, cell): (String, TableCell)| format!("{name} {}", cell.display_text());
    members("", object).into_iter().map(member).collect::<Vec<_>>().join(", ")
}

fn object_table(key: &str, object: &Map<String, Value>) -> Option<ReportTable> {
    let mut table = ReportTable::new(key, &title(key), &["Name", "Value"]);
    for (name, cell) in members("", object) {
        table.push_row(name, vec![cell]);
    }
    table.non_empty()
}

fn title(key: &str) -> String {
    let words = words(key);
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Table of a list: a column for each key of its objects, or a row for each key where they have many.
fn list_table(key: &str, items: &[Value]) -> Option<ReportTable> {
    let mut keys: Vec<&String> = Vec::new();
    for object in items.iter().filter_map(Value::as_object) {
        keys.extend(object.keys().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
    }
    let number = |index: usize| format!("{}", index + 1);
    if keys.is_empty() {
        let mut table = ReportTable::new(key, &title(key), &["", "Value"]);
        for (index, item) in items.iter().enumerate() {
            table.push_row(number(index), vec![cell(key, item)]);
        }
        return table.non_empty();
    }
    if keys.len() > MAX_COLUMNS {
        let mut table = ReportTable::new(key, &title(key), &["", "Name", "Value"]);
        for (index, object) in items.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_object()?))) {
            for (name, cell) in members("", object) {
                table.push_row(number(index), vec![TableCell::Text(name), cell]);
            }
        }
        return table.non_empty();
    }
    let columns: Vec<String> = keys.iter().map(|key| title(key)).collect();
    let columns: Vec<&str> = core::iter::once("").chain(columns.iter().map(String::as_str)).collect();
    let mut table = ReportTable::new(key, &title(key), &columns);
    for (index, object) in items.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_object()?))) {
        let value = |key: &&String| object.get(*key).map_or(TableCell::Nothing, |value| cell(key, value));
        table.push_row(number(index), keys.iter().map(value).collect());
    }
    table.non_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::throughput_text::TextStyle;

    fn rendered(document: &Value) -> String {
        let object = document.as_object().expect("an object");
        crate::text::render(&[present_document(DocumentKind::Audit, object)], TextStyle::plain())
    }

    #[test]
    fn keys_name_the_units_of_values() {
        let text = rendered(&json!({
            "schema": 1, "kind": "audit", "interval_ns": 20_000_000, "rate_bits_per_second": 1e9, "is_active": true,
            "present_value": { "value": null, "obstacle": "absent", "reason": "no such file" },
        }));
        for part in ["interval", "20.0 ms", "1.00 Gbit/s", "is active", "yes"] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(!text.contains("schema") && !text.contains("kind"), "{text}");
    }

    #[test]
    fn empty_lists_are_said() {
        let text = rendered(&json!({ "schema": 1, "kind": "change-sets", "sets": [], "notes": [] }));
        assert!(text.contains("sets") && text.contains("none") && !text.contains("notes"), "{text}");
    }

    #[test]
    fn lists_become_tables_that_fit() {
        let finding = json!({ "rule": "sack-off", "severity": "critical", "text": "long ".repeat(40) });
        let wide: Map<String, Value> = (0..9).map(|key| (format!("key_{key}"), json!("word ".repeat(9)))).collect();
        let text = rendered(
            &json!({ "findings": [finding], "flows": [wide], "path": { "hop": { "number": 3, "name": "" } }, "facts": ["one", "two"], "notes": ["A note."] }),
        );
        for part in ["Findings", "hop number", "sack-off", "Flows", "key 8", "Facts", "two", "A note."] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
