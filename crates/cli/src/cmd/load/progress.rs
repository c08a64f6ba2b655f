//! Progress display of latency under load.

use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_engine::load::{self, LoadEvent};
use linerate_model::load::PhaseKind;
use linerate_model::traffic_profile::TrafficProfile;
use linerate_report::sentence::load::load_label;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, display};

use crate::cmd::measurement::LiveLine;
use crate::console;
use crate::progress;

/// Rate of the announced amount of data where the path's capacity is unknown.
const EXAMPLE_RATE: BitRate = BitRate::from_bits_per_second(1e8);

/// Live line, or plain lines without a terminal.
pub(crate) struct LoadProgressDisplay {
    quiet: bool,
    live: LiveLine,
    phase: &'static str,
    profile: Option<TrafficProfile>,
    counting: bool,
    latest: load::LoadFigures,
    round_trips: Vec<f64>,
}

impl LoadProgressDisplay {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet: quiet || progress::has_picture(),
            live: LiveLine::new(quiet),
            phase: "connecting",
            profile: None,
            counting: false,
            latest: load::LoadFigures::default(),
            round_trips: Vec::new(),
        }
    }

    pub(crate) fn event(&mut self, event: &LoadEvent) {
        if progress::is_followed() {
            progress::publish(published(event));
        }
        if self.quiet {
            return;
        }
        match event {
            LoadEvent::Announcement { usual, most, capacity } => {
                self.print_line(&announcement(*usual, *most, *capacity));
            }
            LoadEvent::Phase(kind) => self.begin(*kind),
            LoadEvent::Counting(..) => {
                self.counting = true;
                self.live.refresh_now();
            }
            LoadEvent::Profile(_, profile, _) => self.begin_profile(*profile),
            LoadEvent::Progress(figures) => {
                self.latest = *figures;
                self.round_trips.extend(figures.round_trip.map(|time| time.as_secs_f64()));
                self.show();
            }
            LoadEvent::Note(text) => self.print_line(&format!("note: {text}")),
        }
    }

    fn begin(&mut self, kind: PhaseKind) {
        if !self.live.is_there() && self.phase != "connecting" && self.profile.is_none() {
            self.print_phase();
        }
        self.phase = load_label(kind);
        (self.profile, self.counting) = (None, false);
        self.latest = load::LoadFigures::default();
        self.live.refresh_now();
    }

    /// Profiles follow the phase, whose result is complete by then.
    fn begin_profile(&mut self, profile: TrafficProfile) {
        if !self.live.is_there() && self.profile.is_none() {
            self.print_phase();
        }
        self.profile = Some(profile);
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
            _ if self.profile.is_some() => self.profile.map_or("", TrafficProfile::name).to_owned(),
            (true, Some(left)) => format!("{} s left", left.as_secs_f64().ceil()),
            (true, None) => String::new(),
            (false, _) => "until the load is stable".to_owned(),
        };
        self.live.show(&format!("{}  {state}  {}", self.phase, progress_text(&self.latest)), &self.round_trips);
    }

    pub(crate) fn finish(&self) {
        if self.live.is_there() {
            self.live.clear();
        } else if !self.quiet && self.phase != "connecting" && self.profile.is_none() {
            self.print_phase();
        }
    }
}

/// The event for those who follow the measurement.
fn published(event: &LoadEvent) -> ProgressEvent {
    match event {
        LoadEvent::Announcement { usual, most, capacity } => {
            ProgressEvent::with_text(EventKind::Note, announcement(*usual, *most, *capacity))
        }
        LoadEvent::Phase(kind) => ProgressEvent::phase(kind.name(), None),
        LoadEvent::Counting(kind, time) | LoadEvent::Profile(kind, _, time) => {
            ProgressEvent::phase(kind.name(), Some(nanoseconds(*time)))
        }
        LoadEvent::Progress(figures) => ProgressEvent {
            up_bits_per_second: figures.up.map(BitRate::bits_per_second),
            down_bits_per_second: figures.down.map(BitRate::bits_per_second),
            rtt_ns: figures.round_trip.map(nanoseconds),
            limits: figures.limits,
            left_ns: figures.left.map(nanoseconds),
            ..ProgressEvent::new(EventKind::Sample)
        },
        LoadEvent::Note(text) => ProgressEvent::with_text(EventKind::Note, text),
    }
}

/// Durations, and the data that they transfer at the path's capacity, or at an example of it.
fn announcement(usual: Duration, most: Duration, capacity: Option<BitRate>) -> String {
    let rate = capacity.unwrap_or(EXAMPLE_RATE);
    format!(
        "this fills the path, for about {} and {} at most; at {} that transfers about {}",
        display::duration(usual),
        display::duration(most),
        display::rate(rate),
        display::size(rate * usual)
    )
}

fn progress_text(figures: &load::LoadFigures) -> String {
    let mut parts = Vec::new();
    parts.extend(figures.round_trip.map(|time| format!("RTT {}", display::duration(time))));
    parts.extend(figures.down.map(|rate| format!("{} down", display::rate(rate))));
    parts.extend(figures.up.map(|rate| format!("{} up", display::rate(rate))));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_data_are_those_of_the_measured_capacity() {
        let [usual, most] = [16, 40].map(Duration::from_secs);
        let text = |capacity| announcement(usual, most, capacity);
        let times = "this fills the path, for about 16.0 s and 40.0 s at most";
        assert_eq!(text(None), format!("{times}; at 100 Mbit/s that transfers about 200 MB"));
        let slow = Some(BitRate::from_bits_per_second(2e6));
        assert_eq!(text(slow), format!("{times}; at 2.00 Mbit/s that transfers about 4.00 MB"));
    }

    #[test]
    fn rates_have_their_direction() {
        let figures = load::LoadFigures {
            round_trip: Some(Duration::from_millis(20)),
            down: Some(BitRate::from_bits_per_second(9e5)),
            ..load::LoadFigures::default()
        };
        assert_eq!(progress_text(&figures), "RTT 20.0 ms  900 kbit/s down");
    }
}
