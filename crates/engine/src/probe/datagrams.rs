//! UDP socket of a probe session, at either end: one thread receives and dispatches each datagram by its stream number;
//! any thread may send.

use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_sys::data::train::{self, DatagramMarking, SendFailure};
use linerate_sys::data::udp::{DatagramReceiver, ReceivedDatagrams};
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::time_stamp::{ClockPair, StampSource, TimeStamp};
use linerate_sys::{clock, net, options};
use linerate_units::{ByteCount, MonotonicTime, PacketCount, TypeOfService};
use linerate_wire::probe::StreamNumber;

use super::error::{ProbeError, Result};
use super::lock;

/// Receive buffer: at tens of gigabits the default of 208 KiB fills up within one scheduling delay, and the loss would
/// be this host's own.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_mebibytes(32);

/// Send buffer: holds a whole batch of a fast stream.
const SEND_BUFFER: ByteCount = ByteCount::from_mebibytes(4);

/// Longest time between two looks of the receiving thread at its stop flag, should a shutdown not wake it.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Coalescing time of a fast stream's datagrams: each wake-up costs as much as reading several, and the kernel's stamps
/// keep their times.
const COALESCING_TIME: Duration = Duration::from_millis(1);

/// Messages that a client reads at once; a batch of this size means that more can be read.
pub(crate) const CLIENT_BATCH: usize = 32;

/// Messages that a server reads at once: it has many sessions, and each message takes 64 KiB.
pub(crate) const SERVER_BATCH: usize = 4;

/// Divisor of the receive buffer for the coalesced share.
const COALESCED_DIVISOR: u64 = 8;

/// Longest wait for space in a full send buffer.
const MAX_SEND_WAIT: Duration = Duration::from_millis(10);

/// Datagrams of one stream received together, each of the same size (the last may be shorter).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramRun<'a> {
    /// The stream.
    pub(crate) stream: StreamNumber,
    /// Their payloads.
    pub(crate) bytes: &'a [u8],
    /// Size of each.
    pub(crate) datagram: usize,
    /// Time at which the kernel received them.
    pub(crate) arrived: TimeStamp,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) type_of_service: Option<TypeOfService>,
}

/// Port unreachable messages in a row after which the peer is gone: a single one may be late or forged.
const MAX_UNREACHABLE: u32 = 3;

/// Receiver of a stream's datagrams, called on the receiving thread: it must not block.
pub(crate) trait DatagramSink: Send + Sync {
    fn take(&self, run: &DatagramRun<'_>, from: &DatagramSocket);
}

/// The socket and the receivers of its streams.
pub(crate) struct DatagramSocket {
    socket: UdpSocket,
    clocks: ClockPair,
    sinks: Mutex<SinkTable>,
    stopping: AtomicBool,
    /// Datagrams that the kernel dropped because the socket buffer was full.
    dropped: AtomicU64,
    /// Time at which the last datagram was read, in nanoseconds of the monotonic clock; 0 for never.
    heard: AtomicU64,
    /// Bytes received so far.
    received: AtomicU64,
    /// ICMP port unreachable messages since then.
    unreachable: AtomicU32,
    probing_mtu: Mutex<usize>,
}

#[derive(Default)]
struct SinkTable {
    by_stream: HashMap<StreamNumber, RegisteredSink>,
    others: Option<Arc<dyn DatagramSink>>,
    in_batches: usize,
}

struct RegisteredSink {
    sink: Arc<dyn DatagramSink>,
    in_batches: bool,
}

impl core::fmt::Debug for DatagramSocket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Datagrams").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl DatagramSocket {
    /// Prepares a connected socket. `others` receives datagrams of unknown streams.
    pub(crate) fn new(socket: UdpSocket, others: Option<Arc<dyn DatagramSink>>) -> Result<Arc<Self>> {
        socket.set_nonblocking(false).map_err(|cause| ProbeError::io("preparing the probes' socket", &cause))?;
        options::set_receive_timeout(&socket, Some(STOP_POLL_INTERVAL))?;
        // Best effort: without privilege the kernel grants at most `net.core.rmem_max` and `wmem_max`; packet metadata
        // that it cannot report stays unknown.
        let _ = options::force_receive_buffer(&socket, RECEIVE_BUFFER);
        let _ = options::force_send_buffer(&socket, SEND_BUFFER);
        let _ = options::set_receive_hop_limit(&socket, true);
        let _ = options::set_receive_type_of_service(&socket, true);
        Ok(Arc::new(Self {
            socket,
            clocks: ClockPair::new(),
            sinks: Mutex::new(SinkTable { others, ..SinkTable::default() }),
            stopping: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            received: AtomicU64::new(0),
            unreachable: AtomicU32::new(0),
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

    /// Time of the peer's last datagram; `None` for never.
    pub(crate) fn heard(&self) -> Option<MonotonicTime> {
        Some(self.heard.load(Ordering::Relaxed)).filter(|at| *at > 0).map(MonotonicTime::from_nanos)
    }

    /// Bytes of all datagrams received so far.
    pub(crate) fn received(&self) -> ByteCount {
        ByteCount::new(self.received.load(Ordering::Relaxed))
    }

    /// True when the peer's host reports its port as unreachable: streams to it end.
    pub(crate) fn is_peer_gone(&self) -> bool {
        self.unreachable.load(Ordering::Relaxed) >= MAX_UNREACHABLE
    }

    fn count_unreachable(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            self.unreachable.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Registers `sink` for the datagrams of `stream`; returns `false` when another one is registered. `in_batches`
    /// lets the kernel coalesce them (receive offload): needed for high rates, but without a time stamp for each
    /// datagram.
    pub(crate) fn register(&self, stream: StreamNumber, sink: Arc<dyn DatagramSink>, in_batches: bool) -> bool {
        let mut sinks = lock(&self.sinks);
        if sinks.by_stream.contains_key(&stream) {
            return false;
        }
        sinks.by_stream.insert(stream, RegisteredSink { sink, in_batches });
        if in_batches {
            sinks.in_batches += 1;
            let _ = options::set_udp_gro(&self.socket, true);
        }
        true
    }

    /// Unregisters the receiver of `stream`.
    pub(crate) fn forget(&self, stream: StreamNumber) {
        let mut sinks = lock(&self.sinks);
        if sinks.by_stream.remove(&stream).is_some_and(|registered| registered.in_batches) {
            sinks.in_batches -= 1;
            if sinks.in_batches == 0 {
                let _ = options::set_udp_gro(&self.socket, false);
            }
        }
    }

    /// Starts (`true`) or stops sending with the don't-fragment bit regardless of the kernel's path MTU; each start
    /// needs its stop.
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

    /// Sends one datagram, waiting briefly for space in the send buffer.
    pub(crate) fn send(&self, datagram: &[u8], mark: DatagramMarking) -> core::result::Result<(), SendFailure> {
        self.retry_when_full(|| train::send_datagram(&self.socket, datagram, mark))
    }

    /// Sends a GSO train of datagrams. `Ok(false)` when kernel or device do not support segmentation.
    pub(crate) fn send_train(
        &self,
        bytes: &[u8],
        datagram: u16,
        mark: DatagramMarking,
    ) -> core::result::Result<bool, SendFailure> {
        let mut refused = false;
        let sent = self.retry_when_full(|| match train::send_train(&self.socket, bytes, datagram, mark) {
            Err(error) if train::is_segmentation_refusal(&error) => {
                refused = true;
                Ok(())
            }
            other => other,
        });
        sent.map(|()| !refused)
    }

    fn retry_when_full(&self, mut operation: impl FnMut() -> io::Result<()>) -> core::result::Result<(), SendFailure> {
        let mut last = SendFailure::Broken;
        for _ in 0..4 {
            let Err(error) = operation() else { return Ok(()) };
            last = SendFailure::of(&error);
            self.count_unreachable(&error);
            match last {
                SendFailure::Earlier => {}
                SendFailure::Full => {
                    let _ = poll::wait_for(&self.socket, PollInterest::WRITE, Some(MAX_SEND_WAIT));
                }
                _ => break,
            }
        }
        Err(last)
    }

    /// Starts the receiving thread, which reads up to `batch` messages at once.
    pub(crate) fn start(self: &Arc<Self>, batch: usize) -> Result<ReceivingThread> {
        let datagrams = Arc::clone(self);
        let thread = std::thread::Builder::new().name("probe-receive".into()).stack_size(256 << 10);
        let thread = thread
            .spawn(move || datagrams.receive(batch))
            .map_err(|cause| ProbeError::io("starting the thread that receives probes", &cause))?;
        Ok(ReceivingThread { datagrams: Arc::clone(self), thread: Some(thread) })
    }

    fn receive(&self, batch: usize) {
        let Ok(mut receiver) = DatagramReceiver::with_messages(&self.socket, batch) else { return };
        // Most streams need each packet separately.
        if lock(&self.sinks).in_batches == 0 {
            let _ = options::set_udp_gro(&self.socket, false);
        }
        let room = options::receive_buffer(&self.socket).map_or(0, |buffer| buffer.get() / COALESCED_DIVISOR);
        let mut since_pause = 0;
        while !self.stopping.load(Ordering::Acquire) {
            match receiver.receive() {
                Ok(messages) => {
                    // Read for the time stamps of those messages, and for the next check of the peer's silence.
                    let now = self.clocks.now();
                    self.heard.store(now.monotonic.as_nanos(), Ordering::Relaxed);
                    self.unreachable.store(0, Ordering::Relaxed);
                    let (mut count, mut bytes) = (0, 0);
                    for message in messages {
                        count += 1;
                        bytes += message.bytes.len() as u64;
                        self.give(&message, now);
                    }
                    since_pause += bytes;
                    // The only writer.
                    self.received.store(self.received.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
                    if count < batch && since_pause < room && self.is_coalescing() {
                        clock::sleep_until(clock::monotonic_now() + COALESCING_TIME);
                        since_pause = 0;
                    } else if count < batch {
                        since_pause = 0;
                    }
                }
                Err(error) if matches!(SendFailure::of(&error), SendFailure::Earlier | SendFailure::Full) => {
                    self.count_unreachable(&error);
                }
                Err(_) => clock::sleep_until(clock::monotonic_now() + MAX_SEND_WAIT),
            }
        }
    }

    /// True when all expected datagrams may come in batches: an answer to a probe would be late.
    fn is_coalescing(&self) -> bool {
        let sinks = lock(&self.sinks);
        sinks.in_batches > 0 && sinks.in_batches == sinks.by_stream.len()
    }

    /// Dispatches a message, split where the stream changes.
    fn give(&self, message: &ReceivedDatagrams<'_>, now: TimeStamp) {
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
            let run = DatagramRun { stream, bytes, datagram, arrived, hop_limit, type_of_service };
            if let Some(sink) = self.sink_of(stream) {
                sink.take(&run, self);
            }
        }
    }

    fn sink_of(&self, stream: StreamNumber) -> Option<Arc<dyn DatagramSink>> {
        let sinks = lock(&self.sinks);
        match sinks.by_stream.get(&stream) {
            Some(registered) => Some(Arc::clone(&registered.sink)),
            None => sinks.others.clone(),
        }
    }
}

/// Stream number of a STAMP packet, of either direction (RFC 8972 §3); `None` for one that is too short.
fn stream_of(datagram: &[u8]) -> Option<StreamNumber> {
    let bytes = datagram.get(14..16).filter(|_| datagram.len() >= 44)?;
    Some(StreamNumber::new(u16::from_be_bytes([bytes[0], bytes[1]])))
}

/// The receiving thread; it ends with this.
#[derive(Debug)]
pub(crate) struct ReceivingThread {
    datagrams: Arc<DatagramSocket>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ReceivingThread {
    fn drop(&mut self) {
        self.datagrams.stopping.store(true, Ordering::Release);
        let _ = net::shutdown_both(self.datagrams.socket());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
