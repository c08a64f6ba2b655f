//! The data plane: one blocking thread per stream, one file per transport.

mod payload;
mod shared;
mod tcp;
mod udp;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_model::parameters::{Cpu, Protocol, TestParameters};
use linerate_model::stream::{Role, StreamDescription};
use linerate_sys::{clock, net, process};
use linerate_units::BitRate;

pub(crate) use payload::{FileUse, Payload};
pub(crate) use shared::{Broken, Counters, Phase, ReceivedPackets, Shared, utilization};

/// A stream whose socket is connected.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Who it is.
    pub description: StreamDescription,
    /// What its thread has counted.
    pub counters: Arc<Counters>,
    socket: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// What a stream's thread needs besides its socket.
#[derive(Clone, Debug)]
pub(crate) struct StreamOptions {
    /// What was agreed.
    pub parameters: Arc<TestParameters>,
    /// File to send from or receive into.
    pub file: Option<Arc<FileUse>>,
    /// What its senders send.
    pub(crate) payload: Arc<Payload>,
    /// Processor to run on.
    pub cpu: Option<Cpu>,
    /// Most that a TCP receiver takes from its socket.
    pub read_rate: Option<BitRate>,
}

impl Stream {
    /// A stream over a connected socket; nothing flows yet.
    pub(crate) fn new(description: StreamDescription, socket: OwnedFd) -> Self {
        Self { description, counters: Arc::new(Counters::default()), socket: Arc::new(socket), thread: None }
    }

    /// Starts the thread that moves the data.
    ///
    /// # Errors
    ///
    /// The system has no room for another thread.
    pub(crate) fn start(&mut self, shared: &Arc<Shared>, options: &StreamOptions) -> io::Result<()> {
        let job = Job {
            socket: Arc::clone(&self.socket),
            counters: Arc::clone(&self.counters),
            shared: Arc::clone(shared),
            options: options.clone(),
            role: self.description.role,
        };
        let name = format!("stream-{}", self.description.id.0);
        // The data lives in page buffers and arrays of known size; a small stack keeps many sessions cheap.
        let thread = std::thread::Builder::new().name(name).stack_size(256 << 10).spawn(move || job.run())?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Ends the connection, so that the thread and the peer notice at once, and waits for the thread.
    pub(crate) fn close(&mut self) {
        // A UDP socket has nothing to shut down, and a connection may be gone already.
        let _ = net::shutdown_both(&self.socket);
        self.join();
    }

    /// Waits until the thread has ended; tell it to stop first.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic in a stream's thread has been printed by the runtime; its counters stay as they were.
            let _ = thread.join();
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

struct Job {
    socket: Arc<OwnedFd>,
    counters: Arc<Counters>,
    shared: Arc<Shared>,
    options: StreamOptions,
    role: Role,
}

impl Job {
    fn run(&self) {
        if let Some(cpu) = self.options.cpu {
            // The session has checked that the processor exists; running elsewhere is no reason not to run.
            let _ = process::pin_thread(cpu);
        }
        let outcome = match (self.options.parameters.protocol, self.role) {
            (Protocol::Tcp, Role::Sender) => tcp::send(self),
            (Protocol::Tcp, Role::Receiver) => tcp::receive(self),
            (Protocol::Udp, Role::Sender) => udp::send(self),
            (Protocol::Udp, Role::Receiver) => udp::receive(self),
        };
        // What breaks while everything is being torn down is no news.
        let broken = outcome.err().filter(|_| !self.shared.stopping());
        self.counters.finish(clock::monotonic_now(), clock::thread_cpu_usage(), broken);
        self.shared.wake_driver();
    }
}
