//! The UDP socket of a probe session, at either end: one thread receives, and gives each datagram to whom its number
//! belongs; anyone may send.

use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_sys::data::train::{self, Mark, Refusal};
use linerate_sys::data::udp::{DatagramReceiver, Received};
use linerate_sys::poll::{self, Interest};
use linerate_sys::time_stamp::{ClockPair, StampSource, TimeStamp};
use linerate_sys::{clock, net, options};
use linerate_units::{ByteCount, MonotonicTime, PacketCount, TypeOfService};
use linerate_wire::probe::StreamNumber;

use super::error::{ProbeError, Result};
use super::lock;

/// At tens of gigabits the default of 208 KiB is full within the time of one scheduling delay, and the loss would be
/// this host's own.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_mebibytes(32);

/// A batch of a fast stream is handed over whole.
const SEND_BUFFER: ByteCount = ByteCount::from_mebibytes(4);

/// The receiving thread looks at its stop flag at least this often, should a shutdown not wake it.
const LOOK_AROUND: Duration = Duration::from_millis(200);

/// While a fast stream comes in, datagrams are left to gather for this long: each wake-up costs as much as reading
/// several, and the kernel's stamps keep their times.
const GATHER: Duration = Duration::from_millis(1);

/// A batch of this many says that there is more to be read at once.
const WHOLE_BATCH: usize = 32;

/// What may gather, as a part of the receive buffer.
const GATHERED_PART: u64 = 8;

/// A sender that finds the send buffer full waits at most this long for room.
const ROOM_LIMIT: Duration = Duration::from_millis(10);

/// Datagrams of one stream that came together, each of the same size (the last may be shorter).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    /// Which stream.
    pub(crate) stream: StreamNumber,
    /// Their payloads.
    pub(crate) bytes: &'a [u8],
    /// Size of each.
    pub(crate) datagram: usize,
    /// When the kernel received them.
    pub(crate) arrived: TimeStamp,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) type_of_service: Option<TypeOfService>,
}

/// Takes the datagrams of a stream, on the receiving thread: it must not wait.
pub(crate) trait Sink: Send + Sync {
    fn take(&self, run: &Run<'_>, from: &Datagrams);
}

/// The socket and who takes what it receives.
pub(crate) struct Datagrams {
    socket: UdpSocket,
    clocks: ClockPair,
    sinks: Mutex<Sinks>,
    stopping: AtomicBool,
    /// Datagrams that the kernel dropped at the full socket.
    dropped: AtomicU64,
    /// When the last datagram was read, in nanoseconds of the monotonic clock; 0 for never.
    heard: AtomicU64,
    probing_mtu: Mutex<usize>,
}

#[derive(Default)]
struct Sinks {
    by_stream: HashMap<StreamNumber, Registered>,
    others: Option<Arc<dyn Sink>>,
    in_batches: usize,
}

struct Registered {
    sink: Arc<dyn Sink>,
    in_batches: bool,
}

impl core::fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Datagrams").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Datagrams {
    /// Prepares a connected socket. `others` takes what belongs to no stream.
    pub(crate) fn new(socket: UdpSocket, others: Option<Arc<dyn Sink>>) -> Result<Arc<Self>> {
        socket.set_nonblocking(false).map_err(|cause| ProbeError::io("preparing the probes' socket", &cause))?;
        options::set_receive_timeout(&socket, Some(LOOK_AROUND))?;
        // Best effort: without privilege the kernel gives at most `net.core.rmem_max` and `wmem_max`; what it cannot
        // tell of a packet stays unknown.
        let _ = options::force_receive_buffer(&socket, RECEIVE_BUFFER);
        let _ = options::force_send_buffer(&socket, SEND_BUFFER);
        let _ = options::set_receive_hop_limit(&socket, true);
        let _ = options::set_receive_type_of_service(&socket, true);
        Ok(Arc::new(Self {
            socket,
            clocks: ClockPair::new(),
            sinks: Mutex::new(Sinks { others, ..Sinks::default() }),
            stopping: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            probing_mtu: Mutex::new(0),
        }))
    }

    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(crate) fn clocks(&self) -> &ClockPair {
        &self.clocks
    }

    /// Datagrams that the kernel has dropped at this socket so far.
    pub(crate) fn dropped(&self) -> PacketCount {
        PacketCount::new(self.dropped.load(Ordering::Relaxed))
    }

    /// When the peer was last heard of; `None` for never.
    pub(crate) fn heard(&self) -> Option<MonotonicTime> {
        Some(self.heard.load(Ordering::Relaxed)).filter(|at| *at > 0).map(MonotonicTime::from_nanos)
    }

    /// From now on `sink` takes the datagrams of `stream`; `false` when another one does. `in_batches` lets the kernel
    /// put them together (receive offload): needed for high rates, and the end of a time for each of them.
    pub(crate) fn register(&self, stream: StreamNumber, sink: Arc<dyn Sink>, in_batches: bool) -> bool {
        let mut sinks = lock(&self.sinks);
        if sinks.by_stream.contains_key(&stream) {
            return false;
        }
        sinks.by_stream.insert(stream, Registered { sink, in_batches });
        if in_batches {
            sinks.in_batches += 1;
            let _ = options::set_udp_gro(&self.socket, true);
        }
        true
    }

    /// Nobody takes the datagrams of `stream` any longer.
    pub(crate) fn forget(&self, stream: StreamNumber) {
        let mut sinks = lock(&self.sinks);
        if sinks.by_stream.remove(&stream).is_some_and(|registered| registered.in_batches) {
            sinks.in_batches -= 1;
            if sinks.in_batches == 0 {
                let _ = options::set_udp_gro(&self.socket, false);
            }
        }
    }

    /// Begins (`true`) or ceases to send with the don't-fragment bit whatever routers have said; each beginning has its
    /// end.
    pub(crate) fn probe_mtu(&self, on: bool) -> Result<()> {
        let mut users = lock(&self.probing_mtu);
        match (on, *users) {
            (true, 0) => options::set_path_mtu_probing(&self.socket)?,
            (false, 1) => options::unset_path_mtu_probing(&self.socket)?,
            _ => {}
        }
        *users = if on { *users + 1 } else { users.saturating_sub(1) };
        Ok(())
    }

    /// Sends one datagram, waiting a moment for room in the send buffer.
    pub(crate) fn send(&self, datagram: &[u8], mark: Mark) -> core::result::Result<(), Refusal> {
        self.try_to(|| train::send_datagram(&self.socket, datagram, mark))
    }

    /// Sends a train of datagrams. `Ok(false)` when kernel or device cannot cut trains.
    pub(crate) fn send_train(&self, bytes: &[u8], datagram: u16, mark: Mark) -> core::result::Result<bool, Refusal> {
        let mut refused = false;
        let sent = self.try_to(|| match train::send_train(&self.socket, bytes, datagram, mark) {
            Err(error) if train::refuses_trains(&error) => {
                refused = true;
                Ok(())
            }
            other => other,
        });
        sent.map(|()| !refused)
    }

    fn try_to(&self, mut operation: impl FnMut() -> io::Result<()>) -> core::result::Result<(), Refusal> {
        let mut last = Refusal::Broken;
        for _ in 0..4 {
            let Err(error) = operation() else { return Ok(()) };
            last = Refusal::of(&error);
            match last {
                Refusal::Earlier => {}
                Refusal::Full => {
                    let _ = poll::wait_for(&self.socket, Interest::WRITE, Some(ROOM_LIMIT));
                }
                _ => break,
            }
        }
        Err(last)
    }

    /// Starts the receiving thread.
    pub(crate) fn start(self: &Arc<Self>) -> Result<Receiving> {
        let datagrams = Arc::clone(self);
        let thread = std::thread::Builder::new().name("probe-receive".into()).stack_size(256 << 10);
        let thread = thread
            .spawn(move || datagrams.receive())
            .map_err(|cause| ProbeError::io("starting the thread that receives probes", &cause))?;
        Ok(Receiving { datagrams: Arc::clone(self), thread: Some(thread) })
    }

    fn receive(&self) {
        let Ok(mut receiver) = DatagramReceiver::new(&self.socket) else { return };
        // Streams whose packets matter one by one are the rule.
        if lock(&self.sinks).in_batches == 0 {
            let _ = options::set_udp_gro(&self.socket, false);
        }
        let room = options::receive_buffer(&self.socket).map_or(0, |buffer| buffer.get() / GATHERED_PART);
        let mut since_pause = 0;
        while !self.stopping.load(Ordering::Acquire) {
            match receiver.receive() {
                Ok(messages) => {
                    // Read for the stamps of those messages, and for the next look at the peer's silence.
                    let now = self.clocks.now();
                    self.heard.store(now.monotonic.as_nanos(), Ordering::Relaxed);
                    let mut count = 0;
                    for message in messages {
                        count += 1;
                        since_pause += message.bytes.len() as u64;
                        self.give(&message, now);
                    }
                    if count < WHOLE_BATCH && since_pause < room && self.gathers() {
                        clock::sleep_until(clock::monotonic_now() + GATHER);
                        since_pause = 0;
                    } else if count < WHOLE_BATCH {
                        since_pause = 0;
                    }
                }
                Err(error) if matches!(Refusal::of(&error), Refusal::Earlier | Refusal::Full) => {}
                Err(_) => clock::sleep_until(clock::monotonic_now() + ROOM_LIMIT),
            }
        }
    }

    /// Whether all that is expected may come in batches: an answer to a probe would be late.
    fn gathers(&self) -> bool {
        let sinks = lock(&self.sinks);
        sinks.in_batches > 0 && sinks.in_batches == sinks.by_stream.len()
    }

    /// Hands a message over, cut where the stream changes.
    fn give(&self, message: &Received<'_>, now: TimeStamp) {
        if let Some(dropped) = message.dropped {
            self.dropped.store(dropped.get(), Ordering::Relaxed);
        }
        let arrived = message.stamp.map_or(now, |wall| TimeStamp {
            wall,
            monotonic: self.clocks.monotonic(wall),
            source: StampSource::Kernel,
        });
        let datagram = message.datagram.to_usize().max(1);
        let mut rest = message.bytes;
        while let Some(stream) = stream_of(rest) {
            let same = rest.chunks(datagram).take_while(|one| stream_of(one) == Some(stream)).map(<[u8]>::len).sum();
            let (bytes, others) = rest.split_at(same);
            rest = others;
            let (hop_limit, type_of_service) = (message.hop_limit, message.type_of_service);
            let run = Run { stream, bytes, datagram, arrived, hop_limit, type_of_service };
            if let Some(sink) = self.sink_of(stream) {
                sink.take(&run, self);
            }
        }
    }

    fn sink_of(&self, stream: StreamNumber) -> Option<Arc<dyn Sink>> {
        let sinks = lock(&self.sinks);
        match sinks.by_stream.get(&stream) {
            Some(registered) => Some(Arc::clone(&registered.sink)),
            None => sinks.others.clone(),
        }
    }
}

/// The number that a STAMP packet carries, of either direction (RFC 8972 §3); `None` for what is too short for one.
fn stream_of(datagram: &[u8]) -> Option<StreamNumber> {
    let bytes = datagram.get(14..16).filter(|_| datagram.len() >= 44)?;
    Some(StreamNumber::new(u16::from_be_bytes([bytes[0], bytes[1]])))
}

/// The receiving thread; it ends with this.
#[derive(Debug)]
pub(crate) struct Receiving {
    datagrams: Arc<Datagrams>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.datagrams.stopping.store(true, Ordering::Release);
        let _ = net::shutdown_both(self.datagrams.socket());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
