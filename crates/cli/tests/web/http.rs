//! A small HTTP client that shows what arrives.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use linerate_sys::net::{ConnectOptions, connect_tcp};
use serde_json::Value;

/// Longest wait for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Response with its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines
            .find_map(|line| line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)))
            .map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Connection from `source` to a port of this host.
pub(crate) fn connect_from(source: [u8; 4], port: u16) -> TcpStream {
    let remote = SocketAddr::from(([127, 0, 0, 1], port));
    let options = ConnectOptions { bind: Some((source, 0).into()), ..ConnectOptions::to(remote) };
    let stream = connect_tcp(&options, None).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time limit");
    stream
}

pub(crate) fn connect(port: u16) -> TcpStream {
    connect_from([127, 0, 0, 1], port)
}

/// Sends a request with these headers, each with its line end, and this body.
pub(crate) fn send(stream: &mut TcpStream, start: &str, headers: &str, body: &[u8]) {
    let port = stream.peer_addr().expect("connected").port();
    let head = format!("{start} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("sent");
}

/// Reads the head of a response; `None` when the connection ended.
pub(crate) fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).expect("text"))
}

/// Reads a response; `None` when the connection ended before it was complete.
pub(crate) fn receive(stream: &mut TcpStream) -> Option<Answer> {
    let head = read_head(stream)?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: Vec::new() };
    let length = answer.header("content-length").map_or(0, |length| length.parse().expect("a number"));
    answer.body = vec![0; length];
    stream.read_exact(&mut answer.body).ok()?;
    Some(answer)
}

/// Sends a request on a new connection and returns its answer.
#[track_caller]
pub(crate) fn ask(port: u16, start: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = connect(port);
    send(&mut stream, start, headers, body);
    receive(&mut stream).unwrap_or_else(|| panic!("no answer to {start}"))
}

#[track_caller]
pub(crate) fn get(port: u16, path: &str) -> Answer {
    ask(port, &format!("GET {path}"), "", b"")
}

/// Opens a session and returns its answer.
#[track_caller]
pub(crate) fn open_session(port: u16) -> Value {
    let answer = ask(port, "POST /api/session", "", b"");
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

#[track_caller]
pub(crate) fn token(session: &Value) -> String {
    session["session"].as_str().expect("a token").to_owned()
}

/// Downloads for `time`, or until the end; returns the bytes after the head.
pub(crate) fn download(port: u16, token: &str, time: Duration) -> u64 {
    let mut stream = connect(port);
    send(&mut stream, &format!("GET /api/download?session={token}"), "Connection: close\r\n", b"");
    read_for(&mut stream, time, Duration::ZERO)
}

/// Reads a response to its end, or for `time`, with a pause after each read; returns the bytes of its body.
pub(crate) fn read_for(stream: &mut TcpStream, time: Duration, pause: Duration) -> u64 {
    let head = read_head(stream).expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (begin, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; 64 << 10]);
    while begin.elapsed() < time {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => bytes += count as u64,
            _ => break,
        }
        std::thread::sleep(pause);
    }
    bytes
}

/// Uploads for `time`, or until the server ends it; returns the bytes that the kernel took.
pub(crate) fn upload(port: u16, token: &str, time: Duration) -> u64 {
    let mut stream = connect(port);
    let head = format!(
        "POST /api/upload?session={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 99999999999\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let (begin, mut bytes, block) = (Instant::now(), 0, vec![7; 64 << 10]);
    while begin.elapsed() < time {
        match stream.write(&block) {
            Ok(count @ 1..) => bytes += count as u64,
            _ => break,
        }
    }
    bytes
}

/// Claims of a browser with this number of round trips in each phase.
pub(crate) fn claims(count: u64) -> String {
    let list = |time: u64| (0..count).map(|at| format!("[{at},{time}]")).collect::<Vec<_>>().join(",");
    format!("{{\"round_trips\":{{\"idle\":[{}],\"down\":[{}],\"up\":[{}]}}}}", list(1000), list(2000), list(41_000))
}

#[track_caller]
pub(crate) fn finish(port: u16, token: &str, claims: &str) -> Answer {
    ask(port, &format!("POST /api/result?session={token}"), "", claims.as_bytes())
}
