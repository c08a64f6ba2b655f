//! Progress display of an RFC 6349 run.

use linerate_model::direction::Direction;
use std::fmt::Write as _;
use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_documents::rfc6349::LoadedDirections;
use linerate_engine::rfc6349::Rfc6349Event;
use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, MonotonicTime, display};

use crate::cmd::measurement::LiveLine;
use crate::cmd::path::PathProgressDisplay as PathProgress;
use crate::console;
use crate::progress;

/// Live line, or plain lines without a terminal.
pub(super) struct Rfc6349ProgressDisplay {
    quiet: bool,
    live: LiveLine,
    path: PathProgress,
    transfer: Option<TransferProgress>,
}

/// Running transfer.
struct TransferProgress {
    title: String,
    began: MonotonicTime,
    time: Duration,
    left: usize,
    up: Option<BitRate>,
    down: Option<BitRate>,
    readings: Vec<f64>,
}

fn publish_rate(direction: Direction, rate: BitRate) {
    let rate = Some(rate.bits_per_second());
    let sample = ProgressEvent::new(EventKind::Sample);
    progress::publish(match direction {
        Direction::Up => ProgressEvent { up_bits_per_second: rate, ..sample },
        Direction::Down => ProgressEvent { down_bits_per_second: rate, ..sample },
    });
}

impl Rfc6349ProgressDisplay {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, live: LiveLine::new(quiet), path: PathProgress::new(quiet, ""), transfer: None }
    }

    pub(super) fn event(&mut self, event: &Rfc6349Event) {
        match event {
            Rfc6349Event::Path(event) => return self.path.event(event),
            Rfc6349Event::Transfer { .. } => {}
            Rfc6349Event::Rate(direction, rate) => publish_rate(*direction, *rate),
            Rfc6349Event::Note(text) => drop(progress::publish(ProgressEvent::with_text(EventKind::Note, text))),
        }
        match event {
            Rfc6349Event::Path(_) => {}
            Rfc6349Event::Transfer { flows, connections, window, time, left } => {
                let flows = match flows {
                    LoadedDirections::Up => "up",
                    LoadedDirections::Down => "down",
                    LoadedDirections::Both => "both directions",
                };
                let how = match window {
                    Some(window) => format!("window {}", display::size(*window)),
                    None if connections.get() == 1 => "1 connection".to_owned(),
                    None => format!("{connections} connections"),
                };
                let title = format!("TCP {flows}, {how}");
                progress::publish(ProgressEvent::phase(&title, Some(nanoseconds(*time))));
                if !self.quiet {
                    self.begin(title, *time, *left);
                }
            }
            Rfc6349Event::Rate(..) | Rfc6349Event::Note(_) if self.quiet => {}
            Rfc6349Event::Rate(direction, rate) => self.rate(*direction, *rate),
            Rfc6349Event::Note(text) => self.live.note(&format!("note: {text}")),
        }
    }

    fn begin(&mut self, title: String, time: Duration, left: usize) {
        if !self.live.is_there() {
            console::note(&format!("{title}, {}; {left} more", display::duration(time)));
        }
        let began = clock::monotonic_now();
        self.live.refresh_now();
        self.transfer = Some(TransferProgress { title, began, time, left, up: None, down: None, readings: Vec::new() });
        self.show();
    }

    fn rate(&mut self, direction: Direction, rate: BitRate) {
        let Some(transfer) = &mut self.transfer else { return };
        match direction {
            Direction::Up => transfer.up = Some(rate),
            Direction::Down => transfer.down = Some(rate),
        }
        transfer.readings.push(rate.bits_per_second());
        self.show();
    }

    fn show(&mut self) {
        let Some(transfer) = &self.transfer else { return };
        let left = transfer.time.saturating_sub(clock::monotonic_now().since(transfer.began));
        let mut text = format!("{}  {} s left", transfer.title, left.as_secs_f64().ceil());
        if transfer.left > 0 {
            let _ = write!(text, ", {} more", transfer.left);
        }
        for (rate, name) in [(transfer.up, "up"), (transfer.down, "down")] {
            if let Some(rate) = rate {
                let _ = write!(text, "  {} {name}", display::rate(rate));
            }
        }
        self.live.show(&text, &transfer.readings);
    }

    pub(super) fn finish(&self) {
        self.live.clear();
    }
}
