//! TCP streams.

use core::time::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::parameters::EndCondition;
use linerate_sys::data::tcp;
use linerate_sys::file::PageBuffer;
use linerate_sys::{clock, environment, net, options, poll};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Mss};

use super::low_water::LowWaterMark;
use super::payload::TransferFile;
use super::secured::{RecordReceiver, RecordSender};
use super::{SLOW_BURST, StreamFailure, StreamJob, StreamOptions};
use crate::pace::{PacingOptions, SendPermission, StreamPacer};
use crate::resources::{MemoryLease, ResourceAccount};
use crate::server_rate::RateAccount;
use crate::tls::DataCipher;

/// Most bytes copied to the kernel at once when nothing limits the rate. Acknowledgements that arrive during a write free
/// no memory before it ends: a larger one takes pages that no cache holds any more. Over loopback, with receivers that wait for
/// twice as much (`SO_RCVLOWAT`), 1 MiB cost 1.6 times the processor time, 256 KiB as much, and 64 KiB 1.4 times.
pub(super) const MAX_COPY: usize = 128 << 10;

/// Most bytes lent to the kernel at once (`MSG_ZEROCOPY`), which reports each call's completion.
const MAX_ZERO_COPY: usize = 1 << 20;

/// Smallest block that may be sent several at a time; a user who asks for smaller ones wants small writes.
const MIN_BULK_BLOCK: usize = 64 << 10;

/// Duration of a call after which the next one is smaller, so that the counters stay current on slow paths.
const MAX_CALL_TIME: Duration = Duration::from_millis(5);

/// iperf3's default block size. A paced stream that uses it is split into smaller blocks; any other size was requested
/// and is kept.
const DEFAULT_BLOCK: ByteCount = ByteCount::from_kibibytes(128);

/// Longest sending interval of a paced stream with the default block size,
const MAX_PACED_INTERVAL: Duration = Duration::from_millis(10);

/// … unless less than [`slow_burst`] is due in it: each wake-up costs both hosts processor time. Its bursts divide a second, so
/// that interval reports of whole seconds have equal numbers of them; there is at least this many,
const MIN_BURSTS_PER_SECOND: u64 = 1;

/// or this many where details are requested: then each interval of a diagnosis has data.
const MIN_DETAILED_BURSTS_PER_SECOND: u64 = 5;

/// Longest time by which all blocks of a paced stream but the first leave later than the rate asks for.
const MAX_LATER_WAIT: Duration = MAX_PACED_INTERVAL;

/// Receive buffer: small enough for a processor's second-level cache.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_kibibytes(128);

/// First receive buffer at a server, whose streams share its memory.
pub(crate) const FIRST_RECEIVE_BUFFER: ByteCount = ByteCount::from_kibibytes(16);

/// Longest wait of a receiver for data: each one that ends without any costs what a packet costs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Most bytes discarded in the kernel at once: nothing is copied, so the cache does not matter.
const MAX_DISCARD: usize = 8 << 20;

/// Sends until the budget is used up, the file ends, or it is stopped.
pub(super) fn send(job: &StreamJob, cipher: Option<Box<DataCipher>>) -> Result<(), StreamFailure> {
    let mut sender = TcpSender::new(job, cipher)?;
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
    SendTemporary(Arc<std::fs::File>),
    /// From a file, read into a block of its own first (`-F` without `-Z`).
    ReadFile(Arc<TransferFile>, PageBuffer),
    /// Encrypted from a block (`--tls-data`).
    Secured(RecordSender),
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
    fn new(job: &'a StreamJob, cipher: Option<Box<DataCipher>>) -> Result<Self, StreamFailure> {
        let parameters = &job.options.parameters;
        let block = shared_block(&job.socket, &job.options).map_err(StreamFailure::SetUp)?;
        let (unit, length) = (parameters.block_size.to_usize().max(1), block.len());
        let method = match cipher {
            Some(cipher) => SendMethod::Secured(RecordSender::new(job, cipher)?),
            None => choose_method(job, &block)?,
        };
        let pacer = parameters.rate.and_then(|rate| {
            let block = ByteCount::from_usize(length);
            let pacing = PacingOptions::of(parameters, rate, block);
            let now = clock::monotonic_now();
            StreamPacer::new(pacing, now + later_wait(rate, block)).map(|pacer| pacer.with_first_at(now))
        });
        let most_repeat = if pacer.is_none() { most_repeat(&method, length, parameters.window) } else { 1 };
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
        let before = (self.most_repeat > 1).then(clock::monotonic_now);
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
        match pacer.turn_before(self.job.shared.end(), now) {
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
        match &mut self.method {
            SendMethod::Secured(sender) => sender.send(self.job, &block[..most.min(self.length)]).map(Some),
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
                let sent = tcp::send_repeated(socket, block, times);
                self.copy_from_now_on();
                sent
            }
            other => {
                if completions.copied {
                    self.copy_from_now_on();
                }
                other
            }
        }
    }

    fn copy_from_now_on(&mut self) {
        self.method = SendMethod::Copy;
        self.most_repeat = most_repeat(&self.method, self.length, self.job.options.parameters.window);
        self.repeat = self.repeat.min(self.most_repeat);
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
    fn adapt(&mut self, before: Option<MonotonicTime>, moved: usize) {
        let Some(before) = before else { return };
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

/// Number of blocks that an unlimited sender passes in one call.
fn most_repeat(method: &SendMethod, length: usize, window: Option<ByteCount>) -> usize {
    let large = match method {
        SendMethod::Copy => MAX_COPY,
        SendMethod::ZeroCopy => MAX_ZERO_COPY,
        _ => return 1,
    };
    if length < MIN_BULK_BLOCK {
        return 1;
    }
    let large = window.map_or(large, |window| large.min(window.to_usize() / 2));
    (large / length).clamp(1, tcp::MAX_REPEAT)
}

/// The block that a sender over `socket` sends, made by the first of its session.
pub(super) fn shared_block(socket: &OwnedFd, stream: &StreamOptions) -> io::Result<Arc<PageBuffer>> {
    stream.payload.block(block_length(socket, stream), stream.parameters.repeating_payload)
}

fn block_length(socket: &OwnedFd, stream: &StreamOptions) -> ByteCount {
    let parameters = &stream.parameters;
    let most = stream.server_rate.as_ref().map(RateAccount::most);
    match [parameters.rate, most].into_iter().flatten().min() {
        Some(rate) if parameters.block_size == DEFAULT_BLOCK && parameters.burst.is_none() && stream.splits_blocks => {
            let least = if parameters.far_details { MIN_DETAILED_BURSTS_PER_SECOND } else { MIN_BURSTS_PER_SECOND };
            paced_block(rate, slow_burst(options::mss(socket).ok()), least)
        }
        _ => parameters.block_size.max(ByteCount::new(1)),
    }
}

/// Bytes that a slow stream over segments of `mss` sends at once: twenty of them, of large ones those of one block.
pub(super) fn slow_burst(mss: Option<Mss>) -> ByteCount {
    let segment = mss.map_or(0, |mss| u64::from(mss.get())).max(1);
    let segments = (DEFAULT_BLOCK.get() / segment).clamp(1, 20);
    SLOW_BURST.max(ByteCount::new(segments * segment))
}

/// Bytes that a stream without a requested block size sends at once at `rate`, at most `burst` when it is slow, and at least
/// `least` times a second.
fn paced_block(rate: BitRate, burst: ByteCount, least: u64) -> ByteCount {
    let second = (rate * Duration::from_secs(1)).get();
    let few = ByteCount::new(second / second.div_ceil(burst.get().max(1)).max(least));
    (rate * MAX_PACED_INTERVAL).max(few).clamp(ByteCount::new(1448), DEFAULT_BLOCK)
}

/// Time by which all blocks but the first leave later: none is due at the end of an interval or of the test, which would count it
/// in the one or the other by chance.
fn later_wait(rate: BitRate, block: ByteCount) -> Duration {
    (rate.time_to_send(block).unwrap_or_default() / 4).min(MAX_LATER_WAIT)
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
        (None, true) => job.options.payload.file(block).map(SendMethod::SendTemporary).map_err(StreamFailure::SetUp),
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
pub(super) fn receive(job: &StreamJob, cipher: Option<Box<DataCipher>>) -> Result<(), StreamFailure> {
    // Joining this thread ends its wait for data.
    options::set_receive_timeout(&job.socket, Some(IDLE_TIMEOUT)).map_err(setup_failure)?;
    let mut buffer = ReceiveBuffer::new(&job.options.memory)?;
    let mut cipher = cipher.map(RecordReceiver);
    let discard = job.options.parameters.skip_receive_copy && job.options.file.is_none() && cipher.is_none();
    let exact = !matches!(job.options.parameters.end, EndCondition::Time(_));
    // It is unknown which of several streams is near its end.
    let several = job.options.parameters.parallel.get() > 1;
    let streams = job.options.parameters.parallel.to_usize();
    let is_crowded = streams > 1 && streams > job.shared.usable_processors();
    let mut low_water = LowWaterMark::new(
        job.options.parameters.window,
        is_crowded,
        environment::moderates_receive_buffers,
        clock::monotonic_now(),
    );
    let mut slow_reader = job.options.read_rate.map(|rate| SlowReader { rate, next: clock::monotonic_now() });
    while !job.shared.stopping() {
        let most = if discard { MAX_DISCARD } else { buffer.bytes.len() };
        let most = slow_reader.as_ref().map_or(most, |reader| most.min(reader.at_once()));
        let result = if discard {
            tcp::receive_discarding(&job.socket, most)
        } else {
            tcp::receive(&job.socket, &mut buffer.bytes[..most])
        };
        let received = match result {
            Ok(0) => return Err(cipher.as_ref().map_or(StreamFailure::Closed, RecordReceiver::end)),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(StreamFailure::Read(error)),
        };
        // Bytes count in the phase in which they arrive: the call may have waited beyond the end of the omitted one.
        let phase = job.shared.phase();
        let file = job.options.file.as_deref();
        let payload = match (&mut cipher, file) {
            (Some(cipher), file) => cipher.open(&buffer.bytes[..received], file)?,
            (None, Some(file)) => {
                file.append(&buffer.bytes[..received]).map_err(StreamFailure::File)?;
                received
            }
            (None, None) => received,
        };
        if received == buffer.bytes.len() && !discard {
            buffer.enlarge()?;
        }
        job.counters.add_bytes(phase, payload);
        let now = clock::monotonic_now();
        job.counters.set_last_arrival(now);
        if phase == super::TestPhase::Counting {
            job.shared.count_received(ByteCount::from_usize(payload));
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

/// Buffer of a receiver. At a server it is small until a read fills it, and stays so when its clients have their share of
/// the memory.
struct ReceiveBuffer {
    bytes: PageBuffer,
    memory: MemoryLease,
    may_grow: bool,
}

impl ReceiveBuffer {
    fn new(account: &ResourceAccount) -> Result<Self, StreamFailure> {
        let may_grow = account.is_limited();
        let size = if may_grow { FIRST_RECEIVE_BUFFER } else { RECEIVE_BUFFER };
        Ok(Self { bytes: PageBuffer::new(size).map_err(setup_failure)?, memory: account.empty_lease(), may_grow })
    }

    fn enlarge(&mut self) -> Result<(), StreamFailure> {
        if self.may_grow && self.memory.grow(RECEIVE_BUFFER - FIRST_RECEIVE_BUFFER) {
            self.bytes = PageBuffer::new(RECEIVE_BUFFER).map_err(setup_failure)?;
        }
        self.may_grow = false;
        Ok(())
    }
}

/// Final part of an exact test, which is not coalesced: less than the threshold would wait for the receive timeout.
const UNCOALESCED_TAIL: ByteCount = ByteCount::from_mebibytes(4);

/// Reads at a limited rate in small pieces, as an application does that processes the data.
struct SlowReader {
    rate: BitRate,
    /// Time of the next read.
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

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use linerate_model::parameters::TestParameters;
    use linerate_model::stream::StreamRole;
    use linerate_sys::poll::Waker;

    use super::*;
    use crate::stream::{ByteLimits, SessionState, StreamOptions, TestPhase};

    #[test]
    fn slow_streams_send_the_same_number_of_small_bursts_in_each_second() {
        for (megabits, least, block) in [
            (0.01, 1, 1448),
            (0.1, 1, 12_500),
            (0.1, 5, 2500),
            (1.0, 1, 25_000),
            (10.0, 1, 28_409),
            (50.0, 1, 62_500),
            (1000.0, 1, 131_072),
        ] {
            let rate = BitRate::from_bits_per_second(megabits * 1e6);
            let ethernet = slow_burst(Some(Mss::new(1448)));
            assert_eq!(paced_block(rate, ethernet, least), ByteCount::new(block), "{megabits} Mbit/s");
        }
        for (mss, burst) in [(None, 28_960), (Some(536), 28_960), (Some(8948), 125_272), (Some(65_483), 130_966)] {
            assert_eq!(slow_burst(mss.map(Mss::new)), ByteCount::new(burst), "segments of {mss:?} bytes");
        }
    }

    #[test]
    fn bursts_of_slow_streams_are_due_well_within_each_second() {
        for kilobits in [20.0, 100.0, 1000.0, 3000.0, 10_000.0] {
            let rate = BitRate::from_bits_per_second(kilobits * 1e3);
            let block = paced_block(rate, slow_burst(Some(Mss::new(65_483))), MIN_BURSTS_PER_SECOND);
            let interval = rate.time_to_send(block).expect("a rate");
            for burst in 0..100 {
                let due = later_wait(rate, block) + interval * burst;
                let millis = due.subsec_millis();
                assert!((5..995).contains(&millis), "{kilobits} kbit/s: burst {burst} after {due:?}");
            }
        }
    }

    /// A slow stream over loopback in a test until `end`, which was stopped, so that it never sleeps.
    fn stopped_job(end: MonotonicTime) -> (StreamJob, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (peer, _) = listener.accept().expect("a client");
        let waker = Arc::new(Waker::new().expect("eventfd"));
        let shared = Arc::new(SessionState::new(TestPhase::Counting, ByteLimits::default(), waker));
        shared.start_counting(Some(end));
        shared.stop();
        let rate = Some(BitRate::from_bits_per_second(1e4));
        let parameters = TestParameters { rate, ..TestParameters::default() };
        let options = StreamOptions::plain(parameters);
        let role = StreamRole::Sender;
        (StreamJob { socket: Arc::new(stream.into()), counters: Arc::default(), shared, options, role }, peer)
    }

    #[test]
    fn a_paced_sender_sends_nothing_after_the_end() {
        for (left, sent) in [(Duration::ZERO, 0), (Duration::from_secs(600), 1448)] {
            let (job, _peer) = stopped_job(clock::monotonic_now() + left);
            let mut sender = TcpSender::new(&job, None).expect("a sender");
            let due = clock::monotonic_now() + MAX_LATER_WAIT;
            assert!(sender.step().expect("no failure"), "the stop ends it");
            assert_eq!(job.counters.bytes(TestPhase::Counting), ByteCount::new(sent), "the first block leaves at once");
            while clock::monotonic_now() < due {
                assert!(sender.step().expect("no failure"), "the stop ends it");
            }
            assert!(sender.step().expect("no failure"), "the stop ends it");
            assert_eq!(job.counters.bytes(TestPhase::Counting), ByteCount::new(sent), "{left:?} before the end");
        }
    }

    #[test]
    fn writes_without_a_rate_are_as_large_as_pays_and_no_larger_than_half_a_window() {
        let file = Arc::new(linerate_sys::file::temporary_file(b"x").expect("a file"));
        for (method, length, window, repeat) in [
            (SendMethod::Copy, 128 << 10, None, 1),
            (SendMethod::Copy, 64 << 10, None, 2),
            (SendMethod::Copy, 1 << 20, None, 1),
            // Small blocks were asked for.
            (SendMethod::Copy, 8 << 10, None, 1),
            (SendMethod::Copy, 64 << 10, Some(ByteCount::from_kibibytes(128)), 1),
            (SendMethod::ZeroCopy, 128 << 10, None, 8),
            (SendMethod::SendTemporary(file), 128 << 10, None, 1),
        ] {
            assert_eq!(most_repeat(&method, length, window), repeat, "{length} bytes, window {window:?}");
        }
    }
}
