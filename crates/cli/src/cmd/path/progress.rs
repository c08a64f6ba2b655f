//! Progress display of a path measurement.

use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::path::{HopsSnapshot, PathEvent, PathPhase};
use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, display};

use crate::cmd::measurement::LiveLine;
use crate::console;
use crate::progress;

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
        let quiet = quiet || progress::has_picture();
        Self { quiet, ways_out, live, phase: None, latest: String::new(), readings: Vec::new() }
    }

    pub(crate) fn event(&mut self, event: &PathEvent) {
        if progress::is_followed() {
            self.publish(event);
        }
        if self.quiet {
            return;
        }
        match event {
            PathEvent::Phase(phase, expected) => self.begin(*phase, *expected),
            PathEvent::Announcement(most) => self.print_line(&self.announcement(*most)),
            PathEvent::RoundTrip(time) => {
                self.add_sample(time.as_secs_f64(), format!("RTT {}", display::duration(*time)));
            }
            PathEvent::Rate(direction, rate) => self.rate(*direction, *rate),
            PathEvent::Hops(snapshot) => self.hops(snapshot),
            PathEvent::Note(text) => self.print_line(&format!("note: {text}")),
        }
    }

    fn announcement(&self, most: ByteCount) -> String {
        let (most, ways_out) = (display::size(most), self.ways_out);
        format!("the capacity searches send at most {most}, both directions together{ways_out}")
    }

    /// Passes an event on to those who follow the measurement.
    fn publish(&self, event: &PathEvent) {
        let sample = || ProgressEvent::new(EventKind::Sample);
        if let PathEvent::Hops(snapshot) = event {
            progress::show_hops(snapshot);
        }
        progress::publish(match event {
            // Nothing is measured before the connection.
            PathEvent::Phase(PathPhase::Connect, _) => return,
            PathEvent::Phase(phase, expected) if expected.is_zero() => {
                let end = if *phase == PathPhase::Hops { "until it is stopped" } else { "as long as packets arrive" };
                ProgressEvent { text: Some(end.to_owned()), ..ProgressEvent::phase(phase.name(), None) }
            }
            PathEvent::Phase(phase, expected) => ProgressEvent::phase(phase.name(), Some(nanoseconds(*expected))),
            PathEvent::Announcement(most) => ProgressEvent::with_text(EventKind::Note, self.announcement(*most)),
            PathEvent::RoundTrip(time) => ProgressEvent { rtt_ns: Some(nanoseconds(*time)), ..sample() },
            PathEvent::Rate(Direction::Up, rate) => {
                ProgressEvent { up_bits_per_second: Some(rate.bits_per_second()), ..sample() }
            }
            PathEvent::Rate(Direction::Down, rate) => {
                ProgressEvent { down_bits_per_second: Some(rate.bits_per_second()), ..sample() }
            }
            PathEvent::Hops(snapshot) => {
                let document = serde_json::json!({ "hops": snapshot.hops, "route": snapshot.route });
                ProgressEvent { document: Some(document), ..ProgressEvent::new(EventKind::Interval) }
            }
            PathEvent::Note(text) => ProgressEvent::with_text(EventKind::Note, text),
        });
    }

    fn begin(&mut self, phase: PathPhase, expected: Duration) {
        self.print_result();
        self.readings.clear();
        self.latest.clear();
        self.phase = Some((phase, expected, clock::monotonic_now()));
        self.live.refresh_now();
        if !self.live.is_there() {
            console::note(phase.name());
        }
        self.show();
    }

    /// Prints the latest figure of the ending phase, where there is no live line.
    fn print_result(&self) {
        if let Some((phase, ..)) = self.phase
            && !self.live.is_there()
            && !self.latest.is_empty()
        {
            console::note(&format!("{}: {}", phase.name(), self.latest));
        }
    }

    fn rate(&mut self, direction: Direction, rate: BitRate) {
        let arrow = match direction {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        self.add_sample(rate.bits_per_second(), format!("{} {arrow}", display::rate(rate)));
    }

    /// Line of a round: the last hop that answers.
    fn hops(&mut self, snapshot: &HopsSnapshot) {
        let answering =
            snapshot.hops.iter().rev().find_map(|hop| Some((hop.distance, Duration::from_nanos(hop.last_ns?))));
        let Some((distance, last)) = answering else { return };
        let text = format!("round {}, hop {distance} {}", snapshot.route.rounds, display::duration(last));
        self.add_sample(last.as_secs_f64(), text);
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
        self.print_result();
        self.live.clear();
    }
}
