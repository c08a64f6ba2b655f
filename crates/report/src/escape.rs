//! Escapes text from the network so that it cannot control a terminal.
//!
//! Titles, cookies and a server's output come from the peer. Printed raw, they could move the cursor, change the
//! window's title or send key strokes (ECMA-48 control sequences), or show text in another order than it is stored in
//! (Unicode's bidirectional controls).

use core::fmt::Write as _;
use std::borrow::Cow;

/// Escapes `text` of several lines: line feeds and tabs stay, every other control character becomes an escape.
///
/// ```
/// assert_eq!(linerate_report::escape::text("ok\n\u{1b}[2J"), "ok\n\\x1b[2J");
/// ```
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_harmful(character) && character != '\n' && character != '\t')
}

/// Escapes `text` within one line: line feeds and tabs are escaped, too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmful)
}

fn escaped(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&harmful) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if harmful(character) {
            push_escape(&mut escaped, character);
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn push_escape(escaped: &mut String, character: char) {
    let code = u32::from(character);
    let written = if code < 0x100 { write!(escaped, "\\x{code:02x}") } else { write!(escaped, "\\u{{{code:x}}}") };
    written.expect("writing to a String never fails");
}

/// C0 and C1 controls, DEL, and the characters that reorder or break lines without being visible.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_is_not_copied() {
        assert!(matches!(text("héllo\tworld\n"), Cow::Borrowed("héllo\tworld\n")));
    }

    #[test]
    fn controls_of_all_kinds_are_escaped() {
        assert_eq!(text("a\u{1b}]0;x\u{7}b\r\nc"), "a\\x1b]0;x\\x07b\\x0d\nc");
        assert_eq!(text("\u{9b}31m\u{7f}\u{202e}"), "\\x9b31m\\x7f\\u{202e}");
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(line("a\nb\tc"), "a\\x0ab\\x09c");
    }

    #[test]
    fn nothing_harmful_is_left_of_any_character() {
        let every: String = (0..=0x2100_u32).filter_map(char::from_u32).collect();
        assert!(!line(&every).contains(is_harmful));
        assert!(text(&every).chars().all(|c| !is_harmful(c) || c == '\n' || c == '\t'));
    }
}
