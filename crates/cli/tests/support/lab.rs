//! Commands on emulated paths of the lab, in virtual time.

use std::process::Command;
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::Duration;

use serde_json::Value;

use super::process::{FinishedChild, run};
use super::script::ScriptOutput;
use super::{Scratch, linerate};

/// Longest wall time of one run on a busy host.
const LIMIT: Duration = Duration::from_secs(300);

/// Command `linerate lab run PATH -- ARGUMENTS`.
pub(crate) fn lab_command(path: &str, arguments: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["lab", "run", path, "--"]).args(arguments);
    command
}

/// Runs `arguments` on a path of the library, or of a TOML file.
///
/// # Panics
///
/// Panics if the exit code is not 0. Without a kernel, the error names the remedy: `make test` builds it, and a test
/// that could not run is a failure.
pub(crate) fn lab(path: &str, arguments: &[&str]) -> FinishedChild {
    run(lab_command(path, arguments), LIMIT).expect_code(0)
}

/// Runs linerate's iperf3 as a client of the far end, and returns its document.
pub(crate) fn lab_iperf3(path: &str, arguments: &[&str]) -> Value {
    lab(path, &[&["linerate", "iperf3", "-c", "far", "-J"], arguments].concat()).json()
}

/// Runs these commands of linerate one after another in a guest, on a path that they fill with few packets: over
/// loopback, each measurement keeps all processors busy. `head` are lines of the shell before them.
///
/// The output of a command is below `== COMMAND`; its exit code and its errors are lines below `== end of COMMAND`.
pub(crate) fn measure_in_guest(head: &str, commands: &[&str]) -> ScriptOutput {
    let path = OwnPath::light();
    let head = format!(
        "D=$(mktemp -d); cd \"$D\"; export LINERATE_HISTORY=\"$D/history\" LINERATE_STATE=\"$D/state\" STDOUT=/proc/self/fd/1
         measure() {{ {} \"$@\" 2> errors > \"$STDOUT\"; code=$?; echo \"== end of $*\"; echo $code; cat errors; }}
         {head}\n",
        env!("CARGO_BIN_EXE_linerate")
    );
    let add = |script: String, command: &&str| format!("{script}echo '== {command}'; measure {command}\n");
    ScriptOutput(lab(&path.file, &["sh", "-c", &commands.iter().fold(head, add)]))
}

/// Measures all items, with as many guests at a time as this host has processors; the results are in the items' order.
///
/// # Panics
///
/// Panics if a measurement does.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], measure: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (Mutex::new(items.iter().enumerate()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some((index, item)) = next.lock().expect("no panic").next() else { break };
            let result = measure(item);
            done.lock().expect("no panic").push((index, result));
        }
    };
    let guests = available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..guests).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Path description of a test.
#[derive(Debug)]
pub(crate) struct OwnPath {
    _folder: Scratch,
    /// File name.
    pub(crate) file: String,
}

impl OwnPath {
    /// Path of 20 Mbit/s and 20 ms.
    pub(crate) fn light() -> Self {
        Self::new(
            "[host.near]\ncongestion_control = \"cubic\"\n\n[host.far]\ncongestion_control = \"cubic\"\n\n[[link]]\n\
             between = [\"near\", \"far\"]\nmtu = 1500\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"100 ms\"\n",
        )
    }

    /// Creates it from the TOML text of the hosts and links.
    pub(crate) fn new(text: &str) -> Self {
        let folder = Scratch::new();
        let file = folder.path("own.toml");
        let head =
            "story = \"A path of a test.\"\nsource = \"The test.\"\nlabel = \"none\"\nscenario = \"test far\"\n\n";
        std::fs::write(&file, format!("{head}{text}")).expect("a scratch file");
        Self { _folder: folder, file }
    }
}
