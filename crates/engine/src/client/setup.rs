//! Opening the client's data streams.

use core::time::Duration;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use linerate_model::address_family::AddressFamily;
use linerate_model::parameters::{TestDirection, TestParameters, TestProtocol};
use linerate_model::stream::{StreamDescription, StreamId, StreamRole};
use linerate_sys::net::{self, ConnectOptions, SocketSettings, UdpOptions};
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::{clock, options};
use linerate_units::{MonotonicTime, Port};
use linerate_wire::error::ErrorCode;
use linerate_wire::udp::{self, CounterWidth};

use super::ClientOptions;
use crate::control::ControlConnection;
use crate::error::{Error, Result};
use crate::stream::ConnectedStream;
use crate::tls::{DataCipher, TlsClient};

/// Longest time between two looks of a data thread at its stop flag.
pub(crate) const DATA_TIMEOUT: Duration = Duration::from_millis(100);

/// Default connect timeout of a TCP stream: the control connection has just been established.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Delay of the first repeated request; it doubles each time.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);

/// After this time without an answer the stream is assumed open.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// Role of the client on its `index`-th stream: with `--bidir`, the first half sends.
pub(crate) fn role_of(parameters: &TestParameters, index: usize) -> StreamRole {
    match parameters.direction {
        TestDirection::Forward => StreamRole::Sender,
        TestDirection::Bidirectional if index < parameters.parallel.to_usize() => StreamRole::Sender,
        TestDirection::Reverse | TestDirection::Bidirectional => StreamRole::Receiver,
    }
}

/// Socket settings for the options of a test.
pub(crate) fn socket_settings(parameters: &TestParameters, role: StreamRole) -> SocketSettings {
    let type_of_service = parameters.type_of_service;
    SocketSettings {
        window: parameters.window,
        mss: parameters.mss,
        no_delay: parameters.no_delay,
        type_of_service: (type_of_service.get() != 0).then_some(type_of_service),
        flow_label: parameters.flow_label,
        congestion: parameters.congestion.clone(),
        max_pacing_rate: parameters.fq_rate.filter(|_| role == StreamRole::Sender),
        dont_fragment: parameters.dont_fragment,
        ..SocketSettings::default()
    }
}

/// Context for opening streams.
pub(crate) struct StreamOpening<'a> {
    pub(crate) options: &'a ClientOptions,
    pub(crate) parameters: &'a TestParameters,
    pub(crate) control: &'a ControlConnection,
    pub(crate) cookie: &'a [u8],
    pub(crate) tls: Option<&'a TlsClient>,
    /// Becomes readable on an interrupt.
    pub(crate) cancel: Option<BorrowedFd<'a>>,
}

impl StreamOpening<'_> {
    /// Opens all streams, one after another, as iperf3 does; the order identifies them to the server.
    pub(crate) fn open_streams(&self) -> Result<Vec<ConnectedStream>> {
        let remote = self.control.stream().peer_addr().map_err(|cause| Error::io(ErrorCode::STREAM_CONNECT, &cause))?;
        if self.parameters.flow_label.is_some() && !remote.is_ipv6() {
            return Err(
                Error::new(ErrorCode::SET_FLOW_LABEL).with_detail("the server's address is not an IPv6 address")
            );
        }
        let count = self.parameters.total_streams().to_usize();
        let mut streams = Vec::with_capacity(count);
        for index in 0..count {
            let role = role_of(self.parameters, index);
            let port = self.port(index);
            let (socket, cipher) = match self.parameters.protocol {
                TestProtocol::Tcp => {
                    let (stream, cipher) = self.open_tcp(remote, role, port)?;
                    (OwnedFd::from(stream), cipher)
                }
                TestProtocol::Udp => (OwnedFd::from(self.open_udp(remote, role, port)?), None),
            };
            let mut stream = describe(socket, StreamId::nth(index), role)?;
            if let Some(cipher) = cipher {
                stream.encrypt(Box::new(cipher));
            }
            streams.push(stream);
        }
        Ok(streams)
    }

    fn port(&self, index: usize) -> Option<Port> {
        let first = self.options.client_port?.get();
        Port::new(first.checked_add(u16::try_from(index).ok()?)?)
    }

    fn open_tcp(
        &self,
        remote: SocketAddr,
        role: StreamRole,
        port: Option<Port>,
    ) -> Result<(TcpStream, Option<DataCipher>)> {
        let mut settings = socket_settings(self.parameters, role);
        settings.user_timeout = self.options.send_timeout;
        let connect = ConnectOptions {
            bind: bind_address(self.options, remote, port),
            device: self.options.device.clone(),
            timeout: Some(self.options.connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT)),
            multipath: self.parameters.multipath,
            reuse_address: port.is_some(),
            settings,
            ..ConnectOptions::to(remote)
        };
        let stream =
            net::connect_tcp(&connect, self.cancel).map_err(|cause| setup_error(&cause, ErrorCode::STREAM_CONNECT))?;
        check_window(self.parameters, &stream)?;
        let Some(tls) = self.tls else {
            (&stream).write_all(self.cookie).map_err(|cause| Error::io(ErrorCode::SEND_COOKIE, &cause))?;
            return Ok((stream, None));
        };
        let joined = if self.parameters.tls_data {
            tls.join_secured(stream, self.cookie, self.cancel).map(|(stream, cipher)| (stream, Some(cipher)))
        } else {
            tls.join(stream, self.cookie, self.cancel).map(|stream| (stream, None))
        };
        joined.map_err(|cause| Error::new(ErrorCode::STREAM_CONNECT).with_detail(cause.to_string()))
    }

    /// Opens a UDP stream: the server learns of it by its first datagram, and answers.
    ///
    /// After some time without an answer the stream is assumed open: the request has probably arrived, its answer is
    /// lost, and the server reports on the control connection when all its streams are open.
    fn open_udp(&self, remote: SocketAddr, role: StreamRole, port: Option<Port>) -> Result<UdpSocket> {
        let udp_options = UdpOptions {
            address: self.options.bind,
            port,
            family: Some(AddressFamily::of(remote.ip())),
            device: self.options.device.clone(),
            settings: socket_settings(self.parameters, role),
            ..UdpOptions::default()
        };
        let socket =
            net::connect_udp(&udp_options, remote).map_err(|cause| setup_error(&cause, ErrorCode::STREAM_CONNECT))?;
        check_window(self.parameters, &socket)?;
        send_request(&socket, &udp::REQUEST)?;
        let start = clock::monotonic_now();
        let (mut repeat_at, mut pause) = (start + FIRST_RETRY_DELAY, FIRST_RETRY_DELAY);
        while clock::monotonic_now().since(start) < ANSWER_LIMIT {
            match self.wait_for_answer(&socket, role, repeat_at)? {
                RequestAnswer::Came | RequestAnswer::ServerSpeaks => return Ok(socket),
                RequestAnswer::Cancelled => return Err(Error::new(ErrorCode::STREAM_CONNECT)),
                RequestAnswer::Nothing => {}
            }
            if clock::monotonic_now() >= repeat_at {
                pause *= 2;
                repeat_at = clock::monotonic_now() + pause;
                repeat_request(&socket, self.parameters, role)?;
            }
        }
        Ok(socket)
    }

    fn wait_for_answer(&self, socket: &UdpSocket, role: StreamRole, until: MonotonicTime) -> Result<RequestAnswer> {
        let mut items =
            vec![PollItem::new(socket, PollInterest::READ), PollItem::new(self.control, PollInterest::READ)];
        items.extend(self.cancel.as_ref().map(|cancel| PollItem::new(cancel, PollInterest::READ)));
        let timeout = until.since(clock::monotonic_now());
        poll::wait(&mut items, Some(timeout)).map_err(|cause| Error::system(ErrorCode::SELECT, &cause))?;
        let answered = items[0].is_readable() && take_answer(socket, role)?;
        Ok(match (answered, items[1].is_readable(), items.get(2).is_some_and(PollItem::is_readable)) {
            (true, ..) => RequestAnswer::Came,
            (_, _, true) => RequestAnswer::Cancelled,
            // `TEST_START` or an error: the driver reads it.
            (_, true, _) => RequestAnswer::ServerSpeaks,
            _ => RequestAnswer::Nothing,
        })
    }
}

/// Outcome of waiting for the answer to a request.
enum RequestAnswer {
    Came,
    ServerSpeaks,
    Cancelled,
    Nothing,
}

/// Wraps a connected socket as a stream, with its timeouts set.
pub(crate) fn describe(socket: OwnedFd, id: StreamId, role: StreamRole) -> Result<ConnectedStream> {
    let unusable = |cause: &linerate_sys::Error| Error::system(ErrorCode::INIT_STREAM, cause);
    options::set_receive_timeout(&socket, Some(DATA_TIMEOUT)).map_err(|cause| unusable(&cause))?;
    options::set_send_timeout(&socket, Some(DATA_TIMEOUT)).map_err(|cause| unusable(&cause))?;
    let (local, remote) = net::addresses(&socket).map_err(|cause| unusable(&cause))?;
    let description = StreamDescription { id, socket: socket.as_raw_fd(), local, remote, role };
    Ok(ConnectedStream::new(description, socket))
}

/// Maps socket option failures to iperf3's error numbers.
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

/// The kernel doubles the requested buffer and clips it silently; iperf3 fails when it gets less than requested.
fn check_window(parameters: &TestParameters, socket: &impl std::os::fd::AsFd) -> Result<()> {
    let Some(window) = parameters.window else { return Ok(()) };
    for (name, actual, limit) in [
        ("send", options::send_buffer(socket), "net.core.wmem_max"),
        ("receive", options::receive_buffer(socket), "net.core.rmem_max"),
    ] {
        if actual.is_ok_and(|actual| actual < window) {
            let detail = format!("the kernel granted a smaller {name} buffer than requested: raise the sysctl {limit}");
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

/// Reads one datagram; returns `true` for the answer. In receive mode data may come first, and counts as the answer.
fn take_answer(socket: &UdpSocket, role: StreamRole) -> Result<bool> {
    let mut buffer = [0; 2048];
    match socket.recv(&mut buffer) {
        Ok(length) => Ok(udp::is_reply(&buffer[..length]) || role == StreamRole::Receiver),
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock) => Ok(false),
        Err(error) => Err(Error::io(ErrorCode::STREAM_READ, &error)),
    }
}

fn repeat_request(socket: &UdpSocket, parameters: &TestParameters, role: StreamRole) -> Result<()> {
    if role == StreamRole::Receiver {
        // The server does not read this stream, so a surplus request is harmless.
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
        // An error of an earlier datagram; the next one may succeed.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(Error::io(ErrorCode::STREAM_WRITE, &error)),
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::{BitRate, ByteCount, StreamCount, TypeOfService};

    use super::*;
    use crate::tests::support::{LOOPBACK, PATIENCE, client_options, exact};

    #[test]
    fn settings_follow_the_parameters_and_the_role() {
        let plain = socket_settings(&TestParameters::default(), StreamRole::Sender);
        assert_eq!((plain.window, plain.type_of_service, plain.no_delay), (None, None, false));
        let parameters = TestParameters {
            window: Some(ByteCount::new(50_000)),
            no_delay: true,
            type_of_service: TypeOfService::new(0x10),
            fq_rate: Some(BitRate::from_bits_per_second(1e6)),
            congestion: Some("reno".to_owned()),
            dont_fragment: true,
            ..TestParameters::default()
        };
        for (role, paced) in [(StreamRole::Sender, true), (StreamRole::Receiver, false)] {
            let found = socket_settings(&parameters, role);
            assert_eq!((found.window, found.type_of_service), (parameters.window, Some(parameters.type_of_service)));
            assert_eq!((found.no_delay, found.dont_fragment), (true, true));
            assert_eq!(found.congestion, parameters.congestion);
            assert_eq!(found.max_pacing_rate.is_some(), paced, "only a sender is paced");
        }
    }

    #[test]
    fn the_first_half_of_a_bidirectional_test_sends() {
        use StreamRole::{Receiver, Sender};
        for (direction, expected) in [
            (TestDirection::Forward, [Sender; 4]),
            (TestDirection::Reverse, [Receiver; 4]),
            (TestDirection::Bidirectional, [Sender, Sender, Receiver, Receiver]),
        ] {
            let parameters = TestParameters { direction, parallel: StreamCount::new(2), ..TestParameters::default() };
            assert_eq!([0, 1, 2, 3].map(|index| role_of(&parameters, index)), expected);
        }
    }

    #[test]
    fn a_bound_address_has_the_family_of_the_server() {
        let four: SocketAddr = "192.0.2.1:5201".parse().expect("an address");
        let six: SocketAddr = "[2001:db8::1]:5201".parse().expect("an address");
        let mut options = client_options(four, exact(1));
        assert_eq!(bind_address(&options, four, None), None);
        let port = Port::new(4000);
        assert_eq!(bind_address(&options, four, port), "0.0.0.0:4000".parse().ok());
        assert_eq!(bind_address(&options, six, port), "[::]:4000".parse().ok());
        options.bind = Some(LOOPBACK);
        assert_eq!(bind_address(&options, four, None), "127.0.0.1:0".parse().ok());
        assert_eq!(bind_address(&options, four, port), "127.0.0.1:4000".parse().ok());
    }

    /// Opens a UDP stream against a server that ignores the first requests; returns these and the answered one.
    fn requests(role: StreamRole, ignored: usize, answer: &'static [u8]) -> Vec<Vec<u8>> {
        let listener = std::net::TcpListener::bind((LOOPBACK, 0)).expect("loopback");
        let address = listener.local_addr().expect("bound");
        let server = UdpSocket::bind(address).expect("the same port");
        server.set_read_timeout(Some(PATIENCE)).expect("an option");
        let control = TcpStream::connect(address).expect("it listens");
        let control = ControlConnection::new(control).expect("an option");
        let thread = std::thread::spawn(move || {
            let mut seen = Vec::new();
            loop {
                let mut buffer = [0; 2048];
                let (length, from) = server.recv_from(&mut buffer).expect("a request");
                seen.push(buffer[..length].to_vec());
                if seen.len() > ignored {
                    server.send_to(answer, from).expect("loopback");
                    return seen;
                }
            }
        });
        let parameters = TestParameters { protocol: TestProtocol::Udp, block_size: ByteCount::new(300), ..exact(1000) };
        let options = client_options(address, parameters.clone());
        let opening = StreamOpening {
            options: &options,
            parameters: &parameters,
            control: &control,
            cookie: b"",
            tls: None,
            cancel: None,
        };
        opening.open_udp(address, role, None).expect("answered");
        thread.join().expect("no panic")
    }

    #[test]
    fn a_lost_request_is_repeated_in_the_form_that_the_role_allows() {
        let first = udp::REQUEST.to_vec();
        for answer in [&udp::REPLY, &udp::LEGACY_REPLY] {
            assert_eq!(requests(StreamRole::Sender, 0, answer), std::slice::from_ref(&first));
        }
        // The server reads a sender's stream: a repetition is a whole block, which it distinguishes from data.
        let seen = requests(StreamRole::Sender, 1, &udp::REPLY);
        assert_eq!((&seen[0], seen[1].len()), (&first, 300));
        let recognized = udp::StreamRequest::recognize(&seen[1], ByteCount::new(300), CounterWidth::Bits32);
        assert_eq!(recognized, Some(udp::StreamRequest::Retry));
        // A receiver's stream is not read: the same request again; and data that comes first is an answer.
        assert_eq!(requests(StreamRole::Receiver, 1, b"data"), [first.clone(), first]);
    }
}
