//! UDP socket of an endpoint: large buffers, and counts of what quinn does not report.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_model::quic::EcnDatagrams;
use linerate_sys::net::{self, UdpOptions};
use linerate_sys::{options, socket_memory};
use linerate_units::ByteCount;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime as _, TokioRuntime, UdpPoller};

use crate::error::QuicError;
use crate::transport;

/// Size that is asked of the kernel for each buffer: 60 ms at 10 Gbit/s for a thread that has to wait for its processor.
const BUFFER: ByteCount = ByteCount::from_mebibytes(64);

/// Most payload of one system call. The kernel refuses more, also where it segments, and quinn, whose batches have ten datagrams
/// of any size, would take them for lost.
const MAX_CALL: usize = transport::MAX_PAYLOAD as usize;

/// Binds the socket of an endpoint. The kernel limits its buffers (`net.core.rmem_max`) unless the process may exceed that.
pub(crate) fn bind(udp: &UdpOptions) -> linerate_sys::Result<UdpSocket> {
    let socket = net::bind_udp(udp)?;
    // What the kernel granted is part of the result.
    let _ = options::force_receive_buffer(&socket, BUFFER).or_else(|_| options::set_receive_buffer(&socket, BUFFER));
    let _ = options::force_send_buffer(&socket, BUFFER).or_else(|_| options::set_send_buffer(&socket, BUFFER));
    Ok(socket)
}

/// Socket that counts the ECN fields of the datagrams of watched peers.
#[derive(Debug)]
pub(crate) struct CountingSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    /// The same socket, to query the kernel.
    kernel: UdpSocket,
    peers: Mutex<HashMap<SocketAddr, PeerCounts>>,
    partial: Mutex<Option<PartialBatch>>,
    unvalidated: Arc<Mutex<HashMap<SocketAddr, AddressBudget>>>,
}

/// Counts of a watched peer.
#[derive(Clone, Copy, Debug, Default)]
struct PeerCounts {
    ecn: EcnDatagrams,
    /// System calls in addition to one per batch.
    more_calls: u64,
}

/// Batch whose first part was sent before the socket was full: quinn offers all of it again.
#[derive(Debug, PartialEq, Eq)]
struct PartialBatch {
    /// Bytes that no other batch has: they are encrypted.
    beginning: [u8; 32],
    sent: usize,
}

/// Payload exchanged with an address that has not shown that it receives (RFC 9000 section 8.1). quinn has this limit, too, and
/// completes the datagram with which it is reached.
#[derive(Clone, Copy, Debug)]
struct AddressBudget {
    received: usize,
    sent: usize,
}

impl AddressBudget {
    /// Most bytes that are sent per byte that was received.
    const FACTOR: usize = 3;

    /// Counts a datagram to the address, and returns true where it is within the limit.
    const fn claim(&mut self, length: usize) -> bool {
        let is_within = self.sent + length <= Self::FACTOR * self.received;
        if is_within {
            self.sent += length;
        }
        is_within
    }
}

/// Limit of the payload to an address, until this value is dropped.
#[derive(Debug)]
pub(crate) struct UnvalidatedAddress {
    address: SocketAddr,
    budgets: Arc<Mutex<HashMap<SocketAddr, AddressBudget>>>,
}

impl Drop for UnvalidatedAddress {
    fn drop(&mut self) {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address);
    }
}

/// Figures of a socket that the kernel has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketFigures {
    pub(crate) receive_buffer: Option<u64>,
    pub(crate) send_buffer: Option<u64>,
    pub(crate) drops: Option<u64>,
}

impl CountingSocket {
    /// Wraps a bound socket, in the context of a runtime.
    pub(crate) fn new(socket: UdpSocket) -> Result<Arc<Self>, QuicError> {
        let failed = |cause: io::Error| QuicError::io("preparing the UDP socket", &cause);
        let kernel = socket.try_clone().map_err(failed)?;
        let inner = TokioRuntime.wrap_udp_socket(socket).map_err(failed)?;
        Ok(Arc::new(Self {
            inner,
            kernel,
            peers: Mutex::default(),
            partial: Mutex::default(),
            unvalidated: Arc::default(),
        }))
    }

    /// Counts datagrams from this address until the returned value is dropped.
    pub(crate) fn watch(self: &Arc<Self>, peer: SocketAddr) -> WatchedPeer {
        self.lock().insert(peer, PeerCounts::default());
        WatchedPeer { socket: Arc::clone(self), peer }
    }

    /// Limits the payload to an address whose first datagram has arrived; it has 1200 bytes at least.
    pub(crate) fn limit_unvalidated(&self, address: SocketAddr) -> UnvalidatedAddress {
        let budget = AddressBudget { received: usize::from(transport::MIN_PAYLOAD), sent: 0 };
        self.unvalidated.lock().unwrap_or_else(PoisonError::into_inner).insert(address, budget);
        UnvalidatedAddress { address, budgets: Arc::clone(&self.unvalidated) }
    }

    /// Number of addresses that have not shown that they receive.
    pub(crate) fn unvalidated_addresses(&self) -> usize {
        self.unvalidated.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// True where the address may have a datagram of that length.
    fn permits(&self, address: SocketAddr, length: usize) -> bool {
        let mut budgets = self.unvalidated.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.get_mut(&address).is_none_or(|budget| budget.claim(length))
    }

    /// Counts datagrams of addresses that are not validated.
    fn extend_budgets(&self, arrived: &[RecvMeta]) {
        let mut budgets = self.unvalidated.lock().unwrap_or_else(PoisonError::into_inner);
        if budgets.is_empty() {
            return;
        }
        for datagrams in arrived {
            if let Some(budget) = budgets.get_mut(&datagrams.addr) {
                budget.received += datagrams.len;
            }
        }
    }

    /// Datagrams that one system call can send.
    pub(crate) fn segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    pub(crate) fn figures(&self) -> SocketFigures {
        let memory = socket_memory(&self.kernel).ok();
        SocketFigures {
            receive_buffer: memory.map(|memory| memory.receive_buffer.get()),
            send_buffer: memory.map(|memory| memory.send_buffer.get()),
            drops: memory.and_then(|memory| memory.drops).map(linerate_units::PacketCount::get),
        }
    }

    /// Sends a batch in several calls.
    fn send_parts(&self, transmit: &Transmit<'_>, segment: usize) -> io::Result<()> {
        let Some(&beginning) = transmit.contents.first_chunk() else { return self.inner.try_send(transmit) };
        let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sent = partial.take_if(|partial| partial.beginning == beginning).map_or(0, |partial| partial.sent);
        for part in transmit.contents[sent..].chunks(MAX_CALL / segment * segment) {
            let outcome = self.inner.try_send(&Transmit {
                destination: transmit.destination,
                ecn: transmit.ecn,
                contents: part,
                segment_size: Some(segment),
                src_ip: transmit.src_ip,
            });
            if let Err(cause) = outcome {
                *partial = Some(PartialBatch { beginning, sent });
                return Err(cause);
            }
            if sent > 0
                && let Some(counts) = self.lock().get_mut(&transmit.destination)
            {
                counts.more_calls += 1;
            }
            sent += part.len();
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, PeerCounts>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, arrived: &[RecvMeta]) {
        let mut peers = self.lock();
        for datagrams in arrived {
            let Some(counts) = peers.get_mut(&datagrams.addr) else { continue };
            let number = datagrams.len.div_ceil(datagrams.stride.max(1)) as u64;
            *match datagrams.ecn {
                None => &mut counts.ecn.not_ect,
                Some(EcnCodepoint::Ect0) => &mut counts.ecn.ect0,
                Some(EcnCodepoint::Ect1) => &mut counts.ecn.ect1,
                Some(EcnCodepoint::Ce) => &mut counts.ecn.ce,
            } += number;
        }
    }
}

/// Peer whose datagrams are counted.
#[derive(Debug)]
pub(crate) struct WatchedPeer {
    socket: Arc<CountingSocket>,
    peer: SocketAddr,
}

impl WatchedPeer {
    pub(crate) fn ecn(&self) -> EcnDatagrams {
        self.counts().ecn
    }

    /// System calls in addition to one per batch, for batches of more than a call takes.
    pub(crate) fn more_calls(&self) -> u64 {
        self.counts().more_calls
    }

    fn counts(&self) -> PeerCounts {
        self.socket.lock().get(&self.peer).copied().unwrap_or_default()
    }

    pub(crate) fn socket(&self) -> &CountingSocket {
        &self.socket
    }
}

impl Drop for WatchedPeer {
    fn drop(&mut self) {
        self.socket.lock().remove(&self.peer);
    }
}

impl AsyncUdpSocket for CountingSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if !self.permits(transmit.destination, transmit.contents.len()) {
            // As if the network had lost it: the next datagram of the client permits its repetition.
            return Ok(());
        }
        match transmit.segment_size {
            Some(segment) if transmit.contents.len() > MAX_CALL && segment <= MAX_CALL => {
                self.send_parts(transmit, segment.max(1))
            }
            _ => self.inner.try_send(transmit),
        }
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.inner.poll_recv(context, buffers, meta);
        if let Poll::Ready(Ok(number)) = &received {
            self.count(&meta[..*number]);
            self.extend_budgets(&meta[..*number]);
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        // A call brings 64 KiB, of one large datagram or of many small ones: quinn reserves the product of both.
        self.inner.max_receive_segments().min(2)
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
