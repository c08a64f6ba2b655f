//! What a person sees: a line that changes, and a summary at the end.

use std::fmt::Write as _;
use std::time::Duration;

use linerate_model::throughput::Flow;
use linerate_shape::autorate::{Controller, Delay, Input, LogLine, State};
use linerate_shape::link::Line;
use linerate_sys::clock;
use linerate_sys::clock::CpuTime;
use linerate_units::{BitRate, MonotonicTime, display};

use crate::console;

/// Time between two lines.
const EACH: Duration = Duration::from_secs(1);

/// What was seen of one direction last, and how often.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    shaped: bool,
    achieved: Option<BitRate>,
    queue: Option<Duration>,
    samples: u64,
    late: u64,
}

/// What is shown while a line is followed.
pub(super) struct Status {
    verbose: bool,
    terminal: bool,
    shown: bool,
    begun: MonotonicTime,
    processor: CpuTime,
    next: MonotonicTime,
    /// Up first.
    seen: [Seen; 2],
    answers: u64,
    lost: u64,
    replaced: u64,
    changes: u64,
    changing: Duration,
    state: State,
    states: Vec<(State, u64)>,
    round_trip: Option<Duration>,
}

impl Status {
    pub(super) fn new(verbose: bool, line: &Line, now: MonotonicTime) -> Self {
        let seen = |rate: Option<BitRate>| Seen { shaped: rate.is_some(), ..Seen::default() };
        Self {
            verbose,
            terminal: console::progress_style().is_some(),
            shown: false,
            begun: now,
            processor: clock::process_cpu_time(),
            next: now,
            seen: [seen(line.up), seen(line.down)],
            answers: 0,
            lost: 0,
            replaced: 0,
            changes: 0,
            changing: Duration::ZERO,
            state: State::Running,
            states: Vec::new(),
            round_trip: None,
        }
    }

    /// Something that the controller is told.
    pub(super) fn note(&mut self, input: &Input) {
        match input {
            Input::Sample(sample) => {
                self.answers += 1;
                self.round_trip = Some(match sample.delay {
                    Delay::RoundTrip(time) => time,
                    // The clocks' difference is in both with opposite signs.
                    Delay::OneWay { up, down } => {
                        let sum = (up.number() + down.number()).max(0.0);
                        Duration::from_secs_f64(sum / 1e9)
                    }
                });
            }
            Input::Lost { .. } => self.lost += 1,
            _ => {}
        }
    }

    pub(super) fn entered(&mut self, state: State, now: MonotonicTime) {
        self.state = state;
        match self.states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => self.states.push((state, 1)),
        }
        self.next = now;
    }

    pub(super) fn replaced(&mut self, old: &str, new: &str) {
        self.replaced += 1;
        if self.verbose && !self.terminal {
            console::note(&format!("{new} is probed in place of {old}"));
        }
    }

    pub(super) fn line(&mut self, line: &LogLine) {
        let seen = &mut self.seen[usize::from(line.direction == Flow::Down)];
        (seen.achieved, seen.queue) = (line.achieved, line.queue);
        if let Some(queue) = line.queue {
            seen.samples += 1;
            seen.late += u64::from(queue > line.threshold);
        }
    }

    /// Rates were set, which took this long.
    pub(super) fn set(&mut self, took: Duration) {
        self.changes += 1;
        self.changing += took;
    }

    pub(super) fn is_due(&self, now: MonotonicTime) -> bool {
        now >= self.next
    }

    pub(super) fn show(&mut self, now: MonotonicTime, controller: &Controller) {
        self.next = now + EACH;
        let text = self.text(controller);
        if self.terminal {
            self.shown = true;
            console::progress(&text);
        } else if self.verbose {
            console::note(&text);
        }
    }

    /// One line of less than 80 characters.
    fn text(&self, controller: &Controller) -> String {
        let direction = |flow: Flow, mark: &str| {
            let seen = self.seen[usize::from(flow == Flow::Down)];
            seen.shaped.then(|| {
                let rate = display::rate(controller.rate(flow));
                let queue = seen.queue.map_or("–".to_owned(), |queue| format!("{:.0} ms", queue.as_secs_f64() * 1e3));
                let achieved = seen.achieved.map_or("–".to_owned(), short);
                format!("{mark} {achieved} of {rate}, +{queue}")
            })
        };
        let mut parts: Vec<String> =
            [direction(Flow::Up, "up"), direction(Flow::Down, "down")].into_iter().flatten().collect();
        parts.push(words(self.state).to_owned());
        parts.join("; ")
    }

    /// Ends the line that changes.
    pub(super) fn clear(&mut self) {
        if core::mem::take(&mut self.shown) {
            console::progress("");
        }
    }

    /// What it came to.
    pub(super) fn summary(&self, controller: &Controller) -> String {
        let time = clock::monotonic_now().since(self.begun);
        let mut lines = vec![format!("Followed the line for {}.", display::duration(time))];
        for (flow, name, seen) in [(Flow::Up, "up", self.seen[0]), (Flow::Down, "down", self.seen[1])] {
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
        for (state, count) in self.states.iter().filter(|(state, _)| *state != State::Running) {
            lines.push(format!("  {}: {}", words(*state), times(*count)));
        }
        let used = clock::process_cpu_time().total().saturating_sub(self.processor.total());
        let share = used.as_secs_f64() / time.as_secs_f64().max(1e-3) * 100.0;
        lines.push(format!(
            "  rates set {}, in {}; {share:.1} % of a processor in all, without `tc`",
            times(self.changes),
            display::duration(self.changing)
        ));
        lines.join("\n") + "\n"
    }
}

/// One direction, in lines that fit a narrow terminal.
fn direction_text(name: &str, seen: &Seen, controller: &Controller, flow: Flow) -> String {
    let found = controller.discovered(flow);
    let mut text = format!("  {name}: {} at the end", display::rate(controller.rate(flow)));
    if let (Some(mean), Some(least)) = (found.mean_capacity, found.smallest_capacity) {
        let (mean, least) = (display::rate(mean), display::rate(least));
        let _ = write!(text, "\n    capacity: {mean} on average, {least} at the least");
    }
    if let Some(most) = found.largest_clean {
        let _ = write!(text, "\n    carried without a queue in the path: up to {}", display::rate(most));
    }
    if seen.samples > 0 {
        let share = count(seen.late) / count(seen.samples) * 100.0;
        let _ = write!(text, "\n    a queue stood in the path {share:.1} % of the time");
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "counts of log lines")]
fn count(number: u64) -> f64 {
    number as f64
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A rate without its unit where that follows.
fn short(rate: BitRate) -> String {
    format!("{:.1}", rate.bits_per_second() / 1e6)
}

const fn words(state: State) -> &'static str {
    match state {
        State::Running => "following",
        State::Idle => "nobody sends",
        State::Stalled => "nothing comes back",
        State::Blind => "no reflector answers",
        State::LinkDown => "the link is down",
    }
}
