//! Terminal capabilities, and the two output streams: data on standard output, everything else on standard error.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_report::throughput_text::{TerminalWidth, TextStyle};
use linerate_sys::terminal;

use crate::progress;

/// Exit code after a failed write; 0 without one.
static FAILURE: AtomicU8 = AtomicU8::new(0);

/// Exit code of linerate's own commands after a failed write ([`crate::exit::ExitStatus::Unable`]).
const FAILURE_CODE: u8 = 2;

/// Writes data.
pub(crate) fn data(text: &str) {
    relay_data(text.as_bytes());
}

/// Reports the first failed write to standard output, from which on the process ends with an error. A reader that closed
/// the pipe (`| head`) is no error. Returns true for a successful write.
pub(crate) fn check(written: io::Result<()>) -> bool {
    record_failure(FAILURE_CODE, written, |cause| error(&format!("writing to standard output: {cause}"), None))
}

/// Same as [`check`], with this exit code and report.
pub(crate) fn record_failure(code: u8, written: io::Result<()>, report: impl FnOnce(&str)) -> bool {
    match written {
        Ok(()) => return true,
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => {}
        Err(cause) => {
            if FAILURE.swap(code, Ordering::Relaxed) == 0 {
                report(&linerate_sys::describe_os_error(&cause));
            }
        }
    }
    false
}

/// Exit code of the process: a result that could not be written is no success, complete or with a missed threshold.
pub(crate) fn exit_code(exit: ExitCode) -> ExitCode {
    match FAILURE.load(Ordering::Relaxed) {
        0 => exit,
        code if exit == ExitCode::SUCCESS || exit == ExitCode::FAILURE => ExitCode::from(code),
        _ => exit,
    }
}

/// Text that is held back while a picture covers the terminal.
enum HeldText {
    Data(Vec<u8>),
    Note(String),
}

/// `None` unless text is held back.
static HELD: Mutex<Option<Vec<HeldText>>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Vec<HeldText>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds back data and notes from here on.
pub(crate) fn hold() {
    held().get_or_insert_default();
}

/// Writes what was held back, in order.
pub(crate) fn release() {
    // Writing looks at it again.
    let texts = held().take();
    for text in texts.into_iter().flatten() {
        match text {
            HeldText::Data(bytes) => drop(relay_data(&bytes)),
            HeldText::Note(line) => note(&line),
        }
    }
}

/// Writes a line to standard error.
#[expect(clippy::print_stderr, reason = "the only place that prints there")]
pub(crate) fn note(line: &str) {
    match held().as_mut() {
        Some(held) => held.push(HeldText::Note(line.to_owned())),
        None => eprintln!("{line}"),
    }
}

/// Writes an error: the operation and its object, with the remedy if known, else iperf3's text.
pub(crate) fn error(text: &str, advice: Option<&str>) {
    let text = advice.unwrap_or(text);
    note(&format!("linerate: {text}"));
    progress::publish(ProgressEvent::with_text(EventKind::Error, text));
}

/// Style of data on standard output.
pub(crate) fn data_style() -> TextStyle {
    style(terminal::is_terminal(&io::stdout()) || is_relayed("out"))
}

/// Style of progress on standard error; `None` without a terminal.
pub(crate) fn progress_style() -> Option<TextStyle> {
    let shown = (terminal::is_terminal(&io::stderr()) || is_relayed("err")) && !is_dumb();
    shown.then(|| style(true))
}

/// Writes a prompt.
pub(crate) fn ask(question: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{question}").and_then(|()| stderr.flush());
}

/// Replaces the current line of standard error.
pub(crate) fn progress(line: &str) {
    if held().is_some() {
        return;
    }
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

/// Environment variable in which a linerate that relays a command's output names the streams that end at a terminal
/// (`out`, `err`). The terminal's width is in `$COLUMNS`, as usual.
const TERMINAL_VARIABLE: &str = "LINERATE_TERMINAL";

/// True when another linerate relays this one's output: that has the terminal.
pub(crate) fn has_relay() -> bool {
    std::env::var_os(TERMINAL_VARIABLE).is_some()
}

fn is_relayed(stream: &str) -> bool {
    std::env::var(TERMINAL_VARIABLE).is_ok_and(|streams| streams.split(',').any(|name| name == stream))
}

/// Environment that makes a command's output look the same through a pipe.
pub(crate) fn relayed_environment() -> Vec<(String, String)> {
    let streams: Vec<&str> =
        [("out", terminal::is_terminal(&io::stdout())), ("err", terminal::is_terminal(&io::stderr()))]
            .into_iter()
            .filter_map(|(name, is_terminal)| is_terminal.then_some(name))
            .collect();
    vec![(TERMINAL_VARIABLE.to_owned(), streams.join(",")), ("COLUMNS".to_owned(), terminal::width().to_string())]
}

/// Writes to standard error immediately, for a relayed command.
pub(crate) fn relay_error(bytes: &[u8]) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
}

/// Writes to standard output immediately; returns false when that failed, or its reader is gone.
pub(crate) fn relay_data(bytes: &[u8]) -> bool {
    if let Some(held) = held().as_mut() {
        held.push(HeldText::Data(bytes.to_vec()));
        return true;
    }
    let mut stdout = io::stdout().lock();
    check(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

fn style(terminal: bool) -> TextStyle {
    let width = u16::try_from(terminal::width()).unwrap_or(u16::MAX);
    TextStyle {
        width: if terminal { TerminalWidth::new(width) } else { TerminalWidth::DEFAULT },
        colour: terminal && !is_dumb() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        unicode: !is_dumb() && has_utf8_locale(),
    }
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb")
}

/// True for a UTF-8 locale, in POSIX order of the variables; true without any.
fn has_utf8_locale() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
