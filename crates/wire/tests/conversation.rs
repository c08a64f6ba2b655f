//! The conversation as captured from iperf3, and both machines with each other, in virtual time.

mod common;

use std::time::Duration;

use common::{
    CLIENT_RESULTS, COOKIE, Client, ClientStep, PARAMETERS, SERVER_RESULTS, Server, ServerStep, at, entropy, results,
};
use linerate_model::parameters::{Direction, EndCondition, Protocol, TestParameters};
use linerate_model::sample::IntervalReport;
use linerate_units::{BitRate, ByteCount, MonotonicTime, StreamCount};
use linerate_wire::Deadlines;
use linerate_wire::client::{self, ClientMachine};
use linerate_wire::cookie::Cookie;
use linerate_wire::error::ErrorCode;
use linerate_wire::extension::{End, Hello, MARKER, Message};
use linerate_wire::failure::Failure;
use linerate_wire::frame;
use linerate_wire::parameters::{self, ParametersExtra, ServerLimits};
use linerate_wire::server::{self, ServerMachine};

#[test]
fn the_client_speaks_as_captured() {
    let parameters = TestParameters { end: EndCondition::Bytes(ByteCount::new(307_200)), ..TestParameters::default() };
    let extra = ParametersExtra { client_version: "3.21+", ..ParametersExtra::default() };
    let document = parameters::encode(&parameters, &extra);
    assert_eq!(document, PARAMETERS);

    let mut client = Client::stock();
    assert_eq!(client.receive(&[9]), [client::Output::ParametersWanted { peer: None }]);
    let sent = client.give(client::Input::Parameters(document));
    assert_eq!(sent, [client::Output::Send([b"\x00\x00\x00\x81", PARAMETERS.as_bytes()].concat())]);
    assert_eq!(client.receive(b"\n"), [client::Output::OpenStreams]);
    assert_eq!(client.give(client::Input::StreamsOpen), []);
    assert_eq!(client.receive(b"\x01\x02"), [client::Output::Prepare, client::Output::Run]);
    assert_eq!(client.give(client::Input::TestOver), [client::Output::Send(vec![4])]);
    assert_eq!(client.receive(b"\r"), [client::Output::ResultsWanted]);
    let sent = client.give(client::Input::Results(results(CLIENT_RESULTS)));
    assert_eq!(sent, [client::Output::Send([b"\x00\x00\x01.", CLIENT_RESULTS.as_bytes()].concat())]);
    let last = client.receive(&[b"\x00\x00\x015", SERVER_RESULTS.as_bytes(), b"\x0e"].concat());
    let peer = Box::new(results(SERVER_RESULTS));
    assert_eq!(last, [client::Output::PeerResults(peer), client::Output::Send(vec![0x10]), client::Output::Finished]);
    assert_eq!(client.give(client::Input::Closed), []);
}

#[test]
fn the_server_speaks_as_captured() {
    let mut server = Server::new(&Cookie::from_bytes(*COOKIE));
    let hello = Some(Hello::new(&[]));
    assert_eq!(server.give(server::Input::Admit { hello }), [server::Output::Send(b"\t".to_vec())]);
    let outputs = server.receive(&[b"\x00\x00\x00\x81", PARAMETERS.as_bytes()].concat());
    let [server::Output::Parameters(received)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(received.parameters.end, EndCondition::Bytes(ByteCount::new(307_200)));
    assert_eq!(received.client_version.as_deref(), Some("3.21+"));
    assert_eq!(server.give(server::Input::Accept), [server::Output::Send(b"\n".to_vec())]);
    let started = server.give(server::Input::StreamsOpen);
    assert_eq!(started, [server::Output::Send(vec![1, 2]), server::Output::Run]);
    assert_eq!(server.receive(&[4]), [server::Output::EndRequested]);
    assert_eq!(server.give(server::Input::StreamsStopped), [server::Output::Send(b"\r".to_vec())]);
    let outputs = server.receive(&[b"\x00\x00\x01.", CLIENT_RESULTS.as_bytes()].concat());
    let peer = Box::new(results(CLIENT_RESULTS));
    assert_eq!(outputs, [server::Output::PeerResults(peer), server::Output::ResultsWanted]);
    let sent = server.give(server::Input::Results(results(SERVER_RESULTS)));
    assert_eq!(sent, [server::Output::Send([b"\x00\x00\x015", SERVER_RESULTS.as_bytes(), b"\x0e"].concat())]);
    assert_eq!(server.receive(&[0x10]), [server::Output::Finished]);
}

/// Both machines over a path that delivers `piece` bytes at a time, `delay` after they were sent.
struct Pair {
    client: ClientMachine,
    server: ServerMachine,
    now: MonotonicTime,
    delay: Duration,
    piece: usize,
    parameters: TestParameters,
    hello: Option<Hello>,
    log: Vec<&'static str>,
    far: Vec<Message>,
    received: Option<parameters::ReceivedParameters>,
}

impl Pair {
    fn new(cookie: Cookie, piece: usize) -> Self {
        let parameters = TestParameters {
            protocol: Protocol::Udp,
            direction: Direction::Bidirectional,
            parallel: StreamCount::new(3),
            block_size: ByteCount::new(1448),
            rate: Some(BitRate::from_bits_per_second(1e6)),
            ..TestParameters::default()
        };
        Self {
            client: ClientMachine::new(&cookie, parameters.total_streams(), Deadlines::default()),
            server: ServerMachine::new(&cookie, ServerLimits::default(), Deadlines::default()),
            now: at(0),
            delay: Duration::from_millis(1),
            piece,
            parameters,
            hello: Some(Hello::new(&["interval", "end"])),
            log: Vec::new(),
            far: Vec::new(),
            received: None,
        }
    }

    fn run(&mut self) {
        let Some(client::Output::Send(cookie)) = self.client.poll() else { panic!("the cookie comes first") };
        assert_eq!(cookie.len(), 37);
        self.server.handle(self.now, server::Input::Admit { hello: self.hello.clone() });
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
                server::Output::Send(bytes) => {
                    self.log.push("server sends");
                    for piece in bytes.chunks(self.piece) {
                        self.client.handle(self.now + self.delay, client::Input::Bytes(piece));
                    }
                    continue;
                }
                server::Output::Parameters(received) => {
                    self.log.push("parameters");
                    self.received = Some(*received);
                    server::Input::Accept
                }
                server::Output::Run => {
                    self.log.push("server runs");
                    let streams = Vec::new();
                    let (start, end) = (Duration::ZERO, Duration::from_secs(1));
                    server::Input::Extension(Message::Interval(IntervalReport { start, end, omitted: false, streams }))
                }
                server::Output::EndRequested => {
                    self.log.push("server stops");
                    self.server.handle(self.now, server::Input::StreamsStopped);
                    server::Input::Extension(Message::End(End::default()))
                }
                server::Output::PeerResults(_) => {
                    self.log.push("client's results");
                    continue;
                }
                server::Output::ResultsWanted => server::Input::Results(results(SERVER_RESULTS)),
                server::Output::Finished => {
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
                client::Output::Send(bytes) => {
                    self.log.push("client sends");
                    for piece in bytes.chunks(self.piece) {
                        self.server.handle(self.now + self.delay, server::Input::Bytes(piece));
                    }
                    continue;
                }
                client::Output::ParametersWanted { peer } => {
                    self.log.push(if peer.is_some() { "hello" } else { "admitted" });
                    let linerate = peer.is_some();
                    let extra = ParametersExtra { client_version: "3.21", linerate, ..ParametersExtra::default() };
                    client::Input::Parameters(parameters::encode(&self.parameters, &extra))
                }
                client::Output::OpenStreams => {
                    self.log.push("streams");
                    // Two data connections later.
                    self.server.handle(self.now, server::Input::StreamsOpen);
                    client::Input::StreamsOpen
                }
                client::Output::Prepare => continue,
                client::Output::Run => {
                    self.log.push("client runs");
                    self.now = self.now + Duration::from_secs(3600);
                    client::Input::TestOver
                }
                client::Output::ResultsWanted => client::Input::Results(results(CLIENT_RESULTS)),
                client::Output::PeerResults(_) => {
                    self.log.push("server's results");
                    continue;
                }
                client::Output::Far(message) => {
                    self.log.push("far");
                    self.far.push(*message);
                    continue;
                }
                client::Output::Finished => {
                    self.log.push("client finished");
                    continue;
                }
                client::Output::Failed(failure) => panic!("{failure} after {:?}", self.log),
            };
            self.client.handle(self.now, input);
        }
    }
}

#[test]
fn a_stock_client_and_our_server_finish_whatever_the_pieces() {
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
        let received = pair.received.expect("parameters came");
        assert_eq!(received.parameters, pair.parameters);
        assert_eq!(received.linerate_version, None);
        assert!(pair.far.is_empty(), "a stock client is told nothing else");
    }
}

#[test]
fn two_linerates_tell_each_other_more() {
    for piece in [1, 5, 1000] {
        let mut pair = Pair::new(Cookie::linerate(entropy()), piece);
        pair.run();
        assert_eq!(pair.log[1], "hello");
        assert_eq!(pair.log.last(), Some(&"server finished"));
        assert!(matches!(pair.far[..], [Message::Interval(_), Message::End(_)]), "{:?}", pair.far);
        let received = pair.received.expect("parameters came");
        assert_eq!(received.linerate_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(received.parameters, pair.parameters);
    }
}

#[test]
fn a_linerate_that_is_told_to_be_silent_is_a_stock_server() {
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
    let hello = Some(Hello::new(&[]));
    assert_eq!(server.give(server::Input::Admit { hello }), [server::Output::Send(vec![9])]);
}

#[test]
fn a_client_waits_for_a_queueing_server_as_long_as_it_takes() {
    for step in [ClientStep::Admission, ClientStep::Acceptance, ClientStep::TestStart, ClientStep::TestEnd] {
        let mut client = Client::reach(step);
        assert_eq!(client.machine.deadline(), None, "{step:?}");
        client.now = at(1_000_000);
        assert_eq!(client.give(client::Input::Tick), [], "{step:?}");
        let outputs = client.take(step);
        assert!(!outputs.iter().any(|output| matches!(output, client::Output::Failed(_))), "{outputs:?}");
    }
}

#[test]
fn a_client_that_is_queued_waits_without_a_deadline_on_the_server_too() {
    for step in [ServerStep::Admission, ServerStep::Decision, ServerStep::Streams, ServerStep::TestEnd] {
        let mut server = Server::reach(step);
        assert_eq!(server.machine.deadline(), None, "{step:?}");
        server.now = at(1_000_000);
        assert_eq!(server.give(server::Input::Tick), [], "{step:?}");
    }
}

#[test]
fn a_busy_server_says_so() {
    let mut server = Server::reach(ServerStep::Admission);
    assert_eq!(server.give(server::Input::Refuse), [server::Output::Send(vec![0xFF])]);
    assert!(server.machine.is_over());
    let outputs = Client::stock().receive(&[0xFF]);
    assert_eq!(outputs, [client::Output::Failed(Failure::Busy)]);
    assert_eq!(Failure::Busy.to_string(), "the server is busy running a test. try again later");
}

#[test]
fn a_failed_authentication_is_told() {
    let mut server = Server::reach(ServerStep::Decision);
    let outputs = server.give(server::Input::Reject(ErrorCode::AUTHORIZATION));
    let message = vec![0xFE, 0, 0, 0, 142, 0, 0, 0, 0];
    let gave_up = server::Output::Failed(Failure::GaveUp(ErrorCode::AUTHORIZATION));
    assert_eq!(outputs, [server::Output::Send(message.clone()), gave_up]);
    let outputs = Client::reach(ClientStep::Acceptance).receive(&message);
    let expected = Failure::ServerError { code: ErrorCode::AUTHORIZATION, errno: 0 };
    assert_eq!(outputs, [client::Output::Failed(expected)]);
}

/// Captured from iperf3 3.18: it refuses a user with the number alone, and closes.
#[test]
fn an_error_message_cut_short_after_its_number_still_tells() {
    let mut client = Client::reach(ClientStep::Acceptance);
    assert_eq!(client.receive(&[0xFE, 0, 0, 0, 0x8E]), []);
    let expected = Failure::ServerError { code: ErrorCode::AUTHORIZATION, errno: 0 };
    assert_eq!(client.give(client::Input::Closed), [client::Output::Failed(expected)]);

    let mut client = Client::reach(ClientStep::Acceptance);
    assert_eq!(client.receive(&[0xFE, 0, 0, 0]), []);
    let outputs = client.give(client::Input::Closed);
    assert!(
        matches!(outputs[..], [client::Output::Failed(Failure::ClosedUnexpectedly { .. })]),
        "half a number tells nothing: {outputs:?}"
    );
}

#[test]
fn signals_are_told_at_every_step() {
    for step in ClientStep::ALL {
        let mut client = Client::reach(step);
        let expected = if step == ClientStep::Over { vec![] } else { vec![client::Output::Send(vec![0x0C])] };
        assert_eq!(client.give(client::Input::Interrupted), expected, "{step:?}");
        assert_eq!(client.give(client::Input::Closed), [], "{step:?}");
    }
    for step in ServerStep::ALL {
        let mut server = Server::reach(step);
        let expected = if step == ServerStep::Over { vec![] } else { vec![server::Output::Send(vec![0x0B])] };
        assert_eq!(server.give(server::Input::Terminate), expected, "{step:?}");
        assert_eq!(server.give(server::Input::Closed), [], "{step:?}");
    }
}

#[test]
fn a_server_can_give_up_at_every_step() {
    for step in ServerStep::ALL.into_iter().filter(|step| *step != ServerStep::Over) {
        let mut server = Server::reach(step);
        let outputs = server.give(server::Input::Fail(ErrorCode::TEST_DURATION_EXPIRED));
        let gave_up = server::Output::Failed(Failure::GaveUp(ErrorCode::TEST_DURATION_EXPIRED));
        assert_eq!(outputs, [server::Output::Send(vec![0xFE, 0, 0, 0, 160, 0, 0, 0, 0]), gave_up], "{step:?}");
    }
}

#[test]
fn a_client_that_leaves_without_a_last_byte_is_finished_all_the_same() {
    let mut server = Server::reach(ServerStep::Done);
    assert_eq!(server.give(server::Input::Closed), [server::Output::Finished]);
    let mut server = Server::reach(ServerStep::Done);
    assert_eq!(server.machine.deadline(), Some(at(60)));
    server.now = at(60);
    assert_eq!(server.give(server::Input::Tick), [server::Output::Finished]);
}

#[test]
fn inputs_out_of_place_change_nothing() {
    for step in ClientStep::ALL {
        let mut client = Client::reach(step);
        let out_of_place = [
            (ClientStep::OwnParameters, client::Input::Parameters(PARAMETERS.to_owned())),
            (ClientStep::TestEnd, client::Input::TestOver),
            (ClientStep::OwnResults, client::Input::Results(results(CLIENT_RESULTS))),
        ];
        for (_, input) in out_of_place.into_iter().filter(|(place, _)| *place != step) {
            assert_eq!(client.give(input), [], "{step:?}");
        }
    }
    for step in ServerStep::ALL {
        let mut server = Server::reach(step);
        let out_of_place = [
            (ServerStep::Admission, server::Input::Admit { hello: None }),
            (ServerStep::Admission, server::Input::Refuse),
            (ServerStep::Decision, server::Input::Accept),
            (ServerStep::Decision, server::Input::Reject(ErrorCode::AUTHORIZATION)),
            (ServerStep::Streams, server::Input::StreamsOpen),
            (ServerStep::Stopping, server::Input::StreamsStopped),
            (ServerStep::OwnResults, server::Input::Results(results(SERVER_RESULTS))),
        ];
        for (_, input) in out_of_place.into_iter().filter(|(place, _)| *place != step) {
            assert_eq!(server.give(input), [], "{step:?}");
        }
        let end = server::Input::Extension(Message::End(End::default()));
        assert_eq!(server.give(end), [], "a stock client is told nothing");
    }
}

#[test]
fn the_extension_may_come_wherever_the_client_waits() {
    let mut client = Client::linerate();
    let hello = Message::Hello(Hello::new(&["end"]));
    let end = Message::End(End::default());
    let wanted = client.receive(&hello.encode());
    assert!(matches!(&wanted[..], [client::Output::ParametersWanted { peer: Some(_) }]), "{wanted:?}");
    for step in ClientStep::ALL.into_iter().filter(|step| (ClientStep::OwnParameters..ClientStep::Over).contains(step))
    {
        let far = client.receive(&end.encode());
        assert_eq!(far, [client::Output::Far(Box::new(end.clone()))], "{step:?}");
        client.take(step);
    }
    assert!(client.machine.is_over());
}

#[test]
fn the_extension_is_unknown_to_who_did_not_ask_for_it() {
    for step in ClientStep::ALL.into_iter().filter(|step| *step != ClientStep::Over) {
        let mut client = Client::reach(step);
        let outputs = client.receive(&[MARKER, 0, 0, 0]);
        let [client::Output::Failed(failure)] = &outputs[..] else { panic!("{step:?}: {outputs:?}") };
        let code = if step == ClientStep::PeerResults { 117 } else { 110 };
        assert_eq!(failure.code(), ErrorCode(code), "{step:?}: {failure}");
    }
}

#[test]
fn broken_messages_of_the_extension() {
    let message = |text: &str| [&[MARKER][..], &frame::encode(text)].concat();
    let second_hello = [Message::Hello(Hello::new(&[])).encode(), Message::Hello(Hello::new(&[])).encode()].concat();
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
        let Some(client::Output::Failed(failure)) = outputs.last() else { panic!("{outputs:?}") };
        assert_eq!(failure.code(), ErrorCode::UNKNOWN_MESSAGE, "{failure}");
    }
}
