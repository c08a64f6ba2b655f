//! Events of a running test, in order.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_units::{BitRate, ByteCount, Mss, Port, WallTime};

use crate::parameters::{ReceiveMethod, TestDirection, TestParameters, TestProtocol};
use crate::report::TestReport;
use crate::sample::IntervalReport;
use crate::stream::{EndpointRole, StreamDescription};
use crate::tls::TlsProperties;

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
    /// Document of the control connection, where it is requested (`-d`): its name and its text.
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
    /// TLS of the data (`--tls-data`) at a client; `None` for data in clear text, and at a server.
    pub tls_data: Option<TlsProperties>,
    /// Target rate as iperf3 shows it: per stream; zero rate means unlimited.
    pub target_rate: BitRate,
    /// The client's address and port (server), or the server's (client).
    pub peer: Option<SocketAddr>,
    /// True when the peer is linerate and supports the extension.
    pub peer_is_linerate: bool,
}

impl TestStart {
    /// Method by which the data's receivers take the payload; `None` where they are in an iperf3, of which it is unknown.
    #[must_use]
    pub fn receive_method(&self) -> Option<ReceiveMethod> {
        let parameters = &self.parameters;
        let is_ours = match (self.side, parameters.direction) {
            (EndpointRole::Client, TestDirection::Reverse) | (EndpointRole::Server, TestDirection::Forward) => true,
            _ => self.peer_is_linerate,
        };
        let discards = parameters.skip_receive_copy && !parameters.tls_data && parameters.protocol == TestProtocol::Tcp;
        is_ours.then_some(if discards { ReceiveMethod::Discard } else { ReceiveMethod::Copy })
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::StreamCount;

    use super::*;

    #[test]
    fn only_our_own_receivers_are_known() {
        let copying = TestParameters::default();
        let discarding = TestParameters::discarding();
        let udp = TestParameters { protocol: TestProtocol::Udp, ..TestParameters::discarding() };
        let (forward, reverse) = (TestDirection::Forward, TestDirection::Reverse);
        let (copy, discard) = (Some(ReceiveMethod::Copy), Some(ReceiveMethod::Discard));
        for (parameters, direction, peer_is_linerate, expected) in [
            (&copying, reverse, false, copy),
            (&discarding, reverse, false, discard),
            (&discarding, forward, false, None),
            (&discarding, forward, true, discard),
            (&copying, forward, true, copy),
            (&udp, forward, true, copy),
        ] {
            let start = TestStart {
                side: EndpointRole::Client,
                parameters: TestParameters { direction, parallel: StreamCount::new(1), ..parameters.clone() },
                cookie: String::new(),
                at: WallTime::default(),
                streams: Vec::new(),
                interval: None,
                send_buffer: None,
                receive_buffer: None,
                derived_block_size: None,
                tls_data: None,
                target_rate: BitRate::ZERO,
                peer: None,
                peer_is_linerate,
            };
            assert_eq!(start.receive_method(), expected, "{direction:?}, linerate: {peer_is_linerate}");
        }
    }
}
