//! The terminal: what it can show, and the two streams. Data goes to the standard output, everything else to the
//! standard error output.

use std::io::{self, Write};

use linerate_report::throughput_text::{Columns, Style};
use linerate_sys::terminal;

/// Writes data; a reader that has gone away (`| head`) is no error.
pub(crate) fn data(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Writes a line for the person at the terminal.
#[expect(clippy::print_stderr, reason = "the one place that does")]
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// Writes an error: what was tried, on what, and the way out where it is known, else iperf3's text for it.
pub(crate) fn error(text: &str, advice: Option<&str>) {
    note(&format!("linerate: {}", advice.unwrap_or(text)));
}

/// How data is to look on the standard output.
pub(crate) fn data_style() -> Style {
    style(terminal::is_terminal(&io::stdout()) || is_relayed("out"))
}

/// How progress is to look on the standard error output; `None` when nobody is there to see it.
pub(crate) fn progress_style() -> Option<Style> {
    let shown = (terminal::is_terminal(&io::stderr()) || is_relayed("err")) && !is_dumb();
    shown.then(|| style(true))
}

/// Writes a question, behind which the answer is typed.
pub(crate) fn ask(question: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{question}").and_then(|()| stderr.flush());
}

/// Replaces the line that the cursor is in.
pub(crate) fn progress(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

/// Variable by which a linerate that relays a command's output tells it which of its streams end at a terminal (`out`,
/// `err`). The terminal's width comes in `$COLUMNS`, as usual.
const RELAYED: &str = "LINERATE_TERMINAL";

fn is_relayed(stream: &str) -> bool {
    std::env::var(RELAYED).is_ok_and(|streams| streams.split(',').any(|name| name == stream))
}

/// The environment that makes a command look as it would here, when its output comes through a pipe.
pub(crate) fn relayed_environment() -> Vec<(String, String)> {
    let streams: Vec<&str> =
        [("out", terminal::is_terminal(&io::stdout())), ("err", terminal::is_terminal(&io::stderr()))]
            .into_iter()
            .filter_map(|(name, is_terminal)| is_terminal.then_some(name))
            .collect();
    vec![(RELAYED.to_owned(), streams.join(",")), ("COLUMNS".to_owned(), terminal::width().to_string())]
}

/// Writes to the standard error output as it comes: what a relayed command wrote to its own.
pub(crate) fn relay_error(bytes: &[u8]) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
}

/// Writes to the standard output as it comes; whether somebody still reads it.
pub(crate) fn relay_data(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).is_ok()
}

fn style(terminal: bool) -> Style {
    let width = u16::try_from(terminal::width()).unwrap_or(u16::MAX);
    Style {
        width: if terminal { Columns::new(width) } else { Columns::USUAL },
        colour: terminal && !is_dumb() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        unicode: !is_dumb() && speaks_utf8(),
    }
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb")
}

/// By the locale, in the order in which POSIX looks at it; without any, today's default.
fn speaks_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
