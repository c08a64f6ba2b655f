//! Streams without a session, and streams that end early, stall or are too many.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::support::pairing::LIMIT;
use crate::support::process::eventually;
use crate::support::{Process, Program};

use super::wire::{self, Client, Control, Holdings, PeerMessage, REPLY_TIMEOUT, TCP, UDP, state, with};
use super::{PROMPT, Target};

#[test]
fn excessive_rates() {
    let target = Target::start(&[]);
    for (key, value) in [
        ("bandwidth", "1"),
        ("bandwidth", "9223372036854775807"),
        ("bandwidth", "1,\"burst\":1000"),
        ("bandwidth", "9223372036854775807,\"burst\":1000"),
        ("fqrate", "1"),
        ("fqrate", "9223372036854775807"),
        ("pacing_timer", "0"),
        ("pacing_timer", "9223372036854775807"),
        ("omit", "600"),
        ("time", "86400"),
        ("TOS", "255"),
        ("MSS", "1"),
        ("server_affinity", "0"),
        ("congestion", "\"none such\""),
        ("flowlabel", "1048575"),
        ("zerocopy", "1"),
        ("zerocopy", "9223372036854775807"),
    ] {
        let parameters = with(&with(TCP, "reverse", "true"), key, value);
        let mut client = Client::running(target.port, &parameters, 1);
        target.runs_streams(1);
        target.serves_at_once();
        client.end();
        for len in ["16", "65507"] {
            let parameters = with(&with(&with(UDP, "reverse", "true"), "len", len), key, value);
            let (mut client, _socket) = Client::running_udp(target.port, &parameters);
            target.runs_streams(1);
            client.end();
        }
    }
    target.must_be_unharmed();
}

#[test]
fn streams_without_a_session() {
    let target = Target::start(&["--max-sessions", "1"]);
    let mut client = Client::accepted(target.port, &with(TCP, "parallel", "2"));
    client.open_stream();
    let mut stranger = Client::connect(target.port);
    stranger.expect(state::ACCESS_DENIED);
    assert!(stranger.control.closed_within(REPLY_TIMEOUT), "a wrong cookie");
    let mut changed = client.cookie;
    changed[35] ^= 1;
    Client::connect_with(target.port, changed).expect(state::ACCESS_DENIED);
    client.open_stream();
    client.expect_start();
    let mut third = Client::connect_with(target.port, client.cookie);
    third.expect(state::ACCESS_DENIED);
    client.end();
    drop(client);
    target.must_be_unharmed();
}

#[test]
fn a_stream_from_another_address_is_refused() {
    let target = Target::start(&[]);
    let mut client = Client::accepted(target.port, TCP);
    let remote = (Ipv4Addr::LOCALHOST, target.port).into();
    let connect = linerate_sys::net::ConnectOptions {
        bind: Some((Ipv4Addr::new(127, 0, 0, 2), 0).into()),
        ..linerate_sys::net::ConnectOptions::to(remote)
    };
    let mut stranger = Control(linerate_sys::net::connect_tcp(&connect, None).expect("loopback"));
    stranger.send(client.cookie);
    assert!(stranger.closed_within(REPLY_TIMEOUT), "who only knows the cookie takes no part");
    client.open_stream();
    client.expect_start();
    client.end();
    drop(client);
    target.must_be_unharmed();
}

#[test]
fn streams_that_end_early_end_nothing_else() {
    let target = Target::start(&["--rcv-timeout", "500"]);
    for parameters in [TCP.to_owned(), with(TCP, "reverse", "true")] {
        let mut client = Client::running(target.port, &parameters, 1);
        client.streams.clear();
        target.serves_at_once();
        client.end();
        let mut silent = Client::running(target.port, &parameters, 1);
        silent.streams.clear();
        assert_eq!(silent.control.next_message(), PeerMessage::Error(144), "{parameters}");
    }
    target.must_be_unharmed();
}

#[test]
fn a_killed_client_frees_its_slot_at_once() {
    let target = Target::start(&["--max-sessions", "1"]);
    for options in [&[][..], &["-R"], &["--bidir"], &["-u", "-b", "10M"], &["-u", "-R"], &["-P", "8"], &["-O", "5"]] {
        for point in ["connected", "running"] {
            let client = Process::start(target.server.client(Program::Linerate, &[&["-t", "30"], options].concat()));
            match point {
                "running" => target.runs_streams(1),
                _ => assert!(eventually(REPLY_TIMEOUT, || Holdings::of(target.id()) != target.idle)),
            }
            client.signal("KILL");
            drop(client);
            let waited = target.time_to_serve();
            assert!(waited < PROMPT, "{options:?}, {point}: {waited:?}");
            assert!(target.is_idle(), "{options:?}, {point}: {:?}", Holdings::of(target.id()));
        }
    }
    target.must_be_unharmed();
}

#[test]
fn a_client_that_stops_reading_is_disconnected() {
    // iperf3 holds it for ever: its watchdog ignores senders and tests without a time.
    let target = Target::start(&["--rcv-timeout", "1000"]);
    let endless = with(TCP, "reverse", "true");
    for parameters in [with(&endless, "num", "100000000000"), endless.clone(), with(&endless, "parallel", "4")] {
        let start = Instant::now();
        let count = if parameters.contains("\"parallel\":4") { 4 } else { 1 };
        let mut client = Client::running(target.port, &parameters, count);
        target.serves_at_once();
        assert_eq!(client.control.next_message(), PeerMessage::Error(144), "{parameters}");
        let held = start.elapsed();
        assert!(held >= Duration::from_millis(900), "{held:?}: {parameters}");
        assert!(target.is_idle(), "{:?}", Holdings::of(target.id()));
    }
    target.must_be_unharmed();
}

#[test]
fn a_client_that_does_not_read_its_messages_is_disconnected() {
    // A linerate receives its server's intervals; a client that does not read them must not block the session's thread.
    let target = Target::start(&["--rcv-timeout", "1000", "-i", "0.1"]);
    let mut client = Client::connect_with(target.port, wire::linerate_cookie());
    client.expect(state::EXTENSION);
    client.control.document();
    client.control.send_document(TCP);
    client.expect(state::CREATE_STREAMS);
    client.open_stream();
    // Two state bytes, and the start of an interval.
    let control = &client.control.0;
    assert!(eventually(REPLY_TIMEOUT, || control.peek(&mut [0; 3]).is_ok_and(|count| count == 3)));
    target.serves_at_once();
    assert!(client.control.closed_within(REPLY_TIMEOUT));
    target.must_be_unharmed();
}

#[test]
fn a_rate_limit_over_many_intervals() {
    // iperf3 writes past the end of its history with these.
    let target = Target::start(&["-i", "0.1", "--server-bitrate-limit", "900G/60"]);
    let mut client = Client::running(target.port, &with(TCP, "reverse", "true"), 1);
    target.server.process.wait_for_interval(0.5, LIMIT);
    client.end();
    drop(client);
    let mut greedy = Client::asking(target.port, with(TCP, "bandwidth", "900000000001"));
    assert_eq!(greedy.control.next_message(), PeerMessage::Error(27));
    target.must_be_unharmed();
}

#[test]
fn the_largest_session_has_a_ceiling() {
    // 128 streams is the limit; each has the largest block.
    let mut target = Target::start(&["--rcv-timeout", "1000"]);
    target.memory_limit = 320 << 10;
    let parameters = with(&with(TCP, "parallel", "128"), "len", "1048576");
    for direction in ["reverse", "bidirectional"] {
        let count = if direction == "reverse" { 128 } else { 256 };
        let mut client = Client::running(target.port, &with(&parameters, direction, "true"), count);
        target.runs_streams(count);
        target.serves();
        assert_eq!(client.control.next_message(), PeerMessage::Error(144));
    }
    let parameters = with(&with(UDP, "parallel", "128"), "len", "65507");
    let mut client = Client::accepted(target.port, &with(&with(&parameters, "reverse", "true"), "burst", "1000"));
    let _streams: Vec<_> = (0..128).map(|_| wire::udp_stream(target.port, Ipv4Addr::LOCALHOST)).collect();
    client.expect_start();
    target.runs_streams(128);
    target.serves();
    client.control.send([state::CLIENT_TERMINATE]);
    target.must_be_unharmed();
}
