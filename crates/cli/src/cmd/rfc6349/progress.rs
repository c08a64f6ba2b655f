//! What a person sees while the procedure runs.

use std::fmt::Write as _;
use std::time::Duration;

use linerate_engine::rfc6349::Rfc6349Event;
use linerate_model::schema::rfc6349::Flows;
use linerate_model::schema::throughput::Direction;
use linerate_sys::clock;
use linerate_units::{BitRate, MonotonicTime, display};

use crate::cmd::measurement::LiveLine;
use crate::cmd::path::Progress as PathProgress;
use crate::console;

/// The live line, or plain lines where nobody watches a terminal.
pub(super) struct Progress {
    quiet: bool,
    live: LiveLine,
    path: PathProgress,
    transfer: Option<Transfer>,
}

/// The transfer that runs.
struct Transfer {
    title: String,
    began: MonotonicTime,
    time: Duration,
    left: usize,
    up: Option<BitRate>,
    down: Option<BitRate>,
    readings: Vec<f64>,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, live: LiveLine::new(quiet), path: PathProgress::new(quiet, ""), transfer: None }
    }

    pub(super) fn event(&mut self, event: &Rfc6349Event) {
        if self.quiet {
            return;
        }
        match event {
            Rfc6349Event::Path(event) => self.path.event(event),
            Rfc6349Event::Transfer { flows, connections, window, time, left } => {
                let flows = match flows {
                    Flows::Up => "up",
                    Flows::Down => "down",
                    Flows::Both => "both ways",
                };
                let how = match window {
                    Some(window) => format!("window {}", display::size(*window)),
                    None if connections.get() == 1 => "1 connection".to_owned(),
                    None => format!("{connections} connections"),
                };
                self.begin(format!("TCP {flows}, {how}"), *time, *left);
            }
            Rfc6349Event::Rate(direction, rate) => self.rate(*direction, *rate),
            Rfc6349Event::Note(text) => self.live.note(&format!("note: {text}")),
        }
    }

    fn begin(&mut self, title: String, time: Duration, left: usize) {
        if !self.live.is_there() {
            console::note(&format!("{title}, {}; {left} more", display::duration(time)));
        }
        let began = clock::monotonic_now();
        self.live.renew();
        self.transfer = Some(Transfer { title, began, time, left, up: None, down: None, readings: Vec::new() });
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
