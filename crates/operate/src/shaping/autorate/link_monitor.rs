//! Monitor of the interface's counters, its shaper's backlog, its link state and clock steps.

use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_model::environment::InterfaceCounters;
use linerate_shape::autorate::ControllerInput;
use linerate_shape::plan::ShaperPlan;
use linerate_sys::Result;
use linerate_sys::interface::{InterfaceWatch, NetworkInterface};
use linerate_sys::queue_statistics::QueueWatch;
use linerate_sys::time_stamp::ClockPair;
use linerate_units::MonotonicTime;

/// Retry interval for an interface that is gone.
const AGAIN: Duration = Duration::from_secs(1);
/// Movement of the civil clock against the monotonic clock between two samples that counts as a step. Slewing, at most
/// half a thousandth, is absorbed by the delays at rest.
const STEP: Duration = Duration::from_millis(2);

/// Samples an interface periodically.
pub(super) struct LinkMonitor {
    device: String,
    shaped: [(Direction, Option<String>); 2],
    sockets: Option<MonitorSockets>,
    last: Option<(InterfaceCounters, MonotonicTime)>,
    again: MonotonicTime,
    is_up: bool,
    /// Civil minus monotonic time, in nanoseconds.
    clocks: i128,
}

struct MonitorSockets {
    interface: InterfaceWatch,
    queues: Vec<(Direction, QueueWatch)>,
}

impl LinkMonitor {
    /// Opens the devices that the plan shapes.
    pub(super) fn new(plan: &ShaperPlan, now: MonotonicTime) -> Result<Self> {
        let device = |direction| plan.shaped_device(direction).map(str::to_owned);
        let mut watch = Self {
            device: plan.device.clone(),
            shaped: [(Direction::Up, device(Direction::Up)), (Direction::Down, device(Direction::Down))],
            sockets: None,
            last: None,
            again: now,
            is_up: true,
            clocks: offset(),
        };
        watch.sockets = Some(watch.open()?);
        Ok(watch)
    }

    fn open(&self) -> Result<MonitorSockets> {
        let interface = InterfaceWatch::new(NetworkInterface::by_name(&self.device)?.index)?;
        // A direction that is not shaped has no queue.
        let queues = self.shaped.iter().filter_map(|(flow, device)| {
            device.as_ref().and_then(|device| QueueWatch::new(device).ok()).map(|watch| (*flow, watch))
        });
        let queues = queues.collect();
        Ok(MonitorSockets { interface, queues })
    }

    /// Reopens the queues, whose devices may have changed.
    pub(super) fn look_anew(&mut self) {
        self.sockets = self.open().ok();
        self.last = None;
    }

    /// True when the link is up.
    pub(super) const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Samples everything: backlog before carried bytes, in the controller's order.
    pub(super) fn read(&mut self, now: MonotonicTime, give: &mut dyn FnMut(ControllerInput)) {
        if self.clock_was_set() {
            give(ControllerInput::ClockStepped);
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
            give(ControllerInput::Link { up: is_up });
        }
        let Some(counters) = counters.filter(|_| is_up) else { return };
        for (flow, queue) in self.sockets.iter_mut().flat_map(|sockets| &mut sockets.queues) {
            // A missing tree has no backlog; its loss is detected elsewhere.
            if let Ok(Some(backlog)) = queue.backlog() {
                give(ControllerInput::Backlog { direction: *flow, backlog });
            }
        }
        if let Some((before, at)) = self.last.replace((counters, now)) {
            let passed = counters.since(&before);
            let over = now.since(at);
            if !over.is_zero() {
                give(ControllerInput::Achieved { up: passed.sent.bytes, down: passed.received.bytes, over });
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
