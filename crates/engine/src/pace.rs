//! Deadline pacer of the blocks of a stream, with bounded bursts.
//!
//! Block `k` of a stream is due at `start + k × interval`. Deadlines are absolute, so timer errors do not add up.
//! A late sender sends the due blocks, but at most [`PacingOptions::burst`] of them back to back; the remaining backlog is
//! sent at twice the rate rather than at once, and backlog older than [`MAX_BACKLOG`] is dropped. iperf3 keeps only
//! the average, and after a stall sends at link rate until it has caught up (esnet/iperf issue 1747).
//!
//! Without a configured burst, the blocks due within [`PacingOptions::timer`] of the first leave as one batch, of at most one
//! GSO train.
//! A host whose timers are late again and again, as where more threads run than processors, would never reach the rate so:
//! its batches grow by twice the usual lateness ([`PacingOptions::keeps_rate`]). A single stall changes nothing.

use core::time::Duration;

use linerate_model::parameters::TestParameters;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount};

/// Longest backlog that a sender makes up for after a stall.
pub const MAX_BACKLOG: Duration = Duration::from_secs(1);

/// Shortest time between two batches for which a sleep pays: a shorter one wakes late anyway. Probe streams batch by it.
pub const TIMER_GRAIN: Duration = Duration::from_micros(100);

/// Longest time between two batches, whatever timer was requested.
pub const MAX_BATCH_TIME: Duration = Duration::from_millis(100);

/// Most bytes of a batch, and one GSO train: rates of which more is due within [`TIMER_GRAIN`] have batches of that time.
pub const MAX_BATCH_BYTES: ByteCount = ByteCount::new(65_507);

/// Number of latest waits that decide how late the timers of this host are: the second longest counts.
const LATENESS_SAMPLES: usize = 5;

/// Longest lateness that batches make up for: that of a host with an order of magnitude more threads than processors.
const MAX_USUAL_LATENESS: Duration = MAX_BATCH_TIME;

/// Configured bursts closer together than this are timed by watching the clock: sleeping is too coarse for them.
const MIN_SLEEP_INTERVAL: Duration = Duration::from_micros(100);

/// Share of an interval by which a block may leave early: absorbs the rounding between quotients and products of times.
const ROUNDING: f64 = 1e-6;

/// Parameters of a pacer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingOptions {
    /// Target rate of payload.
    pub rate: BitRate,
    /// Size of one block.
    pub block: ByteCount,
    /// Most blocks back to back; `None` for the first block and those due in the timer and 100 µs more.
    pub burst: Option<PacketCount>,
    /// Longest time that a block waits for those that leave with it, unless the burst is configured (`--pacing-timer`):
    /// each wake-up costs processor time. Bounded by [`MAX_BATCH_TIME`] and [`MAX_BATCH_BYTES`].
    pub timer: Duration,
    /// True when batches grow where timers are late again and again, unless the burst is configured.
    pub keeps_rate: bool,
}

impl PacingOptions {
    /// Pacing of a test's streams in blocks of `block` at `rate`.
    pub(crate) const fn of(parameters: &TestParameters, rate: BitRate, block: ByteCount) -> Self {
        Self { rate, block, burst: parameters.burst, timer: parameters.pacing_timer, keeps_rate: true }
    }

    /// Time between two blocks, in nanoseconds.
    fn interval_nanos(&self) -> f64 {
        self.block.as_f64() * 8e9 / self.rate.bits_per_second()
    }

    /// Returns the number of blocks that leave together without a configured burst: on time, and after a late timer.
    ///
    /// The first of a batch waits at most the timer for the last one, unless a GSO train or 100 µs are full before.
    fn batch(&self) -> (u64, u64) {
        let due_within = |time: Duration| whole(nanos(time) / self.interval_nanos());
        let filled = (MAX_BATCH_BYTES / self.rate).unwrap_or(MAX_BATCH_TIME).max(TIMER_GRAIN);
        let timer = self.timer.min(MAX_BATCH_TIME);
        let batch = timer.min(filled);
        let train = MAX_BATCH_BYTES.get() / self.block.get().max(1);
        let first = u64::from(TIMER_GRAIN < timer && due_within(timer) < train);
        let ready = due_within(batch) + first;
        (ready.max(1), (due_within(batch.max(TIMER_GRAIN) + TIMER_GRAIN) + first).max(1))
    }
}

/// The schedule of one stream.
#[derive(Clone, Debug)]
pub struct StreamPacer {
    interval_nanos: f64,
    /// Number of blocks that must be due before any leaves.
    ready: u64,
    /// Fewest blocks that leave together.
    group: u64,
    /// Most blocks that leave together.
    burst: u64,
    /// True when the user configured the burst.
    configured: bool,
    start: MonotonicTime,
    /// True when the first block does not wait for its turn.
    is_first_early: bool,
    sent: u64,
    not_before: MonotonicTime,
    /// The sender's last requested wait.
    waiting_until: Option<MonotonicTime>,
    /// Lateness of the timer, as a moving average.
    lateness_nanos: f64,
    /// Lateness of the latest waits, in nanoseconds; `None` where batches do not grow with it.
    latest_waits: Option<[f64; LATENESS_SAMPLES]>,
}

/// Permission of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendPermission {
    /// Send this number of blocks, at least one, back to back.
    Send(PacketCount),
    /// Nothing is due before this time.
    Wait(MonotonicTime),
}

impl StreamPacer {
    /// A schedule that begins at `start`; `None` for a rate of zero or a block of zero bytes.
    #[must_use]
    pub fn new(pacing: PacingOptions, start: MonotonicTime) -> Option<Self> {
        let interval_nanos = pacing.interval_nanos();
        if !interval_nanos.is_finite() || interval_nanos <= 0.0 {
            return None;
        }
        // A configured burst leaves whole when its first block is due; otherwise a batch leaves when its last one is, and
        // takes along the blocks that became due while the timer was late.
        let configured = pacing.burst.is_some();
        let (ready, burst) = pacing.burst.map_or_else(|| pacing.batch(), |burst| (1, burst.get().max(1)));
        let group = if configured { burst } else { 1 };
        Some(Self {
            interval_nanos,
            ready,
            group,
            burst,
            configured,
            start,
            is_first_early: false,
            sent: 0,
            not_before: start,
            waiting_until: None,
            lateness_nanos: 0.0,
            latest_waits: (pacing.keeps_rate && !configured).then_some([0.0; LATENESS_SAMPLES]),
        })
    }

    /// Returns the schedule with a first block that leaves at `now`, before its turn: a user waits for it.
    #[must_use]
    pub(crate) const fn with_first_at(self, now: MonotonicTime) -> Self {
        Self { is_first_early: true, not_before: now, ..self }
    }

    /// Most blocks that leave back to back, where timers are on time.
    #[must_use]
    pub fn burst(&self) -> PacketCount {
        PacketCount::new(self.burst)
    }

    /// True when waits must be timed by watching the clock, because sleeping would be late each time.
    #[must_use]
    pub fn is_precise(&self) -> bool {
        self.configured && self.interval_nanos * as_f64(self.burst) < nanos(MIN_SLEEP_INTERVAL)
    }

    /// Returns the permission at `now`.
    #[must_use]
    pub fn turn(&mut self, now: MonotonicTime) -> SendPermission {
        self.drop_old_backlog(now);
        let due = self.due(now);
        let waited = self.waiting_until.filter(|until| now >= *until);
        let is_first = self.is_first_early && self.sent == 0;
        let is_ready = is_first || due >= self.ready || (due > 0 && waited.is_some());
        if is_ready && now >= self.not_before {
            self.learn_lateness(now, waited);
            return SendPermission::Send(PacketCount::new(due.clamp(self.group, self.burst + self.made_up())));
        }
        // One wait for both reasons: each wake-up costs processor time.
        let until = if is_ready { self.not_before } else { self.wake_up_time(now).max(self.not_before) };
        self.waiting_until = Some(until);
        SendPermission::Wait(until)
    }

    /// Returns the permission at `now` in a test until `end`: blocks that are due then or later never leave, however late the
    /// test is stopped.
    #[must_use]
    pub fn turn_before(&mut self, end: Option<MonotonicTime>, now: MonotonicTime) -> SendPermission {
        let Some(end) = end else { return self.turn(now) };
        let last = MonotonicTime::from_nanos(end.as_nanos().saturating_sub(whole(self.interval_nanos * ROUNDING) + 1));
        match self.turn(now.min(last)) {
            // Nothing will be due: the time is only that of the next look at the clock.
            SendPermission::Wait(_) if now > last => SendPermission::Wait(now + MAX_BACKLOG),
            permission => permission,
        }
    }

    /// Wake-up time for the next batch, advanced by the timer's usual lateness.
    fn wake_up_time(&self, now: MonotonicTime) -> MonotonicTime {
        let complete = self.deadline(self.sent + self.ready - 1);
        let early = MonotonicTime::from_nanos(complete.as_nanos().saturating_sub(whole(self.lateness_nanos)));
        let soonest = now + Duration::from_nanos(1);
        early.max(self.deadline(self.sent)).max(soonest)
    }

    /// Number of blocks by which a batch may grow, as the timers are late again and again.
    fn made_up(&self) -> u64 {
        let Some(mut waits) = self.latest_waits else { return 0 };
        waits.sort_by(f64::total_cmp);
        let usual = waits[LATENESS_SAMPLES - 2].min(nanos(MAX_USUAL_LATENESS));
        if usual < nanos(TIMER_GRAIN) { 0 } else { whole(2.0 * usual / self.interval_nanos) }
    }

    fn learn_lateness(&mut self, now: MonotonicTime, waited: Option<MonotonicTime>) {
        self.waiting_until = None;
        if let Some(until) = waited {
            // A stall is no measure of the timer's lateness.
            let late = nanos(now.since(until));
            if let Some(waits) = &mut self.latest_waits {
                waits.rotate_left(1);
                waits[LATENESS_SAMPLES - 1] = late;
            }
            let late = late.min(nanos(TIMER_GRAIN));
            self.lateness_nanos += (late - self.lateness_nanos) / 8.0;
        }
    }

    /// Records that `count` blocks began to leave at `now`.
    pub fn sent(&mut self, count: PacketCount, now: MonotonicTime) {
        self.sent += count.get();
        // A late sender sends at twice the rate until it has caught up, and never two bursts in one.
        let pause = self.interval_nanos * as_f64(count.get()) / 2.0;
        self.not_before = now + Duration::from_nanos(whole(pause));
    }

    fn due(&self, now: MonotonicTime) -> u64 {
        (whole(nanos(now.since(self.start)) / self.interval_nanos + ROUNDING) + 1).saturating_sub(self.sent)
    }

    fn deadline(&self, block: u64) -> MonotonicTime {
        self.start + Duration::from_nanos(whole((as_f64(block) * self.interval_nanos).ceil()))
    }

    fn drop_old_backlog(&mut self, now: MonotonicTime) {
        let owed_since = self.deadline(self.sent);
        let late = now.since(owed_since);
        if late > MAX_BACKLOG {
            self.start = self.start + late.saturating_sub(MAX_BACKLOG);
        }
    }
}

fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// Whole part of a number that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates; inputs are not negative")]
pub(crate) fn whole(value: f64) -> u64 {
    value as u64
}

#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(megabits: f64, block: u64, burst: Option<u64>) -> PacingOptions {
        PacingOptions {
            rate: BitRate::from_bits_per_second(megabits * 1e6),
            block: ByteCount::new(block),
            burst: burst.map(PacketCount::new),
            timer: TIMER_GRAIN,
            keeps_rate: false,
        }
    }

    fn with_timer(micros: u64, pacing: PacingOptions) -> PacingOptions {
        PacingOptions { timer: Duration::from_micros(micros), ..pacing }
    }

    /// Drives the pacer with a timer that wakes `lateness` after each deadline; returns (time, count) of each send.
    fn run(
        pacing: PacingOptions,
        length: Duration,
        mut lateness: impl FnMut(MonotonicTime) -> Duration,
    ) -> Vec<(MonotonicTime, u64)> {
        let start = MonotonicTime::from_nanos(1_000_000_000);
        let mut pacer = StreamPacer::new(pacing, start).expect("a rate");
        let (mut now, mut sends) = (start, Vec::new());
        while now < start + length {
            match pacer.turn(now) {
                SendPermission::Send(count) => {
                    sends.push((now, count.get()));
                    pacer.sent(count, now);
                    now = now + Duration::from_nanos(200);
                }
                SendPermission::Wait(until) => {
                    assert!(until > now, "a wait that does not wait");
                    now = until + lateness(until);
                }
            }
        }
        sends
    }

    fn total(sends: &[(MonotonicTime, u64)]) -> u64 {
        sends.iter().map(|(_, count)| count).sum()
    }

    #[test]
    fn the_average_rate_is_exact() {
        for (megabits, block) in [(1.0, 1448), (100.0, 1200), (1000.0, 1448), (10_000.0, 8948), (0.1, 1448)] {
            let sends = run(pacing(megabits, block, None), Duration::from_secs(2), |_| Duration::from_micros(5));
            let expected = megabits * 1e6 * 2.0 / 8.0 / as_f64(block);
            let seen = as_f64(total(&sends));
            assert!((seen - expected).abs() <= expected * 0.001 + 2.0, "{megabits} Mbit/s: {seen} against {expected}");
        }
    }

    #[test]
    fn no_burst_exceeds_its_bound_even_after_a_stall() {
        // 1 ms of 1 Gbit/s is more than a train, of which 524 µs are left; the bound adds 100 µs of blocks of 11.584 µs.
        for (burst, timer, late, most) in [
            (None, 100, 30, 17),
            (None, 1000, 30, 53),
            (None, 0, 30, 17),
            (Some(1), 1000, 0, 1),
            (Some(10), 1000, 30, 10),
        ] {
            let mut next_stall = MonotonicTime::from_nanos(1_100_000_000);
            let stall = |now: MonotonicTime| {
                if now < next_stall {
                    return Duration::from_micros(late);
                }
                next_stall = now + Duration::from_millis(100);
                Duration::from_millis(20)
            };
            let options = PacingOptions { keeps_rate: true, ..with_timer(timer, pacing(1000.0, 1448, burst)) };
            let sends = run(options, Duration::from_secs(1), stall);
            for window in sends.windows(2) {
                let ((earlier, first), (later, second)) = (window[0], window[1]);
                let apart = later.since(earlier).as_nanos();
                assert!(first <= most && second <= most, "{burst:?}, {timer}: {first}, {second}");
                // Two batches never merge: a late sender waits half the duration of a batch.
                assert!(
                    apart >= u128::from(first.min(second)) * 11_584 / 2 - 1 || first + second <= most,
                    "{burst:?}, {timer}: {apart} ns"
                );
            }
            let expected = 1e9 / 8.0 / 1448.0;
            let seen = as_f64(total(&sends));
            assert!(seen > expected * 0.97, "{burst:?}, {timer}: the sender does not catch up: {seen} of {expected}");
        }
    }

    #[test]
    fn a_sender_whose_timers_are_always_late_keeps_its_rate() {
        for (megabits, block, late) in
            [(10.0, 1200, 3), (20.0, 1200, 10), (20.0, 1200, 80), (100.0, 1448, 5), (1000.0, 1448, 2)]
        {
            let options = with_timer(1000, pacing(megabits, block, None));
            let seen = |keeps_rate| {
                let sends = run(PacingOptions { keeps_rate, ..options }, Duration::from_secs(5), |_| {
                    Duration::from_millis(late)
                });
                as_f64(total(&sends)) * as_f64(block) * 8.0 / 5.0 / (megabits * 1e6)
            };
            assert!(seen(true) > 0.97, "{megabits} Mbit/s, {late} ms late: {} of the rate", seen(true));
            assert!(seen(false) < 0.9, "{megabits} Mbit/s, {late} ms late: bounded bursts cannot reach the rate");
        }
    }

    #[test]
    fn a_sender_wakes_once_per_timer_or_train() {
        // 115.84 µs a block: the ninth is due 927 µs after the first; 717.76 µs of 8972 bytes: the second is due within a
        // millisecond. 52.1 ms of a train at 10 Mbit/s are longer than any timer here.
        for (megabits, block, timer, batches) in [
            (100.0, 1448, 1000, 959),
            (100.0, 1448, 0, 8632),
            (100.0, 8972, 1000, 697),
            (1000.0, 1448, 1000, 1918),
            (10.0, 1448, 1000, 863),
            (10.0, 1448, 50_000, 20),
        ] {
            let sends =
                run(with_timer(timer, pacing(megabits, block, None)), Duration::from_secs(1), |_| Duration::ZERO);
            let seen = sends.len() as u64;
            assert!(seen.abs_diff(batches) <= 2 + batches / 50, "{megabits} Mbit/s, {timer} µs: {seen} of {batches}");
        }
    }

    #[test]
    fn old_backlog_is_dropped() {
        let mut stalled = false;
        let sends = run(pacing(8.0, 1000, None), Duration::from_secs(20), |_| {
            if stalled {
                Duration::ZERO
            } else {
                stalled = true;
                Duration::from_secs(5)
            }
        });
        // 1000 blocks a second over 20 s, less the 4 s beyond the longest backlog.
        let seen = total(&sends);
        assert!((15_990..=16_010).contains(&seen), "{seen}");
    }

    /// Drives the pacer in a test until `end`, which is stopped at `stop`; returns the number of blocks sent.
    fn sent_until(pacing: PacingOptions, start: MonotonicTime, end: MonotonicTime, stop: MonotonicTime) -> u64 {
        let mut pacer = StreamPacer::new(pacing, start).expect("a rate");
        let (mut now, mut sent) = (start, 0);
        while now < stop {
            match pacer.turn_before(Some(end), now) {
                SendPermission::Send(count) => {
                    sent += count.get();
                    pacer.sent(count, now);
                    now = now + Duration::from_nanos(200);
                }
                SendPermission::Wait(until) => {
                    assert!(until > now, "a wait that does not wait");
                    now = until;
                }
            }
        }
        sent
    }

    #[test]
    fn blocks_due_at_the_end_or_later_never_leave() {
        let begin = MonotonicTime::from_nanos(1_000_000_000);
        for (megabits, block, burst) in [
            (0.5, 62_500, None),
            (1.0, 62_500, None),
            (1.0, 125_000, None),
            (3.3, 103_125, None),
            (1.0, 65_536, None),
            (100.0, 125_000, None),
            (100.0, 1448, None),
            (8.0, 10_000, Some(5)),
        ] {
            for (seconds, first_millis) in [(1, 0), (1, 10), (2, 0), (2, 10), (5, 10), (10, 0)] {
                let length = Duration::from_secs(seconds);
                let (start, end) = (begin + Duration::from_millis(first_millis), begin + length);
                let most = megabits * 1e6 / 8.0 * length.as_secs_f64() + as_f64(block * burst.unwrap_or(1));
                // A busy host stops the test late, a distant client a round trip after the end.
                let sent = [0, 11, 300, 2500].map(|late| {
                    sent_until(pacing(megabits, block, burst), start, end, end + Duration::from_millis(late))
                });
                let case =
                    format!("{megabits} Mbit/s of {block} bytes for {seconds} s from {first_millis} ms: {sent:?}");
                assert!(sent.iter().all(|sent| as_f64(sent * block) <= most), "{case}");
                assert!(sent.iter().all(|each| *each == sent[0]), "{case}");
            }
        }
        // Without an end, the pacer goes on.
        let mut pacer = StreamPacer::new(pacing(1.0, 125_000, None), begin).expect("a rate");
        assert_eq!(pacer.turn_before(None, begin), SendPermission::Send(PacketCount::new(1)));
    }

    #[test]
    fn a_first_block_at_once_leaves_the_turns_of_the_others_as_they_are() {
        let (begin, second) = (MonotonicTime::from_nanos(1_000_000_000), Duration::from_secs(1));
        for (megabits, block) in [(1.0, 125_000), (10.0, 125_000), (1000.0, 131_072), (1000.0, 1448)] {
            let wait = Duration::from_millis(10);
            let new =
                || StreamPacer::new(with_timer(1000, pacing(megabits, block, None)), begin + wait).expect("a rate");
            let mut early = new().with_first_at(begin);
            assert_eq!(early.turn_before(Some(begin), begin), SendPermission::Wait(begin + MAX_BACKLOG), "the end");
            assert_eq!(early.turn(begin), SendPermission::Send(PacketCount::new(1)));
            early.sent(PacketCount::new(1), begin);
            let SendPermission::Wait(second_turn) = early.turn(begin) else { panic!("{megabits} Mbit/s: two at once") };
            assert!(second_turn > begin + wait);
            // A second later as many are due as without.
            let due = |pacer: &StreamPacer| pacer.due(begin + wait + second) + pacer.sent;
            assert_eq!(due(&early), due(&new()));
        }
    }

    #[test]
    fn a_configured_burst_leaves_whole() {
        let sends = run(pacing(100.0, 1250, Some(10)), Duration::from_secs(1), |_| Duration::ZERO);
        assert!(sends.iter().all(|(_, count)| *count == 10));
        assert_eq!(sends[1].0.since(sends[0].0), Duration::from_millis(1));
    }

    #[test]
    fn rate_zero_has_no_schedule() {
        assert!(StreamPacer::new(pacing(0.0, 1448, None), MonotonicTime::default()).is_none());
        assert!(StreamPacer::new(pacing(1.0, 0, None), MonotonicTime::default()).is_none());
    }

    proptest::proptest! {
        /// Blocks never leave before they are due, at any rate, size, burst and lateness of the timer, and no more of them
        /// back to back than the burst.
        #[test]
        fn no_block_leaves_early_and_no_burst_is_too_long(
            megabits in 1.0_f64..5000.0,
            block in 64_u64..9000,
            burst in proptest::option::of(1_u64..20),
            timer in 0_u64..200_000,
            keeps_rate in proptest::bool::ANY,
            lateness in proptest::collection::vec(0_u64..3_000_000, 1..20),
        ) {
            let mut late = lateness.iter().cycle();
            let configured = PacingOptions { keeps_rate, ..with_timer(timer, pacing(megabits, block, burst)) };
            let length = Duration::from_millis(300);
            let sends = run(configured, length, |_| Duration::from_nanos(*late.next().expect("endless")));
            let interval = as_f64(block) * 8e3 / megabits;
            let start = MonotonicTime::from_nanos(1_000_000_000);
            let mut sent = 0;
            for (time, count) in &sends {
                // A configured burst leaves whole when its first block is due; otherwise each block is due itself.
                let last = if burst.is_some() { sent } else { sent + count - 1 };
                let due = as_f64(last) * interval;
                proptest::prop_assert!(nanos(time.since(start)) + 1.0 + interval * 1e-5 >= due, "block {last} leaves early");
                sent += count;
            }
            let train = 65_507.0 * 8e3 / megabits;
            let batch = as_f64(timer * 1000).min(100e6).min(train.max(100e3)).max(100e3) + 100e3;
            let batch = if keeps_rate { batch + 2.0 * 3e6 } else { batch };
            // The first block of a batch waits for those that are due in the timer.
            let first = f64::from(u8::from(timer > 100));
            let most = burst.map_or((batch / interval + first + 1e-3).max(1.0), as_f64);
            proptest::prop_assert!(sends.iter().all(|(_, count)| as_f64(*count) <= most));
        }
    }

    #[test]
    fn short_configured_bursts_are_timed_by_the_clock() {
        // 10 blocks of 1250 bytes take 1 ms at 100 Mbit/s; one takes 100 µs.
        for (megabits, burst, precise) in [
            (100.0, Some(10), false),
            (100.0, Some(1), false),
            (101.0, Some(1), true),
            (1001.0, Some(10), true),
            (9000.0, None, false),
        ] {
            let pacer = StreamPacer::new(pacing(megabits, 1250, burst), MonotonicTime::default()).expect("a rate");
            assert_eq!(pacer.is_precise(), precise, "{megabits} Mbit/s, {burst:?}");
        }
    }

    #[test]
    fn the_default_burst_is_the_first_block_and_those_due_in_the_timer_and_100_microseconds() {
        for (megabits, block, timer, burst) in [
            (1.0, 1448, 1000, 1),
            (1000.0, 1250, 100, 20),
            (10_000.0, 1250, 100, 200),
            (10_000.0, 1250, 1000, 200),
            (57.0, 1448, 100, 1),
            (100.0, 1250, 1000, 12),
            // Not the whole second that the timer asks for.
            (1.0, 1250, 1_000_000, 11),
            (100.0, 1250, 1_000_000, 53),
        ] {
            let options = with_timer(timer, pacing(megabits, block, None));
            let pacer = StreamPacer::new(options, MonotonicTime::default()).expect("a rate");
            assert_eq!(pacer.burst(), PacketCount::new(burst), "{megabits} Mbit/s, {timer} µs");
        }
        let none = StreamPacer::new(pacing(1.0, 1448, Some(0)), MonotonicTime::default()).expect("a rate");
        assert_eq!(none.burst(), PacketCount::new(1), "a burst has a block at least");
    }
}
