//! Texts that users read have no word of the glossary's left column.

use super::{Invariant, InvariantViolation};
use crate::repository::{Repository, has_extension};
use crate::rust_file::{RustFile, RustToken, TokenKind, contains_word, string_value};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "glossary",
    statement: "user-visible texts (strings, help, documents) have no word of the glossary's left column",
    check: hits,
};

/// Words that are wrong in every meaning, each with its replacement.
const WORDS: &[(&str, &str)] = &[
    ("AGAIN", "RETR"),
    ("sent again", "retransmitted"),
    ("under way", "in flight, running"),
    ("on the way", "in flight, outgoing"),
    ("whoever", "clients, users, no one"),
    ("nobody", "no one, no client"),
    ("somebody", "another program"),
    ("be had", "is available"),
    ("tell each other", "exchange"),
    ("which ways", "which methods"),
    ("your line", "your access link"),
    ("seat", "index, slot"),
    ("seats", "indexes, slots"),
    ("has had enough", "interrupted"),
    ("take back", "roll back"),
    ("takes back", "rolls back"),
    ("taken back", "rolled back"),
    ("took back", "rolled back"),
    ("put back", "restored"),
    ("puts back", "restores"),
    ("bring back", "restore"),
    ("brings back", "restores"),
    ("brought back", "restored"),
    ("put right", "restored"),
    ("puts right", "restores"),
    ("the lid", "the cap, the limit"),
    ("a lid", "a cap, a limit"),
    ("beside", "next to, with"),
    ("says", "reports, shows"),
    ("said", "reported"),
    ("told", "reported, informed"),
    ("tells", "reports, shows"),
    ("stands", "is active, is installed"),
    ("stood", "was active, stalled"),
    ("standing", "active"),
    ("the rest", "the remainder, or its name"),
    ("each way", "per direction"),
    ("both ways", "both directions"),
    ("found by", "detected from"),
    ("proof", "verification"),
    ("proofs", "verifications"),
    ("prove", "verify"),
    ("proves", "verifies"),
    ("proved", "verified"),
    ("proven", "verified"),
    ("readings", "samples"),
];

/// Files or folders, words in them and the reason why these are right there.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    ("crates/analysis/src/formulas/little.rs", &["proof"], "title of the cited paper"),
    ("docs/formulas.md", &["proof"], "title of the cited paper"),
    ("crates/fleet/src/round_robin.rs", &["seat"], "key of a hash: another one would change every timetable"),
    ("crates/sys/src/process/privileges.rs", &["nobody"], "name of a user account"),
];

/// Folders and files whose texts are checked: those for users, and the map of the code.
const TEXTS: [&str; 7] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/", "packaging/", "paths/", "crates/report/src/html/"];

/// Extensions of such files.
const EXTENSIONS: [&str; 5] = ["md", "toml", "js", "html", "css"];

/// Derived traits whose documentation becomes help.
const HELP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Returns each forbidden word in a text for users.
pub(crate) fn hits(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for (path, file) in repository.rust_files().filter(|(path, _)| !file!().ends_with(path)) {
        for (line, text) in user_texts(file) {
            violations.extend(words_in(path, line, &text));
        }
    }
    let is_text = |path: &str| EXTENSIONS.iter().any(|extension| has_extension(path, extension));
    for (path, text) in repository.files().filter(|(path, _)| is_text(path)) {
        if TEXTS.iter().any(|folder| path.starts_with(folder)) {
            let lines = text.lines().enumerate();
            violations.extend(lines.flat_map(|(index, line)| words_in(path, index + 1, line)));
        }
    }
    violations
}

/// Returns the strings of a file outside tests and its help, each with its line.
fn user_texts(file: &RustFile) -> impl Iterator<Item = (usize, String)> {
    let has_help = HELP.iter().any(|name| file.find(name).any(|index| !file.tokens()[index].in_tests));
    let tokens = file.tokens();
    (0..tokens.len()).filter(|index| !tokens[*index].in_tests).filter_map(move |index| {
        let text = match tokens[index].kind {
            TokenKind::Literal if !is_reason(tokens, index) => without_arguments(&string_value(&tokens[index].text)?),
            TokenKind::Documentation if has_help => tokens[index].text.clone(),
            _ => return None,
        };
        Some((tokens[index].line(), text))
    })
}

/// True for the text of `reason = "…"`, which stays in the source.
fn is_reason(tokens: &[RustToken], index: usize) -> bool {
    index >= 2 && tokens[index - 1].text == "=" && tokens[index - 2].text == "reason"
}

/// Removes names such as `{said}` from a format string.
fn without_arguments(text: &str) -> String {
    let is_name = |found: char| found.is_alphanumeric() || found == '_';
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + " " + part.trim_start_matches(is_name))
}

fn words_in(path: &str, line: usize, text: &str) -> Vec<InvariantViolation> {
    let lower = text.to_lowercase();
    let is_exempt = |word: &str| {
        EXCEPTIONS
            .iter()
            .any(|(folder, words, _)| path.starts_with(folder) && (words.is_empty() || words.contains(&word)))
    };
    let is_in_text = |word: &str| contains_word(if word == word.to_lowercase() { &lower } else { text }, word);
    WORDS
        .iter()
        .filter(|(word, _)| is_in_text(word) && !is_exempt(word))
        .map(|(word, instead)| InvariantViolation::new(path, line, format!("\"{word}\": write {instead}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        hits(&Repository::from_files(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn every_word_is_reported_in_strings_and_documents() {
        for (word, _) in WORDS {
            let code = format!("fn f() {{\n    g(\"It {word}.\");\n    h!(\"{{told:.3}}: {word}\");\n}}\n");
            assert_eq!(lines("crates/cli/src/main.rs", &code), [2, 3], "{word}");
            assert_eq!(lines("docs/a.md", &format!("# a\n({word})\n")), [2], "{word}");
        }
    }

    #[test]
    fn help_is_read_where_arguments_are_defined() {
        let text = "/// Says it.\nstruct A;\n";
        assert!(lines("crates/cli/src/a.rs", text).is_empty());
        assert_eq!(lines("crates/cli/src/a.rs", &format!("{text}#[derive(clap::Args)]\nstruct B;\n")), [1]);
    }

    #[test]
    fn reasons_tests_identifiers_and_parts_of_words_pass() {
        let text = "#[expect(dead_code, reason = \"says\")]\nfn told() { g(\"besides, toldish\") } // says\n\
                    #[cfg(test)]\nmod tests { const A: &str = \"says\"; }\n";
        assert!(lines("crates/cli/src/a.rs", text).is_empty());
        assert!(lines("crates/cli/tests/a.rs", text).is_empty());
        assert!(lines("CONTRIBUTING.md", "beside").is_empty());
    }
}
