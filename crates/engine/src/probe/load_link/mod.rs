//! The thread of one load connection, the same at either end: bulk data in one direction, pings and pongs between
//! frames.
//!
//! A ping must see the delay that the load causes, and as little of this program's own as possible: at most one frame
//! of bulk data precedes it, and little data waits unsent in the kernel (`TCP_NOTSENT_LOWAT`). That amount follows the
//! connection's rate: enough that the kernel never runs dry, which takes more the faster it is.

mod worker;

use core::time::Duration;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_sys::options;
use linerate_sys::poll::Waker;
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::probe::load_frame::LoadFrame;
use linerate_wire::probe::{GoodputSample, LoadSample};

use self::worker::ConnectionWorker;
use super::error::{ProbeError, Result};
use super::lock;
use crate::resources::MemoryLease;
use crate::server_rate::RateAccount;

/// Upper bound and initial value of the bytes that may wait unsent in the kernel.
const MAX_UNSENT: u64 = 4 << 20;
const INITIAL_UNSENT: u64 = 16 << 10;

/// … the lower bound in segments: the kernel asks for more when less than half of it waits, and holds back less than a
/// segment while others are in flight (Nagle's algorithm), so that with two a connection would stall until the
/// receiver's delayed acknowledgement.
const MIN_UNSENT_SEGMENTS: u64 = 4;

/// Order to the thread.
#[derive(Debug)]
pub(crate) struct LinkOrder {
    /// True when this end sends the bulk data; otherwise it receives.
    pub(crate) sends: bool,
    /// Interval of the samples of `tcp_info` while it sends.
    pub(crate) sampling: Duration,
    /// Rate of the server, which the payload shares; `None` for any.
    pub(crate) rate: Option<RateAccount>,
    /// Longest time without progress once it is started; `None` for any.
    pub(crate) stall_limit: Option<Duration>,
    /// Memory of the connection, which grows with its samples.
    pub(crate) memory: MemoryLease,
}

/// An application's message and its answer, on the loaded connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationPing {
    /// Time of its creation, before it waited for its turn behind the bulk data.
    pub sent: MonotonicTime,
    /// Time until the answer; `None` while there is none.
    pub round_trip: Option<Duration>,
}

/// Record of the thread.
#[derive(Debug, Default)]
pub(crate) struct LinkRecord {
    pub(crate) started: Option<MonotonicTime>,
    pub(crate) ended: Option<MonotonicTime>,
    pub(crate) samples: Vec<LoadSample>,
    pub(crate) goodput: Vec<GoodputSample>,
    pub(crate) pings: Vec<ApplicationPing>,
    pub(crate) broken: Option<String>,
    /// Memory of all that.
    pub(crate) memory: MemoryLease,
}

/// A load connection's thread.
#[derive(Debug)]
pub(crate) struct LoadLink {
    shared: Arc<LoadLinkState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct LoadLinkState {
    stream: TcpStream,
    started: AtomicBool,
    ceased: AtomicBool,
    stopping: AtomicBool,
    /// Nanoseconds; 0 for no pings.
    ping_interval: AtomicU64,
    orders: Waker,
    bytes: AtomicU64,
    seen: Mutex<LinkRecord>,
}

impl LoadLink {
    /// Takes over a connection whose cookie has been accepted. `first` is written before all else; `broke` is woken
    /// when the connection fails.
    pub(crate) fn start(
        stream: TcpStream,
        mut order: LinkOrder,
        first: &[LoadFrame],
        broke: Option<Arc<Waker>>,
    ) -> Result<Self> {
        let failed = |cause: io::Error| ProbeError::io("preparing a load connection", &cause);
        stream.set_nonblocking(true).map_err(failed)?;
        options::set_no_delay(&stream, true)?;
        let segment = options::mss(&stream).map_or(1448, |mss| u64::from(mss.get()));
        let unsent = INITIAL_UNSENT.max(MIN_UNSENT_SEGMENTS * segment);
        if order.sends {
            options::set_not_sent_low_water(&stream, ByteCount::new(unsent))?;
        }
        let memory = core::mem::take(&mut order.memory);
        let shared = Arc::new(LoadLinkState {
            stream,
            started: AtomicBool::new(false),
            ceased: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            ping_interval: AtomicU64::new(0),
            orders: Waker::new()?,
            bytes: AtomicU64::new(0),
            seen: Mutex::new(LinkRecord { memory, ..LinkRecord::default() }),
        });
        let worker = ConnectionWorker::new(Arc::clone(&shared), order, first, unsent).map_err(failed)?;
        let thread = std::thread::Builder::new().name("load".into()).stack_size(256 << 10);
        let thread = thread.spawn(move || {
            worker.run();
            if let Some(broke) = broke {
                broke.wake();
            }
        });
        let thread = thread.map_err(|cause| ProbeError::io("starting the thread of a load connection", &cause))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Starts the bulk data, or the counting of it.
    pub(crate) fn begin(&self) {
        self.shared.started.store(true, Ordering::Release);
        self.shared.orders.wake();
    }

    /// Starts no further frame of bulk data.
    pub(crate) fn cease(&self) {
        self.shared.ceased.store(true, Ordering::Release);
        self.shared.orders.wake();
    }

    /// Sets the interval of the pings; `None` for none.
    pub(crate) fn set_ping_interval(&self, interval: Option<Duration>) {
        let nanos =
            interval.map_or(0, |interval| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1_000_000));
        self.shared.ping_interval.store(nanos, Ordering::Relaxed);
        self.shared.orders.wake();
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.shared.stream
    }

    /// Bulk payload moved so far.
    pub(crate) fn bytes(&self) -> ByteCount {
        ByteCount::new(self.shared.bytes.load(Ordering::Relaxed))
    }

    /// Gives access to the record so far.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&LinkRecord) -> T) -> T {
        look(&lock(&self.shared.seen))
    }

    /// Ends the connection at once: unsent data is discarded.
    pub(crate) fn end(&mut self) -> LinkRecord {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.orders.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // A failure makes the end slower, not wrong.
        let _ = options::set_close_by_reset(&self.shared.stream);
        core::mem::take(&mut *lock(&self.shared.seen))
    }
}

impl Drop for LoadLink {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}
