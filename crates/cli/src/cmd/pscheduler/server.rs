//! Participant 1 of a transfer: a server for the other participant, until its transfer is over.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use linerate_engine::Error;
use linerate_engine::server::{Server, ServerObserver, ServerOptions, SessionObserver};
use linerate_engine::tls::TlsServer;
use linerate_fleet::pscheduler::{RunInput, SpecValues, TestKind, throughput_result};
use linerate_model::event::TestEvent;
use linerate_model::parameters::CpuIndex;
use linerate_model::report::ServerOutput;
use linerate_report::iperf3_json::Iperf3Document;
use linerate_sys::{host, process};
use linerate_units::Port;
use linerate_wire::cookie::AdmissionKey;
use serde_json::{Value, json};

use super::Performance;
use crate::cmd::tls::TlsArguments;
use crate::iperf3::help;

/// Access to the server, as the data of participant 1 has it.
pub(super) fn access(run: &RunInput) -> Result<(Port, AdmissionKey), String> {
    let data = run.participant_data.get(1).unwrap_or(&Value::Null);
    let port = data.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok()).and_then(Port::new);
    let key = data.get("_key").and_then(Value::as_str).and_then(AdmissionKey::from_text);
    port.zip(key).ok_or_else(|| "the data of participant 1 has no \"port\" and \"_key\" of a linerate".to_owned())
}

/// Serves the source's transfer.
pub(super) fn run_destination(run: &RunInput, tls: &TlsArguments) -> Performance {
    let (port, key) = match access(run) {
        Ok(access) => access,
        Err(reason) => return Performance::failed(reason),
    };
    let spec = &run.request.test.values;
    let server = match tls.server_of_peers().and_then(|tls| start(spec, Some(port), Some(key), tls)) {
        Ok(server) => server,
        Err(reason) => return Performance::failed(reason),
    };
    let diagnostics = format!("linerate {} served on port {port}", env!("CARGO_PKG_VERSION"));
    let document = server.wait();
    let outcome = match (document, run.request.test.kind) {
        (Err(reason), _) => Err(reason),
        (Ok(_), TestKind::Diagnose) => Ok(json!({ "schema": 1, "succeeded": true })),
        (Ok(document), _) => throughput_result(&document, interval(spec), &diagnostics),
    };
    Performance { outcome, diagnostics }
}

/// Length of the intervals that a result has.
pub(super) fn interval(spec: &SpecValues) -> Duration {
    spec.interval.unwrap_or(Duration::from_secs(1))
}

/// Version in documents of iperf3's format.
pub(super) fn iperf3_version() -> String {
    format!("iperf {}", help::IPERF3_PROFILE)
}

/// A server in a thread, which ends with the process.
pub(super) struct RunningServer {
    /// Port on which it listens.
    pub(super) port: Option<Port>,
    ended: mpsc::Receiver<Result<Value, String>>,
}

impl RunningServer {
    /// Waits until a transfer is over; returns its document in iperf3's format.
    pub(super) fn wait(&self) -> Result<Value, String> {
        self.ended.recv().unwrap_or_else(|_| Err("the server ended without a transfer".to_owned()))
    }
}

/// Starts the server.
pub(super) fn start(
    spec: &SpecValues,
    port: Option<Port>,
    key: Option<AdmissionKey>,
    tls: Option<Arc<TlsServer>>,
) -> Result<RunningServer, String> {
    // Each session has its own threads; an arena per thread would keep its memory for ever.
    process::limit_malloc_arenas();
    let options = ServerOptions {
        port,
        admission: key,
        tls,
        interval_by_client: true,
        cpu: spec.server_cpu_affinity.map(CpuIndex),
        ..ServerOptions::default()
    };
    let server =
        Server::bind(options).map_err(|error| error.advice().map_or_else(|| error.to_string(), str::to_owned))?;
    let port = Port::new(server.address().port());
    // A transfer and the failures of others before it.
    let (sender, ended) = mpsc::sync_channel(1);
    thread::spawn(move || {
        if let Err(error) = server.run(None, &PluginServer { ended: sender.clone() }) {
            let _ = sender.try_send(Err(error.to_string()));
        }
    });
    Ok(RunningServer { port, ended })
}

/// Observer whose first finished transfer is the result.
struct PluginServer {
    ended: SyncSender<Result<Value, String>>,
}

impl ServerObserver for PluginServer {
    fn idle(&self, _next_session: u64) {}

    fn session(&self, _number: u64) -> Box<dyn SessionObserver> {
        let document = Iperf3Document::new(&iperf3_version(), &host::system_information());
        Box::new(PluginSession { document, is_started: false, error: None, ended: self.ended.clone() })
    }

    fn problem(&self, _text: &str) {}
}

struct PluginSession {
    document: Iperf3Document,
    /// True after the transfer's start: what ends before it is a client that looks for the server.
    is_started: bool,
    error: Option<String>,
    ended: SyncSender<Result<Value, String>>,
}

impl SessionObserver for PluginSession {
    fn event(&mut self, event: &TestEvent) {
        self.is_started |= matches!(event, TestEvent::Started(_));
        self.document.event(event);
    }

    fn output(&mut self) -> Option<ServerOutput> {
        None
    }

    fn failed(&mut self, error: &Error) {
        self.error = Some(error.advice().map_or_else(|| error.to_string(), str::to_owned));
    }
}

impl Drop for PluginSession {
    fn drop(&mut self) {
        if !self.is_started {
            return;
        }
        let document = self.error.take().map_or_else(
            || serde_json::from_str(&self.document.clone().finish()).map_err(|cause| cause.to_string()),
            Err,
        );
        // Only the first one counts.
        let _ = self.ended.try_send(document);
    }
}
