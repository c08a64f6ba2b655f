//! The end of a test: data that is still in flight, the results, and the last messages.

use core::time::Duration;

use linerate_model::event::TestEvent;
use linerate_model::parameters::{EndCondition, TestProtocol};
use linerate_model::report::TestTermination;
use linerate_sys::{clock, net};
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::ExtensionMessage;
use linerate_wire::results;
use linerate_wire::server::{ServerAction, ServerEvent};

use super::TestSession;
use crate::error::Error;
use crate::outcome;

/// Longest wait for data in flight after the end of an exact test
const MAX_DRAIN: Duration = Duration::from_secs(1);
/// … as long as data arrives at least this often, or waits to be read.
const MAX_DRAIN_GAP: Duration = Duration::from_millis(50);
/// … and at least this long after the last byte: an iperf3 sends more than was asked for, which counts.
const MIN_DRAIN_GAP: Duration = Duration::from_millis(5);
/// The same for TCP, which loses nothing: a receiver that was preempted between reading and counting needs longer.
const MAX_TCP_DRAIN_GAP: Duration = Duration::from_millis(250);

impl TestSession {
    /// Ends the test on the client's request.
    pub(super) fn end_test(&mut self) {
        self.drain();
        self.end_measurement();
        self.handle(ServerEvent::StreamsStopped);
    }

    /// Receives the data of an exact test or of a file that is still in flight at the client's end message.
    fn drain(&mut self) {
        let exact = self.parameters.as_ref().is_some_and(|parameters| !matches!(parameters.end, EndCondition::Time(_)));
        let is_whole = exact || self.file.is_some();
        let Some(measurement) = self.measurement.as_mut().filter(|_| is_whole) else { return };
        let start = clock::monotonic_now();
        let quiet_limit = match measurement.parameters.protocol {
            TestProtocol::Tcp => MAX_TCP_DRAIN_GAP,
            TestProtocol::Udp => MAX_DRAIN_GAP,
        };
        // A linerate sends the exact number of bytes.
        let surplus_gap = if self.machine.speaks_extension() { Duration::ZERO } else { MIN_DRAIN_GAP };
        loop {
            let now = clock::monotonic_now();
            let quiet = measurement.stalled_for(now);
            let waited = now.since(start);
            let quiet_limit = if measurement.is_over(now) { surplus_gap } else { quiet_limit };
            let is_quiet = quiet.min(waited) >= quiet_limit && !measurement.has_unread();
            if waited > MAX_DRAIN || is_quiet {
                return;
            }
            clock::sleep_until(now + Duration::from_millis(1));
        }
    }

    pub(super) fn end_measurement(&mut self) {
        let Some(measurement) = self.measurement.as_mut().filter(|_| !self.over) else {
            self.over = true;
            return;
        };
        self.over = true;
        let mut last = None;
        measurement.end(|report| last = Some(report));
        measurement.close_streams();
        self.overlapping = self.start.registry.test_ends(self.start.number);
        if let Some(report) = last {
            self.report_interval(report);
        }
    }

    pub(super) fn give_results(&mut self) {
        self.send_held_reports();
        let Some(measurement) = &self.measurement else {
            self.give_up(Error::new(ErrorCode::SEND_RESULTS));
            return;
        };
        let mut results = outcome::results(measurement);
        if self.machine.speaks_extension() {
            let end = outcome::far_end(measurement, self.overlapping);
            self.handle(ServerEvent::Extension(ExtensionMessage::End(end)));
        }
        self.finish(TestTermination::Complete);
        if self.parameters.as_ref().is_some_and(|parameters| parameters.get_server_output) {
            results.server_output = self.start.observer.output();
        }
        self.debug("send_results", || results::encode(&results));
        self.handle(ServerEvent::Results(results));
    }

    /// Reports the result to the observer, once.
    pub(super) fn finish(&mut self, termination: TestTermination) {
        let peer = core::mem::take(&mut self.peer);
        let mut report = match self.measurement.take() {
            Some(mut measurement) => {
                measurement.stop_and_join();
                outcome::report(&measurement, peer, self.file.as_ref(), termination)
            }
            None => outcome::empty_report(termination),
        };
        report.overlapping_tests = Some(self.overlapping);
        self.observe(&TestEvent::Finished(Box::new(report)));
    }

    pub(super) fn conclude(mut self) {
        let complete = self.measurement.is_none() && self.error.is_none() && self.terminated.is_none();
        while let Some(ServerAction::Send(bytes)) = self.machine.poll() {
            let _ = self.start.control.queue(&bytes);
        }
        if !complete {
            self.end_measurement();
            let termination = match (&self.terminated, &self.error) {
                (Some(signal), _) => TestTermination::Interrupted { signal: Some(signal.clone()) },
                (None, Some(error)) if error.code() == ErrorCode::CLIENT_TERMINATED => TestTermination::PeerTerminated,
                (None, error) => {
                    TestTermination::Failed { message: error.as_ref().map(ToString::to_string).unwrap_or_default() }
                }
            };
            self.finish(termination);
        }
        // By now nothing else waits for the client to read, unless another client waits for its slot.
        if !self.linger.is_zero() {
            let _ = self.start.control.finish();
        }
        if let Some(error) = &self.error {
            self.start.observer.failed(error);
        }
        // A client that was not admitted has had no test.
        if self.error.as_ref().is_none_or(|error| error.code() != ErrorCode::AUTHORIZATION) {
            self.start.registry.count_test();
        }
        // The last message must arrive: closing with unread bytes in the socket would reset the connection.
        let _ = net::close_gracefully(self.start.control.into_stream(), self.linger);
    }
}
