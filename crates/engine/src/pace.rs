//! When the next block may go: a deadline pacer that never bursts above its configured catch-up.
//!
//! Block `k` of a stream is due at `start + k × interval`. Deadlines are absolute, so errors of the timer do not add up.
//! A sender that comes late sends what is due, but at most [`Pacing::burst`] blocks back to back; what is still owed is
//! paid at twice the rate rather than at once, and what is owed for longer than [`LONGEST_DEBT`] is forgiven. iperf3
//! keeps only the average, and after a stall sends at line rate until it is back on it (esnet/iperf issue 1747).

use core::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount};

/// A sender that could not send for longer than this does not make up for the rest.
pub const LONGEST_DEBT: Duration = Duration::from_secs(1);

/// Blocks due within this time of each other leave together, unless the burst is configured: a timer that sleeps for
/// less wakes late anyway, and each wake-up costs processor time.
const TIMER_GRAIN: Duration = Duration::from_micros(100);

/// Without a configured burst, the most that leaves back to back is what is due in this time.
const DEFAULT_CATCH_UP: Duration = Duration::from_micros(200);

/// Bursts that follow each other faster than this are beyond what sleeping and waking can time: whoever configures them
/// wants them timed all the same.
const SLEEPABLE: Duration = Duration::from_micros(100);

/// What is paced, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// Target rate of payload.
    pub rate: BitRate,
    /// Size of one block.
    pub block: ByteCount,
    /// Most blocks back to back; `None` for what is due in 200 µs, at least one.
    pub burst: Option<PacketCount>,
}

/// The schedule of one stream.
#[derive(Clone, Debug)]
pub struct Pacer {
    interval_nanos: f64,
    /// Blocks that must be due before any leaves.
    ready: u64,
    /// Blocks that leave at the least.
    group: u64,
    /// Blocks that leave at the most.
    burst: u64,
    /// Whether somebody asked for this burst.
    configured: bool,
    start: MonotonicTime,
    sent: u64,
    not_before: MonotonicTime,
    /// The wait that the sender was last told to make.
    waiting_until: Option<MonotonicTime>,
    /// By how much the timer wakes late, as a moving average.
    lateness_nanos: f64,
}

/// What a sender may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Send that many blocks, at least one, back to back.
    Send(PacketCount),
    /// Nothing is due before this time.
    Wait(MonotonicTime),
}

impl Pacer {
    /// A schedule that begins at `start`; `None` for a rate of zero or a block of no bytes, which no schedule fits.
    #[must_use]
    pub fn new(pacing: Pacing, start: MonotonicTime) -> Option<Self> {
        let interval_nanos = pacing.block.as_f64() * 8e9 / pacing.rate.bits_per_second();
        if !interval_nanos.is_finite() || interval_nanos <= 0.0 {
            return None;
        }
        let due_within = |time: Duration| whole(nanos(time) / interval_nanos).max(1);
        let burst = pacing.burst.map_or_else(|| due_within(DEFAULT_CATCH_UP), |burst| burst.get().max(1));
        // A configured burst leaves whole when its first block is due; else a group leaves when its last one is.
        let (ready, group) = match pacing.burst {
            Some(_) => (1, burst),
            None => (due_within(TIMER_GRAIN), 1),
        };
        let configured = pacing.burst.is_some();
        Some(Self {
            interval_nanos,
            ready,
            group,
            burst,
            configured,
            start,
            sent: 0,
            not_before: start,
            waiting_until: None,
            lateness_nanos: 0.0,
        })
    }

    /// The most blocks that ever leave back to back.
    #[must_use]
    pub fn burst(&self) -> PacketCount {
        PacketCount::new(self.burst)
    }

    /// Whether the waits are to be timed by watching the clock, because sleeping would be late each time.
    #[must_use]
    pub fn is_precise(&self) -> bool {
        self.configured && self.interval_nanos * as_f64(self.burst) < nanos(SLEEPABLE)
    }

    /// What to do at `now`.
    #[must_use]
    pub fn turn(&mut self, now: MonotonicTime) -> Turn {
        self.forgive_old_debt(now);
        let due = self.due(now);
        let waited = self.waiting_until.filter(|until| now >= *until);
        let is_ready = due >= self.ready || (due > 0 && waited.is_some());
        if is_ready && now >= self.not_before {
            self.learn_lateness(now, waited);
            return Turn::Send(PacketCount::new(due.clamp(self.group, self.burst)));
        }
        // One wait for both reasons: each wake-up costs.
        let until = if is_ready { self.not_before } else { self.wake_up_time(now).max(self.not_before) };
        self.waiting_until = Some(until);
        Turn::Wait(until)
    }

    /// When to wake up for the next group: early enough that a timer which is late by its usual time is not late.
    fn wake_up_time(&self, now: MonotonicTime) -> MonotonicTime {
        let complete = self.deadline(self.sent + self.ready - 1);
        let early = MonotonicTime::from_nanos(complete.as_nanos().saturating_sub(whole(self.lateness_nanos)));
        let soonest = now + Duration::from_nanos(1);
        early.max(self.deadline(self.sent)).max(soonest)
    }

    fn learn_lateness(&mut self, now: MonotonicTime, waited: Option<MonotonicTime>) {
        self.waiting_until = None;
        if let Some(until) = waited {
            // A stall says nothing about the timer.
            let late = nanos(now.since(until)).min(nanos(TIMER_GRAIN));
            self.lateness_nanos += (late - self.lateness_nanos) / 8.0;
        }
    }

    /// Notes that `count` blocks began to leave at `now`.
    pub fn sent(&mut self, count: PacketCount, now: MonotonicTime) {
        self.sent += count.get();
        // Whoever is late sends at twice the rate until the debt is paid, and never two bursts in one.
        let pause = self.interval_nanos * as_f64(count.get()) / 2.0;
        self.not_before = now + Duration::from_nanos(whole(pause));
    }

    fn due(&self, now: MonotonicTime) -> u64 {
        // The millionth of an interval absorbs the rounding between this quotient and `deadline`'s product.
        (whole(nanos(now.since(self.start)) / self.interval_nanos + 1e-6) + 1).saturating_sub(self.sent)
    }

    fn deadline(&self, block: u64) -> MonotonicTime {
        self.start + Duration::from_nanos(whole((as_f64(block) * self.interval_nanos).ceil()))
    }

    fn forgive_old_debt(&mut self, now: MonotonicTime) {
        let owed_since = self.deadline(self.sent);
        let late = now.since(owed_since);
        if late > LONGEST_DEBT {
            self.start = self.start + late.saturating_sub(LONGEST_DEBT);
        }
    }
}

fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates; inputs are not negative")]
fn whole(value: f64) -> u64 {
    value as u64
}

#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(megabits: f64, block: u64, burst: Option<u64>) -> Pacing {
        Pacing {
            rate: BitRate::from_bits_per_second(megabits * 1e6),
            block: ByteCount::new(block),
            burst: burst.map(PacketCount::new),
        }
    }

    /// Drives the pacer with a timer that wakes `lateness` after each deadline; returns (time, count) of each send.
    fn run(
        pacing: Pacing,
        length: Duration,
        mut lateness: impl FnMut(MonotonicTime) -> Duration,
    ) -> Vec<(MonotonicTime, u64)> {
        let start = MonotonicTime::from_nanos(1_000_000_000);
        let mut pacer = Pacer::new(pacing, start).expect("a rate");
        let (mut now, mut sends) = (start, Vec::new());
        while now < start + length {
            match pacer.turn(now) {
                Turn::Send(count) => {
                    sends.push((now, count.get()));
                    pacer.sent(count, now);
                    now = now + Duration::from_nanos(200);
                }
                Turn::Wait(until) => {
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
    fn the_rate_is_met_exactly_over_time() {
        for (megabits, block) in [(1.0, 1448), (100.0, 1200), (1000.0, 1448), (10_000.0, 8948), (0.1, 1448)] {
            let sends = run(pacing(megabits, block, None), Duration::from_secs(2), |_| Duration::from_micros(5));
            let expected = megabits * 1e6 * 2.0 / 8.0 / as_f64(block);
            let seen = as_f64(total(&sends));
            assert!((seen - expected).abs() <= expected * 0.001 + 2.0, "{megabits} Mbit/s: {seen} against {expected}");
        }
    }

    #[test]
    fn no_burst_exceeds_the_configured_one_even_after_a_stall() {
        for (burst, timer) in [(None, 30), (Some(1), 0), (Some(10), 30)] {
            let mut next_stall = MonotonicTime::from_nanos(1_100_000_000);
            let stall = |now: MonotonicTime| {
                if now < next_stall {
                    return Duration::from_micros(timer);
                }
                next_stall = now + Duration::from_millis(100);
                Duration::from_millis(20)
            };
            let configured = pacing(1000.0, 1448, burst);
            let most = burst.unwrap_or(17);
            let sends = run(configured, Duration::from_secs(1), stall);
            for window in sends.windows(2) {
                let ((earlier, first), (later, second)) = (window[0], window[1]);
                let apart = later.since(earlier).as_nanos();
                assert!(first <= most && second <= most, "{burst:?}: {first}, {second}");
                // Two groups never merge: whoever owes waits half the time that a group lasts.
                assert!(
                    apart >= u128::from(first.min(second)) * 11_584 / 2 - 1 || first + second <= most,
                    "{burst:?}: {apart} ns"
                );
            }
            let expected = 1e9 / 8.0 / 1448.0;
            let seen = as_f64(total(&sends));
            assert!(seen > expected * 0.97, "{burst:?}: the debt is not paid: {seen} of {expected}");
        }
    }

    #[test]
    fn an_old_debt_is_forgiven() {
        let mut stalled = false;
        let sends = run(pacing(8.0, 1000, None), Duration::from_secs(20), |_| {
            if stalled {
                Duration::ZERO
            } else {
                stalled = true;
                Duration::from_secs(5)
            }
        });
        // 1000 blocks a second over 20 s, less the 4 s beyond the longest debt.
        let seen = total(&sends);
        assert!((15_990..=16_010).contains(&seen), "{seen}");
    }

    #[test]
    fn a_configured_burst_leaves_whole() {
        let sends = run(pacing(100.0, 1250, Some(10)), Duration::from_secs(1), |_| Duration::ZERO);
        assert!(sends.iter().all(|(_, count)| *count == 10));
        assert_eq!(sends[1].0.since(sends[0].0), Duration::from_millis(1));
    }

    #[test]
    fn rate_zero_has_no_schedule() {
        assert!(Pacer::new(pacing(0.0, 1448, None), MonotonicTime::default()).is_none());
        assert!(Pacer::new(pacing(1.0, 0, None), MonotonicTime::default()).is_none());
    }
}
