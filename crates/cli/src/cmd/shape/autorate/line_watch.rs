//! What the interface carries, what waits in its shaper, whether its link is up, and whether the clock was set.

use std::time::Duration;

use linerate_model::environment::InterfaceCounters;
use linerate_model::throughput::Flow;
use linerate_shape::autorate::Input;
use linerate_shape::link::Direction;
use linerate_shape::plan::Plan;
use linerate_sys::Result;
use linerate_sys::interface::{Interface, InterfaceWatch};
use linerate_sys::queue_statistics::QueueWatch;
use linerate_sys::time_stamp::ClockPair;
use linerate_units::MonotonicTime;

/// An interface that has gone is looked for this often.
const AGAIN: Duration = Duration::from_secs(1);
/// The civil clock was set when it moved by more than this against the other one since the last look. Slewing, which moves
/// it by half a thousandth at most, is what the delays at rest follow by themselves.
const STEP: Duration = Duration::from_millis(2);

/// Reads an interface again and again.
pub(super) struct LineWatch {
    device: String,
    shaped: [(Flow, Option<String>); 2],
    sockets: Option<Sockets>,
    last: Option<(InterfaceCounters, MonotonicTime)>,
    again: MonotonicTime,
    is_up: bool,
    /// Civil minus monotonic time.
    clocks: i128,
}

struct Sockets {
    interface: InterfaceWatch,
    queues: Vec<(Flow, QueueWatch)>,
}

impl LineWatch {
    /// Begins to read what the plan shapes.
    pub(super) fn new(plan: &Plan, now: MonotonicTime) -> Result<Self> {
        let device = |direction| plan.shaped_device(direction).map(str::to_owned);
        let mut watch = Self {
            device: plan.device.clone(),
            shaped: [(Flow::Up, device(Direction::Up)), (Flow::Down, device(Direction::Down))],
            sockets: None,
            last: None,
            again: now,
            is_up: true,
            clocks: offset(),
        };
        watch.sockets = Some(watch.open()?);
        Ok(watch)
    }

    fn open(&self) -> Result<Sockets> {
        let interface = InterfaceWatch::new(Interface::by_name(&self.device)?.index)?;
        // A direction that is not shaped here has no queue to look at.
        let queues = self.shaped.iter().filter_map(|(flow, device)| {
            device.as_ref().and_then(|device| QueueWatch::new(device).ok()).map(|watch| (*flow, watch))
        });
        let queues = queues.collect();
        Ok(Sockets { interface, queues })
    }

    /// The queues' devices may be others now: they are looked for anew.
    pub(super) fn look_anew(&mut self) {
        self.sockets = self.open().ok();
        self.last = None;
    }

    /// Whether the link is up.
    pub(super) const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Reads all of it. What waits comes before what was carried, as the controller wants it.
    pub(super) fn read(&mut self, now: MonotonicTime, give: &mut dyn FnMut(Input)) {
        if self.clock_was_set() {
            give(Input::ClockStepped);
        }
        if self.sockets.is_none() && now >= self.again {
            self.again = now + AGAIN;
            self.look_anew();
        }
        let read = self.sockets.as_mut().map(|sockets| sockets.interface.read_with_state());
        let (counters, is_up) = match read {
            Some(Ok((counters, is_up))) => (Some(counters), is_up),
            Some(Err(_)) => {
                self.sockets = None;
                (None, false)
            }
            None => (None, false),
        };
        if is_up != self.is_up {
            self.is_up = is_up;
            self.last = None;
            give(Input::Link { up: is_up });
        }
        let Some(counters) = counters.filter(|_| is_up) else { return };
        for (flow, queue) in self.sockets.iter_mut().flat_map(|sockets| &mut sockets.queues) {
            // A tree that has gone holds nothing; that it has gone is found elsewhere.
            if let Ok(Some(backlog)) = queue.backlog() {
                give(Input::Backlog { direction: *flow, backlog });
            }
        }
        if let Some((before, at)) = self.last.replace((counters, now)) {
            let passed = counters.since(&before);
            let over = now.since(at);
            if !over.is_zero() {
                give(Input::Achieved { up: passed.sent.bytes, down: passed.received.bytes, over });
            }
        }
    }

    fn clock_was_set(&mut self) -> bool {
        let (before, now) = (self.clocks, offset());
        self.clocks = now;
        now.abs_diff(before) > STEP.as_nanos()
    }
}

/// Civil time minus monotonic time in nanoseconds.
fn offset() -> i128 {
    let pair = ClockPair::new().now();
    let nanoseconds = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
    nanoseconds(pair.wall.since_unix_epoch()) - nanoseconds(pair.monotonic.since_epoch())
}
