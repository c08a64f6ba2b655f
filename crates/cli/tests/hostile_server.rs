//! Hostile clients against our server: whatever one of them does, it gets a clear answer, costs bounded memory and time,
//! leaves nothing behind, and delays nobody else.

#[cfg(feature = "auth")]
#[path = "hostile_server/authentication.rs"]
mod authentication;
#[path = "hostile_server/control.rs"]
mod control;
#[path = "hostile_server/documents.rs"]
mod documents;
#[path = "hostile_server/streams.rs"]
mod streams;
mod support;
#[path = "hostile_server/udp.rs"]
mod udp;
#[path = "support/wire.rs"]
mod wire;

use std::time::{Duration, Instant};

use support::process::eventually;
use support::{Program, Server};
use wire::{Client, Holdings, SOON, Said, TCP, state};

/// An honest client is let in and told to open its streams within this time, whoever else is connected.
const AT_ONCE: Duration = Duration::from_millis(100);

/// No hostile client makes the server hold more memory than this, in KiB. Idle, it holds about 5 MiB.
const MEMORY_LIMIT: u64 = 16 << 10;

/// Whether what `attempt` does takes so little time. The machine may have other things to do for a moment: a server that
/// is held up is so each time.
#[track_caller]
fn at_once(mut attempt: impl FnMut() -> Duration) {
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        fastest = fastest.min(attempt());
        if fastest < AT_ONCE {
            return;
        }
    }
    panic!("a client was served after {fastest:?}");
}

/// A server that must come through its test unharmed.
struct Target {
    server: Server,
    port: u16,
    idle: Holdings,
    memory_limit: u64,
    since: Instant,
}

impl Target {
    fn start(arguments: &[&str]) -> Self {
        let since = Instant::now();
        let server = Server::start(Program::Linerate, arguments);
        let idle = Holdings::of(server.process.id());
        Self { port: server.port, server, idle, memory_limit: MEMORY_LIMIT, since }
    }

    fn id(&self) -> u32 {
        self.server.process.id()
    }

    /// An honest client is served now.
    #[track_caller]
    fn serves_at_once(&self) {
        at_once(|| self.time_to_serve());
    }

    fn time_to_serve(&self) -> Duration {
        let start = Instant::now();
        // A server for one client at a time refuses others until it has noticed that the last one is gone.
        while start.elapsed() < SOON {
            let mut client = Client::connect(self.port);
            match client.control.said() {
                Said::State(state::PARAM_EXCHANGE) => {}
                Said::State(state::ACCESS_DENIED) => continue,
                other => panic!("an honest client was told {other:?}"),
            }
            client.control.send_document(TCP);
            client.expect(state::CREATE_STREAMS);
            return start.elapsed();
        }
        start.elapsed()
    }

    /// Waits until nothing is held for anybody; whether that came true.
    fn is_idle(&self) -> bool {
        eventually(SOON, || Holdings::of(self.id()) == self.idle)
    }

    /// All that came and went has left nothing, and the server still serves and ends when it is told to.
    #[track_caller]
    fn must_be_unharmed(self) {
        self.serves_at_once();
        let id = self.id();
        assert!(self.is_idle(), "idle it held {:?}, now {:?}", self.idle, Holdings::of(id));
        let peak = wire::peak_memory(id).expect("it runs");
        assert!(peak < self.memory_limit, "it has held {peak} KiB");
        self.server.process.signal("INT");
        let end = self.server.process.finish(self.since.elapsed() + SOON).expect_code(0);
        assert!(!end.stderr.contains("panicked"), "{end:#?}");
        let harmful = |character: char| character.is_control() && character != '\n' && character != '\t';
        assert!(!end.stdout.contains(harmful) && !end.stderr.contains(harmful), "control characters: {end:#?}");
    }
}
