//! A long-running `tc -batch -` that executes one line after the other.
//!
//! Starting `tc` takes some milliseconds on a small processor, too long for rates that change ten times a second; a
//! line for a running one takes hundredths of a millisecond.

use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::clock::monotonic_now;
use crate::command::{self, running, set_nonblocking};
use crate::error::{Error, Result};
use crate::poll::{self, PollInterest};

/// Command that does not exist. Its error message after the last line of a batch shows that all lines before it are
/// done.
const END_MARKER: &str = "linerate-has-come-here";

/// Prefix of the second of the two lines that `tc` prints for a failed command; the command's number follows.
const FAILURE_PREFIX: &str = "Command failed -:";

/// Maximum bytes kept of the program's error output.
const LONGEST: usize = 16 << 10;

/// A running `tc -force -batch -`.
#[derive(Debug)]
pub struct TrafficControl {
    child: Child,
    input: io::PipeWriter,
    complaints: io::PipeReader,
}

const PROGRAM: &str = "tc";
/// Continues after a line that fails: the mark must be reached.
const ARGUMENTS: [&str; 3] = ["-force", "-batch", "-"];

impl TrafficControl {
    /// Starts it, in the calling thread's network namespace.
    ///
    /// # Errors
    /// When `tc` is not installed, or no process can be started.
    pub fn start() -> Result<Self> {
        start().map_err(failed)
    }

    /// Executes these lines, given without line ends, and waits for their completion.
    ///
    /// # Errors
    /// The error output of `tc`, after all lines were tried; or no answer within `patience`, or its exit: then it is
    /// unusable, and another one has to be started.
    pub fn run<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>, patience: Duration) -> Result<()> {
        let mut text = String::new();
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(END_MARKER);
        text.push('\n');
        self.input.write_all(text.as_bytes()).map_err(failed)?;
        let complaints = self.read_to_marker(patience)?;
        // The kernel's warnings arrive on the same pipe.
        if !complaints.lines().any(|line| line.starts_with(FAILURE_PREFIX)) {
            return Ok(());
        }
        Err(Error::Program {
            command: running(PROGRAM, &ARGUMENTS),
            status: "still running".to_owned(),
            output: complaints.trim().to_owned(),
        })
    }

    /// Error output before the mark.
    fn read_to_marker(&mut self, patience: Duration) -> Result<String> {
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
                    if left.is_zero() || !poll::wait_for(&self.complaints, PollInterest::READ, Some(left))? {
                        return Err(Error::TimedOut { operation: running(PROGRAM, &ARGUMENTS), after: patience });
                    }
                }
                Err(error) => return Err(failed(error)),
            }
            if let Some(before) = text_before_marker(&String::from_utf8_lossy(&said)) {
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
        // No line is half done: each is one message to the kernel.
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
    // In its own process group it gets no signals from the terminal: it ends with its input.
    command.arg0(PROGRAM).args(ARGUMENTS).process_group(0).env("LC_ALL", "C");
    command.stdin(lines).stdout(Stdio::null()).stderr(writer);
    let child = command.spawn()?;
    Ok(TrafficControl { child, input, complaints })
}

fn failed(cause: io::Error) -> Error {
    Error::system(running(PROGRAM, &ARGUMENTS), cause).hint_on(libc::ENOENT, command::not_found_hint(PROGRAM))
}

/// Error output before that of the mark; `None` until the latter is complete. `tc` prints two lines for each failed
/// command: the reason, and `Command failed -:NUMBER`.
fn text_before_marker(said: &str) -> Option<String> {
    let (before, after) = said.split_once(END_MARKER)?;
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
        let mark = format!("Object \"{END_MARKER}\" is unknown, try \"tc help\".\nCommand failed -:3\n");
        for length in 0..mark.len() {
            assert_eq!(text_before_marker(&mark[..length]), None, "{}", &mark[..length]);
        }
        assert_eq!(text_before_marker(&mark).as_deref(), Some(""));
        let all = format!("Error: Specified class not found.\nCommand failed -:1\n{mark}");
        let complaint = text_before_marker(&all).expect("whole");
        assert_eq!(complaint, "Error: Specified class not found.\nCommand failed -:1\n");
    }

    #[test]
    #[ignore = "needs root, ip and tc: a device in a network namespace"]
    fn lines_are_executed_in_order() {
        let patience = Duration::from_secs(10);
        let chain = crate::test_network::NamespaceChain::new(1400);
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
            assert!(error.contains("tc -force -batch -") && !error.contains(END_MARKER), "{error}");
            let shown = command::run_checked("tc", &["class", "show", "dev", "near0"], None, patience)
                .expect("tc")
                .stdout_text();
            assert!(shown.contains("rate 7Mbit"), "the lines after it are executed: {shown}");
        };
        chain.near.within(within).expect("entered");
    }
}
