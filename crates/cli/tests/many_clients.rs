//! Tests of many clients at once on one port, and of their isolation.

use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::document::{count, text};
use crate::support::pairing::LIMIT;
use crate::support::process::{assert_some_within, eventually, run};
use crate::support::wire::{self, Holdings, PeerMessage, state};
use crate::support::{FinishedChild, Process, Program, Server};

/// Time limit of a crowd on a small host: less than the 400 s that two hundred tests of two seconds take one by one.
const CROWD_LIMIT: Duration = Duration::from_secs(350);

/// Starts all clients, and waits for them.
fn crowd(clients: impl Iterator<Item = Command>) -> Vec<FinishedChild> {
    let running: Vec<Process> = clients.map(Process::start).collect();
    running.into_iter().map(|client| client.finish(CROWD_LIMIT)).collect()
}

/// Asserts that a client succeeded and moved data.
#[track_caller]
fn assert_served(client: &FinishedChild) {
    assert_eq!(client.code(), Some(0), "{client:#?}");
    let document = client.json();
    assert_eq!(document.get("error"), None, "{client:#?}");
    assert!(count(&document, "/end/sum_received/bytes") > 0, "{client:#?}");
}

/// Stock clients poll their pacing timer: at a thousand polls per second each, 200 of them would saturate a small host.
const PACED: [&str; 7] = ["-J", "-t", "2", "-b", "1M", "--pacing-timer", "50000"];

#[test]
fn two_hundred_stock_clients() {
    let server = Server::start(Program::Linerate, &["-J"]);
    let clients = crowd((0..200).map(|_| server.client(Program::Iperf3, &PACED)));
    assert_eq!(clients.len(), 200);
    clients.iter().for_each(assert_served);
    let ended = server.stop().expect_code(0);
    let documents = ended.documents();
    assert_eq!(documents.len(), 201, "one for each session, and one for the end of the server");
    assert!(documents[..200].iter().all(|document| document.get("error").is_none()));
}

#[test]
fn forty_stock_clients_over_udp() {
    let server = Server::start(Program::Linerate, &[]);
    let clients = crowd((0..40).map(|_| server.client(Program::Iperf3, &[&PACED[..], &["-u", "-l", "1000"]].concat())));
    for client in &clients {
        assert_served(client);
        let document = client.json();
        assert_eq!(count(&document, "/end/sum_received/bytes") % 1000, 0);
        let lost = document.pointer("/end/sum/lost_percent").and_then(serde_json::Value::as_f64);
        assert!(lost.is_some_and(|lost| lost < 20.0), "each has its own stream: {lost:?} % lost");
    }
}

#[test]
fn a_mixed_crowd() {
    let server = Server::start(Program::Linerate, &[]);
    let kinds: [&[&str]; 8] = [
        &[],
        &["-R"],
        &["-u", "-l", "1000"],
        &["-u", "-R", "-l", "1000"],
        &["--bidir"],
        &["-P", "3"],
        &["-u", "--bidir", "-P", "2", "-l", "1000"],
        &["-w", "64K", "-M", "1400", "-N"],
    ];
    let clients = crowd((0..48).map(|number: usize| {
        let program = if number.is_multiple_of(3) { Program::Linerate } else { Program::Iperf3 };
        server.client(program, &[&PACED[..], kinds[number % kinds.len()]].concat())
    }));
    for (number, client) in clients.iter().enumerate() {
        assert_served(client);
        let document = client.json();
        let kind = kinds[number % kinds.len()];
        let streams = document.pointer("/end/streams").and_then(serde_json::Value::as_array).expect("streams").len();
        let expected = match kind {
            ["-P", ..] => 3,
            ["--bidir"] => 2,
            ["-u", "--bidir", ..] => 4,
            _ => 1,
        };
        assert_eq!(streams, expected, "{kind:?}");
    }
    assert!(!server.stop().expect_code(0).stderr.contains("error"));
}

/// Parameters of a client that sends this number of bytes, in one block: the server waits no longer for the rest of it.
fn sending(bytes: usize) -> String {
    let block = wire::with(wire::TCP, "len", &bytes.to_string());
    wire::with(&block, "num", &bytes.to_string())
}

/// Performs a whole test of 1000 bytes at protocol level: a thousand of these take seconds.
fn short_session(port: u16, parameters: &str) {
    let mut client = wire::Client::running(port, parameters, 1);
    client.streams[0].write_all(&[1; 1000]).expect("a stream");
    client.end();
    client.control.send_document(wire::CLIENT_RESULTS.replace("\"bytes\":0", "\"bytes\":1000"));
    let results: serde_json::Value = serde_json::from_str(&client.control.document()).expect("results");
    assert_eq!(count(&results, "/streams/0/bytes"), 1000);
    client.expect(state::DISPLAY_RESULTS);
    client.control.send([state::IPERF_DONE]);
}

#[test]
fn idle_connections_do_not_delay_a_client() {
    let server = Server::start(Program::Linerate, &[]);
    let _idle: Vec<_> = (0..3).map(|_| wire::connection(server.port)).collect();
    // From the first SYN until data may flow.
    assert_some_within(Duration::from_millis(100), || {
        let start = Instant::now();
        drop(wire::Client::running(server.port, wire::TCP, 1));
        start.elapsed()
    });
    // A whole stock client, including its process.
    let client = || run(server.client(Program::Iperf3, &["-n", "1K"]), LIMIT).expect_code(0).elapsed;
    assert_some_within(Duration::from_millis(200), client);
}

#[test]
fn waiting_clients_are_served_one_after_another() {
    let server = Server::start(Program::Linerate, &["--max-sessions", "1", "--queue"]);
    // In the order in which their cookies arrive.
    let mut serving = wire::Client::running(server.port, wire::TCP, 1);
    let with_first = wire::sockets(server.process.id());
    let mut waiting = std::collections::VecDeque::new();
    for number in 1..=4 {
        waiting.push_back(wire::Client::connect(server.port));
        wait_for_connections(&server, with_first + number);
        wire::wait_until_read(server.process.id(), server.port);
    }
    while let Some(mut next) = waiting.pop_front() {
        let early = next.control.next_message_within(Duration::from_millis(50));
        assert_eq!(early, PeerMessage::Nothing, "another client is served");
        drop(serving);
        next.expect(state::PARAM_EXCHANGE);
        serving = next;
    }
    drop(serving);
    // The same with real clients, whose order of arrival is open.
    let start = Instant::now();
    let clients = crowd((0..4_u32).map(|number| {
        let program = if number.is_multiple_of(2) { Program::Iperf3 } else { Program::Linerate };
        server.client(program, &["-t", "1", "-b", "10M", "-J"])
    }));
    clients.iter().for_each(assert_served);
    assert!(start.elapsed() >= Duration::from_secs(4), "one after another: {:?}", start.elapsed());
    for client in &clients {
        if let Some(overlapping) = client.json().pointer("/linerate/overlapping_tests") {
            assert_eq!(overlapping, 0, "no other client at the same time");
        }
    }
}

#[test]
fn a_waiting_client_that_gives_up_does_not_delay_others() {
    let server = Server::start(Program::Linerate, &["--max-sessions", "1", "--queue"]);
    let first = Process::start(server.client(Program::Linerate, &["-t", "3", "-i", "0.1", "-b", "10M"]));
    first.wait_for_output("0.00-", LIMIT);
    let with_first = wire::sockets(server.process.id());
    let gives_up = Process::start(server.client(Program::Iperf3, &["-t", "600", "-b", "10M"]));
    wait_for_connections(&server, with_first + 1);
    let last = Process::start(server.client(Program::Iperf3, &["-t", "1", "-b", "10M"]));
    wait_for_connections(&server, with_first + 2);
    drop(gives_up);
    first.finish(LIMIT).expect_code(0);
    // The second client's test would have taken ten minutes.
    last.finish(LIMIT).expect_code(0);
}

/// Resident memory in KiB once the server has released the resources of all sessions.
#[track_caller]
fn memory_when_idle(server: &Server, idle: Holdings) -> u64 {
    let now = || Holdings::of(server.process.id());
    assert!(eventually(LIMIT, || now() == idle), "{:?}, idle {idle:?}", now());
    server.resident_memory()
}

/// Waits until the server has this number of sockets: one more for each client that waits.
#[track_caller]
fn wait_for_connections(server: &Server, sockets: usize) {
    let held = || wire::sockets(server.process.id());
    assert!(eventually(LIMIT, || held() >= sockets), "{} of {sockets}", held());
}

#[test]
fn memory_after_a_thousand_sessions_is_what_it_was_after_ten() {
    let server = Server::start(Program::Linerate, &[]);
    let idle = Holdings::when_idle(server.process.id());
    let parameters = sending(1000);
    let after = |sessions: usize| {
        (0..sessions).for_each(|_| short_session(server.port, &parameters));
        memory_when_idle(&server, idle)
    };
    let ten = after(10);
    let thousand = after(990);
    assert!(thousand.abs_diff(ten) <= 1024, "{ten} KiB after 10 sessions, {thousand} KiB after 1000");
}

#[test]
fn memory_is_released_after_a_crowd() {
    let server = Server::start(Program::Linerate, &[]);
    let idle = Holdings::when_idle(server.process.id());
    let parameters = sending(1000);
    let crowd = || {
        std::thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| short_session(server.port, &parameters));
            }
        });
        memory_when_idle(&server, idle)
    };
    let first = crowd();
    let later: Vec<u64> = (0..5).map(|_| crowd()).collect();
    let last = later[4];
    assert!(last <= first + 1024, "{first} KiB after a crowd, {last} KiB after six");
}

#[test]
fn overlapping_tests_are_reported_to_both_clients() {
    let server = Server::start(Program::Linerate, &[]);
    let start = |arguments: &[&str]| Process::start(server.client(Program::Linerate, arguments));
    let (json, in_text) = (start(&["-t", "2", "-b", "10M", "-J"]), start(&["-t", "2", "-b", "10M"]));
    let (json, in_text) = (json.finish(LIMIT).expect_code(0), in_text.finish(LIMIT).expect_code(0));
    assert_eq!(count(&json.json(), "/linerate/overlapping_tests"), 1);
    let told = "1 other test ran on this server at the same time";
    assert!(in_text.stdout.contains(told), "{in_text:#?}");
    let alone = run(server.client(Program::Linerate, &["-t", "1", "-b", "10M", "-J"]), LIMIT).expect_code(0);
    assert_eq!(count(&alone.json(), "/linerate/overlapping_tests"), 0);
}

#[test]
fn overlapping_tests_are_reported_in_the_server_output_of_stock_clients() {
    let server = Server::start(Program::Linerate, &[]);
    let clients =
        crowd((0..2).map(|_| server.client(Program::Iperf3, &["-t", "2", "-b", "10M", "--get-server-output", "-J"])));
    for client in clients {
        let document = client.json();
        assert!(text(&document, "/server_output_text").contains("1 other test ran on this server"), "{document:#}");
    }
}

#[test]
fn options_of_one_client_do_not_affect_the_next() {
    let server = Server::start(Program::Linerate, &[]);
    let wanted = run(
        server
            .client(Program::Iperf3, &["-n", "1M", "-J", "--get-server-output", "--repeating-payload", "-T", "title"]),
        LIMIT,
    );
    assert!(text(&wanted.json(), "/server_output_text").contains("Accepted connection"));
    let next = run(server.client(Program::Iperf3, &["-n", "1M", "-J"]), LIMIT).json();
    assert_eq!((next.get("server_output_text"), next.get("title")), (None, None));

    let reverse = wire::with(wire::TCP, "reverse", "true");
    let payload = |parameters: &str| {
        let mut client = wire::Client::running(server.port, parameters, 1);
        let mut payload = [0; 4096];
        client.streams[0].read_exact(&mut payload).expect("data");
        payload
    };
    let digits: Vec<u8> = (b'0'..=b'9').cycle().take(4096).collect();
    assert!(payload(&wire::with(&reverse, "repeating_payload", "1")) == digits[..]);
    let random = payload(&reverse);
    let kinds = random.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(kinds > 200, "without the option the payload is random: {kinds} different bytes");
}

#[test]
fn options_of_one_client_do_not_affect_concurrent_ones() {
    let server = Server::start(Program::Linerate, &[]);
    let wants = Process::start(server.client(Program::Iperf3, &["-t", "2", "-b", "10M", "-J", "--get-server-output"]));
    let plain = Process::start(server.client(Program::Iperf3, &["-t", "2", "-b", "10M", "-J", "-R"]));
    let (wants, plain) = (wants.finish(LIMIT).json(), plain.finish(LIMIT).json());
    assert_eq!(plain.get("server_output_text"), None);
    let output = text(&wants, "/server_output_text");
    assert_eq!(output.matches("Accepted connection").count(), 1, "only its own test: {output}");
    assert!(!output.contains("sender"), "only its own test: {output}");
}

#[test]
fn a_port_stays_open_for_all_socket_options_of_a_client() {
    // iperf3 closes its port for a moment when a client sets -w, -M or -N, and refuses other clients meanwhile.
    let server = Server::start(Program::Linerate, &[]);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            let mut attempts = 0;
            eventually(CROWD_LIMIT, || {
                drop(wire::connection(server.port));
                attempts += 1;
                done.load(std::sync::atomic::Ordering::Relaxed)
            });
            attempts
        });
        for _ in 0..10 {
            run(server.client(Program::Iperf3, &["-n", "1M", "-w", "64K", "-M", "1400", "-N"]), LIMIT).expect_code(0);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(refused.join().expect("no connection was refused") > 10);
    });
}

#[test]
fn a_data_connection_finds_its_session_among_many() {
    let server = Server::start(Program::Linerate, &[]);
    // Both clients may open their streams before either does, and they do so in reverse order.
    let mut first = wire::Client::accepted(server.port, wire::TCP);
    let mut second = wire::Client::accepted(server.port, wire::TCP);
    second.open_stream();
    second.expect_start();
    assert_eq!(first.control.next_message_within(Duration::from_millis(100)), PeerMessage::Nothing);
    first.open_stream();
    first.expect_start();
}
