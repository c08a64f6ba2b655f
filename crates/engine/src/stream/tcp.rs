//! TCP streams.

use core::time::Duration;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_model::parameters::EndCondition;
use linerate_sys::data::tcp;
use linerate_sys::file::{self, PageBuffer};
use linerate_sys::{clock, net, options, poll};
use linerate_units::{BitRate, ByteCount, MonotonicTime};

use super::payload::TransferFile;
use super::{StreamFailure, StreamJob};
use crate::pace::{PacingOptions, SendPermission, StreamPacer};
use crate::server_rate::RateAccount;

/// Most bytes handed to the kernel at once when nothing limits the rate. On loopback this more than doubles the
/// throughput of single 128 KiB blocks: the receiver sleeps and wakes less.
const MAX_WRITE: usize = 1 << 20;

/// Smallest block that may be sent several at a time; a user who asks for smaller ones wants small writes.
const MIN_BULK_BLOCK: usize = 64 << 10;

/// Duration of a call after which the next one is smaller, so that the counters stay current on slow paths.
const MAX_CALL_TIME: Duration = Duration::from_millis(5);

/// iperf3's default block size. A paced stream that uses it is split into smaller blocks; any other size was requested
/// and is kept.
const DEFAULT_BLOCK: ByteCount = ByteCount::from_kibibytes(128);

/// Longest sending interval of a paced stream with the default block size.
const MAX_PACED_INTERVAL: Duration = Duration::from_millis(10);

/// Receive buffer: small enough for a processor's second-level cache.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_kibibytes(128);

/// Most bytes discarded in the kernel at once: nothing is copied, so the cache does not matter.
const MAX_DISCARD: usize = 1 << 20;

/// Sends until the budget is used up, the file ends, or it is stopped.
pub(super) fn send(job: &StreamJob) -> Result<(), StreamFailure> {
    let mut sender = TcpSender::new(job)?;
    while !job.shared.stopping() {
        if !sender.step()? {
            break;
        }
    }
    if !job.shared.stopping() {
        wait_until_acknowledged(job);
    }
    Ok(())
}

/// Method by which the bytes reach the kernel.
enum SendMethod {
    /// Copied from a block.
    Copy,
    /// From the pages of a block, without a copy (`MSG_ZEROCOPY`), until the kernel reports that it copies after all.
    ZeroCopy,
    /// From a file through `sendfile` (`-Z`).
    SendFile(Arc<TransferFile>),
    /// From a temporary file that holds one block, through `sendfile`.
    SendTemporary(std::fs::File),
    /// From a file, read into a block of its own first (`-F` without `-Z`).
    ReadFile(Arc<TransferFile>, PageBuffer),
}

struct TcpSender<'a> {
    job: &'a StreamJob,
    method: SendMethod,
    block: Arc<PageBuffer>,
    /// Bytes per block, the unit in which the budget is reserved.
    unit: usize,
    /// Bytes per write: a block, or a part of one.
    length: usize,
    /// Bytes reserved from the budget and not yet sent, to complete a block.
    reserved: ByteCount,
    pacer: Option<StreamPacer>,
    /// Bytes of the pacer's last batch that are still to be sent.
    group_left: usize,
    /// Blocks per call.
    repeat: usize,
    most_repeat: usize,
}

impl<'a> TcpSender<'a> {
    fn new(job: &'a StreamJob) -> Result<Self, StreamFailure> {
        let parameters = &job.options.parameters;
        let length = block_length(job);
        let block = job.options.payload.block(length, parameters.repeating_payload).map_err(StreamFailure::SetUp)?;
        let (unit, length) = (parameters.block_size.to_usize().max(1), length.to_usize());
        let method = choose_method(job, &block)?;
        let pacer = parameters.rate.and_then(|rate| {
            let pacing = PacingOptions { rate, block: ByteCount::from_usize(length), burst: parameters.burst };
            StreamPacer::new(pacing, clock::monotonic_now())
        });
        let bulk =
            pacer.is_none() && length >= MIN_BULK_BLOCK && matches!(method, SendMethod::Copy | SendMethod::ZeroCopy);
        let large = parameters.window.map_or(MAX_WRITE, |window| MAX_WRITE.min(window.to_usize() / 2));
        let most_repeat = if bulk { (large / length).clamp(1, tcp::MAX_REPEAT) } else { 1 };
        Ok(Self {
            job,
            method,
            block,
            unit,
            length,
            reserved: ByteCount::ZERO,
            pacer,
            group_left: 0,
            repeat: 1,
            most_repeat,
        })
    }

    /// Sends once; `false` at the end.
    fn step(&mut self) -> Result<bool, StreamFailure> {
        let Some(want) = self.wait_for_turn() else { return Ok(true) };
        let phase = self.job.shared.phase();
        let want = ByteCount::from_usize(want);
        let Some(want) = self.job.reserve_rate(want, ByteCount::from_usize(self.length)) else { return Ok(true) };
        let counting = phase == super::TestPhase::Counting;
        let allowed = if counting { self.reserve(want) } else { want };
        if allowed.is_zero() {
            return Ok(false);
        }
        let before = clock::monotonic_now();
        let sent = match self.send_some(allowed.to_usize()) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(0),
            Err(error) => return Err(self.failure_of(error)),
        };
        let moved = sent.unwrap_or(0);
        self.job.give_rate_back(want - ByteCount::from_usize(moved));
        self.group_left = self.group_left.saturating_sub(moved);
        if counting {
            self.settle(ByteCount::from_usize(moved));
        }
        self.job.counters.add_bytes(phase, moved);
        self.adapt(before, moved);
        let is_complete = counting && self.reserved.is_zero() && self.job.shared.send_budget.is_exhausted();
        Ok(sent.is_some() && !is_complete)
    }

    /// Reserves up to `want` bytes in whole blocks: an iperf3 receiver does not count an incomplete one (`Nrecv`).
    fn reserve(&mut self, want: ByteCount) -> ByteCount {
        let unit = self.unit as u64;
        let blocks = (want - self.reserved).get().div_ceil(unit);
        self.reserved += self.job.shared.send_budget.take(ByteCount::new(blocks * unit));
        want.min(self.reserved)
    }

    /// Returns the whole blocks of the reservation that are left after `moved` bytes: another stream may send them.
    fn settle(&mut self, moved: ByteCount) {
        let left = self.reserved - moved;
        self.reserved = ByteCount::new(left.get() % self.unit as u64);
        self.job.shared.send_budget.give_back(left - self.reserved);
    }

    /// Number of bytes to send now; `None` when it is too early. The remainder of a batch that one call did not
    /// complete goes first: its time is spent.
    fn wait_for_turn(&mut self) -> Option<usize> {
        let Some(pacer) = &mut self.pacer else { return Some(self.length * self.repeat) };
        if self.group_left > 0 {
            return Some(self.group_left);
        }
        let now = clock::monotonic_now();
        match pacer.turn(now) {
            SendPermission::Send(count) => {
                pacer.sent(count, now);
                self.group_left = self.length * count.to_usize();
                Some(self.group_left)
            }
            SendPermission::Wait(until) => {
                self.job.shared.sleep_until(until);
                None
            }
        }
    }

    /// Sends up to `most` bytes; `None` at the end of a file.
    fn send_some(&mut self, most: usize) -> io::Result<Option<usize>> {
        let socket = &self.job.socket;
        let times = most / self.length;
        let block: &[u8] = &self.block;
        match &self.method {
            SendMethod::Copy if times > 1 => tcp::send_repeated(socket, block, times).map(Some),
            SendMethod::Copy => tcp::send(socket, &block[..most.min(self.length)]).map(Some),
            SendMethod::ZeroCopy => self.send_zero_copy(most).map(Some),
            SendMethod::SendTemporary(file) => tcp::send_file(socket, file, 0, most.min(self.length)).map(Some),
            SendMethod::SendFile(file) => {
                let length = most.min(self.length);
                send_whole_file_piece(self.job, file, length)
            }
            SendMethod::ReadFile(..) => self.send_from_file(most),
        }
    }

    fn send_zero_copy(&mut self, most: usize) -> io::Result<usize> {
        let socket = &self.job.socket;
        let block: &[u8] = &self.block;
        let times = (most / self.length).max(1);
        if most < self.length {
            return tcp::send(socket, &block[..most]);
        }
        let result = tcp::send_repeated_zero_copy(socket, block, times);
        let completions = tcp::zero_copy_completions(socket)?;
        match result {
            // The kernel has no memory to record outstanding pages, or refuses to pin more.
            Err(error) if poll::is_queue_full(&error) => {
                self.method = SendMethod::Copy;
                tcp::send_repeated(socket, block, times)
            }
            other => {
                if completions.copied {
                    self.method = SendMethod::Copy;
                }
                other
            }
        }
    }

    fn send_from_file(&mut self, most: usize) -> io::Result<Option<usize>> {
        let SendMethod::ReadFile(file, block) = &mut self.method else { return Ok(None) };
        let length = most.min(self.length);
        let filled = file.read_next(&mut block[..length])?;
        if filled == 0 {
            return Ok(None);
        }
        send_all(self.job, &block[..filled]).map(Some)
    }

    /// Enlarges the writes while they are fast, and reduces them when they are slow.
    fn adapt(&mut self, before: MonotonicTime, moved: usize) {
        if self.most_repeat == 1 {
            return;
        }
        if clock::monotonic_now().since(before) > MAX_CALL_TIME || moved == 0 {
            self.repeat = (self.repeat / 2).max(1);
        } else if self.repeat < self.most_repeat {
            self.repeat = (self.repeat * 2).min(self.most_repeat);
        }
    }

    fn failure_of(&self, error: io::Error) -> StreamFailure {
        match self.method {
            SendMethod::ReadFile(..) if error.raw_os_error().is_none() || poll::is_device_failure(&error) => {
                StreamFailure::File(error)
            }
            _ => StreamFailure::Write(error),
        }
    }
}

fn block_length(job: &StreamJob) -> ByteCount {
    let parameters = &job.options.parameters;
    let most = job.options.server_rate.as_ref().map(RateAccount::most);
    match [parameters.rate, most].into_iter().flatten().min() {
        Some(rate)
            if parameters.block_size == DEFAULT_BLOCK && parameters.burst.is_none() && job.options.splits_blocks =>
        {
            (rate * MAX_PACED_INTERVAL).clamp(ByteCount::new(1448), DEFAULT_BLOCK)
        }
        _ => parameters.block_size.max(ByteCount::new(1)),
    }
}

fn setup_failure(cause: linerate_sys::Error) -> StreamFailure {
    StreamFailure::SetUp(cause.into())
}

fn choose_method(job: &StreamJob, block: &[u8]) -> Result<SendMethod, StreamFailure> {
    let parameters = &job.options.parameters;
    match (&job.options.file, parameters.zero_copy) {
        (Some(file), true) => Ok(SendMethod::SendFile(Arc::clone(file))),
        (Some(file), false) => {
            let block = PageBuffer::new(ByteCount::from_usize(block.len())).map_err(setup_failure)?;
            Ok(SendMethod::ReadFile(Arc::clone(file), block))
        }
        (None, true) => file::temporary_file(block).map(SendMethod::SendTemporary).map_err(setup_failure),
        (None, false) if zero_copy_may_pay(job, block.len()) => Ok(SendMethod::ZeroCopy),
        (None, false) => Ok(SendMethod::Copy),
    }
}

/// Pinning pages and reading completions costs more than copying small blocks, and loopback copies anyway.
fn zero_copy_may_pay(job: &StreamJob, length: usize) -> bool {
    length >= MIN_BULK_BLOCK
        && job.options.parameters.rate.is_none()
        && !net::peer_is_this_host(&job.socket)
        && options::set_zero_copy(&job.socket, true).is_ok()
}

fn send_whole_file_piece(job: &StreamJob, file: &TransferFile, length: usize) -> io::Result<Option<usize>> {
    let start = file.advance(length);
    let mut sent = 0;
    while sent < length && !job.shared.stopping() {
        match tcp::send_file(&job.socket, file.file(), start + sent as u64, length - sent) {
            Ok(0) => break,
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok((sent > 0).then_some(sent))
}

fn send_all(job: &StreamJob, piece: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < piece.len() && !job.shared.stopping() {
        match tcp::send(&job.socket, &piece[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// Waits until all bytes are acknowledged: an exact test is over when its last byte has arrived, not when it is in the
/// send buffer.
fn wait_until_acknowledged(job: &StreamJob) {
    while !job.shared.stopping() {
        match options::unacknowledged_bytes(&job.socket) {
            Ok(left) if !left.is_zero() => clock::sleep_until(clock::monotonic_now() + Duration::from_micros(200)),
            _ => return,
        }
    }
}

/// Receives until the peer closes or it is stopped. The driver learns of the last byte of an exact test; all that
/// arrives until the test's end is counted, as in iperf3.
pub(super) fn receive(job: &StreamJob) -> Result<(), StreamFailure> {
    let mut buffer = PageBuffer::new(RECEIVE_BUFFER).map_err(setup_failure)?;
    let discard = job.options.parameters.skip_receive_copy && job.options.file.is_none();
    let exact = !matches!(job.options.parameters.end, EndCondition::Time(_));
    // It is unknown which of several streams is near its end.
    let several = job.options.parameters.parallel.get() > 1;
    let mut low_water = LowWaterMark::new(job.options.parameters.window, clock::monotonic_now());
    let mut slow_reader = job.options.read_rate.map(|rate| SlowReader { rate, next: clock::monotonic_now() });
    while !job.shared.stopping() {
        let most = if discard { MAX_DISCARD } else { buffer.len() };
        let most = slow_reader.as_ref().map_or(most, |reader| most.min(reader.at_once()));
        let result = if discard {
            tcp::receive_discarding(&job.socket, most)
        } else {
            tcp::receive(&job.socket, &mut buffer[..most])
        };
        let received = match result {
            Ok(0) => return Err(StreamFailure::Closed),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(StreamFailure::Read(error)),
        };
        // Bytes count in the phase in which they arrive: the call may have waited beyond the end of the omitted one.
        let phase = job.shared.phase();
        if let Some(file) = &job.options.file {
            file.append(&buffer[..received]).map_err(StreamFailure::File)?;
        }
        job.counters.add_bytes(phase, received);
        let now = clock::monotonic_now();
        job.counters.set_last_arrival(now);
        if phase == super::TestPhase::Counting {
            job.shared.count_received(ByteCount::from_usize(received));
        }
        if let Some(reader) = &mut slow_reader {
            reader.took(job, received);
            continue;
        }
        let left = job.shared.receive_budget.left(UNCOALESCED_TAIL);
        let last_part = exact && (several || left < UNCOALESCED_TAIL);
        if last_part {
            low_water.end(&job.socket);
        } else {
            low_water.received(&job.socket, received, now);
        }
    }
    Ok(())
}

/// Final part of an exact test, which is not coalesced: less than the threshold would wait for the receive timeout.
const UNCOALESCED_TAIL: ByteCount = ByteCount::from_mebibytes(4);

/// Reads at a limited rate in small pieces, as an application does that processes the data.
struct SlowReader {
    rate: BitRate,
    /// When the next read is due.
    next: MonotonicTime,
}

impl SlowReader {
    /// Time whose bytes one read takes,
    const PERIOD: Duration = Duration::from_millis(10);
    /// but no fewer than this number.
    const LEAST: usize = 1024;

    fn at_once(&self) -> usize {
        (self.rate * Self::PERIOD).to_usize().max(Self::LEAST)
    }

    /// Sleeps until the time for `bytes` has passed. Time without data is not made up for.
    fn took(&mut self, job: &StreamJob, bytes: usize) {
        let now = clock::monotonic_now();
        let due = if self.next + Self::PERIOD < now { now } else { self.next };
        self.next = due + (ByteCount::from_usize(bytes) / self.rate).unwrap_or_default();
        if self.next > now {
            job.shared.sleep_until(self.next);
        }
    }
}

/// Coalesces more data in the kernel before the receiver wakes, as the rate allows (`SO_RCVLOWAT`, socket(7)).
///
/// Most of a receiver's time goes into sleeping and waking: at tens of gigabits, and in the lab at any rate, where each
/// of these steps costs a dozen of the host's. A threshold of a millisecond's worth of data changes no visible figure
/// and no acknowledgement; the receive timeout bounds it on a stall.
struct LowWaterMark {
    since: MonotonicTime,
    bytes: usize,
    current: usize,
    most: usize,
}

impl LowWaterMark {
    const PERIOD: Duration = Duration::from_millis(20);
    const GATHER: Duration = Duration::from_millis(1);
    const LEAST: usize = 16 << 10;
    const MOST: usize = 256 << 10;

    /// With a requested `window`, the threshold stays well below it, so that the sender never waits for a receiver that
    /// waits for more.
    fn new(window: Option<ByteCount>, now: MonotonicTime) -> Self {
        let most = window.map_or(Self::MOST, |window| Self::MOST.min(window.to_usize() / 8));
        Self { since: now, bytes: 0, current: 1, most }
    }

    /// Stops coalescing.
    fn end(&mut self, socket: &impl AsFd) {
        if self.current != 1 && options::set_receive_low_water(socket, ByteCount::new(1)).is_ok() {
            self.current = 1;
        }
    }

    fn received(&mut self, socket: &impl AsFd, bytes: usize, now: MonotonicTime) {
        self.bytes += bytes;
        let elapsed = now.since(self.since);
        if elapsed < Self::PERIOD {
            return;
        }
        let gathered = (ByteCount::from_usize(self.bytes) / elapsed * Self::GATHER).to_usize();
        let wanted =
            if gathered < Self::LEAST.min(self.most) { 1 } else { gathered.next_power_of_two().min(self.most) };
        if wanted != self.current && options::set_receive_low_water(socket, ByteCount::from_usize(wanted)).is_ok() {
            self.current = wanted;
        }
        (self.since, self.bytes) = (now, 0);
    }
}
