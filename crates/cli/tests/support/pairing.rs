//! Test between two programs: a one-off server, and a client.

use std::fmt;
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{FinishedChild, Process, Program, Server};

/// Client and server programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pairing {
    pub(crate) client: Program,
    pub(crate) server: Program,
}

impl fmt::Display for Pairing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} -> {:?}", self.client, self.server)
    }
}

/// All four pairings; the stock iperf3 with itself is the control: linerate need not do more.
pub(crate) const PAIRINGS: [Pairing; 4] = [
    Pairing { client: Program::Linerate, server: Program::Linerate },
    Pairing { client: Program::Linerate, server: Program::Iperf3 },
    Pairing { client: Program::Iperf3, server: Program::Linerate },
    Pairing { client: Program::Iperf3, server: Program::Iperf3 },
];

/// Longest time of a short test on a busy host.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// Results of a client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) pairing: Pairing,
    pub(crate) client: FinishedChild,
    pub(crate) server: FinishedChild,
}

/// Options of a pair.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run<'a> {
    /// Address of the server; `None`: 127.0.0.1.
    pub(crate) host: Option<&'a str>,
    pub(crate) client: &'a [&'a str],
    pub(crate) server: &'a [&'a str],
    /// Environment of the client.
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl Run<'_> {
    /// Runs a client against a server that ends after it, and returns when both have ended.
    pub(crate) fn run(&self, pairing: Pairing) -> Pair {
        let _permit = Permit::take();
        let mut arguments = vec!["-1"];
        arguments.extend_from_slice(self.server);
        let server = Server::start(pairing.server, &arguments);
        let mut client: Command = server.client_of(self.host.unwrap_or("127.0.0.1"), pairing.client, self.client);
        client.envs(self.environment.iter().copied());
        let client = Process::start(client).finish(LIMIT);
        if client.code() != Some(0) {
            // A server that waits for a test that never came has no result.
            let seen = (server.process.stdout(), server.process.stderr());
            panic!("{pairing}: {client:#?}\nits server so far: {}{}", seen.0, seen.1);
        }
        let server = server.finish(LIMIT * 2);
        assert_eq!(server.code(), Some(0), "{pairing}: {server:#?}");
        Pair { pairing, client, server }
    }

    /// Runs all four pairings, and passes each result to `check`.
    pub(crate) fn in_all_pairings(&self, check: impl Fn(&Pair) + Sync) {
        self.in_pairings(&PAIRINGS, check);
    }

    /// Runs `pairings` concurrently, and passes each result to `check`.
    pub(crate) fn in_pairings(&self, pairings: &[Pairing], check: impl Fn(&Pair) + Sync) {
        std::thread::scope(|scope| {
            for pairing in pairings {
                scope.spawn(|| undisturbed(|| check(&self.run(*pairing))));
            }
        });
    }
}

/// Retries `attempt` when it fails, up to three times in total. Real programs are compared in real time here, and a
/// busy host can spoil any single run; a real error occurs each time.
pub(crate) fn undisturbed<T>(mut attempt: impl FnMut() -> T) -> T {
    for _ in 1..3 {
        if let Ok(done) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut attempt)) {
            return done;
        }
    }
    attempt()
}

/// Permission to load the host: a few tests at a time are faster than one after another, without disturbing each other.
struct Permit;

/// Concurrent pairs.
const MAX_CONCURRENT_PAIRS: usize = 3;

static FREE: Mutex<usize> = Mutex::new(MAX_CONCURRENT_PAIRS);
static RETURNED: Condvar = Condvar::new();

impl Permit {
    fn take() -> Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = RETURNED.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        RETURNED.notify_one();
    }
}
