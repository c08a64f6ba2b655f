//! The thread itself: what it sends and reads next.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use linerate_sys::data::tcp;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::{clock, host, options, tcp_info};
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::probe::load_frame::{HEADER_LENGTH, LoadFrame, LoadFrameParser, ParseStep};
use linerate_wire::probe::{GoodputSample, LoadSample, MAX_LOAD_SAMPLES};

use super::{ApplicationPing, INITIAL_UNSENT, LinkOrder, LinkRecord, LoadLinkState, MAX_UNSENT, MIN_UNSENT_SEGMENTS};
use crate::probe::lock;
use crate::probe::stall::StallWatch;
use crate::resources::{MemoryLease, SamplingClaim, reserve_one};
use crate::server_rate::RateAccount;

/// Interval of the receiver's samples.
const GOODPUT_INTERVAL: Duration = Duration::from_millis(50);

/// Longest time for the unsent bytes to leave.
const MAX_UNSENT_TIME: Duration = Duration::from_millis(8);

/// Bounds of a frame of bulk data.
const MIN_FRAME: u64 = 1 << 10;
const MAX_FRAME: u64 = 256 << 10;

/// First size of the buffer for frames; it grows with the connection's rate.
const FIRST_FRAME: usize = 4 << 10;

/// From this size on, bulk data is discarded in the kernel without copying it.
const MIN_DISCARD: u64 = 16 << 10;

/// Bytes of an ordinary read.
const READ_SIZE: usize = 64 << 10;

/// Most pings kept with their answers, and most pongs waiting to be sent: a peer that exceeds it only affects its own
/// connection.
const MAX_PINGS: usize = 200_000;
const MAX_PONGS: usize = 1024;

/// Most bytes of small frames waiting to be written.
const MAX_URGENT_BYTES: usize = 16 << 10;

/// Longest sleep of an idle thread between two looks at its orders.
const MAX_SLEEP: Duration = Duration::from_millis(500);

/// First samples of a connection, in the memory that each connection has.
const FIRST_SAMPLES: usize = 64;

/// Reason why a connection's thread ends.
enum ConnectionEnd {
    Stopped,
    Broken(String),
}

impl From<io::Error> for ConnectionEnd {
    fn from(error: io::Error) -> Self {
        Self::Broken(linerate_sys::describe_os_error(&error))
    }
}

/// State of the thread.
pub(super) struct ConnectionWorker {
    shared: Arc<LoadLinkState>,
    order: LinkOrder,
    parser: LoadFrameParser,
    buffer: Vec<u8>,
    /// Small frames that precede more bulk data.
    urgent: Vec<u8>,
    urgent_written: usize,
    pongs: VecDeque<u64>,
    /// The current frame of bulk data, with its header, and its bytes written so far.
    frame: Vec<u8>,
    frame_length: usize,
    frame_written: usize,
    unsent: u64,
    /// True when the kernel accepted nothing more at the last attempt.
    blocked: bool,
    started: Option<MonotonicTime>,
    next_reading: Option<MonotonicTime>,
    reading_interval: Duration,
    /// Share of the samples that a server takes; `None` before the start.
    sampling: Option<SamplingClaim>,
    stall: StallWatch,
    next_ping: Option<MonotonicTime>,
}

impl ConnectionWorker {
    pub(super) fn new(
        shared: Arc<LoadLinkState>,
        order: LinkOrder,
        first: &[LoadFrame],
        unsent: u64,
    ) -> io::Result<Self> {
        let mut urgent = Vec::new();
        for frame in first {
            frame.encode(&mut urgent);
        }
        let mut frame = Vec::new();
        if order.sends {
            extend_randomly(&mut frame, HEADER_LENGTH + FIRST_FRAME)?;
        }
        Ok(Self {
            shared,
            reading_interval: if order.sends { order.sampling } else { GOODPUT_INTERVAL },
            sampling: None,
            stall: StallWatch::new(order.stall_limit),
            order,
            parser: LoadFrameParser::default(),
            buffer: vec![0; READ_SIZE],
            urgent,
            urgent_written: 0,
            pongs: VecDeque::new(),
            frame,
            frame_length: 0,
            frame_written: 0,
            unsent,
            blocked: false,
            started: None,
            next_reading: None,
            next_ping: None,
        })
    }

    pub(super) fn run(mut self) {
        let end = loop {
            match self.step() {
                Ok(()) => {}
                Err(end) => break end,
            }
        };
        // The connection ends in any case.
        let _ = self.read_figures(clock::monotonic_now());
        let mut seen = lock(&self.shared.seen);
        seen.ended = Some(clock::monotonic_now());
        if let ConnectionEnd::Broken(reason) = end {
            seen.broken = Some(reason);
        }
    }

    fn step(&mut self) -> Result<(), ConnectionEnd> {
        let now = clock::monotonic_now();
        self.follow_orders(now)?;
        if self.next_reading.is_some_and(|at| now >= at) {
            self.read_figures(now)?;
        }
        self.queue_small_frames(now);
        let deferred = self.deferred_until(now);
        let writes =
            self.urgent_written < self.urgent.len() || self.in_frame() || self.wants_bulk() && deferred.is_none();
        let reads = self.order.sends || deferred.is_none();
        let timeout = self.next_duty(deferred).map_or(MAX_SLEEP, |at| at.since(now).min(MAX_SLEEP));
        let (readable, writable) = {
            let shared = &self.shared;
            let interest = match (reads, writes) {
                (true, true) => PollInterest::READ_WRITE,
                (true, false) => PollInterest::READ,
                (false, true) => PollInterest::WRITE,
                (false, false) => PollInterest::NONE,
            };
            let mut items =
                [PollItem::new(&shared.stream, interest), PollItem::new(&shared.orders, PollInterest::READ)];
            poll::wait(&mut items, Some(timeout)).map_err(io::Error::from)?;
            if items[1].is_readable() {
                shared.orders.drain();
            }
            (items[0].is_readable() || items[0].has_error(), items[0].is_writable())
        };
        self.blocked = writes && !writable;
        if readable {
            self.read()?;
        }
        if writes && writable {
            self.write()?;
        }
        Ok(())
    }

    fn follow_orders(&mut self, now: MonotonicTime) -> Result<(), ConnectionEnd> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(ConnectionEnd::Stopped);
        }
        if self.started.is_none() && self.shared.started.load(Ordering::Acquire) {
            self.started = Some(now);
            self.next_reading = Some(now);
            self.prepare_samples();
            if self.order.sends {
                // Bulk data leaves in full segments, as in any transfer: pings are not alone, they need not hurry.
                let _ = options::set_no_delay(&self.shared.stream, false);
            }
            lock(&self.shared.seen).started = Some(now);
        }
        match Duration::from_nanos(self.shared.ping_interval.load(Ordering::Relaxed)) {
            Duration::ZERO => self.next_ping = None,
            interval => {
                self.next_ping = Some(self.next_ping.map_or(now, |next| next.min(now + interval)));
            }
        }
        Ok(())
    }

    fn wants_bulk(&self) -> bool {
        self.order.sends && self.started.is_some() && !self.shared.ceased.load(Ordering::Acquire)
    }

    fn in_frame(&self) -> bool {
        self.frame_written < self.frame_length
    }

    /// Prepares the record of a connection that starts.
    fn prepare_samples(&mut self) {
        let mut seen = lock(&self.shared.seen);
        self.sampling = Some(seen.memory.account().claim_sampling());
        if self.order.sends {
            seen.samples.reserve_exact(FIRST_SAMPLES);
        } else {
            seen.goodput.reserve_exact(FIRST_SAMPLES);
        }
    }

    /// With a rate limit: earliest time of more bulk data.
    fn deferred_until(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.order.rate.as_ref()?.deferred_until(now)
    }

    fn next_duty(&self, deferred: Option<MonotonicTime>) -> Option<MonotonicTime> {
        [self.next_reading, self.next_ping, deferred].into_iter().flatten().min()
    }

    /// Queues due pings and owed pongs.
    fn queue_small_frames(&mut self, now: MonotonicTime) {
        if self.urgent_written == self.urgent.len() {
            self.urgent.clear();
            self.urgent_written = 0;
        }
        if let Some(due) = self.next_ping.filter(|due| now >= *due) {
            let interval = Duration::from_nanos(self.shared.ping_interval.load(Ordering::Relaxed));
            self.next_ping = Some(if due + interval > now { due + interval } else { now + interval });
            let mut seen = lock(&self.shared.seen);
            if seen.pings.len() < MAX_PINGS && self.urgent.len() < MAX_URGENT_BYTES {
                let id = seen.pings.len() as u64;
                seen.pings.push(ApplicationPing { sent: now, round_trip: None });
                LoadFrame::Ping(id).encode(&mut self.urgent);
            }
        }
        // A peer that pings and does not read the answers gets no more of them.
        while self.urgent.len() < MAX_URGENT_BYTES
            && let Some(id) = self.pongs.pop_front()
        {
            LoadFrame::Pong(id).encode(&mut self.urgent);
        }
    }

    /// Writes small frames between frames of bulk data, otherwise completes the current frame, then starts one more.
    fn write(&mut self) -> Result<(), ConnectionEnd> {
        if !self.in_frame() {
            if self.urgent_written < self.urgent.len() {
                self.urgent_written += written(tcp::send(&self.shared.stream, &self.urgent[self.urgent_written..]))?;
                return Ok(());
            }
            if !self.wants_bulk() {
                return Ok(());
            }
            if !self.begin_frame()? {
                return Ok(());
            }
        }
        let taken = written(tcp::send_more(&self.shared.stream, &self.frame[self.frame_written..self.frame_length]))?;
        let header = HEADER_LENGTH.saturating_sub(self.frame_written).min(taken);
        self.frame_written += taken;
        self.shared.bytes.fetch_add((taken - header) as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a frame of bulk data; `false` when another flow has the turn of the server's rate.
    fn begin_frame(&mut self) -> Result<bool, ConnectionEnd> {
        let mut size = (self.unsent / 4).clamp(MIN_FRAME, MAX_FRAME);
        if let Some(rate) = &self.order.rate {
            let now = clock::monotonic_now();
            size = size.min(rate.step(ByteCount::new(MIN_FRAME), now).get());
            if !rate.reserve(ByteCount::new(size), now) {
                return Ok(false);
            }
        }
        let size = self.fit_frame(size)?;
        let mut header = Vec::with_capacity(HEADER_LENGTH);
        LoadFrame::Bulk(ByteCount::new(size)).encode(&mut header);
        self.frame[..HEADER_LENGTH].copy_from_slice(&header);
        self.frame_length = HEADER_LENGTH + usize::try_from(size).unwrap_or(0);
        self.frame_written = 0;
        Ok(true)
    }

    /// Enlarges the buffer of frames to `size`, if there is memory; returns the size that fits.
    fn fit_frame(&mut self, size: u64) -> io::Result<u64> {
        let most = (self.frame.len() - HEADER_LENGTH) as u64;
        if size <= most {
            return Ok(size);
        }
        if !lock(&self.shared.seen).memory.grow(ByteCount::new(size - most)) {
            return Ok(most);
        }
        extend_randomly(&mut self.frame, HEADER_LENGTH + usize::try_from(size).unwrap_or(0))?;
        Ok(size)
    }

    fn read(&mut self) -> Result<(), ConnectionEnd> {
        let bulk = self.parser.bulk_left();
        if bulk.get() >= MIN_DISCARD {
            let step = |rate: &RateAccount| rate.step(ByteCount::new(MIN_DISCARD), clock::monotonic_now());
            let most = self.order.rate.as_ref().map_or(bulk, |rate| bulk.min(step(rate)));
            let count = received(tcp::receive_discarding(&self.shared.stream, most.to_usize()))?;
            let count = ByteCount::from_usize(count);
            self.parser.skip_bulk(count);
            self.count_bulk(count);
            return Ok(());
        }
        let count = received(tcp::receive(&self.shared.stream, &mut self.buffer))?;
        let buffer = core::mem::take(&mut self.buffer);
        let outcome = self.take(&buffer[..count]);
        self.buffer = buffer;
        outcome
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), ConnectionEnd> {
        loop {
            match self.parser.next(&mut bytes).map_err(|error| ConnectionEnd::Broken(error.to_string()))? {
                ParseStep::Nothing => return Ok(()),
                ParseStep::BulkBytes(count) => self.count_bulk(count),
                ParseStep::Frame(LoadFrame::Ping(id)) if self.pongs.len() < MAX_PONGS => self.pongs.push_back(id),
                ParseStep::Frame(LoadFrame::Pong(id)) => self.take_pong(id),
                ParseStep::Frame(_) => {}
            }
        }
    }

    fn count_bulk(&self, count: ByteCount) {
        if !self.order.sends {
            self.shared.bytes.fetch_add(count.get(), Ordering::Relaxed);
            if let Some(rate) = &self.order.rate {
                rate.count(count, clock::monotonic_now());
            }
        }
    }

    fn take_pong(&self, id: u64) {
        let now = clock::monotonic_now();
        let mut seen = lock(&self.shared.seen);
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        if let Some(ping) = seen.pings.get_mut(index).filter(|ping| ping.round_trip.is_none()) {
            ping.round_trip = Some(now.since(ping.sent));
        }
    }

    /// Samples the connection, and adapts to it.
    fn read_figures(&mut self, now: MonotonicTime) -> Result<(), ConnectionEnd> {
        let Some(started) = self.started else { return Ok(()) };
        let shortest = self.sampling.as_ref().map_or(Duration::ZERO, SamplingClaim::shortest_interval);
        let interval = self.reading_interval.max(shortest);
        let due = self.next_reading.unwrap_or(now) + interval;
        self.next_reading = Some(if due > now { due } else { now + interval });
        let time = now.since(started);
        let bytes = ByteCount::new(self.shared.bytes.load(Ordering::Relaxed));
        if !self.order.sends {
            {
                let LinkRecord { goodput, memory, .. } = &mut *lock(&self.shared.seen);
                keep(goodput, GoodputSample { time, bytes }, memory, &mut self.reading_interval);
            }
            return self.end_if_stalled(now, bytes);
        }
        let Ok(info) = tcp_info::read(&self.shared.stream) else { return self.end_if_stalled(now, bytes) };
        self.adapt(&info, bytes, time);
        let sample = LoadSample {
            time,
            rtt: info.rtt,
            congestion_window: info.congestion_window,
            bytes_acknowledged: info.bytes_acknowledged,
            retransmits: info.retransmits,
            delivery_rate: info.delivery_rate,
            not_sent: info.not_sent,
            busy: info.busy_time,
            receive_window_limited: info.receive_window_limited,
            send_buffer_limited: info.send_buffer_limited,
        };
        {
            let LinkRecord { samples, memory, .. } = &mut *lock(&self.shared.seen);
            keep(samples, sample, memory, &mut self.reading_interval);
        }
        self.end_if_stalled(now, info.bytes_acknowledged.unwrap_or(bytes))
    }

    fn end_if_stalled(&mut self, now: MonotonicTime, moved: ByteCount) -> Result<(), ConnectionEnd> {
        self.stall.check(now, moved).map_or(Ok(()), |reason| Err(ConnectionEnd::Broken(reason)))
    }

    /// Doubles the unsent limit of a kernel that has run dry, up to what its window takes at once; halves one whose
    /// unsent bytes need too long to leave.
    fn adapt(&mut self, info: &linerate_model::tcp_info::TcpInfo, bytes: ByteCount, time: Duration) {
        let average = bytes.rate_over(time);
        let rate = info.delivery_rate.unwrap_or(average).max(average);
        let enough = (rate * MAX_UNSENT_TIME).get();
        let window = info.congestion_window.map_or(MAX_UNSENT, ByteCount::get).max(INITIAL_UNSENT);
        let segment = info.send_mss.map_or(1448, |mss| u64::from(mss.get()));
        let dry = info.not_sent.is_some_and(|left| left.get() < segment) && !self.blocked && !bytes.is_zero();
        let wanted = if dry && self.unsent < window {
            self.unsent * 2
        } else if !dry && self.unsent / 2 > enough {
            self.unsent / 2
        } else {
            self.unsent
        };
        let wanted = wanted.clamp(MIN_UNSENT_SEGMENTS * segment.min(1 << 18), MAX_UNSENT);
        if wanted != self.unsent && options::set_not_sent_low_water(&self.shared.stream, ByteCount::new(wanted)).is_ok()
        {
            self.unsent = wanted;
        }
    }
}

/// Extends a frame with random bytes, so that nothing on the path can compress it.
fn extend_randomly(frame: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let old = frame.len();
    frame.reserve_exact(length.saturating_sub(old));
    frame.resize(length, 0);
    host::random_bytes(&mut frame[old..]).map_err(io::Error::from)
}

/// Adds a sample. When there are too many, or too many for the memory, every second one is dropped.
fn keep<T>(samples: &mut Vec<T>, sample: T, memory: &mut MemoryLease, interval: &mut Duration) {
    if !reserve_one(samples, memory) {
        thin_out(samples, interval);
    }
    samples.push(sample);
    if samples.len() >= MAX_LOAD_SAMPLES {
        thin_out(samples, interval);
    }
}

/// Drops every second sample, and doubles the interval of the next ones.
fn thin_out<T>(samples: &mut Vec<T>, interval: &mut Duration) {
    let mut index = 0;
    samples.retain(|_| {
        index += 1;
        index % 2 == 1
    });
    *interval = interval.saturating_mul(2);
}

fn written(outcome: io::Result<usize>) -> Result<usize, ConnectionEnd> {
    match outcome {
        Err(error) if poll::would_block(&error) => Ok(0),
        other => Ok(other?),
    }
}

fn received(outcome: io::Result<usize>) -> Result<usize, ConnectionEnd> {
    match outcome {
        Ok(0) => Err(ConnectionEnd::Broken("the peer closed it".to_owned())),
        Err(error) if poll::would_block(&error) => Ok(0),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::ServerResources;

    #[test]
    fn samples_are_thinned_out_evenly() {
        let mut readings: Vec<usize> = (0..MAX_LOAD_SAMPLES).collect();
        let mut interval = Duration::from_millis(10);
        thin_out(&mut readings, &mut interval);
        assert_eq!(interval, Duration::from_millis(20));
        assert_eq!(readings.len(), MAX_LOAD_SAMPLES / 2);
        assert!(readings.iter().enumerate().all(|(index, reading)| *reading == 2 * index));
    }

    #[test]
    fn samples_beyond_the_memory_of_the_server_are_thinned_out() {
        let server = ServerResources::new(ByteCount::from_usize(2 * 100 * size_of::<u64>()));
        let mut memory = server.account(std::net::Ipv4Addr::LOCALHOST.into()).lease(ByteCount::ZERO).expect("nothing");
        let (mut samples, mut interval) = (Vec::with_capacity(FIRST_SAMPLES), Duration::from_millis(1));
        for sample in 0..1000_u64 {
            keep(&mut samples, sample, &mut memory, &mut interval);
        }
        assert_eq!(samples.capacity(), 2 * FIRST_SAMPLES, "as much as the lease allows");
        assert!(samples.len() > FIRST_SAMPLES / 2 && samples.is_sorted());
        assert!(interval > Duration::from_millis(1), "{interval:?}");
        assert_eq!(samples.first(), Some(&0));
    }
}
