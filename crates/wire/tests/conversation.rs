//! The conversation as captured from iperf3, and both machines with each other, in virtual time.

use std::time::Duration;

use linerate_model::parameters::{EndCondition, TestDirection, TestParameters, TestProtocol};
use linerate_model::sample::IntervalReport;
use linerate_units::{BitRate, ByteCount, MonotonicTime, StreamCount};
use linerate_wire::ControlDeadlines;
use linerate_wire::client::{self, ClientMachine};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::{End, ExtensionMessage, MARKER, ServerHello};
use linerate_wire::failure::ControlFailure;
use linerate_wire::frame;
use linerate_wire::parameters::{self, ParametersExtra, ServerLimits};
use linerate_wire::server::{self, ServerMachine};

use crate::common::{
    CLIENT_RESULTS, COOKIE, Client, ClientStep, PARAMETERS, SERVER_RESULTS, Server, ServerStep, at, entropy, results,
};

#[test]
fn the_client_speaks_as_captured() {
    let parameters = TestParameters { end: EndCondition::Bytes(ByteCount::new(307_200)), ..TestParameters::default() };
    let extra = ParametersExtra { client_version: "3.21+", ..ParametersExtra::default() };
    let document = parameters::encode(&parameters, &extra);
    assert_eq!(document, PARAMETERS);

    let mut client = Client::stock();
    assert_eq!(client.receive(&[9]), [client::ClientAction::ParametersWanted { peer: None }]);
    let sent = client.give(client::ClientEvent::Parameters(document));
    assert_eq!(sent, [client::ClientAction::Send([b"\x00\x00\x00\x81", PARAMETERS.as_bytes()].concat())]);
    assert_eq!(client.receive(b"\n"), [client::ClientAction::OpenStreams]);
    assert_eq!(client.give(client::ClientEvent::StreamsOpen), []);
    assert_eq!(client.receive(b"\x01\x02"), [client::ClientAction::Prepare, client::ClientAction::Run]);
    assert_eq!(client.give(client::ClientEvent::TestOver), [client::ClientAction::Send(vec![4])]);
    assert_eq!(client.receive(b"\r"), [client::ClientAction::ResultsWanted]);
    let sent = client.give(client::ClientEvent::Results(results(CLIENT_RESULTS)));
    assert_eq!(sent, [client::ClientAction::Send([b"\x00\x00\x01.", CLIENT_RESULTS.as_bytes()].concat())]);
    let last = client.receive(&[b"\x00\x00\x015", SERVER_RESULTS.as_bytes(), b"\x0e"].concat());
    let peer = Box::new(results(SERVER_RESULTS));
    assert_eq!(
        last,
        [
            client::ClientAction::PeerResults(peer),
            client::ClientAction::Send(vec![0x10]),
            client::ClientAction::Finished
        ]
    );
    assert_eq!(client.give(client::ClientEvent::Closed), []);
}

#[test]
fn the_server_speaks_as_captured() {
    let mut server = Server::new(&Cookie::from_bytes(*COOKIE));
    let hello = Some(ServerHello::new(&[]));
    assert_eq!(server.give(server::ServerEvent::Admit { hello }), [server::ServerAction::Send(b"\t".to_vec())]);
    let outputs = server.receive(&[b"\x00\x00\x00\x81", PARAMETERS.as_bytes()].concat());
    let [server::ServerAction::Parameters(received)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(received.parameters.end, EndCondition::Bytes(ByteCount::new(307_200)));
    assert_eq!(received.client_version.as_deref(), Some("3.21+"));
    assert_eq!(server.give(server::ServerEvent::Accept), [server::ServerAction::Send(b"\n".to_vec())]);
    let started = server.give(server::ServerEvent::StreamsOpen);
    assert_eq!(started, [server::ServerAction::Send(vec![1, 2]), server::ServerAction::Run]);
    assert_eq!(server.receive(&[4]), [server::ServerAction::EndRequested]);
    assert_eq!(server.give(server::ServerEvent::StreamsStopped), [server::ServerAction::Send(b"\r".to_vec())]);
    let outputs = server.receive(&[b"\x00\x00\x01.", CLIENT_RESULTS.as_bytes()].concat());
    let peer = Box::new(results(CLIENT_RESULTS));
    assert_eq!(outputs, [server::ServerAction::PeerResults(peer), server::ServerAction::ResultsWanted]);
    let sent = server.give(server::ServerEvent::Results(results(SERVER_RESULTS)));
    assert_eq!(sent, [server::ServerAction::Send([b"\x00\x00\x015", SERVER_RESULTS.as_bytes(), b"\x0e"].concat())]);
    assert_eq!(server.receive(&[0x10]), [server::ServerAction::Finished]);
}

/// Both machines over a path that delivers `piece` bytes at a time, `delay` after they were sent.
struct Pair {
    client: ClientMachine,
    server: ServerMachine,
    now: MonotonicTime,
    delay: Duration,
    piece: usize,
    parameters: TestParameters,
    hello: Option<ServerHello>,
    log: Vec<&'static str>,
    far: Vec<ExtensionMessage>,
    received: Option<parameters::ReceivedParameters>,
}

impl Pair {
    fn new(cookie: Cookie, piece: usize) -> Self {
        let parameters = TestParameters {
            protocol: TestProtocol::Udp,
            direction: TestDirection::Bidirectional,
            parallel: StreamCount::new(3),
            block_size: ByteCount::new(1448),
            rate: Some(BitRate::from_bits_per_second(1e6)),
            ..TestParameters::default()
        };
        Self {
            client: ClientMachine::new(at(0), &cookie, parameters.total_streams(), ControlDeadlines::default()),
            server: ServerMachine::new(&cookie, ServerLimits::default(), ControlDeadlines::default()),
            now: at(0),
            delay: Duration::from_millis(1),
            piece,
            parameters,
            hello: Some(ServerHello::new(&["interval", "end"])),
            log: Vec::new(),
            far: Vec::new(),
            received: None,
        }
    }

    fn run(&mut self) {
        let Some(client::ClientAction::Send(cookie)) = self.client.poll() else { panic!("the cookie comes first") };
        assert_eq!(cookie.len(), 37);
        self.server.handle(self.now, server::ServerEvent::Admit { hello: self.hello.clone() });
        while self.log.last() != Some(&"server finished") {
            let before = self.log.len();
            self.poll_server();
            self.poll_client();
            self.now = self.now + self.delay;
            assert!(self.log.len() > before, "stuck after {:?}", self.log);
        }
        assert!(self.client.is_over() && self.server.is_over());
    }

    fn poll_server(&mut self) {
        while let Some(output) = self.server.poll() {
            let input = match output {
                server::ServerAction::Send(bytes) => {
                    self.log.push("server sends");
                    for piece in bytes.chunks(self.piece) {
                        self.client.handle(self.now + self.delay, client::ClientEvent::Bytes(piece));
                    }
                    continue;
                }
                server::ServerAction::Parameters(received) => {
                    self.log.push("parameters");
                    self.received = Some(*received);
                    server::ServerEvent::Accept
                }
                server::ServerAction::Run => {
                    self.log.push("server runs");
                    let streams = Vec::new();
                    let (start, end) = (Duration::ZERO, Duration::from_secs(1));
                    server::ServerEvent::Extension(ExtensionMessage::Interval(IntervalReport {
                        start,
                        end,
                        omitted: false,
                        streams,
                    }))
                }
                server::ServerAction::EndRequested => {
                    self.log.push("server stops");
                    self.server.handle(self.now, server::ServerEvent::StreamsStopped);
                    server::ServerEvent::Extension(ExtensionMessage::End(End::default()))
                }
                server::ServerAction::PeerResults(_) => {
                    self.log.push("client's results");
                    continue;
                }
                server::ServerAction::ResultsWanted => server::ServerEvent::Results(results(SERVER_RESULTS)),
                server::ServerAction::Finished => {
                    self.log.push("server finished");
                    continue;
                }
                other => panic!("{other:?} after {:?}", self.log),
            };
            self.server.handle(self.now, input);
        }
    }

    fn poll_client(&mut self) {
        while let Some(output) = self.client.poll() {
            let input = match output {
                client::ClientAction::Send(bytes) => {
                    self.log.push("client sends");
                    for piece in bytes.chunks(self.piece) {
                        self.server.handle(self.now + self.delay, server::ServerEvent::Bytes(piece));
                    }
                    continue;
                }
                client::ClientAction::ParametersWanted { peer } => {
                    self.log.push(if peer.is_some() { "hello" } else { "admitted" });
                    let linerate = peer.is_some();
                    let extra = ParametersExtra {
                        client_version: "3.21",
                        announces_linerate: linerate,
                        ..ParametersExtra::default()
                    };
                    client::ClientEvent::Parameters(parameters::encode(&self.parameters, &extra))
                }
                client::ClientAction::OpenStreams => {
                    self.log.push("streams");
                    // Two data connections later.
                    self.server.handle(self.now, server::ServerEvent::StreamsOpen);
                    client::ClientEvent::StreamsOpen
                }
                client::ClientAction::Prepare => continue,
                client::ClientAction::Run => {
                    self.log.push("client runs");
                    self.now = self.now + Duration::from_secs(3600);
                    client::ClientEvent::TestOver
                }
                client::ClientAction::ResultsWanted => client::ClientEvent::Results(results(CLIENT_RESULTS)),
                client::ClientAction::PeerResults(_) => {
                    self.log.push("server's results");
                    continue;
                }
                client::ClientAction::Far(message) => {
                    self.log.push("far");
                    self.far.push(*message);
                    continue;
                }
                client::ClientAction::Finished => {
                    self.log.push("client finished");
                    continue;
                }
                client::ClientAction::Failed(failure) => panic!("{failure} after {:?}", self.log),
            };
            self.client.handle(self.now, input);
        }
    }
}

#[test]
fn a_stock_client_and_our_server_finish_with_pieces_of_any_size() {
    for piece in [1, 2, 3, 1000] {
        let mut pair = Pair::new(Cookie::random(entropy()), piece);
        pair.run();
        assert_eq!(
            pair.log,
            [
                "server sends",
                "admitted",
                "client sends",
                "parameters",
                "server sends",
                "streams",
                "server sends",
                "server runs",
                "client runs",
                "client sends",
                "server stops",
                "server sends",
                "client sends",
                "client's results",
                "server sends",
                "server's results",
                "client sends",
                "client finished",
                "server finished"
            ],
            "pieces of {piece}"
        );
        let received = pair.received.expect("parameters were received");
        assert_eq!(received.parameters, pair.parameters);
        assert_eq!(received.linerate_version, None);
        assert!(pair.far.is_empty(), "a stock client receives nothing else");
    }
}

#[test]
fn two_linerates_exchange_extension_messages() {
    for piece in [1, 5, 1000] {
        let mut pair = Pair::new(Cookie::linerate(entropy()), piece);
        pair.run();
        assert_eq!(pair.log[1], "hello");
        assert_eq!(pair.log.last(), Some(&"server finished"));
        assert!(matches!(pair.far[..], [ExtensionMessage::Interval(_), ExtensionMessage::End(_)]), "{:?}", pair.far);
        let received = pair.received.expect("parameters were received");
        assert_eq!(received.linerate_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(received.parameters, pair.parameters);
    }
}

#[test]
fn a_linerate_without_a_hello_is_a_stock_server() {
    let mut pair = Pair::new(Cookie::linerate(entropy()), 1000);
    pair.hello = None;
    pair.run();
    assert_eq!(pair.log[1], "admitted");
    assert!(pair.far.is_empty());
}

#[test]
fn a_later_extension_is_answered_as_by_iperf3() {
    let mut later = *Cookie::linerate(entropy()).as_bytes();
    later[8] = b'b';
    let mut server = Server::new(&Cookie::from_bytes(later));
    let hello = Some(ServerHello::new(&[]));
    assert_eq!(server.give(server::ServerEvent::Admit { hello }), [server::ServerAction::Send(vec![9])]);
}

#[test]
fn a_client_waits_for_a_queueing_server_for_ten_minutes_and_for_its_caller_without_a_limit() {
    for (step, deadline, late) in [
        (ClientStep::Admission, Some(at(600)), 599),
        (ClientStep::Acceptance, Some(at(600)), 599),
        (ClientStep::TestStart, Some(at(600)), 599),
        (ClientStep::TestEnd, None, 1_000_000),
    ] {
        let mut client = Client::reach(step);
        assert_eq!(client.machine.deadline(), deadline, "{step:?}");
        client.now = at(late);
        assert_eq!(client.give(client::ClientEvent::Tick), [], "{step:?}");
        let outputs = client.take(step);
        assert!(!outputs.iter().any(|output| matches!(output, client::ClientAction::Failed(_))), "{outputs:?}");
    }
}

#[test]
fn a_client_that_is_queued_waits_without_a_deadline_on_the_server_too() {
    for step in [ServerStep::Admission, ServerStep::Decision, ServerStep::Streams, ServerStep::TestEnd] {
        let mut server = Server::reach(step);
        assert_eq!(server.machine.deadline(), None, "{step:?}");
        server.now = at(1_000_000);
        assert_eq!(server.give(server::ServerEvent::Tick), [], "{step:?}");
    }
}

#[test]
fn a_busy_server_reports_it() {
    let mut server = Server::reach(ServerStep::Admission);
    assert_eq!(server.give(server::ServerEvent::Refuse), [server::ServerAction::Send(vec![0xFF])]);
    assert!(server.machine.is_over());
    let outputs = Client::stock().receive(&[0xFF]);
    assert_eq!(outputs, [client::ClientAction::Failed(ControlFailure::Busy)]);
    assert_eq!(ControlFailure::Busy.to_string(), "the server is busy running a test. try again later");
}

#[test]
fn a_failed_authentication_is_reported() {
    let mut server = Server::reach(ServerStep::Decision);
    let outputs = server.give(server::ServerEvent::Reject(ErrorCode::AUTHORIZATION));
    let message = vec![0xFE, 0, 0, 0, 142, 0, 0, 0, 0];
    let gave_up = server::ServerAction::Failed(ControlFailure::GaveUp(ErrorCode::AUTHORIZATION));
    assert_eq!(outputs, [server::ServerAction::Send(message.clone()), gave_up]);
    let outputs = Client::reach(ClientStep::Acceptance).receive(&message);
    let expected = ControlFailure::ServerError { code: ErrorCode::AUTHORIZATION, errno: 0 };
    assert_eq!(outputs, [client::ClientAction::Failed(expected)]);
}

/// Captured from iperf3 3.18: it refuses a user with the error number alone, and closes.
#[test]
fn a_truncated_error_message_with_its_number_is_reported() {
    let mut client = Client::reach(ClientStep::Acceptance);
    assert_eq!(client.receive(&[0xFE, 0, 0, 0, 0x8E]), []);
    let expected = ControlFailure::ServerError { code: ErrorCode::AUTHORIZATION, errno: 0 };
    assert_eq!(client.give(client::ClientEvent::Closed), [client::ClientAction::Failed(expected)]);

    let mut client = Client::reach(ClientStep::Acceptance);
    assert_eq!(client.receive(&[0xFE, 0, 0, 0]), []);
    let outputs = client.give(client::ClientEvent::Closed);
    assert!(
        matches!(outputs[..], [client::ClientAction::Failed(ControlFailure::ClosedUnexpectedly { .. })]),
        "half a number is not an error: {outputs:?}"
    );
}

#[test]
fn signals_are_reported_at_every_step() {
    for step in ClientStep::ALL {
        let mut client = Client::reach(step);
        let expected = if step == ClientStep::Over { vec![] } else { vec![client::ClientAction::Send(vec![0x0C])] };
        assert_eq!(client.give(client::ClientEvent::Interrupted), expected, "{step:?}");
        assert_eq!(client.give(client::ClientEvent::Closed), [], "{step:?}");
    }
    for step in ServerStep::ALL {
        let mut server = Server::reach(step);
        let expected = if step == ServerStep::Over { vec![] } else { vec![server::ServerAction::Send(vec![0x0B])] };
        assert_eq!(server.give(server::ServerEvent::Terminate), expected, "{step:?}");
        assert_eq!(server.give(server::ServerEvent::Closed), [], "{step:?}");
    }
}

#[test]
fn a_client_that_fails_notifies_a_server_that_has_accepted_it() {
    for step in ClientStep::ALL {
        let mut client = Client::reach(step);
        let is_notified = !matches!(step, ClientStep::Admission | ClientStep::Over);
        let expected = if is_notified { vec![client::ClientAction::Send(vec![0x10])] } else { vec![] };
        assert_eq!(client.give(client::ClientEvent::Failed), expected, "{step:?}");
        assert_eq!(client.give(client::ClientEvent::Closed), [], "{step:?}");
    }
}

#[test]
fn a_server_can_give_up_at_every_step() {
    for step in ServerStep::ALL.into_iter().filter(|step| *step != ServerStep::Over) {
        let mut server = Server::reach(step);
        let outputs = server.give(server::ServerEvent::Fail(ErrorCode::TEST_DURATION_EXPIRED));
        let gave_up = server::ServerAction::Failed(ControlFailure::GaveUp(ErrorCode::TEST_DURATION_EXPIRED));
        assert_eq!(outputs, [server::ServerAction::Send(vec![0xFE, 0, 0, 0, 160, 0, 0, 0, 0]), gave_up], "{step:?}");
    }
}

#[test]
fn a_client_without_a_last_byte_is_finished() {
    let mut server = Server::reach(ServerStep::Done);
    assert_eq!(server.give(server::ServerEvent::Closed), [server::ServerAction::Finished]);
    let mut server = Server::reach(ServerStep::Done);
    assert_eq!(server.machine.deadline(), Some(at(60)));
    server.now = at(60);
    assert_eq!(server.give(server::ServerEvent::Tick), [server::ServerAction::Finished]);
}

#[test]
fn inputs_out_of_place_change_nothing() {
    for step in ClientStep::ALL {
        let mut client = Client::reach(step);
        let out_of_place = [
            (ClientStep::OwnParameters, client::ClientEvent::Parameters(PARAMETERS.to_owned())),
            (ClientStep::TestEnd, client::ClientEvent::TestOver),
            (ClientStep::OwnResults, client::ClientEvent::Results(results(CLIENT_RESULTS))),
        ];
        for (_, input) in out_of_place.into_iter().filter(|(place, _)| *place != step) {
            assert_eq!(client.give(input), [], "{step:?}");
        }
    }
    for step in ServerStep::ALL {
        let mut server = Server::reach(step);
        let out_of_place = [
            (ServerStep::Admission, server::ServerEvent::Admit { hello: None }),
            (ServerStep::Admission, server::ServerEvent::Refuse),
            (ServerStep::Decision, server::ServerEvent::Accept),
            (ServerStep::Decision, server::ServerEvent::Reject(ErrorCode::AUTHORIZATION)),
            (ServerStep::Streams, server::ServerEvent::StreamsOpen),
            (ServerStep::Stopping, server::ServerEvent::StreamsStopped),
            (ServerStep::OwnResults, server::ServerEvent::Results(results(SERVER_RESULTS))),
        ];
        // A test for which there is no memory is refused when its parameters are known.
        let is_in_place =
            |input: &server::ServerEvent| step == ServerStep::Decision && matches!(input, server::ServerEvent::Refuse);
        for (_, input) in out_of_place.into_iter().filter(|(place, input)| *place != step && !is_in_place(input)) {
            assert_eq!(server.give(input), [], "{step:?}");
        }
        let end = server::ServerEvent::Extension(ExtensionMessage::End(End::default()));
        assert_eq!(server.give(end), [], "a stock client receives nothing");
    }
}

#[test]
fn the_extension_may_come_wherever_the_client_waits() {
    let mut client = Client::linerate();
    let hello = ExtensionMessage::Hello(ServerHello::new(&["end"]));
    let end = ExtensionMessage::End(End::default());
    let wanted = client.receive(&hello.encode());
    assert!(matches!(&wanted[..], [client::ClientAction::ParametersWanted { peer: Some(_) }]), "{wanted:?}");
    for step in ClientStep::ALL.into_iter().filter(|step| (ClientStep::OwnParameters..ClientStep::Over).contains(step))
    {
        let far = client.receive(&end.encode());
        assert_eq!(far, [client::ClientAction::Far(Box::new(end.clone()))], "{step:?}");
        client.take(step);
    }
    assert!(client.machine.is_over());
}

#[test]
fn the_extension_is_an_error_without_a_hello() {
    for step in ClientStep::ALL.into_iter().filter(|step| *step != ClientStep::Over) {
        let mut client = Client::reach(step);
        let outputs = client.receive(&[MARKER, 0, 0, 0]);
        let [client::ClientAction::Failed(failure)] = &outputs[..] else { panic!("{step:?}: {outputs:?}") };
        let code = if step == ClientStep::PeerResults { 117 } else { 110 };
        assert_eq!(failure.code(), ErrorCode(code), "{step:?}: {failure}");
    }
}

#[test]
fn broken_messages_of_the_extension() {
    let message = |text: &str| [&[MARKER][..], &frame::encode(text)].concat();
    let second_hello = [
        ExtensionMessage::Hello(ServerHello::new(&[])).encode(),
        ExtensionMessage::Hello(ServerHello::new(&[])).encode(),
    ]
    .concat();
    for bytes in [
        message("{\"hello\":1}"),
        message("nonsense"),
        message("{\"end\":{\"schema\":1,\"streams\":[]}}"),
        message("{}"),
        vec![MARKER, 0, 0, 0, 0],
        vec![MARKER, 0, 0x10, 0, 1],
        second_hello,
    ] {
        let outputs = Client::linerate().receive(&bytes);
        let Some(client::ClientAction::Failed(failure)) = outputs.last() else { panic!("{outputs:?}") };
        assert_eq!(failure.code(), ErrorCode::UNKNOWN_MESSAGE, "{failure}");
    }
}
