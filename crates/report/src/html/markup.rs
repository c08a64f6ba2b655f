//! Escapes text for HTML.

use core::fmt::Write as _;

use crate::escape;

/// Escapes `text` for an element's content or an attribute's value in double quotes. Controls and characters that
/// reorder text are shown as escapes, as by [`escape::line`].
pub fn escaped(text: &str) -> String {
    replaced(&escape::line(text))
}

/// Escapes text of several lines in the same way.
pub(super) fn escaped_lines(text: &str) -> String {
    replaced(&escape::text(text))
}

fn replaced(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Writes `value` as JSON inside a `script` element: `<` would end the element, so it becomes `\u003c` (HTML
/// §4.12.1.3).
pub(crate) fn json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Appends formatted text.
pub(crate) trait HtmlWriter {
    fn push_fmt(&mut self, arguments: core::fmt::Arguments<'_>);
}

impl HtmlWriter for String {
    fn push_fmt(&mut self, arguments: core::fmt::Arguments<'_>) {
        self.write_fmt(arguments).expect("writing to a String never fails");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_has_no_markup_left(text in any::<String>()) {
            let shown = escaped(&text);
            let harmless = !shown.contains(['<', '>', '"', '\'', '\n', '\u{1b}', '\u{202e}']);
            prop_assert!(harmless, "{}", shown);
            let named = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            let rest = named.iter().fold(shown.clone(), |rest, entity| rest.replace(entity, ""));
            prop_assert!(!rest.contains('&'), "{shown}");
        }

        #[test]
        fn json_ends_no_script_and_reads_back(text in any::<String>()) {
            let value = serde_json::Value::String(text);
            let written = json(&value);
            prop_assert!(!written.contains('<'));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&written).ok(), Some(value));
        }
    }
}
