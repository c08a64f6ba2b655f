//! Running a program that takes long: its lines as they come, and an end when the user wants one.

use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::clock::{self, monotonic_now};
use crate::command::{self, running, set_nonblocking};
use crate::error::{Error, Result, check};
use crate::poll::{self, Interest, PollItem};
use crate::signals::{Interrupts, Signal};

/// A program to run, with nothing on its standard input.
#[derive(Clone, Copy, Debug)]
pub struct Streamed<'a> {
    /// Its name, which is looked for in `$PATH`, or its path.
    pub program: &'a str,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// Where it runs.
    pub directory: &'a Path,
    /// Its whole environment, besides [`LASTING`].
    pub environment: &'a [(&'a str, &'a str)],
    /// Signals that end it; `None` for none.
    pub interrupts: Option<&'a Interrupts>,
}

/// What a program takes over from this process's environment: where programs, files and proxies are, nothing that would
/// change what it does. Its messages are in English (`LC_ALL=C`).
pub const LASTING: [&str; 11] = [
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

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Status(ExitStatus),
    /// A signal came for this process, and the program was ended with all that it had started.
    Interrupted(Signal),
}

/// What a program says while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// A line of its standard output or error, without the line's end. Longer ones than 64 KiB come in pieces.
    Line(&'a str),
    /// Nothing for a while.
    Nothing,
}

/// How often the listener hears of a program that says nothing.
const TICK: Duration = Duration::from_millis(250);

/// How long a program has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

const LONGEST_LINE: usize = 64 << 10;

/// Runs a program to its end. Both of its outputs go to `listener`, in the order in which they were written. A program
/// that fails is no error here. When the calling thread ends, the program is killed.
pub fn stream(run: &Streamed<'_>, listener: &mut dyn FnMut(Said<'_>)) -> Result<Ending> {
    let failed =
        |cause| Error::system(running(run.program, run.arguments), cause).hint_on(libc::ENOENT, command::NOT_FOUND);
    let (output, mut child) = start(run).map_err(failed)?;
    let outcome = listen(run, output, &mut child, listener);
    if !matches!(outcome, Ok(Ending::Status(_))) {
        end_group(&mut child);
    }
    outcome.map_err(failed)
}

fn start(run: &Streamed<'_>) -> io::Result<(io::PipeReader, Child)> {
    let path = command::find(run.program, std::env::var_os("PATH"))?;
    let (reader, writer) = io::pipe()?;
    set_nonblocking(&reader)?;
    let mut command = Command::new(path);
    command.arg0(run.program).args(run.arguments).current_dir(run.directory).process_group(0).env_clear();
    let lasting = LASTING.iter().filter_map(|name| std::env::var_os(name).map(|value| (OsString::from(name), value)));
    command.envs(lasting).env("LC_ALL", "C").envs(run.environment.iter().copied());
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    // SAFETY: between fork and exec the closure makes one system call, which takes numbers.
    unsafe { command.pre_exec(|| check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM)).map(drop)) };
    Ok((reader, command.spawn()?))
    // The write ends of the pipe are closed with `command`.
}

/// Reads until the program has ended and nothing more is to be read, or until a signal comes.
fn listen(
    run: &Streamed<'_>,
    mut output: io::PipeReader,
    child: &mut Child,
    listener: &mut dyn FnMut(Said<'_>),
) -> io::Result<Ending> {
    let mut lines = Lines::default();
    loop {
        if let Some(signal) = run.interrupts.and_then(Interrupts::pending) {
            return Ok(Ending::Interrupted(signal));
        }
        // First the question, then the reading: what was written before the end is read after it.
        let ended = child.try_wait()?;
        let silent = !lines.take(&mut output, listener)?;
        if let Some(status) = ended {
            lines.finish(listener);
            return Ok(Ending::Status(status));
        }
        if silent {
            listener(Said::Nothing);
        }
        let mut items = Vec::with_capacity(2);
        items.extend((!lines.at_end).then(|| PollItem::new(&output, Interest::READ)));
        items.extend(run.interrupts.map(|interrupts| PollItem::new(interrupts, Interest::READ)));
        // With its outputs closed it is about to end.
        poll::wait(&mut items, Some(if lines.at_end { Duration::from_millis(5) } else { TICK }))?;
    }
}

/// Puts lines together from what a pipe has.
#[derive(Debug, Default)]
struct Lines {
    unfinished: Vec<u8>,
    /// Nobody has the other end of the pipe any more.
    at_end: bool,
}

impl Lines {
    /// Passes on what can be read now; whether there was anything.
    fn take(&mut self, output: &mut impl Read, listener: &mut dyn FnMut(Said<'_>)) -> io::Result<bool> {
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

    fn add(&mut self, bytes: &[u8], listener: &mut dyn FnMut(Said<'_>)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.unfinished.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.unfinished.len() >= LONGEST_LINE {
                self.finish(listener);
            }
        }
    }

    fn finish(&mut self, listener: &mut dyn FnMut(Said<'_>)) {
        if !self.unfinished.is_empty() {
            listener(Said::Line(String::from_utf8_lossy(&self.unfinished).trim_end()));
            self.unfinished.clear();
        }
    }
}

/// Asks the program and all that it has started to end, and kills them when they do not.
fn end_group(child: &mut Child) {
    let Ok(group @ 2..) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: takes numbers. The group was made for this child; it is waited for only here, so that the number is its own.
    let signal = |number| unsafe { libc::kill(-group, number) };
    let deadline = monotonic_now() + GRACE;
    signal(libc::SIGTERM);
    while matches!(child.try_wait(), Ok(None)) && monotonic_now() < deadline {
        let _ = poll::wait(&mut [], Some(Duration::from_millis(20)));
    }
    // Others of the group may still be there; while one is, the group's number is not given to anybody else.
    signal(libc::SIGKILL);
    let _ = clock::retry(|| child.wait());
}

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use super::*;
    use crate::signals::SIGNAL_TESTS;

    fn run<'a>(arguments: &'a [&'a str]) -> Streamed<'a> {
        let directory = Path::new("/usr");
        Streamed { program: "sh", arguments, directory, environment: &[("A", "b c")], interrupts: None }
    }

    fn lines_of(arguments: &[&str]) -> (Vec<String>, Ending) {
        let mut lines = Vec::new();
        let ending = stream(&run(arguments), &mut |said| {
            if let Said::Line(line) = said {
                lines.push(line.to_owned());
            }
        });
        (lines, ending.expect("sh runs"))
    }

    #[test]
    fn lines_of_both_outputs_in_order_and_the_status() {
        let (lines, ending) = lines_of(&["-c", "pwd; echo $A >&2; echo $MAKEFLAGS; printf end; exit 3"]);
        assert_eq!(lines, ["/usr", "b c", "", "end"]);
        let Ending::Status(status) = ending else { panic!("{ending:?}") };
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn long_outputs_come_whole() {
        let (lines, _) = lines_of(&["-c", "seq 1 200000"]);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (200_000, Some("200000")));
    }

    #[test]
    fn a_line_without_end_comes_in_pieces() {
        let mut lines = Lines::default();
        let mut lengths = Vec::new();
        lines.add(&vec![b'x'; LONGEST_LINE + 5], &mut |said| {
            if let Said::Line(line) = said {
                lengths.push(line.len());
            }
        });
        lines.finish(&mut |_| lengths.push(0));
        assert_eq!(lengths, [LONGEST_LINE + 5], "one block of this size is one piece");
    }

    #[test]
    fn a_program_that_closes_its_outputs_is_waited_for() {
        let start = monotonic_now();
        let (_, ending) = lines_of(&["-c", "exec >&- 2>&-; sleep 0.3"]);
        assert!(matches!(ending, Ending::Status(status) if status.success()));
        assert!(monotonic_now() - start >= Duration::from_millis(300));
    }

    #[test]
    fn a_signal_ends_the_program_and_its_children() {
        let _alone = SIGNAL_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = Interrupts::install().expect("signals can be caught");
        let arguments = ["-c", "sleep 1000 & echo $!; wait"];
        let mut streamed = run(&arguments);
        streamed.interrupts = Some(&interrupts);
        let start = monotonic_now();
        let mut child = None;
        let ending = stream(&streamed, &mut |said| {
            if let Said::Line(line) = said {
                child = line.parse::<libc::pid_t>().ok();
                // SAFETY: raise only sends a signal to this thread, and a handler for it is installed.
                unsafe { libc::raise(libc::SIGINT) };
            }
        });
        interrupts.rearm().expect("signals can be caught");
        assert_eq!(ending.expect("sh runs"), Ending::Interrupted(Signal::Interrupt));
        assert!(monotonic_now() - start < GRACE, "it did not need to be killed");
        let state = std::fs::read_to_string(format!("/proc/{}/stat", child.expect("it said so"))).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }

    #[test]
    fn a_missing_program_says_so() {
        let mut streamed = run(&["x"]);
        streamed.program = "no-such-program-here";
        let error = stream(&streamed, &mut |_| {}).expect_err("not there").to_string();
        assert!(error.ends_with("(the program is not installed, or not in $PATH)"), "{error}");
    }
}
