//! `--json-stream`: one line for each event.

use std::io::{self, Write};

use linerate_model::event::TestEvent;
use linerate_model::sample::IntervalReport;

use super::value::{OrderedObject, OrderedValue};
use super::{Iperf3Document, interval};

/// Writes events as they come, each on its own line: `{"event":"interval","data":{…}}`.
///
/// The events and their order are iperf3's: `error`, `server_output_text` or `server_output_json`, and `end` are the last
/// ones. linerate's own figures are a member of the data of `end`, as consumers take events by their position, too.
/// Write errors are the only errors.
#[derive(Clone, Debug)]
pub struct Iperf3EventStream {
    document: Iperf3Document,
    full_output: bool,
}

impl Iperf3EventStream {
    /// A stream that has written nothing yet. With `full_output` the whole document follows after the last event
    /// (`--json-stream-full-output`). `document` is a new one, with its labels.
    #[must_use]
    pub fn new(document: Iperf3Document, full_output: bool) -> Self {
        Self { document, full_output }
    }

    /// Adds the next event and writes its line, if it has one.
    pub fn event(&mut self, event: &TestEvent, out: &mut dyn Write) -> io::Result<()> {
        self.document.event(event);
        match event {
            TestEvent::Started(_) => write_line(out, "start", self.document.start_object()),
            TestEvent::Interval(report) => self.write_interval(report, out),
            _ => Ok(()),
        }
    }

    /// Writes the line of an interval that the document does not hold.
    pub fn interval_without_retention(&mut self, report: &IntervalReport, out: &mut dyn Write) -> io::Result<()> {
        self.document.leave_interval_out();
        self.write_interval(report, out)
    }

    fn write_interval(&self, report: &IntervalReport, out: &mut dyn Write) -> io::Result<()> {
        match &self.document.context {
            Some(context) if context.shows(report) => write_line(out, "interval", interval::object(context, report)),
            _ => Ok(()),
        }
    }

    /// The document so far.
    #[must_use]
    pub fn document(&self) -> &Iperf3Document {
        &self.document
    }

    /// Sets the text under `error` ([`Iperf3Document::error`]).
    pub fn error(&mut self, text: &str) {
        self.document.error(text);
    }

    /// Writes the events at the end.
    pub fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        let document = self.document;
        if let Some(error) = document.error_text() {
            write_line(out, "error", error)?;
        }
        if let Some((key, output)) = document.server_output() {
            write_line(out, key, output)?;
        }
        write_line(out, "end", document.end_object().with("linerate", document.extra()))?;
        if self.full_output { out.write_all(document.finish().as_bytes()) } else { Ok(()) }
    }
}

fn write_line(out: &mut dyn Write, event: &str, data: impl Into<OrderedValue>) -> io::Result<()> {
    writeln!(out, "{}", OrderedValue::from(OrderedObject::new().with("event", event).with("data", data)).to_compact())
}
