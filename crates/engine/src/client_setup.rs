//! Opening the client's data streams.

use core::time::Duration;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use linerate_model::parameters::{Direction, Protocol, TestParameters};
use linerate_model::stream::{Role, StreamDescription, StreamId};
use linerate_sys::net::{self, ConnectOptions, Family, SocketSettings, UdpOptions};
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::{clock, options};
use linerate_units::{MonotonicTime, Port};
use linerate_wire::error::ErrorCode;
use linerate_wire::udp::{self, CounterWidth};

use crate::client::ClientOptions;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::stream::Stream;

/// A data thread looks at its stop flag at least this often.
pub(crate) const DATA_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a TCP stream may take to connect when nothing else was asked for: the control connection has just stood.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// When a request is repeated for the first time; the pause doubles each time.
const FIRST_REPEAT: Duration = Duration::from_millis(250);

/// After this long the stream is taken to be open without an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// What the client does on its `index`-th stream: with `--bidir`, the first half sends.
pub(crate) fn role_of(parameters: &TestParameters, index: usize) -> Role {
    match parameters.direction {
        Direction::Forward => Role::Sender,
        Direction::Bidirectional if index < parameters.parallel.to_usize() => Role::Sender,
        Direction::Reverse | Direction::Bidirectional => Role::Receiver,
    }
}

/// What the options of a test mean for a data socket.
pub(crate) fn socket_settings(parameters: &TestParameters, role: Role) -> SocketSettings {
    let type_of_service = parameters.type_of_service;
    SocketSettings {
        window: parameters.window,
        mss: parameters.mss,
        no_delay: parameters.no_delay,
        type_of_service: (type_of_service.get() != 0).then_some(type_of_service),
        flow_label: parameters.flow_label,
        congestion: parameters.congestion.clone(),
        max_pacing_rate: parameters.fq_rate.filter(|_| role == Role::Sender),
        dont_fragment: parameters.dont_fragment,
        ..SocketSettings::default()
    }
}

/// What opening a stream needs.
pub(crate) struct Opening<'a> {
    pub(crate) options: &'a ClientOptions,
    pub(crate) parameters: &'a TestParameters,
    pub(crate) control: &'a Control,
    pub(crate) cookie: &'a [u8],
    /// Becomes readable when the user has had enough.
    pub(crate) cancel: Option<BorrowedFd<'a>>,
}

impl Opening<'_> {
    /// Opens all streams, one after another, as iperf3 does; the order tells the server which is which.
    pub(crate) fn open_streams(&self) -> Result<Vec<Stream>> {
        let remote = self.control.stream().peer_addr().map_err(|cause| Error::io(ErrorCode::STREAM_CONNECT, &cause))?;
        let count = self.parameters.total_streams().to_usize();
        let mut streams = Vec::with_capacity(count);
        for index in 0..count {
            let role = role_of(self.parameters, index);
            let port = self.port(index);
            let socket = match self.parameters.protocol {
                Protocol::Tcp => OwnedFd::from(self.open_tcp(remote, role, port)?),
                Protocol::Udp => OwnedFd::from(self.open_udp(remote, role, port)?),
            };
            streams.push(describe(socket, StreamId::nth(index), role)?);
        }
        Ok(streams)
    }

    fn port(&self, index: usize) -> Option<Port> {
        let first = self.options.client_port?.get();
        Port::new(first.checked_add(u16::try_from(index).ok()?)?)
    }

    fn open_tcp(&self, remote: SocketAddr, role: Role, port: Option<Port>) -> Result<TcpStream> {
        let mut settings = socket_settings(self.parameters, role);
        settings.user_timeout = self.options.send_timeout;
        let connect = ConnectOptions {
            bind: bind_address(self.options, remote, port),
            device: self.options.device.clone(),
            timeout: Some(self.options.connect_timeout.unwrap_or(CONNECT_LIMIT)),
            multipath: self.parameters.multipath,
            reuse_address: port.is_some(),
            settings,
            ..ConnectOptions::to(remote)
        };
        let stream =
            net::connect_tcp(&connect, self.cancel).map_err(|cause| setup_error(&cause, ErrorCode::STREAM_CONNECT))?;
        check_window(self.parameters, &stream)?;
        (&stream).write_all(self.cookie).map_err(|cause| Error::io(ErrorCode::SEND_COOKIE, &cause))?;
        Ok(stream)
    }

    /// Opens a UDP stream: the server knows it by its first datagram, and answers.
    ///
    /// Without an answer after some time the stream is taken to be open: the request has probably arrived, its answer is
    /// lost, and the server will say on the control connection when all its streams are up.
    fn open_udp(&self, remote: SocketAddr, role: Role, port: Option<Port>) -> Result<UdpSocket> {
        let udp_options = UdpOptions {
            address: self.options.bind,
            port,
            family: if remote.is_ipv6() { Family::Ipv6 } else { Family::Ipv4 },
            device: self.options.device.clone(),
            reuse_address: false,
            settings: socket_settings(self.parameters, role),
        };
        let socket =
            net::connect_udp(&udp_options, remote).map_err(|cause| setup_error(&cause, ErrorCode::STREAM_CONNECT))?;
        check_window(self.parameters, &socket)?;
        send_request(&socket, &udp::REQUEST)?;
        let start = clock::monotonic_now();
        let (mut repeat_at, mut pause) = (start + FIRST_REPEAT, FIRST_REPEAT);
        while clock::monotonic_now().since(start) < ANSWER_LIMIT {
            match self.wait_for_answer(&socket, role, repeat_at)? {
                Answer::Came | Answer::ServerSpeaks => return Ok(socket),
                Answer::Cancelled => return Err(Error::new(ErrorCode::STREAM_CONNECT)),
                Answer::Nothing => {}
            }
            if clock::monotonic_now() >= repeat_at {
                pause *= 2;
                repeat_at = clock::monotonic_now() + pause;
                repeat_request(&socket, self.parameters, role)?;
            }
        }
        Ok(socket)
    }

    fn wait_for_answer(&self, socket: &UdpSocket, role: Role, until: MonotonicTime) -> Result<Answer> {
        let mut items = vec![PollItem::new(socket, Interest::READ), PollItem::new(self.control, Interest::READ)];
        items.extend(self.cancel.as_ref().map(|cancel| PollItem::new(cancel, Interest::READ)));
        let timeout = until.since(clock::monotonic_now());
        poll::wait(&mut items, Some(timeout)).map_err(|cause| Error::system(ErrorCode::SELECT, &cause))?;
        let answered = items[0].is_readable() && take_answer(socket, role)?;
        Ok(match (answered, items[1].is_readable(), items.get(2).is_some_and(PollItem::is_readable)) {
            (true, ..) => Answer::Came,
            (_, _, true) => Answer::Cancelled,
            // That all its streams are up, or an error: the driver reads it.
            (_, true, _) => Answer::ServerSpeaks,
            _ => Answer::Nothing,
        })
    }
}

/// What came of waiting for the answer to a request.
enum Answer {
    Came,
    ServerSpeaks,
    Cancelled,
    Nothing,
}

/// A stream over a connected socket, with its timeouts set.
pub(crate) fn describe(socket: OwnedFd, id: StreamId, role: Role) -> Result<Stream> {
    let unusable = |cause: &linerate_sys::Error| Error::system(ErrorCode::INIT_STREAM, cause);
    options::set_receive_timeout(&socket, Some(DATA_TIMEOUT)).map_err(|cause| unusable(&cause))?;
    options::set_send_timeout(&socket, Some(DATA_TIMEOUT)).map_err(|cause| unusable(&cause))?;
    let (local, remote) = net::addresses(&socket).map_err(|cause| unusable(&cause))?;
    let description = StreamDescription { id, socket: socket.as_raw_fd(), local, remote, role };
    Ok(Stream::new(description, socket))
}

/// iperf3 has numbers of their own for some socket options.
pub(crate) fn setup_error(cause: &linerate_sys::Error, otherwise: ErrorCode) -> Error {
    let code = match cause.socket_option() {
        Some("TCP_CONGESTION") => ErrorCode::SET_CONGESTION,
        Some("TCP_MAXSEG") => ErrorCode::SET_MSS,
        Some("TCP_NODELAY") => ErrorCode::SET_NO_DELAY,
        Some("SO_SNDBUF" | "SO_RCVBUF") => ErrorCode::SET_SOCKET_BUFFER,
        Some("IP_TOS" | "IPV6_TCLASS") => ErrorCode::SET_TYPE_OF_SERVICE,
        _ => otherwise,
    };
    Error::system(code, cause)
}

/// The kernel doubles what is asked for and clips it silently; iperf3 refuses to go on with less than was asked.
fn check_window(parameters: &TestParameters, socket: &impl std::os::fd::AsFd) -> Result<()> {
    let Some(window) = parameters.window else { return Ok(()) };
    for (name, actual, limit) in [
        ("send", options::send_buffer(socket), "net.core.wmem_max"),
        ("receive", options::receive_buffer(socket), "net.core.rmem_max"),
    ] {
        if actual.is_ok_and(|actual| actual < window) {
            let detail = format!("the kernel gave a smaller {name} buffer than asked for: raise the sysctl {limit}");
            return Err(Error::new(ErrorCode::SOCKET_BUFFER_TOO_SMALL).with_detail(detail));
        }
    }
    Ok(())
}

fn bind_address(options: &ClientOptions, remote: SocketAddr, port: Option<Port>) -> Option<SocketAddr> {
    let any = || match remote {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    match (options.bind, port) {
        (None, None) => None,
        (address, port) => Some(SocketAddr::new(address.unwrap_or_else(any), port.map_or(0, Port::get))),
    }
}

/// Reads what is there; whether it was the answer. In receive mode data may come before it, and is as good.
fn take_answer(socket: &UdpSocket, role: Role) -> Result<bool> {
    let mut buffer = [0; 2048];
    match socket.recv(&mut buffer) {
        Ok(length) => Ok(udp::is_reply(&buffer[..length]) || role == Role::Receiver),
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock) => Ok(false),
        Err(error) => Err(Error::io(ErrorCode::STREAM_READ, &error)),
    }
}

fn repeat_request(socket: &UdpSocket, parameters: &TestParameters, role: Role) -> Result<()> {
    if role == Role::Receiver {
        // The server does not read this stream, so a surplus request disturbs nothing.
        return send_request(socket, &udp::REQUEST);
    }
    let mut block = vec![0; parameters.block_size.to_usize()];
    let width = CounterWidth::new(parameters.udp_counters_64bit);
    if udp::write_retry(width, &mut block, clock::monotonic_now()).is_ok() {
        send_request(socket, &block)?;
    }
    Ok(())
}

fn send_request(socket: &UdpSocket, request: &[u8]) -> Result<()> {
    match socket.send(request) {
        Ok(_) => Ok(()),
        // The answer to an earlier datagram; the next one may fare better.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(Error::io(ErrorCode::STREAM_WRITE, &error)),
    }
}
