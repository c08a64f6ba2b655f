//! Transactions on an open TCP connection (netperf's `TCP_RR`).

use std::net::TcpStream;

use linerate_sys::net::SocketSettings;
use linerate_units::{ByteCount, MonotonicTime};

use super::{TransactionFailure, Transactor, prepare, random_payload, receive, response_buffer, send};
use crate::probe::{ProbeSession, Result};
use crate::rr::RrOptions;
use crate::rr::flow::FlowWatch;

/// A connection of the session.
pub(super) struct TcpFlow {
    stream: TcpStream,
    request: Vec<u8>,
    response: ByteCount,
    buffer: Vec<u8>,
}

impl TcpFlow {
    /// Establishes the connection and has it join the session.
    pub(super) fn open(session: &ProbeSession, options: &RrOptions) -> Result<Self> {
        let stream = session.join_connection(SocketSettings::default())?;
        prepare(&stream)?;
        let (request, buffer) = (random_payload(options.request)?, response_buffer(options));
        Ok(Self { stream, request, response: options.response, buffer })
    }
}

impl Transactor for TcpFlow {
    fn transact(&mut self, _: MonotonicTime, watch: &FlowWatch) -> core::result::Result<bool, TransactionFailure> {
        send(&mut self.stream, &self.request, watch)?;
        receive(&mut self.stream, self.response, &mut self.buffer, watch)?;
        Ok(true)
    }
}
