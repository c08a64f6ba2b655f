//! ARCHITECTURE.md and the other guides match the repository.

use std::collections::BTreeSet;

use super::{INVARIANTS, Invariant, InvariantViolation};
use crate::repository::{Repository, has_extension};
use crate::rust_file::TokenKind;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "architecture",
    statement: "ARCHITECTURE.md lists exactly the workspace's crates and every invariant; its names and the guides' paths exist",
    check,
};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Pages outside of `docs` whose paths exist.
const GUIDES: [&str; 4] = [ARCHITECTURE, "CONTRIBUTING.md", "README.md", "packaging/README.md"];

/// Top folders; a quoted text that begins with one of them is a path.
const FOLDERS: [&str; 7] = ["crates/", "xtask/", "packaging/", "docs/", "fuzz/", ".ci/", ".cargo/"];

/// Keywords before the name of an item.
const ITEMS: [&str; 8] = ["struct", "enum", "trait", "type", "const", "static", "fn", "mod"];

/// Names of the standard library in ARCHITECTURE.md.
const STANDARD_NAMES: [&str; 1] = ["None"];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let Some(text) = repository.text(ARCHITECTURE) else {
        return vec![InvariantViolation::new(ARCHITECTURE, 1, "is missing")];
    };
    let mut violations = crate_list(repository, text);
    for invariant in INVARIANTS {
        if !text.contains(&format!("`{}`", invariant.name)) {
            let message = format!("does not name the invariant `{}` of tidy", invariant.name);
            violations.push(InvariantViolation::new(ARCHITECTURE, 1, message));
        }
    }
    violations.extend(dead_names(repository, text));
    let is_guide = |path: &str| GUIDES.contains(&path) || (path.starts_with("docs/") && has_extension(path, "md"));
    for (guide, text) in repository.files().filter(|(path, _)| is_guide(path)) {
        violations.extend(dead_paths(repository, guide, text));
    }
    violations
}

/// Compares the headings ``### `crates/NAME` `` with the members of the workspace.
fn crate_list(repository: &Repository, text: &str) -> Vec<InvariantViolation> {
    let mut listed = BTreeSet::new();
    let mut violations = Vec::new();
    let members: BTreeSet<&str> = repository.packages().iter().map(|package| package.folder.as_str()).collect();
    for (index, line) in text.lines().enumerate() {
        let Some(folder) = line.strip_prefix("### `").and_then(|heading| heading.split('`').next()) else { continue };
        listed.insert(folder);
        if !members.contains(folder) {
            violations.push(InvariantViolation::new(
                ARCHITECTURE,
                index + 1,
                format!("`{folder}` is not a crate of the workspace"),
            ));
        }
    }
    for folder in members.difference(&listed) {
        violations.push(InvariantViolation::new(ARCHITECTURE, 1, format!("has no section ### `{folder}`")));
    }
    violations
}

/// Items of the program, and paths of two names in its code.
struct ProgramNames<'a> {
    /// Each with the file that declares it.
    items: BTreeSet<(&'a str, &'a str)>,
    paths: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> ProgramNames<'a> {
    fn of(repository: &'a Repository) -> Self {
        let mut names = Self { items: BTreeSet::new(), paths: BTreeSet::new() };
        for (path, file) in repository.rust_files() {
            let tokens = file.tokens();
            for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Word) {
                let text_before = |count: usize| index.checked_sub(count).map_or("", |before| &tokens[before].text);
                if ITEMS.contains(&text_before(1)) && !token.in_tests {
                    names.items.insert((&token.text, path));
                } else if (text_before(1), text_before(2)) == (":", ":") {
                    names.paths.insert((text_before(3), &token.text));
                }
            }
        }
        names
    }

    /// True when the program has the item, in a file of module `module`.
    fn has_item(&self, name: &str, module: Option<&str>) -> bool {
        let is_of_module = |path: &str| module.is_none_or(|module| path.split(['/', '.']).any(|part| part == module));
        self.items.range((name, "")..).take_while(|(item, _)| *item == name).any(|(_, path)| is_of_module(path))
    }

    /// True for `a::b` when the code has that path, or module `a` has the item `b`; for one name, when it is an item's.
    fn has(&self, name: &str) -> bool {
        let parts: Vec<&str> = name.split("::").collect();
        let has_pair =
            |pair: &[&str]| self.paths.contains(&(pair[0], pair[1])) || self.has_item(pair[1], Some(pair[0]));
        if parts.len() == 1 { self.has_item(name, None) } else { parts.windows(2).all(has_pair) }
    }
}

/// Reports names of types in quotes, and paths `a::b` in quotes and drawings, that the program does not have.
fn dead_names(repository: &Repository, text: &str) -> Vec<InvariantViolation> {
    let names = ProgramNames::of(repository);
    let mut violations = Vec::new();
    let mut is_drawing = false;
    for (index, line) in text.lines().enumerate() {
        is_drawing ^= line.starts_with("```");
        let written: Vec<&str> = if is_drawing {
            line.split([' ', ',', '(', ')']).filter(|word| word.contains("::")).collect()
        } else {
            line.split('`').skip(1).step_by(2).filter(|quoted| is_name(quoted)).collect()
        };
        let dead = written.into_iter().filter(|name| !STANDARD_NAMES.contains(name) && !names.has(name));
        violations.extend(dead.map(|name| {
            InvariantViolation::new(ARCHITECTURE, index + 1, format!("`{name}` is not declared in the program"))
        }));
    }
    violations
}

/// True for `CamelCase` and for `a::b`.
fn is_name(quoted: &str) -> bool {
    let is_identifier =
        |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let is_type = quoted.starts_with(char::is_uppercase) && quoted.contains(char::is_lowercase);
    (is_type || quoted.contains("::")) && quoted.split("::").all(is_identifier)
}

/// Reports quoted paths that do not exist: those from the root, and ends of paths to Rust files. A path with a place-holder
/// in capitals or `…` is a pattern.
fn dead_paths(repository: &Repository, guide: &str, text: &str) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| quoted.starts_with(folder));
            let is_pattern = quoted.contains(|found: char| found.is_uppercase() || "*…<{ ".contains(found));
            let is_file_with_capitals = has_extension(quoted, "md") || has_extension(quoted, "toml");
            let is_dead_source = !is_path && !is_pattern && has_extension(quoted, "rs") && !is_end(repository, quoted);
            let is_dead_path = is_path && (!is_pattern || is_file_with_capitals) && !exists(repository, quoted);
            if is_dead_path || is_dead_source {
                violations.push(InvariantViolation::new(guide, index + 1, format!("`{quoted}` does not exist")));
            }
        }
    }
    violations
}

fn exists(repository: &Repository, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    repository.files().any(|(found, _)| found == path || found.starts_with(&folder))
}

/// True when a file's path ends with the names of `path`.
fn is_end(repository: &Repository, path: &str) -> bool {
    let end = format!("/{path}");
    repository.files().any(|(found, _)| found == path || found.ends_with(&end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> String {
        INVARIANTS.iter().map(|invariant| format!("`{}`\n", invariant.name)).collect::<Vec<_>>().concat()
    }

    fn check_text(text: &str) -> Vec<InvariantViolation> {
        let text = format!("{text}\n{}", names());
        check(
            &Repository::from_files(&[(ARCHITECTURE, &text), ("crates/units/src/lib.rs", "")])
                .with_package("crates/units", &[]),
        )
    }

    #[test]
    fn a_complete_map_passes() {
        assert_eq!(
            check_text("### `crates/units`\nsee `crates/units/src/lib.rs`, `crates/units`, `crates/NAME/src`"),
            []
        );
    }

    #[test]
    fn an_extra_or_missing_crate_is_reported() {
        let violations = check_text("x\n### `crates/other`\n");
        assert_eq!(violations.len(), 3, "the heading, the missing crate and the dead path: {violations:?}");
        assert_eq!(violations[0].line, 2);
        assert!(violations[1].message.contains("### `crates/units`"));
    }

    #[test]
    fn a_dead_path_is_reported() {
        let violations = check_text("### `crates/units`\n`crates/units/src/gone.rs`\n");
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].line, 2);
    }

    #[test]
    fn dead_ends_of_paths_are_reported_also_in_documents() {
        let files = [
            (ARCHITECTURE, names()),
            ("docs/a.md", "`client/gone.rs`, `client/mod.rs`, `NAME/gone.rs`\n\n`mod.rs`, `od.rs`\n".to_owned()),
            ("crates/engine/src/client/mod.rs", String::new()),
        ];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let found: Vec<String> = check(&Repository::from_files(&files)).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["docs/a.md:1: `client/gone.rs` does not exist", "docs/a.md:3: `od.rs` does not exist"]);
    }

    #[test]
    fn names_that_no_item_of_that_module_has_are_reported() {
        let code = "pub enum Cause { Window }\nfn judge() { Cause::Window; }\n#[cfg(test)]\nstruct Mocked;\n";
        let text = "`Cause`, `None`, `SO_TXTIME`, `Mocked`, `Effect`\n`Cause::Window`, `diagnosis::judge`, `rules::judge`,\n\
                    `tuning::judge`, `Cause::Other`\n```text\n   Effect ─► rules::judge, (shape::judge)\n```\n";
        let text = format!("{text}{}", names());
        let code = ("crates/rules/src/diagnosis.rs", code);
        let found: Vec<(usize, String)> = check(&Repository::from_files(&[(ARCHITECTURE, &text), code]))
            .into_iter()
            .map(|violation| (violation.line, violation.message))
            .collect();
        let expected = [(1, "Mocked"), (1, "Effect"), (3, "tuning::judge"), (3, "Cause::Other"), (5, "shape::judge")];
        assert_eq!(found, expected.map(|(line, name)| (line, format!("`{name}` is not declared in the program"))));
    }

    #[test]
    fn a_missing_invariant_is_reported() {
        let repository = Repository::from_files(&[(ARCHITECTURE, &names().replace("`effects`", ""))]);
        let violations = check(&repository);
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("effects"));
    }
}
