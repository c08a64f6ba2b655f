//! Hostile clients: each has a defined answer, or an end in time, and costs bounded resources.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::support::process::{assert_some_within, eventually};

use super::WebServer;
use super::http::{PATIENCE, connect, connect_from, get, open_session, receive, send, token};

/// Time in which another client is served in spite of an attack, on a busy host.
const PROMPT: Duration = Duration::from_secs(5);

fn descriptors(server: &WebServer) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.id())).expect("a running server").count()
}

/// Serves a client of another address within [`PROMPT`].
#[track_caller]
fn serves_others(server: &WebServer) {
    assert_some_within(PROMPT, || {
        let begin = Instant::now();
        let mut stream = connect_from([127, 0, 0, 9], server.web);
        send(&mut stream, "POST /api/session", "", b"");
        let answer = receive(&mut stream).expect("an answer");
        assert_eq!(answer.status, 201, "{answer:?}");
        begin.elapsed()
    });
}

#[test]
fn ten_thousand_connections_of_one_address_leave_others_their_share() {
    let server = WebServer::start(&[]);
    let before = (descriptors(&server), server.server.resident_memory());
    let mut held = Vec::new();
    for number in 0..10_000 {
        let stream = connect(server.web);
        // As many as this process may hold; all others are closed at once.
        if number < 700 {
            held.push(stream);
        }
    }
    assert!(
        descriptors(&server) - before.0 <= 512 + 70,
        "half of the connections, and refusals: {}",
        descriptors(&server)
    );
    assert!(server.server.resident_memory() - before.1 < 48 << 10, "{} KiB", server.server.resident_memory());
    serves_others(&server);
    let refused = held.last_mut().and_then(receive);
    assert_eq!(refused.map(|answer| answer.status), Some(503), "the last one is told");
    drop(held);
    assert!(eventually(PATIENCE, || descriptors(&server) <= before.0 + 4), "{}", descriptors(&server));
    server.stop();
}

#[test]
fn slow_headers_silence_and_idle_connections_end_in_time() {
    let server = WebServer::start(&[]);
    let begin = Instant::now();
    let mut silent = connect(server.web);
    let mut idle = connect(server.web);
    send(&mut idle, "GET /getIP", "", b"");
    assert_eq!(receive(&mut idle).expect("an answer").status, 200);
    let mut slow = connect(server.web);
    slow.set_read_timeout(Some(Duration::from_millis(500))).expect("a time limit");
    let mut ended = false;
    for byte in b"GET / HTTP/1.1\r\nX: ".iter().chain([b'a'].iter().cycle()).take(60) {
        let written = slow.write(&[*byte]);
        ended = written.is_err() || matches!(slow.read(&mut [0; 64]), Ok(0));
        if ended {
            break;
        }
    }
    assert!(ended && begin.elapsed() >= Duration::from_secs(10), "{:?}", begin.elapsed());
    for stream in [&mut silent, &mut idle] {
        assert!(matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_)));
        assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    }
    server.stop();
}

#[test]
fn a_download_without_a_reader_and_an_upload_without_data_end() {
    let server = WebServer::start(&["--stall-timeout", "2s"]);
    let before = descriptors(&server);
    let token = token(&open_session(server.web));
    let mut unread = connect(server.web);
    send(&mut unread, "GET /garbage?ckSize=1024", "", b"");
    let mut silent = connect(server.web);
    let head = format!("POST /api/upload?session={token} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    silent.write_all(head.as_bytes()).expect("sent");
    let begin = Instant::now();
    assert!(matches!(silent.read(&mut [0; 64]), Ok(0) | Err(_)));
    assert!((1.5..20.0).contains(&begin.elapsed().as_secs_f64()), "{:?}", begin.elapsed());
    // Of both, only the wakers of the two sessions remain for a while.
    assert!(eventually(PATIENCE, || descriptors(&server) <= before + 3), "{} of {before}", descriptors(&server));
    server.stop();
}

#[test]
fn requests_that_break_the_protocol_or_its_bounds_are_refused() {
    let server = WebServer::start(&[]);
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(100 << 10));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: a\r\n".repeat(100));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(60 << 10));
    for (request, status) in [
        (long.as_str(), 431),
        (&many, 431),
        (&path, 404),
        ("NONSENSE\r\n\r\n", 400),
        ("GET / HTTP/9.9\r\n\r\n", 400),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200),
        ("GET / HTTP/1.0\r\n\r\n", 200),
    ] {
        let mut stream = connect(server.web);
        // The server may answer, and close, before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        let shown: String = request.chars().take(60).collect();
        match receive(&mut stream) {
            Some(answer) => assert_eq!(answer.status, status, "{shown}"),
            None => assert!((400..500).contains(&status) && status != 404, "{shown}"),
        }
    }
    // An endless header and an endless chunked body.
    let mut endless = connect(server.web);
    let mut sent = endless.write(b"GET / HTTP/1.1\r\n").unwrap_or(0);
    while let Ok(count) = endless.write(&[b'x'; 4096]) {
        sent += count;
        assert!(sent < 64 << 20, "the server reads for ever");
    }
    serves_others(&server);
    server.stop();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = WebServer::start(&[]);
    let mut stream = connect(server.web);
    for number in 0..200 {
        let path = if number % 2 == 0 { "/getIP" } else { "/nothing" };
        send(&mut stream, &format!("GET {path}"), "", b"");
    }
    for number in 0..200 {
        assert_eq!(receive(&mut stream).expect("an answer").status, if number % 2 == 0 { 200 } else { 404 });
    }
    // Floods whose answers are not read.
    let mut flood = connect(server.web);
    flood.set_write_timeout(Some(Duration::from_secs(1))).expect("a time limit");
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
    let mut sent = 0;
    while let Ok(count) = flood.write(&request) {
        sent += count;
        assert!(sent < 256 << 20, "the server takes requests whose answers are not read");
    }
    assert!(server.server.resident_memory() < 96 << 10, "{} KiB", server.server.resident_memory());
    serves_others(&server);
    server.stop();
}

#[test]
fn a_stranger_has_no_use_for_the_token_of_another() {
    let server = WebServer::start(&[]);
    let token = token(&open_session(server.web));
    let mut stream = connect_from([127, 0, 0, 9], server.web);
    send(&mut stream, &format!("GET /api/ping?session={token}"), "", b"");
    assert_eq!(receive(&mut stream).expect("an answer").status, 410);
    assert_eq!(get(server.web, &format!("/api/ping?session={token}")).status, 204);
    server.stop();
}
