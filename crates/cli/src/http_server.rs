//! HTTP server of metrics, for scrapers that poll every few seconds: few requests at once, none of them long.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use linerate_export::HttpRequest;
use linerate_sys::clock::monotonic_now;

/// Time in which a client sends its request, and takes each part of the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest request in bytes.
const MAX_REQUEST_SIZE: usize = 8 << 10;
/// Largest number of requests that are answered at once; later ones are refused.
const MAX_REQUESTS: usize = 16;

/// Content type of Prometheus' text format.
pub(crate) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN_TYPE: &str = "text/plain; charset=utf-8";

/// Answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HttpResponse {
    pub(crate) status: &'static str,
    kind: &'static str,
    pub(crate) body: String,
}

impl HttpResponse {
    pub(crate) const fn metrics(body: String) -> Self {
        Self { status: "200 OK", kind: METRICS_TYPE, body }
    }

    pub(crate) const fn html(body: String) -> Self {
        Self { status: "200 OK", kind: "text/html; charset=utf-8", body }
    }

    /// Refusal, with its reason.
    pub(crate) fn refusal(status: &'static str, reason: &str) -> Self {
        Self { status, kind: PLAIN_TYPE, body: format!("{reason}\n") }
    }
}

/// Server that answers with a function. It runs until the process ends.
#[derive(Debug)]
pub(crate) struct HttpServer {
    /// Listening address.
    pub(crate) address: SocketAddr,
}

impl HttpServer {
    pub(crate) fn start(
        address: SocketAddr,
        answer: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let answer = Arc::new(answer);
        let active = Arc::new(AtomicUsize::new(0));
        thread::Builder::new().name("http".to_owned()).spawn(move || {
            for client in listener.incoming() {
                // A client that disconnects or sends an invalid request affects only itself.
                let Ok(mut client) = client else { continue };
                let Some(slot) = RequestSlot::take(&active) else {
                    let _ = refuse(&mut client);
                    continue;
                };
                let answer = Arc::clone(&answer);
                let request = move || {
                    let _ = serve(&mut client, &*answer);
                    // A client that sees the end finds a free slot.
                    drop(slot);
                    drop(client);
                };
                // Without a thread, the client finds its connection closed.
                let _ = thread::Builder::new().name("http-request".to_owned()).spawn(request);
            }
        })?;
        Ok(Self { address })
    }
}

/// One of [`MAX_REQUESTS`].
struct RequestSlot(Arc<AtomicUsize>);

impl RequestSlot {
    fn take(active: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |count: usize| (count < MAX_REQUESTS).then_some(count + 1);
        let taken = active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Self(Arc::clone(active)))
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Refuses without waiting for the request.
fn refuse(client: &mut TcpStream) -> io::Result<()> {
    client.set_nonblocking(true)?;
    let refusal = HttpResponse::refusal("503 Service Unavailable", "too many requests at once");
    client.write_all(message(&refusal, true).as_bytes())
}

fn serve(client: &mut TcpStream, answer: &dyn Fn(&HttpRequest) -> HttpResponse) -> io::Result<()> {
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let request = HttpRequest::parse(&read_request(client)?);
    let response = match request.method.as_str() {
        "GET" | "HEAD" => answer(&request),
        _ => HttpResponse::refusal("405 Method Not Allowed", "only GET and HEAD are supported"),
    };
    client.write_all(message(&response, request.method != "HEAD").as_bytes())
}

/// Reads up to the end of the headers. A client has a time for all of it, however it divides its bytes.
fn read_request(client: &mut TcpStream) -> io::Result<String> {
    let deadline = monotonic_now() + CLIENT_TIMEOUT;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST_SIZE {
        let left = deadline.since(monotonic_now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut buffer)? {
            0 => break,
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

fn message(response: &HttpResponse, with_body: bool) -> String {
    let HttpResponse { status, kind, body } = response;
    let length = body.len();
    let body = if with_body { body.as_str() } else { "" };
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &HttpServer, request: &str) -> String {
        let mut client = TcpStream::connect(server.address).expect("it listens");
        client.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        // One that was refused unread ends with a reset.
        let _ = client.read_to_end(&mut answer);
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn a_page_is_served() {
        let server = HttpServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), |request| match request.path.as_str() {
            "/metrics" => HttpResponse::metrics("linerate_flows 3\n".to_owned()),
            _ => HttpResponse::refusal("404 Not Found", "the metrics are at /metrics"),
        })
        .expect("loopback");
        let page = ask(&server, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nlinerate_flows 3\n"), "{page}");
        assert!(page.contains("\r\nContent-Length: 17\r\n"), "{page}");
        assert!(ask(&server, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(&server, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(&server, "HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    }

    #[test]
    fn silent_clients_leave_slots_for_others_after_a_while() {
        let server = HttpServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), |_| HttpResponse::metrics(String::new()))
            .expect("loopback");
        let silent: Vec<TcpStream> =
            (0..MAX_REQUESTS).map(|_| TcpStream::connect(server.address).expect("it listens")).collect();
        let refused = ask(&server, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        // Each silent client is disconnected.
        for mut client in silent {
            assert_eq!(client.read(&mut [0]).expect("closed"), 0);
        }
        assert!(ask(&server, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    }
}
