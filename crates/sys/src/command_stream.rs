//! Running a program that takes long: its output line by line, and its termination on a signal.

use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use linerate_units::MonotonicTime;
use rustix::process;

use crate::clock::{self, monotonic_now};
use crate::command::{self, running, set_nonblocking};
use crate::error::{Error, Result};
use crate::poll::{self, PollInterest, PollItem};
use crate::process::ending;
use crate::signals::{InterruptSignals, Signal};

/// A program to run, with nothing on its standard input.
#[derive(Clone, Copy, Debug)]
pub struct StreamedCommand<'a> {
    /// Name, searched in `$PATH`, or path.
    pub program: &'a str,
    /// Arguments.
    pub arguments: &'a [&'a str],
    /// Working directory.
    pub directory: &'a Path,
    /// Environment, in addition to [`INHERITED_VARIABLES`].
    pub environment: &'a [(&'a str, &'a str)],
    /// Signals that end it; `None` for none.
    pub interrupts: Option<&'a InterruptSignals>,
    /// Time at which it is ended; `None` for never.
    pub deadline: Option<MonotonicTime>,
}

/// Environment variables that a program inherits from this process: search path, directories and proxies, none that
/// change its behaviour. Its messages are in English (`LC_ALL=C`).
pub const INHERITED_VARIABLES: [&str; 11] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "APT_CONFIG",
];

/// Reason for the end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnding {
    /// Exit by itself.
    Status(ExitStatus),
    /// A signal for this process, at which the program was ended with all that it had started.
    Interrupted(Signal),
    /// The deadline, at which it was ended with all that it had started.
    TooLate,
}

/// Output of a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEvent<'a> {
    /// A line of its standard output or error, without the line end. Lines longer than 64 KiB are split.
    Line(&'a str),
    /// No output for a while.
    Nothing,
}

/// Interval between calls of the listener while the program writes nothing.
const TICK: Duration = Duration::from_millis(250);

/// Time that a program has to end after it was asked to.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_LINE_BYTES: usize = 64 << 10;

/// Runs a program to its end. Both of its outputs go to `listener`, in the order in which they were written. A program
/// that fails is no error here. When the calling thread ends, the program is killed.
pub fn stream(run: &StreamedCommand<'_>, listener: &mut dyn FnMut(OutputEvent<'_>)) -> Result<CommandEnding> {
    let failed = |cause| {
        Error::system(running(run.program, run.arguments), cause)
            .hint_on(libc::ENOENT, command::not_found_hint(run.program))
    };
    let (output, mut child) = start(run).map_err(failed)?;
    let outcome = listen(run, output, &mut child, listener);
    if !matches!(outcome, Ok(CommandEnding::Status(_))) {
        end_group(&mut child);
    }
    outcome.map_err(failed)
}

fn start(run: &StreamedCommand<'_>) -> io::Result<(io::PipeReader, Child)> {
    let path = command::find(run.program, std::env::var_os("PATH"))?;
    let (reader, writer) = io::pipe()?;
    set_nonblocking(&reader)?;
    let mut command = Command::new(path);
    command.arg0(run.program).args(run.arguments).current_dir(run.directory).process_group(0).env_clear();
    let lasting =
        INHERITED_VARIABLES.iter().filter_map(|name| std::env::var_os(name).map(|value| (OsString::from(name), value)));
    command.envs(lasting).env("LC_ALL", "C").envs(run.environment.iter().copied());
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    command::die_with_parent(&mut command, process::Signal::TERM);
    Ok((reader, command.spawn()?))
    // The write ends of the pipe are closed with `command`.
}

/// Reads until the program has ended and nothing more is to be read, or until a signal comes.
fn listen(
    run: &StreamedCommand<'_>,
    mut output: io::PipeReader,
    child: &mut Child,
    listener: &mut dyn FnMut(OutputEvent<'_>),
) -> io::Result<CommandEnding> {
    let mut lines = LineAssembler::default();
    loop {
        if let Some(signal) = run.interrupts.and_then(InterruptSignals::pending) {
            return Ok(CommandEnding::Interrupted(signal));
        }
        if run.deadline.is_some_and(|deadline| monotonic_now() >= deadline) {
            return Ok(CommandEnding::TooLate);
        }
        // Check for the exit first, then read: output from before the exit is read after the check.
        let ended = child.try_wait()?;
        let silent = !lines.take(&mut output, listener)?;
        if let Some(status) = ended {
            lines.finish(listener);
            return Ok(CommandEnding::Status(status));
        }
        if silent {
            listener(OutputEvent::Nothing);
        }
        let mut items = Vec::with_capacity(2);
        items.extend((!lines.at_end).then(|| PollItem::new(&output, PollInterest::READ)));
        items.extend(run.interrupts.map(|interrupts| PollItem::new(interrupts, PollInterest::READ)));
        // With its outputs closed it is about to end.
        poll::wait(&mut items, Some(if lines.at_end { Duration::from_millis(5) } else { TICK }))?;
    }
}

/// Assembles lines from a pipe's contents.
#[derive(Debug, Default)]
struct LineAssembler {
    unfinished: Vec<u8>,
    /// True when no process has the other end of the pipe open.
    at_end: bool,
}

impl LineAssembler {
    /// Passes on the bytes that can be read now; returns true if there were any.
    fn take(&mut self, output: &mut impl Read, listener: &mut dyn FnMut(OutputEvent<'_>)) -> io::Result<bool> {
        let mut block = [0_u8; 16 << 10];
        let mut any = false;
        loop {
            match output.read(&mut block) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(any);
                }
                Ok(length) => {
                    any = true;
                    self.add(&block[..length], listener);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if poll::would_block(&error) => return Ok(any),
                Err(error) => return Err(error),
            }
        }
    }

    fn add(&mut self, bytes: &[u8], listener: &mut dyn FnMut(OutputEvent<'_>)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.unfinished.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.unfinished.len() >= MAX_LINE_BYTES {
                self.finish(listener);
            }
        }
    }

    fn finish(&mut self, listener: &mut dyn FnMut(OutputEvent<'_>)) {
        if !self.unfinished.is_empty() {
            listener(OutputEvent::Line(String::from_utf8_lossy(&self.unfinished).trim_end()));
            self.unfinished.clear();
        }
    }
}

/// Asks the program and all that it has started to end, and kills them when they do not.
fn end_group(child: &mut Child) {
    // The group was made for this child; it is waited for only here, so that the number is its own.
    let group = process::Pid::from_child(child);
    let signal = |signal| process::kill_process_group(group, signal);
    let _ = signal(process::Signal::TERM);
    // It is not reaped yet: another process may get a number that is free.
    if let Ok(ended) = ending(child) {
        let _ = poll::wait_for(&ended, PollInterest::READ, Some(TERMINATION_TIMEOUT));
    }
    let _ = signal(process::Signal::KILL);
    let _ = clock::retry(|| child.wait());
}

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use super::*;
    use crate::signals::SIGNAL_TESTS;

    fn run<'a>(arguments: &'a [&'a str]) -> StreamedCommand<'a> {
        let directory = Path::new("/usr");
        StreamedCommand {
            program: "sh",
            arguments,
            directory,
            environment: &[("A", "b c")],
            interrupts: None,
            deadline: None,
        }
    }

    fn lines_of(arguments: &[&str]) -> (Vec<String>, CommandEnding) {
        let mut lines = Vec::new();
        let ending = stream(&run(arguments), &mut |said| {
            if let OutputEvent::Line(line) = said {
                lines.push(line.to_owned());
            }
        });
        (lines, ending.expect("sh runs"))
    }

    #[test]
    fn lines_of_both_outputs_in_order_and_the_status() {
        let (lines, ending) = lines_of(&["-c", "pwd; echo $A >&2; echo $MAKEFLAGS; printf end; exit 3"]);
        assert_eq!(lines, ["/usr", "b c", "", "end"]);
        let CommandEnding::Status(status) = ending else { panic!("{ending:?}") };
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn long_outputs_come_whole() {
        let (lines, _) = lines_of(&["-c", "seq 1 200000"]);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (200_000, Some("200000")));
    }

    #[test]
    fn a_line_without_end_comes_in_pieces() {
        let mut lines = LineAssembler::default();
        let mut lengths = Vec::new();
        lines.add(&vec![b'x'; MAX_LINE_BYTES + 5], &mut |said| {
            if let OutputEvent::Line(line) = said {
                lengths.push(line.len());
            }
        });
        lines.finish(&mut |_| lengths.push(0));
        assert_eq!(lengths, [MAX_LINE_BYTES + 5], "one block of this size is one piece");
    }

    #[test]
    fn a_program_that_closes_its_outputs_is_waited_for() {
        let start = monotonic_now();
        let (_, ending) = lines_of(&["-c", "exec >&- 2>&-; sleep 0.3"]);
        assert!(matches!(ending, CommandEnding::Status(status) if status.success()));
        assert!(monotonic_now() - start >= Duration::from_millis(300));
    }

    #[test]
    fn a_signal_ends_the_program_and_its_children() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = InterruptSignals::install().expect("signals can be caught");
        let arguments = ["-c", "sleep 1000 & echo $!; wait"];
        let mut streamed = run(&arguments);
        streamed.interrupts = Some(&interrupts);
        let start = monotonic_now();
        let mut child = None;
        let ending = stream(&streamed, &mut |said| {
            if let OutputEvent::Line(line) = said {
                child = line.parse::<libc::pid_t>().ok();
                crate::signals::raise(libc::SIGINT);
            }
        });
        interrupts.rearm().expect("signals can be caught");
        assert_eq!(ending.expect("sh runs"), CommandEnding::Interrupted(Signal::Interrupt));
        assert!(monotonic_now() - start < TERMINATION_TIMEOUT, "it did not need to be killed");
        let state = format!("/proc/{}/stat", child.expect("it printed its number"));
        let state = || std::fs::read_to_string(&state).unwrap_or_default();
        let has_ended = || state().is_empty() || state().contains(") Z ");
        // It has the signal, and ends when it runs, on a busy host a while later.
        while !has_ended() && monotonic_now() - start < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert!(has_ended(), "{}", state());
    }

    #[test]
    fn the_deadline_ends_it() {
        let begin = monotonic_now();
        let late = StreamedCommand { deadline: Some(begin + Duration::from_millis(300)), ..run(&["-c", "sleep 60"]) };
        assert_eq!(stream(&late, &mut |_| {}).expect("it starts"), CommandEnding::TooLate);
        assert!(monotonic_now() - begin < Duration::from_secs(30));
    }

    #[test]
    fn a_missing_program_is_named() {
        let mut streamed = run(&["x"]);
        streamed.program = "no-such-program-here";
        let error = stream(&streamed, &mut |_| {}).expect_err("not there").to_string();
        assert!(error.ends_with("(the program is not installed, or not in $PATH)"), "{error}");
    }
}
