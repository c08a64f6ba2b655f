//! What a person sees while latency under load is measured.

use std::time::Duration;

use linerate_engine::load::{self, LoadEvent};
use linerate_model::schema::load::PhaseKind;
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
pub(super) struct Progress {
    quiet: bool,
    style: Option<Style>,
    phase: &'static str,
    counting: bool,
    latest: load::Progress,
    round_trips: Vec<f64>,
    shown: Option<MonotonicTime>,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        let style = if quiet { None } else { console::progress_style() };
        Self {
            quiet,
            style,
            phase: "connecting",
            counting: false,
            latest: load::Progress::default(),
            round_trips: Vec::new(),
            shown: None,
        }
    }

    pub(super) fn event(&mut self, event: &LoadEvent) {
        if self.quiet {
            return;
        }
        match event {
            LoadEvent::Announcement { usual, most } => self.line(&announcement(*usual, *most)),
            LoadEvent::Phase(kind) => self.begin(*kind),
            LoadEvent::Counting(..) => {
                self.counting = true;
                self.shown = None;
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
        if self.style.is_none() && self.phase != "connecting" {
            self.plain();
        }
        self.phase = match kind {
            PhaseKind::Idle => "idle",
            PhaseKind::Down => "loaded down",
            PhaseKind::Up => "loaded up",
            PhaseKind::Both => "loaded both ways",
        };
        self.counting = false;
        self.latest = load::Progress::default();
        self.shown = None;
    }

    /// Where there is no live line, how each phase stood at its end.
    fn plain(&self) {
        console::note(&format!("{}: {}", self.phase, readings(&self.latest)));
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
        let Some(style) = self.style else { return };
        let now = clock::monotonic_now();
        if self.shown.is_some_and(|shown| now.since(shown) < PACE) {
            return;
        }
        self.shown = Some(now);
        let state = match (self.counting, self.latest.left) {
            (true, Some(left)) => format!("{} s left", left.as_secs_f64().ceil()),
            (true, None) => String::new(),
            (false, _) => "until it stands still".to_owned(),
        };
        let text = format!("{}  {state}  {}", self.phase, readings(&self.latest));
        let width = usize::from(style.width.get());
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        let room = width.saturating_sub(text.chars().count() + 3).min(MOST_BARS);
        console::progress(format!("{text}  {}", spark(&self.round_trips, room, style.unicode)).trim_end());
    }

    pub(super) fn finish(&self) {
        if self.style.is_some() {
            console::progress("");
        } else if !self.quiet && self.phase != "connecting" {
            self.plain();
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
        assert_eq!(spark(&[1.0, 14.0], 8, false), ".#");
    }
}
