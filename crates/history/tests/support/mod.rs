//! Runs to store, and directories to store them in.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, RunDocument, RunEnvironment, RunFigure, RunKind, RunResult, SCHEMA,
    SampleSeries,
};
use linerate_documents::throughput::ThroughputDocument;
use linerate_model::report::TestTermination;

/// A directory that is removed when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty directory.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("history-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Self(path)
    }

    /// The directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run to `host` that began `seconds` after 2026-11-20 07:54:39 UTC, with one figure.
pub(crate) fn run(host: &str, seconds: u64, goodput: f64) -> RunDocument {
    let figure = RunFigure {
        name: "goodput_down".to_owned(),
        title: "Goodput down".to_owned(),
        unit: FigureUnit::BitsPerSecond,
        value: Some(goodput),
        low: Some(goodput * 0.95),
        high: Some(goodput * 1.05),
        count: Some(5),
        better: ImprovementDirection::Higher,
        note: None,
    };
    RunDocument {
        schema: SCHEMA,
        linerate_version: "0.1.0".to_owned(),
        kind: RunKind::Throughput,
        started_at_unix_ns: (1_795_161_279 + seconds) * 1_000_000_000,
        duration_ns: 20_000_000_000,
        host: host.to_owned(),
        port: 5201,
        arguments: vec!["test".to_owned(), host.to_owned()],
        termination: TestTermination::Complete,
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
            quic: None,
        })),
    }
}

/// A run to `large` with so many samples, of about 8 bytes each, that do not compress.
pub(crate) fn large(seconds: u64, samples: usize) -> RunDocument {
    let mut state = seconds.wrapping_add(88_172_645_463_325_252);
    let values: Vec<_> = (0..samples)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            Some(f64::from_bits(0x3FF0_0000_0000_0000 | (state >> 12)))
        })
        .collect();
    let series = SampleSeries {
        panel: ChartPanel::Throughput,
        name: "stream 1".to_owned(),
        direction: None,
        stream: Some(1),
        unit: FigureUnit::BitsPerSecond,
        times_ns: (0..values.len() as u64).collect(),
        values,
    };
    RunDocument { series: vec![series], ..run("large", seconds, 1e9) }
}

/// Runs `command` with these variables, and returns its output.
///
/// # Panics
///
/// When the command fails.
pub(crate) fn as_process(command: &mut Command, variables: &[(&str, &Path)]) -> String {
    command.envs(variables.iter().copied());
    let output = command.output().expect("a process");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Command that runs the ignored test `child` of this test binary.
pub(crate) fn own_binary(child: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", child, "--ignored", "--nocapture"]);
    command
}

/// Command that runs the ignored test `child` of this test binary in its own mount namespace, after the shell commands
/// of `prepare`. Needs root, or unprivileged user namespaces.
pub(crate) fn with_own_mounts(prepare: &str, child: &str) -> Command {
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
