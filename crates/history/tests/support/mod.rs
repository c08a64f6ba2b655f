//! Runs to store, and places to store them in.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_model::schema::run::{Better, Figure, Kind, RunDocument, RunEnvironment, RunResult, SCHEMA, Unit};
use linerate_model::schema::throughput::{Outcome, Termination, ThroughputDocument};

/// A folder that is gone with its owner.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty folder.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("history-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a scratch folder");
        Self(path)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run to `host` that began so many seconds after 2026-11-20 07:54:39 UTC, with one figure.
pub fn run(host: &str, seconds: u64, goodput: f64) -> RunDocument {
    let figure = Figure {
        name: "goodput_down".to_owned(),
        title: "Goodput down".to_owned(),
        unit: Unit::BitsPerSecond,
        value: Some(goodput),
        low: Some(goodput * 0.95),
        high: Some(goodput * 1.05),
        count: Some(5),
        better: Better::Higher,
        note: None,
    };
    RunDocument {
        schema: SCHEMA,
        linerate_version: "0.1.0".to_owned(),
        kind: Kind::Throughput,
        started_at_unix_ns: (1_795_161_279 + seconds) * 1_000_000_000,
        duration_ns: 20_000_000_000,
        host: host.to_owned(),
        port: 5201,
        arguments: vec!["test".to_owned(), host.to_owned()],
        termination: Termination { outcome: Outcome::Complete, signal: None, message: None },
        verdict: "Down 941 Mbit/s over one stream (network-limited, 98 % of the time).".to_owned(),
        figures: vec![figure],
        environment: RunEnvironment::default(),
        series: Vec::new(),
        phases: Vec::new(),
        result: RunResult::Throughput(Box::new(ThroughputDocument {
            schema: 1,
            linerate_version: "0.1.0".to_owned(),
            host: host.to_owned(),
            port: 5201,
            peer_is_linerate: true,
            peer_version: None,
            idle_rtt: None,
            runs: Vec::new(),
        })),
    }
}

/// Runs the test `child` of this test binary as a process of its own, with these variables, and gives what it printed.
///
/// # Panics
///
/// When it fails.
pub fn as_process(command: &mut Command, variables: &[(&str, &Path)]) -> String {
    command.envs(variables.iter().copied());
    let output = command.output().expect("a process");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// This test binary, to run its ignored test `child`.
pub fn own_binary(child: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", child, "--ignored", "--nocapture"]);
    command
}

/// This test binary, to run its ignored test `child` with mounts of its own, after the shell commands of `prepare`. That
/// takes root, or a host that gives users namespaces.
pub fn with_own_mounts(prepare: &str, child: &str) -> Command {
    let allowed = |arguments: &[&str]| {
        Command::new("unshare").args(arguments).arg("true").output().is_ok_and(|output| output.status.success())
    };
    let mode = if allowed(&["-m"]) { "-m" } else { "-rm" };
    assert!(allowed(&[mode]), "these tests need mounts of their own: run them as root, or allow user namespaces");
    let exe = std::env::current_exe().expect("this binary");
    let mut command = Command::new("unshare");
    let script = format!("{prepare} && exec \"$0\" --exact {child} --ignored --nocapture");
    command.args([mode, "sh", "-c", &script]).arg(exe);
    command
}
