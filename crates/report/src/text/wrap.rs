//! Line wrapping.

use crate::throughput_text::{TextColour, TextStyle};

/// Width of `text` in columns, estimated without a font: one for each character.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// `line` without the blanks at its end, and a line feed.
pub(super) fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Wraps `text` into lines of at most `width` columns. A longer word is broken.
pub fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ').flat_map(|word| split_word(word, width)) {
            let needed = columns(&line) + usize::from(!line.is_empty()) + columns(&word);
            if !line.is_empty() && needed > width {
                lines.push(core::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    lines
}

fn split_word(word: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(width).map(|piece| piece.iter().collect()).collect()
}

/// Appends `content` as lines, the first after `first`, the others after `rest`, each ended by a line feed.
pub(super) fn push_wrapped(
    text: &mut String,
    content: &str,
    first: &str,
    rest: &str,
    style: TextStyle,
    paint: Option<TextColour>,
) {
    let available = usize::from(style.width.get()).saturating_sub(columns(first).max(columns(rest))).max(16);
    for (index, line) in wrap_text(content, available).iter().enumerate() {
        text.push_str(if index == 0 { first } else { rest });
        match paint {
            Some(paint) => text.push_str(&style.paint(paint, line)),
            None => text.push_str(line),
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_stay_whole_while_they_fit() {
        assert_eq!(wrap_text("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap_text("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(wrap_text("a\nb", 4), ["a", "b"]);
        assert_eq!(wrap_text("", 4), [""]);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_and_nothing_is_lost(words in "[a-zé]{0,12}( [a-zé]{1,12}){0,8}", width in 1_usize..30) {
            let lines = wrap_text(&words, width);
            prop_assert!(lines.iter().all(|line| columns(line) <= width));
            let letters = |text: &str| text.chars().filter(|letter| *letter != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&words));
        }
    }
}
