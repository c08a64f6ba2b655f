//! What a person sees while latency under load is measured.

use std::time::Duration;

use linerate_engine::load::{self, LoadEvent};
use linerate_model::schema::load::PhaseKind;
use linerate_units::{BitRate, display};

use crate::cmd::measurement::LiveLine;
use crate::console;

/// The live line, or plain lines where nobody watches a terminal.
pub(crate) struct Progress {
    quiet: bool,
    live: LiveLine,
    phase: &'static str,
    counting: bool,
    latest: load::Progress,
    round_trips: Vec<f64>,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            live: LiveLine::new(quiet),
            phase: "connecting",
            counting: false,
            latest: load::Progress::default(),
            round_trips: Vec::new(),
        }
    }

    pub(crate) fn event(&mut self, event: &LoadEvent) {
        if self.quiet {
            return;
        }
        match event {
            LoadEvent::Announcement { usual, most } => self.line(&announcement(*usual, *most)),
            LoadEvent::Phase(kind) => self.begin(*kind),
            LoadEvent::Counting(..) => {
                self.counting = true;
                self.live.renew();
            }
            LoadEvent::Progress(progress) => {
                self.latest = *progress;
                self.round_trips.extend(progress.round_trip.map(|time| time.as_secs_f64()));
                self.show();
            }
            LoadEvent::Note(text) => self.line(&format!("note: {text}")),
        }
    }

    fn begin(&mut self, kind: PhaseKind) {
        if !self.live.is_there() && self.phase != "connecting" {
            self.plain();
        }
        self.phase = while_loaded(kind);
        self.counting = false;
        self.latest = load::Progress::default();
        self.live.renew();
    }

    /// Where there is no live line, how each phase stood at its end.
    fn plain(&self) {
        console::note(&format!("{}: {}", self.phase, readings(&self.latest)));
    }

    /// A line that stays.
    fn line(&mut self, text: &str) {
        self.live.note(text);
        self.show();
    }

    fn show(&mut self) {
        let state = match (self.counting, self.latest.left) {
            (true, Some(left)) => format!("{} s left", left.as_secs_f64().ceil()),
            (true, None) => String::new(),
            (false, _) => "until it stands still".to_owned(),
        };
        self.live.show(&format!("{}  {state}  {}", self.phase, readings(&self.latest)), &self.round_trips);
    }

    pub(crate) fn finish(&self) {
        if self.live.is_there() {
            self.live.clear();
        } else if !self.quiet && self.phase != "connecting" {
            self.plain();
        }
    }
}

/// When this phase's figures were taken, in words.
pub(super) const fn while_loaded(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Idle => "idle",
        PhaseKind::Down => "loaded down",
        PhaseKind::Up => "loaded up",
        PhaseKind::Both => "loaded both ways",
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

fn readings(progress: &load::Progress) -> String {
    let mut words = Vec::new();
    words.extend(progress.round_trip.map(|time| format!("RTT {}", display::duration(time))));
    words.extend(progress.down.map(|rate| format!("{} down", display::rate(rate))));
    words.extend(progress.up.map(|rate| format!("{} up", display::rate(rate))));
    words.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_have_their_direction() {
        let progress = load::Progress {
            round_trip: Some(Duration::from_millis(20)),
            up: None,
            down: Some(BitRate::from_bits_per_second(9e5)),
            left: None,
        };
        assert_eq!(readings(&progress), "RTT 20.0 ms  900 kbit/s down");
    }
}
