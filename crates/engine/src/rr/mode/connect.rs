//! A new TCP connection for each transaction (netperf's `TCP_CRR`): handshake, request, response, and the server's end.

use core::time::Duration;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};

use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::options;
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::cookie::Cookie;

use super::{ResponseWait, STOP_POLL_INTERVAL, TransactionFailure, Transactor};
use super::{random_payload, receive, response_buffer, send};
use crate::probe::{ProbeSession, Result};
use crate::rr::RrOptions;
use crate::rr::flow::FlowWatch;

/// Payload of the smallest segment (RFC 9293 section 3.7.1).
const MIN_SEGMENT: usize = 536;

/// Most bytes that a new connection always takes at once: the least send buffer (`tcp_wmem`).
const MAX_SENT_AT_ONCE: usize = 4096;

/// Time limit of the connection that tries a port.
pub(super) const TRIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A flow of connections, one after another.
pub(super) struct ConnectFlow {
    options: ConnectOptions,
    /// The session's token and the request: they leave in one segment.
    request: Vec<u8>,
    response: ByteCount,
    buffer: Vec<u8>,
}

impl ConnectFlow {
    /// Flow to the test's own port, or to the server's where that is `None`.
    pub(super) fn new(session: &ProbeSession, options: &RrOptions, port: Option<Port>) -> Result<Self> {
        let mut request = Cookie::load(session.token()?).as_bytes().to_vec();
        request.extend(random_payload(options.request)?);
        let mut connect = connect_options(session, port, options.timeout);
        // Without it the end of a long request would wait for an acknowledgement; the first segment never does.
        connect.settings.no_delay = request.len() > MIN_SEGMENT;
        let buffer = response_buffer(options);
        Ok(Self { options: connect, request, response: options.response, buffer })
    }

    fn connect(&self) -> core::result::Result<TcpStream, TransactionFailure> {
        let failed = |cause: linerate_sys::Error| TransactionFailure::Broken(cause.to_string());
        let stream = net::connect_tcp_blocking(&self.options).map_err(failed)?;
        if self.request.len() > MAX_SENT_AT_ONCE {
            options::set_send_timeout(&stream, Some(STOP_POLL_INTERVAL)).map_err(failed)?;
        }
        options::set_receive_timeout(&stream, Some(STOP_POLL_INTERVAL)).map_err(failed)?;
        Ok(stream)
    }
}

/// Options of the connections of a flow.
pub(super) fn connect_options(session: &ProbeSession, port: Option<Port>, timeout: Duration) -> ConnectOptions {
    let (target, mut remote) = (session.target(), session.remote());
    remote.set_port(port.map_or(remote.port(), Port::get));
    ConnectOptions {
        bind: target.bind.map(|address| SocketAddr::new(address, 0)),
        device: target.device.clone(),
        timeout: Some(timeout.max(Duration::from_millis(1))),
        ..ConnectOptions::to(remote)
    }
}

/// The test's own port if it can be reached: a firewall may permit the server's alone.
pub(super) fn reachable(session: &ProbeSession, port: Option<Port>) -> Option<Port> {
    port.filter(|port| net::connect_tcp_blocking(&connect_options(session, Some(*port), TRIAL_TIMEOUT)).is_ok())
}

impl Transactor for ConnectFlow {
    fn transact(&mut self, _: MonotonicTime, watch: &FlowWatch) -> core::result::Result<bool, TransactionFailure> {
        let mut stream = self.connect()?;
        send(&mut stream, &self.request, watch)?;
        receive(&mut stream, self.response, &mut self.buffer, watch)?;
        // The server closes first: its end has the waiting state, and this host's port is free at once.
        let mut wait = ResponseWait::new(watch);
        loop {
            match stream.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(_) => return Err(TransactionFailure::Broken("the server sent more than a response".to_owned())),
                Err(error) => wait.go_on("waiting for the end of a connection", &error)?,
            }
        }
        Ok(true)
    }
}
