//! A new TCP connection for each transaction (netperf's `TCP_CRR`): handshake, request, response, and the server's end.

use core::time::Duration;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};

use linerate_sys::net::{self, ConnectOptions, SocketSettings};
use linerate_units::ByteCount;
use linerate_wire::cookie::Cookie;

use super::{ResponseWait, TransactionFailure, Transactor, prepare, random_payload, receive, response_buffer, send};
use crate::probe::{ProbeSession, Result};
use crate::rr::RrOptions;
use crate::rr::flow::FlowWatch;

/// A flow of connections, one after another.
pub(super) struct ConnectFlow {
    options: ConnectOptions,
    /// The session's token and the request: they leave in one segment.
    request: Vec<u8>,
    response: ByteCount,
    buffer: Vec<u8>,
}

impl ConnectFlow {
    pub(super) fn new(session: &ProbeSession, options: &RrOptions) -> Result<Self> {
        let target = session.target();
        let mut request = Cookie::load(session.token()?).as_bytes().to_vec();
        request.extend(random_payload(options.request)?);
        let connect = ConnectOptions {
            bind: target.bind.map(|address| SocketAddr::new(address, 0)),
            device: target.device.clone(),
            timeout: Some(options.timeout.max(Duration::from_millis(1))),
            settings: SocketSettings { no_delay: true, ..SocketSettings::default() },
            ..ConnectOptions::to(session.remote())
        };
        let buffer = response_buffer(options);
        Ok(Self { options: connect, request, response: options.response, buffer })
    }

    fn connect(&self) -> core::result::Result<TcpStream, TransactionFailure> {
        let failed = |cause: linerate_sys::Error| TransactionFailure::Broken(cause.to_string());
        let stream = net::connect_tcp(&self.options, None).map_err(failed)?;
        prepare(&stream).map_err(failed)?;
        Ok(stream)
    }
}

impl Transactor for ConnectFlow {
    fn transact(&mut self, watch: &FlowWatch) -> core::result::Result<bool, TransactionFailure> {
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
