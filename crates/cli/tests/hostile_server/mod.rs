//! Tests of our server against hostile clients: each gets a defined reply, costs bounded memory and time, leaves
//! nothing behind, and does not delay other clients.

#[cfg(feature = "auth")]
mod authentication;
mod control;
mod documents;
mod streams;
mod udp;

use std::time::{Duration, Instant};

use crate::support::process::{assert_some_within, eventually};
use crate::support::wire::{self, Client, Holdings, PeerMessage, REPLY_TIMEOUT, TCP, state};
use crate::support::{Program, Server};

/// Time in which an honest client is admitted and may open its streams, in spite of other connections.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Time in which the end of a client is noticed, on a busy host: less than the time limits that end its session else.
const PROMPT: Duration = Duration::from_secs(10);

/// Largest memory in KiB that the server uses for any hostile client, beyond its own at the start.
const MEMORY_LIMIT: u64 = 12 << 10;

/// Server that must survive its test unharmed.
struct Target {
    server: Server,
    port: u16,
    idle: Holdings,
    idle_memory: u64,
    memory_limit: u64,
    since: Instant,
}

impl Target {
    fn start(arguments: &[&str]) -> Self {
        let since = Instant::now();
        let server = Server::start(Program::Linerate, arguments);
        let idle = Holdings::when_idle(server.process.id());
        let idle_memory = wire::peak_memory(server.process.id()).expect("it runs");
        Self { port: server.port, server, idle, idle_memory, memory_limit: MEMORY_LIMIT, since }
    }

    fn id(&self) -> u32 {
        self.server.process.id()
    }

    /// Asserts that an honest client is served now.
    #[track_caller]
    fn serves_at_once(&self) {
        assert_some_within(AT_ONCE, || self.time_to_serve());
    }

    /// Serves an honest client beside many streams, which have their share of the processors.
    #[track_caller]
    fn serves(&self) {
        assert!(self.time_to_serve() < REPLY_TIMEOUT);
    }

    fn time_to_serve(&self) -> Duration {
        let start = Instant::now();
        // A server for one client at a time refuses others until it has detected the end of the last one.
        while start.elapsed() < REPLY_TIMEOUT {
            let mut client = Client::connect(self.port);
            match client.control.next_message() {
                PeerMessage::State(state::PARAM_EXCHANGE) => {}
                PeerMessage::State(state::ACCESS_DENIED) => continue,
                other => panic!("an honest client received {other:?}"),
            }
            client.control.send_document(TCP);
            client.expect(state::CREATE_STREAMS);
            return start.elapsed();
        }
        panic!("no client was served within {REPLY_TIMEOUT:?}");
    }

    /// Waits until the server runs this number of streams.
    #[track_caller]
    fn runs_streams(&self, count: usize) {
        let running = || wire::threads_named(self.id(), "stream-");
        assert!(eventually(REPLY_TIMEOUT, || running() >= count), "{} of {count} streams", running());
    }

    /// Waits until the server holds no resources of clients; false on a time-out.
    fn is_idle(&self) -> bool {
        eventually(REPLY_TIMEOUT, || Holdings::of(self.id()) == self.idle)
    }

    /// Asserts that no resources remain, and that the server still serves and stops on request.
    #[track_caller]
    fn must_be_unharmed(self) {
        self.serves_at_once();
        let id = self.id();
        assert!(self.is_idle(), "idle it held {:?}, now {:?}", self.idle, Holdings::of(id));
        let peak = wire::peak_memory(id).expect("it runs");
        let memory = peak - self.idle_memory;
        assert!(memory < self.memory_limit, "it has held {memory} KiB for clients");
        self.server.process.signal("INT");
        let end = self.server.process.finish(self.since.elapsed() + REPLY_TIMEOUT).expect_code(0);
        assert!(!end.stderr.contains("panicked"), "{end:#?}");
        let harmful = |character: char| character.is_control() && character != '\n' && character != '\t';
        assert!(!end.stdout.contains(harmful) && !end.stderr.contains(harmful), "control characters: {end:#?}");
    }
}
