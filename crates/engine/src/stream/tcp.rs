//! TCP streams.

use core::time::Duration;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_model::parameters::EndCondition;
use linerate_sys::data::tcp;
use linerate_sys::file::{self, PageBuffer};
use linerate_sys::{clock, net, options};
use linerate_units::{BitRate, ByteCount, MonotonicTime};

use super::payload::FileUse;
use super::{Broken, Job};
use crate::pace::{Pacer, Pacing, Turn};

/// Most bytes handed to the kernel at once when nothing limits the rate. Ten times the throughput of single 128 KiB
/// blocks would be too much to promise, but on loopback it is more than twice: the receiver sleeps and wakes less.
const LARGE_WRITE: usize = 1 << 20;

/// Blocks at least this long may be sent several at a time; whoever asks for smaller ones wants small writes.
const BULK_BLOCK: usize = 64 << 10;

/// A call that took longer than this hands over less next time, so that the counters stay current on slow paths.
const SLOW_CALL: Duration = Duration::from_millis(5);

/// iperf3's default block size. A paced stream that uses it is cut finer; another size was asked for and is kept.
const DEFAULT_BLOCK: ByteCount = ByteCount::from_kibibytes(128);

/// A paced stream sends at least this often, if its block size leaves the choice.
const PACED_PERIOD: Duration = Duration::from_millis(10);

/// The receive buffer: small enough for a processor's second-level cache.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_kibibytes(128);

/// Most bytes taken at once when they are discarded in the kernel: nothing is copied, so the cache does not matter.
const DISCARD_AT_ONCE: usize = 1 << 20;

/// Sends until the budget is used up, the file ends, or it is told to stop.
pub(super) fn send(job: &Job) -> Result<(), Broken> {
    let mut sender = Sender::new(job)?;
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

/// How the bytes reach the kernel.
enum Method {
    /// Copied from a block.
    Copy,
    /// From the pages of a block, without a copy (`MSG_ZEROCOPY`), until the kernel says that it copies after all.
    ZeroCopy,
    /// From a file through `sendfile` (`-Z`).
    SendFile(Arc<FileUse>),
    /// From a temporary file that holds one block, through `sendfile`.
    SendTemporary(std::fs::File),
    /// From a file, read into a block of its own first (`-F` without `-Z`).
    ReadFile(Arc<FileUse>, PageBuffer),
}

struct Sender<'a> {
    job: &'a Job,
    method: Method,
    block: Arc<PageBuffer>,
    /// Bytes per block.
    length: usize,
    pacer: Option<Pacer>,
    /// Bytes of the pacer's last group that are still to be sent.
    group_left: usize,
    /// Blocks per call.
    repeat: usize,
    most_repeat: usize,
}

impl<'a> Sender<'a> {
    fn new(job: &'a Job) -> Result<Self, Broken> {
        let parameters = &job.options.parameters;
        let length = block_length(job);
        let block = job.options.payload.block(length, parameters.repeating_payload).map_err(Broken::SetUp)?;
        let length = length.to_usize();
        let method = choose_method(job, &block)?;
        let pacer = parameters.rate.and_then(|rate| {
            let pacing = Pacing { rate, block: ByteCount::from_usize(length), burst: parameters.burst };
            Pacer::new(pacing, clock::monotonic_now())
        });
        let bulk = pacer.is_none() && length >= BULK_BLOCK && matches!(method, Method::Copy | Method::ZeroCopy);
        let large = parameters.window.map_or(LARGE_WRITE, |window| LARGE_WRITE.min(window.to_usize() / 2));
        let most_repeat = if bulk { (large / length).clamp(1, tcp::MAX_REPEAT) } else { 1 };
        Ok(Self { job, method, block, length, pacer, group_left: 0, repeat: 1, most_repeat })
    }

    /// Sends once; `false` at the end.
    fn step(&mut self) -> Result<bool, Broken> {
        let Some(want) = self.wait_for_turn() else { return Ok(true) };
        let phase = self.job.shared.phase();
        let want = ByteCount::from_usize(want);
        let budget = &self.job.shared.send_budget;
        let counting = phase == super::Phase::Counting;
        let allowed = if counting { budget.take(want) } else { want };
        if allowed.is_zero() {
            return Ok(false);
        }
        let before = clock::monotonic_now();
        let sent = match self.send_some(allowed.to_usize()) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(0),
            Err(error) => return Err(self.broken_by(error)),
        };
        let moved = sent.unwrap_or(0);
        self.group_left = self.group_left.saturating_sub(moved);
        if counting {
            budget.give_back(allowed - ByteCount::from_usize(moved));
        }
        self.job.counters.add_bytes(phase, moved);
        self.adapt(before, moved);
        Ok(sent.is_some() && !(counting && budget.is_used_up()))
    }

    /// How many bytes to send now; `None` when it is not yet time. A group that one call did not take whole goes on first:
    /// its time is spent.
    fn wait_for_turn(&mut self) -> Option<usize> {
        let Some(pacer) = &mut self.pacer else { return Some(self.length * self.repeat) };
        if self.group_left > 0 {
            return Some(self.group_left);
        }
        let now = clock::monotonic_now();
        match pacer.turn(now) {
            Turn::Send(count) => {
                pacer.sent(count, now);
                self.group_left = self.length * count.to_usize();
                Some(self.group_left)
            }
            Turn::Wait(until) => {
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
            Method::Copy if times > 1 => tcp::send_repeated(socket, block, times).map(Some),
            Method::Copy => tcp::send(socket, &block[..most.min(self.length)]).map(Some),
            Method::ZeroCopy => self.send_zero_copy(most).map(Some),
            Method::SendTemporary(file) => tcp::send_file(socket, file, 0, most.min(self.length)).map(Some),
            Method::SendFile(file) => {
                let length = most.min(self.length);
                send_whole_file_piece(self.job, file, length)
            }
            Method::ReadFile(..) => self.send_from_file(most),
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
            // The kernel ran out of room to note what is outstanding, or would not pin more pages.
            Err(error) if error.raw_os_error() == Some(NO_BUFFER_SPACE) => {
                self.method = Method::Copy;
                tcp::send_repeated(socket, block, times)
            }
            other => {
                if completions.copied {
                    self.method = Method::Copy;
                }
                other
            }
        }
    }

    fn send_from_file(&mut self, most: usize) -> io::Result<Option<usize>> {
        let Method::ReadFile(file, block) = &mut self.method else { return Ok(None) };
        let length = most.min(self.length);
        let filled = file.read_next(&mut block[..length])?;
        if filled == 0 {
            return Ok(None);
        }
        send_all(self.job, &block[..filled]).map(Some)
    }

    /// Large writes while they go fast, smaller ones when they take long.
    fn adapt(&mut self, before: MonotonicTime, moved: usize) {
        if self.most_repeat == 1 {
            return;
        }
        if clock::monotonic_now().since(before) > SLOW_CALL || moved == 0 {
            self.repeat = (self.repeat / 2).max(1);
        } else if self.repeat < self.most_repeat {
            self.repeat = (self.repeat * 2).min(self.most_repeat);
        }
    }

    fn broken_by(&self, error: io::Error) -> Broken {
        match self.method {
            Method::ReadFile(..) if error.raw_os_error().is_none_or(|code| code == INPUT_OUTPUT_ERROR) => {
                Broken::File(error)
            }
            _ => Broken::Write(error),
        }
    }
}

/// `ENOBUFS` and `EIO`, which have no portable name.
const NO_BUFFER_SPACE: i32 = 105;
const INPUT_OUTPUT_ERROR: i32 = 5;

fn block_length(job: &Job) -> ByteCount {
    let parameters = &job.options.parameters;
    match parameters.rate {
        Some(rate) if parameters.block_size == DEFAULT_BLOCK && parameters.burst.is_none() => {
            (rate * PACED_PERIOD).clamp(ByteCount::new(1448), DEFAULT_BLOCK)
        }
        _ => parameters.block_size.max(ByteCount::new(1)),
    }
}

fn set_up(cause: linerate_sys::Error) -> Broken {
    Broken::SetUp(cause.into())
}

fn choose_method(job: &Job, block: &[u8]) -> Result<Method, Broken> {
    let parameters = &job.options.parameters;
    match (&job.options.file, parameters.zero_copy) {
        (Some(file), true) => Ok(Method::SendFile(Arc::clone(file))),
        (Some(file), false) => {
            let block = PageBuffer::new(ByteCount::from_usize(block.len())).map_err(set_up)?;
            Ok(Method::ReadFile(Arc::clone(file), block))
        }
        (None, true) => file::temporary_file(block).map(Method::SendTemporary).map_err(set_up),
        (None, false) if zero_copy_may_pay(job, block.len()) => Ok(Method::ZeroCopy),
        (None, false) => Ok(Method::Copy),
    }
}

/// Pinning pages and reading completions costs more than copying small blocks, and loopback copies anyway.
fn zero_copy_may_pay(job: &Job, length: usize) -> bool {
    length >= BULK_BLOCK
        && job.options.parameters.rate.is_none()
        && !net::peer_is_this_host(&job.socket)
        && options::set_zero_copy(&job.socket, true).is_ok()
}

fn send_whole_file_piece(job: &Job, file: &FileUse, length: usize) -> io::Result<Option<usize>> {
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

fn send_all(job: &Job, piece: &[u8]) -> io::Result<usize> {
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

/// An exact test is over when its last byte has arrived, not when it is in the send buffer.
fn wait_until_acknowledged(job: &Job) {
    while !job.shared.stopping() {
        match options::unacknowledged_bytes(&job.socket) {
            Ok(left) if !left.is_zero() => clock::sleep_until(clock::monotonic_now() + Duration::from_micros(200)),
            _ => return,
        }
    }
}

/// Receives until the budget is used up, the peer closes, or it is told to stop.
pub(super) fn receive(job: &Job) -> Result<(), Broken> {
    let mut buffer = PageBuffer::new(RECEIVE_BUFFER).map_err(set_up)?;
    let discard = job.options.parameters.skip_receive_copy && job.options.file.is_none();
    let exact = !matches!(job.options.parameters.end, EndCondition::Time(_));
    // Which of several streams is near its end, nobody knows.
    let several = job.options.parameters.parallel.get() > 1;
    let mut low_water = LowWater::new(job.options.parameters.window, clock::monotonic_now());
    let mut slow_reader = job.options.read_rate.map(|rate| SlowReader { rate, next: clock::monotonic_now() });
    while !job.shared.stopping() {
        let phase = job.shared.phase();
        let counting = phase == super::Phase::Counting;
        let budget = &job.shared.receive_budget;
        // Nothing is reserved: which of several streams the last bytes come on, only the sender knows.
        let most = if discard { DISCARD_AT_ONCE } else { buffer.len() };
        let most = slow_reader.as_ref().map_or(most, |reader| most.min(reader.at_once()));
        let most = if counting { budget.left(ByteCount::from_usize(most)).to_usize() } else { most };
        if most == 0 {
            return Ok(());
        }
        let result = if discard {
            tcp::receive_discarding(&job.socket, most)
        } else {
            tcp::receive(&job.socket, &mut buffer[..most])
        };
        let received = match result {
            Ok(0) => return Err(Broken::Closed),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(Broken::Read(error)),
        };
        // A stock sender may overshoot by a block per stream: that much is not part of the test.
        let received = if counting { budget.take(ByteCount::from_usize(received)).to_usize() } else { received };
        if let Some(file) = &job.options.file {
            file.append(&buffer[..received]).map_err(Broken::File)?;
        }
        job.counters.add_bytes(phase, received);
        if let Some(reader) = &mut slow_reader {
            reader.took(job, received);
            continue;
        }
        let last_part = exact && (several || budget.left(LAST_PART) < LAST_PART);
        if last_part {
            low_water.end(&job.socket);
        } else {
            low_water.received(&job.socket, received);
        }
    }
    Ok(())
}

/// The end of an exact test is not gathered: what is less than the threshold would wait for the receive timeout.
const LAST_PART: ByteCount = ByteCount::from_mebibytes(4);

/// Reads no faster than a rate, a little at a time, as an application does that has something to do with the data.
struct SlowReader {
    rate: BitRate,
    /// When the next read is due.
    next: MonotonicTime,
}

impl SlowReader {
    /// A read takes about as much as comes due in this time,
    const PERIOD: Duration = Duration::from_millis(10);
    /// but no less than this.
    const LEAST: usize = 1024;

    fn at_once(&self) -> usize {
        (self.rate * Self::PERIOD).to_usize().max(Self::LEAST)
    }

    /// Sleeps until the time of what was taken is over. Time lost while nothing came is not made up for.
    fn took(&mut self, job: &Job, bytes: usize) {
        let now = clock::monotonic_now();
        let due = if self.next + Self::PERIOD < now { now } else { self.next };
        self.next = due + (ByteCount::from_usize(bytes) / self.rate).unwrap_or_default();
        if self.next > now {
            job.shared.sleep_until(self.next);
        }
    }
}

/// Lets the kernel gather more before it wakes the receiver, as the rate allows (`SO_RCVLOWAT`, socket(7)).
///
/// Most of a receiver's time goes into falling asleep and being woken: at tens of gigabits, and in the lab at any rate,
/// where each of these steps is a dozen of the host's. A threshold of a millisecond's worth of data changes no figure that
/// a person could see, nor an acknowledgement; the receive timeout bounds it on a stall.
struct LowWater {
    since: MonotonicTime,
    bytes: usize,
    current: usize,
    most: usize,
}

impl LowWater {
    const PERIOD: Duration = Duration::from_millis(20);
    const GATHER: Duration = Duration::from_millis(1);
    const LEAST: usize = 16 << 10;
    const MOST: usize = 256 << 10;

    /// With a `window` that was asked for, the threshold stays well below it, so that the sender never waits for a
    /// receiver that waits for more.
    fn new(window: Option<ByteCount>, now: MonotonicTime) -> Self {
        let most = window.map_or(Self::MOST, |window| Self::MOST.min(window.to_usize() / 8));
        Self { since: now, bytes: 0, current: 1, most }
    }

    /// Gathers no more.
    fn end(&mut self, socket: &impl AsFd) {
        if self.current != 1 && options::set_receive_low_water(socket, ByteCount::new(1)).is_ok() {
            self.current = 1;
        }
    }

    fn received(&mut self, socket: &impl AsFd, bytes: usize) {
        self.bytes += bytes;
        let now = clock::monotonic_now();
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
