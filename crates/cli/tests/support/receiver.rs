//! OpenTelemetry receiver: reads requests with OpenTelemetry's types, and answers as the test has it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_export::ID_ATTRIBUTE;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;

use crate::support::process::eventually;

/// Request of a client.
pub(crate) struct Arrival {
    pub(crate) endpoint: String,
    /// Headers, with names in lower case.
    pub(crate) headers: HashMap<String, String>,
    /// Identities of the results in it.
    pub(crate) ids: Vec<String>,
    /// Bodies of the log records.
    pub(crate) bodies: Vec<String>,
    pub(crate) at: Instant,
}

/// Answer: a status with further headers, or `None` for a connection that ends without one.
pub(crate) type Answer = Option<(u16, &'static str)>;

pub(crate) const ACCEPTED: Answer = Some((200, ""));

type Behaviour = Arc<dyn Fn(&Arrival) -> Answer + Send + Sync>;

/// Receiver on a port of loopback. Dropping it closes the port.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    arrivals: Arc<Mutex<Vec<(Arrival, Answer)>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts at a port; 0 is any free one.
    pub(crate) fn start(port: u16, behaviour: impl Fn(&Arrival) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(port, behaviour, |client| Some(Box::new(client)))
    }

    /// As [`Receiver::start`], with a layer between the connection and HTTP.
    pub(crate) fn start_with(
        port: u16,
        behaviour: impl Fn(&Arrival) -> Answer + Send + Sync + 'static,
        layer: impl Fn(TcpStream) -> Option<Box<dyn ReadWrite>> + Send + 'static,
    ) -> Self {
        let mut listener = None;
        // A program that another test has just started holds an earlier listener at this port for a moment.
        eventually(Duration::from_secs(60), || {
            listener = TcpListener::bind(("127.0.0.1", port)).ok();
            listener.is_some()
        });
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (arrivals, stop) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let (behaviour, kept, stopped): (Behaviour, _, _) =
            (Arc::new(behaviour), Arc::clone(&arrivals), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let client = client.expect("a client");
                client.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
                if let Some(client) = layer(client) {
                    answer(client, &behaviour, &kept);
                }
            }
        });
        Self { port, arrivals, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Results whose log records and metrics were accepted, in order; one that came twice is there twice.
    pub(crate) fn accepted(&self, endpoint: &str) -> Vec<String> {
        self.look(|arrivals| {
            let accepted =
                arrivals.iter().filter(|(arrival, answer)| arrival.endpoint == endpoint && *answer == ACCEPTED);
            accepted.flat_map(|(arrival, _)| arrival.ids.clone()).collect()
        })
    }

    /// Looks at all arrivals.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[(Arrival, Answer)]) -> T) -> T {
        look(&self.arrivals.lock().expect("no panic"))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the receiver could not read a request");
        }
    }
}

/// Stream of a client.
pub(crate) trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

fn answer(client: Box<dyn ReadWrite>, behaviour: &Behaviour, kept: &Mutex<Vec<(Arrival, Answer)>>) {
    let mut client = BufReader::new(client);
    // A client that refuses a certificate ends.
    let Some(arrival) = read(&mut client) else { return };
    let answer = behaviour(&arrival);
    kept.lock().expect("no panic").push((arrival, answer));
    if let Some((status, headers)) = answer {
        let text = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}");
        let _ = client.get_mut().write_all(text.as_bytes()).and_then(|()| client.get_mut().flush());
    }
}

fn read(client: &mut impl BufRead) -> Option<Arrival> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let endpoint = lines.first()?.split(' ').nth(1)?.to_owned();
    let headers: HashMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    client.read_exact(&mut body).ok()?;
    let (ids, bodies) = match endpoint.rsplit('/').next()? {
        "logs" => logs(&body),
        "metrics" => (metrics(&body), Vec::new()),
        other => panic!("{other}"),
    };
    Some(Arrival { endpoint, headers, ids, bodies, at: Instant::now() })
}

/// Identities and bodies of the log records.
fn logs(body: &[u8]) -> (Vec<String>, Vec<String>) {
    let request: ExportLogsServiceRequest = serde_json::from_slice(body).expect("OTLP");
    let records = request.resource_logs.iter().flat_map(|one| &one.scope_logs).flat_map(|one| &one.log_records);
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        other => panic!("{other:?}"),
    };
    let of = |record: &opentelemetry_proto::tonic::logs::v1::LogRecord| {
        let id = record.attributes.iter().find(|attribute| attribute.key == ID_ATTRIBUTE).expect("an identity");
        let id = text(id.value.clone().and_then(|value| value.value));
        (id, text(record.body.clone().and_then(|body| body.value)))
    };
    records.map(of).unzip()
}

/// Times of the results, of which the tests make the identities.
fn metrics(body: &[u8]) -> Vec<String> {
    let request: ExportMetricsServiceRequest = serde_json::from_slice(body).expect("OTLP");
    let all = request.resource_metrics.iter().flat_map(|one| &one.scope_metrics).flat_map(|one| &one.metrics);
    let results = all.filter(|metric| metric.name == "linerate.results");
    let points = results.flat_map(|metric| match metric.data.as_ref() {
        Some(opentelemetry_proto::tonic::metrics::v1::metric::Data::Sum(sum)) => sum.data_points.clone(),
        other => panic!("{other:?}"),
    });
    points.map(|point| format!("goodput/a/b/{}", point.time_unix_nano)).collect()
}
