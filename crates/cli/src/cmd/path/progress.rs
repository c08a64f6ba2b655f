//! What a person sees while a path is measured.

use std::time::Duration;

use linerate_engine::path::{PathEvent, PathPhase};
use linerate_model::schema::throughput::Direction;
use linerate_sys::clock;
use linerate_units::{BitRate, MonotonicTime, display};

use crate::cmd::measurement::LiveLine;
use crate::console;

/// The live line, or plain lines where nobody watches a terminal.
pub(crate) struct Progress {
    quiet: bool,
    /// The options by which a person can have less traffic.
    ways_out: &'static str,
    live: LiveLine,
    phase: Option<(PathPhase, Duration, MonotonicTime)>,
    latest: String,
    readings: Vec<f64>,
}

impl Progress {
    /// `ways_out` goes with the announcement of the traffic: the options that lessen it.
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
                self.line(&format!("the capacity searches send at most {most}, both ways together{ways_out}"));
            }
            PathEvent::RoundTrip(time) => self.reading(time.as_secs_f64(), format!("RTT {}", display::duration(*time))),
            PathEvent::Rate(direction, rate) => self.rate(*direction, *rate),
            PathEvent::Note(text) => self.line(&format!("note: {text}")),
        }
    }

    fn begin(&mut self, phase: PathPhase, expected: Duration) {
        self.readings.clear();
        self.latest.clear();
        self.phase = Some((phase, expected, clock::monotonic_now()));
        self.live.renew();
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
        self.reading(rate.bits_per_second(), format!("{} {arrow}", display::rate(rate)));
    }

    fn reading(&mut self, value: f64, text: String) {
        self.readings.push(value);
        self.latest = text;
        self.show();
    }

    /// A line that stays.
    fn line(&mut self, text: &str) {
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
