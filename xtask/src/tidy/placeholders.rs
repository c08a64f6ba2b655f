//! No notes about unfinished work. Macros in place of code are refused by clippy (`todo`, `unimplemented`).

use std::borrow::Cow;

use super::{Invariant, InvariantViolation};
use crate::repository::{Repository, has_extension};
use crate::rust_file::{RustFile, TokenKind, contains_word};

pub(super) const INVARIANT: Invariant =
    Invariant { name: "placeholders", statement: "no notes about remaining work, in code and in texts", check };

const NOTES: [&str; 3] = ["TODO", "FIXME", "XXX"];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let rust = repository.rust_files().flat_map(|(path, file)| {
        let text = repository.text(path).unwrap_or_default();
        notes(path, without_literals(text, file).iter().map(String::as_str))
    });
    let texts = repository.files().filter(|(path, _)| is_text_for_people(path));
    rust.chain(texts.flat_map(|(path, text)| notes(path, text.lines()))).collect()
}

fn notes<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<InvariantViolation> {
    lines
        .enumerate()
        .filter(|(_, line)| NOTES.iter().any(|note| contains_word(&without_quoted(line), note)))
        .map(|(index, _)| {
            InvariantViolation::new(path, index + 1, "a note about remaining work: do it or open an issue")
        })
        .collect()
}

/// True for prose and configuration; captured traffic and fixtures may contain any text.
fn is_text_for_people(path: &str) -> bool {
    ["md", "toml", "sh", "service", "yml"].iter().any(|extension| has_extension(path, extension))
        || path == "Makefile"
        || path.starts_with(".ci/")
}

/// Removes text between backticks from a line, so that a text may mention the notes.
fn without_quoted(line: &str) -> Cow<'_, str> {
    if line.contains('`') { line.split('`').step_by(2).collect::<Vec<_>>().join(" ").into() } else { line.into() }
}

/// Returns the lines of a Rust file with its literals blanked.
fn without_literals(text: &str, file: &RustFile) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    for literal in file.tokens().iter().filter(|token| token.kind == TokenKind::Literal) {
        let (start, end) = (literal.location.start, literal.location.end);
        for number in start.line..=end.line {
            let line = &mut lines[number - 1];
            let from = if number == start.line { start.column } else { 0 };
            let to = if number == end.line { end.column } else { line.len() };
            line[from..to].fill(' ');
        }
    }
    lines.into_iter().map(String::from_iter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::from_files(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn notes_in_comments_and_texts_are_reported() {
        let note = format!("fn a() {{}}\n// {}: later\n", NOTES[0]);
        assert_eq!(lines("crates/cli/src/main.rs", &note), [2]);
        assert_eq!(lines("README.md", &note), [2]);
        assert_eq!(lines("Makefile", &format!("a:\n\t# {}\n", NOTES[1])), [2]);
    }

    #[test]
    fn notes_in_strings_backticks_and_fixtures_pass() {
        assert!(lines("crates/cli/src/main.rs", "fn f() { a(\"TODO\", \"ü\n XXX\"); }\n").is_empty());
        assert!(lines("CONTRIBUTING.md", "No `TODO` in the code; mktemp a.XXXXXX\n").is_empty());
        assert!(lines("crates/wire/fixtures/a.bin", "XXX\n").is_empty());
    }
}
