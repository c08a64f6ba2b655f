//! Work is done or not there; nothing is left half-way with a note.

use super::repository::{Repository, has_extension};
use super::source::{Source, contains_word};
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "placeholders",
    statement: "no notes about work left over and no macros in place of code",
    check,
};

const NOTES: [&str; 3] = ["TODO", "FIXME", "XXX"];
const MACROS: [&str; 2] = ["todo!", "unimplemented!"];

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in repository.files() {
        if has_extension(path, "rs") {
            let source = Source::new(path, text);
            for found in MACROS.iter().flat_map(|word| source.lines_with(word)) {
                violations.push(Violation::new(
                    path,
                    found,
                    "a macro in place of code: write it or leave the item out",
                ));
            }
            violations.extend(notes(path, source.comments().iter().map(String::as_str)));
        } else if is_text_for_people(path) {
            violations.extend(notes(path, text.lines()));
        }
    }
    violations
}

fn notes<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Violation> {
    lines
        .enumerate()
        .filter(|(_, line)| NOTES.iter().any(|note| contains_word(&without_quoted(line), note)))
        .map(|(index, _)| Violation::new(path, index + 1, "a note about work left over: do it or open an issue"))
        .collect()
}

/// Captured traffic and fixtures may hold any letters; these do not.
fn is_text_for_people(path: &str) -> bool {
    ["md", "toml", "sh", "service", "yml"].iter().any(|extension| has_extension(path, extension))
        || path == "Makefile"
        || path.starts_with(".ci/")
}

/// The line without what stands between backticks, so that a text may speak about these words.
fn without_quoted(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn notes_in_comments_and_texts_are_named() {
        let note = format!("fn a() {{}}\n// {}: later\n", NOTES[0]);
        assert_eq!(lines("crates/cli/src/main.rs", &note), [2]);
        assert_eq!(lines("README.md", &note), [2]);
        assert_eq!(lines("Makefile", &format!("a:\n\t# {}\n", NOTES[1])), [2]);
    }

    #[test]
    fn macros_in_place_of_code_are_named() {
        assert_eq!(lines("crates/cli/src/main.rs", "fn a() {\n    todo!()\n}\nfn b() { unimplemented!() }\n"), [2, 4]);
    }

    #[test]
    fn words_in_strings_backticks_and_fixtures_pass() {
        assert!(lines("crates/cli/src/main.rs", "let a = \"TODO todo!\";\n").is_empty());
        assert!(lines("CONTRIBUTING.md", "No `TODO` in the code; mktemp a.XXXXXX\n").is_empty());
        assert!(lines("crates/wire/fixtures/a.bin", "XXX\n").is_empty());
    }
}
