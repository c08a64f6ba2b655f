//! Documentation opens with a noun or a verb.

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;
use crate::rust_file::{RustFile, RustToken, TokenKind};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "doc-openings",
    statement: "no doc comment opens with What, Whether, How, So, Of or the like: a noun or a verb comes first",
    check,
};

const WORDS: [&str; 11] = ["What", "Whether", "How", "Whose", "So", "Of", "Who", "Which", "When", "Where", "Why"];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for (path, file) in repository.rust_files() {
        for (token, word) in openings(file).filter_map(|token| Some((token, banned_word(token)?))) {
            let message = format!("opens with \"{word}\": begin with the thing (\"Rate of …\") or \"Returns …\"");
            violations.push(InvariantViolation::new(path, token.line(), message));
        }
    }
    violations
}

/// Returns the first line of each doc comment.
pub(crate) fn openings(file: &RustFile) -> impl Iterator<Item = &RustToken> {
    let tokens = file.tokens();
    let continues = |index: usize, text: &RustToken| {
        let before = index.checked_sub(1).map(|before| &tokens[before]);
        before.is_some_and(|found| found.kind == text.kind && found.location.end.line + 1 == text.line())
    };
    let texts = tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Documentation);
    texts.filter(move |(index, text)| !continues(*index, text)).map(|(_, text)| text)
}

/// Returns the word that no doc comment may open with, when this one does.
pub(crate) fn banned_word(opening: &RustToken) -> Option<&str> {
    let is_letter = |found: char| found.is_alphanumeric();
    let word = opening.text.trim_start().split(|found| !is_letter(found)).next()?;
    WORDS.contains(&word).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Repository::from_files(&[("crates/units/src/lib.rs", text)])).iter().map(|found| found.line).collect()
    }

    #[test]
    fn banned_openings_are_reported_at_their_first_line() {
        for word in WORDS {
            let text = format!("//! Crate.\n\n/// {word} it is.\n/// More.\n#[must_use]\nfn a() {{}}\n");
            assert_eq!(lines(&text), [3], "{word}");
        }
        assert_eq!(lines("macro_rules! m { () => {\n    /// What it is.\n    fn a() {}\n} }"), [2]);
        assert_eq!(lines("/** How it works.\n */\nfn a() {}"), [1]);
    }

    #[test]
    fn later_lines_other_words_and_comments_pass() {
        let text = "/// Rate.\n/// What follows.\nfn a() {}\n/// Whatever.\nfn b() {}\n// What\nfn c() {}\n";
        assert_eq!(lines(text), [0; 0]);
    }
}
