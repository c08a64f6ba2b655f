//! Emulated paths that pages name are in the library.

use super::{Invariant, InvariantViolation};
use crate::repository::{Repository, has_extension};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "lab-paths",
    statement: "`lab:NAME`, `linerate lab run NAME` and `linerate lab show NAME` in pages name paths of the library",
    check,
};

/// Beginnings of a name.
const PREFIXES: [&str; 4] = ["lab:", "linerate lab run ", "linerate lab show ", "linerate lab export "];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let is_page = |path: &str| path == "README.md" || (path.starts_with("docs/") && has_extension(path, "md"));
    let pages = repository.files().filter(|(path, _)| is_page(path));
    pages.flat_map(|(path, text)| check_page(repository, path, text)).collect()
}

fn check_page(repository: &Repository, path: &str, text: &str) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let missing = names(line).into_iter().filter(|name| !repository.has(&format!("paths/{name}.toml")));
        let report = |name: &str| InvariantViolation::new(path, index + 1, format!("the library has no path `{name}`"));
        violations.extend(missing.map(report));
    }
    violations
}

/// Names of paths on a line; neither place-holders in capitals, nor files, nor paths by their properties (`rate=10M`).
fn names(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for prefix in PREFIXES {
        for (start, _) in line.match_indices(prefix) {
            let is_word = line[..start].ends_with(|before: char| before.is_ascii_alphanumeric() || before == '-');
            let rest = &line[start + prefix.len()..];
            let end = rest.find(|next: char| !next.is_ascii_alphanumeric() && next != '-').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let is_file = after.starts_with('/') || after.starts_with(".toml");
            let is_name = name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
            if !is_word && is_name && !is_file && !after.starts_with('=') {
                found.push(name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_in_the_library_are_reported() {
        let page = "Run `linerate rr lab:starlink` or\n`linerate lab run wifi -- true`, `linerate lab show moon`.\n";
        let repository = Repository::from_files(&[("docs/rr.md", page), ("paths/wifi.toml", "")]);
        let found: Vec<(usize, String)> =
            check(&repository).into_iter().map(|violation| (violation.line, violation.message)).collect();
        let report = |name: &str| format!("the library has no path `{name}`");
        assert_eq!(found, [(1, report("starlink")), (2, report("moon"))]);
    }

    #[test]
    fn placeholders_files_and_properties_are_no_names() {
        assert_eq!(names("`lab:NAME`, lab:./own.toml, lab:rate=10M,rtt=20ms, `linerate lab run --rate 10M`"), [""; 0]);
        assert_eq!(names("linerate lab run my-path.toml; linerate lab run a/b; slab:wifi; lab:wifi."), ["wifi"]);
    }
}
