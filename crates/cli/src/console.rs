//! Terminal capabilities, and the two output streams: data on standard output, everything else on standard error.

use std::io::{self, Write};

use linerate_report::throughput_text::{TerminalWidth, TextStyle};
use linerate_sys::terminal;

/// Writes data; a reader that closed the pipe (`| head`) is no error.
pub(crate) fn data(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Writes a line to standard error.
#[expect(clippy::print_stderr, reason = "the only place that prints there")]
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// Writes an error: the operation and its object, with the remedy if known, else iperf3's text.
pub(crate) fn error(text: &str, advice: Option<&str>) {
    note(&format!("linerate: {}", advice.unwrap_or(text)));
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
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

/// Environment variable in which a linerate that relays a command's output names the streams that end at a terminal
/// (`out`, `err`). The terminal's width is in `$COLUMNS`, as usual.
const TERMINAL_VARIABLE: &str = "LINERATE_TERMINAL";

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

/// Writes to standard output immediately; returns false when its reader is gone.
pub(crate) fn relay_data(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).is_ok()
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
