//! Common parts of the tests of the state machines: the captured conversation, and both machines with a clock.

use std::time::Duration;

use linerate_units::{MonotonicTime, StreamCount};
use linerate_wire::ControlDeadlines;
use linerate_wire::client::{self, ClientMachine};
use linerate_wire::cookie::Cookie;
use linerate_wire::extension::{ExtensionMessage, ServerHello};
use linerate_wire::frame;
use linerate_wire::parameters::ServerLimits;
use linerate_wire::results::{self, TestResults};
use linerate_wire::server::{self, ServerMachine};

/// Captured between two iperf3 3.21+ (`-n 300K`).
pub(crate) const COOKIE: &[u8; 37] = b"jv7afkymcliks3dh77m4gbisajna2o3grhkm\0";
pub(crate) const PARAMETERS: &str = r#"{"tcp":true,"omit":0,"time":0,"num":307200,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.21+"}"#;
pub(crate) const CLIENT_RESULTS: &str = r#"{"cpu_util_total":95.653522831629971,"cpu_util_user":95.653522831629971,"cpu_util_system":0,"sender_has_retransmits":1,"congestion_used":"bbr","streams":[{"id":1,"bytes":393216,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.00119}]}"#;
pub(crate) const SERVER_RESULTS: &str = r#"{"cpu_util_total":0.027258809922590738,"cpu_util_user":0,"cpu_util_system":0.027258809922590738,"sender_has_retransmits":-1,"congestion_used":"bbr","streams":[{"id":1,"bytes":393216,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.041819}]}"#;

pub(crate) fn results(document: &str) -> TestResults {
    results::decode(document.as_bytes(), StreamCount::new(1)).expect("captured from iperf3")
}

pub(crate) fn at(seconds: u64) -> MonotonicTime {
    MonotonicTime::default() + Duration::from_secs(seconds)
}

pub(crate) fn entropy() -> [u8; 36] {
    std::array::from_fn(|index| u8::try_from(index * 5 + 1).expect("small"))
}

/// A client's machine, and the time.
pub(crate) struct Client {
    pub(crate) machine: ClientMachine,
    pub(crate) now: MonotonicTime,
}

impl Client {
    pub(crate) fn new(cookie: &Cookie) -> Self {
        let mut client = Self {
            machine: ClientMachine::new(at(0), cookie, StreamCount::new(1), ControlDeadlines::default()),
            now: at(0),
        };
        assert_eq!(client.machine.poll(), Some(client::ClientAction::Send(cookie.as_bytes().to_vec())));
        client
    }

    /// A client that is not a linerate.
    pub(crate) fn stock() -> Self {
        Self::new(&Cookie::from_bytes(*COOKIE))
    }

    pub(crate) fn linerate() -> Self {
        Self::new(&Cookie::linerate(entropy()))
    }

    pub(crate) fn give(&mut self, input: client::ClientEvent<'_>) -> Vec<client::ClientAction> {
        self.machine.handle(self.now, input);
        std::iter::from_fn(|| self.machine.poll()).collect()
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Vec<client::ClientAction> {
        self.give(client::ClientEvent::Bytes(bytes))
    }

    /// Advances to `step` in the normal sequence.
    pub(crate) fn reach(step: ClientStep) -> Self {
        Self::stock().advance(ClientStep::ALL.into_iter().take_while(|next| *next < step))
    }

    /// The same with a server that supports the extension.
    pub(crate) fn reach_with_extension(step: ClientStep) -> Self {
        let mut client = Self::linerate();
        if step == ClientStep::Admission {
            return client;
        }
        client.receive(&ExtensionMessage::Hello(ServerHello::new(&[])).encode());
        let later = ClientStep::ALL.into_iter().filter(|next| *next > ClientStep::Admission);
        client.advance(later.take_while(|next| *next < step))
    }

    fn advance(mut self, steps: impl Iterator<Item = ClientStep>) -> Self {
        for next in steps {
            let outputs = self.take(next);
            assert!(
                !outputs.iter().any(|output| matches!(output, client::ClientAction::Failed(_))),
                "{next:?}: {outputs:?}"
            );
        }
        self
    }

    /// Performs `step` of the normal sequence.
    pub(crate) fn take(&mut self, step: ClientStep) -> Vec<client::ClientAction> {
        match step {
            ClientStep::Admission => self.receive(&[9]),
            ClientStep::OwnParameters => self.give(client::ClientEvent::Parameters(PARAMETERS.to_owned())),
            ClientStep::Acceptance => self.receive(&[10]),
            ClientStep::TestStart => self.receive(&[1]),
            ClientStep::TestRunning => self.receive(&[2]),
            ClientStep::TestEnd => self.give(client::ClientEvent::TestOver),
            ClientStep::ExchangeResults => self.receive(&[13]),
            ClientStep::OwnResults => self.give(client::ClientEvent::Results(results(CLIENT_RESULTS))),
            ClientStep::PeerResults => self.receive(&frame::encode(SERVER_RESULTS)),
            ClientStep::DisplayResults => self.receive(&[14]),
            ClientStep::Over => Vec::new(),
        }
    }
}

/// Steps of a client, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClientStep {
    Admission,
    OwnParameters,
    Acceptance,
    TestStart,
    TestRunning,
    TestEnd,
    ExchangeResults,
    OwnResults,
    PeerResults,
    DisplayResults,
    Over,
}

impl ClientStep {
    pub(crate) const ALL: [Self; 11] = [
        Self::Admission,
        Self::OwnParameters,
        Self::Acceptance,
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ExchangeResults,
        Self::OwnResults,
        Self::PeerResults,
        Self::DisplayResults,
        Self::Over,
    ];

    /// State byte expected at this step.
    pub(crate) fn expected(self) -> Option<u8> {
        match self {
            Self::Admission => Some(9),
            Self::Acceptance => Some(10),
            Self::TestStart => Some(1),
            Self::TestRunning => Some(2),
            Self::ExchangeResults => Some(13),
            Self::DisplayResults => Some(14),
            _ => None,
        }
    }
}

/// A server's machine, and the time.
pub(crate) struct Server {
    pub(crate) machine: ServerMachine,
    pub(crate) now: MonotonicTime,
}

impl Server {
    pub(crate) fn new(cookie: &Cookie) -> Self {
        Self { machine: ServerMachine::new(cookie, ServerLimits::default(), ControlDeadlines::default()), now: at(0) }
    }

    pub(crate) fn give(&mut self, input: server::ServerEvent<'_>) -> Vec<server::ServerAction> {
        self.machine.handle(self.now, input);
        std::iter::from_fn(|| self.machine.poll()).collect()
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Vec<server::ServerAction> {
        self.give(server::ServerEvent::Bytes(bytes))
    }

    /// Advances to `step` in the normal sequence.
    pub(crate) fn reach(step: ServerStep) -> Self {
        let mut server = Self::new(&Cookie::from_bytes(*COOKIE));
        for next in ServerStep::ALL.into_iter().take_while(|next| *next < step) {
            let outputs = server.take(next);
            assert!(
                !outputs.iter().any(|output| matches!(output, server::ServerAction::Failed(_))),
                "{next:?}: {outputs:?}"
            );
        }
        server
    }

    /// Performs `step` of the normal sequence.
    pub(crate) fn take(&mut self, step: ServerStep) -> Vec<server::ServerAction> {
        match step {
            ServerStep::Admission => self.give(server::ServerEvent::Admit { hello: Some(ServerHello::new(&[])) }),
            ServerStep::Parameters => self.receive(&frame::encode(PARAMETERS)),
            ServerStep::Decision => self.give(server::ServerEvent::Accept),
            ServerStep::Streams => self.give(server::ServerEvent::StreamsOpen),
            ServerStep::TestEnd => self.receive(&[4]),
            ServerStep::Stopping => self.give(server::ServerEvent::StreamsStopped),
            ServerStep::PeerResults => self.receive(&frame::encode(CLIENT_RESULTS)),
            ServerStep::OwnResults => self.give(server::ServerEvent::Results(results(SERVER_RESULTS))),
            ServerStep::Done => self.receive(&[16]),
            ServerStep::Over => Vec::new(),
        }
    }
}

/// Steps of a server, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServerStep {
    Admission,
    Parameters,
    Decision,
    Streams,
    TestEnd,
    Stopping,
    PeerResults,
    OwnResults,
    Done,
    Over,
}

impl ServerStep {
    pub(crate) const ALL: [Self; 10] = [
        Self::Admission,
        Self::Parameters,
        Self::Decision,
        Self::Streams,
        Self::TestEnd,
        Self::Stopping,
        Self::PeerResults,
        Self::OwnResults,
        Self::Done,
        Self::Over,
    ];
}
