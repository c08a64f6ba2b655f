//! Autorate session: one thread that probes, reads counters, runs the controller and applies its outputs.

use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_shape::autorate::{
    ControllerInput, ControllerOutput, ControllerSettings, ControllerState, RateController, probe_interval,
};
use linerate_shape::verify::PerDirection;
use linerate_sys::clock;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::signals::InterruptSignals;
use linerate_units::{BitRate, MonotonicTime};

use super::link_monitor::LinkMonitor;
use super::log_file::AutorateLog;
use super::probes::ReflectorProbes;
use super::settings::AutorateSettings;
use super::{AutorateEvent, AutorateEvents};
use crate::shaping::error::ShapeError;
use crate::shaping::shaped::ShaperControl;

/// Time between two events with the controller.
const EACH: Duration = Duration::from_secs(1);
/// Interval between two samples of the interface.
const READING: Duration = Duration::from_millis(100);
/// Minimum time between two increases, so that both directions change together; decreases are immediate.
const UPWARDS: Duration = Duration::from_millis(20);
/// Watchdog limit of the shaper should this process die, and the interval of its renewals.
const STANDS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));
/// Consecutive failures to set rates after which the session ends.
const ATTEMPTS: u32 = 10;
/// Timer slack, so that the kernel may coalesce wake-ups.
const SLACK: Duration = Duration::from_millis(1);

/// A running autorate session.
pub(super) struct AutorateSession<'a> {
    shaped: &'a mut dyn ShaperControl,
    stop: InterruptSignals,
    controller: RateController,
    probes: ReflectorProbes,
    line: LinkMonitor,
    log: Option<AutorateLog>,
    events: AutorateEvents<'a>,
    next_second: MonotonicTime,
    /// Rates requested by the controller, and the time of the last change.
    wanted: PerDirection<Option<BitRate>>,
    set_at: Option<MonotonicTime>,
    failures: u32,
    until: Option<MonotonicTime>,
    next_reading: MonotonicTime,
    next_renewal: MonotonicTime,
}

impl<'a> AutorateSession<'a> {
    pub(super) fn begin(
        shaped: &'a mut dyn ShaperControl,
        settings: &AutorateSettings,
        stop: InterruptSignals,
        events: AutorateEvents<'a>,
    ) -> Result<Self, ShapeError> {
        let now = clock::monotonic_now();
        let line = shaped.line();
        let interval = probe_interval(settings.law, [line.up, line.down]);
        let probes = ReflectorProbes::open(&settings.reflectors, &shaped.plan().device, interval, now)?;
        let (reflectors, spare) = probes.reflector_ids();
        let controller = RateController::new(
            &ControllerSettings {
                law: settings.law,
                up: settings.bounds.up,
                down: settings.bounds.down,
                reflectors,
                spare,
                probe_interval: probes.interval(),
                largest_packet: line.full_packet(),
            },
            now,
        );
        let line = LinkMonitor::new(shaped.plan(), now)?;
        let log = settings.log.as_deref().map(AutorateLog::create).transpose()?;
        // Failure only costs more wake-ups.
        let _ = clock::set_timer_slack(SLACK);
        events(&AutorateEvent::Begun { line: shaped.line(), now });
        Ok(Self {
            line,
            log,
            stop,
            controller,
            probes,
            events,
            next_second: now,
            shaped,
            wanted: PerDirection { up: None, down: None },
            set_at: None,
            failures: 0,
            until: settings.time.map(|time| now + time),
            next_reading: now,
            next_renewal: now + STANDS.1,
        })
    }

    /// Runs until a signal arrives or the time is over.
    pub(super) fn follow(&mut self) -> Result<(), ShapeError> {
        loop {
            let now = clock::monotonic_now();
            if self.stop.pending().is_some() || self.until.is_some_and(|until| now >= until) {
                break;
            }
            self.turn(now)?;
            self.wait()?;
        }
        self.log.as_mut().map_or(Ok(()), AutorateLog::flush)
    }

    fn turn(&mut self, now: MonotonicTime) -> Result<(), ShapeError> {
        let was_up = self.line.is_up();
        if was_up {
            self.probes.send(now);
        }
        let (controller, events) = (&mut self.controller, &mut *self.events);
        let mut give = |input: ControllerInput| {
            events(&AutorateEvent::Input(&input));
            controller.handle(input, now);
        };
        self.probes.collect(now, &mut give);
        if now >= self.next_reading {
            self.next_reading = (self.next_reading + READING).max(now + READING / 2);
            self.line.read(now, &mut give);
            give(ControllerInput::Tick);
        }
        if self.line.is_up() && !was_up {
            self.stand_again()?;
        }
        self.take_outputs(now)?;
        self.set_rates(now)?;
        self.renew(now)?;
        if now >= self.next_second {
            self.log.as_mut().map_or(Ok(()), AutorateLog::flush)?;
            self.next_second = now + EACH;
            (self.events)(&AutorateEvent::Second(&self.controller));
        }
        Ok(())
    }

    /// Sets up a tree that disappeared with the link again.
    fn stand_again(&mut self) -> Result<(), ShapeError> {
        let is_whole = self.shaped.differences().is_ok_and(|differences| differences.is_empty());
        if !is_whole {
            // Remains of the tree are removed first.
            let _ = self.shaped.remove();
            self.shaped.set_up()?;
        }
        self.line.look_anew();
        self.set_at = None;
        Ok(())
    }

    fn take_outputs(&mut self, now: MonotonicTime) -> Result<(), ShapeError> {
        while let Some(output) = self.controller.poll() {
            match output {
                ControllerOutput::SetRate { direction: Direction::Up, rate } => self.wanted.up = Some(rate),
                ControllerOutput::SetRate { direction: Direction::Down, rate } => self.wanted.down = Some(rate),
                ControllerOutput::State(state) => {
                    self.probes.pause(matches!(state, ControllerState::Idle | ControllerState::LinkDown), now);
                    self.next_second = now;
                    (self.events)(&AutorateEvent::State(state));
                }
                ControllerOutput::Replace { old, new } => {
                    let (failed, next) = (self.probes.display_name(old), self.probes.display_name(new));
                    (self.events)(&AutorateEvent::Replaced { old: &failed, new: &next });
                    // An unreachable one does not answer and is replaced later.
                    let _ = self.probes.replace(old, new);
                }
                ControllerOutput::Log(line) => {
                    (self.events)(&AutorateEvent::Line(&line));
                    self.log.as_mut().map_or(Ok(()), |log| log.write(&line))?;
                }
            }
        }
        Ok(())
    }

    /// Applies the requested rates: decreases at once, increases some time after the last change.
    fn set_rates(&mut self, now: MonotonicTime) -> Result<(), ShapeError> {
        let line = self.shaped.line();
        // A direction that is not shaped has no rate to change.
        let up = self.wanted.up.filter(|rate| line.up.is_some_and(|set| set != *rate));
        let down = self.wanted.down.filter(|rate| line.down.is_some_and(|set| set != *rate));
        let falls = up.is_some_and(|rate| line.up.is_some_and(|set| rate < set))
            || down.is_some_and(|rate| line.down.is_some_and(|set| rate < set));
        let waits = !falls && self.set_at.is_some_and(|at| now.since(at) < UPWARDS);
        if (up.is_none() && down.is_none()) || waits || !self.line.is_up() {
            return Ok(());
        }
        self.set_at = Some(now);
        let begun = clock::monotonic_now();
        match self.shaped.set_rates(PerDirection { up, down }) {
            Ok(()) => {
                self.failures = 0;
                self.wanted = PerDirection { up: None, down: None };
                (self.events)(&AutorateEvent::RatesSet(clock::monotonic_now().since(begun)));
                Ok(())
            }
            Err(error) if self.failures >= ATTEMPTS => Err(error),
            Err(_) => {
                // The link may be going down, or another program may be changing the tree.
                self.failures += 1;
                Ok(())
            }
        }
    }

    fn renew(&mut self, now: MonotonicTime) -> Result<(), ShapeError> {
        if now < self.next_renewal {
            return Ok(());
        }
        self.next_renewal = now + STANDS.1;
        self.shaped.renew(STANDS.0)
    }

    fn wait(&self) -> Result<(), ShapeError> {
        let mut until = self.next_reading;
        until = self.probes.due().filter(|_| self.line.is_up()).map_or(until, |due| due.min(until));
        until = self.until.map_or(until, |end| end.min(until));
        let now = clock::monotonic_now();
        let sockets: Vec<_> = self.probes.descriptors().collect();
        let mut items: Vec<_> = sockets.iter().map(|socket| PollItem::new(socket, PollInterest::READ)).collect();
        items.push(PollItem::new(&self.stop, PollInterest::READ));
        poll::wait(&mut items, Some(until.since(now)))?;
        Ok(())
    }

    /// Reports the end.
    pub(super) fn end(&mut self) {
        (self.events)(&AutorateEvent::Ended(&self.controller));
    }

    /// Removes the shaper.
    pub(super) fn take_down(&mut self) -> Result<(), ShapeError> {
        self.shaped.remove()
    }
}
