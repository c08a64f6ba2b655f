//! Shared parts of the program tests: servers and clients as processes, on separate ports, with a time limit.

pub(crate) mod document;
pub(crate) mod far_host;
pub(crate) mod figures;
pub(crate) mod fleet_results;
pub(crate) mod lab;
pub(crate) mod layout;
pub(crate) mod namespace;
pub(crate) mod pairing;
pub(crate) mod process;
#[cfg(feature = "otlp")]
pub(crate) mod receiver;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod wire;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use process::{FinishedChild, Process};
pub(crate) use server::{Server, free_port};

/// Programs that must interoperate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Program under test.
    Linerate,
    /// Installed iperf3, or `IPERF3_BIN`.
    Iperf3,
}

impl Program {
    /// Command of the program, for iperf3's arguments.
    pub(crate) fn command(self) -> Command {
        match self {
            Self::Linerate => {
                let mut command = linerate();
                command.arg("iperf3");
                command
            }
            Self::Iperf3 => Command::new(iperf3()),
        }
    }

    /// Command of the program with `arguments`.
    pub(crate) fn with(self, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(arguments);
        command
    }
}

/// Command of linerate, without arguments. Its runs are not recorded: the history is the user's.
pub(crate) fn linerate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    // The signs of the output, whatever the locale is in which the tests run.
    command.env("LINERATE_HISTORY", "off").env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    command
}

/// Path of the stock iperf3.
///
/// # Panics
///
/// Panics when there is none: a test that did not run does not verify interoperability.
pub(crate) fn iperf3() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let path = PathBuf::from(std::env::var_os("IPERF3_BIN").unwrap_or_else(|| "iperf3".into()));
        let found = Command::new(&path).arg("--version").output().is_ok_and(|output| output.status.success());
        assert!(
            found,
            "{} cannot be run. These tests need the stock iperf3: `apt-get install iperf3` (`make test` does it), or \
             set IPERF3_BIN to the path of one.",
            path.display()
        );
        path
    })
}

/// Directory that is removed on drop.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty directory.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a scratch folder");
        Self(path)
    }

    /// The directory itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Path of `name` in the directory, as text for an argument.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// Writes a file into the directory and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a scratch file");
        path
    }

    /// Writes a script into the directory and returns its path. Another program copies it: a file that a process of another
    /// test has still open for writing cannot be executed.
    pub(crate) fn script(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let (source, path) = (self.file(&format!("{name}.source"), content), self.path(name));
        let copied = Command::new("install").args(["-m", "755", &source, &path]).status();
        assert!(copied.is_ok_and(|status| status.success()), "installing {path}");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// True when the stock iperf3 pads credentials with OAEP, as since 3.17. Before, it was PKCS#1.
pub(crate) fn iperf3_has_oaep() -> bool {
    let output = Command::new(iperf3()).arg("--version").output().expect("the version of iperf3");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    version >= (3, 17)
}
