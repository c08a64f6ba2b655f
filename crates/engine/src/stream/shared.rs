//! State shared by data-plane threads and their session, without a lock on the data path.

use core::time::Duration;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use linerate_model::report::CpuUtilization;
use linerate_sys::clock::{self, CpuTime};
use linerate_sys::host;
use linerate_sys::poll::Waker;
use linerate_units::{ByteCount, MonotonicTime, PacketCount};
use linerate_wire::sequence::DatagramCounts;

use crate::budget::ByteBudget;

/// Sleeps shorter than this are not interrupted at the end of the test.
const MAX_UNINTERRUPTED_SLEEP: Duration = Duration::from_millis(1);

/// Number of equal clock values in a row that means a stopped clock.
const MAX_EQUAL_CLOCK_SAMPLES: u32 = 1000;

/// End of a test that lasts until it is stopped.
const NO_END: u64 = u64::MAX;

/// Part of a test to which the current bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestPhase {
    /// The omitted start (`-O`).
    Omitted = 0,
    /// The counted part.
    Counting = 1,
}

/// Shared by all streams of one session and its driver.
#[derive(Debug)]
pub(crate) struct SessionState {
    phase: AtomicU8,
    /// End of a timed test, in nanoseconds; [`NO_END`] where none is known.
    end: AtomicU64,
    stopping: AtomicBool,
    /// Wakes the driver when a stream has completed or failed.
    waker: Arc<Waker>,
    /// True when streams that wait for their turn must stop, and its signal: waiting for a descriptor would cost more.
    stopped: Mutex<bool>,
    stop_signal: Condvar,
    /// Bytes that this end may still send in the counted part.
    pub send_budget: ByteBudget,
    /// Bytes still awaited in the counted part.
    pub receive_budget: ByteBudget,
    /// Counted once for all streams, by dozens of system calls.
    usable_processors: OnceLock<usize>,
}

/// Bytes of an exact test (`-n`, `-k`) per direction, in the counted part; `None` for no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByteLimits {
    /// Bytes to send.
    pub send: Option<ByteCount>,
    /// Bytes after which all have arrived.
    pub receive: Option<ByteCount>,
}

impl SessionState {
    /// State for streams that begin in `phase`, with `limits` for the counted part, and wake the driver by `waker`.
    pub(crate) fn new(phase: TestPhase, limits: ByteLimits, waker: Arc<Waker>) -> Self {
        Self {
            phase: AtomicU8::new(phase as u8),
            end: AtomicU64::new(NO_END),
            stopping: AtomicBool::new(false),
            waker,
            stopped: Mutex::new(false),
            stop_signal: Condvar::new(),
            send_budget: ByteBudget::new(limits.send),
            receive_budget: ByteBudget::new(limits.receive),
            usable_processors: OnceLock::new(),
        }
    }

    /// Number of processors on which the streams may run.
    pub(super) fn usable_processors(&self) -> usize {
        *self.usable_processors.get_or_init(|| host::cpu_count().get())
    }

    /// Busy-waits until `deadline`, or until the streams must stop: exact to a microsecond, at the cost of a processor.
    /// Where the clock does not advance meanwhile (a simulated clock), it sleeps.
    pub(super) fn busy_wait_until(&self, deadline: MonotonicTime) {
        let (mut last, mut unchanged) = (clock::monotonic_now(), 0);
        while last < deadline && !self.stopping() {
            std::hint::spin_loop();
            let now = clock::monotonic_now();
            unchanged = if now == last { unchanged + 1 } else { 0 };
            if unchanged > MAX_EQUAL_CLOCK_SAMPLES {
                return self.sleep_until(deadline);
            }
            last = now;
        }
    }

    /// Current phase.
    pub(crate) fn phase(&self) -> TestPhase {
        if self.phase.load(Ordering::Relaxed) == TestPhase::Omitted as u8 {
            TestPhase::Omitted
        } else {
            TestPhase::Counting
        }
    }

    /// Starts the counted part, which lasts until `end`; `None` where something else ends it.
    pub(crate) fn start_counting(&self, end: Option<MonotonicTime>) {
        self.end.store(end.map_or(NO_END, MonotonicTime::as_nanos), Ordering::Relaxed);
        self.phase.store(TestPhase::Counting as u8, Ordering::Relaxed);
    }

    /// End of the counted part, once it has begun in a timed test: paced senders send nothing that is due later.
    pub(crate) fn end(&self) -> Option<MonotonicTime> {
        let nanos = self.end.load(Ordering::Relaxed);
        (nanos != NO_END).then(|| MonotonicTime::from_nanos(nanos))
    }

    /// Asks all streams to stop; they do within the sockets' timeouts.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        *lock(&self.stopped) = true;
        self.stop_signal.notify_all();
    }

    /// Sleeps until `deadline`, or until the streams must stop.
    pub(super) fn sleep_until(&self, deadline: MonotonicTime) {
        let left = deadline.since(clock::monotonic_now());
        if left < MAX_UNINTERRUPTED_SLEEP {
            clock::sleep_until(deadline);
        } else {
            // A poisoned lock cannot occur, and would only end the sleep: the caller looks at the clock again.
            let _ = self.stop_signal.wait_timeout_while(lock(&self.stopped), left, |stopped| !*stopped);
        }
    }

    /// True when the streams must stop.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Waker that the driver polls for completed or failed streams.
    pub(crate) fn waker(&self) -> &(impl AsFd + use<>) {
        &self.waker
    }

    /// Consumes pending wake-ups.
    pub(crate) fn drain_waker(&self) {
        self.waker.drain();
    }

    /// Notes bytes received in the counted part; the last awaited one wakes the driver.
    pub(super) fn count_received(&self, bytes: ByteCount) {
        if !self.receive_budget.take(bytes).is_zero() && self.receive_budget.is_exhausted() {
            self.wake_driver();
        }
    }

    pub(super) fn wake_driver(&self) {
        self.waker.wake();
    }
}

/// Counters of one stream's thread, which its driver may read at any time.
#[derive(Debug, Default)]
#[repr(align(128))] // a cache line pair of its own: the thread writes here for each system call
pub(crate) struct StreamCounters {
    bytes: [AtomicU64; 2],
    packets: [AtomicU64; 2],
    received: Mutex<ReceivedPackets>,
    last_arrival: AtomicU64,
    finished_at: AtomicU64,
    broken: Mutex<Option<StreamFailure>>,
    times: OnceLock<ThreadTimes>,
}

/// Times of a stream's thread, over all of its life.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadTimes {
    /// Processor time.
    pub(super) cpu: CpuTime,
    /// Time for which it could run and waited for a processor; `None` where the kernel does not count it.
    pub(super) wait: Option<Duration>,
}

/// Counters of a UDP receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedPackets {
    /// Since the first datagram.
    pub total: DatagramCounts,
    /// Counts at the start of the counted part.
    pub at_start: DatagramCounts,
    /// Drops at this socket since the first datagram; `None` when the kernel has not reported them.
    pub dropped: Option<PacketCount>,
    /// Drops at the start of the counted part.
    pub dropped_at_start: Option<PacketCount>,
    /// Arrival of the last datagram.
    pub last_arrival: Option<MonotonicTime>,
}

/// Reason why a stream's thread failed.
#[derive(Debug)]
pub(crate) enum StreamFailure {
    /// Sending failed.
    Write(io::Error),
    /// Receiving failed.
    Read(io::Error),
    /// The peer closed the stream.
    Closed,
    /// The file of `-F` failed.
    File(io::Error),
    /// The kernel refused a setting that the thread needs.
    SetUp(io::Error),
}

impl StreamCounters {
    /// Adds `bytes`.
    pub(crate) fn add_bytes(&self, phase: TestPhase, bytes: usize) {
        // A single writer: no read-modify-write cycle on the bus is needed.
        let counter = &self.bytes[phase as usize];
        counter.store(counter.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Adds `count` datagrams.
    pub(crate) fn add_packets(&self, phase: TestPhase, count: PacketCount) {
        let counter = &self.packets[phase as usize];
        counter.store(counter.load(Ordering::Relaxed) + count.get(), Ordering::Relaxed);
    }

    /// Publishes the UDP receiver's counters.
    pub(crate) fn set_received(&self, received: ReceivedPackets) {
        *lock(&self.received) = received;
    }

    /// Notes the arrival of the receiver's latest data.
    pub(crate) fn set_last_arrival(&self, at: MonotonicTime) {
        self.last_arrival.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// Arrival of the receiver's latest data.
    pub(crate) fn last_arrival(&self) -> Option<MonotonicTime> {
        let nanos = self.last_arrival.load(Ordering::Relaxed);
        (nanos > 0).then(|| MonotonicTime::from_nanos(nanos))
    }

    /// Payload bytes moved in a phase.
    pub(crate) fn bytes(&self, phase: TestPhase) -> ByteCount {
        ByteCount::new(self.bytes[phase as usize].load(Ordering::Relaxed))
    }

    /// Datagrams sent in a phase.
    pub(crate) fn packets(&self, phase: TestPhase) -> PacketCount {
        PacketCount::new(self.packets[phase as usize].load(Ordering::Relaxed))
    }

    /// Counters of the UDP receiver.
    pub(crate) fn received(&self) -> ReceivedPackets {
        *lock(&self.received)
    }

    /// Time of the thread's last byte; `None` while it runs.
    pub(crate) fn finished_at(&self) -> Option<MonotonicTime> {
        match self.finished_at.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(MonotonicTime::from_nanos(nanos)),
        }
    }

    /// Takes the reason of the thread's failure, if any.
    pub(crate) fn take_failure(&self) -> Option<StreamFailure> {
        lock(&self.broken).take()
    }

    /// Processor time of the thread; `None` until it is joined.
    pub(crate) fn cpu(&self) -> Option<CpuTime> {
        Some(self.times.get()?.cpu)
    }

    /// Time for which the thread could run and waited for a processor; `None` where unknown, and until it is joined.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.times.get()?.wait
    }

    /// Publishes the end of the transfer, and its failure, if any.
    pub(super) fn finish(&self, at: MonotonicTime, broken: Option<StreamFailure>) {
        *lock(&self.broken) = broken;
        self.finished_at.store(at.as_nanos().max(1), Ordering::Release);
    }

    /// Publishes the times of the thread, once.
    pub(super) fn set_times(&self, times: ThreadTimes) {
        let _ = self.times.set(times);
    }
}

/// A poisoned lock only means that another thread panicked; its figures are still the best available.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Processor time as a share of wall time.
pub(crate) fn utilization(cpu: CpuTime, wall: Duration) -> Option<CpuUtilization> {
    use linerate_units::Ratio;
    let share = |time: Duration| Ratio::of(time.as_secs_f64(), wall.as_secs_f64());
    Some(CpuUtilization { total: share(cpu.user + cpu.system)?, user: share(cpu.user)?, system: share(cpu.system)? })
}
