//! The data plane: one blocking thread per stream, one file per transport.

mod low_water;
mod payload;
mod secured;
mod shared;
mod tcp;
mod udp;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_model::parameters::{CpuIndex, TestParameters, TestProtocol};
use linerate_model::stream::{StreamDescription, StreamRole};
use linerate_model::tls::TlsProperties;
use linerate_sys::{clock, net, options, process};
use linerate_units::{BitRate, ByteCount};

use crate::resources::ResourceAccount;
use crate::server_rate::RateAccount;
use crate::tls::DataCipher;

use shared::ThreadTimes;

pub(crate) use tcp::FIRST_RECEIVE_BUFFER;
pub(crate) use udp::{FIRST_MESSAGES, MESSAGE};

pub(crate) use payload::{StreamPayload, TransferFile};
pub(crate) use shared::{
    ByteLimits, ReceivedPackets, SessionState, StreamCounters, StreamFailure, TestPhase, utilization,
};

/// Most bytes that a slow paced stream without a requested block size sends at once: twenty segments over Ethernet, twice a
/// sender's initial window (RFC 6928). Of larger segments it sends as many as fit into iperf3's default block.
pub(crate) const SLOW_BURST: ByteCount = ByteCount::new(28_960);

/// A stream whose socket is connected.
#[derive(Debug)]
pub(crate) struct ConnectedStream {
    /// Number, addresses and role.
    pub description: StreamDescription,
    /// Counters of its thread.
    pub counters: Arc<StreamCounters>,
    socket: Arc<OwnedFd>,
    cipher: Option<Box<DataCipher>>,
    thread: Option<JoinHandle<()>>,
    /// True when a thread may be waiting for data of a connection.
    reads_connection: bool,
}

/// Options of a stream's thread.
#[derive(Clone, Debug)]
pub(crate) struct StreamOptions {
    /// Agreed parameters.
    pub parameters: Arc<TestParameters>,
    /// File to send from or receive into.
    pub file: Option<Arc<TransferFile>>,
    /// Data that its senders send.
    pub(crate) payload: Arc<StreamPayload>,
    /// Processor to run on.
    pub cpu: Option<CpuIndex>,
    /// True when a paced TCP sender may send a block in parts. An iperf3 counts whole blocks only, and an old one each
    /// arrival as a block.
    pub splits_blocks: bool,
    /// Highest read rate of a TCP receiver.
    pub read_rate: Option<BitRate>,
    /// Rate of the server, which its senders share; `None` for any.
    pub(crate) server_rate: Option<RateAccount>,
    /// Memory for larger buffers than the first; unlimited at a client.
    pub(crate) memory: ResourceAccount,
}

#[cfg(test)]
impl StreamOptions {
    /// Options of a transfer with these parameters, without a file, an affinity or limits of the server.
    pub(crate) fn plain(parameters: TestParameters) -> Self {
        Self {
            parameters: Arc::new(parameters),
            file: None,
            payload: Arc::default(),
            cpu: None,
            splits_blocks: true,
            read_rate: None,
            server_rate: None,
            memory: ResourceAccount::default(),
        }
    }
}

impl ConnectedStream {
    /// A stream over a connected socket, not yet started.
    pub(crate) fn new(description: StreamDescription, socket: OwnedFd) -> Self {
        let (counters, socket) = (Arc::new(StreamCounters::default()), Arc::new(socket));
        Self { description, counters, socket, cipher: None, thread: None, reads_connection: false }
    }

    /// Encrypts the data; the stream is not yet started.
    pub(crate) fn encrypt(&mut self, cipher: Box<DataCipher>) {
        self.cipher = Some(cipher);
    }

    /// Properties of its encryption, at a client before its start; `None` for data in clear text.
    pub(crate) fn tls_properties(&self) -> Option<TlsProperties> {
        self.cipher.as_ref()?.properties()
    }

    /// Bytes that it sends at once at a low rate, without a requested block size.
    pub(crate) fn slow_burst(&self) -> ByteCount {
        tcp::slow_burst(options::mss(&self.socket).ok())
    }

    /// Makes the payload of a TCP sender while the peer has the next step; otherwise its thread makes it before the first
    /// byte.
    pub(crate) fn prepare(&self, options: &StreamOptions) {
        if options.parameters.protocol == TestProtocol::Tcp && self.description.role == StreamRole::Sender {
            // The thread tries again, and reports the failure.
            let _ = tcp::shared_block(&self.socket, options);
        }
    }

    /// Starts the thread that moves the data.
    ///
    /// # Errors
    ///
    /// The system cannot start another thread.
    pub(crate) fn start(&mut self, shared: &Arc<SessionState>, options: &StreamOptions) -> io::Result<()> {
        let job = StreamJob {
            socket: Arc::clone(&self.socket),
            counters: Arc::clone(&self.counters),
            shared: Arc::clone(shared),
            options: options.clone(),
            role: self.description.role,
        };
        self.reads_connection =
            options.parameters.protocol == TestProtocol::Tcp && self.description.role == StreamRole::Receiver;
        let cipher = self.cipher.take();
        let name = format!("stream-{}", self.description.id.0);
        // The data is in page buffers and arrays of known size; a small stack keeps many sessions cheap.
        let thread = std::thread::Builder::new().name(name).stack_size(256 << 10).spawn(move || job.run(cipher))?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Ends the connection, so that the thread and the peer notice at once, and waits for the thread.
    pub(crate) fn close(&mut self) {
        // A UDP socket needs no shutdown, and a connection may be gone already.
        let _ = net::shutdown_both(&self.socket);
        self.join();
    }

    /// Waits until the thread has ended; request its stop first. A receiver of a connection notices at once.
    pub(crate) fn join(&mut self) {
        if self.reads_connection && self.thread.is_some() {
            // The peer may have ended the connection already.
            let _ = net::shutdown_read(&self.socket);
        }
        if let Some(thread) = self.thread.take() {
            // The runtime has printed a panic in a stream's thread; its counters are kept as they were.
            let _ = thread.join();
        }
    }
}

impl AsFd for ConnectedStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

struct StreamJob {
    socket: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    shared: Arc<SessionState>,
    options: StreamOptions,
    role: StreamRole,
}

impl StreamJob {
    /// Reserves up to `want` bytes of the server's rate, at least `least`; waits and returns `None` when another flow has
    /// the turn.
    fn reserve_rate(&self, want: ByteCount, least: ByteCount) -> Option<ByteCount> {
        let Some(rate) = &self.options.server_rate else { return Some(want) };
        let now = clock::monotonic_now();
        if let Some(until) = rate.deferred_until(now) {
            self.shared.sleep_until(until);
            return None;
        }
        let want = want.min(rate.step(least, now));
        rate.reserve(want, now).then_some(want)
    }

    /// Returns the reserved bytes that were not sent.
    fn give_rate_back(&self, unused: ByteCount) {
        if let Some(rate) = &self.options.server_rate {
            rate.give_back(unused);
        }
    }

    fn run(&self, cipher: Option<Box<DataCipher>>) {
        if let Some(cpu) = self.options.cpu {
            // The session has checked that the processor exists; otherwise the stream runs on any.
            let _ = process::pin_thread(cpu);
        }
        let outcome = match (self.options.parameters.protocol, self.role) {
            (TestProtocol::Tcp, StreamRole::Sender) => tcp::send(self, cipher),
            (TestProtocol::Tcp, StreamRole::Receiver) => tcp::receive(self, cipher),
            (TestProtocol::Udp, StreamRole::Sender) => udp::send(self),
            (TestProtocol::Udp, StreamRole::Receiver) => udp::receive(self),
        };
        // Failures while the test is being torn down are expected.
        let broken = outcome.err().filter(|_| !self.shared.stopping());
        self.counters.finish(clock::monotonic_now(), broken);
        self.shared.wake_driver();
        // To read them takes a tenth of a millisecond, which is no time of the transfer, and the driver need not wait for it.
        self.counters.set_times(ThreadTimes { cpu: clock::thread_cpu_usage(), wait: clock::thread_run_delay() });
    }
}
