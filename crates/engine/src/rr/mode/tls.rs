//! A new TCP connection with a full TLS 1.3 handshake for each transaction.
//!
//! The request leaves with the client's last message of the handshake; there are no tickets, so that each handshake is full. The
//! server closes first, as without TLS.

use core::time::Duration;
use std::io;
use std::net::TcpStream;

use linerate_model::tls::TlsProperties;
use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::{clock, options, poll};
use linerate_units::{ByteCount, MonotonicTime};
use linerate_wire::cookie::{self, Cookie};
use linerate_wire::probe::RrReady;

use super::connect::{TRIAL_TIMEOUT, connect_options};
use super::{STOP_POLL_INTERVAL, TransactionFailure, Transactor, random_payload, response_buffer};
use crate::probe::{ProbeError, ProbeSession, Result};
use crate::rr::RrOptions;
use crate::rr::flow::FlowWatch;
use crate::rr::open::TlsConnection;
use crate::tls::{TlsClient, TlsError, TlsStream, WaitDecision};

/// A flow of TLS connections, one after another.
#[derive(Clone)]
pub(in crate::rr) struct TlsFlow {
    connect: ConnectOptions,
    client: TlsClient,
    /// The session's token and the request.
    request: Vec<u8>,
    response: ByteCount,
    buffer: Vec<u8>,
    timeout: Duration,
}

impl TlsFlow {
    /// Flow to the test's own port; the server has the key of the conversation, or one that `ready` names.
    #[cfg_attr(not(feature = "tls"), expect(unused_assignments, reason = "without TLS there is no client"))]
    pub(in crate::rr) fn new(session: &ProbeSession, options: &RrOptions, ready: RrReady) -> Result<Self> {
        let port = ready.port.ok_or_else(|| ProbeError::Lost("the server gave no port for TLS".to_owned()))?;
        let client = match (session.tls(), ready.key) {
            (Some(client), _) => client.clone(),
            (None, Some(key)) => TlsClient::of_session_key(key, session.target().address())?,
            (None, None) => return Err(ProbeError::Lost("the server named no key for TLS".to_owned())),
        };
        let mut request = Cookie::load(session.token()?).as_bytes().to_vec();
        request.extend(random_payload(options.request)?);
        let mut connect = connect_options(session, Some(port), options.timeout);
        // The last message of the handshake and the request must not wait for an acknowledgement.
        connect.settings.no_delay = true;
        let (response, buffer) = (options.response, response_buffer(options));
        Ok(Self { connect, client, request, response, buffer, timeout: options.timeout })
    }

    /// Performs one transaction; returns the properties of its handshake.
    ///
    /// # Errors
    ///
    /// The port cannot be reached, or the ends do not agree.
    pub(super) fn trial(&mut self, session: &ProbeSession) -> Result<TlsProperties> {
        let port = self.connect.remote.port();
        let short = ConnectOptions { timeout: Some(TRIAL_TIMEOUT.min(self.timeout)), ..self.connect.clone() };
        if net::connect_tcp_blocking(&short).is_err() {
            return Err(ProbeError::Unreachable(format!(
                "port {port} of the server does not answer: permit the ports from which its kernel chooses \
                 (net.ipv4.ip_local_port_range), or measure --connect"
            )));
        }
        let is_stopping = || session.stop().is_some_and(|stop| stop.pending().is_some());
        let stream = self.exchange(&is_stopping)?;
        self.client.properties(&stream).ok_or_else(|| ProbeError::Lost("no TLS handshake".to_owned()))
    }

    /// Opens a connection for many requests: the handshake, and the token.
    ///
    /// # Errors
    ///
    /// The port cannot be reached, or the ends do not agree.
    pub(in crate::rr) fn connection(self, session: &ProbeSession) -> Result<TlsConnection> {
        let is_stopping = || session.stop().is_some_and(|stop| stop.pending().is_some());
        let port = |cause| {
            format!("{cause}: permit the ports from which the server's kernel chooses (net.ipv4.ip_local_port_range)")
        };
        let stream = self.connect().map_err(|failure| match ProbeError::from(failure) {
            ProbeError::System(cause) => ProbeError::Unreachable(port(cause)),
            other => other,
        })?;
        let deadline = clock::monotonic_now() + self.timeout;
        let failed = |reason: &str| Err(TlsError(format!("a connection in TLS: {reason}")));
        let mut wait = |error: Option<io::Error>| match error {
            Some(error) if !poll::is_temporary(&error) => failed(&linerate_sys::describe_os_error(&error)),
            _ if is_stopping() => failed("interrupted"),
            _ if clock::monotonic_now() >= deadline => failed("the handshake was not complete in time"),
            _ => Ok(()),
        };
        let mut stream = self.client.stream(stream).map_err(|TlsError(reason)| ProbeError::System(reason))?;
        let (token, request) = self.request.split_at(cookie::LENGTH);
        match stream.send(token, &mut wait) {
            Ok(()) => Ok(TlsConnection::new(stream, request.to_vec(), self.response)),
            Err(_) if is_stopping() => Err(ProbeError::Interrupted),
            Err(TlsError(reason)) => Err(ProbeError::System(reason)),
        }
    }

    fn connect(&self) -> core::result::Result<TcpStream, TransactionFailure> {
        let failed = |cause: linerate_sys::Error| TransactionFailure::Failed(cause.to_string());
        let stream = net::connect_tcp_blocking(&self.connect).map_err(|cause| {
            // The server has ended the test, and closed its port.
            let is_over = cause.kind() == io::ErrorKind::ConnectionRefused;
            if is_over { TransactionFailure::Broken(cause.to_string()) } else { failed(cause) }
        })?;
        options::set_send_timeout(&stream, Some(STOP_POLL_INTERVAL)).map_err(failed)?;
        options::set_receive_timeout(&stream, Some(STOP_POLL_INTERVAL)).map_err(failed)?;
        Ok(stream)
    }

    fn exchange(&mut self, is_stopping: &dyn Fn() -> bool) -> core::result::Result<TlsStream, TransactionFailure> {
        let deadline = clock::monotonic_now() + self.timeout;
        let stream = self.connect()?;
        let (limit, mut is_stopped) = (self.timeout, false);
        let mut wait = |error: Option<io::Error>| {
            is_stopped = is_stopping();
            go_on(error, is_stopped, deadline, limit)
        };
        let exchanged = self.exchange_on(stream, &mut wait);
        exchanged.map_err(
            |TlsError(reason)| {
                if is_stopped { TransactionFailure::Stopped } else { TransactionFailure::Failed(reason) }
            },
        )
    }

    fn exchange_on(&mut self, stream: TcpStream, wait: WaitDecision<'_>) -> core::result::Result<TlsStream, TlsError> {
        let mut stream = self.client.stream(stream)?;
        stream.send(&self.request, wait)?;
        let mut left = self.response.to_usize();
        while left > 0 {
            let most = left.min(self.buffer.len());
            match stream.receive(&mut self.buffer[..most], wait)? {
                0 => return Err(TlsError("waiting for a response: the server ended TLS".to_owned())),
                count => left -= count,
            }
            wait(None)?;
        }
        stream.receive_end(wait)?;
        Ok(stream)
    }
}

/// Decision after a wait of a transaction.
fn go_on(
    error: Option<io::Error>,
    is_stopped: bool,
    deadline: MonotonicTime,
    limit: Duration,
) -> core::result::Result<(), TlsError> {
    match error {
        Some(error) if !poll::is_temporary(&error) => {
            Err(TlsError(format!("a transaction in TLS: {}", linerate_sys::describe_os_error(&error))))
        }
        _ if is_stopped => Err(TlsError("interrupted".to_owned())),
        _ if clock::monotonic_now() >= deadline => {
            let limit = linerate_units::display::duration(limit);
            Err(TlsError(format!("a transaction in TLS was not complete within {limit} (--timeout)")))
        }
        _ => Ok(()),
    }
}

impl Transactor for TlsFlow {
    fn transact(&mut self, _: MonotonicTime, watch: &FlowWatch) -> core::result::Result<bool, TransactionFailure> {
        self.exchange(&|| watch.is_stopping()).map(|_| true)
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread;

    use linerate_units::Port;
    use linerate_wire::key_pin::KeyPin;
    use linerate_wire::probe::RrOrder;

    use super::*;
    use crate::probe::ProbeTarget;
    use crate::rr::flow::FlowThread;
    use crate::rr::schedule::RequestSchedule;
    use crate::server::ServerOptions;
    use crate::tests::support::TestServer;
    use linerate_model::rr::RrMode;

    const TIMEOUT: Duration = Duration::from_millis(300);

    fn flow_to(address: std::net::SocketAddr) -> TlsFlow {
        let client = TlsClient::of_session_key(KeyPin([7; 32]), "127.0.0.1").expect("a client");
        let connect = ConnectOptions { timeout: Some(TIMEOUT), ..ConnectOptions::to(address) };
        let (request, response, buffer) = (vec![7; 38], ByteCount::new(1), vec![0; 1]);
        TlsFlow { connect, client, request, response, buffer, timeout: TIMEOUT }
    }

    /// Port whose connections get `answer`, and then nothing; the thread ends with the process of the test.
    fn server_that_sends(answer: &'static [u8]) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.write_all(answer);
                open.push(stream);
            }
        });
        address
    }

    #[test]
    fn a_flow_goes_on_after_servers_that_say_nothing_or_nonsense() {
        for (answer, expected) in [
            (&b""[..], "--timeout"),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the server does not use TLS"),
            (b"\x16\x03\x03", "--timeout"),
        ] {
            let flow = Box::new(flow_to(server_that_sends(answer)));
            let mut options = RrOptions::new(ProbeTarget::new("made up", Port::IPERF3), RrMode::Tls);
            options.timeout = TIMEOUT;
            let start = clock::monotonic_now();
            let (schedule, watch) = (RequestSchedule::new(&options, 0, start), Arc::new(FlowWatch::new(TIMEOUT)));
            let flow = FlowThread::start(flow, schedule, watch, start, Duration::from_secs(3)).expect("a thread");
            let record = flow.join();
            // In three seconds: ten of 300 ms, or one each 10 ms; on a busy host each takes longer.
            assert!((2..=300).contains(&record.lost) && record.transactions == 0, "{record:?}");
            assert!(record.loss.as_ref().is_some_and(|loss| loss.contains(expected)), "{record:?}");
            assert_eq!(record.failure, None);
        }
    }

    fn session(server: &TestServer) -> ProbeSession {
        let port = Port::new(server.address.port()).expect("a port");
        ProbeSession::open(&ProbeTarget::new("127.0.0.1", port), None).expect("a session")
    }

    fn order(session: &ProbeSession) -> RrReady {
        let one = ByteCount::new(1);
        session
            .far_rr(RrOrder { mode: RrMode::Tls, request: one, response: one, flows: 1, keeps_open: false })
            .expect("TLS")
    }

    #[test]
    fn clients_that_send_nonsense_or_half_a_handshake_do_not_end_the_test() {
        let server = TestServer::start(ServerOptions::default());
        let session = session(&server);
        let options = RrOptions::new(session.target().clone(), RrMode::Tls);
        let mut flow = TlsFlow::new(&session, &options, order(&session)).expect("a flow");
        let address = flow.connect.remote;
        let before = flow.trial(&session).expect("a handshake");
        for nonsense in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[22, 3, 1, 0xff, 0xff, 1], &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0], &[]]
        {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(nonsense).expect("buffer space");
            stream.shutdown(std::net::Shutdown::Write).expect("connected");
            let mut answer = Vec::new();
            // The answer is an alert at most; a reset ends it as well.
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.len() <= 7, "{answer:?}");
        }
        assert_eq!(flow.trial(&session).expect("another handshake"), before);
    }

    #[test]
    fn requests_on_a_connection_that_stays_open_do_not_wait_for_responses() {
        let server = TestServer::start(ServerOptions::default());
        let session = session(&server);
        let mut connection = crate::rr::open(&session, RrMode::Tls, ByteCount::new(64), None).expect("a connection");
        (0..50).for_each(|number| connection.send(number).expect("it is open"));
        let mut numbers = Vec::new();
        let limit = clock::monotonic_now() + Duration::from_secs(10);
        while numbers.len() < 50 && clock::monotonic_now() < limit {
            let soon = clock::monotonic_now() + Duration::from_millis(10);
            connection.wait_until(soon, &mut |number, _| numbers.push(number)).expect("it is open");
        }
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        assert_eq!(session.far_rr_stop().expect("a report").transactions, 50);
        // The server has ended the test, and with it the connection.
        let ended = connection.wait_until(clock::monotonic_now() + Duration::from_secs(10), &mut |_, _| {});
        assert!(ended.is_err());
    }

    #[test]
    fn another_token_has_no_response() {
        let server = TestServer::start(ServerOptions::default());
        let session = session(&server);
        let options = RrOptions::new(session.target().clone(), RrMode::Tls);
        let mut flow = TlsFlow::new(&session, &options, order(&session)).expect("a flow");
        flow.request[5] ^= 1;
        assert!(matches!(flow.exchange(&|| false), Err(TransactionFailure::Failed(_))));
        assert_eq!(session.far_rr_stop().expect("a report").transactions, 0);
    }

    #[test]
    fn a_server_with_another_key_is_refused() {
        let server = TestServer::start(ServerOptions::default());
        let session = session(&server);
        let options = RrOptions::new(session.target().clone(), RrMode::Tls);
        let ready = RrReady { key: Some(KeyPin([1; 32])), ..order(&session) };
        let error = TlsFlow::new(&session, &options, ready).expect("a flow").trial(&session).expect_err("another key");
        assert!(error.to_string().contains("another key than it named in the conversation"), "{error}");
    }
}
