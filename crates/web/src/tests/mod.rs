//! The service of the page, in this process: its answers, and its sessions.

mod answers;
mod sessions;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use linerate_documents::run::RunDocument;
use linerate_engine::server::ServerOptions;
use serde_json::Value;

use crate::test_support::{PATIENCE, access};
use crate::{BoundWebService, RunningWebService, WebObserver, WebOptions};

/// Number that the observer gives each run that it keeps.
const KEPT_AS: i64 = 7;

/// Finished tests: number of the session, run, and true when it is to be kept.
#[derive(Default)]
struct Recorder(Mutex<Vec<(u64, RunDocument, bool)>>);

impl Recorder {
    fn runs(&self) -> Vec<(u64, RunDocument, bool)> {
        self.0.lock().expect("no panic").clone()
    }
}

impl WebObserver for Recorder {
    fn finished(&self, number: u64, run: &RunDocument, keeps: bool) -> Option<i64> {
        self.0.lock().expect("no panic").push((number, run.clone(), keeps));
        keeps.then_some(KEPT_AS)
    }

    fn problem(&self, text: &str) {
        panic!("{text}");
    }
}

struct Service {
    address: SocketAddr,
    finished: Arc<Recorder>,
    _running: RunningWebService,
}

impl Service {
    fn start(change: impl FnOnce(&mut WebOptions, &mut ServerOptions)) -> Self {
        let address = Some(Ipv4Addr::LOCALHOST.into());
        let (port, family, device) = (None, None, None);
        let mut options = WebOptions { address, port, family, device, keeps_results: true, shows_history: false };
        let access = access(|server| change(&mut options, server));
        let bound = BoundWebService::bind(options).expect("a free port");
        let (address, finished) = (bound.address(), Arc::<Recorder>::default());
        let running = bound.start(access, Arc::clone(&finished) as _).expect("a thread");
        Self { address, finished, _running: running }
    }

    fn usual() -> Self {
        Self::start(|_, _| ())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream
    }

    /// Sends a request, which ends its connection, with these headers, each with its line end.
    fn send(&self, request: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).expect("sent");
        // A refused body is not read.
        let _ = stream.write_all(body);
        stream
    }

    #[track_caller]
    fn ask(&self, request: &str, headers: &str, body: &[u8]) -> Answer {
        Answer::read(self.send(request, headers, body))
    }

    #[track_caller]
    fn get(&self, target: &str) -> Answer {
        self.ask(&format!("GET {target}"), "", b"")
    }

    /// Opens a session and returns its token.
    #[track_caller]
    fn open(&self) -> String {
        let answer = self.ask("POST /api/session", "", b"");
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["session"].as_str().expect("a token").to_owned()
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an end");
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
        let head = core::str::from_utf8(&bytes[..end]).expect("text").to_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}
