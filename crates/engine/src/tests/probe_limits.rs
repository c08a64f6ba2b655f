//! Limits of a server over all probe sessions: memory, shares of the clients' networks, stalled connections, rates.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use linerate_model::direction::Direction;
use linerate_sys::clock;
use linerate_units::{BitRate, ByteCount, TypeOfService};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ErrorCode;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::probe::{
    ConnectionNumber, ConnectionRef, EmptyContent, LoadEnd, LoadOrder, LoadSample, PacketSpacing, ProbeMessageDecoder,
    ProbeResponse, ReflectorOpened, SendLimit, SendOrder, StreamRequest,
};

use crate::client::ClientOptions;
use crate::probe::{LoadConnection, LoadOptions, ProbeSession};
use crate::resources::FLOW_MEMORY;
use crate::server::ServerOptions;

use super::support::{ClientRun, TestServer, client_options, connect, exact, target};

const SAMPLING: Duration = Duration::from_millis(1);

/// A probe session whose load connections are not read.
struct GreedySession {
    control: TcpStream,
    address: SocketAddr,
    decoder: ProbeMessageDecoder,
    token: Option<ReflectorOpened>,
    loads: Vec<TcpStream>,
}

impl GreedySession {
    fn open(address: SocketAddr) -> Self {
        let mut control = connect(address);
        control.write_all(Cookie::probes([7; 36]).as_bytes()).expect("buffer space");
        let decoder = ProbeMessageDecoder::of_answers();
        let mut session = Self { control, address, decoder, token: None, loads: Vec::new() };
        assert!(matches!(session.answer(), ProbeResponse::Hello(_)));
        session
    }

    fn say(&mut self, request: &StreamRequest) {
        self.control.write_all(&request.encode()).expect("buffer space");
    }

    /// Next answer that is no progress report.
    fn answer(&mut self) -> ProbeResponse {
        loop {
            match self.any_answer().expect("an answer") {
                ProbeResponse::LoadProgress(_) => {}
                other => return other,
            }
        }
    }

    fn any_answer(&mut self) -> std::io::Result<ProbeResponse> {
        loop {
            let mut byte = [0];
            self.control.read_exact(&mut byte)?;
            if let Some(document) = self.decoder.feed(&mut &byte[..]).expect("framed") {
                return Ok(ProbeResponse::decode(&document).expect("readable").expect("known"));
            }
        }
    }

    /// Opens and starts a load connection, without ever reading from it; the reason of a refusal otherwise.
    fn add_load(&mut self) -> Result<ConnectionNumber, String> {
        if self.token.is_none() {
            self.say(&StreamRequest::Open(EmptyContent {}));
            match self.answer() {
                ProbeResponse::Opened(opened) => self.token = Some(opened),
                ProbeResponse::Refused(refused) => return Err(refused.reason),
                other => panic!("{other:?}"),
            }
        }
        let connection = ConnectionNumber(u32::try_from(self.loads.len()).expect("few"));
        self.say(&StreamRequest::Load(LoadOrder {
            connection,
            direction: Direction::Down,
            congestion_control: None,
            type_of_service: TypeOfService::default(),
            sampling: SAMPLING,
        }));
        match self.answer() {
            ProbeResponse::LoadExpected(_) => {}
            ProbeResponse::Refused(refused) => return Err(refused.reason),
            other => panic!("{other:?}"),
        }
        let mut load = connect(self.address);
        load.write_all(Cookie::load(self.token.as_ref().expect("opened").token).as_bytes()).expect("buffer space");
        self.loads.push(load);
        assert!(matches!(self.answer(), ProbeResponse::LoadReady(_)));
        self.say(&StreamRequest::LoadStart(ConnectionRef { connection }));
        Ok(connection)
    }

    /// Ends a load connection; returns the server's record.
    fn end_load(&mut self, connection: ConnectionNumber) -> (Vec<LoadSample>, LoadEnd) {
        self.say(&StreamRequest::LoadStop(ConnectionRef { connection }));
        let mut samples = Vec::new();
        loop {
            match self.answer() {
                ProbeResponse::LoadSamples(more) => samples.extend(more.samples),
                ProbeResponse::LoadEnd(end) => return (samples, end),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Opens sessions and their connections until the server refuses one; returns the reason, too.
fn exhaust(address: SocketAddr) -> (Vec<GreedySession>, String) {
    let mut sessions = Vec::new();
    loop {
        let mut session = GreedySession::open(address);
        let refusal = (0..64).find_map(|_| session.add_load().err());
        sessions.push(session);
        if let Some(reason) = refusal {
            return (sessions, reason);
        }
        assert!(sessions.len() < 10, "nothing is refused");
    }
}

fn from_another_address(address: SocketAddr) -> ClientRun {
    let bind = Some(Ipv4Addr::new(127, 0, 0, 2).into());
    ClientRun::with(&ClientOptions { bind, ..client_options(address, exact(1000)) })
}

#[test]
fn connections_that_are_never_read_hold_no_more_than_their_share() {
    let memory = ByteCount::from_mebibytes(24);
    let half = ByteCount::from_mebibytes(12);
    let server = TestServer::start_within(memory, ServerOptions::default());
    let (mut sessions, reason) = exhaust(server.address);
    assert!(reason.contains("no memory left") && reason.contains("24.0 MiB"), "{reason}");
    let connections: usize = sessions.iter().map(|session| session.loads.len()).sum();
    assert!(connections > 32, "{connections} connections");
    // A third of a second of samples, and a client that waits for none of them.
    let end = clock::monotonic_now() + Duration::from_millis(300);
    while clock::monotonic_now() < end {
        let held = server.resources.held();
        assert!(held <= half && held >= FLOW_MEMORY * connections as u64, "{held} for {connections} connections");
        clock::sleep_until(clock::monotonic_now() + Duration::from_millis(10));
    }
    let before = clock::monotonic_now();
    from_another_address(server.address).successful();
    let took = clock::monotonic_now().since(before);
    assert!(took < Duration::from_secs(5), "{took:?}");
    let (samples, end) = sessions[0].end_load(ConnectionNumber(0));
    assert!(samples.len() > 1, "{} samples", samples.len());
    assert!(end.error.is_none() && samples.windows(2).all(|pair| pair[0].time < pair[1].time));
    drop(sessions);
    server.find(|news| matches!(news, super::support::ServerNews::Idle(next) if next > 2).then_some(()));
    assert_eq!(server.resources.held(), ByteCount::ZERO);
}

#[test]
fn a_probe_session_of_another_address_gets_its_share() {
    let server = TestServer::start_within(ByteCount::from_mebibytes(8), ServerOptions::default());
    let (_sessions, _) = exhaust(server.address);
    let other = crate::probe::ProbeTarget { bind: Some(Ipv4Addr::new(127, 0, 0, 2).into()), ..target(server.address) };
    let session = ProbeSession::open(&other, None).expect("a probe service");
    let load = session.open_load(&LoadOptions::new(Direction::Down)).expect("memory of its own");
    load.start().expect("alive");
    wait_for(&load, ByteCount::from_mebibytes(1));
    assert!(load.stop().far.is_some_and(|far| far.broken.is_none()));
}

/// Waits until a load connection has moved this much.
fn wait_for(load: &LoadConnection, bytes: ByteCount) {
    let deadline = clock::monotonic_now() + super::support::PATIENCE;
    while load.bytes() < bytes {
        assert!(clock::monotonic_now() < deadline, "only {}", load.bytes());
        clock::sleep_until(clock::monotonic_now() + Duration::from_millis(2));
    }
}

#[test]
fn a_connection_that_is_never_read_is_ended_with_its_reason() {
    let options = ServerOptions { stall_timeout: Duration::from_millis(300), ..ServerOptions::default() };
    let server = TestServer::start(options);
    let mut session = GreedySession::open(server.address);
    let connection = session.add_load().expect("memory");
    // Reports of progress come every half second while a connection runs.
    session.control.set_read_timeout(Some(Duration::from_millis(1500))).expect("an option");
    let deadline = clock::monotonic_now() + super::support::PATIENCE;
    while session.any_answer().is_ok() {
        session.say(&StreamRequest::Alive(EmptyContent {}));
        assert!(clock::monotonic_now() < deadline, "it goes on");
    }
    session.control.set_read_timeout(Some(super::support::PATIENCE)).expect("an option");
    let (samples, end) = session.end_load(connection);
    let reason = end.error.expect("a reason");
    assert!(reason.contains("stalled") && reason.contains("300 ms"), "{reason}");
    assert!(!samples.is_empty() && end.time >= Duration::from_millis(300), "{:?}", end.time);
}

#[test]
fn the_load_connections_of_a_session_share_the_rate_of_the_server() {
    let most = BitRate::from_bits_per_second(80e6);
    let limits = ServerLimits { max_total_rate: Some(most), ..ServerLimits::default() };
    let server = TestServer::start(ServerOptions { limits, ..ServerOptions::default() });
    let session = ProbeSession::open(&target(server.address), None).expect("a probe service");
    for direction in [Direction::Down, Direction::Up] {
        let options = LoadOptions::new(direction);
        let loads: Vec<_> = (0..6).map(|_| session.open_load(&options).expect("memory")).collect();
        let start = clock::monotonic_now();
        for load in &loads {
            load.start().expect("alive");
        }
        clock::sleep_until(start + Duration::from_millis(600));
        let outcomes: Vec<_> = loads.into_iter().map(LoadConnection::stop).collect();
        let took = clock::monotonic_now().since(start);
        let far = outcomes.iter().map(|outcome| outcome.far.as_ref().expect("alive").bytes);
        let moved: ByteCount = far.sum();
        // Each connection may be one read ahead.
        let allowed = most * took + ByteCount::from_kibibytes(6 * 100);
        assert!(moved <= allowed, "{direction:?}: {moved} of {allowed}");
        assert!(moved >= (most * Duration::from_millis(100)), "{direction:?}: {moved}");
    }
}

#[test]
fn the_streams_of_a_session_share_the_rate_of_the_server() {
    let most = BitRate::from_bits_per_second(40e6);
    let limits = ServerLimits { max_total_rate: Some(most), ..ServerLimits::default() };
    let server = TestServer::start(ServerOptions { limits, ..ServerOptions::default() });
    let session = ProbeSession::open(&target(server.address), None).expect("a probe service");
    session.open_datagrams().expect("nothing is lost on loopback");
    let order = |stream| SendOrder {
        stream,
        size: ByteCount::new(1000),
        rate: most,
        spacing: PacketSpacing::Periodic,
        limit: SendLimit { count: None, duration: Some(Duration::from_secs(60)) },
        type_of_service: TypeOfService::default(),
        dont_fragment: false,
    };
    let streams: Vec<_> = (0..4).map(|_| session.new_stream()).collect();
    let start = clock::monotonic_now();
    for stream in &streams {
        session.far_send(order(*stream)).expect("a free stream");
    }
    clock::sleep_until(start + Duration::from_millis(600));
    let sent: ByteCount = streams.iter().map(|stream| session.far_stop_sending(*stream).expect("alive").bytes).sum();
    let allowed = most * (clock::monotonic_now().since(start) + Duration::from_millis(20));
    assert!(sent <= allowed, "{sent} of {allowed}");
    assert!(sent >= most * Duration::from_millis(100), "{sent}");
}

#[test]
fn load_connections_take_no_slots_and_end_with_their_session() {
    let one = NonZeroUsize::new(1).expect("not zero");
    let server = TestServer::start(ServerOptions { max_sessions: one, ..ServerOptions::default() });
    let mut session = GreedySession::open(server.address);
    for _ in 0..3 {
        session.add_load().expect("memory");
    }
    assert_eq!(ClientRun::against(server.address, exact(1000)).code(), Some(ErrorCode::ACCESS_DENIED));
    let GreedySession { control, loads, .. } = session;
    drop(control);
    server.find(|news| matches!(news, super::support::ServerNews::Idle(2)).then_some(()));
    assert_eq!(server.resources.held(), ByteCount::ZERO);
    for mut load in loads {
        // The connection ends by a reset, after some data.
        let mut sink = [0; 8 << 10];
        while load.read(&mut sink).is_ok_and(|count| count > 0) {}
    }
    ClientRun::against(server.address, exact(1000)).successful();
}
