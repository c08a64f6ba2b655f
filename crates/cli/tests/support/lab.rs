//! The lab: commands on emulated paths, in virtual time.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::process::{Finished, run};
use super::{Scratch, linerate};

/// Most wall time of one run on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// `linerate lab run PATH -- ARGUMENTS`.
pub fn lab_command(path: &str, arguments: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["lab", "run", path, "--"]).args(arguments);
    command
}

/// Runs `arguments` on a path of the library, or of a TOML file.
///
/// # Panics
///
/// When it does not end with 0. Where no kernel is built, the error says so: `make test` builds it, and a test that could
/// not run is a failure.
pub fn lab(path: &str, arguments: &[&str]) -> Finished {
    run(lab_command(path, arguments), LIMIT).expect_code(0)
}

/// Runs linerate's iperf3 as a client of the far end, and returns its document.
pub fn lab_iperf3(path: &str, arguments: &[&str]) -> Value {
    lab(path, &[&["linerate", "iperf3", "-c", "far", "-J"], arguments].concat()).json()
}

/// A path of a test's own.
#[derive(Debug)]
pub struct OwnPath {
    _folder: Scratch,
    /// The file's name.
    pub file: String,
}

impl OwnPath {
    /// From the TOML text of the hosts and links.
    pub fn new(text: &str) -> Self {
        let folder = Scratch::new();
        let file = folder.path("own.toml");
        let head =
            "story = \"A path of a test.\"\nsource = \"The test.\"\nlabel = \"none\"\nscenario = \"test far\"\n\n";
        std::fs::write(&file, format!("{head}{text}")).expect("a scratch file");
        Self { _folder: folder, file }
    }
}
