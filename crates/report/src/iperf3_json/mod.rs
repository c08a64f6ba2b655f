//! iperf3's JSON output (`-J`, `--json-stream`): profile 3.21, key by key and digit by digit.
//!
//! iperf3's keys hold exactly iperf3's values, its oddities included: parsers depend on them. Values that are unknown
//! to this end are 0 in these keys, as in iperf3. Everything else is in one more object at the end, `"linerate"`, where
//! unknown is `null`.

mod end;
mod extra;
mod interval;
mod layout;
mod start;
mod stream;
mod value;

use linerate_model::event::{ConnectionEstablished, TestEvent, TestStart};
use linerate_model::report::{ServerOutput, TestReport, TestTermination};
use linerate_model::sample::IntervalReport;
use linerate_model::stream::EndpointRole;

use crate::figures::TestContext;

pub use stream::Iperf3EventStream;
pub use value::{OrderedObject, OrderedValue};

/// One test's document, built from its events. A test that failed has one, too.
#[derive(Clone, Debug)]
pub struct Iperf3Document {
    version: String,
    system_information: String,
    title: Option<String>,
    extra_data: Option<String>,
    connected: Option<ConnectionEstablished>,
    start: Option<TestStart>,
    context: Option<TestContext>,
    intervals: Vec<IntervalReport>,
    far_intervals: Vec<IntervalReport>,
    intervals_left_out: u64,
    report: Option<TestReport>,
    error: Option<String>,
}

impl Iperf3Document {
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
            intervals_left_out: 0,
            report: None,
            error: None,
        }
    }

    /// Title (`-T`) and free text (`--extra-data`), which a client's document has even when the test never starts.
    /// The test's own parameters take precedence.
    pub fn labels(&mut self, title: Option<&str>, extra_data: Option<&str>) {
        self.title = title.map(str::to_owned);
        self.extra_data = extra_data.map(str::to_owned);
    }

    /// Adds the next event.
    pub fn event(&mut self, event: &TestEvent) {
        match event {
            TestEvent::Connected(connected) => self.connected = Some(connected.clone()),
            TestEvent::Started(start) => {
                self.context = Some(TestContext::of(start));
                self.start = Some((**start).clone());
            }
            TestEvent::Interval(interval) => self.intervals.push(interval.clone()),
            TestEvent::FarInterval(interval) => self.far_intervals.push(interval.clone()),
            TestEvent::Warning(_) | TestEvent::Debug(_) => {}
            TestEvent::Finished(report) => self.report = Some((**report).clone()),
        }
    }

    /// Counts an interval that the document does not hold: a server has no memory for any number of them.
    pub fn leave_interval_out(&mut self) {
        self.intervals_left_out += 1;
    }

    /// Sets the text under `error`; by default it is the report's reason for an early end.
    pub fn error(&mut self, text: &str) {
        self.error = Some(text.to_owned());
    }

    /// The document on several lines, with a line feed at its end.
    #[must_use]
    pub fn finish(self) -> String {
        let mut text = OrderedValue::from(self.tree()).to_pretty();
        text.push('\n');
        text
    }

    /// The document on one line, with a line feed at its end.
    #[must_use]
    pub fn finish_line(self) -> String {
        let mut text = OrderedValue::from(self.tree()).to_compact();
        text.push('\n');
        text
    }

    /// The document as a tree.
    fn tree(&self) -> OrderedObject {
        let mut top = OrderedObject::new()
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
        top.with("linerate", self.extra())
    }

    fn extra(&self) -> OrderedValue {
        extra::value(&self.intervals, &self.far_intervals, self.intervals_left_out, self.report.as_ref())
    }

    fn start_object(&self) -> OrderedObject {
        start::object(&self.version, &self.system_information, self.connected.as_ref(), self.start.as_ref())
    }

    fn interval_objects(&self) -> Vec<OrderedValue> {
        let Some(context) = &self.context else { return Vec::new() };
        let shown = self.intervals.iter().filter(|interval| context.shows(interval));
        shown.map(|interval| interval::object(context, interval).into()).collect()
    }

    fn end_object(&self) -> OrderedObject {
        match (&self.context, &self.report) {
            (Some(context), Some(report)) => end::object(context, report),
            _ => OrderedObject::new(),
        }
    }

    fn error_text(&self) -> Option<String> {
        if self.error.is_some() {
            return self.error.clone();
        }
        let side = self.connected.as_ref().map_or(EndpointRole::Client, |connected| connected.side);
        let (this, other) = if side == EndpointRole::Client { ("client", "server") } else { ("server", "client") };
        match &self.report.as_ref()?.termination {
            TestTermination::Complete => None,
            TestTermination::Interrupted { signal } => {
                let signal = signal.as_deref().unwrap_or("a signal");
                Some(format!("interrupt - the {this} has terminated by signal {signal}"))
            }
            TestTermination::PeerTerminated => Some(format!("the {other} has terminated")),
            TestTermination::Failed { message } => Some(message.clone()),
        }
    }

    /// A server's document is inserted as a tree; output that is not JSON is inserted as text.
    fn server_output(&self) -> Option<(&'static str, OrderedValue)> {
        Some(match self.report.as_ref()?.server_output.as_ref()? {
            ServerOutput::Text(text) => ("server_output_text", text.as_str().into()),
            ServerOutput::Json(text) => match OrderedValue::parse(text) {
                Ok(value) => ("server_output_json", value),
                Err(_) => ("server_output_text", text.as_str().into()),
            },
        })
    }
}
