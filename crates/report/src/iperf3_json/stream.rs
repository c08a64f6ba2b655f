//! `--json-stream`: one line for each event.

use std::io::{self, Write};

use linerate_model::event::Event;

use super::value::{Object, Value};
use super::{Document, extra, interval};

/// Writes events as they come, each on its own line: `{"event":"interval","data":{…}}`.
///
/// The order at the end is `linerate`, `error`, `server_output_text` or `server_output_json`, `end`; iperf3 has no
/// `linerate`, and its consumers ignore events that they do not know. Write errors are the only errors.
#[derive(Clone, Debug)]
pub struct Stream {
    document: Document,
    full_output: bool,
}

impl Stream {
    /// A stream that has written nothing yet. With `full_output` the whole document follows after the last event
    /// (`--json-stream-full-output`). `document` is a new one, with its labels.
    #[must_use]
    pub fn new(document: Document, full_output: bool) -> Self {
        Self { document, full_output }
    }

    /// Takes in the next event and writes its line, if it has one.
    pub fn event(&mut self, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        self.document.event(event);
        match event {
            Event::Started(_) => write_line(out, "start", self.document.start_object()),
            Event::Interval(report) => match &self.document.context {
                Some(context) if context.shows(report) => {
                    write_line(out, "interval", interval::object(context, report))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The whole document so far.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The text under `error` ([`Document::error`]).
    pub fn error(&mut self, text: &str) {
        self.document.error(text);
    }

    /// Writes what comes at the end.
    pub fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        let document = self.document;
        let extra = extra::value(&document.intervals, &document.far_intervals, document.report.as_ref());
        write_line(out, "linerate", extra)?;
        if let Some(error) = document.error_text() {
            write_line(out, "error", error)?;
        }
        if let Some((key, output)) = document.server_output() {
            write_line(out, key, output)?;
        }
        write_line(out, "end", document.end_object())?;
        if self.full_output { out.write_all(document.finish().as_bytes()) } else { Ok(()) }
    }
}

fn write_line(out: &mut dyn Write, event: &str, data: impl Into<Value>) -> io::Result<()> {
    writeln!(out, "{}", Value::from(Object::new().with("event", event).with("data", data)).to_compact())
}
