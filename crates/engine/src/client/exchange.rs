//! Results of both ends, and what a linerate at the other end reports meanwhile.

use core::time::Duration;

use linerate_model::event::TestEvent;
use linerate_model::report::{FarReport, TestTermination};
use linerate_model::sample::IntervalReport;
use linerate_sys::clock;
use linerate_wire::client::ClientEvent;
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::ExtensionMessage;
use linerate_wire::results;

use super::ClientDriver;
use crate::error::Error;
use crate::outcome;

/// Shortest interval of reports (`-i`) in iperf3 and linerate.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Allowance for a server's clock that runs ahead, and for its short last interval.
const MAX_FAR_CLOCK_LEAD: Duration = Duration::from_secs(1);

impl ClientDriver<'_> {
    pub(super) fn give_results(&mut self) {
        self.end_measurement();
        let Some(measurement) = &mut self.measurement else { return };
        measurement.stop_and_join();
        let results = outcome::results(measurement);
        self.debug("send_results", || results::encode(&results));
        self.handle(ClientEvent::Results(results));
    }

    pub(super) fn handle_far_message(&mut self, message: ExtensionMessage) {
        let version = self.hello.as_ref().map(|hello| hello.version.clone()).unwrap_or_default();
        let far = self.peer.far.get_or_insert_with(|| FarReport { version, ..FarReport::default() });
        match message {
            ExtensionMessage::Hello(_) => {}
            ExtensionMessage::Interval(report) => self.handle_far_interval(report),
            ExtensionMessage::Intervals(reports) => reports.into_iter().for_each(|one| self.handle_far_interval(one)),
            ExtensionMessage::End(end) => {
                far.overlapping_tests = end.overlapping_tests;
                far.host = end.host.as_deref().cloned();
                self.peer.end = Some(end);
            }
        }
    }

    fn handle_far_interval(&mut self, report: IntervalReport) {
        if !self.expects_far_interval(&report) {
            return;
        }
        if let Some(far) = &mut self.peer.far {
            far.intervals.push(report.clone());
        }
        (self.observer)(&TestEvent::FarInterval(report));
    }

    /// True when a server may report one more interval: surplus ones are dropped, whatever their number.
    fn expects_far_interval(&self, report: &IntervalReport) -> bool {
        let Some(measurement) = &self.measurement else { return false };
        let so_far = self.peer.far.as_ref().map_or(0, |far| far.intervals.len());
        let lasted = measurement.wall_time(clock::monotonic_now()) + MAX_FAR_CLOCK_LEAD;
        let interval = self.parameters.far_interval.map_or(MIN_INTERVAL, |asked| asked.min(MIN_INTERVAL));
        let possible = lasted.as_nanos() / interval.as_nanos().max(1);
        (so_far as u128) < possible && report.streams.len() <= self.parameters.total_streams().to_usize()
    }

    /// Reports the result to the observer, however the test ended.
    pub(super) fn finish(&mut self, error: Option<&Error>) {
        self.end_measurement();
        let termination = match (&self.interrupted, error) {
            (Some(signal), _) => TestTermination::Interrupted { signal: Some(signal.clone()) },
            (None, None) => TestTermination::Complete,
            (None, Some(error)) if error.code() == ErrorCode::SERVER_TERMINATED => TestTermination::PeerTerminated,
            (None, Some(error)) => TestTermination::Failed { message: error.to_string() },
        };
        let peer = core::mem::take(&mut self.peer);
        let report = match &mut self.measurement {
            Some(measurement) => {
                measurement.stop_and_join();
                outcome::report(measurement, peer, self.file.as_ref(), termination)
            }
            None => outcome::empty_report(termination),
        };
        (self.observer)(&TestEvent::Finished(Box::new(report)));
    }
}
