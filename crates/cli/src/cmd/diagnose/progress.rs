//! Progress display of a diagnosis.

use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::diagnose::DiagnoseEvent;
use linerate_model::event::TestEvent;
use linerate_model::sample::IntervalReport;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, display};

use crate::cmd::measurement::LiveLine;
use crate::cmd::path;
use crate::console;
use crate::progress;

/// Progress of the path measurement, then of the transfer.
pub(crate) struct DiagnoseProgressDisplay {
    quiet: bool,
    path: path::PathProgressDisplay,
    transfer: LiveLine,
    total: Option<Duration>,
    rates: Vec<f64>,
}

impl DiagnoseProgressDisplay {
    pub(crate) fn new(quiet: bool, total: Option<Duration>) -> Self {
        let path = path::PathProgressDisplay::new(quiet, " (--no-capacity)");
        Self { quiet, path, transfer: LiveLine::new(quiet), total, rates: Vec::new() }
    }

    pub(crate) fn event(&mut self, event: &DiagnoseEvent<'_>) {
        match event {
            DiagnoseEvent::Path(event) => return self.path.event(event),
            DiagnoseEvent::Transfer(event) => self.publish(event),
        }
        match event {
            DiagnoseEvent::Transfer(TestEvent::Started(_)) if !self.quiet => {
                self.path.finish();
                if !self.transfer.is_there() {
                    console::note("transfer");
                }
            }
            DiagnoseEvent::Transfer(TestEvent::Interval(interval)) => self.interval(interval),
            DiagnoseEvent::Transfer(TestEvent::Warning(text)) => self.transfer.note(&format!("warning: {text}")),
            DiagnoseEvent::Path(_) | DiagnoseEvent::Transfer(_) => {}
        }
    }

    /// Passes an event on to those who follow the measurement.
    fn publish(&self, event: &TestEvent) {
        match event {
            TestEvent::Started(_) => {
                progress::publish(ProgressEvent::phase("transfer", self.total.map(nanoseconds)));
            }
            TestEvent::Interval(interval) => {
                progress::publish(progress::interval_sample(interval));
            }
            TestEvent::Warning(text) => {
                progress::publish(ProgressEvent::with_text(EventKind::Note, text));
            }
            _ => {}
        }
    }

    fn interval(&mut self, interval: &IntervalReport) {
        let moved: ByteCount = interval.streams.iter().map(|stream| stream.bytes).sum();
        let rate = moved.rate_over(interval.length());
        self.rates.push(rate.bits_per_second());
        let left = self.total.map(|total| total.saturating_sub(interval.end)).filter(|left| !left.is_zero());
        let left = left.map_or_else(String::new, |left| format!("  {} s left", left.as_secs_f64().ceil()));
        self.transfer.show(&format!("{:<13}{left}  {}", "transfer", display::rate(rate)), &self.rates);
    }

    pub(crate) fn finish(&self) {
        self.path.finish();
        self.transfer.clear();
    }
}
