//! Load on the path while it is probed: bulk data on TCP connections, with an application's pings between.

use core::time::Duration;
use std::net::TcpStream;
use std::sync::Arc;

use linerate_model::tcp_info::TcpInfo;
use linerate_sys::net::SocketSettings;
use linerate_sys::{options, tcp_info};
use linerate_units::{ByteCount, MonotonicTime, TypeOfService};
use linerate_wire::cookie::Cookie;
use linerate_wire::probe::load_frame::Frame;
use linerate_wire::probe::{
    ConnectionNumber, ConnectionRef, Goodput, LoadDirection, LoadOrder, LoadProgress, LoadSample, Request,
};

pub use super::load_link::ApplicationPing;

use super::error::{ProbeError, Result};
use super::link::Link;
use super::load_link::{LinkOrder, LoadLink, Seen};
use super::session::ProbeSession;

/// A load connection has this long to be made and joined.
const JOIN_LIMIT: Duration = Duration::from_secs(30);

/// A load connection to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Which way the bulk data goes.
    pub direction: LoadDirection,
    /// Congestion control at both ends, by the kernel's name; `None` for what each has by default. It matters at the
    /// sender; an end that does not have it refuses.
    pub congestion_control: Option<String>,
    /// Mark of its packets, both ways.
    pub type_of_service: TypeOfService,
    /// Distance of the sender's readings of `tcp_info`, 1 ms to 10 s.
    pub sampling: Duration,
    /// Distance of the application's pings, from the opening on; 1 ms at least, `None` for none.
    pub ping_interval: Option<Duration>,
}

impl LoadOptions {
    /// A best-effort load, read every 10 ms, without pings, by the congestion control that the ends have by default.
    #[must_use]
    pub fn new(direction: LoadDirection) -> Self {
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
    link: Arc<Link>,
    number: ConnectionNumber,
    direction: LoadDirection,
    local: LoadLink,
    local_congestion_control: Option<String>,
    far_congestion_control: Option<String>,
}

impl core::fmt::Debug for LoadConnection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LoadConnection").field("number", &self.number).finish_non_exhaustive()
    }
}

/// What one end has seen of a load connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSide {
    /// Bulk payload handed to the kernel (sender) or taken from it (receiver).
    pub bytes: ByteCount,
    /// From its start to its end; zero when it was not started.
    pub time: Duration,
    /// Readings of `tcp_info`; of the sender.
    pub samples: Vec<LoadSample>,
    /// Readings of the payload every 50 ms; of the receiver.
    pub goodput: Vec<Goodput>,
    /// Why it broke, if it did.
    pub broken: Option<String>,
}

/// What is known of a load connection at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// What this end has seen.
    pub near: LoadSide,
    /// What the far end has told; `None` when it could not be asked any more.
    pub far: Option<LoadSide>,
    /// The application's pings, in the order of sending.
    pub pings: Vec<ApplicationPing>,
}

impl LoadOutcome {
    /// What the receiver of the bulk data has seen.
    #[must_use]
    pub fn receiver(&self, direction: LoadDirection) -> Option<&LoadSide> {
        if direction == LoadDirection::Down { Some(&self.near) } else { self.far.as_ref() }
    }

    /// What the sender of the bulk data has seen.
    #[must_use]
    pub fn sender(&self, direction: LoadDirection) -> Option<&LoadSide> {
        if direction == LoadDirection::Up { Some(&self.near) } else { self.far.as_ref() }
    }
}

impl LoadConnection {
    /// Makes the connection and has it join the session.
    pub(super) fn open(session: &ProbeSession, number: ConnectionNumber, load: &LoadOptions) -> Result<Self> {
        let link = session.link();
        let reference = ConnectionRef { connection: number };
        link.send(&Request::Load(LoadOrder {
            connection: number,
            direction: load.direction,
            congestion_control: load.congestion_control.clone(),
            type_of_service: load.type_of_service,
            sampling: load.sampling,
        }))?;
        link.wait_load_expected(reference, JOIN_LIMIT)?;
        let stream = connect(session, load)?;
        let local_congestion_control = options::congestion(&stream).ok();
        let order = LinkOrder { sends: load.direction == LoadDirection::Up, sampling: load.sampling, most_rate: None };
        let local = LoadLink::start(stream, order, &[Frame::Join(number)], None)?;
        let ready = link.wait_load_ready(reference, JOIN_LIMIT)?;
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

    /// Its number in the session.
    #[must_use]
    pub fn number(&self) -> ConnectionNumber {
        self.number
    }

    /// Which way the bulk data goes.
    #[must_use]
    pub fn direction(&self) -> LoadDirection {
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

    /// Has the bulk data begin, and the counting at both ends.
    pub fn start(&self) -> Result<()> {
        self.link.send(&Request::LoadStart(ConnectionRef { connection: self.number }))?;
        self.local.begin();
        Ok(())
    }

    /// When [`LoadConnection::start`] took effect here: the zero of the times of samples and goodput.
    #[must_use]
    pub fn started(&self) -> Option<MonotonicTime> {
        self.local.look(|seen| seen.started)
    }

    /// Changes the distance of the pings, 1 ms at least; `None` for none.
    pub fn set_ping_interval(&self, interval: Option<Duration>) {
        self.local.set_ping_interval(interval);
    }

    /// The application's pings from the `from`-th on. One that has no answer yet may get one: read it again.
    #[must_use]
    pub fn pings(&self, from: usize) -> Vec<ApplicationPing> {
        self.local.look(|seen| rest(&seen.pings, from))
    }

    /// Bulk payload so far, at this end: handed to the kernel (up) or taken from it (down).
    #[must_use]
    pub fn bytes(&self) -> ByteCount {
        self.local.bytes()
    }

    /// This end's readings of `tcp_info` from the `from`-th on; only of an upload. Of a load of more than 100 s every
    /// second one is taken out again, so that `from` may then be beyond the end.
    #[must_use]
    pub fn samples(&self, from: usize) -> Vec<LoadSample> {
        self.local.look(|seen| rest(&seen.samples, from))
    }

    /// This end's readings of the payload from the `from`-th on; only of a download.
    #[must_use]
    pub fn goodput(&self, from: usize) -> Vec<Goodput> {
        self.local.look(|seen| rest(&seen.goodput, from))
    }

    /// What the far end has told last; it does every half second while it is started.
    #[must_use]
    pub fn far_progress(&self) -> Option<LoadProgress> {
        self.link.progress(self.number)
    }

    /// This end's socket now.
    #[must_use]
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        tcp_info::read(self.local.stream()).ok()
    }

    /// This end's socket.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        self.local.stream()
    }

    /// Why it broke, if it did.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        self.local.look(|seen| seen.broken.clone())
    }

    /// Ends it at once, and asks the far end what it has seen.
    #[must_use]
    pub fn stop(mut self) -> LoadOutcome {
        let reference = ConnectionRef { connection: self.number };
        let broken = self.broken();
        self.local.cease();
        // The far end goes first: it would else report that the connection broke.
        let asked = self.link.send(&Request::LoadStop(reference));
        let far = asked.and_then(|()| self.link.wait_load_end(reference)).ok();
        let bytes = self.local.bytes();
        let mut seen = self.local.end();
        let pings = core::mem::take(&mut seen.pings);
        // That the far end has closed it by now is no breaking.
        seen.broken = broken;
        LoadOutcome { pings, near: side(seen, bytes), far }
    }
}

fn side(seen: Seen, bytes: ByteCount) -> LoadSide {
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
    let stream = session.target().connect_to(session.remote(), settings, session.stop()).map_err(ProbeError::from)?;
    let cookie = Cookie::load(session.token()?);
    std::io::Write::write_all(&mut &stream, cookie.as_bytes())
        .map_err(|cause| ProbeError::io("joining a load connection to its session", &cause))?;
    Ok(stream)
}
