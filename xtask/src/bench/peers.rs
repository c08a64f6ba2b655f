//! Programs to compare with: of the distribution and of the crate registry.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::arguments::BenchArguments;
use super::program::{BenchProgram, Dialect};
use crate::{newest_iperf3, workspace};

/// Program of the crate registry, installed below target/peers.
struct RegistryPeer {
    name: &'static str,
    package: &'static str,
    program: &'static str,
    dialect: Dialect,
}

const NEWEST: &str = "newest iperf3";

const REGISTRY: [RegistryPeer; 2] = [
    RegistryPeer { name: "riperf3", package: "riperf3-cli", program: "riperf3", dialect: Dialect::Iperf3 },
    RegistryPeer { name: "xfr", package: "xfr", program: "xfr", dialect: Dialect::Xfr },
];

/// Programs of this machine, and the names of those that are missing with the reason.
pub(super) struct BenchPeers {
    /// linerate first, the bare loop last.
    pub(super) programs: Vec<BenchProgram>,
    pub(super) missing: Vec<(&'static str, String)>,
}

/// Finds the programs, and installs those of the registry that are missing.
pub(super) fn find(arguments: &BenchArguments) -> Result<BenchPeers> {
    let linerate = match &arguments.linerate {
        Some(path) => path.canonicalize().with_context(|| format!("no linerate at {}", path.display()))?,
        // What users install: it starts without a dynamic loader.
        None => crate::dist::build_program()?,
    };
    let web = BenchProgram::web(linerate.clone());
    let linerate = BenchProgram::find("linerate", Dialect::Iperf3, linerate, &["iperf3"]);
    let mut found = BenchPeers { programs: vec![linerate.context("linerate does not start")?], missing: Vec::new() };
    let stock = std::env::var_os("IPERF3_BIN").map_or_else(|| PathBuf::from("iperf3"), PathBuf::from);
    found.add(arguments, "iperf3", Dialect::Iperf3, stock, "apt-get install iperf3, or name one in IPERF3_BIN");
    found.add_newest(arguments);
    for peer in REGISTRY {
        let path = workspace::root().join("target/peers/bin").join(peer.program);
        if arguments.wants(peer.name) && !path.exists() {
            install(peer.package);
        }
        let remedy = format!("`cargo install {} --root target/peers` failed", peer.package);
        found.add(arguments, peer.name, peer.dialect, path, &remedy);
    }
    found.programs.extend(web);
    found.programs.extend(BenchProgram::bare());
    Ok(found)
}

/// Returns a program of the registry, installed if it is missing.
pub(super) fn install_program(name: &str) -> Result<PathBuf> {
    let peer = REGISTRY.iter().find(|peer| peer.name == name).with_context(|| format!("no peer {name}"))?;
    let path = workspace::root().join("target/peers/bin").join(peer.program);
    if !path.exists() {
        install(peer.package);
    }
    ensure!(path.exists(), "`cargo install {} --root target/peers` failed", peer.package);
    Ok(path)
}

fn install(package: &str) {
    println!("installing {package} below target/peers");
    let root = workspace::root();
    let mut cargo = Command::new(workspace::cargo());
    cargo.args(["install", "--quiet", "--locked", package, "--root"]).arg(root.join("target/peers"));
    // A failure shows as a missing program.
    let _ = cargo.current_dir(root).status();
}

impl BenchPeers {
    fn add_newest(&mut self, arguments: &BenchArguments) {
        if !arguments.wants(NEWEST) {
            self.missing.push((NEWEST, "not asked for".to_owned()));
            return;
        }
        match arguments.iperf3_newest.clone().map_or_else(newest_iperf3::find, Ok) {
            Ok(path) => self.add(arguments, NEWEST, Dialect::Iperf3, path, "it does not start"),
            Err(error) => self.missing.push((NEWEST, format!("{error:#}"))),
        }
    }

    fn add(&mut self, arguments: &BenchArguments, name: &'static str, dialect: Dialect, path: PathBuf, remedy: &str) {
        if !arguments.wants(name) {
            self.missing.push((name, "not asked for".to_owned()));
            return;
        }
        match BenchProgram::find(name, dialect, path, &[]) {
            Some(program) => self.programs.push(program),
            None => self.missing.push((name, remedy.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_does_not_start_is_named_with_its_remedy() {
        let mut found = BenchPeers { programs: Vec::new(), missing: Vec::new() };
        let all = BenchArguments::default();
        found.add(&all, "iperf3", Dialect::Iperf3, PathBuf::from("/nowhere/iperf3"), "install it");
        let only = BenchArguments { peers: vec!["xfr".to_owned()], ..BenchArguments::default() };
        found.add(&only, "riperf3", Dialect::Iperf3, PathBuf::from("sh"), "install it");
        assert!(found.programs.is_empty());
        assert_eq!(found.missing, [("iperf3", "install it".to_owned()), ("riperf3", "not asked for".to_owned())]);
    }
}
