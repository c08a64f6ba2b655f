//! The pure crates cannot touch the machine: clippy refuses the functions that would.

use super::repository::{Package, Repository};
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "pure-ring",
    statement: "pure crates forbid `unsafe` and ban clocks, sockets, files, processes and threads in their clippy.toml",
    check,
};

/// The crates that compute only; time and randomness reach them as arguments.
pub(super) const PURE_CRATES: [&str; 6] = ["units", "model", "wire", "report", "rules", "shape"];

/// Bans that each clippy.toml of the pure ring must hold, one or more per kind of effect. That clippy fires on them is
/// tested in `xtask/tests/pure_ring.rs`.
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

fn check(repository: &Repository) -> Vec<Violation> {
    let pure = repository.packages().iter().filter(|package| PURE_CRATES.contains(&package.short_name()));
    let mut violations = Vec::new();
    let mut first: Option<(String, &str)> = None;
    for package in pure {
        violations.extend(forbids_unsafe(repository, package));
        violations.extend(weakened(repository, package));
        let path = format!("{}/clippy.toml", package.folder);
        let Some(text) = repository.text(&path) else {
            violations.push(Violation::new(&path, 1, "is missing: a pure crate has the bans of its siblings"));
            continue;
        };
        for ban in BANS.iter().filter(|ban| !text.contains(&format!("\"{ban}\""))) {
            violations.push(Violation::new(&path, 1, format!("does not ban `{ban}`")));
        }
        match &first {
            None => first = Some((path, text)),
            Some((other, same)) if *same != text => {
                violations.push(Violation::new(
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

fn forbids_unsafe(repository: &Repository, package: &Package) -> Option<Violation> {
    let root = format!("{}/src/lib.rs", package.folder);
    let text = repository.text(&root).unwrap_or_default();
    let forbids = text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
    (!forbids).then(|| Violation::new(&root, 1, "a pure crate has `#![forbid(unsafe_code)]`"))
}

/// Shipped code of a pure crate may not lift a ban by an attribute.
fn weakened(repository: &Repository, package: &Package) -> Vec<Violation> {
    let folder = format!("{}/", package.folder);
    let mut violations = Vec::new();
    for (path, source) in repository.rust_sources().filter(|(path, _)| path.starts_with(&folder)) {
        for lint in ["disallowed_methods", "disallowed_types", "disallowed_macros"] {
            for line in source.lines_with_outside_tests(lint) {
                violations.push(Violation::new(
                    path,
                    line,
                    format!("lifts the ban `{lint}`: take the value as an argument"),
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    fn bans() -> String {
        BANS.iter().map(|ban| format!("{{ path = \"{ban}\" }},\n")).collect::<Vec<_>>().concat()
    }

    fn repository(lib: &str, clippy: &str) -> Repository {
        Repository::of(&[("crates/units/src/lib.rs", lib), ("crates/units/clippy.toml", clippy)])
            .with_package("crates/units", &[])
            .with_package("crates/engine", &[])
    }

    #[test]
    fn a_pure_crate_with_all_bans_passes_and_others_are_left_alone() {
        assert_eq!(check(&repository("//! Doc.\n#![forbid(unsafe_code)]\n", &bans())), NONE);
    }

    #[test]
    fn unsafe_must_be_forbidden() {
        let violations = check(&repository("//! `#![forbid(unsafe_code)]`\n", &bans()));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].path, "crates/units/src/lib.rs");
    }

    #[test]
    fn a_missing_ban_is_named() {
        let clippy = bans().replace("std::net::UdpSocket", "std::net::Other");
        let violations = check(&repository("#![forbid(unsafe_code)]", &clippy));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("std::net::UdpSocket"));
    }

    #[test]
    fn a_missing_list_is_named() {
        let repository =
            Repository::of(&[("crates/wire/src/lib.rs", "#![forbid(unsafe_code)]")]).with_package("crates/wire", &[]);
        assert_eq!(check(&repository)[0].path, "crates/wire/clippy.toml");
    }

    #[test]
    fn the_lists_of_two_crates_are_the_same() {
        let (one, two) = (bans(), bans() + "# more\n");
        let repository = Repository::of(&[
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
    fn a_ban_lifted_outside_tests_is_named() {
        let lib = "#![forbid(unsafe_code)]\n#[expect(clippy::disallowed_methods)]\nfn a() {}\n\
                   #[cfg(test)]\nmod tests {\n    #[expect(clippy::disallowed_methods)]\n    fn b() {}\n}\n";
        let violations = check(&repository(lib, &bans()));
        assert_eq!(violations.iter().map(|violation| violation.line).collect::<Vec<_>>(), [2]);
    }
}
