//! Progress display of requests and responses.

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_documents::run::FigureUnit;
use linerate_engine::rr::RrEvent;
use linerate_report::presentation::Quantity;
use linerate_units::serde::nanoseconds;

use crate::cmd::measurement::LiveLine;
use crate::console;
use crate::progress;

/// Live line; without a terminal only notes.
pub(super) struct RrProgressDisplay {
    quiet: bool,
    live: LiveLine,
    rates: Vec<f64>,
}

impl RrProgressDisplay {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, live: LiveLine::new(quiet), rates: Vec::new() }
    }

    pub(super) fn event(&mut self, event: &RrEvent) {
        if progress::is_followed() {
            progress::publish(published(event));
        }
        match event {
            RrEvent::Started(_) => {}
            RrEvent::Progress { transactions_per_second, left } => {
                self.rates.push(*transactions_per_second);
                let rate = Quantity::new(*transactions_per_second, FigureUnit::PerSecond).display_text();
                self.live.show(&format!("{} s left  {rate}", left.as_secs_f64().ceil()), &self.rates);
            }
            RrEvent::Note(_) if self.quiet => {}
            RrEvent::Note(text) if self.live.is_there() => self.live.note(&format!("note: {text}")),
            RrEvent::Note(text) => console::note(&format!("note: {text}")),
        }
    }

    pub(super) fn finish(&self) {
        self.live.clear();
    }
}

/// The event for those who follow the measurement.
fn published(event: &RrEvent) -> ProgressEvent {
    match event {
        RrEvent::Started(time) => ProgressEvent::phase("transactions", Some(nanoseconds(*time))),
        RrEvent::Progress { transactions_per_second, left } => ProgressEvent {
            transactions_per_second: Some(*transactions_per_second),
            left_ns: Some(nanoseconds(*left)),
            ..ProgressEvent::new(EventKind::Sample)
        },
        RrEvent::Note(text) => ProgressEvent::with_text(EventKind::Note, text),
    }
}
