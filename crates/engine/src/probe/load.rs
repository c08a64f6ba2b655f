//! Load during probing: bulk data on TCP connections, interleaved with an application's pings.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::net::TcpStream;
use std::sync::Arc;

use linerate_model::tcp_info::TcpInfo;
use linerate_sys::net::SocketSettings;
use linerate_sys::{options, tcp_info};
use linerate_units::{ByteCount, MonotonicTime, TypeOfService};
use linerate_wire::probe::load_frame::LoadFrame;
use linerate_wire::probe::{ConnectionNumber, ConnectionRef, GoodputSample, LoadOrder, LoadSample, StreamRequest};

pub use super::load_link::ApplicationPing;

use super::error::Result;
use super::link::ControlLink;
use super::load_link::{LinkOrder, LinkRecord, LoadLink};
use super::session::ProbeSession;
use crate::resources::MemoryLease;

/// Time limit for a load connection to be established and to join.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Parameters of a load connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Direction of the bulk data.
    pub direction: Direction,
    /// Congestion control at both ends, by the kernel's name; `None` for each host's default. It takes effect at the
    /// sender; an end that lacks it refuses.
    pub congestion_control: Option<String>,
    /// Mark of its packets, in both directions.
    pub type_of_service: TypeOfService,
    /// Interval of the sender's samples of `tcp_info`, 1 ms to 10 s.
    pub sampling: Duration,
    /// Interval of the application's pings, from the opening on; 1 ms at least, `None` for none.
    pub ping_interval: Option<Duration>,
}

impl LoadOptions {
    /// A best-effort load, sampled every 10 ms, without pings, with the hosts' default congestion control.
    #[must_use]
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            congestion_control: None,
            type_of_service: TypeOfService::default(),
            sampling: Duration::from_millis(10),
            ping_interval: None,
        }
    }
}

/// A load connection. Dropping it ends it.
pub struct LoadConnection {
    link: Arc<ControlLink>,
    number: ConnectionNumber,
    direction: Direction,
    local: LoadLink,
    local_congestion_control: Option<String>,
    far_congestion_control: Option<String>,
}

impl core::fmt::Debug for LoadConnection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LoadConnection").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Record of a load connection at one end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSide {
    /// Bulk payload handed to the kernel (sender) or taken from it (receiver).
    pub bytes: ByteCount,
    /// Time from its start to its end; zero when it was not started.
    pub time: Duration,
    /// The sender's samples of `tcp_info`.
    pub samples: Vec<LoadSample>,
    /// The receiver's samples of the payload, every 50 ms.
    pub goodput: Vec<GoodputSample>,
    /// Reason of a failure, if any.
    pub broken: Option<String>,
}

/// Records of a load connection at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// Record of this end.
    pub near: LoadSide,
    /// Record of the far end; `None` when it could not be requested any more.
    pub far: Option<LoadSide>,
    /// The application's pings, in the order of sending.
    pub pings: Vec<ApplicationPing>,
}

impl LoadOutcome {
    /// Record of the receiver of the bulk data.
    #[must_use]
    pub fn receiver(&self, direction: Direction) -> Option<&LoadSide> {
        if direction == Direction::Down { Some(&self.near) } else { self.far.as_ref() }
    }

    /// Record of the sender of the bulk data.
    #[must_use]
    pub fn sender(&self, direction: Direction) -> Option<&LoadSide> {
        if direction == Direction::Up { Some(&self.near) } else { self.far.as_ref() }
    }
}

impl LoadConnection {
    /// Establishes the connection and has it join the session.
    pub(super) fn open(session: &ProbeSession, number: ConnectionNumber, load: &LoadOptions) -> Result<Self> {
        let link = session.link();
        let reference = ConnectionRef { connection: number };
        link.send(&StreamRequest::Load(LoadOrder {
            connection: number,
            direction: load.direction,
            congestion_control: load.congestion_control.clone(),
            type_of_service: load.type_of_service,
            sampling: load.sampling,
        }))?;
        link.wait_load_expected(reference, JOIN_TIMEOUT)?;
        let stream = connect(session, load)?;
        let local_congestion_control = options::congestion(&stream).ok();
        let order = LinkOrder {
            sends: load.direction == Direction::Up,
            sampling: load.sampling,
            rate: None,
            stall_limit: None,
            memory: MemoryLease::default(),
        };
        let local = LoadLink::start(stream, order, &[LoadFrame::Join(number)], None)?;
        let ready = link.wait_load_ready(reference, JOIN_TIMEOUT)?;
        local.set_ping_interval(load.ping_interval);
        Ok(Self {
            link: Arc::clone(link),
            number,
            direction: load.direction,
            local,
            local_congestion_control,
            far_congestion_control: ready.congestion_control,
        })
    }

    /// Number in the session.
    #[must_use]
    pub fn number(&self) -> ConnectionNumber {
        self.number
    }

    /// Direction of the bulk data.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Congestion control of this end, as the kernel names it.
    #[must_use]
    pub fn local_congestion_control(&self) -> Option<&str> {
        self.local_congestion_control.as_deref()
    }

    /// Congestion control of the far end, as its kernel names it.
    #[must_use]
    pub fn far_congestion_control(&self) -> Option<&str> {
        self.far_congestion_control.as_deref()
    }

    /// Starts the bulk data, and the counting at both ends.
    pub fn start(&self) -> Result<()> {
        self.link.send(&StreamRequest::LoadStart(ConnectionRef { connection: self.number }))?;
        self.local.begin();
        Ok(())
    }

    /// Time at which [`LoadConnection::start`] took effect here: the zero of the times of samples and goodput.
    #[must_use]
    pub fn started(&self) -> Option<MonotonicTime> {
        self.local.look(|seen| seen.started)
    }

    /// Changes the interval of the pings, 1 ms at least; `None` for none.
    pub fn set_ping_interval(&self, interval: Option<Duration>) {
        self.local.set_ping_interval(interval);
    }

    /// The application's pings from the `from`-th on. An unanswered one may still get its answer: read it again.
    #[must_use]
    pub fn pings(&self, from: usize) -> Vec<ApplicationPing> {
        self.local.look(|seen| rest(&seen.pings, from))
    }

    /// Bulk payload so far, at this end: handed to the kernel (up) or taken from it (down).
    #[must_use]
    pub fn bytes(&self) -> ByteCount {
        self.local.bytes()
    }

    /// This end's samples of `tcp_info` from the `from`-th on; only of an upload. In a load of more than 100 s every
    /// second one is dropped again, so that `from` may then be beyond the end.
    #[must_use]
    pub fn samples(&self, from: usize) -> Vec<LoadSample> {
        self.local.look(|seen| rest(&seen.samples, from))
    }

    /// This end's samples of the payload from the `from`-th on; only of a download.
    #[must_use]
    pub fn goodput(&self, from: usize) -> Vec<GoodputSample> {
        self.local.look(|seen| rest(&seen.goodput, from))
    }

    /// This end's `tcp_info` now.
    #[must_use]
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        tcp_info::read(self.local.stream()).ok()
    }

    /// This end's socket.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        self.local.stream()
    }

    /// Reason of a failure, if any.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        self.local.look(|seen| seen.broken.clone())
    }

    /// Ends it at once, and requests the far end's record.
    #[must_use]
    pub fn stop(mut self) -> LoadOutcome {
        let reference = ConnectionRef { connection: self.number };
        let broken = self.broken();
        self.local.cease();
        // The far end stops first: it would otherwise report a broken connection.
        let asked = self.link.send(&StreamRequest::LoadStop(reference));
        let far = asked.and_then(|()| self.link.wait_load_end(reference)).ok();
        let bytes = self.local.bytes();
        let mut seen = self.local.end();
        let pings = core::mem::take(&mut seen.pings);
        // A connection that the far end has closed by now has not failed.
        seen.broken = broken;
        LoadOutcome { pings, near: side(seen, bytes), far }
    }
}

fn side(seen: LinkRecord, bytes: ByteCount) -> LoadSide {
    let time = match (seen.started, seen.ended) {
        (Some(started), Some(ended)) => ended.since(started),
        _ => Duration::ZERO,
    };
    LoadSide { bytes, time, samples: seen.samples, goodput: seen.goodput, broken: seen.broken }
}

fn rest<T: Copy>(all: &[T], from: usize) -> Vec<T> {
    all.get(from..).map(<[T]>::to_vec).unwrap_or_default()
}

fn connect(session: &ProbeSession, load: &LoadOptions) -> Result<TcpStream> {
    let octet = load.type_of_service;
    let settings = SocketSettings {
        congestion: load.congestion_control.clone(),
        type_of_service: (octet.get() != 0).then_some(octet),
        ..SocketSettings::default()
    };
    session.join_connection(settings)
}
