//! Sending a stream of STAMP packets at a rate: periodic or Poisson, singly or in GSO trains.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_sys::clock;
use linerate_sys::data::train::{self, DatagramMarking, SendFailure};
use linerate_sys::poll::{self, PollInterest, Waker};
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, WallTime};
use linerate_wire::probe::{PacketSpacing, SendOrder, SentReport};
use linerate_wire::stamp::{SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat};

use super::datagrams::DatagramSocket;
use super::error::{ProbeError, Result};
use super::lock;
use crate::pace::{PacingOptions, SendPermission, StreamPacer};
use crate::resources::{DESCRIPTORS_PER_FLOW, FLOW_MEMORY, MemoryLease, ResourceAccount};
use crate::server_rate::RateAccount;

/// Longest sleep between two looks at the orders.
const MAX_SLEEP: Duration = Duration::from_millis(500);

/// Pause of the sender when this host's device queue is full.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(1);

/// Timer slack; by default sleeping is late by up to 50 µs (`PR_SET_TIMERSLACK`).
const TIMER_SLACK: Duration = Duration::from_nanos(1);

/// Shortest time between two wake-ups. What is due meanwhile leaves together, and must fit into the smallest buffers: a
/// burst that is dropped there looks like a slow path.
const GRAIN: Duration = Duration::from_micros(50);

/// Limits of the streams of a session, in addition to their orders.
#[derive(Debug)]
pub(crate) struct StreamAllowance {
    /// Bytes that may still be sent.
    bytes: AtomicU64,
    /// Rate of the server, which the streams share.
    rate: Option<RateAccount>,
    /// Account of the streams' memory.
    account: ResourceAccount,
}

impl StreamAllowance {
    /// Allowance of a client, within the rate of its server.
    pub(crate) fn new(bytes: ByteCount, account: ResourceAccount) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicU64::new(bytes.get()), rate: account.rate(), account })
    }

    /// No limit.
    pub(crate) fn unlimited() -> Arc<Self> {
        Self::new(ByteCount::new(u64::MAX), ResourceAccount::default())
    }

    fn take(&self, bytes: u64) -> bool {
        let left = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(bytes) };
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }

    fn deferred_until(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.rate.as_ref()?.deferred_until(now)
    }

    /// Reserves `bytes` of the server's rate; `false` when another flow has the turn.
    fn reserve(&self, bytes: ByteCount) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.reserve(bytes, clock::monotonic_now()))
    }

    fn give_back(&self, unused: ByteCount) {
        if let Some(rate) = &self.rate {
            rate.give_back(unused);
        }
    }

    fn held(&self, rate: BitRate) -> BitRate {
        self.rate.as_ref().map_or(rate, |server| rate.min(server.most()))
    }
}

/// A stream that a thread of its own sends. Dropping it ends it.
#[derive(Debug)]
pub struct SendingThread {
    shared: Arc<SendingState>,
    thread: Option<JoinHandle<()>>,
    /// Returned after the end of the thread.
    _memory: MemoryLease,
}

#[derive(Debug)]
struct SendingState {
    allowance: Arc<StreamAllowance>,
    stopping: AtomicBool,
    over: AtomicBool,
    /// Bit pattern of the rate's bit/s.
    rate: AtomicU64,
    orders: Waker,
    report: Mutex<SentReport>,
}

impl SendingThread {
    /// Starts to send. `ended` is woken when the stream is over.
    pub(crate) fn start(
        datagrams: &Arc<DatagramSocket>,
        order: SendOrder,
        allowance: &Arc<StreamAllowance>,
        ended: Option<Arc<Waker>>,
    ) -> Result<Self> {
        let memory = allowance.account.lease_flows(FLOW_MEMORY, DESCRIPTORS_PER_FLOW)?;
        let rate = allowance.held(order.rate);
        let shared = Arc::new(SendingState {
            allowance: Arc::clone(allowance),
            stopping: AtomicBool::new(false),
            over: AtomicBool::new(false),
            rate: AtomicU64::new(rate.bits_per_second().to_bits()),
            orders: Waker::new()?,
            report: Mutex::new(SentReport {
                stream: order.stream,
                packets: PacketCount::ZERO,
                bytes: ByteCount::ZERO,
                first: None,
                newest: None,
                refused_too_large: PacketCount::ZERO,
                refused_no_room: PacketCount::ZERO,
                rate,
            }),
        });
        if order.dont_fragment {
            datagrams.probe_mtu(true)?;
        }
        let emitter = StreamSender::new(Arc::clone(datagrams), Arc::clone(&shared), order);
        let thread = std::thread::Builder::new().name(format!("probe-send-{}", order.stream)).stack_size(256 << 10);
        let thread = thread
            .spawn(move || {
                emitter.run();
                if let Some(ended) = ended {
                    ended.wake();
                }
            })
            .map_err(|cause| ProbeError::io("starting the thread that sends probes", &cause))?;
        Ok(Self { shared, thread: Some(thread), _memory: memory })
    }

    /// Changes the payload rate.
    pub fn set_rate(&self, rate: BitRate) {
        let rate = self.shared.allowance.held(rate);
        self.shared.rate.store(rate.bits_per_second().to_bits(), Ordering::Relaxed);
        lock(&self.shared.report).rate = rate;
        self.shared.orders.wake();
    }

    /// True when it has ended: it was stopped, or is complete.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    /// Report on the packets sent so far.
    #[must_use]
    pub fn progress(&self) -> SentReport {
        *lock(&self.shared.report)
    }

    /// Ends it.
    #[must_use]
    pub fn stop(mut self) -> SentReport {
        self.end();
        self.progress()
    }

    /// Waits until it is complete.
    #[must_use]
    pub fn wait(mut self) -> SentReport {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.progress()
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.orders.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for SendingThread {
    fn drop(&mut self) {
        self.end();
    }
}

impl SendingState {
    fn rate(&self) -> BitRate {
        BitRate::from_bits_per_second(f64::from_bits(self.rate.load(Ordering::Relaxed)))
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Sleeps until `until`, or until there are new orders.
    fn sleep_until(&self, until: MonotonicTime) {
        let left = until.since(clock::monotonic_now()).min(MAX_SLEEP);
        if !left.is_zero() && poll::wait_for(&self.orders, PollInterest::READ, Some(left)).unwrap_or(true) {
            self.orders.drain();
        }
    }
}

/// Schedule of the packets.
enum PacketSchedule {
    Periodic(StreamPacer),
    Poisson(PoissonProcess),
}

impl PacketSchedule {
    fn new(order: &SendOrder, rate: BitRate, start: MonotonicTime) -> Option<Self> {
        Some(match order.spacing {
            PacketSpacing::Periodic => {
                // Each packet of a stream with a count matters by itself; a stream with a duration is a load.
                let loads = order.limit.count.is_none();
                let burst = if loads { group(rate.time_to_send(order.size)?) } else { None };
                Self::periodic(order, rate, burst, start)?
            }
            PacketSpacing::Bursts { packets } => {
                Self::periodic(order, rate, Some(PacketCount::new(u64::from(packets))), start)?
            }
            PacketSpacing::Poisson { seed } => {
                Self::Poisson(PoissonProcess::new(seed, rate.time_to_send(order.size)?, start))
            }
        })
    }

    fn periodic(order: &SendOrder, rate: BitRate, burst: Option<PacketCount>, start: MonotonicTime) -> Option<Self> {
        let pacing = PacingOptions { rate, block: order.size, burst, timer: GRAIN, keeps_rate: false };
        StreamPacer::new(pacing, start).map(Self::Periodic)
    }

    fn turn(&mut self, now: MonotonicTime) -> SendPermission {
        match self {
            Self::Periodic(pacer) => pacer.turn(now),
            Self::Poisson(poisson) if poisson.next > now => SendPermission::Wait(poisson.next),
            Self::Poisson(_) => SendPermission::Send(PacketCount::new(1)),
        }
    }

    fn sent(&mut self, count: PacketCount, now: MonotonicTime) {
        match self {
            Self::Periodic(pacer) => pacer.sent(count, now),
            Self::Poisson(poisson) => poisson.advance(now),
        }
    }
}

/// Number of packets with this interval that leave together: each wake-up of sender and receiver costs as much as
/// sending several. Few enough for the smallest buffers; `None` where the pacer's own grain is longer.
fn group(distance: Duration) -> Option<PacketCount> {
    const MOST: u128 = 4;
    const LONGEST: Duration = Duration::from_micros(500);
    let count = (LONGEST.as_nanos() / distance.as_nanos().max(1)).min(MOST);
    let takes = distance.as_nanos() * count;
    (count > 1 && takes > GRAIN.as_nanos()).then(|| PacketCount::new(u64::try_from(count).unwrap_or(1)))
}

/// A Poisson process (RFC 2330 §11.1.1): the intervals are exponentially distributed.
#[derive(Clone, Debug)]
pub(crate) struct PoissonProcess {
    random: u64,
    mean: Duration,
    pub(crate) next: MonotonicTime,
}

impl PoissonProcess {
    /// A process with this mean interval, from a seed; the first event is at `start`.
    pub(crate) fn new(seed: u64, mean: Duration, start: MonotonicTime) -> Self {
        Self { random: seed, mean, next: start }
    }

    /// Draws an interval. The logarithm of 2^-53 is -37: none is longer than 37 times the mean.
    pub(crate) fn interval(&mut self) -> Duration {
        let uniform = self.uniform();
        self.mean.mul_f64(-uniform.ln())
    }

    /// Sets the time of the next event. Events that are late by more than a second are dropped.
    pub(crate) fn advance(&mut self, now: MonotonicTime) {
        let distance = self.interval();
        self.next = self.next + distance;
        if now.since(self.next) > crate::pace::MAX_BACKLOG {
            self.next = now;
        }
    }

    /// A number in (0, 1], by `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((mixed >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// State of the sending thread.
struct StreamSender {
    datagrams: Arc<DatagramSocket>,
    shared: Arc<SendingState>,
    order: SendOrder,
    mark: DatagramMarking,
    /// Buffer for the longest GSO train.
    train: Vec<u8>,
    size: usize,
    /// True while kernel and device support segmentation.
    trains: bool,
    /// Number of the next packet.
    next: u32,
    /// Packets handed to the kernel, accepted or not.
    tried: u64,
}

impl StreamSender {
    fn new(datagrams: Arc<DatagramSocket>, shared: Arc<SendingState>, order: SendOrder) -> Self {
        let size = order.size.to_usize();
        let most = (train::MAX_TRAIN_BYTES.to_usize() / size).clamp(1, train::MAX_TRAIN_DATAGRAMS);
        let packet = SenderPacket { session: SessionIdentifier::new(order.stream.get()), ..SenderPacket::default() };
        let train = packet.encode(order.size).repeat(most);
        let mark = DatagramMarking::of(datagrams.socket(), Some(order.type_of_service));
        Self { datagrams, shared, order, mark, train, size, trains: most > 1, next: 0, tried: 0 }
    }

    fn run(mut self) {
        // A larger slack makes the sender late, not wrong.
        let _ = clock::set_timer_slack(TIMER_SLACK);
        self.send_all();
        if self.order.dont_fragment {
            let _ = self.datagrams.probe_mtu(false);
        }
        self.shared.over.store(true, Ordering::Release);
    }

    fn send_all(&mut self) {
        let start = clock::monotonic_now();
        let end = start + self.order.limit.duration.unwrap_or(SendOrder::LONGEST);
        let mut rate = self.shared.rate();
        let Some(mut schedule) = PacketSchedule::new(&self.order, rate, start) else { return };
        while !self.shared.stopping() {
            let now = clock::monotonic_now();
            if now >= end || self.datagrams.is_peer_gone() {
                return;
            }
            let ordered = self.shared.rate();
            if ordered != rate {
                rate = ordered;
                let Some(new) = PacketSchedule::new(&self.order, rate, now) else { return };
                schedule = new;
            }
            if let Some(until) = self.shared.allowance.deferred_until(now) {
                self.shared.sleep_until(until.min(end));
                continue;
            }
            match schedule.turn(now) {
                SendPermission::Wait(until) => self.shared.sleep_until(until.min(end)),
                SendPermission::Send(count) => {
                    let Some(sent) = self.send(count) else { return };
                    schedule.sent(sent, now);
                }
            }
        }
    }

    /// Sends up to `count` packets; returns the number tried, `None` at the end of the stream.
    fn send(&mut self, count: PacketCount) -> Option<PacketCount> {
        let left = self.order.limit.count.map_or(u64::MAX, |count| count.get() - self.tried.min(count.get()));
        let most = if self.trains { self.train.len() / self.size } else { 1 };
        let count = count.get().min(left).min(most as u64);
        if count == 0 {
            return None;
        }
        let reserved = ByteCount::new(count * self.size as u64);
        if !self.shared.allowance.reserve(reserved) {
            return Some(PacketCount::ZERO);
        }
        if !self.shared.allowance.take(reserved.get()) {
            return None;
        }
        let (count, bytes) = (u32::try_from(count).unwrap_or(1), usize::try_from(count).unwrap_or(1) * self.size);
        let now = clock::realtime_now();
        let stamp = StampTimestamp::from_wall(now, TimestampFormat::Ntp);
        for (index, datagram) in (0..count).zip(self.train[..bytes].chunks_exact_mut(self.size)) {
            SenderPacket::renumber(datagram, self.next.wrapping_add(index), stamp);
        }
        let outcome = self.hand_over(bytes, count);
        if matches!(outcome, Ok(false) | Err(_)) {
            self.shared.allowance.give_back(reserved);
        }
        if let Err(SendFailure::Broken) = outcome {
            return None;
        }
        if outcome == Ok(false) {
            // The same packets are retried, one by one.
            self.trains = false;
            return Some(PacketCount::ZERO);
        }
        if outcome == Err(SendFailure::Full) {
            // As with a blocking socket: packets that this host's device does not accept yet are not lost.
            return Some(PacketCount::ZERO);
        }
        self.account(count, now, outcome.err());
        Some(PacketCount::new(u64::from(count)))
    }

    fn hand_over(&self, bytes: usize, count: u32) -> core::result::Result<bool, SendFailure> {
        let bytes = &self.train[..bytes];
        match u16::try_from(self.size) {
            Ok(size) if count > 1 => self.datagrams.send_train(bytes, size, self.mark),
            _ => self.datagrams.send(bytes, self.mark).map(|()| true),
        }
    }

    fn account(&mut self, count: u32, now: WallTime, refusal: Option<SendFailure>) {
        self.next = self.next.wrapping_add(count);
        self.tried += u64::from(count);
        let packets = PacketCount::new(u64::from(count));
        let mut report = lock(&self.shared.report);
        match refusal {
            None => {
                report.packets += packets;
                report.bytes += packets * self.order.size;
                report.first.get_or_insert(now);
                report.newest = Some(now);
            }
            Some(SendFailure::TooLarge) => report.refused_too_large += packets,
            Some(_) => report.refused_no_room += packets,
        }
        drop(report);
        if refusal == Some(SendFailure::NoRoom) {
            self.shared.sleep_until(clock::monotonic_now() + FULL_QUEUE_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::ServerResources;

    #[test]
    fn a_poisson_process_has_exponential_intervals() {
        let mean = Duration::from_millis(10);
        let mut process = PoissonProcess::new(42, mean, MonotonicTime::from_nanos(0));
        let count = 20_000;
        let mut distances: Vec<f64> = Vec::with_capacity(count);
        for _ in 0..count {
            let before = process.next;
            process.advance(before);
            distances.push(process.next.since(before).as_secs_f64() / mean.as_secs_f64());
        }
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let n = count as f64;
        // Mean and standard deviation are both 1; the mean of n has a standard deviation of 1/sqrt(n).
        let average = distances.iter().sum::<f64>() / n;
        assert!((average - 1.0).abs() < 5.0 / n.sqrt(), "{average}");
        // The share above the mean is 1/e.
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let above = distances.iter().filter(|distance| **distance > 1.0).count() as f64 / n;
        let expected = (-1.0_f64).exp();
        assert!((above - expected).abs() < 5.0 * (expected * (1.0 - expected) / n).sqrt(), "{above}");
        let again = |seed| {
            let mut process = PoissonProcess::new(seed, mean, MonotonicTime::from_nanos(0));
            process.advance(MonotonicTime::from_nanos(0));
            process.next
        };
        assert_eq!(again(7), again(7));
        assert_ne!(again(7), again(8));
    }

    #[test]
    fn bursts_of_a_load_fit_into_four_packets_of_buffer() {
        for (megabits, burst) in
            [(1.0, None), (20.0, None), (24.1, None), (48.1, Some(2)), (100.0, Some(4)), (900.0, Some(4))]
        {
            let distance = BitRate::from_bits_per_second(megabits * 1e6).time_to_send(ByteCount::new(1500));
            assert_eq!(group(distance.expect("a rate")), burst.map(PacketCount::new), "{megabits} Mbit/s");
        }
        // Beyond that, what is due within the grain.
        assert_eq!(group(Duration::from_micros(12)), None);
    }

    #[test]
    fn an_allowance_ends() {
        let server = ServerResources::limited(ByteCount::ZERO, 0, Some(BitRate::from_bits_per_second(1e6)));
        let account = server.account(std::net::Ipv4Addr::LOCALHOST.into());
        let allowance = StreamAllowance::new(ByteCount::new(100), account);
        assert!(allowance.take(60) && !allowance.take(60) && allowance.take(40) && !allowance.take(1));
        assert_eq!(allowance.held(BitRate::from_bits_per_second(2e6)), BitRate::from_bits_per_second(1e6));
        let unlimited = StreamAllowance::unlimited();
        assert!(unlimited.take(u64::MAX - 1) && unlimited.take(u64::MAX - 1));
    }
}
