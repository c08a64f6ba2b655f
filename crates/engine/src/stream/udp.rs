//! UDP streams: iperf3's datagrams, in GSO trains.

use core::time::Duration;
use std::io;

use linerate_sys::clock;
use linerate_sys::data::udp::{DatagramReceiver, DatagramSender};
use linerate_sys::{options, poll};
use linerate_units::{ByteCount, MonotonicTime, PacketCount};
use linerate_wire::sequence::SequenceTracker;
use linerate_wire::udp::{CounterWidth, DatagramHeader};

use super::shared::ReceivedPackets;
use super::{StreamFailure, StreamJob, TestPhase, payload};
use crate::pace::{PacingOptions, SendPermission, StreamPacer};

/// Most bytes of one call: bounds the memory of a stream, whatever burst the peer has requested.
const MAX_CALL_BYTES: ByteCount = ByteCount::from_kibibytes(256);

/// Longest GSO train: when nothing limits the rate, one is sent per call, so that the receiver can keep up.
const TRAIN: ByteCount = ByteCount::new(65507);

/// Timer slack of a paced stream; the default (`PR_SET_TIMERSLACK`) is 50 µs.
const TIMER_SLACK: Duration = Duration::from_nanos(1);

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
}

impl<'a> UdpSender<'a> {
    fn new(job: &'a StreamJob) -> io::Result<Self> {
        let parameters = &job.options.parameters;
        let datagram = parameters.block_size;
        let pacer = parameters.rate.and_then(|rate| {
            StreamPacer::new(PacingOptions { rate, block: datagram, burst: parameters.burst }, clock::monotonic_now())
        });
        let most = if pacer.is_some() { MAX_CALL_BYTES } else { TRAIN };
        let fitting = PacketCount::new((most.get() / datagram.get().max(1)).max(1));
        let at_once = pacer.as_ref().map_or(fitting, |pacer| pacer.burst().min(fitting));
        let mut trains = DatagramSender::new(&*job.socket, datagram, at_once)?;
        for block in trains.datagrams() {
            payload::fill(block, parameters.repeating_payload)?;
        }
        if pacer.is_some() {
            // A larger slack makes the pacer late, not wrong.
            let _ = clock::set_timer_slack(TIMER_SLACK);
        }
        let width = CounterWidth::new(parameters.udp_counters_64bit);
        Ok(Self { job, trains, pacer, width, datagram, next: 1 })
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
        match pacer.turn(now) {
            // Only a requested burst takes more than one call: the catch-up at a huge rate would never end.
            SendPermission::Send(count) if self.job.options.parameters.burst.is_none() => {
                Some(count.min(self.trains.capacity()))
            }
            SendPermission::Send(count) => Some(count),
            SendPermission::Wait(until) if pacer.is_precise() => {
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

    fn send_part(&mut self, count: PacketCount) -> io::Result<PacketCount> {
        let sent_at = clock::monotonic_now();
        for (number, datagram) in (self.next..).zip(self.trains.datagrams().take(count.to_usize())) {
            // Blocks of a UDP test have at least 16 bytes; the server refuses smaller ones.
            let _ = DatagramHeader { sent_at, number }.encode(self.width, datagram);
        }
        let sent = match self.trains.send(count) {
            Ok(sent) => sent,
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

/// Receives until it is stopped.
pub(super) fn receive(job: &StreamJob) -> Result<(), StreamFailure> {
    if job.options.parameters.window.is_none() {
        // Best effort: without privilege the kernel grants at most `net.core.rmem_max`.
        let share = TOTAL_RECEIVE_BUFFER.get() / job.options.parameters.parallel.get().max(1);
        let _ = options::force_receive_buffer(&*job.socket, ByteCount::new(share).max(MIN_RECEIVE_BUFFER));
    }
    let mut socket = DatagramReceiver::new(&*job.socket).map_err(StreamFailure::SetUp)?;
    let mut receiver = UdpReceiver::new(job);
    while !job.shared.stopping() {
        match socket.receive() {
            Ok(messages) => {
                for message in messages {
                    receiver.take(message.bytes, message.datagram, message.arrived);
                    receiver.figures.dropped = message.dropped.or(receiver.figures.dropped);
                }
                receiver.publish();
            }
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(StreamFailure::Read(error)),
        }
    }
    Ok(())
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
