//! A test while it runs: starts the streams, keeps the interval clock, samples the kernel, and adds up what came out.
//!
//! Both the client's and the server's driver own one. All of it runs on the driver's thread; the data threads only count.

use core::time::Duration;
use std::io;
use std::sync::Arc;

use linerate_model::host::processors::ProcessorTicks;
use linerate_model::parameters::{EndCondition, Protocol, TestParameters};
use linerate_model::sample::{IntervalReport, StreamInterval};
use linerate_model::schema::far::HostEvidence;
use linerate_model::stream::Role;
use linerate_sys::clock::{self, CpuTime};
use linerate_sys::host;
use linerate_sys::options;
use linerate_units::{ByteCount, MonotonicTime, Ratio};

use crate::host_watch::HostWatch;
use crate::stream::{Broken, Phase, Shared, Stream, StreamOptions};
use crate::tracked::Tracked;

/// At the end, a sender has this long to finish the write that it is in, and is looked at this often.
const LAST_WRITE: Duration = Duration::from_millis(20);
const LAST_WRITE_LOOK: Duration = Duration::from_micros(100);

/// How a measurement keeps time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Time between interval reports; `None` for none.
    pub interval: Option<Duration>,
    /// Time between readings of `tcp_info`.
    pub sampling: Duration,
}

/// A running or finished test.
pub(crate) struct Measurement {
    pub(crate) streams: Vec<Tracked>,
    pub(crate) parameters: Arc<TestParameters>,
    shared: Arc<Shared>,
    pace: Pace,
    started: MonotonicTime,
    counting_since: Option<MonotonicTime>,
    interval_start: MonotonicTime,
    /// The grid of the interval clock: a late wake-up does not move the ticks after it.
    tick: Option<MonotonicTime>,
    next_sample: MonotonicTime,
    ended: Option<MonotonicTime>,
    driver_cpu: CpuTime,
    host_at_start: Option<ProcessorTicks>,
    /// Share of all processors of this host that was busy during the test.
    pub(crate) host_busy: Option<Ratio>,
    /// The host meanwhile, where details were asked for.
    host: Option<HostWatch>,
    host_evidence: Option<HostEvidence>,
    /// When something last moved, and how much had moved by then.
    progress: (MonotonicTime, ByteCount),
}

impl Measurement {
    /// Starts the threads of `streams`.
    ///
    /// # Errors
    ///
    /// The system has no room for another thread; those already started are stopped again.
    pub(crate) fn start(
        streams: Vec<Stream>,
        shared: Arc<Shared>,
        options: &StreamOptions,
        pace: Pace,
    ) -> io::Result<Self> {
        let now = clock::monotonic_now();
        let counting = shared.phase() == Phase::Counting;
        let mut measurement = Self {
            streams: streams.into_iter().map(|stream| Tracked::new(stream, options.parameters.far_details)).collect(),
            parameters: Arc::clone(&options.parameters),
            shared,
            pace,
            started: now,
            counting_since: counting.then_some(now),
            interval_start: now,
            tick: pace.interval.map(|interval| now + interval),
            next_sample: now,
            ended: None,
            driver_cpu: clock::thread_cpu_usage(),
            host_at_start: host::processor_ticks(),
            host_busy: None,
            host: None,
            host_evidence: None,
            progress: (now, ByteCount::ZERO),
        };
        if options.parameters.far_details {
            measurement.host =
                measurement.streams.first().map(|tracked| HostWatch::start(tracked.stream.description.remote.ip()));
        }
        for tracked in &mut measurement.streams {
            if counting {
                tracked.start_counting();
            }
            if let Err(error) = tracked.stream.start(&measurement.shared, options) {
                measurement.stop_and_join();
                return Err(error);
            }
        }
        Ok(measurement)
    }

    /// When [`Measurement::advance`] is to be called again at the latest.
    pub(crate) fn next_wakeup(&self) -> MonotonicTime {
        self.time_limit().map_or(self.next_duty(), |limit| limit.min(self.next_duty()))
    }

    /// When [`Measurement::advance`] has something to do again. A server waits for this only: the end is the client's to
    /// say, and may be a round trip and a full queue away when the time is over.
    pub(crate) fn next_duty(&self) -> MonotonicTime {
        let phase_change = self.counting_since.is_none().then(|| self.started + self.parameters.omit);
        [phase_change, self.next_tick()].into_iter().flatten().fold(self.next_sample, MonotonicTime::min)
    }

    /// Does what is due at `now`: reads the kernel, ends the omitted part, reports intervals that are over.
    pub(crate) fn advance(&mut self, now: MonotonicTime, mut report: impl FnMut(IntervalReport)) {
        if self.ended.is_some() {
            return;
        }
        if now >= self.next_sample {
            self.streams.iter_mut().for_each(Tracked::sample);
            self.next_sample = now + self.pace.sampling;
        }
        if self.counting_since.is_none() && now >= self.started + self.parameters.omit {
            if self.pace.interval.is_some() {
                report(self.close_interval(now));
            }
            self.shared.start_counting();
            self.streams.iter_mut().for_each(Tracked::start_counting);
            self.counting_since = Some(now);
            self.interval_start = now;
            self.tick = self.pace.interval.map(|interval| now + interval);
        }
        if self.next_tick().is_some_and(|tick| now >= tick) {
            report(self.close_interval(now));
        }
    }

    /// Ends the test: asks the streams to end, freezes the figures, reports what is left of the last interval.
    pub(crate) fn end(&mut self, report: impl FnOnce(IntervalReport)) {
        if self.ended.is_some() {
            return;
        }
        self.shared.stop();
        let now = self.await_last_writes();
        self.ended = Some(now);
        let ticks = self.host_at_start.zip(host::processor_ticks());
        self.host_busy = ticks.and_then(|(start, end)| end.since(&start).busy());
        self.host_evidence = self.host.take().map(|host| host.finish(self.host_busy));
        self.shared.stop();
        if self.parameters.protocol == Protocol::Udp {
            // What a sender has in hand leaves after this moment and counts: the receiver counts it too.
            let senders = self.streams.iter_mut().filter(|tracked| tracked.stream.description.role == Role::Sender);
            senders.for_each(|tracked| tracked.stream.join());
        }
        // The figures stand still before the last interval is taken from them, so that the intervals add up to the total.
        self.streams.iter_mut().for_each(Tracked::freeze);
        if !self.is_remnant(now) {
            report(self.close_interval(now));
        }
    }

    /// Waits for the writes that the senders are in: what they hand over would arrive without having been counted.
    /// Returns when something moved last. What a full window holds up is not waited for: see [`Tracked::freeze`].
    fn await_last_writes(&self) -> MonotonicTime {
        let is_writing = |tracked: &Tracked| {
            tracked.stream.description.role == Role::Sender && tracked.stream.counters.finished_at().is_none()
        };
        let start = clock::monotonic_now();
        let (mut moved, mut last) = (self.bytes_moved(), start);
        while self.streams.iter().any(is_writing) && clock::monotonic_now().since(start) < LAST_WRITE {
            clock::sleep_until(clock::monotonic_now() + LAST_WRITE_LOOK);
            let so_far = self.bytes_moved();
            if so_far != moved {
                (moved, last) = (so_far, clock::monotonic_now());
            }
        }
        last
    }

    /// Asks the streams to end and waits until they have; then their processor time is known.
    pub(crate) fn stop_and_join(&mut self) {
        self.shared.stop();
        self.streams.iter_mut().for_each(|tracked| tracked.stream.join());
    }

    /// What a driver polls to learn that a stream is done or broken.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether the client is to end the test now.
    pub(crate) fn is_over(&self, now: MonotonicTime) -> bool {
        match self.parameters.end {
            EndCondition::Time(_) => self.time_limit().is_some_and(|limit| now >= limit) || self.files_are_sent(),
            EndCondition::Bytes(_) | EndCondition::Blocks(_) => {
                let all_received = self.shared.receive_budget.is_used_up();
                self.counting_since.is_some()
                    && self.streams.iter().all(|tracked| match tracked.stream.description.role {
                        Role::Receiver if all_received => true,
                        _ => tracked.is_complete(&self.parameters),
                    })
            }
        }
    }

    /// Why the test cannot go on, if all streams of one direction have broken.
    pub(crate) fn broken(&mut self) -> Option<Broken> {
        let mut reason = None;
        for role in [Role::Sender, Role::Receiver] {
            let mut of_role = self.streams.iter().filter(|tracked| tracked.stream.description.role == role).peekable();
            if of_role.peek().is_some() && of_role.all(|tracked| tracked.stream.counters.finished_at().is_some()) {
                reason = self
                    .streams
                    .iter()
                    .filter(|tracked| tracked.stream.description.role == role)
                    .find_map(|tracked| tracked.stream.counters.take_broken())
                    .or(reason);
            }
        }
        reason
    }

    /// How long nothing has moved on any stream.
    pub(crate) fn stalled_for(&mut self, now: MonotonicTime) -> Duration {
        let moved = self.bytes_moved();
        if moved != self.progress.1 {
            self.progress = (now, moved);
        }
        now.since(self.progress.0)
    }

    /// Payload bytes moved so far, over all streams, the omitted part included.
    pub(crate) fn bytes_moved(&self) -> ByteCount {
        self.streams.iter().map(Tracked::bytes_moved).sum()
    }

    /// Whether something has arrived that a receiver has not read yet: on a busy host its thread may have to wait.
    pub(crate) fn has_unread(&self) -> bool {
        let receivers = self.streams.iter().filter(|tracked| tracked.stream.description.role == Role::Receiver);
        receivers
            .filter(|tracked| tracked.stream.counters.finished_at().is_none())
            .any(|tracked| options::unread_bytes(&tracked.stream).is_ok_and(|unread| !unread.is_zero()))
    }

    /// Closes the streams and waits for their threads: a blocked one returns at once.
    pub(crate) fn close_streams(&mut self) {
        self.shared.stop();
        self.streams.iter_mut().for_each(|tracked| tracked.stream.close());
    }

    /// How long it has counted, up to `now` or its end.
    pub(crate) fn elapsed(&self, now: MonotonicTime) -> Duration {
        let end = self.ended.unwrap_or(now);
        self.counting_since.map_or(Duration::ZERO, |since| end.since(since))
    }

    /// How long the test has run, the omitted part included.
    pub(crate) fn wall_time(&self, now: MonotonicTime) -> Duration {
        self.ended.unwrap_or(now).since(self.started)
    }

    /// How long one stream has moved data: for exact tests, up to its last byte.
    pub(crate) fn stream_time(&self, tracked: &Tracked) -> Duration {
        let Some(since) = self.counting_since else { return Duration::ZERO };
        let end = self.ended.unwrap_or_else(clock::monotonic_now);
        let exact = !matches!(self.parameters.end, EndCondition::Time(_)) || self.files_are_sent();
        let last = exact.then(|| tracked.stream.counters.finished_at()).flatten().map_or(end, |at| at.min(end));
        last.since(since)
    }

    /// What the host tells of the test; `None` before its end, and where nobody asked.
    pub(crate) const fn host_evidence(&self) -> Option<&HostEvidence> {
        self.host_evidence.as_ref()
    }

    /// Processor time of the driver's thread and all streams' since the start; complete after
    /// [`Measurement::stop_and_join`].
    pub(crate) fn cpu(&self) -> CpuTime {
        let driver = clock::thread_cpu_usage();
        let mut sum = CpuTime {
            user: driver.user.saturating_sub(self.driver_cpu.user),
            system: driver.system.saturating_sub(self.driver_cpu.system),
        };
        for tracked in &self.streams {
            let cpu = tracked.stream.counters.cpu();
            sum.user += cpu.user;
            sum.system += cpu.system;
        }
        sum
    }

    fn time_limit(&self) -> Option<MonotonicTime> {
        Some(self.counting_since? + self.parameters.end.time_limit()?)
    }

    fn next_tick(&self) -> Option<MonotonicTime> {
        let tick = self.tick?;
        // The last interval is reported by `end`, with the time that it really took: neither a tick at the limit nor
        // what is left after it may split off a sliver.
        match self.time_limit() {
            Some(limit) if tick >= limit => Some(tick + self.pace.interval?),
            _ => Some(tick),
        }
    }

    /// A last interval of less than a tenth of the nominal length in which nothing moved is not worth a line. Without
    /// intervals (`-i 0`) the whole test is the last one, as in iperf3.
    fn is_remnant(&self, now: MonotonicTime) -> bool {
        let Some(nominal) = self.pace.interval else { return false };
        now.since(self.interval_start) < nominal / 10
            && self.streams.iter().all(|tracked| tracked.moved_in_interval().is_zero())
    }

    fn close_interval(&mut self, now: MonotonicTime) -> IntervalReport {
        let zero = self.counting_since.unwrap_or(self.started);
        let streams: Vec<StreamInterval> = self.streams.iter_mut().map(Tracked::close_interval).collect();
        let report = IntervalReport {
            start: self.interval_start.since(zero),
            end: now.since(zero),
            omitted: self.counting_since.is_none(),
            streams,
        };
        self.interval_start = now;
        if let Some(interval) = self.pace.interval {
            let next = self.tick.map_or(now, |tick| tick + interval);
            self.tick = Some(if next > now { next } else { now + interval });
        }
        report
    }

    /// A file that is sent to its end ends a timed test early, as in iperf3.
    fn files_are_sent(&self) -> bool {
        !self.streams.is_empty()
            && self.streams.iter().all(|tracked| {
                tracked.stream.description.role == Role::Sender && tracked.stream.counters.finished_at().is_some()
            })
    }
}
