//! What a data-plane thread and the session that owns it tell each other, without a lock on the data path.

use core::time::Duration;
use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use linerate_model::report::CpuUtilization;
use linerate_sys::clock::{self, CpuTime};
use linerate_sys::poll::{self, Interest, Waker};
use linerate_units::{ByteCount, MonotonicTime, PacketCount};
use linerate_wire::sequence::Counts;

use crate::budget::Budget;

/// Sleeps shorter than this need not be cut short when the test ends.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// As many readings of the same time in a row mean that the clock stands still.
const STANDSTILL: u32 = 1000;

/// Which part of a test the bytes of the moment belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The omitted start (`-O`).
    Omitted = 0,
    /// What counts.
    Counting = 1,
}

/// Shared by all streams of one session and its driver.
#[derive(Debug)]
pub(crate) struct Shared {
    phase: AtomicU8,
    stopping: AtomicBool,
    /// Wakes the driver when a stream is done or broken.
    waker: Waker,
    /// Wakes streams that wait for their turn when they are to end.
    stop_waker: Waker,
    /// What this end may still send once it counts.
    pub send_budget: Budget,
    /// What this end may still receive once it counts.
    pub receive_budget: Budget,
}

impl Shared {
    /// For streams that begin in `phase`, and move at most `limit` once they count.
    pub(crate) fn new(phase: Phase, limit: Option<ByteCount>) -> io::Result<Self> {
        Ok(Self {
            phase: AtomicU8::new(phase as u8),
            stopping: AtomicBool::new(false),
            waker: Waker::new()?,
            stop_waker: Waker::new()?,
            send_budget: Budget::new(limit),
            receive_budget: Budget::new(limit),
        })
    }

    /// Watches the clock until `deadline`, or until the streams are to end: exact to a microsecond, at the price of a
    /// processor. Where time stands still while one looks at it (a simulated clock), it sleeps.
    pub(super) fn watch_until(&self, deadline: MonotonicTime) {
        let (mut last, mut unchanged) = (clock::monotonic_now(), 0);
        while last < deadline && !self.stopping() {
            std::hint::spin_loop();
            let now = clock::monotonic_now();
            unchanged = if now == last { unchanged + 1 } else { 0 };
            if unchanged > STANDSTILL {
                return self.sleep_until(deadline);
            }
            last = now;
        }
    }

    /// The phase now.
    pub(crate) fn phase(&self) -> Phase {
        if self.phase.load(Ordering::Relaxed) == Phase::Omitted as u8 { Phase::Omitted } else { Phase::Counting }
    }

    /// From now on it counts.
    pub(crate) fn start_counting(&self) {
        self.phase.store(Phase::Counting as u8, Ordering::Relaxed);
    }

    /// Asks all streams to end; they do within the sockets' timeouts.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop_waker.wake();
    }

    /// Sleeps until `deadline`, or until the streams are to end.
    pub(super) fn sleep_until(&self, deadline: MonotonicTime) {
        let left = deadline.since(clock::monotonic_now());
        if left < SHORT_SLEEP {
            clock::sleep_until(deadline);
        } else if poll::wait_for(&self.stop_waker, Interest::READ, Some(left)).is_err() {
            // Without poll the sleep cannot be cut short, but it is a sleep.
            clock::sleep_until(deadline);
        }
    }

    /// Whether the streams are to end.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// What the driver polls to learn that a stream is done or broken.
    pub(crate) fn waker(&self) -> &(impl AsFd + use<>) {
        &self.waker
    }

    /// Takes the wake-ups that have come.
    pub(crate) fn drain_waker(&self) {
        self.waker.drain();
    }

    pub(super) fn wake_driver(&self) {
        self.waker.wake();
    }
}

/// What one stream's thread has counted, for its driver to read at any time.
#[derive(Debug, Default)]
#[repr(align(128))] // a cache line pair of its own: the thread writes here for each system call
pub(crate) struct Counters {
    bytes: [AtomicU64; 2],
    packets: [AtomicU64; 2],
    received: Mutex<ReceivedPackets>,
    finished_at: AtomicU64,
    cpu_user_nanos: AtomicU64,
    cpu_system_nanos: AtomicU64,
    broken: Mutex<Option<Broken>>,
}

/// What a UDP receiver has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedPackets {
    /// Since the first datagram.
    pub total: Counts,
    /// When counting began.
    pub at_start: Counts,
    /// Drops at this socket since the first datagram; `None` when the kernel has not said.
    pub dropped: Option<PacketCount>,
    /// Drops when counting began.
    pub dropped_at_start: Option<PacketCount>,
    /// When the last datagram came.
    pub last_arrival: Option<MonotonicTime>,
}

/// Why a stream's thread gave up before it was told to.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Sending failed.
    Write(io::Error),
    /// Receiving failed.
    Read(io::Error),
    /// The peer closed the stream.
    Closed,
    /// The file of `-F` failed.
    File(io::Error),
    /// The kernel would not set up what the thread needs.
    SetUp(io::Error),
}

impl Counters {
    /// Notes `bytes` more.
    pub(crate) fn add_bytes(&self, phase: Phase, bytes: usize) {
        // A single writer: no read-modify-write cycle on the bus is needed.
        let counter = &self.bytes[phase as usize];
        counter.store(counter.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Notes `count` more datagrams.
    pub(crate) fn add_packets(&self, phase: Phase, count: PacketCount) {
        let counter = &self.packets[phase as usize];
        counter.store(counter.load(Ordering::Relaxed) + count.get(), Ordering::Relaxed);
    }

    /// Publishes what the UDP receiver knows.
    pub(crate) fn set_received(&self, received: ReceivedPackets) {
        *lock(&self.received) = received;
    }

    /// Payload bytes moved in that phase.
    pub(crate) fn bytes(&self, phase: Phase) -> ByteCount {
        ByteCount::new(self.bytes[phase as usize].load(Ordering::Relaxed))
    }

    /// Datagrams sent in that phase.
    pub(crate) fn packets(&self, phase: Phase) -> PacketCount {
        PacketCount::new(self.packets[phase as usize].load(Ordering::Relaxed))
    }

    /// What the UDP receiver knows.
    pub(crate) fn received(&self) -> ReceivedPackets {
        *lock(&self.received)
    }

    /// When the thread moved its last byte; `None` while it runs.
    pub(crate) fn finished_at(&self) -> Option<MonotonicTime> {
        match self.finished_at.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(MonotonicTime::from_nanos(nanos)),
        }
    }

    /// Takes the reason for which the thread gave up, if it did.
    pub(crate) fn take_broken(&self) -> Option<Broken> {
        lock(&self.broken).take()
    }

    /// Processor time of the thread; complete once it has finished.
    pub(crate) fn cpu(&self) -> CpuTime {
        CpuTime {
            user: Duration::from_nanos(self.cpu_user_nanos.load(Ordering::Relaxed)),
            system: Duration::from_nanos(self.cpu_system_nanos.load(Ordering::Relaxed)),
        }
    }

    pub(super) fn finish(&self, at: MonotonicTime, cpu: CpuTime, broken: Option<Broken>) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.cpu_user_nanos.store(nanos(cpu.user), Ordering::Relaxed);
        self.cpu_system_nanos.store(nanos(cpu.system), Ordering::Relaxed);
        *lock(&self.broken) = broken;
        self.finished_at.store(at.as_nanos().max(1), Ordering::Release);
    }
}

/// A poisoned lock only means that another thread panicked; the figures behind it are still the best there are.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Processor time as a share of wall time.
pub(crate) fn utilization(cpu: CpuTime, wall: Duration) -> Option<CpuUtilization> {
    use linerate_units::Ratio;
    let share = |time: Duration| Ratio::of(time.as_secs_f64(), wall.as_secs_f64());
    Some(CpuUtilization { total: share(cpu.user + cpu.system)?, user: share(cpu.user)?, system: share(cpu.system)? })
}
