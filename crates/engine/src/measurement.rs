//! A running test: starts the streams, keeps the interval clock, samples the kernel, and sums up the results.
//!
//! Owned by the client's or the server's driver. All of it runs on the driver's thread; the data threads only count.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_model::far::HostEvidence;
use linerate_model::parameters::{EndCondition, TestParameters, TestProtocol};
use linerate_model::sample::{IntervalReport, StreamInterval};
use linerate_model::stream::StreamRole;
use linerate_sys::clock::{self, CpuTime};
use linerate_sys::options;
use linerate_sys::process::TimeSliceChange;
use linerate_units::{ByteCount, MonotonicTime};

use crate::diagnose::SAMPLING_INTERVAL;
use crate::host_watch::HostWatch;
use crate::reservoir::{CLIENT_SAMPLES, SERVER_SAMPLES};
use crate::stream::{ConnectedStream, SLOW_BURST, SessionState, StreamFailure, StreamOptions, TestPhase};
use crate::tracked::TrackedStream;

/// Longest wait at the end for a sender's current write, and the polling interval of that wait.
const MAX_LAST_WRITE_WAIT: Duration = Duration::from_millis(20);
const LAST_WRITE_POLL_INTERVAL: Duration = Duration::from_micros(100);

/// Time slices of a driver, the shortest that the scheduler gives: on time while streams keep all processors busy, where a kernel
/// without preemption let it in up to 38 ms late.
const DRIVER_SLICE: Duration = Duration::from_micros(100);

/// Number of senders that are sampled at full cadence; with more, each gets fewer samples, so that the sum stays the same: a
/// sample holds up the connection (`lock_sock`), and of several streams the sum is of interest.
const SENDERS_AT_FULL_CADENCE: u32 = 2;

/// Longest sampling period that a number of streams, a rate or a round trip causes.
const MAX_SAMPLING_PERIOD: Duration = Duration::from_millis(100);

/// Period of a timed test in which nothing is sampled: of UDP, or of receivers, without details. A server looks at its limits
/// this often when it has many sessions, too. Each wake-up costs what a datagram costs.
const UNSAMPLED_PERIOD: Duration = Duration::from_secs(1);

/// Shortest sampling period of a paced sender, whose rate is known,
const MIN_PACED_PERIOD: Duration = Duration::from_millis(50);

/// and the longest one: iperf3 reads the connection once in its default interval. Where details are requested it is a
/// diagnosis' [`SAMPLING_INTERVAL`].
const MAX_PACED_PERIOD: Duration = Duration::from_secs(1);

/// Bursts of a slow paced sender in a sampling period: each sample wakes a thread, as each burst does.
const BURSTS_PER_SAMPLE: u64 = 4;

/// Returns the time between samples of `tcp_info` at which every sample has news: `base`, or longer where there are many
/// senders, or where a paced one, which sends `burst` at once, sends little in it.
fn sampling_period(base: Duration, senders: usize, parameters: &TestParameters, burst: ByteCount) -> Duration {
    let is_timed = matches!(parameters.end, EndCondition::Time(_));
    if senders == 0 || parameters.protocol == TestProtocol::Udp {
        // An exact test ends soon after its last data, which may be lost.
        let is_idle = !parameters.far_details && is_timed;
        return base.max(if is_idle { UNSAMPLED_PERIOD } else { MAX_SAMPLING_PERIOD });
    }
    let senders = u32::try_from(senders).unwrap_or(u32::MAX);
    let shared = base.saturating_mul(senders.div_ceil(SENDERS_AT_FULL_CADENCE));
    let paced = parameters.rate.and_then(|rate| rate.time_to_send(burst * BURSTS_PER_SAMPLE));
    let longest = match (is_timed, parameters.far_details) {
        (true, false) => MAX_PACED_PERIOD,
        (true, true) => SAMPLING_INTERVAL,
        (false, _) => MAX_SAMPLING_PERIOD,
    };
    let paced = paced.map_or(Duration::ZERO, |time| time.clamp(MIN_PACED_PERIOD, longest));
    base.max(shared.min(MAX_SAMPLING_PERIOD)).max(paced)
}

/// Returns the time until a sender's next sample: `period`, or half of its round trip, in which the kernel's view of a
/// connection changes little.
fn time_to_news(period: Duration, round_trip: Option<Duration>) -> Duration {
    round_trip.map_or(period, |time| period.max((time / 2).min(MAX_SAMPLING_PERIOD)))
}

/// Intervals of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasurementIntervals {
    /// Time between interval reports; `None` for none.
    pub interval: Option<Duration>,
    /// Shortest time between samples of `tcp_info`.
    pub sampling: Duration,
}

/// A running or finished test.
pub(crate) struct TestMeasurement {
    pub(crate) streams: Vec<TrackedStream>,
    pub(crate) parameters: Arc<TestParameters>,
    shared: Arc<SessionState>,
    pace: MeasurementIntervals,
    started: MonotonicTime,
    counting_since: Option<MonotonicTime>,
    interval_start: MonotonicTime,
    /// Next tick of the interval clock, on a fixed grid: a late wake-up does not shift later ticks.
    tick: Option<MonotonicTime>,
    next_sample: MonotonicTime,
    ended: Option<MonotonicTime>,
    /// True when the senders had finished before the end: their files had been sent.
    ended_by_files: bool,
    driver_cpu: CpuTime,
    /// Watch on this host, where details were requested.
    host: Option<HostWatch>,
    host_evidence: Option<HostEvidence>,
    /// Time of the last progress, and the bytes moved by then.
    progress: (MonotonicTime, ByteCount),
    /// Short time slices of the driver's thread, while streams keep the processors busy.
    time_slice: Option<TimeSliceChange>,
}

/// Next time to look for a stall of at most `limit`, after data last moved at `progress`: when the limit would be reached, and
/// often enough to know to a quarter of it when data moved. A limit that was reached and ended nothing is looked at no more often.
fn next_stall_check(progress: MonotonicTime, now: MonotonicTime, limit: Duration) -> MonotonicTime {
    let (reached, regular) = (progress + limit, now + limit / 4);
    if reached > now { reached.min(regular) } else { regular }
}

/// Starts to watch this host, where details were requested. It has to precede the start of the test at both ends: programs for
/// the kernel's events take a moment to load, on a busy host a long one.
pub(crate) fn watch_host(remote: SocketAddr, parameters: &TestParameters) -> Option<HostWatch> {
    parameters.far_details.then(|| HostWatch::start(remote, parameters.kernel_events))
}

impl TestMeasurement {
    /// Starts the threads of `streams`, with the watch on this host, if any.
    ///
    /// # Errors
    ///
    /// The system cannot start another thread; threads already started are stopped.
    pub(crate) fn start(
        streams: Vec<ConnectedStream>,
        shared: Arc<SessionState>,
        options: &StreamOptions,
        pace: MeasurementIntervals,
        host: Option<HostWatch>,
    ) -> io::Result<Self> {
        let now = clock::monotonic_now();
        let counting = shared.phase() == TestPhase::Counting;
        let samples = if options.memory.is_limited() { SERVER_SAMPLES } else { CLIENT_SAMPLES };
        let senders = streams.iter().filter(|stream| stream.description.role == StreamRole::Sender).count();
        let burst = streams.first().map_or(SLOW_BURST, ConnectedStream::slow_burst);
        let sampling = sampling_period(pace.sampling, senders, &options.parameters, burst);
        let tracked = |stream| TrackedStream::new(stream, options.parameters.far_details, samples);
        let mut measurement = Self {
            streams: streams.into_iter().map(tracked).collect(),
            parameters: Arc::clone(&options.parameters),
            shared,
            pace: MeasurementIntervals { sampling, ..pace },
            started: now,
            counting_since: counting.then_some(now),
            interval_start: now,
            tick: pace.interval.map(|interval| now + interval),
            next_sample: now,
            ended: None,
            ended_by_files: false,
            driver_cpu: clock::thread_cpu_usage(),
            host,
            host_evidence: None,
            progress: (now, ByteCount::ZERO),
            time_slice: None,
        };
        if counting {
            measurement.shared.start_counting(measurement.time_limit());
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
        // Set after the streams have started, which would inherit it. A driver that is late at times is no reason to fail.
        measurement.time_slice = TimeSliceChange::new(DRIVER_SLICE).ok();
        Ok(measurement)
    }

    /// Latest time of the next call of [`TestMeasurement::advance`].
    pub(crate) fn next_wakeup(&self) -> MonotonicTime {
        self.time_limit().map_or(self.next_duty(), |limit| limit.min(self.next_duty()))
    }

    /// Time of the next duty of [`TestMeasurement::advance`]. A server waits for this only: the client ends the test, and
    /// its message may arrive a round trip and a full queue after the time limit.
    pub(crate) fn next_duty(&self) -> MonotonicTime {
        let phase_change = self.counting_since.is_none().then(|| self.started + self.parameters.omit);
        [phase_change, self.next_tick()].into_iter().flatten().fold(self.next_sample, MonotonicTime::min)
    }

    /// Performs the duties due at `now`: samples the kernel, ends the omitted part, reports completed intervals.
    pub(crate) fn advance(&mut self, now: MonotonicTime, mut report: impl FnMut(IntervalReport)) {
        if self.ended.is_some() {
            return;
        }
        let ticks = self.next_tick().is_some_and(|tick| now >= tick);
        if now >= self.next_sample || ticks {
            // A completed interval reads the connections itself: one wake-up for both.
            if !ticks {
                self.streams.iter_mut().for_each(|tracked| tracked.sample_at(now));
            }
            if let Some(host) = &mut self.host {
                host.sample(now);
            }
            let shortest = self.streams.iter().filter_map(TrackedStream::round_trip).min();
            self.next_sample = now + time_to_news(self.pace.sampling, shortest);
        }
        if self.counting_since.is_none() && now >= self.started + self.parameters.omit {
            if self.pace.interval.is_some() {
                report(self.close_interval(now));
            }
            self.counting_since = Some(now);
            self.shared.start_counting(self.time_limit());
            self.streams.iter_mut().for_each(TrackedStream::start_counting);
            self.interval_start = now;
            self.tick = self.pace.interval.map(|interval| now + interval);
        }
        if self.next_tick().is_some_and(|tick| now >= tick) {
            report(self.close_interval(now));
        }
    }

    /// Ends the test: stops the streams, freezes the counters, reports the remainder of the last interval.
    pub(crate) fn end(&mut self, report: impl FnOnce(IntervalReport)) {
        if self.ended.is_some() {
            return;
        }
        // After the stop every sender has finished.
        self.ended_by_files = self.files_are_sent();
        self.shared.stop();
        let now = self.await_last_writes();
        drop(self.time_slice.take());
        self.ended = Some(now);
        self.host_evidence = self.host.take().map(HostWatch::finish);
        self.shared.stop();
        if self.parameters.protocol == TestProtocol::Udp {
            // Bytes of a sender's current write leave after this moment and count: the receiver counts them, too.
            let senders =
                self.streams.iter_mut().filter(|tracked| tracked.stream.description.role == StreamRole::Sender);
            senders.for_each(|tracked| tracked.stream.join());
        }
        // The counters are frozen before the last interval is taken, so that the intervals add up to the total.
        self.streams.iter_mut().for_each(TrackedStream::freeze);
        if !self.is_remnant(now) {
            report(self.close_interval(now));
        }
    }

    /// Waits for the senders' current writes: their bytes would arrive uncounted. Returns the time of the last
    /// progress. A write blocked by a full window is not awaited: see [`TrackedStream::freeze`].
    fn await_last_writes(&self) -> MonotonicTime {
        let is_writing = |tracked: &TrackedStream| {
            tracked.stream.description.role == StreamRole::Sender && tracked.stream.counters.finished_at().is_none()
        };
        let start = clock::monotonic_now();
        let (mut moved, mut last) = (self.bytes_moved(), start);
        while self.streams.iter().any(is_writing) && clock::monotonic_now().since(start) < MAX_LAST_WRITE_WAIT {
            clock::sleep_until(clock::monotonic_now() + LAST_WRITE_POLL_INTERVAL);
            let so_far = self.bytes_moved();
            if so_far != moved {
                (moved, last) = (so_far, clock::monotonic_now());
            }
        }
        last
    }

    /// Lets no more data move; the test goes on until the client ends it.
    pub(crate) fn halt(&self) {
        self.shared.stop();
    }

    /// Stops the streams and waits for them; afterwards their processor time is known.
    pub(crate) fn stop_and_join(&mut self) {
        self.shared.stop();
        self.streams.iter_mut().for_each(|tracked| tracked.stream.join());
    }

    /// Shared state that a driver polls for completed or failed streams.
    pub(crate) fn shared(&self) -> &SessionState {
        &self.shared
    }

    /// True when the client must end the test now.
    pub(crate) fn is_over(&self, now: MonotonicTime) -> bool {
        match self.parameters.end {
            EndCondition::Time(_) => self.time_limit().is_some_and(|limit| now >= limit) || self.files_are_sent(),
            EndCondition::Bytes(_) | EndCondition::Blocks(_) => {
                let all_received = self.shared.receive_budget.is_exhausted();
                self.counting_since.is_some()
                    && self.streams.iter().all(|tracked| match tracked.stream.description.role {
                        StreamRole::Receiver if all_received => true,
                        _ => tracked.is_complete(&self.parameters),
                    })
            }
        }
    }

    /// True after the omitted part.
    pub(crate) const fn is_counting(&self) -> bool {
        self.counting_since.is_some()
    }

    /// Failure that ends the test, when all streams of one direction have failed.
    pub(crate) fn broken(&mut self) -> Option<StreamFailure> {
        let mut reason = None;
        for role in [StreamRole::Sender, StreamRole::Receiver] {
            let mut of_role = self.streams.iter().filter(|tracked| tracked.stream.description.role == role).peekable();
            if of_role.peek().is_some() && of_role.all(|tracked| tracked.stream.counters.finished_at().is_some()) {
                reason = self
                    .streams
                    .iter()
                    .filter(|tracked| tracked.stream.description.role == role)
                    .find_map(|tracked| tracked.stream.counters.take_failure())
                    .or(reason);
            }
        }
        reason
    }

    /// Time since data last moved on any stream.
    pub(crate) fn stalled_for(&mut self, now: MonotonicTime) -> Duration {
        let moved = self.bytes_moved();
        if moved != self.progress.1 {
            self.progress = (now, moved);
        }
        now.since(self.progress.0)
    }

    /// Latest time of the next call of [`TestMeasurement::stalled_for`] for a stall of at most `limit`.
    pub(crate) fn next_stall_check(&self, now: MonotonicTime, limit: Duration) -> MonotonicTime {
        next_stall_check(self.progress.0, now, limit)
    }

    /// Payload bytes moved so far on all streams, the omitted part included.
    pub(crate) fn bytes_moved(&self) -> ByteCount {
        self.streams.iter().map(TrackedStream::bytes_moved).sum()
    }

    /// Payload bytes received so far on all streams, the omitted part included.
    pub(crate) fn bytes_received(&self) -> ByteCount {
        let receivers = self.streams.iter().filter(|tracked| tracked.stream.description.role == StreamRole::Receiver);
        receivers.map(TrackedStream::bytes_moved).sum()
    }

    /// True when a receiver has unread data: on a busy host its thread may have to wait.
    pub(crate) fn has_unread(&self) -> bool {
        let receivers = self.streams.iter().filter(|tracked| tracked.stream.description.role == StreamRole::Receiver);
        receivers
            .filter(|tracked| tracked.stream.counters.finished_at().is_none())
            .any(|tracked| options::unread_bytes(&tracked.stream).is_ok_and(|unread| !unread.is_zero()))
    }

    /// Closes the streams and waits for their threads: a blocked one returns at once.
    pub(crate) fn close_streams(&mut self) {
        self.shared.stop();
        self.streams.iter_mut().for_each(|tracked| tracked.stream.close());
    }

    /// Counted time, up to `now` or the end.
    pub(crate) fn elapsed(&self, now: MonotonicTime) -> Duration {
        let end = self.ended.unwrap_or(now);
        self.counting_since.map_or(Duration::ZERO, |since| end.since(since))
    }

    /// Total time of the test, the omitted part included.
    pub(crate) fn wall_time(&self, now: MonotonicTime) -> Duration {
        self.ended.unwrap_or(now).since(self.started)
    }

    /// Time in which one stream moved data: for exact tests, up to its last byte.
    pub(crate) fn stream_time(&self, tracked: &TrackedStream) -> Duration {
        let Some(since) = self.counting_since else { return Duration::ZERO };
        let end = self.ended.unwrap_or_else(clock::monotonic_now);
        let exact = !matches!(self.parameters.end, EndCondition::Time(_)) || self.ended_by_files;
        let counters = &tracked.stream.counters;
        let last_byte = match tracked.stream.description.role {
            StreamRole::Sender => counters.finished_at(),
            StreamRole::Receiver => counters.last_arrival().map(|at| at.max(since)),
        };
        let last = last_byte.filter(|_| exact).map_or(end, |at| at.min(end));
        last.since(since)
    }

    /// Evidence about this host; `None` before the end, and unless requested.
    pub(crate) const fn host_evidence(&self) -> Option<&HostEvidence> {
        self.host_evidence.as_ref()
    }

    /// Processor time of the driver's thread and all streams' since the start; complete after
    /// [`TestMeasurement::stop_and_join`].
    pub(crate) fn cpu(&self) -> CpuTime {
        let driver = clock::thread_cpu_usage();
        let mut sum = CpuTime {
            user: driver.user.saturating_sub(self.driver_cpu.user),
            system: driver.system.saturating_sub(self.driver_cpu.system),
        };
        for tracked in &self.streams {
            let cpu = tracked.stream.counters.cpu().unwrap_or_default();
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
        // `end` reports the last interval with its true duration: neither a tick at the limit nor a remainder after it
        // may add a tiny interval. What an iperf3 sends long after its end has a line of its own, as in iperf3.
        let interval = self.pace.interval?;
        let allowance = if self.parameters.far_details { interval } else { interval / 10 };
        match self.time_limit() {
            Some(limit) if tick >= limit => Some(tick + allowance),
            _ => Some(tick),
        }
    }

    /// A last interval shorter than a tenth of the nominal length in which nothing moved is not reported. Without
    /// intervals (`-i 0`) the whole test is the last one, as in iperf3.
    fn is_remnant(&self, now: MonotonicTime) -> bool {
        let Some(nominal) = self.pace.interval else { return false };
        now.since(self.interval_start) < nominal / 10
            && self.streams.iter().all(|tracked| tracked.moved_in_interval().is_zero())
    }

    fn close_interval(&mut self, now: MonotonicTime) -> IntervalReport {
        let zero = self.counting_since.unwrap_or(self.started);
        let streams: Vec<StreamInterval> = self.streams.iter_mut().map(TrackedStream::close_interval).collect();
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

    /// A file that has been sent completely ends a timed test early, as in iperf3.
    fn files_are_sent(&self) -> bool {
        !self.streams.is_empty()
            && self.streams.iter().all(|tracked| {
                tracked.stream.description.role == StreamRole::Sender && tracked.stream.counters.finished_at().is_some()
            })
    }
}

#[cfg(test)]
mod tests {
    use linerate_sys::poll::Waker;
    use linerate_units::BitRate;

    use super::*;
    use crate::stream::ByteLimits;

    #[test]
    fn connections_are_sampled_as_often_as_they_have_news() {
        let tcp = |megabits: Option<f64>| TestParameters {
            rate: megabits.map(|rate| BitRate::from_bits_per_second(rate * 1e6)),
            ..TestParameters::default()
        };
        let udp = TestParameters { protocol: TestProtocol::Udp, ..TestParameters::default() };
        let detailed = TestParameters { far_details: true, ..udp.clone() };
        let end = EndCondition::Bytes(ByteCount::from_mebibytes(1));
        let exact = |megabits: f64| TestParameters { end, ..tcp(Some(megabits)) };
        let exact_udp = TestParameters { end, ..udp.clone() };
        for (base, senders, parameters, expected) in [
            (10, 1, tcp(None), 10),
            (10, 2, tcp(None), 10),
            (10, 8, tcp(None), 40),
            (10, 128, tcp(None), 100),
            (10, 1, tcp(Some(100.0)), 50),
            (10, 1, tcp(Some(11.584)), 80),
            (10, 1, tcp(Some(5.792)), 160),
            (10, 1, tcp(Some(0.9)), 1000),
            (10, 1, TestParameters { far_details: true, ..tcp(Some(0.9)) }, 250),
            (10, 8, tcp(Some(100.0)), 50),
            (10, 128, tcp(Some(100.0)), 100),
            (10, 1, exact(1.0), 100),
            // Nothing to sample but the last one, nothing at all, the host, and an end to be noticed.
            (10, 0, tcp(None), 1000),
            (10, 4, udp, 1000),
            (10, 1, detailed, 100),
            (10, 1, exact_udp, 100),
            // A server with many sessions.
            (500, 1, tcp(None), 500),
        ] {
            let period = sampling_period(Duration::from_millis(base), senders, &parameters, SLOW_BURST);
            assert_eq!(period, Duration::from_millis(expected), "{base} ms, {senders} senders, {:?}", parameters.rate);
        }
        let large = sampling_period(Duration::from_millis(10), 1, &tcp(Some(11.584)), SLOW_BURST * 2);
        assert_eq!(large, Duration::from_millis(160), "bursts of twice the size");
    }

    #[test]
    fn the_streams_know_the_end_of_a_timed_test_once_it_counts() {
        let length = Duration::from_secs(3);
        for (end, omit, expected) in [
            (EndCondition::Time(length), 0, Some(length)),
            (EndCondition::Time(length), 1, Some(length)),
            (EndCondition::Time(Duration::ZERO), 0, None),
            (EndCondition::Bytes(ByteCount::from_mebibytes(1)), 1, None),
        ] {
            let omit = Duration::from_secs(omit);
            let parameters = TestParameters { end, omit, ..TestParameters::default() };
            let phase = if omit.is_zero() { TestPhase::Counting } else { TestPhase::Omitted };
            let mut measurement = without_streams(parameters, phase);
            let counts_at = measurement.started + omit;
            if !omit.is_zero() {
                assert_eq!(measurement.shared.end(), None, "the omitted part has begun only");
                measurement.advance(counts_at, |_| {});
            }
            assert_eq!(measurement.shared.end(), expected.map(|time| counts_at + time), "{end:?} after {omit:?}");
        }
    }

    fn without_streams(parameters: TestParameters, phase: TestPhase) -> TestMeasurement {
        let waker = Arc::new(Waker::new().expect("eventfd"));
        let shared = Arc::new(SessionState::new(phase, ByteLimits::default(), waker));
        let options = StreamOptions::plain(parameters);
        let pace = MeasurementIntervals { interval: None, sampling: Duration::from_secs(1) };
        TestMeasurement::start(Vec::new(), shared, &options, pace, None).expect("no thread to start")
    }

    #[test]
    fn a_stall_is_looked_for_in_time_and_never_in_a_loop() {
        let at = |milliseconds: u64| MonotonicTime::from_nanos(milliseconds * 1_000_000);
        let limit = Duration::from_millis(400);
        for (progress, now, expected) in [(0, 0, 100), (0, 90, 190), (0, 350, 400), (0, 400, 500), (0, 9000, 9100)] {
            assert_eq!(next_stall_check(at(progress), at(now), limit), at(expected), "{progress} {now}");
        }
    }

    #[test]
    fn a_long_round_trip_has_news_less_often() {
        for (period, round_trip, expected) in
            [(10, None, 10), (10, Some(1), 10), (10, Some(117), 58), (10, Some(900), 100), (500, Some(117), 500)]
        {
            let until = time_to_news(Duration::from_millis(period), round_trip.map(Duration::from_millis));
            assert_eq!(until.as_millis(), expected, "{period} ms, {round_trip:?}");
        }
    }
}
