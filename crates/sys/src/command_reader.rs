//! A program that stays and carries out one line after the other: `tc -batch -`.
//!
//! Starting `tc` costs a small processor some milliseconds, which is too much for rates that change ten times a second;
//! a line for one that runs already costs hundredths of one.

use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::clock::monotonic_now;
use crate::command::{self, running, set_nonblocking};
use crate::error::{Error, Result};
use crate::poll::{self, Interest};

/// A command that no program has. After the last line of a batch it is complained about, which says that all before it
/// is done.
const MARK: &str = "linerate-has-come-here";

/// How the second of `tc`'s two lines about a command that failed begins; its number follows.
const FAILED: &str = "Command failed -:";

/// What is kept of a program's complaints.
const LONGEST: usize = 16 << 10;

/// A running `tc -force -batch -`.
#[derive(Debug)]
pub struct TrafficControl {
    child: Child,
    input: io::PipeWriter,
    complaints: io::PipeReader,
}

const PROGRAM: &str = "tc";
/// Goes on after a line that fails: the mark must be reached.
const ARGUMENTS: [&str; 3] = ["-force", "-batch", "-"];

impl TrafficControl {
    /// Starts it, in the calling thread's network namespace.
    ///
    /// # Errors
    /// When `tc` is not installed, or no process can be started.
    pub fn start() -> Result<Self> {
        start().map_err(failed)
    }

    /// Carries these lines out, each without its end, and waits until that is done.
    ///
    /// # Errors
    /// What `tc` complained about, after all lines were tried; or that it did not answer within `patience`, or has ended:
    /// then it is of no more use, and another one has to be started.
    pub fn run<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>, patience: Duration) -> Result<()> {
        let mut text = String::new();
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(MARK);
        text.push('\n');
        self.input.write_all(text.as_bytes()).map_err(failed)?;
        let complaints = self.read_to_the_mark(patience)?;
        // The kernel's warnings come on the same way.
        if !complaints.lines().any(|line| line.starts_with(FAILED)) {
            return Ok(());
        }
        Err(Error::Program {
            command: running(PROGRAM, &ARGUMENTS),
            status: "goes on".to_owned(),
            output: complaints.trim().to_owned(),
        })
    }

    /// What is complained about before the mark.
    fn read_to_the_mark(&mut self, patience: Duration) -> Result<String> {
        let deadline = monotonic_now() + patience;
        let mut said = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match self.complaints.read(&mut piece) {
                Ok(0) => return Err(failed(io::ErrorKind::BrokenPipe.into())),
                Ok(length) => said.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if poll::would_block(&error) => {
                    let left = deadline.since(monotonic_now());
                    if left.is_zero() || !poll::wait_for(&self.complaints, Interest::READ, Some(left))? {
                        return Err(Error::TimedOut { operation: running(PROGRAM, &ARGUMENTS), after: patience });
                    }
                }
                Err(error) => return Err(failed(error)),
            }
            if let Some(before) = before_the_mark(&String::from_utf8_lossy(&said)) {
                return Ok(before);
            }
            if said.len() > LONGEST {
                said.drain(..said.len() - LONGEST / 2);
            }
        }
    }
}

impl Drop for TrafficControl {
    fn drop(&mut self) {
        // Nothing that it was told is half done: each line is one message to the kernel.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start() -> io::Result<TrafficControl> {
    let path = command::find(PROGRAM, std::env::var_os("PATH"))?;
    let (lines, input) = io::pipe()?;
    let (complaints, writer) = io::pipe()?;
    set_nonblocking(&complaints)?;
    let mut command = Command::new(path);
    // In a group of its own it does not hear what is typed at the terminal: it ends with its input.
    command.arg0(PROGRAM).args(ARGUMENTS).process_group(0).env("LC_ALL", "C");
    command.stdin(lines).stdout(Stdio::null()).stderr(writer);
    let child = command.spawn()?;
    Ok(TrafficControl { child, input, complaints })
}

fn failed(cause: io::Error) -> Error {
    Error::system(running(PROGRAM, &ARGUMENTS), cause).hint_on(libc::ENOENT, command::NOT_FOUND)
}

/// The complaints before the one about the mark; `None` while that has not come whole. `tc` says two lines about each
/// command that fails: why, and `Command failed -:NUMBER`.
fn before_the_mark(said: &str) -> Option<String> {
    let (before, after) = said.split_once(MARK)?;
    let (_, last) = after.split_once('\n')?;
    last.contains('\n').then_some(())?;
    let end = before.rfind('\n').map_or(0, |end| end + 1);
    Some(before[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_waited_for_whole() {
        let mark = format!("Object \"{MARK}\" is unknown, try \"tc help\".\nCommand failed -:3\n");
        for length in 0..mark.len() {
            assert_eq!(before_the_mark(&mark[..length]), None, "{}", &mark[..length]);
        }
        assert_eq!(before_the_mark(&mark).as_deref(), Some(""));
        let all = format!("Error: Specified class not found.\nCommand failed -:1\n{mark}");
        let complaint = before_the_mark(&all).expect("whole");
        assert_eq!(complaint, "Error: Specified class not found.\nCommand failed -:1\n");
    }

    #[test]
    #[ignore = "needs root, ip and tc: a device in a network namespace"]
    fn lines_are_carried_out_one_after_the_other() {
        let patience = Duration::from_secs(10);
        let chain = crate::test_network::Chain::new(1400);
        let within = || {
            let mut control = TrafficControl::start().expect("tc runs");
            let root = "qdisc add dev near0 root handle 1: htb default 10";
            // The kernel warns of this one's quantum, which is no failure.
            control.run([root, "class add dev near0 parent 1: classid 1:10 htb rate 10mbit"], patience).expect("done");
            for rate in 1..50 {
                let line = format!("class change dev near0 parent 1: classid 1:10 htb rate {rate}mbit");
                control.run([line.as_str()], patience).expect("done");
            }
            let shown = command::run_checked("tc", &["class", "show", "dev", "near0"], None, patience)
                .expect("tc")
                .stdout_text();
            assert!(shown.contains("rate 49Mbit"), "{shown}");
            let wrong = "class change dev near0 parent 1: classid 1:99 htb";
            let last = "class change dev near0 parent 1: classid 1:10 htb rate 7mbit";
            let error = control.run([wrong, last], patience).expect_err("no such class").to_string();
            assert!(error.contains("tc -force -batch -") && !error.contains(MARK), "{error}");
            let shown = command::run_checked("tc", &["class", "show", "dev", "near0"], None, patience)
                .expect("tc")
                .stdout_text();
            assert!(shown.contains("rate 7Mbit"), "the lines after it are carried out: {shown}");
        };
        chain.near.within(within).expect("entered");
    }
}
