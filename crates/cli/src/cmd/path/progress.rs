//! What a person sees while a path is measured.

use std::time::Duration;

use linerate_engine::path::{PathEvent, PathPhase};
use linerate_model::schema::throughput::Direction;
use linerate_report::throughput_text::Style;
use linerate_sys::clock;
use linerate_units::{BitRate, MonotonicTime, display};

use crate::console;
use crate::spark::spark;

/// The line moves this often at most.
const PACE: Duration = Duration::from_millis(100);

/// Most bars of the plot.
const MOST_BARS: usize = 30;

/// The live line, or plain lines where nobody watches a terminal.
pub(crate) struct Progress {
    quiet: bool,
    style: Option<Style>,
    phase: Option<(PathPhase, Duration, MonotonicTime)>,
    latest: String,
    readings: Vec<f64>,
    shown: Option<MonotonicTime>,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let style = if quiet { None } else { console::progress_style() };
        Self { quiet, style, phase: None, latest: String::new(), readings: Vec::new(), shown: None }
    }

    pub(crate) fn event(&mut self, event: &PathEvent) {
        if self.quiet {
            return;
        }
        match event {
            PathEvent::Phase(phase, expected) => self.begin(*phase, *expected),
            PathEvent::Announcement(most) => {
                self.line(&format!(
                    "the capacity searches send at most {}, both ways together (--max-traffic, --no-capacity)",
                    display::size(*most)
                ));
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
        self.shown = None;
        if self.style.is_none() {
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
        if self.style.is_some() {
            console::progress("");
        }
        console::note(text);
        self.shown = None;
        self.show();
    }

    fn show(&mut self) {
        let (Some(style), Some((phase, expected, began))) = (self.style, self.phase) else { return };
        let now = clock::monotonic_now();
        if self.shown.is_some_and(|shown| now.since(shown) < PACE) {
            return;
        }
        self.shown = Some(now);
        let left = expected.saturating_sub(now.since(began));
        let left = if left.is_zero() { String::new() } else { format!("  {} s left", left.as_secs_f64().ceil()) };
        let text = format!("{:<13}{left}  {}", phase.name(), self.latest);
        let width = usize::from(style.width.get());
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        let room = width.saturating_sub(text.chars().count() + 3).min(MOST_BARS);
        console::progress(format!("{text}  {}", spark(&self.readings, room, style.unicode)).trim_end());
    }

    pub(crate) fn finish(&self) {
        if self.style.is_some() {
            console::progress("");
        }
    }
}
