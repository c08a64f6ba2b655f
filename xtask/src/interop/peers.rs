//! Other implementations of the protocol on this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{newest_iperf3, workspace};

/// Implementation that linerate is run against.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Peer {
    pub(super) program: PathBuf,
    /// Name and version.
    pub(super) name: String,
    /// True for iperf3 before 3.17, which encrypts credentials with PKCS#1 padding only.
    pub(super) pads_pkcs1: bool,
}

/// Implementation that is not on this machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MissingPeer {
    pub(super) name: &'static str,
    pub(super) reason: String,
}

/// All implementations, with those that are missing.
#[derive(Debug, Default)]
pub(super) struct Peers {
    pub(super) peers: Vec<Peer>,
    pub(super) missing: Vec<MissingPeer>,
}

/// Finds the iperf3 of the system, the newest one (`newest`, else the one built from the registry), and riperf3, which is
/// installed from the registry when it is missing.
pub(super) fn find(newest: Option<&Path>) -> Peers {
    let mut found = Peers::default();
    found.add("iperf3", Path::new("iperf3"), "no iperf3 in PATH: install the package iperf3");
    match newest.map_or_else(newest_iperf3::find, |path| Ok(path.to_owned())) {
        Ok(newest) => found.add("newest iperf3", &newest, "it does not start"),
        Err(error) => found.missing.push(MissingPeer { name: "newest iperf3", reason: format!("{error:#}") }),
    }
    let riperf3 = workspace::root().join("target/peers/bin/riperf3");
    if !riperf3.exists() {
        install_riperf3();
    }
    found.add("riperf3", &riperf3, "`cargo install riperf3-cli --root target/peers` failed");
    found
}

fn install_riperf3() {
    let root = workspace::root();
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "riperf3-cli", "--root"]).arg(root.join("target/peers"));
    // A failure shows as a missing program.
    let _ = cargo.current_dir(root).status();
}

impl Peers {
    fn add(&mut self, name: &'static str, program: &Path, remedy: &str) {
        match version(program) {
            Some(version) => {
                self.peers.push(Peer { program: program.to_owned(), pads_pkcs1: pads_pkcs1(&version), name: version });
            }
            None => self.missing.push(MissingPeer { name, reason: remedy.to_owned() }),
        }
    }
}

/// First line of `--version`, without what follows the number.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.lines().next()?.split_whitespace();
    Some(format!("{} {}", words.next()?.replace("iperf", "iperf3").replace("iperf33", "iperf3"), words.next()?))
}

fn pads_pkcs1(version: &str) -> bool {
    let Some(number) = version.strip_prefix("iperf3 3.") else { return false };
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|minor: u32| minor < 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_iperf3_before_3_17_lacks_oaep() {
        for (version, expected) in [
            ("iperf3 3.12", true),
            ("iperf3 3.17", false),
            ("iperf3 3.21+", false),
            ("iperf3 3.9", true),
            ("riperf3 0.8.0", false),
        ] {
            assert_eq!(pads_pkcs1(version), expected, "{version}");
        }
    }

    #[test]
    fn a_missing_program_is_listed_with_its_remedy() {
        let mut found = Peers::default();
        found.add("riperf3", Path::new("/nowhere/riperf3"), "install it");
        assert!(found.peers.is_empty());
        assert_eq!(found.missing, [MissingPeer { name: "riperf3", reason: "install it".to_owned() }]);
    }
}
