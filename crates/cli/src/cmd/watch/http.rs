//! Metrics over HTTP: one page, for a scraper that polls every few seconds.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time-out of reads and writes; slower clients are disconnected.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest request in bytes.
const MAX_REQUEST_SIZE: u64 = 8 << 10;

/// Server of the latest metrics. It runs until the process ends.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    text: Arc<Mutex<String>>,
    /// Listening address.
    pub(crate) address: SocketAddr,
}

impl MetricsServer {
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&text);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for client in listener.incoming() {
                // A client that disconnects or sends an invalid request affects only itself.
                let _ = client.and_then(|client| answer(client, &shared));
            }
        })?;
        Ok(Self { text, address })
    }

    /// Replaces the page for the next clients.
    pub(crate) fn publish(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

fn answer(mut client: TcpStream, text: &Mutex<String>) -> io::Result<()> {
    client.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let request = read_request(&client)?;
    let body = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    client.write_all(response(&request, &body).as_bytes())
}

/// Reads the request line; headers are discarded.
fn read_request(client: &TcpStream) -> io::Result<String> {
    let mut lines = BufReader::new(client.take(MAX_REQUEST_SIZE));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    let mut header = String::new();
    while lines.read_line(&mut header)? > 0 && !header.trim_end().is_empty() {
        header.clear();
    }
    Ok(request)
}

fn response(request: &str, metrics: &str) -> String {
    let mut fields = request.split_whitespace();
    let (method, target) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "the metrics are at /metrics\n"),
        _ => ("405 Method Not Allowed", "text/plain", "only GET and HEAD are supported\n"),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { body };
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_is_served() {
        let server = MetricsServer::start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("loopback");
        server.publish("linerate_flows 3\n".to_owned());
        let ask = |request: &str| {
            let mut client = TcpStream::connect(server.address).expect("it listens");
            client.write_all(request.as_bytes()).expect("sent");
            let mut answer = String::new();
            client.read_to_string(&mut answer).expect("answered");
            answer
        };
        let page = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nlinerate_flows 3\n"), "{page}");
        assert!(page.contains("\r\nContent-Length: 17\r\n"), "{page}");
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask("HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    }
}
