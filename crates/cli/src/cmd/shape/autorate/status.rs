//! Live status line, and a summary at the end.

use linerate_model::direction::Direction;
use std::fmt::Write as _;
use std::time::Duration;

use linerate_shape::autorate::{AutorateLogLine, ControllerInput, ControllerState, ProbeDelay, RateController};
use linerate_shape::link::AccessLink;
use linerate_sys::clock;
use linerate_sys::clock::CpuTime;
use linerate_units::{BitRate, MonotonicTime, display};

use crate::console;

/// Last state of one direction, and the number of its samples.
#[derive(Clone, Copy, Debug, Default)]
struct DirectionSummary {
    shaped: bool,
    achieved: Option<BitRate>,
    queue: Option<Duration>,
    samples: u64,
    late: u64,
}

/// Status of an autorate session.
pub(super) struct AutorateStatus {
    verbose: bool,
    terminal: bool,
    shown: bool,
    begun: MonotonicTime,
    processor: CpuTime,
    /// Per direction, up first.
    seen: [DirectionSummary; 2],
    answers: u64,
    lost: u64,
    replaced: u64,
    changes: u64,
    changing: Duration,
    state: ControllerState,
    states: Vec<(ControllerState, u64)>,
    round_trip: Option<Duration>,
}

impl AutorateStatus {
    pub(super) fn new(verbose: bool, line: &AccessLink, now: MonotonicTime) -> Self {
        let seen = |rate: Option<BitRate>| DirectionSummary { shaped: rate.is_some(), ..DirectionSummary::default() };
        Self {
            verbose,
            terminal: console::progress_style().is_some(),
            shown: false,
            begun: now,
            processor: clock::process_cpu_time(),
            seen: [seen(line.up), seen(line.down)],
            answers: 0,
            lost: 0,
            replaced: 0,
            changes: 0,
            changing: Duration::ZERO,
            state: ControllerState::Running,
            states: Vec::new(),
            round_trip: None,
        }
    }

    /// Counts an input of the controller.
    pub(super) fn count_input(&mut self, input: &ControllerInput) {
        match input {
            ControllerInput::Sample(sample) => {
                self.answers += 1;
                self.round_trip = Some(match sample.delay {
                    ProbeDelay::RoundTrip(time) => time,
                    // The clock offset is in both with opposite signs.
                    ProbeDelay::OneWay { up, down } => {
                        let sum = (up.number() + down.number()).max(0.0);
                        Duration::from_secs_f64(sum / 1e9)
                    }
                });
            }
            ControllerInput::Lost { .. } => self.lost += 1,
            _ => {}
        }
    }

    pub(super) fn entered(&mut self, state: ControllerState) {
        self.state = state;
        match self.states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => self.states.push((state, 1)),
        }
    }

    pub(super) fn replaced(&mut self, old: &str, new: &str) {
        self.replaced += 1;
        if self.verbose && !self.terminal {
            console::note(&format!("probing {new} instead of {old}"));
        }
    }

    pub(super) fn line(&mut self, line: &AutorateLogLine) {
        let seen = &mut self.seen[usize::from(line.direction == Direction::Down)];
        (seen.achieved, seen.queue) = (line.achieved, line.queue);
        if let Some(queue) = line.queue {
            seen.samples += 1;
            seen.late += u64::from(queue > line.threshold);
        }
    }

    /// Counts a rate change and its duration.
    pub(super) fn count_change(&mut self, took: Duration) {
        self.changes += 1;
        self.changing += took;
    }

    pub(super) fn show(&mut self, controller: &RateController) {
        let text = self.text(controller);
        if self.terminal {
            self.shown = true;
            console::progress(&text);
        } else if self.verbose {
            console::note(&text);
        }
    }

    /// Status line of less than 80 characters.
    fn text(&self, controller: &RateController) -> String {
        let direction = |flow: Direction, mark: &str| {
            let seen = self.seen[usize::from(flow == Direction::Down)];
            seen.shaped.then(|| {
                let rate = display::rate(controller.rate(flow));
                let queue = seen.queue.map_or("–".to_owned(), |queue| format!("{:.0} ms", queue.as_secs_f64() * 1e3));
                let achieved = seen.achieved.map_or("–".to_owned(), megabits_text);
                format!("{mark} {achieved} of {rate}, +{queue}")
            })
        };
        let mut parts: Vec<String> =
            [direction(Direction::Up, "up"), direction(Direction::Down, "down")].into_iter().flatten().collect();
        parts.push(state_label(self.state).to_owned());
        parts.join("; ")
    }

    /// Clears the live line.
    pub(super) fn clear(&mut self) {
        if core::mem::take(&mut self.shown) {
            console::progress("");
        }
    }

    /// Summary of the session.
    pub(super) fn summary(&self, controller: &RateController) -> String {
        let time = clock::monotonic_now().since(self.begun);
        let mut lines = vec![format!("Autorate ran for {}.", display::duration(time))];
        for (flow, name, seen) in [(Direction::Up, "up", self.seen[0]), (Direction::Down, "down", self.seen[1])] {
            if seen.shaped {
                lines.push(direction_text(name, &seen, controller, flow));
            }
        }
        let round_trip = self.round_trip.map(|time| format!(", the last after {}", display::duration(time)));
        lines.push(format!(
            "  probes: {} answered{}, {} lost, {} reflectors replaced",
            self.answers,
            round_trip.unwrap_or_default(),
            self.lost,
            self.replaced
        ));
        for (state, count) in self.states.iter().filter(|(state, _)| *state != ControllerState::Running) {
            lines.push(format!("  {}: {}", state_label(*state), display::times(*count)));
        }
        let used = clock::process_cpu_time().total().saturating_sub(self.processor.total());
        let share = used.as_secs_f64() / time.as_secs_f64().max(1e-3) * 100.0;
        lines.push(format!(
            "  rates set {}, in {}; {share:.1} % of a processor in all, without `tc`",
            display::times(self.changes),
            display::duration(self.changing)
        ));
        lines.join("\n") + "\n"
    }
}

/// Summary of one direction, for narrow terminals.
fn direction_text(name: &str, seen: &DirectionSummary, controller: &RateController, flow: Direction) -> String {
    let found = controller.discovered(flow);
    let mut text = format!("  {name}: final rate {}", display::rate(controller.rate(flow)));
    if let (Some(mean), Some(least)) = (found.mean_capacity, found.smallest_capacity) {
        let (mean, least) = (display::rate(mean), display::rate(least));
        let _ = write!(text, "\n    capacity: mean {mean}, minimum {least}");
    }
    if let Some(most) = found.largest_clean {
        let _ = write!(text, "\n    largest rate without a queue in the path: {}", display::rate(most));
    }
    if seen.samples > 0 {
        let share = count(seen.late) / count(seen.samples) * 100.0;
        let _ = write!(text, "\n    queue in the path {share:.1} % of the time");
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "counts of log lines")]
fn count(number: u64) -> f64 {
    number as f64
}

/// Formats a rate in Mbit/s without its unit.
fn megabits_text(rate: BitRate) -> String {
    format!("{:.1}", rate.bits_per_second() / 1e6)
}

const fn state_label(state: ControllerState) -> &'static str {
    match state {
        ControllerState::Running => "running",
        ControllerState::Idle => "idle",
        ControllerState::Stalled => "stalled",
        ControllerState::Blind => "no reflector answers",
        ControllerState::LinkDown => "the link is down",
    }
}
