//! Lines that fit.

use crate::throughput_text::{Paint, Style};

/// How many columns `text` takes, as far as that can be told without a font: one for each character.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// `line` without the blanks at its end, and a line feed.
pub(super) fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// `words` in lines of at most `width` columns. A word that is longer is broken, so that nothing is wider.
pub fn wrapped(words: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in words.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ').flat_map(|word| pieces(word, width)) {
            let room = columns(&line) + usize::from(!line.is_empty()) + columns(&word);
            if !line.is_empty() && room > width {
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

fn pieces(word: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(width).map(|piece| piece.iter().collect()).collect()
}

/// `words` as lines, the first after `first`, the others after `rest`, each ended by a line feed.
pub(super) fn push_wrapped(
    text: &mut String,
    words: &str,
    first: &str,
    rest: &str,
    style: Style,
    paint: Option<Paint>,
) {
    let room = usize::from(style.width.get()).saturating_sub(columns(first).max(columns(rest))).max(16);
    for (index, line) in wrapped(words, room).iter().enumerate() {
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
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(wrapped("a\nb", 4), ["a", "b"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_and_nothing_is_lost(words in "[a-zé]{0,12}( [a-zé]{1,12}){0,8}", width in 1_usize..30) {
            let lines = wrapped(&words, width);
            prop_assert!(lines.iter().all(|line| columns(line) <= width));
            let letters = |text: &str| text.chars().filter(|letter| *letter != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&words));
        }
    }
}
