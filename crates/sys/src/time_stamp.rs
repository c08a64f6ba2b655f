//! Points in time on both clocks, and the kernel's time stamps of packets.
//!
//! The kernel stamps packets in civil time (`CLOCK_REALTIME`; `Documentation/networking/timestamping.rst`), intervals
//! are measured on the monotonic clock. The two differ by a number that changes only when the civil clock is set:
//! slewing by NTP reaches both. So the difference is measured well once, and monitored.

use core::sync::atomic::{AtomicI64, Ordering};
use core::time::Duration;

use linerate_units::{MonotonicTime, WallTime};

use crate::clock;

/// Origin of a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StampSource {
    /// The network device, whose own clock follows this host's.
    Hardware,
    /// The kernel, when the packet came from the device or went to it.
    Kernel,
    /// This program, before it asked the kernel to send or after the kernel handed over what was received.
    Program,
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStamp {
    /// In civil time.
    pub wall: WallTime,
    /// On the monotonic clock.
    pub monotonic: MonotonicTime,
    /// Origin.
    pub source: StampSource,
}

/// The civil and the monotonic clock. May be used by several threads at once.
#[derive(Debug)]
pub struct ClockPair {
    /// Civil time minus monotonic time, in nanoseconds.
    offset: AtomicI64,
}

/// Minimum change of the difference between the clocks that shows a set clock, in nanoseconds: more than the time that
/// it takes to read both.
const MIN_CLOCK_STEP_NANOS: i64 = 100_000;
/// Number of samples of the difference, of which the best is used.
const OFFSET_SAMPLES: usize = 5;
/// Maximum distance between a device's and the host's stamp of one packet, if the device's clock follows the host's.
const MAX_HARDWARE_STAMP_DISTANCE: Duration = Duration::from_millis(1);

impl ClockPair {
    /// Compares the clocks.
    #[must_use]
    pub fn new() -> Self {
        Self { offset: AtomicI64::new(measured_offset()) }
    }

    /// Current time on both clocks. Detects that the civil clock was set.
    #[must_use]
    pub fn now(&self) -> TimeStamp {
        let (monotonic, wall) = read_both();
        let (seen, known) = (difference(monotonic, wall), self.offset.load(Ordering::Relaxed));
        // The clocks are read one after the other, so that what is seen is never too small.
        if seen < known {
            self.offset.store(seen, Ordering::Relaxed);
        } else if seen - known > MIN_CLOCK_STEP_NANOS {
            self.offset.store(measured_offset().min(seen), Ordering::Relaxed);
        }
        TimeStamp { wall, monotonic, source: StampSource::Program }
    }

    /// A civil time on the monotonic clock, by the current difference. Times before this host booted are its boot.
    #[must_use]
    pub fn monotonic(&self, wall: WallTime) -> MonotonicTime {
        let nanoseconds = i128::try_from(wall.since_unix_epoch().as_nanos()).unwrap_or(i128::MAX);
        let time = nanoseconds.saturating_sub(self.offset.load(Ordering::Relaxed).into()).max(0);
        MonotonicTime::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// A monotonic time on the civil clock, by the current difference.
    #[must_use]
    pub fn wall(&self, monotonic: MonotonicTime) -> WallTime {
        let time = (i128::from(monotonic.as_nanos()) + i128::from(self.offset.load(Ordering::Relaxed))).max(0);
        WallTime::from_unix(Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX)))
    }

    /// The best of the stamps that a packet has. `now` was read after the packet was handed over.
    pub(crate) fn best(&self, stamps: KernelStamps, now: TimeStamp) -> TimeStamp {
        let at = |wall, source| TimeStamp { wall, monotonic: self.monotonic(wall), source };
        match (stamps.hardware, stamps.kernel) {
            (Some(device), Some(kernel))
                if device.since_unix_epoch().abs_diff(kernel.since_unix_epoch()) <= MAX_HARDWARE_STAMP_DISTANCE =>
            {
                at(device, StampSource::Hardware)
            }
            (_, Some(kernel)) => at(kernel, StampSource::Kernel),
            _ => now,
        }
    }
}

impl Default for ClockPair {
    fn default() -> Self {
        Self::new()
    }
}

/// The kernel's time stamps of one packet. A device's own clock may count from anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelStamps {
    pub(crate) kernel: Option<WallTime>,
    pub(crate) hardware: Option<WallTime>,
}

fn read_both() -> (MonotonicTime, WallTime) {
    let monotonic = clock::monotonic_now();
    (monotonic, clock::realtime_now())
}

fn difference(monotonic: MonotonicTime, wall: WallTime) -> i64 {
    let wall = i64::try_from(wall.since_unix_epoch().as_nanos()).unwrap_or(i64::MAX);
    wall.saturating_sub(i64::try_from(monotonic.as_nanos()).unwrap_or(i64::MAX))
}

/// Any delay between reading the two clocks increases the difference, so the smallest is the best.
fn measured_offset() -> i64 {
    let readings = (0..OFFSET_SAMPLES).map(|_| {
        let (monotonic, wall) = read_both();
        difference(monotonic, wall)
    });
    readings.min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_agree() {
        let clocks = ClockPair::new();
        let now = clocks.now();
        assert_eq!(now.source, StampSource::Program);
        let there = clocks.monotonic(now.wall);
        // The civil clock is read after the other, by what a preempted thread may lose at most.
        assert!(there >= now.monotonic, "{there:?} {now:?}");
        assert_eq!(clocks.wall(there), now.wall);
        assert_eq!(clocks.monotonic(WallTime::from_unix(Duration::from_secs(1))), MonotonicTime::from_nanos(0));
    }

    #[test]
    fn a_set_clock_is_noticed() {
        let clocks = ClockPair::new();
        let true_offset = clocks.offset.load(Ordering::Relaxed);
        for wrong_by in [-5_000_000_000, 5_000_000_000] {
            clocks.offset.store(true_offset + wrong_by, Ordering::Relaxed);
            let _ = clocks.now();
            let left = (clocks.offset.load(Ordering::Relaxed) - true_offset).abs();
            assert!(left < 1_000_000_000, "{wrong_by}: {left}");
        }
    }

    #[test]
    fn a_devices_clock_counts_only_when_it_is_this_hosts() {
        let clocks = ClockPair::new();
        let now = clocks.now();
        let kernel = Some(now.wall);
        let moved = |by: Duration| Some(WallTime::from_unix(now.wall.since_unix_epoch().saturating_sub(by)));
        let stamps = |hardware| clocks.best(KernelStamps { kernel, hardware }, now);
        assert_eq!(stamps(None).source, StampSource::Kernel);
        let near = stamps(moved(Duration::from_micros(40)));
        assert_eq!((near.source, Some(near.wall)), (StampSource::Hardware, moved(Duration::from_micros(40))));
        // International atomic time, as a precision clock has it.
        assert_eq!(stamps(moved(Duration::from_secs(37))).source, StampSource::Kernel);
        assert_eq!(clocks.best(KernelStamps::default(), now), now);
    }
}
