//! A session waiting for its client's data streams.

use std::net::UdpSocket;
use std::os::fd::OwnedFd;

use linerate_model::parameters::{TestDirection, TestParameters, TestProtocol};
use linerate_model::stream::{StreamId, StreamRole};
use linerate_sys::options;
use linerate_units::ByteCount;
use linerate_wire::error::ErrorCode;

use super::inbox::{AcceptedStream, ConnectionNumber};
use crate::client::setup::{describe, setup_error};
use crate::error::{Error, Result};
use crate::reservoir::SERVER_SAMPLES;
use crate::resources::STREAM_MEMORY;
use crate::stream::{ConnectedStream, FIRST_MESSAGES, FIRST_RECEIVE_BUFFER, MESSAGE};

/// Memory of a stream's encryption: a block as records, and two records on their way to the payload.
const CIPHER_MEMORY: ByteCount = ByteCount::from_kibibytes(192);

/// Memory that a test needs at its start. Its buffers grow later, as far as there is memory.
pub(super) fn first_memory(parameters: &TestParameters, reads_file: bool) -> ByteCount {
    let streams = parameters.total_streams().to_usize();
    let senders = (0..streams).filter(|index| role_of(parameters, *index) == StreamRole::Sender).count() as u64;
    let receivers = streams as u64 - senders;
    let block = parameters.block_size;
    let samples = ByteCount::from_usize(2 * SERVER_SAMPLES * size_of::<u32>());
    let (shared, of_sender, of_receiver) = match parameters.protocol {
        TestProtocol::Tcp if reads_file => (ByteCount::ZERO, block, FIRST_RECEIVE_BUFFER),
        // The second one may be in memory: a file for `sendfile`.
        TestProtocol::Tcp => (block * 2 * senders.min(1), ByteCount::ZERO, FIRST_RECEIVE_BUFFER),
        TestProtocol::Udp => (ByteCount::ZERO, block, MESSAGE * FIRST_MESSAGES as u64),
    };
    let of_cipher = if parameters.tls_data { CIPHER_MEMORY } else { ByteCount::ZERO };
    shared
        + of_cipher * streams as u64
        + (STREAM_MEMORY + samples + of_sender) * senders
        + (STREAM_MEMORY + of_receiver) * receivers
}

/// Streams accepted so far, in the order in which their connections were accepted.
#[derive(Debug, Default)]
pub(super) struct AcceptedStreams {
    streams: Vec<(ConnectionNumber, ConnectedStream)>,
}

/// Role of the server on its `index`-th stream: with `--bidir`, the client's first half sends to it.
fn role_of(parameters: &TestParameters, index: usize) -> StreamRole {
    match parameters.direction {
        TestDirection::Forward => StreamRole::Receiver,
        TestDirection::Bidirectional if index < parameters.parallel.to_usize() => StreamRole::Receiver,
        TestDirection::Reverse | TestDirection::Bidirectional => StreamRole::Sender,
    }
}

impl AcceptedStreams {
    /// Adds a TCP stream.
    pub(super) fn add_tcp(&mut self, parameters: &TestParameters, accepted: AcceptedStream) -> Result<()> {
        let AcceptedStream { number, stream, cipher } = accepted;
        // A client does not choose for each stream: none of them can be made to go on in clear text.
        if cipher.is_some() != parameters.tls_data {
            let detail = "the client's data connections are not encrypted as its parameters have it (--tls-data)";
            return Err(Error::new(ErrorCode::INIT_STREAM).with_detail(detail));
        }
        if let Some(window) = parameters.window {
            set_window(&stream, window)?;
        }
        // It was a control connection until its cookie was known. Without delay, each write would end in a small segment.
        options::set_no_delay(&stream, parameters.no_delay)
            .map_err(|cause| setup_error(&cause, ErrorCode::INIT_STREAM))?;
        if let Some(name) = &parameters.congestion {
            // As iperf3: a server without the algorithm goes on with its own, and reports it in the results.
            let _ = options::set_congestion(&stream, name);
        }
        let mut stream = connected(parameters, OwnedFd::from(stream))?;
        if let Some(cipher) = cipher {
            stream.encrypt(cipher);
        }
        let position = self.streams.partition_point(|(earlier, _)| *earlier <= number);
        self.streams.insert(position, (number, stream));
        Ok(())
    }

    /// Adds a UDP stream: the client opens the next one after the answer to this one.
    pub(super) fn add_udp(&mut self, parameters: &TestParameters, socket: UdpSocket) -> Result<()> {
        if let Some(window) = parameters.window {
            set_window(&socket, window)?;
        }
        if parameters.dont_fragment {
            let _ = options::set_dont_fragment(&socket);
        }
        let stream = connected(parameters, OwnedFd::from(socket))?;
        let number = self.streams.last().map_or(0, |(ConnectionNumber(number), _)| number + 1);
        self.streams.push((ConnectionNumber(number), stream));
        Ok(())
    }

    /// True when all streams have arrived.
    pub(super) fn is_complete(&self, parameters: &TestParameters) -> bool {
        self.streams.len() >= parameters.total_streams().to_usize()
    }

    /// Gives the streams their numbers and roles, once all have arrived.
    pub(super) fn assign_roles(&mut self, parameters: &TestParameters) -> Result<()> {
        for (index, (_, stream)) in self.streams.iter_mut().enumerate() {
            let role = role_of(parameters, index);
            (stream.description.id, stream.description.role) = (StreamId::nth(index), role);
            if let (Some(rate), StreamRole::Sender) = (parameters.fq_rate, role) {
                options::set_max_pacing_rate(stream, rate)
                    .map_err(|cause| setup_error(&cause, ErrorCode::INIT_STREAM))?;
            }
        }
        Ok(())
    }

    pub(super) fn into_streams(self) -> Vec<ConnectedStream> {
        self.streams.into_iter().map(|(_, stream)| stream).collect()
    }
}

/// Stream of a socket; its number and role follow when all have arrived.
fn connected(parameters: &TestParameters, socket: OwnedFd) -> Result<ConnectedStream> {
    if parameters.type_of_service.get() != 0 {
        options::set_type_of_service(&socket, parameters.type_of_service)
            .map_err(|cause| setup_error(&cause, ErrorCode::INIT_STREAM))?;
    }
    describe(socket, StreamId::nth(0), role_of(parameters, 0))
}

/// Sets the buffers, and checks that they have the size. TCP has them from the listener already (`windows`), unless this
/// system or the turn did not allow that.
fn set_window(socket: &impl std::os::fd::AsFd, window: ByteCount) -> Result<()> {
    let failed = |cause: linerate_sys::Error| setup_error(&cause, ErrorCode::SET_SOCKET_BUFFER);
    options::set_send_buffer(socket, window).map_err(failed)?;
    options::set_receive_buffer(socket, window).map_err(failed)?;
    let enough = |size: linerate_sys::Result<ByteCount>| size.is_ok_and(|size| size >= window);
    if enough(options::send_buffer(socket)) && enough(options::receive_buffer(socket)) {
        Ok(())
    } else {
        Err(Error::new(ErrorCode::SOCKET_BUFFER_TOO_SMALL))
    }
}
