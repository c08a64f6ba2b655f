//! Measures what a diagnosis needs: the path without load, then one transfer as both ends see it.
//!
//! Nothing is concluded here: the [`Observation`] goes to the rules of `linerate-rules`.

use core::net::IpAddr;
use core::time::Duration;

use linerate_model::diagnosis::Observation;
use linerate_model::event::{Event, TestStart};
use linerate_model::parameters::TestParameters;
use linerate_model::report::TestReport;
use linerate_model::sample::IntervalReport;
use linerate_model::schema::path::PathDocument;
use linerate_sys::signals::Interrupts;

use crate::client::{self, Acquaintance, ClientOptions};
use crate::course;
use crate::error::Error;
use crate::path::{self, PathEvent, PathOptions, PathOutcome};

/// Both ends read their sockets this often; the kernel's stop-watches tick in up to 10 ms.
pub const READING: Duration = Duration::from_millis(250);

/// The path has this long to become quiet between its measurement and the transfer: queues empty, policers save up.
const PAUSE: Duration = Duration::from_secs(1);

/// Where knowledge of the path comes from.
#[derive(Clone, Debug)]
pub enum PathSource {
    /// It is measured first.
    Measure(PathOptions),
    /// It was measured a short time ago.
    Known(Box<PathDocument>),
    /// It stays unknown, and the transfer is all there is.
    Unknown,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct DiagnoseOptions {
    /// The path.
    pub path: PathSource,
    /// The transfer. Its reading interval and details are set by [`run`].
    pub transfer: ClientOptions,
}

/// What happens meanwhile.
#[derive(Debug)]
pub enum DiagnoseEvent<'a> {
    /// The path is measured.
    Path(&'a PathEvent),
    /// The transfer runs.
    Transfer(&'a Event),
}

/// What came out.
#[derive(Debug)]
pub struct DiagnoseOutcome {
    /// What was seen; `None` when no transfer came about.
    pub observation: Option<Observation>,
    /// The path, where it was measured now.
    pub path: Option<PathOutcome>,
    /// This end's address and the far end's, as the first connection had them.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// Whether the far end tells of its sockets and its host.
    pub far_tells: bool,
    /// The test as asked for, and as it ran.
    pub parameters: TestParameters,
    /// Its own intervals.
    pub intervals: Vec<IntervalReport>,
    /// What the two ends reported.
    pub report: Option<TestReport>,
    /// Why there is no transfer, or not all of it; an interrupted measurement has nothing here.
    pub error: Option<Error>,
}

/// Measures; `stop` ends it early, with what has been seen so far.
pub fn run(
    options: &DiagnoseOptions,
    stop: Option<Interrupts>,
    observer: &mut dyn FnMut(DiagnoseEvent<'_>),
) -> DiagnoseOutcome {
    let path = match &options.path {
        PathSource::Measure(path) => Some(path::run(path, stop, &mut |event| observer(DiagnoseEvent::Path(event)))),
        PathSource::Known(_) | PathSource::Unknown => None,
    };
    let halted = course::check(stop).is_err() || (path.is_some() && course::wait(stop, PAUSE).is_err());
    let transfer = detailed(&options.transfer);
    let mut watch = Watch::default();
    let error = if halted {
        None
    } else {
        let is_known = !matches!(options.path, PathSource::Unknown);
        let acquaintance = if is_known { Acquaintance::Known } else { Acquaintance::New };
        client::when_free(acquaintance, stop, || {
            let outcome = client::run(&transfer, stop.as_ref(), &mut |event| {
                watch.event(event);
                observer(DiagnoseEvent::Transfer(event));
            });
            (outcome.error, ())
        })
        .0
    };
    let known = match &options.path {
        PathSource::Known(document) => Some(&**document),
        PathSource::Measure(_) | PathSource::Unknown => None,
    };
    watch.into_outcome(transfer.parameters, path, known, error)
}

/// Asks both ends for what they know.
fn detailed(transfer: &ClientOptions) -> ClientOptions {
    let mut transfer = transfer.clone();
    transfer.interval = Some(READING);
    transfer.parameters.far_interval = Some(READING);
    transfer.parameters.far_details = true;
    transfer
}

#[derive(Default)]
struct Watch {
    start: Option<TestStart>,
    intervals: Vec<IntervalReport>,
    report: Option<TestReport>,
}

impl Watch {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Started(start) => {
                self.start = Some((**start).clone());
                self.intervals.clear();
            }
            Event::Interval(interval) => self.intervals.push(interval.clone()),
            Event::Finished(report) => self.report = Some((**report).clone()),
            Event::Connected(_) | Event::FarInterval(_) | Event::Warning(_) | Event::Debug(_) => {}
        }
    }

    fn into_outcome(
        self,
        asked: TestParameters,
        path: Option<PathOutcome>,
        known: Option<&PathDocument>,
        error: Option<Error>,
    ) -> DiagnoseOutcome {
        let report = self.report.filter(|_| self.start.is_some());
        let document = path.as_ref().map(|path| &path.document).or(known);
        let first = self.start.as_ref().and_then(|start| start.streams.first());
        let observation = report.as_ref().map(|report| Observation::new(&asked, &self.intervals, report, document));
        DiagnoseOutcome {
            far_tells: report.as_ref().is_some_and(|report| report.far.as_ref().is_some_and(|far| far.host.is_some())),
            observation,
            path,
            addresses: first.map(|stream| (stream.local.ip(), stream.remote.ip())),
            parameters: asked,
            intervals: self.intervals,
            report,
            error,
        }
    }
}
