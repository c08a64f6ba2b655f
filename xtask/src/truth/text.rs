//! Path descriptions as TOML text.

use std::fmt::Write as _;

use toml::{Table, Value};

/// Formats a description: plain keys first, then a section for each host, link and flow.
pub(super) fn text(path: &Table) -> String {
    let mut text = String::new();
    section(&mut text, "", path);
    text
}

fn section(text: &mut String, name: &str, table: &Table) {
    for (key, value) in table.iter().filter(|(_, value)| !is_section(value)) {
        let _ = writeln!(text, "{} = {}", quoted_key(key), inline(value));
    }
    for (key, value) in table.iter().filter(|(_, value)| is_section(value)) {
        let full = if name.is_empty() { quoted_key(key) } else { format!("{name}.{}", quoted_key(key)) };
        match value {
            Value::Table(inner) => {
                // A table with nothing but tables in it needs no head.
                if inner.is_empty() || inner.values().any(|value| !is_section(value)) {
                    let _ = writeln!(text, "\n[{full}]");
                }
                section(text, &full, inner);
            }
            Value::Array(items) => {
                for inner in items.iter().filter_map(Value::as_table) {
                    let _ = writeln!(text, "\n[[{full}]]");
                    section(text, &full, inner);
                }
            }
            _ => {}
        }
    }
}

/// True for what has a head of its own: tables that are not parameters of a key, and lists of links and flows.
fn is_section(value: &Value) -> bool {
    match value {
        Value::Table(table) => !PARAMETERS.iter().any(|key| table.contains_key(*key)),
        Value::Array(items) => {
            items.first().is_some_and(|item| item.as_table().is_some_and(|one| !one.contains_key("at")))
        }
        _ => false,
    }
}

/// Keys of tables that are written in one line.
const PARAMETERS: [&str; 5] = ["gilbert_elliott", "every", "share", "burst", "overhead"];

fn inline(value: &Value) -> String {
    match value {
        Value::Table(table) => {
            let pairs: Vec<String> =
                table.iter().map(|(key, value)| format!("{} = {}", quoted_key(key), inline(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::String(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Datetime(time) => time.to_string(),
    }
}

fn quoted_key(key: &str) -> String {
    let is_bare = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_bare { key.to_owned() } else { format!("\"{key}\"") }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace;

    #[test]
    fn every_path_of_the_library_is_the_same_after_writing() {
        let folder = workspace::root().join("paths");
        let mut count = 0;
        for entry in fs::read_dir(folder).expect("the folder of paths") {
            let file = entry.expect("an entry").path();
            let read: Table = fs::read_to_string(&file).expect("readable").parse().expect("TOML");
            let written = text(&read);
            assert_eq!(written.parse::<Table>().expect(&written), read, "{}", file.display());
            count += 1;
        }
        assert!(count >= 80, "{count} paths");
    }
}
