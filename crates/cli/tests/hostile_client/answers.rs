//! Servers that omit expected messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::free_port;
use crate::support::process::eventually;

use super::wire::{Listener, PeerMessage, REPLY_TIMEOUT, SERVER_RESULTS, Served, Step, framed, state};
use super::{Attack, NO_RESULTS, arguments_for, check_output};

/// Waits until the client has read everything, then presses Ctrl-C.
fn interrupts(arguments: &[&str], what: &str, serve: impl FnOnce(&Arc<Listener>) -> Served) {
    let listener = Listener::new(free_port());
    let client = Attack::on(arguments).start(listener.port);
    let mut served = serve(&listener);
    served.wait_until_read();
    client.signal("INT");
    let end = client.finish(REPLY_TIMEOUT).expect_code(0);
    assert!(end.stderr.contains("interrupt - the client has terminated by signal Interrupt(2)"), "{what}: {end:#?}");
    check_output(&end);
    // An unread message of the extension may precede it.
    let told = eventually(REPLY_TIMEOUT, || {
        matches!(served.control.next_message(), PeerMessage::State(state::CLIENT_TERMINATE) | PeerMessage::Closed)
    });
    assert!(told, "{what}");
}

#[test]
fn ctrl_c_ends_a_client_of_a_silent_server() {
    for step in Step::ALL {
        interrupts(&arguments_for(step), &format!("{step:?}"), |listener| listener.client_at(step));
    }
    for arguments in [&["-u"][..], &["-u", "-R"], &["-u", "--bidir"]] {
        interrupts(arguments, "UDP handshake", |listener| {
            let mut client = listener.client_at(Step::Parameters);
            client.control.send([state::CREATE_STREAMS]);
            client
        });
    }
    for arguments in [&["-R", "-n", "1G"][..], &["-n", "1G"], &["-t", "0"]] {
        interrupts(arguments, "a stalled stream", |listener| listener.client_at(Step::Running));
    }
    interrupts(&["-t", "5"], "half of a hello", |listener| {
        let mut client = listener.client();
        client.control.send(b"L\0\0\x10\0{\"hello\":");
        client
    });
}

/// Server that is silent or slow although it waits for nothing.
#[derive(Clone, Copy, Debug)]
enum Silence {
    /// At this step.
    At(Step),
    /// Between 01 and 02.
    Start,
    /// In the middle of an error message.
    Error,
    /// In the middle of the results.
    HalfResults,
    /// Results at one byte per second.
    SlowResults,
    /// In the middle of the hello.
    HalfHello,
}

impl Silence {
    /// Error, and the seconds until it: a time limit of the client, or later on a busy host, and before the next one.
    fn end(self) -> (&'static str, std::ops::Range<u64>) {
        const NO_MESSAGE: &str = "unable to receive control message";
        match self {
            Self::At(Step::Results) | Self::HalfResults => (NO_RESULTS, 10..30),
            Self::SlowResults => (NO_RESULTS, 30..60),
            Self::Error | Self::HalfHello => (NO_MESSAGE, 10..30),
            Self::At(_) | Self::Start => (NO_MESSAGE, 60..120),
        }
    }

    fn serve(self, listener: &Arc<Listener>) -> Served {
        let mut client = match self {
            Self::At(step) => listener.client_at(step),
            Self::Start => listener.client_at(Step::Streams),
            Self::Error | Self::HalfHello => listener.client(),
            Self::HalfResults | Self::SlowResults => listener.client_at(Step::Results),
        };
        match self {
            Self::At(_) => {}
            Self::Start => client.control.send([state::TEST_START]),
            Self::Error => client.control.send([state::SERVER_ERROR, 0]),
            Self::HalfResults => client.control.send(&framed(SERVER_RESULTS)[..100]),
            Self::HalfHello => client.control.send(b"L\0\0\0\x40{"),
            Self::SlowResults => {
                for byte in &framed(SERVER_RESULTS)[..40] {
                    client.control.send([*byte]);
                    // Until the client has ended.
                    if client.control.next_message_within(Duration::from_secs(1)) == PeerMessage::Closed {
                        break;
                    }
                }
            }
        }
        client
    }
}

#[test]
fn a_missing_answer_ends_the_client() {
    let cases = [
        Silence::At(Step::Ended),
        Silence::At(Step::Results),
        Silence::At(Step::Display),
        Silence::Start,
        Silence::Error,
        Silence::HalfResults,
        Silence::SlowResults,
        Silence::HalfHello,
    ];
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || {
                let (text, due) = case.end();
                let start = Instant::now();
                let attack = Attack::on(&["-n1K", "-l1K"]).within(Duration::from_secs(120));
                attack.fails(text, |listener| case.serve(listener));
                let seconds = start.elapsed().as_secs();
                assert!(due.contains(&seconds), "{case:?}: {text:?} after {seconds} s");
            });
        }
    });
}
