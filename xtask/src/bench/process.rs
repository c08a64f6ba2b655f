//! Child processes that always end, with their CPU time.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Clock ticks per second in /proc (`USER_HZ`), 100 on every platform of Rust's Linux targets (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Interval at which a child's state is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Running child process. It is killed on drop, and by the kernel when this process dies first.
pub(super) struct RunningChild {
    child: Child,
    output: Option<JoinHandle<Vec<u8>>>,
    name: String,
}

/// Result of a child process.
pub(super) struct FinishedChild {
    /// Output on stdout.
    pub(super) output: String,
    /// CPU time of all its threads, user and system, in seconds.
    pub(super) cpu_seconds: f64,
    /// True if it ended with status 0.
    pub(super) success: bool,
}

impl RunningChild {
    /// Starts `program`. Through setpriv(1), where there is one, so that an interrupted bench leaves no server behind;
    /// setpriv becomes the program, so the process is the same.
    pub(super) fn start(program: &Path, arguments: &[String]) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        let child = match spawn(command.args(arguments)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => spawn(Command::new(program).args(arguments)),
            other => other,
        };
        let name = format!("{} {}", program.display(), arguments.join(" "));
        let mut child = child.with_context(|| format!("cannot start {name}"))?;
        let output = child.stdout.take().map(|mut stdout| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                // A broken pipe ends the output; earlier output is kept.
                let _ = stdout.read_to_end(&mut bytes);
                bytes
            })
        });
        Ok(Self { child, output, name })
    }

    /// True while it runs.
    pub(super) fn is_running(&self) -> bool {
        stat(self.child.id()).is_ok_and(|stat| !stat.ended)
    }

    /// Waits until it ends by itself; kills it and returns an error after `limit`.
    pub(super) fn finish(mut self, limit: Duration) -> Result<FinishedChild> {
        let deadline = Instant::now() + limit;
        // An ended child keeps its account in /proc until it is waited for: read it in between.
        let cpu_seconds = loop {
            let stat = stat(self.child.id())?;
            if stat.ended {
                break stat.cpu_seconds;
            }
            if Instant::now() >= deadline {
                bail!("{} did not end within {} s", self.name, limit.as_secs());
            }
            thread::sleep(POLL_INTERVAL);
        };
        let status = self.child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        let bytes = self.output.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Ok(FinishedChild {
            output: String::from_utf8_lossy(&bytes).into_owned(),
            cpu_seconds,
            success: status.success(),
        })
    }
}

fn spawn(command: &mut Command) -> std::io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        // Both fail only when the child has already been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// State and CPU time of a process.
#[derive(Debug, PartialEq)]
struct ProcessStat {
    ended: bool,
    cpu_seconds: f64,
}

fn stat(id: u32) -> Result<ProcessStat> {
    let path = format!("/proc/{id}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse_stat(&text).with_context(|| format!("cannot understand {path}: {text}"))
}

/// Reads state, utime and stime: fields 3, 14 and 15 of proc(5). The name in field 2 may hold anything, so counting
/// starts behind its closing parenthesis.
fn parse_stat(text: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok();
    let cpu_seconds = f64::from(ticks(11)?.checked_add(ticks(12)?)?) / TICKS_PER_SECOND;
    Some(ProcessStat { ended: matches!(*fields.first()?, "Z" | "X"), cpu_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_a_process_is_read_behind_its_name() {
        let text = "42 (a ) S b) Z 1 42 42 0 -1 4194304 100 0 0 0 150 25 0 0 20 0 1 0 1000 0 0\n";
        let stat = parse_stat(text).expect("the line is complete");
        assert_eq!(stat, ProcessStat { ended: true, cpu_seconds: 1.75 });
        assert!(!parse_stat(&text.replace(" Z ", " R ")).expect("the line is complete").ended);
        assert_eq!(parse_stat("42 (a) Z 1"), None);
    }

    #[test]
    fn the_work_of_a_child_is_counted_and_its_output_kept() {
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; exit 3".to_owned();
        let child = RunningChild::start(Path::new("sh"), &["-c".to_owned(), work]).expect("every machine has sh");
        let finished = child.finish(Duration::from_secs(20)).expect("the loop ends");
        assert_eq!(finished.output, "done\n");
        assert!(!finished.success);
        assert!(finished.cpu_seconds > 0.0, "a loop of 200000 turns costs something");
    }

    #[test]
    fn a_child_that_does_not_end_is_killed() {
        let child = RunningChild::start(Path::new("sleep"), &["600".to_owned()]).expect("every machine has sleep");
        let id = child.child.id();
        assert!(child.is_running());
        assert!(child.finish(Duration::ZERO).is_err());
        assert!(!Path::new(&format!("/proc/{id}")).exists(), "killed and waited for");
    }
}
