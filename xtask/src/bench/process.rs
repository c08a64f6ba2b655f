//! Child processes that always end, and the processor time of all of them.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linerate_sys::clock::{self, ChildUsage};

/// Interval at which the end of a child is polled after the end of its output.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Clock ticks per second in /proc (`USER_HZ`), 100 on every platform of Rust's Linux targets (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Running child process. It is killed on drop, and by the kernel when this process dies first.
pub(crate) struct RunningChild {
    child: Child,
    output: Receiver<Vec<u8>>,
    name: String,
}

/// Result of a child process.
pub(super) struct FinishedChild {
    /// Output on stdout.
    pub(super) output: String,
    /// True if it ended with status 0.
    pub(super) success: bool,
}

impl RunningChild {
    /// Starts a command line. Through setpriv(1), where there is one, so that an interrupted bench leaves no server
    /// behind; setpriv becomes the program, so the process is the same.
    pub(crate) fn start(line: &[String]) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(line);
        let name = line.join(" ");
        let child = match (spawn(&mut command), line) {
            (Err(error), [program, arguments @ ..]) if error.kind() == std::io::ErrorKind::NotFound => {
                spawn(Command::new(program).args(arguments))
            }
            (other, _) => other,
        };
        let mut child = child.with_context(|| format!("cannot start {name}"))?;
        let (ended, output) = channel();
        let stdout = child.stdout.take();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stdout) = stdout {
                // A broken pipe ends the output; earlier output is kept.
                let _ = stdout.read_to_end(&mut bytes);
            }
            // Nobody listens after the time limit.
            let _ = ended.send(bytes);
        });
        Ok(Self { child, output, name })
    }

    /// Process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// True while it runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends by itself; kills it and returns an error after `limit`.
    pub(super) fn finish(mut self, limit: Duration) -> Result<FinishedChild> {
        let deadline = Instant::now() + limit;
        let Ok(bytes) = self.output.recv_timeout(limit) else {
            bail!("{} did not end within {} s", self.name, limit.as_secs());
        };
        let status = loop {
            match self.child.try_wait().with_context(|| format!("cannot wait for {}", self.name))? {
                Some(status) => break status,
                None if Instant::now() >= deadline => bail!("{} closed its output and did not end", self.name),
                None => thread::sleep(POLL_INTERVAL),
            }
        };
        Ok(FinishedChild { output: String::from_utf8_lossy(&bytes).into_owned(), success: status.success() })
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

/// Account of the children that ended, and of the whole machine.
#[derive(Clone, Copy)]
pub(super) struct CpuAccount {
    children: ChildUsage,
    /// Seconds in which any processor worked.
    machine: f64,
}

/// Growth of the account.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuUse {
    /// Processor seconds of the children, user and system.
    pub(super) children: f64,
    /// Processor seconds of the machine, interrupts and their deferred part included.
    pub(super) machine: f64,
    /// Times at which a child's thread waited for something.
    pub(super) waits: f64,
}

impl CpuAccount {
    /// Reads the account.
    pub(super) fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let machine = busy_seconds(&text).context("cannot understand /proc/stat")?;
        Ok(Self { children: clock::child_usage(), machine })
    }

    /// Returns the growth since `self`.
    pub(super) fn since_then(&self) -> Result<CpuUse> {
        let now = Self::read()?;
        Ok(CpuUse {
            children: (now.children.cpu.total().saturating_sub(self.children.cpu.total())).as_secs_f64(),
            machine: now.machine - self.machine,
            waits: u32::try_from(now.children.waits.saturating_sub(self.children.waits)).map_or(f64::NAN, f64::from),
        })
    }
}

/// Seconds that are neither idle, nor waits for a disk, nor stolen by the host: fields of the first line of /proc/stat
/// (proc(5)): user, nice, system, idle, iowait, irq, softirq.
fn busy_seconds(text: &str) -> Option<f64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u32> = line.split_whitespace().take(7).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let [user, nice, system, _, _, interrupts, deferred] = ticks[..] else { return None };
    Some([user, nice, system, interrupts, deferred].into_iter().map(f64::from).sum::<f64>() / TICKS_PER_SECOND)
}

/// Text of a table of the network namespace of a process.
pub(super) fn network_table(id: u32, table: &str) -> String {
    fs::read_to_string(Path::new("/proc").join(id.to_string()).join("net").join(table)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> RunningChild {
        RunningChild::start(&["sh", "-c", script].map(str::to_owned)).expect("every machine has sh")
    }

    #[test]
    fn idle_time_is_not_work() {
        let text = "cpu  100 20 300 4000 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(busy_seconds(text), Some(4.33));
        assert_eq!(busy_seconds("cpu  100 20 300\n"), None);
    }

    #[test]
    fn the_work_of_a_child_is_counted_and_its_output_kept() {
        let before = CpuAccount::read().expect("this is Linux");
        let child = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; exit 3");
        let finished = child.finish(Duration::from_secs(60)).expect("the loop ends");
        assert_eq!(finished.output, "done\n");
        assert!(!finished.success);
        let used = before.since_then().expect("this is Linux");
        assert!(used.children > 0.0, "a loop of 200000 turns costs something");
    }

    #[test]
    fn a_child_that_does_not_end_is_killed() {
        let mut child = shell("exec sleep 600");
        let id = child.id();
        assert!(child.is_running());
        assert!(child.finish(Duration::ZERO).is_err());
        assert!(!Path::new(&format!("/proc/{id}")).exists(), "killed and waited for");
    }
}
