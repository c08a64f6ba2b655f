//! Following a line: one thread that probes, reads, asks the controller, and does what it says.

use std::time::Duration;

use linerate_model::throughput::Flow;
use linerate_shape::autorate::{Controller, Input, Output, Settings, State, probe_interval};
use linerate_shape::verify::Both;
use linerate_sys::clock;
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::signals::Interrupts;
use linerate_units::{BitRate, MonotonicTime};

use super::arguments::AutorateSettings;
use super::line_watch::LineWatch;
use super::log_file::LogFile;
use super::probes::Probes;
use super::status::Status;
use crate::cmd::shape::error::ShapeError;
use crate::cmd::shape::shaped::Shaped;

/// Time between two readings of the interface.
const READING: Duration = Duration::from_millis(100);
/// A higher rate is set no sooner than this after the last one, so that both directions' go together; a lower one at once.
const UPWARDS: Duration = Duration::from_millis(20);
/// For how long the shaper is to stand when this process ends without a word, and how often that is said.
const STANDS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));
/// Rates that could not be set so many times in a row will not be.
const ATTEMPTS: u32 = 10;
/// Nothing here needs a precise timer: the kernel may put wake-ups together.
const SLACK: Duration = Duration::from_millis(1);

/// A line that is being followed.
pub(super) struct Course<'a> {
    shaped: &'a mut dyn Shaped,
    stop: Interrupts,
    controller: Controller,
    probes: Probes,
    line: LineWatch,
    log: Option<LogFile>,
    pub(super) status: Status,
    /// What the controller wants, and when rates were last set.
    wanted: Both<Option<BitRate>>,
    set_at: Option<MonotonicTime>,
    failures: u32,
    until: Option<MonotonicTime>,
    next_reading: MonotonicTime,
    next_renewal: MonotonicTime,
}

impl<'a> Course<'a> {
    pub(super) fn begin(
        shaped: &'a mut dyn Shaped,
        settings: &AutorateSettings,
        stop: Interrupts,
    ) -> Result<Self, ShapeError> {
        let now = clock::monotonic_now();
        let line = shaped.line();
        let interval = probe_interval(settings.law, [line.up, line.down]);
        let probes = Probes::open(&settings.reflectors, &shaped.plan().device, interval, now)?;
        let (reflectors, spare) = probes.names();
        let controller = Controller::new(
            &Settings {
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
        let line = LineWatch::new(shaped.plan(), now)?;
        let log = settings.log.as_deref().map(LogFile::create).transpose()?;
        // Without it only more wake-ups are made.
        let _ = clock::set_timer_slack(SLACK);
        Ok(Self {
            line,
            log,
            stop,
            controller,
            probes,
            status: Status::new(settings.verbose, shaped.line(), now),
            shaped,
            wanted: Both { up: None, down: None },
            set_at: None,
            failures: 0,
            until: settings.time.map(|time| now + time),
            next_reading: now,
            next_renewal: now + STANDS.1,
        })
    }

    /// Follows the line until a signal comes or the time is over.
    pub(super) fn follow(&mut self) -> Result<(), ShapeError> {
        loop {
            let now = clock::monotonic_now();
            if self.stop.pending().is_some() || self.until.is_some_and(|until| now >= until) {
                break;
            }
            self.turn(now)?;
            self.wait()?;
        }
        self.log.as_mut().map_or(Ok(()), LogFile::flush)
    }

    fn turn(&mut self, now: MonotonicTime) -> Result<(), ShapeError> {
        let was_up = self.line.is_up();
        if was_up {
            self.probes.send(now);
        }
        let (controller, status) = (&mut self.controller, &mut self.status);
        let mut give = |input: Input| {
            status.note(&input);
            controller.handle(input, now);
        };
        self.probes.collect(now, &mut give);
        if now >= self.next_reading {
            self.next_reading = (self.next_reading + READING).max(now + READING / 2);
            self.line.read(now, &mut give);
            give(Input::Tick);
        }
        if self.line.is_up() && !was_up {
            self.stand_again()?;
        }
        self.take_outputs(now)?;
        self.set_rates(now)?;
        self.renew(now)?;
        if self.status.is_due(now) {
            self.log.as_mut().map_or(Ok(()), LogFile::flush)?;
            self.status.show(now, &self.controller);
        }
        Ok(())
    }

    /// The link is back: a tree that went with it is set up anew.
    fn stand_again(&mut self) -> Result<(), ShapeError> {
        let is_whole = self.shaped.differences().is_ok_and(|differences| differences.is_empty());
        if !is_whole {
            // What has gone cannot be taken down; what is left of it can.
            let _ = self.shaped.take_down();
            self.shaped.set_up()?;
        }
        self.line.look_anew();
        self.set_at = None;
        Ok(())
    }

    fn take_outputs(&mut self, now: MonotonicTime) -> Result<(), ShapeError> {
        while let Some(output) = self.controller.poll() {
            match output {
                Output::SetRate { direction: Flow::Up, rate } => self.wanted.up = Some(rate),
                Output::SetRate { direction: Flow::Down, rate } => self.wanted.down = Some(rate),
                Output::State(state) => {
                    self.probes.pause(matches!(state, State::Idle | State::LinkDown), now);
                    self.status.entered(state, now);
                }
                Output::Replace { old, new } => {
                    self.status.replaced(&self.probes.title(old), &self.probes.title(new));
                    // One that cannot be probed answers nothing, and is replaced in its turn.
                    let _ = self.probes.replace(old, new);
                }
                Output::Log(line) => {
                    self.status.line(&line);
                    self.log.as_mut().map_or(Ok(()), |log| log.write(&line))?;
                }
            }
        }
        Ok(())
    }

    /// Sets what is wanted: less at once, more when some time has passed since the last change.
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
        match self.shaped.set_rates(Both { up, down }) {
            Ok(()) => {
                self.failures = 0;
                self.wanted = Both { up: None, down: None };
                self.status.set(clock::monotonic_now().since(begun));
                Ok(())
            }
            Err(error) if self.failures >= ATTEMPTS => Err(error),
            Err(_) => {
                // The link may be going down at this moment, or another program changing the tree.
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
        let mut items: Vec<_> = sockets.iter().map(|socket| PollItem::new(socket, Interest::READ)).collect();
        items.push(PollItem::new(&self.stop, Interest::READ));
        poll::wait(&mut items, Some(until.since(now)))?;
        Ok(())
    }

    /// The controller, for what it found out.
    pub(super) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The log's file.
    pub(super) fn log_path(&self) -> Option<&std::path::Path> {
        self.log.as_ref().map(LogFile::path)
    }

    /// Takes the shaper down.
    pub(super) fn take_down(&mut self) -> Result<(), ShapeError> {
        self.shaped.take_down()
    }
}
