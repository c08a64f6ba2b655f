//! Transactions in UDP datagrams (netperf's `UDP_RR`): one at a time for each flow, lost ones counted.

use core::time::Duration;
use std::io;
use std::net::{SocketAddr, UdpSocket};

use linerate_sys::net::{self, UdpOptions};
use linerate_sys::{clock, options};
use linerate_units::{ByteCount, MonotonicTime, Port};
use linerate_wire::cookie::SessionToken;
use linerate_wire::probe::{RR_OPENING_LENGTH, RrOpening, RrReady, answers, number_request};

use super::{TransactionFailure, Transactor, random_payload};
use crate::probe::{ProbeError, ProbeSession, Result};
use crate::rr::RrOptions;
use crate::rr::flow::FlowWatch;

/// Duration of the datagrams that open a flow, and their interval.
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
const OPENING_INTERVAL: Duration = Duration::from_millis(250);

/// A socket of its own, whose address the server has verified.
pub(super) struct UdpFlow {
    socket: UdpSocket,
    request: Vec<u8>,
    response: ByteCount,
    buffer: Vec<u8>,
    number: u64,
    timeout: Option<Duration>,
}

impl UdpFlow {
    pub(super) fn open(session: &ProbeSession, options: &RrOptions, ready: RrReady) -> Result<Self> {
        let port = ready.port.ok_or_else(|| ProbeError::Lost("the server gave no UDP port".to_owned()))?;
        let mut remote = session.remote();
        remote.set_port(port.get());
        let socket = connect(session, remote)?;
        verify(&socket, session.token()?, port)?;
        let request = random_payload(options.request)?;
        // One byte more: a datagram that is too long is no response.
        let buffer = vec![0; options.response.to_usize().max(RR_OPENING_LENGTH) + 1];
        Ok(Self { socket, request, response: options.response, buffer, number: 0, timeout: None })
    }

    /// Sets the kernel's time limit of a receive.
    fn limit(&mut self, limit: Duration) -> core::result::Result<(), TransactionFailure> {
        if self.timeout == Some(limit) {
            return Ok(());
        }
        options::set_receive_timeout(&self.socket, Some(limit))
            .map_err(|cause| TransactionFailure::Broken(cause.to_string()))?;
        self.timeout = Some(limit);
        Ok(())
    }

    fn is_answer(&self, length: usize) -> bool {
        length == self.response.to_usize() && answers(&self.buffer[..length], &self.request)
    }
}

fn connect(session: &ProbeSession, remote: SocketAddr) -> Result<UdpSocket> {
    let target = session.target();
    let options = UdpOptions { address: target.bind, device: target.device.clone(), ..UdpOptions::default() };
    Ok(net::connect_udp(&options, remote)?)
}

/// Shows the token until the server answers with a challenge, then that until the server repeats it.
fn verify(socket: &UdpSocket, token: SessionToken, port: Port) -> Result<()> {
    let end = clock::monotonic_now() + OPENING_TIMEOUT;
    options::set_receive_timeout(socket, Some(OPENING_INTERVAL))?;
    let (mut shown, mut buffer) = (token, [0; RR_OPENING_LENGTH + 1]);
    while clock::monotonic_now() < end {
        // A refusal answers an earlier datagram; a later one may get through.
        let _ = socket.send(&RrOpening(shown).encode());
        let Ok(length) = socket.recv(&mut buffer) else { continue };
        match RrOpening::decode(&buffer[..length]) {
            Some(RrOpening(answer)) if answer == shown => return Ok(()),
            Some(RrOpening(answer)) => shown = answer,
            None => {}
        }
    }
    Err(ProbeError::NoDatagrams { port, after: OPENING_TIMEOUT })
}

impl Transactor for UdpFlow {
    fn transact(&mut self, sent: MonotonicTime, watch: &FlowWatch) -> core::result::Result<bool, TransactionFailure> {
        self.number += 1;
        number_request(&mut self.request, self.number);
        self.limit(watch.timeout)?;
        let mut sent_request = self.socket.send(&self.request);
        if sent_request.as_ref().is_err_and(is_refused) {
            // The refusal is of an earlier request, and the kernel has not sent this one.
            sent_request = self.socket.send(&self.request);
        }
        match sent_request {
            Ok(_) => {}
            Err(error) if is_too_large(&error) => return Err(TransactionFailure::io("sending a request", &error)),
            // A queue of this host is full: this one is lost.
            Err(_) => return Ok(false),
        }
        loop {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) if self.is_answer(length) => return Ok(true),
                // A late response to a request that was lost.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Refusals are limited in rate (icmp(7)) and may be forged: this request is lost as others are, by its time.
                Err(error) if is_refused(&error) => {}
                Err(_) => return Ok(false),
            }
            let left = watch.timeout.saturating_sub(clock::monotonic_now().since(sent));
            if left.is_zero() || watch.is_stopping() {
                return Ok(false);
            }
            self.limit(left)?;
        }
    }
}

/// True for a port that no program has open.
fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// True when no request of this size can be sent.
fn is_too_large(error: &io::Error) -> bool {
    matches!(linerate_sys::data::train::SendFailure::of(error), linerate_sys::data::train::SendFailure::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_a_closed_port_is_lost_only_after_its_time() {
        let closed = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = closed.local_addr().expect("bound");
        drop(closed);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        socket.connect(address).expect("loopback");
        let request = vec![0; 64];
        let mut flow =
            UdpFlow { socket, request, response: ByteCount::new(64), buffer: vec![0; 65], number: 0, timeout: None };
        let timeout = Duration::from_millis(100);
        for _ in 0..3 {
            let start = clock::monotonic_now();
            let is_answered = flow.transact(start, &FlowWatch::new(timeout)).expect("a loss is no failure");
            assert!(!is_answered);
            assert!(clock::monotonic_now().since(start) >= timeout);
        }
    }
}
