//! Progress display of a path measurement.

use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_engine::path::{PathEvent, PathPhase};
use linerate_sys::clock;
use linerate_units::{BitRate, MonotonicTime, display};

use crate::cmd::measurement::LiveLine;
use crate::console;

/// Live line, or plain lines without a terminal.
pub(crate) struct PathProgressDisplay {
    quiet: bool,
    /// Options that reduce the traffic, for the announcement.
    ways_out: &'static str,
    live: LiveLine,
    phase: Option<(PathPhase, Duration, MonotonicTime)>,
    latest: String,
    readings: Vec<f64>,
}

impl PathProgressDisplay {
    /// Creates the display; `ways_out` names the options that reduce the traffic, for its announcement.
    pub(crate) fn new(quiet: bool, ways_out: &'static str) -> Self {
        let live = LiveLine::new(quiet);
        Self { quiet, ways_out, live, phase: None, latest: String::new(), readings: Vec::new() }
    }

    pub(crate) fn event(&mut self, event: &PathEvent) {
        if self.quiet {
            return;
        }
        match event {
            PathEvent::Phase(phase, expected) => self.begin(*phase, *expected),
            PathEvent::Announcement(most) => {
                let (most, ways_out) = (display::size(*most), self.ways_out);
                self.print_line(&format!(
                    "the capacity searches send at most {most}, both directions together{ways_out}"
                ));
            }
            PathEvent::RoundTrip(time) => {
                self.add_sample(time.as_secs_f64(), format!("RTT {}", display::duration(*time)));
            }
            PathEvent::Rate(direction, rate) => self.rate(*direction, *rate),
            PathEvent::Note(text) => self.print_line(&format!("note: {text}")),
        }
    }

    fn begin(&mut self, phase: PathPhase, expected: Duration) {
        self.readings.clear();
        self.latest.clear();
        self.phase = Some((phase, expected, clock::monotonic_now()));
        self.live.refresh_now();
        if !self.live.is_there() {
            console::note(phase.name());
        }
        self.show();
    }

    fn rate(&mut self, direction: Direction, rate: BitRate) {
        let arrow = match direction {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        self.add_sample(rate.bits_per_second(), format!("{} {arrow}", display::rate(rate)));
    }

    fn add_sample(&mut self, value: f64, text: String) {
        self.readings.push(value);
        self.latest = text;
        self.show();
    }

    /// Prints a permanent line.
    fn print_line(&mut self, text: &str) {
        self.live.note(text);
        self.show();
    }

    fn show(&mut self) {
        let Some((phase, expected, began)) = self.phase else { return };
        let left = expected.saturating_sub(clock::monotonic_now().since(began));
        let left = if left.is_zero() { String::new() } else { format!("  {} s left", left.as_secs_f64().ceil()) };
        self.live.show(&format!("{:<13}{left}  {}", phase.name(), self.latest), &self.readings);
    }

    pub(crate) fn finish(&self) {
        self.live.clear();
    }
}
