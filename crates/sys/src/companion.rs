//! An interactive program: requests go to its standard input, answers come from its standard output.

use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use linerate_units::MonotonicTime;

use crate::clock::monotonic_now;
use crate::command::{self, command_line, kill_group, running, set_nonblocking};
use crate::error::{Error, Result};
use crate::namespace::{self, NetworkNamespace};
use crate::poll::{self, PollInterest, PollItem};
use crate::signals::{InterruptSignals, Signal};

/// Parameters of the program to start.
#[derive(Clone, Copy, Debug)]
pub struct InteractiveCommand<'a> {
    /// Name, searched in `$PATH`, or path.
    pub program: &'a str,
    /// Arguments.
    pub arguments: &'a [String],
    /// Variables added to this process's environment, or replacing its values.
    pub environment: &'a [(OsString, OsString)],
    /// Network namespace of the program; `None` for that of this thread.
    pub namespace: Option<&'a NetworkNamespace>,
}

/// A started program, in a process group of its own: Ctrl-C in the terminal reaches this program only, which then ends
/// the conversation. Killed when dropped.
#[derive(Debug)]
pub struct InteractiveProcess {
    child: Child,
    line: String,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    complaints: Vec<u8>,
}

/// Result of waiting for a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompanionOutput {
    /// Output arrived.
    Bytes,
    /// The program has closed its standard output.
    End,
    /// No output in time.
    Late,
    /// A signal arrived for this process.
    Interrupted(Signal),
}

/// Maximum bytes kept of its standard error: the latest.
const MAX_STDERR_BYTES: usize = 16 << 10;

/// Interval between checks for the exit of a program without open outputs.
const LOOK: Duration = Duration::from_millis(10);

impl InteractiveProcess {
    /// Starts it.
    pub fn start(start: &InteractiveCommand<'_>) -> Result<Self> {
        let spawn = || Self::start_here(start);
        match start.namespace {
            Some(namespace) => namespace.within(spawn)?,
            None => namespace::in_thread(spawn)?,
        }
    }

    fn start_here(start: &InteractiveCommand<'_>) -> Result<Self> {
        let arguments: Vec<&str> = start.arguments.iter().map(String::as_str).collect();
        let spawn = || -> io::Result<Self> {
            let path = command::find(start.program, std::env::var_os("PATH"))?;
            let mut command = Command::new(path);
            command.arg0(start.program).args(start.arguments).process_group(0);
            command.envs(start.environment.iter().map(|(name, value)| (name, value)));
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn()?;
            let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let line = command_line(start.program, &arguments);
            let companion = Self { child, line, input, output, errors, complaints: Vec::new() };
            companion.input.as_ref().map(set_nonblocking).transpose()?;
            companion.output.as_ref().map(set_nonblocking).transpose()?;
            companion.errors.as_ref().map(set_nonblocking).transpose()?;
            Ok(companion)
        };
        spawn().map_err(|cause| {
            Error::system(running(start.program, &arguments), cause)
                .hint_on(libc::ENOENT, command::not_found_hint(start.program))
        })
    }

    /// Command line quoted for a shell.
    #[must_use]
    pub fn command_line(&self) -> &str {
        &self.line
    }

    /// Process identifier.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Writes all of it to the program's standard input. Fails when the program does not read it before the deadline,
    /// or has closed its input.
    pub fn send(&mut self, mut bytes: &[u8], deadline: MonotonicTime) -> Result<()> {
        let operation = format!("writing to `{}`", self.line);
        let began = monotonic_now();
        while !bytes.is_empty() {
            self.read_stderr();
            let Some(input) = &mut self.input else {
                return Err(Error::refused(operation, "its standard input is closed"));
            };
            match input.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) if poll::would_block(&cause) => {
                    let left = deadline - monotonic_now();
                    if left.is_zero() {
                        return Err(Error::TimedOut { operation, after: monotonic_now() - began });
                    }
                    let mut items = vec![PollItem::new(input, PollInterest::WRITE)];
                    items.extend(self.errors.as_ref().map(|pipe| PollItem::new(pipe, PollInterest::READ)));
                    poll::wait(&mut items, Some(left))?;
                }
                Err(cause) => return Err(Error::system(operation, cause)),
            }
        }
        Ok(())
    }

    /// Waits for bytes on the program's standard output, and appends them to `to`.
    pub fn receive(
        &mut self,
        to: &mut Vec<u8>,
        deadline: MonotonicTime,
        interrupts: Option<&InterruptSignals>,
    ) -> Result<CompanionOutput> {
        let failed = |line: &str, cause| Error::system(format!("reading from `{line}`"), cause);
        let mut block = vec![0_u8; 16 << 10];
        loop {
            if let Some(signal) = interrupts.and_then(InterruptSignals::pending) {
                return Ok(CompanionOutput::Interrupted(signal));
            }
            self.read_stderr();
            let Some(output) = &mut self.output else { return Ok(CompanionOutput::End) };
            match output.read(&mut block) {
                Ok(0) => {
                    self.output = None;
                    return Ok(CompanionOutput::End);
                }
                Ok(length) => {
                    to.extend_from_slice(&block[..length]);
                    return Ok(CompanionOutput::Bytes);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) if poll::would_block(&cause) => {}
                Err(cause) => return Err(failed(&self.line, cause)),
            }
            let left = deadline - monotonic_now();
            if left.is_zero() {
                return Ok(CompanionOutput::Late);
            }
            let mut items = vec![PollItem::new(output, PollInterest::READ)];
            items.extend(self.errors.as_ref().map(|pipe| PollItem::new(pipe, PollInterest::READ)));
            items.extend(interrupts.map(|interrupts| PollItem::new(interrupts, PollInterest::READ)));
            poll::wait(&mut items, Some(left))?;
        }
    }

    fn read_stderr(&mut self) {
        let mut block = [0_u8; 4 << 10];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut block) {
                Ok(0) => self.errors = None,
                Ok(length) => {
                    self.complaints.extend_from_slice(&block[..length]);
                    let surplus = self.complaints.len().saturating_sub(MAX_STDERR_BYTES);
                    self.complaints.drain(..surplus);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) if poll::would_block(&cause) => return,
                Err(_) => self.errors = None,
            }
        }
    }

    /// Standard error so far, at most the latest 16 KiB, trimmed.
    #[must_use]
    pub fn complaints(&mut self) -> String {
        self.read_stderr();
        String::from_utf8_lossy(&self.complaints).trim().to_owned()
    }

    /// Closes its standard input and waits for its end; `None` when it did not end in time.
    pub fn finish(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.input = None;
        let deadline = monotonic_now() + patience;
        loop {
            // Unread output must not keep it from ending.
            let mut rest = Vec::new();
            let _ = self.receive(&mut rest, monotonic_now(), None);
            self.read_stderr();
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.read_stderr();
                    return Some(status);
                }
                Ok(None) if monotonic_now() < deadline => {}
                Ok(None) | Err(_) => return None,
            }
            let _ = poll::wait(&mut [], Some(LOOK));
        }
    }
}

impl Drop for InteractiveProcess {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> InteractiveProcess {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let environment = [("GREETING".into(), "a b".into())];
        let start =
            InteractiveCommand { program: "sh", arguments: &arguments, environment: &environment, namespace: None };
        InteractiveProcess::start(&start).expect("sh runs")
    }

    fn read(companion: &mut InteractiveProcess, patience: Duration) -> (String, CompanionOutput) {
        let mut bytes = Vec::new();
        loop {
            match companion.receive(&mut bytes, monotonic_now() + patience, None).expect("readable") {
                CompanionOutput::Bytes if !bytes.ends_with(b"\n") => {}
                received => return (String::from_utf8(bytes).expect("text"), received),
            }
        }
    }

    #[test]
    fn question_and_answer() {
        let mut companion = shell("while read line; do echo \"$GREETING $line\"; done; echo gone >&2; exit 3");
        for word in ["one", "two"] {
            companion.send(format!("{word}\n").as_bytes(), monotonic_now() + LONG).expect("it reads");
            assert_eq!(read(&mut companion, LONG), (format!("a b {word}\n"), CompanionOutput::Bytes));
        }
        assert_eq!(companion.finish(LONG).and_then(|status| status.code()), Some(3));
        assert_eq!(companion.complaints(), "gone");
        assert!(companion.send(b"x", monotonic_now() + LONG).is_err(), "closed");
    }

    #[test]
    fn nothing_in_time_and_the_end() {
        let mut companion = shell("read line; exec >&-; read line");
        assert_eq!(read(&mut companion, Duration::from_millis(30)), (String::new(), CompanionOutput::Late));
        companion.send(b"\n", monotonic_now() + LONG).expect("it reads");
        assert_eq!(read(&mut companion, LONG).1, CompanionOutput::End);
        assert_eq!(companion.finish(LONG).and_then(|status| status.code()), Some(1));
    }

    #[test]
    fn a_program_that_does_not_read_is_not_waited_for() {
        let mut companion = shell("exec sleep 1000");
        let much = vec![b'x'; 1 << 20];
        let error = companion.send(&much, monotonic_now() + Duration::from_millis(50)).expect_err("it does not read");
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert_eq!(companion.finish(Duration::from_millis(30)), None);
        let process = companion.process();
        drop(companion);
        assert!(!std::path::Path::new(&format!("/proc/{process}")).exists(), "killed and waited for");
        let mut ended = shell("exec true");
        assert!(ended.finish(LONG).is_some());
    }

    #[test]
    fn much_of_both_does_not_block() {
        let mut companion = shell("seq 1 100000 >&2; read line; echo \"$line\"");
        companion.send(b"read\n", monotonic_now() + LONG).expect("it reads");
        assert_eq!(read(&mut companion, LONG).0, "read\n");
        let complaints = companion.complaints();
        assert!(complaints.ends_with("100000") && complaints.len() <= MAX_STDERR_BYTES, "{}", complaints.len());
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let start =
            InteractiveCommand { program: "no-such-program-here", arguments: &[], environment: &[], namespace: None };
        let error = InteractiveProcess::start(&start).expect_err("not there").to_string();
        assert!(error.ends_with("(the program is not installed, or not in $PATH)"), "{error}");
    }
}
