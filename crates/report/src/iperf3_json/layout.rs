//! The layout of iperf3's JSON library for a JSON text: a document with many streams is printed without a tree in memory.

use super::value::{double, indent, print_escaping};

/// Container that is open in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// Prints `json`, which is on one line and without blanks, as the tree of its value is printed.
///
/// `depth` is the number of tabs before its closing bracket; `None` for the compact form.
pub(super) fn print(json: &str, text: &mut String, depth: Option<usize>) {
    let mut open: Vec<Container> = Vec::new();
    let mut rest = json;
    while let Some(first) = rest.bytes().next() {
        let length = match first {
            b'"' => string_length(rest),
            b'-' | b'0'..=b'9' | b'a'..=b'z' => rest.find([',', ']', '}']).unwrap_or(rest.len()),
            _ => 1,
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        let inner = |open: &[Container]| depth.map(|depth| depth + open.len());
        match first {
            // Escaped already, but for the controls that `serde_json` does not escape.
            b'"' => print_escaping(token, text, char::is_control),
            b'-' | b'0'..=b'9' => print_number(token, text),
            b'{' => {
                open.push(Container::Object);
                text.push('{');
                if !after.starts_with('}') {
                    break_line(text, inner(&open));
                }
            }
            b'[' => {
                open.push(Container::Array);
                text.push('[');
            }
            b'}' => {
                open.pop();
                break_line(text, inner(&open));
                text.push('}');
            }
            b']' => {
                open.pop();
                text.push(']');
            }
            b',' if open.last() == Some(&Container::Object) => {
                text.push(',');
                break_line(text, inner(&open));
            }
            b',' => text.push_str(if depth.is_some() { ", " } else { "," }),
            b':' => text.push_str(if depth.is_some() { ":\t" } else { ":" }),
            _ => text.push_str(token),
        }
    }
}

/// Number of bytes of the string with which a text begins, with both quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: u8| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    };
    text.bytes().skip(1).position(is_end).map_or(text.len(), |end| end + 2)
}

/// Prints a number with the digits of [`double`] if it has a fraction or an exponent.
fn print_number(token: &str, text: &mut String) {
    match token.parse() {
        Ok(number) if token.contains(['.', 'e', 'E']) => text.push_str(&double(number)),
        _ => text.push_str(token),
    }
}

fn break_line(text: &mut String, depth: Option<usize>) {
    if depth.is_some() {
        text.push('\n');
        indent(text, depth);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::iperf3_json::OrderedValue;

    fn any_value() -> impl Strategy<Value = Value> {
        let number = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from)
        ];
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number, ".*".prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,8}", inner), 0..5).prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    fn assert_same_layout(value: &Value) {
        let json = value.to_string();
        let tree = OrderedValue::parse(&json).expect("just printed");
        let text = OrderedValue::Text(json);
        assert_eq!(text.to_compact(), tree.to_compact());
        assert_eq!(text.to_pretty(), tree.to_pretty());
        let nested = |value: OrderedValue| OrderedValue::from(vec![OrderedValue::from(vec![value])]).to_pretty();
        assert_eq!(nested(text), nested(tree));
    }

    #[test]
    fn a_text_is_printed_as_its_tree() {
        for value in [json!({}), json!([]), json!([{}, [], {"a": [{"b": 0.1, "c\\\"": "\u{9b}{,"}, 1]}, 1e300])] {
            assert_same_layout(&value);
        }
    }

    proptest! {
        #[test]
        fn every_text_is_printed_as_its_tree(value in any_value()) {
            assert_same_layout(&value);
        }
    }
}
