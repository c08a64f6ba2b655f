//! Destination of iperf3's output: standard output or a log file, with time and title before each line.

use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_engine::Error;
use linerate_sys::clock;
use linerate_wire::error::ErrorCode;

use super::args::command::CommonArguments;
use crate::console;

/// Exit code after a failed write; iperf3 has only two codes.
const FAILURE_CODE: u8 = 1;

/// Prefix of every line.
#[derive(Clone, Debug, Default)]
struct LinePrefix {
    /// Format of `--timestamps` (`strftime`).
    timestamps: Option<String>,
    /// Title (`-T`), already escaped.
    title: Option<String>,
}

impl LinePrefix {
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(layout) = &self.timestamps {
            text.push_str(&clock::format_local(clock::realtime_now(), layout));
        }
        if let Some(title) = &self.title {
            text.push_str(title);
            text.push_str(":  ");
        }
        text
    }
}

/// Output of one process, shared by its sessions.
#[derive(Clone)]
pub(super) struct Iperf3Output {
    prefix: LinePrefix,
    flush: bool,
    log: Option<Arc<Mutex<File>>>,
}

impl Iperf3Output {
    /// # Errors
    ///
    /// `unable to open log file`, with the reason.
    pub(super) fn new(common: &CommonArguments, title: Option<&str>) -> Result<Self, Error> {
        let log = match &common.log_file {
            None => None,
            Some(path) => {
                let file = File::options().append(true).create(true).open(path);
                Some(Arc::new(Mutex::new(file.map_err(|cause| Error::io(ErrorCode::LOG_FILE, &cause))?)))
            }
        };
        let title = title.map(|title| linerate_report::escape::line(title).into_owned());
        let prefix = LinePrefix { timestamps: common.timestamps.clone(), title };
        Ok(Self { prefix, flush: common.force_flush, log })
    }

    /// Writes whole lines; a failed write ends neither a test nor a server, but the exit code reports it.
    pub(super) fn lines(&self, text: &str) {
        self.marked_lines("", text);
    }

    /// Writes whole lines, each with `mark` before it.
    pub(super) fn marked_lines(&self, mark: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let prefix = self.prefix.text();
        let mut all = String::with_capacity(text.len() + 64);
        for line in text.split_inclusive('\n') {
            all.push_str(&prefix);
            all.push_str(mark);
            all.push_str(line);
        }
        self.raw(&all);
    }

    /// Writes a document unchanged.
    pub(super) fn raw(&self, text: &str) {
        if let Some(log) = &self.log {
            let written = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes());
            return check("the log file", written);
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        check("standard output", if self.flush { written.and_then(|()| stdout.flush()) } else { written });
    }

    /// Writes a message about the run to standard error, or to the log file.
    pub(super) fn message(&self, text: &str) {
        let line = match self.prefix.timestamps {
            Some(_) => format!("{}{text}", LinePrefix { title: None, ..self.prefix.clone() }.text()),
            None => text.to_owned(),
        };
        if self.log.is_some() { self.raw(&format!("{line}\n")) } else { print_error_line(&line) }
    }
}

/// Writes one line to standard error.
#[expect(clippy::print_stderr, reason = "the only place of the iperf3 front end that prints there")]
pub(super) fn print_error_line(line: &str) {
    eprintln!("{line}");
}

/// Writes text to standard output; returns success.
pub(super) fn print(text: &str) -> ExitCode {
    let mut stdout = io::stdout().lock();
    check("standard output", stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
    ExitCode::SUCCESS
}

/// Reports the first failed write.
fn check(destination: &str, written: io::Result<()>) {
    console::record_failure(FAILURE_CODE, written, |cause| {
        print_error_line(&format!("iperf3: error - unable to write to {destination}: {cause}"));
    });
}
