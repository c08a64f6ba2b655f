//! What a running test tells its observer, in the order in which it happens.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, Mss, Port, WallTime};

use crate::parameters::TestParameters;
use crate::report::TestReport;
use crate::sample::IntervalReport;
use crate::stream::{Side, StreamDescription};

/// Something that happened in one test session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The control connection stands: the client has been let in, or the server has accepted a client. Comes first.
    Connected(Connected),
    /// All streams are up; data is about to flow.
    Started(Box<TestStart>),
    /// One interval is over on this side.
    Interval(IntervalReport),
    /// One interval is over on the far side (linerate peers only).
    FarInterval(IntervalReport),
    /// Something a person should know that does not end the test.
    Warning(String),
    /// What went over the control connection, for `-d`: a name and the document.
    Debug(String),
    /// The test is over, well or badly. Comes last, once, if [`Event::Connected`] came.
    Finished(Box<TestReport>),
}

/// The control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Which end this process is.
    pub side: Side,
    /// The host as the user wrote it (client), or the client's address (server).
    pub host: String,
    /// The port connected to (client), or connected from (server).
    pub port: Port,
    /// Maximum segment size of the control connection; `None` when the kernel would not say.
    pub control_mss: Option<Mss>,
    /// On a server: this session's number, from 1.
    pub session: Option<u64>,
}

/// A test that is about to run.
#[derive(Clone, Debug, PartialEq)]
pub struct TestStart {
    /// Which end this process is.
    pub side: Side,
    /// What was agreed.
    pub parameters: TestParameters,
    /// The session's cookie, printable.
    pub cookie: String,
    /// When.
    pub at: WallTime,
    /// In order of creation.
    pub streams: Vec<StreamDescription>,
    /// Time between reports; `None` for none.
    pub interval: Option<Duration>,
    /// Send buffer of the first stream's socket as the kernel reports it.
    pub send_buffer: Option<ByteCount>,
    /// Receive buffer of the first stream's socket as the kernel reports it.
    pub receive_buffer: Option<ByteCount>,
    /// UDP block size that was derived from the control connection's segment size instead of being asked for.
    pub derived_block_size: Option<ByteCount>,
    /// Target rate as iperf3 shows it: per stream; zero rate means unlimited.
    pub target_rate: BitRate,
    /// The client's address and port (server), or the server's (client).
    pub peer: Option<SocketAddr>,
    /// Whether the peer is a linerate and speaks the extension.
    pub peer_is_linerate: bool,
}
