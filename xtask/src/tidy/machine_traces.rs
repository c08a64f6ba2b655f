//! No file depends on the machine on which it was written.

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "machine-traces",
    statement: "no file names a home or work folder of one machine, nor a registry other than crates.io",
    check,
};

/// Top folders that exist on one machine only.
const FOLDERS: [&str; 5] = ["root", "home", "work", "Users", "mnt"];

/// Signs of a replaced or private package registry.
const REGISTRIES: [&str; 5] = ["replace-with", "[source.", "[registries", "sparse+http", "CARGO_REGISTRIES_"];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    // This file itself contains the patterns.
    for (path, text) in repository.files().filter(|(path, _)| !file!().ends_with(path)) {
        for (index, line) in text.lines().enumerate() {
            if let Some(folder) = FOLDERS.iter().find(|folder| names_folder(line, folder)) {
                let message = format!("names /{folder}/…, a folder of one machine: use a relative or a temporary path");
                violations.push(InvariantViolation::new(path, index + 1, message));
            }
            if let Some(sign) = REGISTRIES.iter().find(|sign| line.contains(*sign)) {
                violations.push(InvariantViolation::new(
                    path,
                    index + 1,
                    format!("`{sign}`: crates come from crates.io only"),
                ));
            }
        }
    }
    violations
}

/// True when `line` contains the absolute path of `folder`, unlike `~/work/`, `a/home/` and `https://x.org/home/`.
fn names_folder(line: &str, folder: &str) -> bool {
    let needle = format!("/{folder}/");
    line.match_indices(&needle).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|found| found.is_alphanumeric() || matches!(found, '_' | '-' | '.' | '}' | ')' | '~' | '*'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::from_files(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn folders_of_one_machine_are_reported() {
        assert_eq!(lines("a.md", "x\nsee `/home/me/x`\nand /root/.cargo\n\"/work/main\"\n"), [2, 3, 4]);
    }

    #[test]
    fn relative_paths_and_addresses_pass() {
        assert!(lines("a.md", "docs/home/x https://example.org/work/x ${DIR}/root/ /usr/bin/x\n").is_empty());
    }

    #[test]
    fn other_registries_are_reported() {
        assert_eq!(lines(".cargo/config.toml", "[source.crates-io]\nreplace-with = \"x\"\n"), [1, 2]);
    }

    #[test]
    fn this_file_itself_is_exempt() {
        assert!(lines("xtask/src/tidy/machine_traces.rs", "/home/me\n").is_empty());
    }
}
