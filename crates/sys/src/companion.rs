//! A program that this one talks with: questions into its standard input, answers from its standard output.

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
use crate::poll::{self, Interest, PollItem};
use crate::signals::{Interrupts, Signal};

/// What to start, and where.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Its name, which is looked for in `$PATH`, or its path.
    pub program: &'a str,
    /// Its arguments.
    pub arguments: &'a [String],
    /// What its environment has besides, or instead of, this process's.
    pub environment: &'a [(OsString, OsString)],
    /// The network that it sees; `None` for that of this thread.
    pub namespace: Option<&'a NetworkNamespace>,
}

/// A program that was started, in a process group of its own: Ctrl-C in the terminal reaches this program only, which then
/// ends the conversation. Killed when dropped.
#[derive(Debug)]
pub struct Companion {
    child: Child,
    line: String,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    complaints: Vec<u8>,
}

/// What came of waiting for a program to say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It said something.
    Bytes,
    /// It has closed its standard output: nothing more comes.
    End,
    /// Nothing in time.
    Late,
    /// A signal came for this process.
    Interrupted(Signal),
}

/// How much of what it writes to its standard error is kept: the latest.
const MOST_COMPLAINTS: usize = 16 << 10;

/// How often to look whether a program without open outputs has ended.
const LOOK: Duration = Duration::from_millis(10);

impl Companion {
    /// Starts it.
    pub fn start(start: &Start<'_>) -> Result<Self> {
        let spawn = || Self::start_here(start);
        match start.namespace {
            Some(namespace) => namespace.within(spawn)?,
            None => namespace::in_thread(spawn)?,
        }
    }

    fn start_here(start: &Start<'_>) -> Result<Self> {
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
            Error::system(running(start.program, &arguments), cause).hint_on(libc::ENOENT, command::NOT_FOUND)
        })
    }

    /// The command as a person would type it.
    #[must_use]
    pub fn command_line(&self) -> &str {
        &self.line
    }

    /// Its number.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Writes all of it to the program's standard input. Fails when the program does not take it before the deadline, or
    /// reads no more.
    pub fn send(&mut self, mut bytes: &[u8], deadline: MonotonicTime) -> Result<()> {
        let operation = format!("writing to `{}`", self.line);
        let began = monotonic_now();
        while !bytes.is_empty() {
            self.listen_to_complaints();
            let Some(input) = &mut self.input else { return Err(Error::refused(operation, "it is told nothing more")) };
            match input.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) if poll::would_block(&cause) => {
                    let left = deadline - monotonic_now();
                    if left.is_zero() {
                        return Err(Error::TimedOut { operation, after: monotonic_now() - began });
                    }
                    let mut items = vec![PollItem::new(input, Interest::WRITE)];
                    items.extend(self.errors.as_ref().map(|pipe| PollItem::new(pipe, Interest::READ)));
                    poll::wait(&mut items, Some(left))?;
                }
                Err(cause) => return Err(Error::system(operation, cause)),
            }
        }
        Ok(())
    }

    /// Waits until the program says something on its standard output, and adds that to `to`.
    pub fn receive(
        &mut self,
        to: &mut Vec<u8>,
        deadline: MonotonicTime,
        interrupts: Option<&Interrupts>,
    ) -> Result<Received> {
        let failed = |line: &str, cause| Error::system(format!("reading from `{line}`"), cause);
        let mut block = vec![0_u8; 16 << 10];
        loop {
            if let Some(signal) = interrupts.and_then(Interrupts::pending) {
                return Ok(Received::Interrupted(signal));
            }
            self.listen_to_complaints();
            let Some(output) = &mut self.output else { return Ok(Received::End) };
            match output.read(&mut block) {
                Ok(0) => {
                    self.output = None;
                    return Ok(Received::End);
                }
                Ok(length) => {
                    to.extend_from_slice(&block[..length]);
                    return Ok(Received::Bytes);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) if poll::would_block(&cause) => {}
                Err(cause) => return Err(failed(&self.line, cause)),
            }
            let left = deadline - monotonic_now();
            if left.is_zero() {
                return Ok(Received::Late);
            }
            let mut items = vec![PollItem::new(output, Interest::READ)];
            items.extend(self.errors.as_ref().map(|pipe| PollItem::new(pipe, Interest::READ)));
            items.extend(interrupts.map(|interrupts| PollItem::new(interrupts, Interest::READ)));
            poll::wait(&mut items, Some(left))?;
        }
    }

    fn listen_to_complaints(&mut self) {
        let mut block = [0_u8; 4 << 10];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut block) {
                Ok(0) => self.errors = None,
                Ok(length) => {
                    self.complaints.extend_from_slice(&block[..length]);
                    let surplus = self.complaints.len().saturating_sub(MOST_COMPLAINTS);
                    self.complaints.drain(..surplus);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) if poll::would_block(&cause) => return,
                Err(_) => self.errors = None,
            }
        }
    }

    /// What it has written to its standard error so far, at most the latest 16 KiB, without blanks around it.
    #[must_use]
    pub fn complaints(&mut self) -> String {
        self.listen_to_complaints();
        String::from_utf8_lossy(&self.complaints).trim().to_owned()
    }

    /// Closes its standard input and waits for its end; `None` when it did not end in time.
    pub fn finish(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.input = None;
        let deadline = monotonic_now() + patience;
        loop {
            // What nobody reads must not keep it from ending.
            let mut rest = Vec::new();
            let _ = self.receive(&mut rest, monotonic_now(), None);
            self.listen_to_complaints();
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.listen_to_complaints();
                    return Some(status);
                }
                Ok(None) if monotonic_now() < deadline => {}
                Ok(None) | Err(_) => return None,
            }
            let _ = poll::wait(&mut [], Some(LOOK));
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Companion {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let environment = [("TOLD".into(), "a b".into())];
        let start = Start { program: "sh", arguments: &arguments, environment: &environment, namespace: None };
        Companion::start(&start).expect("sh runs")
    }

    fn read(companion: &mut Companion, patience: Duration) -> (String, Received) {
        let mut bytes = Vec::new();
        loop {
            match companion.receive(&mut bytes, monotonic_now() + patience, None).expect("readable") {
                Received::Bytes if !bytes.ends_with(b"\n") => {}
                received => return (String::from_utf8(bytes).expect("text"), received),
            }
        }
    }

    #[test]
    fn question_and_answer() {
        let mut companion = shell("while read line; do echo \"$TOLD $line\"; done; echo gone >&2; exit 3");
        for word in ["one", "two"] {
            companion.send(format!("{word}\n").as_bytes(), monotonic_now() + LONG).expect("it reads");
            assert_eq!(read(&mut companion, LONG), (format!("a b {word}\n"), Received::Bytes));
        }
        assert_eq!(companion.finish(LONG).and_then(|status| status.code()), Some(3));
        assert_eq!(companion.complaints(), "gone");
        assert!(companion.send(b"x", monotonic_now() + LONG).is_err(), "closed");
    }

    #[test]
    fn nothing_in_time_and_the_end() {
        let mut companion = shell("read line; exec >&-; read line");
        assert_eq!(read(&mut companion, Duration::from_millis(30)), (String::new(), Received::Late));
        companion.send(b"\n", monotonic_now() + LONG).expect("it reads");
        assert_eq!(read(&mut companion, LONG).1, Received::End);
        assert_eq!(companion.finish(LONG).and_then(|status| status.code()), Some(1));
    }

    #[test]
    fn who_does_not_read_is_not_waited_for() {
        let mut companion = shell("exec sleep 1000");
        let much = vec![b'x'; 1 << 20];
        let error = companion.send(&much, monotonic_now() + Duration::from_millis(50)).expect_err("nobody reads");
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
        assert!(complaints.ends_with("100000") && complaints.len() <= MOST_COMPLAINTS, "{}", complaints.len());
    }

    #[test]
    fn what_is_not_there_cannot_be_talked_with() {
        let start = Start { program: "no-such-program-here", arguments: &[], environment: &[], namespace: None };
        let error = Companion::start(&start).expect_err("not there").to_string();
        assert!(error.ends_with("(the program is not installed, or not in $PATH)"), "{error}");
    }
}
