//! Measures the input of a diagnosis: the path without load, then one transfer as seen at both ends.
//!
//! Nothing is concluded here: the [`TransferObservation`] goes to the rules of `linerate-rules`.

use core::net::IpAddr;
use core::time::Duration;

use linerate_model::diagnosis::TransferObservation;
use linerate_model::event::{TestEvent, TestStart};
use linerate_model::parameters::TestParameters;
use linerate_model::path::PathDocument;
use linerate_model::report::TestReport;
use linerate_model::sample::IntervalReport;
use linerate_sys::signals::InterruptSignals;

use crate::client::{self, ClientOptions, PriorContact};
use crate::error::Error;
use crate::path::{self, PathEvent, PathOptions, PathOutcome};
use crate::phases;

/// Sampling interval of the sockets at both ends; the kernel's chronographs tick in up to 10 ms.
pub const SAMPLING_INTERVAL: Duration = Duration::from_millis(250);

/// Pause between the path measurement and the transfer: queues drain, token buckets refill.
const PAUSE: Duration = Duration::from_secs(1);

/// Source of the path measurement.
#[derive(Clone, Debug)]
pub enum PathSource {
    /// Measured first.
    Measure(Box<PathOptions>),
    /// Measured a short time ago.
    Known(Box<PathDocument>),
    /// Unknown: only the transfer is measured.
    Unknown,
}

/// Measurement to run.
#[derive(Clone, Debug)]
pub struct DiagnoseOptions {
    /// The path.
    pub path: PathSource,
    /// The transfer. [`run`] sets its sampling interval and details.
    pub transfer: ClientOptions,
}

/// Progress of a diagnosis.
#[derive(Debug)]
pub enum DiagnoseEvent<'a> {
    /// The path is measured.
    Path(&'a PathEvent),
    /// The transfer runs.
    Transfer(&'a TestEvent),
}

/// Result of a diagnosis.
#[derive(Debug)]
pub struct DiagnoseOutcome {
    /// Input of the rules; `None` without a transfer.
    pub observation: Option<TransferObservation>,
    /// The path, where it was measured now.
    pub path: Option<PathOutcome>,
    /// Local and remote address of the first connection.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// True when the far end reports its sockets and its host.
    pub far_tells: bool,
    /// The test as asked for, and as it ran.
    pub parameters: TestParameters,
    /// Interval reports of this end.
    pub intervals: Vec<IntervalReport>,
    /// Final report of both ends.
    pub report: Option<TestReport>,
    /// Reason for a missing or partial transfer; `None` after an interrupt.
    pub error: Option<Error>,
}

/// Runs the measurement; `stop` ends it early with a partial result.
pub fn run(
    options: &DiagnoseOptions,
    stop: Option<InterruptSignals>,
    observer: &mut dyn FnMut(DiagnoseEvent<'_>),
) -> DiagnoseOutcome {
    let path = match &options.path {
        PathSource::Measure(path) => Some(path::run(path, stop, &mut |event| observer(DiagnoseEvent::Path(event)))),
        PathSource::Known(_) | PathSource::Unknown => None,
    };
    let is_answered = path.as_ref().is_none_or(|path| path.error.is_none());
    let pauses = path.is_some() && is_answered;
    let halted = phases::check(stop).is_err() || (pauses && phases::wait(stop, PAUSE).is_err());
    let transfer = detailed(&options.transfer);
    let mut watch = TransferObserver::default();
    let error = if halted {
        None
    } else {
        let is_known = is_answered && !matches!(options.path, PathSource::Unknown);
        let acquaintance = if is_known { PriorContact::Known } else { PriorContact::New };
        client::retry_while_busy(acquaintance, stop, || {
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

/// Requests sampling and details from both ends.
fn detailed(transfer: &ClientOptions) -> ClientOptions {
    let mut transfer = transfer.clone();
    transfer.interval = Some(SAMPLING_INTERVAL);
    transfer.parameters.far_interval = Some(SAMPLING_INTERVAL);
    transfer.parameters.far_details = true;
    transfer.parameters.far_reports_at_end = true;
    transfer
}

#[derive(Default)]
struct TransferObserver {
    start: Option<TestStart>,
    intervals: Vec<IntervalReport>,
    report: Option<TestReport>,
}

impl TransferObserver {
    fn event(&mut self, event: &TestEvent) {
        match event {
            TestEvent::Started(start) => {
                self.start = Some((**start).clone());
                self.intervals.clear();
            }
            TestEvent::Interval(interval) => self.intervals.push(interval.clone()),
            TestEvent::Finished(report) => self.report = Some((**report).clone()),
            TestEvent::Connected(_) | TestEvent::FarInterval(_) | TestEvent::Warning(_) | TestEvent::Debug(_) => {}
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
        let observation =
            report.as_ref().map(|report| TransferObservation::new(&asked, &self.intervals, report, document));
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
