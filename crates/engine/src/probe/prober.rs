//! Round-trip probes at an interval, answered by the far end's reflector.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use linerate_sys::clock;
use linerate_sys::data::train::{Mark, Refusal};
use linerate_sys::poll::{self, Interest, Waker};
use linerate_sys::time_stamp::TimeStamp;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, TypeOfService, WallTime};
use linerate_wire::probe::{Spacing, StreamNumber};
use linerate_wire::stamp::tlv::{self, ClassOfService, Tlv};
use linerate_wire::stamp::{
    BASE_LENGTH, Mode, ReflectorPacket, SenderPacket, SessionIdentifier, Timestamp, TimestampFormat,
};

use super::datagrams::{Datagrams, Run, Sink};
use super::error::{ProbeError, Result};
use super::lock;
use super::stream::Poisson;

/// Most probes of one prober: their results are kept.
const MOST: u64 = 2_000_000;

/// Shortest interval.
const SHORTEST: Duration = Duration::from_micros(100);

/// A sleeper looks at its orders at least this often.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// Bytes of the Class of Service option with its header (RFC 8972 §4.4).
const CLASS_LENGTH: ByteCount = ByteCount::new(8);

/// Round-trip probes of one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeOrder {
    /// Distance of the probes, in the mean; 100 µs at least.
    pub interval: Duration,
    /// UDP payload, 44 to 65507 bytes; with 52 and more the answer also says with which mark the probe arrived.
    pub size: ByteCount,
    /// How the probes follow each other.
    pub spacing: Spacing,
    /// Their mark; the answers have the same DSCP.
    pub type_of_service: TypeOfService,
    /// Whether probes and answers larger than the path's MTU are lost instead of fragmented.
    pub dont_fragment: bool,
    /// After how many it ends; `None` when it is stopped.
    pub count: Option<PacketCount>,
}

impl ProbeOrder {
    /// Small best-effort probes at this interval.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self {
            interval,
            size: ByteCount::new(64),
            spacing: Spacing::Periodic,
            type_of_service: TypeOfService::default(),
            dont_fragment: false,
            count: None,
        }
    }
}

/// What became of one probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeResult {
    /// Its number, from 0.
    pub sequence: u32,
    /// When it was sent.
    pub sent: TimeStamp,
    /// The first answer; `None` while there is none. Whether it is lost, or late, is for the reader to decide.
    pub answer: Option<ProbeAnswer>,
    /// It never left: it is larger than the MTU of this host's device, or of the path as the kernel knows it.
    pub too_large: bool,
    /// It never left: this host had no room for it.
    pub no_room: bool,
    /// Further answers: it, or its answer, was duplicated on the way.
    pub duplicates: u32,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeAnswer {
    /// When it came.
    pub received: TimeStamp,
    /// The round trip without the time that the far end took to answer.
    pub round_trip: Duration,
    /// When the probe arrived, on the far end's clock.
    pub far_received: Option<WallTime>,
    /// When the answer was sent, on the far end's clock.
    pub far_sent: Option<WallTime>,
    /// The far end's count of its answers to this stream, from 0: together with the number it tells which way packets
    /// were lost.
    pub far_sequence: u32,
    /// Hop limit (time to live) with which the probe arrived.
    pub up_time_to_live: Option<u8>,
    /// Hop limit (time to live) with which the answer arrived.
    pub down_time_to_live: Option<u8>,
    /// Mark with which the probe arrived.
    pub up_type_of_service: Option<TypeOfService>,
    /// Mark with which the answer arrived.
    pub down_type_of_service: Option<TypeOfService>,
}

/// A running series of probes, with a thread of its own. Dropping it ends it.
pub struct Prober {
    datagrams: Arc<Datagrams>,
    stream: StreamNumber,
    book: Arc<Book>,
    thread: Option<JoinHandle<()>>,
}

impl core::fmt::Debug for Prober {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Prober").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// Results by number, and orders to the thread.
struct Book {
    results: Mutex<Vec<ProbeResult>>,
    /// Nanoseconds.
    interval: AtomicU64,
    stopping: AtomicBool,
    over: AtomicBool,
    orders: Waker,
    /// Who waits for answers.
    answered: OnceLock<Arc<Waker>>,
}

impl Prober {
    pub(crate) fn start(datagrams: &Arc<Datagrams>, stream: StreamNumber, order: ProbeOrder) -> Result<Self> {
        if order.size < BASE_LENGTH || order.size > ByteCount::new(65507) {
            return Err(ProbeError::System(format!("a probe has 44 to 65507 bytes, not {}", order.size.get())));
        }
        let book = Arc::new(Book {
            results: Mutex::default(),
            interval: AtomicU64::new(whole(order.interval.max(SHORTEST))),
            stopping: AtomicBool::new(false),
            over: AtomicBool::new(false),
            orders: Waker::new()?,
            answered: OnceLock::new(),
        });
        let sink: Arc<dyn Sink> = book.clone();
        if !datagrams.register(stream, sink, false) {
            return Err(ProbeError::System(format!("stream {stream} is in use")));
        }
        let mut prober = Self { datagrams: Arc::clone(datagrams), stream, book: Arc::clone(&book), thread: None };
        if order.dont_fragment {
            datagrams.probe_mtu(true)?;
        }
        let sender = Sender::new(Arc::clone(datagrams), book, stream, order);
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

    /// Wakes whoever waits for this each time an answer has come: for those who act on answers at once. The first waker that
    /// is given stays.
    pub fn wake_on_answers(&self, waker: Arc<Waker>) {
        let _ = self.book.answered.set(waker);
    }

    /// How many probes were sent so far.
    #[must_use]
    pub fn sent(&self) -> PacketCount {
        PacketCount::new(lock(&self.book.results).len() as u64)
    }

    /// What became of the probes from the `from`-th on, in the order of sending. A probe that has no answer yet may get
    /// one: read it again.
    #[must_use]
    pub fn since(&self, from: usize) -> Vec<ProbeResult> {
        lock(&self.book.results).get(from..).map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Changes the interval, 100 µs at least.
    pub fn set_interval(&self, interval: Duration) {
        self.book.interval.store(whole(interval.max(SHORTEST)), Ordering::Relaxed);
        self.book.orders.wake();
    }

    /// Whether all probes that were ordered have been sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.book.over.load(Ordering::Acquire)
    }

    /// Ends it, and waits up to `grace` for the answers that are still missing.
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

impl Drop for Prober {
    fn drop(&mut self) {
        self.end();
        self.datagrams.forget(self.stream);
    }
}

/// What the sending thread works with.
struct Sender {
    datagrams: Arc<Datagrams>,
    book: Arc<Book>,
    order: ProbeOrder,
    mark: Mark,
    packet: Vec<u8>,
    next: u32,
}

impl Sender {
    fn new(datagrams: Arc<Datagrams>, book: Arc<Book>, stream: StreamNumber, order: ProbeOrder) -> Self {
        let packet = SenderPacket { session: SessionIdentifier::new(stream.get()), ..SenderPacket::default() };
        let wanted = order.type_of_service.dscp();
        let class = Tlv::ClassOfService(ClassOfService { wanted, ..ClassOfService::default() });
        let has_room = order.size >= BASE_LENGTH + CLASS_LENGTH;
        let packet = packet.encode_with(if has_room { core::slice::from_ref(&class) } else { &[] }, order.size, None);
        let mark = Mark::of(datagrams.socket(), Some(order.type_of_service));
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
        let mut times = Times::new(self.order.spacing, interval, clock::monotonic_now());
        while u64::from(self.next) < most && !self.book.stopping.load(Ordering::Acquire) {
            let now = clock::monotonic_now();
            if self.interval() != interval {
                interval = self.interval();
                times = Times::new(self.order.spacing, interval, now);
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
        let left = until.since(clock::monotonic_now()).min(LONGEST_SLEEP);
        if !left.is_zero() && poll::wait_for(&self.book.orders, Interest::READ, Some(left)).unwrap_or(true) {
            self.book.orders.drain();
        }
    }

    /// Sends the next probe; `false` when the socket is of no use any longer.
    fn send(&mut self) -> bool {
        let index = self.next as usize;
        let sent = self.datagrams.clocks().now();
        let stamp = Timestamp::from_wall(sent.wall, TimestampFormat::Ntp);
        SenderPacket::renumber(&mut self.packet, self.next, stamp);
        let result =
            ProbeResult { sequence: self.next, sent, answer: None, too_large: false, no_room: false, duplicates: 0 };
        // Before it is sent, as the answer may come before the call returns.
        lock(&self.book.results).push(result);
        self.next += 1;
        let Err(refusal) = self.datagrams.send(&self.packet, self.mark) else { return true };
        if let Some(result) = lock(&self.book.results).get_mut(index) {
            (result.too_large, result.no_room) = (refusal == Refusal::TooLarge, refusal != Refusal::TooLarge);
        }
        refusal != Refusal::Broken
    }
}

/// When probes leave.
enum Times {
    Periodic { next: MonotonicTime, interval: Duration },
    Poisson(Poisson),
}

impl Times {
    fn new(spacing: Spacing, interval: Duration, start: MonotonicTime) -> Self {
        match spacing {
            Spacing::Periodic => Self::Periodic { next: start, interval },
            Spacing::Poisson { seed } => Self::Poisson(Poisson::new(seed, interval, start)),
        }
    }

    fn next(&self) -> MonotonicTime {
        match self {
            Self::Periodic { next, .. } => *next,
            Self::Poisson(poisson) => poisson.next,
        }
    }

    /// A probe has left. Whoever is late does not catch up: probes are never sent back to back.
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

impl Sink for Book {
    fn take(&self, run: &Run<'_>, _: &Datagrams) {
        for datagram in run.bytes.chunks(run.datagram) {
            let Ok(packet) = ReflectorPacket::decode(datagram) else { continue };
            let mut results = lock(&self.results);
            let Some(result) = results.get_mut(packet.sender_sequence as usize) else { continue };
            // An answer to a probe that was not sent with that time is somebody else's invention.
            if packet.sender_timestamp != Timestamp::from_wall(result.sent.wall, TimestampFormat::Ntp) {
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

fn read_answer(packet: &ReflectorPacket, datagram: &[u8], run: &Run<'_>, sent: MonotonicTime) -> ProbeAnswer {
    let format = packet.error_estimate.format();
    let (far_received, far_sent) = (packet.received_at.to_wall(format), packet.timestamp.to_wall(format));
    let turn_around = match (far_received, far_sent) {
        (Some(received), Some(sent)) => sent.since_unix_epoch().saturating_sub(received.since_unix_epoch()),
        _ => Duration::ZERO,
    };
    let whole = run.arrived.monotonic.since(sent);
    // A turn-around that is longer than the round trip is a clock that was set meanwhile.
    let round_trip = whole.checked_sub(turn_around).unwrap_or(whole);
    let class = tlv::read_answer(datagram, Mode::Unauthenticated, None).options.into_iter().find_map(|option| {
        let Tlv::ClassOfService(class) = option else { return None };
        Some(TypeOfService::new(class.arrived.get() << 2 | class.arrived_ecn & 3))
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
