//! Round-trip probes at an interval, answered by the far end's reflector.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use linerate_sys::clock;
use linerate_sys::data::train::{DatagramMarking, SendFailure};
use linerate_sys::poll::{self, PollInterest, Waker};
use linerate_sys::time_stamp::TimeStamp;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, TypeOfService, WallTime};
use linerate_wire::probe::{PacketSpacing, StreamNumber};
use linerate_wire::stamp::tlv::{self, ClassOfService, StampTlv};
use linerate_wire::stamp::{
    AuthenticationMode, BASE_LENGTH, ReflectorPacket, SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat,
};

use super::datagrams::{DatagramRun, DatagramSink, DatagramSocket};
use super::error::{ProbeError, Result};
use super::lock;
use super::stream::PoissonProcess;

/// Most probes of one prober: their results are kept in memory.
const MOST: u64 = 2_000_000;

/// Shortest interval.
const MIN_INTERVAL: Duration = Duration::from_micros(100);

/// Longest sleep between two looks at the orders.
const MAX_SLEEP: Duration = Duration::from_millis(500);

/// Parameters of round-trip probes of one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeOrder {
    /// Mean interval of the probes; 100 µs at least.
    pub interval: Duration,
    /// UDP payload, 44 to 65507 bytes; with 52 and more the answer also reports the mark with which the probe arrived.
    pub size: ByteCount,
    /// Spacing of the probes.
    pub spacing: PacketSpacing,
    /// Their mark; the answers have the same DSCP, and with 52 bytes and more the same ECN codepoint.
    pub type_of_service: TypeOfService,
    /// True when probes and answers larger than the path's MTU are lost instead of fragmented.
    pub dont_fragment: bool,
    /// Number of probes; `None` for an unlimited number.
    pub count: Option<PacketCount>,
}

impl ProbeOrder {
    /// Smallest size with which the answer has the probe's ECN codepoint, and reports the mark on arrival.
    pub const MARKED_SIZE: ByteCount = ByteCount::new(52);

    /// Small best-effort probes at this interval.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self {
            interval,
            size: ByteCount::new(64),
            spacing: PacketSpacing::Periodic,
            type_of_service: TypeOfService::default(),
            dont_fragment: false,
            count: None,
        }
    }
}

/// Result of one probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeResult {
    /// Its number, from 0.
    pub sequence: u32,
    /// Time of sending.
    pub sent: TimeStamp,
    /// First answer; `None` while there is none. The caller decides when it is lost.
    pub answer: Option<ProbeAnswer>,
    /// True when it never left: it is larger than the MTU of this host's device, or the kernel's path MTU.
    pub too_large: bool,
    /// True when it never left: this host's queue or buffer was full.
    pub no_room: bool,
    /// Number of further answers: the probe, or its answer, was duplicated on the path.
    pub duplicates: u32,
}

/// Content of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeAnswer {
    /// Time of its arrival.
    pub received: TimeStamp,
    /// Round trip without the far end's processing time.
    pub round_trip: Duration,
    /// Arrival of the probe, on the far end's clock.
    pub far_received: Option<WallTime>,
    /// Departure of the answer, on the far end's clock.
    pub far_sent: Option<WallTime>,
    /// The far end's count of its answers to this stream, from 0: together with the sequence number it shows the
    /// direction of a loss.
    pub far_sequence: u32,
    /// Hop limit (time to live) on arrival of the probe.
    pub up_time_to_live: Option<u8>,
    /// Hop limit (time to live) on arrival of the answer.
    pub down_time_to_live: Option<u8>,
    /// Mark on arrival of the probe.
    pub up_type_of_service: Option<TypeOfService>,
    /// Mark on arrival of the answer.
    pub down_type_of_service: Option<TypeOfService>,
}

/// A running series of probes, with a thread of its own. Dropping it ends it.
pub struct ProbeSeries {
    datagrams: Arc<DatagramSocket>,
    stream: StreamNumber,
    book: Arc<ProbeLog>,
    thread: Option<JoinHandle<()>>,
}

impl core::fmt::Debug for ProbeSeries {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Prober").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// Results by number, and orders to the thread.
struct ProbeLog {
    results: Mutex<Vec<ProbeResult>>,
    /// Nanoseconds.
    interval: AtomicU64,
    stopping: AtomicBool,
    over: AtomicBool,
    orders: Waker,
    /// Waker notified of answers.
    answered: OnceLock<Arc<Waker>>,
}

impl ProbeSeries {
    pub(crate) fn start(datagrams: &Arc<DatagramSocket>, stream: StreamNumber, order: ProbeOrder) -> Result<Self> {
        if order.size < BASE_LENGTH || order.size > ByteCount::new(65507) {
            return Err(ProbeError::System(format!("a probe has 44 to 65507 bytes, not {}", order.size.get())));
        }
        let book = Arc::new(ProbeLog {
            results: Mutex::default(),
            interval: AtomicU64::new(whole(order.interval.max(MIN_INTERVAL))),
            stopping: AtomicBool::new(false),
            over: AtomicBool::new(false),
            orders: Waker::new()?,
            answered: OnceLock::new(),
        });
        let sink: Arc<dyn DatagramSink> = book.clone();
        if !datagrams.register(stream, sink, false) {
            return Err(ProbeError::System(format!("stream {stream} is in use")));
        }
        let mut prober = Self { datagrams: Arc::clone(datagrams), stream, book: Arc::clone(&book), thread: None };
        if order.dont_fragment {
            datagrams.probe_mtu(true)?;
        }
        let sender = ProbeSender::new(Arc::clone(datagrams), book, stream, order);
        let thread = std::thread::Builder::new().name(format!("probe-{stream}")).stack_size(256 << 10);
        let thread = thread.spawn(move || sender.run());
        prober.thread = Some(thread.map_err(|cause| ProbeError::io("starting a thread for probes", &cause))?);
        Ok(prober)
    }

    /// The number of the stream.
    #[must_use]
    pub fn stream(&self) -> StreamNumber {
        self.stream
    }

    /// Wakes `waker` each time an answer has arrived. Only the first waker is kept.
    pub fn wake_on_answers(&self, waker: Arc<Waker>) {
        let _ = self.book.answered.set(waker);
    }

    /// Number of probes sent so far.
    #[must_use]
    pub fn sent(&self) -> PacketCount {
        PacketCount::new(lock(&self.book.results).len() as u64)
    }

    /// Results of the probes from the `from`-th on, in the order of sending. An unanswered one may still get its
    /// answer: read it again.
    #[must_use]
    pub fn since(&self, from: usize) -> Vec<ProbeResult> {
        lock(&self.book.results).get(from..).map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Changes the interval, 100 µs at least.
    pub fn set_interval(&self, interval: Duration) {
        self.book.interval.store(whole(interval.max(MIN_INTERVAL)), Ordering::Relaxed);
        self.book.orders.wake();
    }

    /// True when all ordered probes have been sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.book.over.load(Ordering::Acquire)
    }

    /// Ends it, and waits up to `grace` for missing answers.
    #[must_use]
    pub fn stop(mut self, grace: Duration) -> Vec<ProbeResult> {
        self.end();
        let deadline = clock::monotonic_now() + grace;
        let missing = || {
            let results = lock(&self.book.results);
            results.iter().rev().take(10_000).any(|result| {
                let on_its_way = result.answer.is_none() && !result.too_large && !result.no_room;
                on_its_way && result.sent.monotonic + grace > clock::monotonic_now()
            })
        };
        while missing() && clock::monotonic_now() < deadline {
            clock::sleep_until(deadline.min(clock::monotonic_now() + Duration::from_millis(5)));
        }
        core::mem::take(&mut *lock(&self.book.results))
    }

    fn end(&mut self) {
        self.book.stopping.store(true, Ordering::Release);
        self.book.orders.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for ProbeSeries {
    fn drop(&mut self) {
        self.end();
        self.datagrams.forget(self.stream);
    }
}

/// State of the sending thread.
struct ProbeSender {
    datagrams: Arc<DatagramSocket>,
    book: Arc<ProbeLog>,
    order: ProbeOrder,
    mark: DatagramMarking,
    packet: Vec<u8>,
    next: u32,
}

impl ProbeSender {
    fn new(datagrams: Arc<DatagramSocket>, book: Arc<ProbeLog>, stream: StreamNumber, order: ProbeOrder) -> Self {
        let packet = SenderPacket { session: SessionIdentifier::new(stream.get()), ..SenderPacket::default() };
        let wanted = order.type_of_service.dscp();
        let class = StampTlv::ClassOfService(ClassOfService {
            requested: wanted,
            requested_ecn: order.type_of_service.get() & 3,
            ..ClassOfService::default()
        });
        let has_room = order.size >= ProbeOrder::MARKED_SIZE;
        let packet = packet.encode_with(if has_room { core::slice::from_ref(&class) } else { &[] }, order.size, None);
        let mark = DatagramMarking::of(datagrams.socket(), Some(order.type_of_service));
        Self { datagrams, book, order, mark, packet, next: 0 }
    }

    fn run(mut self) {
        let _ = clock::set_timer_slack(Duration::from_nanos(1));
        self.send_all();
        if self.order.dont_fragment {
            let _ = self.datagrams.probe_mtu(false);
        }
        self.book.over.store(true, Ordering::Release);
    }

    fn send_all(&mut self) {
        let most = self.order.count.map_or(MOST, PacketCount::get).min(MOST);
        let mut interval = self.interval();
        let mut times = ProbeSchedule::new(self.order.spacing, interval, clock::monotonic_now());
        while u64::from(self.next) < most && !self.book.stopping.load(Ordering::Acquire) {
            let now = clock::monotonic_now();
            if self.interval() != interval {
                interval = self.interval();
                times = ProbeSchedule::new(self.order.spacing, interval, now);
            }
            if times.next() > now {
                self.sleep_until(times.next());
                continue;
            }
            times.advance(now);
            if !self.send() {
                return;
            }
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(self.book.interval.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, until: MonotonicTime) {
        let left = until.since(clock::monotonic_now()).min(MAX_SLEEP);
        if !left.is_zero() && poll::wait_for(&self.book.orders, PollInterest::READ, Some(left)).unwrap_or(true) {
            self.book.orders.drain();
        }
    }

    /// Sends the next probe; `false` when the socket is unusable.
    fn send(&mut self) -> bool {
        let index = self.next as usize;
        let sent = self.datagrams.clocks().now();
        let stamp = StampTimestamp::from_wall(sent.wall, TimestampFormat::Ntp);
        SenderPacket::renumber(&mut self.packet, self.next, stamp);
        let result =
            ProbeResult { sequence: self.next, sent, answer: None, too_large: false, no_room: false, duplicates: 0 };
        // Stored before sending, as the answer may arrive before the call returns.
        lock(&self.book.results).push(result);
        self.next += 1;
        let Err(refusal) = self.datagrams.send(&self.packet, self.mark) else { return true };
        if let Some(result) = lock(&self.book.results).get_mut(index) {
            (result.too_large, result.no_room) = (refusal == SendFailure::TooLarge, refusal != SendFailure::TooLarge);
        }
        refusal != SendFailure::Broken
    }
}

/// Sending times of the probes.
enum ProbeSchedule {
    Periodic { next: MonotonicTime, interval: Duration },
    Poisson(PoissonProcess),
}

impl ProbeSchedule {
    fn new(spacing: PacketSpacing, interval: Duration, start: MonotonicTime) -> Self {
        match spacing {
            PacketSpacing::Periodic | PacketSpacing::Bursts { .. } => Self::Periodic { next: start, interval },
            PacketSpacing::Poisson { seed } => Self::Poisson(PoissonProcess::new(seed, interval, start)),
        }
    }

    fn next(&self) -> MonotonicTime {
        match self {
            Self::Periodic { next, .. } => *next,
            Self::Poisson(poisson) => poisson.next,
        }
    }

    /// Advances after a probe. A late sender does not catch up: probes are never sent back to back.
    fn advance(&mut self, now: MonotonicTime) {
        match self {
            Self::Periodic { next, interval } => {
                *next = *next + *interval;
                if *next < now {
                    *next = now + *interval;
                }
            }
            Self::Poisson(poisson) => poisson.advance(now),
        }
    }
}

impl DatagramSink for ProbeLog {
    fn take(&self, run: &DatagramRun<'_>, _: &DatagramSocket) {
        for datagram in run.bytes.chunks(run.datagram) {
            let Ok(packet) = ReflectorPacket::decode(datagram) else { continue };
            let mut results = lock(&self.results);
            let Some(result) = results.get_mut(packet.sender_sequence as usize) else { continue };
            // An answer to a probe that was not sent at that time is forged.
            if packet.sender_timestamp != StampTimestamp::from_wall(result.sent.wall, TimestampFormat::Ntp) {
                continue;
            }
            if result.answer.is_some() {
                result.duplicates += 1;
            } else {
                result.answer = Some(read_answer(&packet, datagram, run, result.sent.monotonic));
            }
        }
        if let Some(waiting) = self.answered.get() {
            waiting.wake();
        }
    }
}

fn read_answer(packet: &ReflectorPacket, datagram: &[u8], run: &DatagramRun<'_>, sent: MonotonicTime) -> ProbeAnswer {
    let format = packet.error_estimate.format();
    let (far_received, far_sent) = (packet.received_at.to_wall(format), packet.timestamp.to_wall(format));
    let turn_around = match (far_received, far_sent) {
        (Some(received), Some(sent)) => sent.since_unix_epoch().saturating_sub(received.since_unix_epoch()),
        _ => Duration::ZERO,
    };
    let whole = run.arrived.monotonic.since(sent);
    // A turnaround longer than the round trip means that a clock was set meanwhile.
    let round_trip = whole.checked_sub(turn_around).unwrap_or(whole);
    let class = tlv::read_answer_options(datagram, AuthenticationMode::Unauthenticated, None)
        .options
        .into_iter()
        .find_map(|option| {
            let StampTlv::ClassOfService(class) = option else { return None };
            Some(TypeOfService::new(class.received.get() << 2 | class.arrived_ecn & 3))
        });
    ProbeAnswer {
        received: run.arrived,
        round_trip,
        far_received,
        far_sent,
        far_sequence: packet.sequence,
        up_time_to_live: Some(packet.sender_ttl),
        down_time_to_live: run.hop_limit,
        up_type_of_service: class,
        down_type_of_service: run.type_of_service,
    }
}

fn whole(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use linerate_sys::time_stamp::StampSource;
    use linerate_wire::stamp::ErrorEstimate;

    use super::*;

    fn stamp(nanoseconds: u64) -> TimeStamp {
        TimeStamp {
            wall: WallTime::from_unix(Duration::from_nanos(1_800_000_000_000_000_000 + nanoseconds)),
            monotonic: MonotonicTime::from_nanos(nanoseconds),
            source: StampSource::Kernel,
        }
    }

    fn ntp(nanoseconds: u64) -> StampTimestamp {
        StampTimestamp::from_wall(stamp(nanoseconds).wall, TimestampFormat::Ntp)
    }

    /// Probes sent each millisecond.
    fn book(count: u32) -> ProbeLog {
        let result = |sequence: u32| ProbeResult {
            sequence,
            sent: stamp(u64::from(sequence) * 1_000_000),
            answer: None,
            too_large: false,
            no_room: false,
            duplicates: 0,
        };
        ProbeLog {
            results: Mutex::new((0..count).map(result).collect()),
            interval: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            over: AtomicBool::new(false),
            orders: Waker::new().expect("eventfd"),
            answered: OnceLock::new(),
        }
    }

    /// An answer to the probe with this number, sent at this time, with a turnaround of these nanoseconds.
    fn answer(number: u32, sent: u64, turnaround: u64) -> ReflectorPacket {
        ReflectorPacket {
            sequence: number + 100,
            timestamp: ntp(sent + 400_000 + turnaround),
            error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
            session: SessionIdentifier::new(1),
            received_at: ntp(sent + 400_000),
            sender_sequence: number,
            sender_timestamp: ntp(sent),
            sender_error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
            sender_ttl: 60,
        }
    }

    fn take(book: &ProbeLog, packet: &ReflectorPacket, arrived: u64) {
        let bytes = packet.encode(ByteCount::new(64));
        take_bytes(book, &bytes, arrived);
    }

    fn take_bytes(book: &ProbeLog, bytes: &[u8], arrived: u64) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let from = DatagramSocket::new(socket, None).expect("options");
        let run = DatagramRun {
            stream: StreamNumber::FIRST_RECORDED,
            bytes,
            datagram: bytes.len().max(1),
            arrived: stamp(arrived),
            hop_limit: Some(62),
            type_of_service: None,
        };
        book.take(&run, &from);
    }

    #[test]
    fn the_first_answer_counts_and_others_are_duplicates() {
        let book = book(3);
        take(&book, &answer(1, 1_000_000, 100_000), 1_900_000);
        take(&book, &answer(1, 1_000_000, 100_000), 2_900_000);
        let results = lock(&book.results);
        let found = results[1].answer.expect("answered");
        assert!(found.round_trip.abs_diff(Duration::from_micros(800)) < Duration::from_nanos(2), "{found:?}");
        assert_eq!((found.far_sequence, found.up_time_to_live, found.down_time_to_live), (101, Some(60), Some(62)));
        assert_eq!(results.iter().map(|result| result.duplicates).collect::<Vec<_>>(), [0, 1, 0]);
        assert!(results[0].answer.is_none() && results[2].answer.is_none());
    }

    #[test]
    fn forged_and_foreign_answers_are_ignored() {
        let book = book(2);
        // Sent at another time, to a probe that was not sent, and no answer at all.
        take(&book, &answer(1, 1_000_001_000, 0), 2_000_000);
        take(&book, &answer(7, 7_000_000, 0), 8_000_000);
        take_bytes(&book, b"nonsense", 8_000_000);
        assert!(lock(&book.results).iter().all(|result| result.answer.is_none() && result.duplicates == 0));
    }

    #[test]
    fn a_turnaround_longer_than_the_round_trip_is_a_clock_that_was_set() {
        let book = book(1);
        take(&book, &answer(0, 0, 5_000_000_000), 900_000);
        assert_eq!(lock(&book.results)[0].answer.map(|found| found.round_trip), Some(Duration::from_micros(900)));
    }

    #[test]
    fn answers_wake_the_waiting_thread() {
        let book = book(1);
        let waker = Arc::new(Waker::new().expect("eventfd"));
        book.answered.set(Arc::clone(&waker)).expect("the first one");
        take(&book, &answer(0, 0, 0), 1_000_000);
        assert!(waker.drain() && !waker.drain());
    }

    #[test]
    fn a_late_sender_does_not_catch_up() {
        let at = |milliseconds: u64| MonotonicTime::from_nanos(milliseconds * 1_000_000);
        let mut schedule = ProbeSchedule::new(PacketSpacing::Periodic, Duration::from_millis(10), at(100));
        let mut next = |now| {
            schedule.advance(at(now));
            schedule.next()
        };
        for (now, expected) in [(100, 110), (112, 120), (120, 130), (165, 175), (175, 185), (195, 195), (195, 205)] {
            assert_eq!(next(now), at(expected), "at {now} ms");
        }
    }
}
