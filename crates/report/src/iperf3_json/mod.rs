//! iperf3's JSON output (`-J`, `--json-stream`): profile 3.21, key by key and digit by digit.
//!
//! iperf3's keys hold exactly what iperf3 puts there, its oddities included: parsers depend on them. What this end does
//! not know is 0 in these keys, as iperf3 has it. Everything else stands in one more object at the end, `"linerate"`,
//! where unknown is `null`.

mod end;
mod extra;
mod interval;
mod start;
mod stream;
mod value;

use linerate_model::event::{Connected, Event, TestStart};
use linerate_model::report::{ServerOutput, Termination, TestReport};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::Side;

use crate::figures::Context;

pub use stream::Stream;
pub use value::{Object, Value};

/// One test's document, put together from its events. A test that failed has one too.
#[derive(Clone, Debug)]
pub struct Document {
    version: String,
    system_information: String,
    title: Option<String>,
    extra_data: Option<String>,
    connected: Option<Connected>,
    start: Option<TestStart>,
    context: Option<Context>,
    intervals: Vec<IntervalReport>,
    far_intervals: Vec<IntervalReport>,
    report: Option<TestReport>,
    error: Option<String>,
}

impl Document {
    /// A document without a test. `version` is the first line of iperf3's `-v`, `system_information` its second.
    #[must_use]
    pub fn new(version: &str, system_information: &str) -> Self {
        Self {
            version: version.to_owned(),
            system_information: system_information.to_owned(),
            title: None,
            extra_data: None,
            connected: None,
            start: None,
            context: None,
            intervals: Vec::new(),
            far_intervals: Vec::new(),
            report: None,
            error: None,
        }
    }

    /// Title (`-T`) and free text (`--extra-data`), which a client's document has even when the test never starts.
    /// What the test's own parameters say comes first.
    pub fn labels(&mut self, title: Option<&str>, extra_data: Option<&str>) {
        self.title = title.map(str::to_owned);
        self.extra_data = extra_data.map(str::to_owned);
    }

    /// Takes in the next event.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Connected(connected) => self.connected = Some(connected.clone()),
            Event::Started(start) => {
                self.context = Some(Context::of(start));
                self.start = Some((**start).clone());
            }
            Event::Interval(interval) => self.intervals.push(interval.clone()),
            Event::FarInterval(interval) => self.far_intervals.push(interval.clone()),
            Event::Warning(_) | Event::Debug(_) => {}
            Event::Finished(report) => self.report = Some((**report).clone()),
        }
    }

    /// The text under `error`. Without this call it is what the report says of a test that was cut short.
    pub fn error(&mut self, text: &str) {
        self.error = Some(text.to_owned());
    }

    /// The document on several lines, with a line feed at its end.
    #[must_use]
    pub fn finish(self) -> String {
        let mut text = Value::from(self.tree()).to_pretty();
        text.push('\n');
        text
    }

    /// The document on one line, with a line feed at its end.
    #[must_use]
    pub fn finish_line(self) -> String {
        let mut text = Value::from(self.tree()).to_compact();
        text.push('\n');
        text
    }

    /// The document as a tree.
    fn tree(&self) -> Object {
        let mut top = Object::new()
            .with("start", self.start_object())
            .with("intervals", self.interval_objects())
            .with("end", self.end_object());
        if let Some(error) = self.error_text() {
            top.push("error", error);
        }
        let parameters = self.start.as_ref().map(|start| &start.parameters);
        let title = parameters.and_then(|parameters| parameters.title.as_ref()).or(self.title.as_ref());
        let extra_data = parameters.and_then(|parameters| parameters.extra_data.as_ref()).or(self.extra_data.as_ref());
        for (key, text) in [("title", title), ("extra_data", extra_data)] {
            if let Some(text) = text {
                top.push(key, text.as_str());
            }
        }
        if let Some((key, output)) = self.server_output() {
            top.push(key, output);
        }
        top.with("linerate", extra::value(&self.intervals, &self.far_intervals, self.report.as_ref()))
    }

    fn start_object(&self) -> Object {
        start::object(&self.version, &self.system_information, self.connected.as_ref(), self.start.as_ref())
    }

    fn interval_objects(&self) -> Vec<Value> {
        let Some(context) = &self.context else { return Vec::new() };
        let shown = self.intervals.iter().filter(|interval| context.shows(interval));
        shown.map(|interval| interval::object(context, interval).into()).collect()
    }

    fn end_object(&self) -> Object {
        match (&self.context, &self.report) {
            (Some(context), Some(report)) => end::object(context, report),
            _ => Object::new(),
        }
    }

    fn error_text(&self) -> Option<String> {
        if self.error.is_some() {
            return self.error.clone();
        }
        let side = self.connected.as_ref().map_or(Side::Client, |connected| connected.side);
        let (this, other) = if side == Side::Client { ("client", "server") } else { ("server", "client") };
        match &self.report.as_ref()?.termination {
            Termination::Complete => None,
            Termination::Interrupted { signal } => {
                Some(format!("interrupt - the {this} has terminated by signal {signal}"))
            }
            Termination::PeerTerminated => Some(format!("the {other} has terminated")),
            Termination::Failed { message } => Some(message.clone()),
        }
    }

    /// A server's document is put in as a tree; what is no JSON after all is shown as text.
    fn server_output(&self) -> Option<(&'static str, Value)> {
        Some(match self.report.as_ref()?.server_output.as_ref()? {
            ServerOutput::Text(text) => ("server_output_text", text.as_str().into()),
            ServerOutput::Json(text) => match Value::parse(text) {
                Ok(value) => ("server_output_json", value),
                Err(_) => ("server_output_text", text.as_str().into()),
            },
        })
    }
}
