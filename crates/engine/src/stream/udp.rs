//! UDP streams: iperf3's datagrams, in GSO trains.

use core::time::Duration;
use std::io;
use std::os::fd::AsFd;

use linerate_sys::clock;
use linerate_sys::data::udp::{DatagramReceiver, DatagramSender};
use linerate_sys::{options, poll};
use linerate_units::{ByteCount, MonotonicTime, PacketCount};
use linerate_wire::sequence::SequenceTracker;
use linerate_wire::udp::{CounterWidth, DatagramHeader};

use super::shared::ReceivedPackets;
use super::{StreamFailure, StreamJob, TestPhase, payload};
use crate::pace::{PacingOptions, SendPermission, StreamPacer};
use crate::resources::{BusyWaitClaim, MemoryLease};

/// Most bytes of one call: bounds the memory of a stream, whatever burst the peer has requested.
const MAX_CALL_BYTES: ByteCount = ByteCount::from_kibibytes(256);

/// Longest GSO train: when nothing limits the rate, one is sent per call, so that the receiver can keep up.
const TRAIN: ByteCount = ByteCount::new(65507);

/// Port unreachable messages after which a stream ends. A host sends six at once, then one a second (`icmp_ratelimit`);
/// single ones may be late or forged.
const MAX_UNREACHABLE: u32 = 10;

/// Timer slack of a paced stream (`PR_SET_TIMERSLACK`) as a share of the time whose datagrams leave together: streams that wait
/// at once wake at one interrupt. With a configured burst, none.
const TIMER_SLACK_SHARE: u32 = 10;

/// Longest timer slack.
const MAX_TIMER_SLACK: Duration = Duration::from_micros(500);

/// Sends until the budget is used up or it is stopped.
pub(super) fn send(job: &StreamJob) -> Result<(), StreamFailure> {
    let mut sender = UdpSender::new(job).map_err(StreamFailure::SetUp)?;
    while !job.shared.stopping() {
        let more = sender.step().map_err(StreamFailure::Write)?;
        if !more {
            break;
        }
    }
    Ok(())
}

struct UdpSender<'a> {
    job: &'a StreamJob,
    trains: DatagramSender<'a>,
    pacer: Option<StreamPacer>,
    width: CounterWidth,
    datagram: ByteCount,
    /// Number of the next datagram; iperf3 counts from 1.
    next: u64,
    /// Port unreachable messages so far.
    unreachable: u32,
    /// Permission to watch the clock, where sleeping is too coarse.
    busy_wait: Option<BusyWaitClaim>,
    _memory: MemoryLease,
}

/// Datagrams at once for which there is memory, one at least: the memory of the first has been taken.
fn granted(most: PacketCount, datagram: ByteCount, memory: &mut MemoryLease) -> PacketCount {
    let mut count = most.get().max(1);
    while count > 1 && !memory.grow(datagram * (count - 1)) {
        count /= 2;
    }
    PacketCount::new(count)
}

impl<'a> UdpSender<'a> {
    fn new(job: &'a StreamJob) -> io::Result<Self> {
        let parameters = &job.options.parameters;
        let datagram = parameters.block_size;
        let pacer = parameters
            .rate
            .and_then(|rate| StreamPacer::new(PacingOptions::of(parameters, rate, datagram), clock::monotonic_now()));
        let most = if pacer.is_some() { MAX_CALL_BYTES } else { TRAIN };
        let fitting = PacketCount::new((most.get() / datagram.get().max(1)).max(1));
        let at_once = pacer.as_ref().map_or(fitting, |pacer| pacer.burst().min(fitting));
        let mut memory = job.options.memory.empty_lease();
        let at_once = granted(at_once, datagram, &mut memory);
        let mut trains = DatagramSender::new(&*job.socket, datagram, at_once)?;
        for block in trains.datagrams() {
            payload::fill(block, parameters.repeating_payload)?;
        }
        let is_precise = pacer.as_ref().is_some_and(StreamPacer::is_precise);
        let busy_wait = is_precise.then(|| job.options.memory.claim_busy_wait()).flatten();
        if pacer.is_some() {
            // A larger slack makes the pacer late, not wrong.
            let batch = if parameters.burst.is_none() { parameters.pacing_timer } else { Duration::ZERO };
            let _ = clock::set_timer_slack((batch / TIMER_SLACK_SHARE).min(MAX_TIMER_SLACK));
        }
        let width = CounterWidth::new(parameters.udp_counters_64bit);
        Ok(Self { job, trains, pacer, width, datagram, next: 1, unreachable: 0, busy_wait, _memory: memory })
    }

    /// Sends once; `false` at the end.
    fn step(&mut self) -> io::Result<bool> {
        let Some(turn) = self.wait_for_turn() else { return Ok(true) };
        let phase = self.job.shared.phase();
        let Some(reserved) = self.job.reserve_rate(turn * self.datagram, self.datagram) else { return Ok(true) };
        let want = PacketCount::new((reserved.get() / self.datagram.get().max(1)).max(1)) * self.datagram;
        let budget = &self.job.shared.send_budget;
        let counting = phase == TestPhase::Counting;
        let allowed = if counting { budget.take(want) } else { want };
        if allowed.is_zero() {
            return Ok(false);
        }
        // The last datagram is complete, as an iperf3 receiver needs it, even where `-n` is no multiple of its size.
        let count = PacketCount::new(allowed.get().div_ceil(self.datagram.get()));
        let sent = self.send(count)?;
        let moved = sent * self.datagram;
        self.job.give_rate_back(reserved - moved);
        if counting {
            budget.give_back(allowed - moved);
        }
        self.job.counters.add_bytes(phase, moved.to_usize());
        self.job.counters.add_packets(phase, sent);
        // The end is the departure of the last datagram, not one pacing interval later.
        Ok(!(counting && budget.is_exhausted()))
    }

    /// Number of datagrams to send now; `None` when it is too early.
    fn wait_for_turn(&mut self) -> Option<PacketCount> {
        let Some(pacer) = &mut self.pacer else { return Some(self.trains.capacity().min(self.trains.train())) };
        let now = clock::monotonic_now();
        match pacer.turn_before(self.job.shared.end(), now) {
            SendPermission::Send(count) => Some(count),
            SendPermission::Wait(until) if self.busy_wait.is_some() => {
                self.job.shared.busy_wait_until(until);
                None
            }
            SendPermission::Wait(until) => {
                self.job.shared.sleep_until(until);
                None
            }
        }
    }

    /// Sends `count` datagrams back to back, in as many calls as needed; returns the number that the kernel accepted.
    fn send(&mut self, count: PacketCount) -> io::Result<PacketCount> {
        let started = clock::monotonic_now();
        let mut total = PacketCount::ZERO;
        while total < count && !self.job.shared.stopping() {
            let part = (count - total).min(self.trains.capacity());
            let sent = self.send_part(part)?;
            total += sent;
            if sent < part {
                break;
            }
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(total, started);
        }
        Ok(total)
    }

    /// True when the receiver's host has said often enough that no socket receives the stream.
    fn is_gone(&mut self, error: &io::Error) -> bool {
        self.unreachable += u32::from(error.kind() == io::ErrorKind::ConnectionRefused);
        self.unreachable >= MAX_UNREACHABLE
    }

    fn send_part(&mut self, count: PacketCount) -> io::Result<PacketCount> {
        let sent_at = clock::monotonic_now();
        for (number, datagram) in (self.next..).zip(self.trains.datagrams().take(count.to_usize())) {
            // Blocks of a UDP test have at least 16 bytes; the server refuses smaller ones.
            let _ = DatagramHeader { sent_at, number }.encode(self.width, datagram);
        }
        let sent = match self.trains.send(count) {
            Ok(sent) => sent,
            Err(error) if self.is_gone(&error) => return Err(error),
            Err(error) if is_transient(&error) => PacketCount::ZERO,
            Err(error) => return Err(error),
        };
        self.next += sent.get();
        Ok(sent)
    }
}

/// True for errors without meaning for the next datagram: a full queue, and the ICMP answer to an earlier one.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) || poll::is_queue_full(error)
}

/// Total receive buffer of all streams without `-w`: at tens of gigabits the default of 208 KiB is full within one
/// scheduling delay, and the loss would be this host's own.
const TOTAL_RECEIVE_BUFFER: ByteCount = ByteCount::from_mebibytes(32);

/// … and the smallest buffer of each.
const MIN_RECEIVE_BUFFER: ByteCount = ByteCount::from_kibibytes(512);

/// Size of a receiver's buffer for one message, which is a GSO train.
pub(crate) const MESSAGE: ByteCount = ByteCount::from_kibibytes(64);

/// Most messages read at once, the first number of them …
const MAX_MESSAGES: usize = 32;
pub(crate) const FIRST_MESSAGES: usize = 1;
/// … and the factor by which it grows while a stream fills them …
const MESSAGE_GROWTH: usize = 2;
/// … with fewer bytes than this: more of long messages save few calls, and their buffers leave the processor's cache.
const LARGE_READ: usize = 128 << 10;

/// Receives until it is stopped.
pub(super) fn receive(job: &StreamJob) -> Result<(), StreamFailure> {
    if job.options.parameters.window.is_none() {
        // Best effort: without privilege the kernel grants at most `net.core.rmem_max`.
        let share = TOTAL_RECEIVE_BUFFER.get() / job.options.parameters.parallel.get().max(1);
        let _ = options::force_receive_buffer(&*job.socket, ByteCount::new(share).max(MIN_RECEIVE_BUFFER));
    }
    let mut at_once = FIRST_MESSAGES;
    let mut memory = job.options.memory.empty_lease();
    let mut socket = DatagramReceiver::with_messages(&*job.socket, at_once).map_err(StreamFailure::SetUp)?;
    let mut receiver = UdpReceiver::new(job);
    let mut coalescing = Coalescing::new(&job.socket);
    while !job.shared.stopping() {
        let (count, bytes) = match receiver.take_all(&mut socket) {
            Ok(amounts) => amounts,
            Err(error) if is_transient(&error) => (0, 0),
            Err(error) => return Err(StreamFailure::Read(error)),
        };
        // A full call may have left messages in the socket.
        if (1..at_once).contains(&count) {
            coalescing.wait(count, bytes);
        }
        let more = at_once * MESSAGE_GROWTH;
        let is_small = bytes < LARGE_READ;
        if count == at_once && is_small && more <= MAX_MESSAGES && memory.grow(MESSAGE * (more - at_once) as u64) {
            at_once = more;
            socket = DatagramReceiver::with_messages(&*job.socket, at_once).map_err(StreamFailure::SetUp)?;
        }
    }
    Ok(())
}

/// Lets datagrams gather in the socket instead of waking for each: the kernel stamps their arrival, so that no figure
/// changes. It sleeps only after a call that emptied the socket, and only while all that arrives meanwhile fits.
struct Coalescing {
    /// Space of the receive buffer, with the kernel's overhead.
    space: ByteCount,
    woken: MonotonicTime,
}

impl Coalescing {
    const TIME: Duration = Duration::from_millis(1);
    /// Fewest messages due in that time for which a sleep saves wake-ups.
    const LEAST: f64 = 3.0;
    /// Most messages of a call that emptied the socket: after more, the next ones have already arrived.
    const MOST: usize = 16;
    /// Memory that the kernel counts for a message in addition to its bytes (`truesize`).
    const OVERHEAD: usize = 1024;
    /// Share of the space that is filled.
    const SHARE: f64 = 0.125;

    fn new(socket: &impl AsFd) -> Self {
        Self { space: options::receive_buffer(socket).unwrap_or_default(), woken: clock::monotonic_now() }
    }

    /// Sleeps when messages arrive as often as the last `count` ones of `bytes` did.
    fn wait(&mut self, count: usize, bytes: usize) {
        let now = clock::monotonic_now();
        if self.pays(count, bytes, now.since(self.woken)) {
            clock::sleep_until(now + Self::TIME);
        }
        self.woken = now;
    }

    /// True when a sleep saves wake-ups and loses nothing, where `count` messages of `bytes` arrived in `elapsed`.
    fn pays(&self, count: usize, bytes: usize, elapsed: Duration) -> bool {
        let times = Self::TIME.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        let memory = ByteCount::from_usize(bytes + count * Self::OVERHEAD).as_f64() * times;
        count < Self::MOST
            && ByteCount::from_usize(count).as_f64() * times >= Self::LEAST
            && memory <= self.space.as_f64() * Self::SHARE
    }
}

struct UdpReceiver<'a> {
    job: &'a StreamJob,
    tracker: SequenceTracker,
    width: CounterWidth,
    phase: TestPhase,
    figures: ReceivedPackets,
    /// Bytes of this batch, not yet counted.
    bytes: usize,
}

impl<'a> UdpReceiver<'a> {
    fn new(job: &'a StreamJob) -> Self {
        let width = CounterWidth::new(job.options.parameters.udp_counters_64bit);
        let phase = job.shared.phase();
        Self { job, tracker: SequenceTracker::new(width), width, phase, figures: ReceivedPackets::default(), bytes: 0 }
    }

    /// Receives all messages that wait, and counts them; returns their number and their bytes.
    fn take_all(&mut self, socket: &mut DatagramReceiver<'_>) -> io::Result<(usize, usize)> {
        let mut count = 0;
        for message in socket.receive()? {
            count += 1;
            self.take(message.bytes, message.datagram, message.arrived);
            self.figures.dropped = message.dropped.or(self.figures.dropped);
        }
        let bytes = self.bytes;
        self.publish();
        Ok((count, bytes))
    }

    /// Adds one message: a datagram or a GSO train.
    fn take(&mut self, bytes: &[u8], datagram: ByteCount, arrived: MonotonicTime) {
        self.follow_phase();
        for block in bytes.chunks(datagram.to_usize().max(1)) {
            // A datagram without a header is not test data; one with number 0 is a repeated handshake, which the
            // tracker ignores.
            if let Some(header) = DatagramHeader::decode(self.width, block) {
                self.tracker.record(header.number, header.sent_at, arrived);
                self.bytes += block.len();
            }
        }
        self.figures.last_arrival = Some(arrived);
        self.job.counters.set_last_arrival(arrived);
    }

    fn follow_phase(&mut self) {
        let phase = self.job.shared.phase();
        if phase != self.phase {
            self.publish();
            self.phase = phase;
            self.figures.at_start = self.tracker.snapshot();
            self.figures.dropped_at_start = self.figures.dropped;
        }
    }

    fn publish(&mut self) {
        let bytes = core::mem::take(&mut self.bytes);
        self.job.counters.add_bytes(self.phase, bytes);
        self.figures.total = self.tracker.snapshot();
        self.job.counters.set_received(self.figures);
        if self.phase == TestPhase::Counting {
            self.job.shared.count_received(ByteCount::from_usize(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_sleeps_while_datagrams_are_many_enough_to_save_wake_ups_and_few_enough_to_fit() {
        // (messages, bytes, microseconds since the last call, sleeps), with space for 8 MiB.
        for (count, bytes, elapsed, sleeps) in [
            // 1 Mbit/s of 1448 bytes, one at a time: each is awaited.
            (1, 1448, 11_584, false),
            // 100 Mbit/s, one at a time: 8 in a millisecond.
            (1, 1448, 116, true),
            // As GSO trains of a millisecond each, one message wakes once already.
            (1, 11_584, 1000, false),
            // More than a batch has gathered already.
            (16, 16 * 1448, 116, false),
            // 64 KiB each 50 µs are 1.3 MB in a millisecond, more than an eighth of the space.
            (1, 65_160, 50, false),
            (1, 1448, 0, false),
        ] {
            let coalescing = Coalescing { space: ByteCount::from_mebibytes(8), woken: MonotonicTime::default() };
            let found = coalescing.pays(count, bytes, Duration::from_micros(elapsed));
            assert_eq!(found, sleeps, "{count} messages of {bytes} bytes in {elapsed} µs");
        }
    }
}
