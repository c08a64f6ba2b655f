//! The pure crates have no side effects: clippy refuses the functions that would cause them.

use super::lints::lifted;
use super::{Invariant, InvariantViolation};
use crate::repository::{Repository, WorkspacePackage};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "pure-ring",
    statement: "pure crates forbid `unsafe` and ban clocks, sockets, files, processes and threads in their clippy.toml",
    check,
};

/// Crates without side effects; time and randomness are arguments.
pub(super) const PURE_CRATES: [&str; 10] =
    ["units", "analysis", "model", "documents", "wire", "report", "rules", "shape", "fleet", "export"];

/// Bans that each clippy.toml of the pure ring must contain, one or more per kind of effect. `xtask/tests/bans.rs`
/// tests that clippy fires on them.
const BANS: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::thread::scope",
    "std::thread::Builder",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::os::unix::net::UnixStream",
    "std::net::ToSocketAddrs::to_socket_addrs",
    "std::fs::File",
    "std::fs::read",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::process::Command",
    "std::process::exit",
    "std::env::var",
];

/// Tests that may lift a ban, each with the reason.
const EXEMPT_TESTS: [(&str, &str); 7] = [
    ("crates/export/tests/fuzz_corpus.rs", "the seeds of the fuzz targets are files"),
    ("crates/fleet/tests/fuzz_corpus.rs", "the seeds of the fuzz targets are files"),
    ("crates/model/tests/fuzz_corpus.rs", "the seeds of the fuzz targets are files"),
    ("crates/shape/tests/fuzz_corpus.rs", "the seeds of the fuzz targets are files"),
    ("crates/shape/tests/autorate.rs", "prints the table that the test computes"),
    ("crates/units/tests/fuzz_corpus.rs", "the seeds of the fuzz targets are files"),
    ("crates/wire/tests/fuzz_corpus.rs", "the seeds of the fuzz targets are files"),
];

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let pure = repository.packages().iter().filter(|package| PURE_CRATES.contains(&package.short_name()));
    let mut violations = Vec::new();
    let mut first: Option<(String, &str)> = None;
    for package in pure {
        violations.extend(forbids_unsafe(repository, package));
        violations.extend(lifted_bans(repository, package));
        let path = format!("{}/clippy.toml", package.folder);
        let Some(text) = repository.text(&path) else {
            violations.push(InvariantViolation::new(&path, 1, "is missing: every pure crate needs the same bans"));
            continue;
        };
        for ban in BANS.iter().filter(|ban| !text.contains(&format!("\"{ban}\""))) {
            violations.push(InvariantViolation::new(&path, 1, format!("does not ban `{ban}`")));
        }
        match &first {
            None => first = Some((path, text)),
            Some((other, same)) if *same != text => {
                violations.push(InvariantViolation::new(
                    &path,
                    1,
                    format!("differs from {other}: the pure crates share one list"),
                ));
            }
            Some(_) => {}
        }
    }
    violations
}

fn forbids_unsafe(repository: &Repository, package: &WorkspacePackage) -> Option<InvariantViolation> {
    let root = format!("{}/src/lib.rs", package.folder);
    let text = repository.text(&root).unwrap_or_default();
    let forbids = text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
    (!forbids)
        .then(|| InvariantViolation::new(&root, 1, "lacks `#![forbid(unsafe_code)]`, which every pure crate needs"))
}

/// Reports attributes that lift a ban.
fn lifted_bans(repository: &Repository, package: &WorkspacePackage) -> Vec<InvariantViolation> {
    let folder = format!("{}/", package.folder);
    let is_exempt = |path: &str| EXEMPT_TESTS.iter().any(|(exempt, _)| *exempt == path);
    let mut violations = Vec::new();
    for (path, file) in repository.rust_files().filter(|(path, _)| path.starts_with(&folder) && !is_exempt(path)) {
        for lint in ["disallowed_methods", "disallowed_types", "disallowed_macros"] {
            violations.extend(lifted(file, lint, true).map(|line| {
                InvariantViolation::new(path, line, format!("lifts the ban `{lint}`: take the value as an argument"))
            }));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn bans() -> String {
        BANS.iter().map(|ban| format!("{{ path = \"{ban}\" }},\n")).collect::<Vec<_>>().concat()
    }

    fn repository(lib: &str, clippy: &str) -> Repository {
        Repository::from_files(&[("crates/units/src/lib.rs", lib), ("crates/units/clippy.toml", clippy)])
            .with_package("crates/units", &[])
            .with_package("crates/engine", &[])
    }

    #[test]
    fn a_pure_crate_with_all_bans_passes_and_others_are_ignored() {
        assert_eq!(check(&repository("//! Doc.\n#![forbid(unsafe_code)]\n", &bans())), NO_VIOLATIONS);
    }

    #[test]
    fn unsafe_must_be_forbidden() {
        let violations = check(&repository("//! `#![forbid(unsafe_code)]`\n", &bans()));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].path, "crates/units/src/lib.rs");
    }

    #[test]
    fn a_missing_ban_is_reported() {
        let clippy = bans().replace("std::net::UdpSocket", "std::net::Other");
        let violations = check(&repository("#![forbid(unsafe_code)]", &clippy));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("std::net::UdpSocket"));
    }

    #[test]
    fn a_missing_list_is_reported() {
        let repository = Repository::from_files(&[("crates/wire/src/lib.rs", "#![forbid(unsafe_code)]")])
            .with_package("crates/wire", &[]);
        assert_eq!(check(&repository)[0].path, "crates/wire/clippy.toml");
    }

    #[test]
    fn the_lists_of_two_crates_are_the_same() {
        let (one, two) = (bans(), bans() + "# more\n");
        let repository = Repository::from_files(&[
            ("crates/units/src/lib.rs", "#![forbid(unsafe_code)]"),
            ("crates/units/clippy.toml", &one),
            ("crates/model/src/lib.rs", "#![forbid(unsafe_code)]"),
            ("crates/model/clippy.toml", &two),
        ])
        .with_package("crates/units", &[])
        .with_package("crates/model", &[]);
        let violations = check(&repository);
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("differs from crates/units/clippy.toml"));
    }

    #[test]
    fn a_lifted_ban_is_reported_except_in_the_listed_tests() {
        let lib = "#![forbid(unsafe_code)]\n#[expect(clippy::disallowed_methods)]\nfn a() {}\n\
                   #[cfg(test)]\nmod tests {\n    #[expect(clippy::disallowed_methods)]\n    fn b() {}\n}\n";
        let files = [
            ("crates/units/src/lib.rs", lib),
            ("crates/units/tests/fuzz_corpus.rs", lib),
            ("crates/units/clippy.toml", &bans()),
        ];
        let violations = check(&Repository::from_files(&files).with_package("crates/units", &[]));
        assert_eq!(violations.iter().map(|violation| violation.line).collect::<Vec<_>>(), [2, 6]);
    }
}
