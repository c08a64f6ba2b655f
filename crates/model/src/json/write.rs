//! Writing of JSON, with the one serialiser of serde that writes compact text.

use serde::Serialize;
use serde_json::Value;

/// Returns the JSON text on several lines, indented by two spaces.
pub fn to_string_pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(value).map(|text| indent(&text))
}

/// Returns the value of a type.
pub fn to_value(value: &impl Serialize) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&serde_json::to_string(value)?)
}

/// Indents a compact JSON text.
fn indent(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut is_escaped) = (0, false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            lines.push(character);
            in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        if matches!(character, '}' | ']') {
            depth -= 1;
            break_line(&mut lines, depth);
        }
        lines.push(character);
        match character {
            '"' => in_string = true,
            ':' => lines.push(' '),
            ',' => break_line(&mut lines, depth),
            '{' | '[' => {
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    lines.push(end);
                } else {
                    depth += 1;
                    break_line(&mut lines, depth);
                }
            }
            _ => {}
        }
    }
    lines
}

fn break_line(lines: &mut String, depth: usize) {
    lines.push('\n');
    for _ in 0..depth {
        lines.push_str("  ");
    }
}
