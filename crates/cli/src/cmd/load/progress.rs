//! Progress display of latency under load.

use std::time::Duration;

use linerate_engine::load::{self, LoadEvent};
use linerate_model::load::PhaseKind;
use linerate_report::sentence::load::load_label;
use linerate_units::{BitRate, display};

use crate::cmd::measurement::LiveLine;
use crate::console;

/// Live line, or plain lines without a terminal.
pub(crate) struct LoadProgressDisplay {
    quiet: bool,
    live: LiveLine,
    phase: &'static str,
    counting: bool,
    latest: load::LoadFigures,
    round_trips: Vec<f64>,
}

impl LoadProgressDisplay {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            live: LiveLine::new(quiet),
            phase: "connecting",
            counting: false,
            latest: load::LoadFigures::default(),
            round_trips: Vec::new(),
        }
    }

    pub(crate) fn event(&mut self, event: &LoadEvent) {
        if self.quiet {
            return;
        }
        match event {
            LoadEvent::Announcement { usual, most } => self.print_line(&announcement(*usual, *most)),
            LoadEvent::Phase(kind) => self.begin(*kind),
            LoadEvent::Counting(..) => {
                self.counting = true;
                self.live.refresh_now();
            }
            LoadEvent::Progress(progress) => {
                self.latest = *progress;
                self.round_trips.extend(progress.round_trip.map(|time| time.as_secs_f64()));
                self.show();
            }
            LoadEvent::Note(text) => self.print_line(&format!("note: {text}")),
        }
    }

    fn begin(&mut self, kind: PhaseKind) {
        if !self.live.is_there() && self.phase != "connecting" {
            self.print_phase();
        }
        self.phase = load_label(kind);
        self.counting = false;
        self.latest = load::LoadFigures::default();
        self.live.refresh_now();
    }

    /// Prints the result of a phase if there is no live line.
    fn print_phase(&self) {
        console::note(&format!("{}: {}", self.phase, progress_text(&self.latest)));
    }

    /// Prints a permanent line.
    fn print_line(&mut self, text: &str) {
        self.live.note(text);
        self.show();
    }

    fn show(&mut self) {
        let state = match (self.counting, self.latest.left) {
            (true, Some(left)) => format!("{} s left", left.as_secs_f64().ceil()),
            (true, None) => String::new(),
            (false, _) => "until the load is stable".to_owned(),
        };
        self.live.show(&format!("{}  {state}  {}", self.phase, progress_text(&self.latest)), &self.round_trips);
    }

    pub(crate) fn finish(&self) {
        if self.live.is_there() {
            self.live.clear();
        } else if !self.quiet && self.phase != "connecting" {
            self.print_phase();
        }
    }
}

fn announcement(usual: Duration, most: Duration) -> String {
    format!(
        "this fills the path, for about {} and {} at most; at 100 Mbit/s that transfers about {}",
        display::duration(usual),
        display::duration(most),
        display::size(BitRate::from_bits_per_second(1e8) * usual)
    )
}

fn progress_text(progress: &load::LoadFigures) -> String {
    let mut parts = Vec::new();
    parts.extend(progress.round_trip.map(|time| format!("RTT {}", display::duration(time))));
    parts.extend(progress.down.map(|rate| format!("{} down", display::rate(rate))));
    parts.extend(progress.up.map(|rate| format!("{} up", display::rate(rate))));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_their_direction() {
        let progress = load::LoadFigures {
            round_trip: Some(Duration::from_millis(20)),
            up: None,
            down: Some(BitRate::from_bits_per_second(9e5)),
            left: None,
        };
        assert_eq!(progress_text(&progress), "RTT 20.0 ms  900 kbit/s down");
    }
}
