//! The thread of a flow: sends a request when it is due, waits for its response, and records the time between.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use linerate_analysis::latency_histogram::LatencyHistogram;
use linerate_sys::clock;
use linerate_units::MonotonicTime;

use super::mode::{TransactionFailure, Transactor};
use super::schedule::RequestSchedule;
use crate::probe::{ProbeError, Result};

/// Time after the last intended request in which those that wait are still sent.
const GRACE: Duration = Duration::from_secs(2);

/// Longest sleep between two looks at the orders.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// Timer slack; by default sleeping is late by up to 50 µs (`PR_SET_TIMERSLACK`).
const TIMER_SLACK: Duration = Duration::from_nanos(1);

/// Least time between two transactions that fail: a server that is gone is not asked without end.
const FAILURE_PAUSE: Duration = Duration::from_millis(10);

/// Orders for all flows.
#[derive(Debug)]
pub(super) struct FlowWatch {
    stopping: AtomicBool,
    /// Time limit of a response.
    pub(super) timeout: Duration,
}

impl FlowWatch {
    pub(super) const fn new(timeout: Duration) -> Self {
        Self { stopping: AtomicBool::new(false), timeout }
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

/// Transactions of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SecondTally {
    pub(super) transactions: u64,
    pub(super) lost: u64,
    pub(super) sum: Duration,
    pub(super) max: Duration,
}

/// Record of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowRecord {
    /// From the intended sending.
    pub(super) latency: LatencyHistogram,
    /// From the actual sending; empty in a closed loop.
    pub(super) service: LatencyHistogram,
    pub(super) seconds: Vec<SecondTally>,
    pub(super) transactions: u64,
    pub(super) lost: u64,
    pub(super) unfinished: u64,
    /// End of the last transaction since the start; of a paced flow, the end of its last interval where that is later.
    pub(super) measured: Duration,
    pub(super) processor: Duration,
    pub(super) failure: Option<String>,
    /// Reason of the first lost transaction, where it is known.
    pub(super) loss: Option<String>,
}

impl FlowRecord {
    fn second(&mut self, since_start: Duration) -> &mut SecondTally {
        // Whole seconds: a division of nanoseconds would take as long as a look at the clock.
        let index = usize::try_from(since_start.as_secs()).unwrap_or(0);
        if index >= self.seconds.len() {
            self.seconds.resize(index + 1, SecondTally::default());
        }
        &mut self.seconds[index]
    }

    /// Extends the measured time to `since_start`, the end of a paced flow's last interval: each request has one, the last too.
    fn extend(&mut self, since_start: Duration) {
        self.measured = self.measured.max(since_start);
    }

    fn complete(&mut self, latency: Duration, since_start: Duration) {
        self.transactions += 1;
        self.latency.record(latency);
        self.measured = since_start;
        let second = self.second(since_start);
        second.transactions += 1;
        second.sum += latency;
        second.max = second.max.max(latency);
    }

    fn lose(&mut self, since_start: Duration) {
        self.lost += 1;
        self.measured = since_start;
        self.second(since_start).lost += 1;
    }

    /// Records a transaction that is not complete: it took this long at least.
    fn leave(&mut self, elapsed: Duration) {
        self.unfinished += 1;
        self.latency.record(elapsed);
    }
}

/// A flow with its thread.
pub(super) struct FlowThread {
    transactions: Arc<AtomicU64>,
    watch: Arc<FlowWatch>,
    thread: Option<JoinHandle<FlowRecord>>,
}

impl FlowThread {
    /// Starts the thread; its first request is due at `start`, its last before `time` has passed.
    pub(super) fn start(
        transactor: Box<dyn Transactor>,
        schedule: RequestSchedule,
        watch: Arc<FlowWatch>,
        start: MonotonicTime,
        time: Duration,
    ) -> Result<Self> {
        let transactions = Arc::new(AtomicU64::new(0));
        let flow = Flow {
            transactor,
            watch: Arc::clone(&watch),
            transactions: Arc::clone(&transactions),
            start,
            end: start + time,
            record: FlowRecord::default(),
        };
        let thread = std::thread::Builder::new().name("rr".into()).stack_size(256 << 10);
        let thread = thread
            .spawn(move || flow.run(schedule))
            .map_err(|cause| ProbeError::io("starting the thread of a flow", &cause))?;
        Ok(Self { transactions, watch, thread: Some(thread) })
    }

    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Transactions so far.
    pub(super) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    pub(super) fn join(mut self) -> FlowRecord {
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.unwrap_or_else(|| FlowRecord {
            failure: Some("the thread of the flow failed".to_owned()),
            ..FlowRecord::default()
        })
    }
}

impl Drop for FlowThread {
    /// Ends the thread of a test that could not start.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.watch.stop();
            let _ = thread.join();
        }
    }
}

struct Flow {
    transactor: Box<dyn Transactor>,
    watch: Arc<FlowWatch>,
    transactions: Arc<AtomicU64>,
    start: MonotonicTime,
    end: MonotonicTime,
    record: FlowRecord,
}

impl Flow {
    fn run(mut self, mut schedule: RequestSchedule) -> FlowRecord {
        // A larger slack makes requests late, which the latency shows.
        let _ = clock::set_timer_slack(TIMER_SLACK);
        let before = clock::thread_cpu_time();
        self.sleep_until(self.start);
        let ended = match schedule {
            RequestSchedule::Closed => self.run_closed(),
            _ => self.run_open(&mut schedule),
        };
        if let Err(TransactionFailure::Broken(reason)) = ended {
            self.record.failure = Some(reason);
        }
        self.record.processor = clock::thread_cpu_time().saturating_sub(before);
        self.record
    }

    fn sleep_until(&self, time: MonotonicTime) {
        while !self.watch.is_stopping() {
            let now = clock::monotonic_now();
            if now >= time {
                return;
            }
            clock::sleep_until(time.min(now + MAX_SLEEP));
        }
    }

    /// Sends each request when the previous transaction is complete: one look at the clock for each.
    fn run_closed(&mut self) -> core::result::Result<(), TransactionFailure> {
        let mut sent = clock::monotonic_now();
        while sent < self.end && !self.watch.is_stopping() {
            sent = self.transact(sent, None)?;
        }
        Ok(())
    }

    /// Sends each request at its intended time, or once the previous transaction is complete if that is later. Lasts until the
    /// end, as the last interval does.
    fn run_open(&mut self, schedule: &mut RequestSchedule) -> core::result::Result<(), TransactionFailure> {
        while let Some(intended) = schedule.next().filter(|intended| *intended < self.end) {
            self.sleep_until(intended);
            let now = clock::monotonic_now();
            if self.watch.is_stopping() || now >= self.end + GRACE {
                self.record.extend(intended.since(self.start));
                self.leave_rest(intended, schedule, now.min(self.end + GRACE));
                return Ok(());
            }
            self.transact(now, Some(intended))?;
        }
        self.sleep_until(self.end);
        self.record.extend(self.end.since(self.start));
        Ok(())
    }

    /// Records the requests that were due and have not been sent.
    fn leave_rest(&mut self, first: MonotonicTime, schedule: &mut RequestSchedule, now: MonotonicTime) {
        let mut next = Some(first);
        while let Some(intended) = next.filter(|intended| *intended < self.end && *intended < now) {
            self.record.leave(now.since(intended));
            next = schedule.next();
        }
    }

    /// One transaction; returns the time at its end.
    fn transact(
        &mut self,
        sent: MonotonicTime,
        intended: Option<MonotonicTime>,
    ) -> core::result::Result<MonotonicTime, TransactionFailure> {
        let outcome = self.transactor.transact(sent, &self.watch);
        let now = clock::monotonic_now();
        let since_start = now.since(self.start);
        match outcome {
            Ok(true) => {
                if intended.is_some() {
                    self.record.service.record(now.since(sent));
                }
                self.record.complete(now.since(intended.unwrap_or(sent)), since_start);
                self.transactions.store(self.record.transactions, Ordering::Relaxed);
            }
            Ok(false) => self.record.lose(since_start),
            Err(TransactionFailure::Failed(reason)) => {
                self.record.loss.get_or_insert(reason);
                self.record.lose(since_start);
                self.sleep_until((sent + FAILURE_PAUSE).min(self.end));
                return Ok(clock::monotonic_now());
            }
            Err(failure) => {
                self.record.leave(now.since(intended.unwrap_or(sent)));
                return Err(failure);
            }
        }
        Ok(now)
    }
}
