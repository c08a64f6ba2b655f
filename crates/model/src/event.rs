//! Events of a running test, in order.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, Mss, Port, WallTime};

use crate::parameters::TestParameters;
use crate::report::TestReport;
use crate::sample::IntervalReport;
use crate::stream::{EndpointRole, StreamDescription};

/// Event of one test session.
#[derive(Clone, Debug, PartialEq)]
pub enum TestEvent {
    /// Control connection established: the client was accepted, or the server has accepted a client. Comes first.
    Connected(ConnectionEstablished),
    /// All streams are connected; data is about to flow.
    Started(Box<TestStart>),
    /// End of an interval on the local host.
    Interval(IntervalReport),
    /// End of an interval on the remote host (linerate peers only).
    FarInterval(IntervalReport),
    /// Warning that does not end the test.
    Warning(String),
    /// Message on the control connection, for `-d`: a name and the document.
    Debug(String),
    /// End of the test, complete or not. Comes last, once, if [`TestEvent::Connected`] came.
    Finished(Box<TestReport>),
}

/// Control connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionEstablished {
    /// Local end of the control connection.
    pub side: EndpointRole,
    /// Host as given by the user (client), or address of the client (server).
    pub host: String,
    /// Port connected to (client), or connected from (server).
    pub port: Port,
    /// Maximum segment size of the control connection; `None` when the kernel does not report it.
    pub control_mss: Option<Mss>,
    /// Session number on a server, from 1.
    pub session: Option<u64>,
    /// Test that the client asks for; `None` on a server.
    pub request: Option<Box<TestRequest>>,
}

/// Test that a client asks for, before the server has accepted it.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRequest {
    /// Time of the request.
    pub at: WallTime,
    /// Session cookie, printable.
    pub cookie: String,
    /// Requested parameters.
    pub parameters: TestParameters,
}

/// Test that is about to start.
#[derive(Clone, Debug, PartialEq)]
pub struct TestStart {
    /// Local end of the control connection.
    pub side: EndpointRole,
    /// Agreed parameters.
    pub parameters: TestParameters,
    /// Session cookie, printable.
    pub cookie: String,
    /// Start time.
    pub at: WallTime,
    /// Streams in order of creation.
    pub streams: Vec<StreamDescription>,
    /// Time between reports; `None` for none.
    pub interval: Option<Duration>,
    /// Send buffer of the first stream's socket as the kernel reports it.
    pub send_buffer: Option<ByteCount>,
    /// Receive buffer of the first stream's socket as the kernel reports it.
    pub receive_buffer: Option<ByteCount>,
    /// UDP block size derived from the control connection's segment size, where none was requested.
    pub derived_block_size: Option<ByteCount>,
    /// Target rate as iperf3 shows it: per stream; zero rate means unlimited.
    pub target_rate: BitRate,
    /// The client's address and port (server), or the server's (client).
    pub peer: Option<SocketAddr>,
    /// True when the peer is linerate and supports the extension.
    pub peer_is_linerate: bool,
}
