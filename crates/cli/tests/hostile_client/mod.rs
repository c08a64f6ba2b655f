//! Tests of our client against hostile servers: the client ends in time with an error that describes the cause, uses
//! bounded memory, and writes no harmful server text to the terminal.

mod answers;
mod extension;
mod results;
mod streams;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use crate::support::process::eventually;
use crate::support::wire::{self, Listener, Served, Step, error, state};
use crate::support::{FinishedChild, Process, Program, free_port};

/// Largest memory of the client in KiB against any hostile server, without the pages of the program. In a test of a second it
/// uses about 7 MiB.
const MEMORY_LIMIT: u64 = 16 << 10;

/// Time in which a client ends after it has detected an error, including its start: less than its shortest time limit.
const PROMPT: Duration = Duration::from_secs(9);

/// Longest time in which the memory of a client is observed.
const WATCH_LIMIT: Duration = Duration::from_secs(120);

const CLOSED: &str = "control socket has closed unexpectedly";
const UNKNOWN: &str = "received an unknown control message (ensure other side is iperf3 and not iperf)";
const TERMINATED: &str = "the server has terminated";
const NO_RESULTS: &str = "unable to receive results";

/// Client against a hostile server.
struct Attack {
    arguments: Vec<String>,
    /// Server behaviour, for the error message of the test.
    what: String,
    limit: Duration,
    memory_limit: u64,
}

impl Attack {
    /// Uses a client with `arguments`.
    fn on(arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { arguments, what: String::new(), limit: PROMPT, memory_limit: MEMORY_LIMIT }
    }

    /// Describes the attack by these bytes.
    fn with(self, bytes: &[u8]) -> Self {
        Self { what: String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned(), ..self }
    }

    fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs the client against `serve`; its result, for example connections, is retained until the client has ended.
    #[track_caller]
    fn by<T>(&self, serve: impl FnOnce(&Arc<Listener>) -> T) -> FinishedChild {
        let listener = Listener::new(free_port());
        let client = self.start(listener.port);
        let id = client.id();
        let watcher = std::thread::spawn(move || {
            let mut peak = 0;
            eventually(WATCH_LIMIT, || match wire::own_peak_memory(id) {
                Some(now) => {
                    peak = now;
                    false
                }
                None => true,
            });
            peak
        });
        let kept = serve(&listener);
        let end = client.finish(self.limit);
        drop(kept);
        let peak = watcher.join().expect("no panic");
        assert!(peak < self.memory_limit, "{}: it has held {peak} KiB: {end:#?}", self.what);
        check_output(&end);
        end
    }

    /// Runs the client, which must end with this error.
    #[track_caller]
    fn fails<T>(&self, text: &str, serve: impl FnOnce(&Arc<Listener>) -> T) {
        let end = self.by(serve).expect_code(1);
        let expected = format!("iperf3: error - {text}");
        assert!(
            end.stderr.lines().any(|line| line.starts_with(&expected)),
            "{}: not {expected:?}: {end:#?}",
            self.what
        );
    }

    fn start(&self, port: u16) -> Process {
        let port = port.to_string();
        let mut arguments = vec!["-c", "127.0.0.1", "-p", &port];
        arguments.extend(self.arguments.iter().map(String::as_str));
        Process::start(Program::Linerate.with(&arguments))
    }
}

/// Checks that the output has no terminal control sequences.
#[track_caller]
fn check_output(end: &FinishedChild) {
    assert!(!end.stderr.contains("panicked"), "{end:#?}");
    for text in [&end.stdout, &end.stderr] {
        let harmful = text.chars().find(|&character| character.is_control() && character != '\n' && character != '\t');
        assert_eq!(harmful, None, "{end:#?}");
    }
}

/// Arguments of an ordinary test that is short for all steps after [`Step::Running`], and long enough for that one.
fn arguments_for(step: Step) -> [&'static str; 2] {
    if step <= Step::Running { ["-t", "5"] } else { ["-n1K", "-l1K"] }
}

/// Error of the client for this byte, if the server then closes; `None` for the valid one.
fn answer_to(byte: u8, step: Step) -> Option<&'static str> {
    let right = match step {
        Step::Cookie => state::PARAM_EXCHANGE,
        Step::Parameters => state::CREATE_STREAMS,
        Step::Streams => state::TEST_START,
        Step::Running => return Some(unknown_message_error(byte)),
        Step::Ended => state::EXCHANGE_RESULTS,
        Step::Results => {
            return Some(if matches!(byte, 0xFE | 0x0B) { unknown_message_error(byte) } else { NO_RESULTS });
        }
        Step::Display => state::DISPLAY_RESULTS,
    };
    match byte {
        _ if byte == right => None,
        // The client has identified itself as a linerate.
        state::EXTENSION if step == Step::Cookie => Some(CLOSED),
        _ => Some(unknown_message_error(byte)),
    }
}

fn unknown_message_error(byte: u8) -> &'static str {
    match byte {
        state::SERVER_ERROR => CLOSED,
        state::SERVER_TERMINATE => TERMINATED,
        state::ACCESS_DENIED => "the server is busy running a test. try again later",
        _ => UNKNOWN,
    }
}

fn every_byte_at(step: Step) {
    for byte in 0..=u8::MAX {
        let Some(text) = answer_to(byte, step) else { continue };
        Attack::on(&arguments_for(step)).fails(text, |listener| {
            let mut client = listener.client_at(step);
            // Where a document is expected, the byte is part of its length.
            client.control.send(if step == Step::Results { vec![byte.max(2); 4] } else { vec![byte] });
            if matches!(byte, state::SERVER_ERROR | state::EXTENSION) {
                client.close_control();
            }
            client
        });
    }
}

#[test]
fn every_byte_before_the_test() {
    for step in [Step::Cookie, Step::Parameters, Step::Streams] {
        every_byte_at(step);
    }
}

#[test]
fn every_byte_in_and_after_the_test() {
    for step in [Step::Running, Step::Ended, Step::Results, Step::Display] {
        every_byte_at(step);
    }
}

#[test]
fn a_premature_state() {
    Attack::on(&["-t", "1"]).fails(UNKNOWN, |listener| {
        let mut client = listener.client();
        client.control.send([state::PARAM_EXCHANGE, state::CREATE_STREAMS, state::TEST_START, state::TEST_RUNNING]);
        client
    });
    Attack::on(&["-t", "1"]).fails(UNKNOWN, |listener| {
        let mut client = listener.client_at(Step::Streams);
        client.control.send([state::TEST_START, state::TEST_RUNNING, state::EXCHANGE_RESULTS]);
        client
    });
}

#[test]
fn errors_with_odd_numbers() {
    for (code, errno, texts) in [
        (0, 0, "no error"),
        (149, 5, "int_errno=149: Input/output error"),
        (-1, -1, "int_errno=-1"),
        (i32::MIN, i32::MIN, "int_errno=-2147483648"),
        (i32::MAX, i32::MAX, "int_errno=2147483647: Unknown error 2147483647"),
        (121, 0, "the server is busy running a test. try again later"),
        (142, 9, "test authorization failed"),
    ] {
        for step in Step::ALL {
            let end = Attack::on(&arguments_for(step)).by(|listener| {
                let mut client = listener.client_at(step);
                client.control.send(error(code, errno));
                client
            });
            for prefix in ["iperf3: SERVER ERROR - ", "iperf3: error - "] {
                let expected = format!("{prefix}{texts}");
                assert!(end.stderr.lines().any(|line| line == expected), "{expected} at {step:?}: {end:#?}");
            }
            assert_eq!(end.code(), Some(1));
        }
    }
    let json = Attack::on(&["-J", "-t", "5"]).by(|listener| {
        let mut client = listener.client_at(Step::Running);
        client.control.send(error(-7, -7));
        client
    });
    assert_eq!(json.json()["error"], "int_errno=-7");
}

#[test]
fn the_end_of_the_connection_at_every_step() {
    for step in Step::ALL {
        let attack = Attack::on(&arguments_for(step));
        attack.fails(CLOSED, |listener| {
            let client = listener.client_at(step);
            client.close_control();
            client
        });
        attack.fails(CLOSED, |listener| {
            let client = listener.client_at(step);
            client.control.0.shutdown(std::net::Shutdown::Write).expect("connected");
            client
        });
        attack.fails(CLOSED, |listener| {
            let mut client = listener.client_at(step);
            client.control.send([state::SERVER_ERROR, 0, 0]);
            client.close_control();
            client
        });
    }
    // Unread data of the client makes this a reset.
    for (step, byte) in [(Step::Cookie, state::PARAM_EXCHANGE), (Step::Ended, state::EXCHANGE_RESULTS)] {
        Attack::on(&arguments_for(step)).fails(CLOSED, |listener| {
            let mut client = listener.client_at(step);
            client.control.send([byte]);
            client.control.reset();
        });
    }
}

/// Reads and discards the client's data on its first stream.
fn drain(client: &Served) {
    let mut stream = client.streams[0].try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
}
