//! Participant 0 of a transfer: the client, and what limits its transfer.

use std::thread;
use std::time::Duration;

use linerate_documents::diagnose::DiagnoseDocument;
use linerate_documents::label::LabelledDocument;
use linerate_documents::run::RunDocument;
use linerate_engine::Error;
use linerate_engine::client::{self, ClientOptions};
use linerate_engine::diagnose::{self, DiagnoseEvent, DiagnoseOptions, DiagnoseOutcome, PathSource};
use linerate_engine::probe::ProbeTarget;
use linerate_fleet::pscheduler::{
    RunInput, SERVER_WAIT, SpecValues, Specification, TestKind, throughput_result, transfer_options,
};
use linerate_model::json as documents;
use linerate_model::parameters::{CpuIndex, TestParameters, TestProtocol};
use linerate_operate::diagnose::{RunStart, TransferRequest, path_options};
use linerate_report::iperf3_json::Iperf3Document;
use linerate_rules::diagnosis;
use linerate_sys::clock::monotonic_now;
use linerate_sys::host;
use linerate_units::{MonotonicTime, Port};
use linerate_wire::cookie::AdmissionKey;
use linerate_wire::error::ErrorCode;
use serde_json::{Value, json};

use super::server::{self, RunningServer, interval, iperf3_version};
use super::{Performance, endpoints};
use crate::cmd::tls::TlsArguments;
use crate::iperf3;

/// Pause between attempts to reach a server that starts at the same time.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Runs the client.
pub(super) fn run_source(run: &RunInput, begin: MonotonicTime, tls: &TlsArguments) -> Performance {
    match PreparedTransfer::of(run, tls) {
        Ok(prepared) => prepared.run(&run.request.test, begin + SERVER_WAIT),
        Err(reason) => Performance::failed(reason),
    }
}

struct PreparedTransfer {
    target: ProbeTarget,
    parameters: TestParameters,
    options: Vec<String>,
    /// True when the server may be starting.
    waits_for_server: bool,
    /// Server of a test within this host.
    _server: Option<RunningServer>,
}

impl PreparedTransfer {
    fn of(run: &RunInput, tls: &TlsArguments) -> Result<Self, String> {
        let spec = &run.request.test.values;
        let server = if spec.loopback { Some(server::start(spec, None, None, None)?) } else { None };
        let (port, key) = match &server {
            Some(server) => (server.port.ok_or("the server has no port")?, None),
            None => destination(run)?,
        };
        let found = endpoints::find(spec, port)?;
        let options = transfer_options(spec);
        // The server of a test with one participant is any iperf3.
        let tls = tls.options().filter(|_| !run.request.test.is_alone());
        let target = ProbeTarget {
            tls,
            address: Some(found.remote.ip().to_string()),
            bind: found.local,
            key,
            ..ProbeTarget::new(run.request.test.dest(), port)
        };
        Ok(Self {
            target,
            parameters: iperf3::transfer(&options)?,
            options,
            waits_for_server: !spec.single_ended && !spec.loopback,
            _server: server,
        })
    }

    fn run(&self, test: &Specification, give_up: MonotonicTime) -> Performance {
        match self.parameters.protocol {
            TestProtocol::Udp => self.run_udp(&test.values, give_up),
            TestProtocol::Tcp => self.run_tcp(test, give_up),
        }
    }

    /// Repeats what fails to connect while the server may be starting.
    fn retried<T>(
        &self,
        give_up: MonotonicTime,
        mut attempt: impl FnMut() -> (Option<Error>, T),
    ) -> (Option<Error>, T) {
        loop {
            let (error, ended) = attempt();
            let is_early = error.as_ref().is_some_and(|error| error.code() == ErrorCode::CONNECT);
            if !(is_early && self.waits_for_server && monotonic_now() < give_up) {
                return (error, ended);
            }
            thread::sleep(RETRY_PAUSE);
        }
    }

    fn run_tcp(&self, test: &Specification, give_up: MonotonicTime) -> Performance {
        let spec = &test.values;
        let path = match test.kind {
            TestKind::Diagnose => PathSource::Measure(Box::new(path_options(self.target.clone(), !spec.no_capacity))),
            _ => PathSource::Unknown,
        };
        let options = DiagnoseOptions { path, transfer: self.client_options(spec, None) };
        let begun = RunStart::now();
        let (error, (outcome, document)) = self.retried(give_up, || {
            let mut document = new_document();
            let mut outcome = diagnose::run(&options, None, &mut |event| {
                if let DiagnoseEvent::Transfer(event) = event {
                    document.event(event);
                }
            });
            (outcome.error.take(), (outcome, document))
        });
        let diagnosis = self.diagnosis(test, &begun, &outcome);
        let mut diagnostics = self.command(test);
        if let Some(diagnosis) = &diagnosis {
            diagnostics.push_str(&verdicts_text(diagnosis));
        }
        let result = match (error, test.kind, diagnosis) {
            (Some(error), ..) => Err(described(&error)),
            (None, TestKind::Diagnose, Some(diagnosis)) => Ok(diagnose_result(&diagnosis)),
            (None, TestKind::Diagnose, None) => Err("no transfer took place".to_owned()),
            (None, ..) => throughput(document, spec, &diagnostics),
        };
        Performance { outcome: result, diagnostics }
    }

    /// UDP has no window and no congestion control that could be diagnosed.
    fn run_udp(&self, spec: &SpecValues, give_up: MonotonicTime) -> Performance {
        let options = self.client_options(spec, Some(interval(spec)));
        let (error, document) = self.retried(give_up, || {
            let mut document = new_document();
            let outcome = client::run(&options, None, &mut |event| document.event(event));
            (outcome.error, document)
        });
        let diagnostics = format!("linerate {}: UDP, {}", env!("CARGO_PKG_VERSION"), self.options.join(" "));
        let outcome = match error {
            Some(error) => Err(described(&error)),
            None => throughput(document, spec, &diagnostics),
        };
        Performance { outcome, diagnostics }
    }

    fn client_options(&self, spec: &SpecValues, interval: Option<Duration>) -> ClientOptions {
        ClientOptions {
            block_size_given: spec.buffer_length.is_some(),
            cpu: spec.client_cpu_affinity.map(CpuIndex),
            ..ClientOptions::new(&self.target, self.parameters.clone(), interval)
        }
    }

    fn command(&self, test: &Specification) -> String {
        let (version, port) = (env!("CARGO_PKG_VERSION"), self.target.port);
        format!(
            "linerate {version}: {} to {}, port {port}, {}\n",
            test.kind.name(),
            test.dest(),
            self.options.join(" ")
        )
    }

    /// Document of the diagnosis; `None` without a transfer.
    fn diagnosis(&self, test: &Specification, begun: &RunStart, outcome: &DiagnoseOutcome) -> Option<DiagnoseDocument> {
        let diagnosis = diagnosis::diagnose(outcome.observation.as_ref()?);
        let asked = TransferRequest { host: test.dest(), port: self.target.port, transfer: &self.options };
        Some(begun.document(asked, outcome, &diagnosis))
    }
}

/// Port of the server, and the key that it asks for: of another participant, or of any iperf3.
fn destination(run: &RunInput) -> Result<(Port, Option<AdmissionKey>), String> {
    if run.request.test.is_alone() {
        let port = run.request.test.values.single_ended_port.and_then(Port::new);
        return Ok((port.unwrap_or(Port::IPERF3), None));
    }
    server::access(run).map(|(port, key)| (port, Some(key)))
}

fn new_document() -> Iperf3Document {
    Iperf3Document::new(&iperf3_version(), &host::system_information())
}

fn described(error: &Error) -> String {
    error.advice().map_or_else(|| error.to_string(), str::to_owned)
}

fn throughput(document: Iperf3Document, spec: &SpecValues, diagnostics: &str) -> Result<Value, String> {
    let document: Value = serde_json::from_str(&document.finish()).map_err(|cause| cause.to_string())?;
    throughput_result(&document, interval(spec), diagnostics)
}

/// The verdicts for people, and the document for programs.
fn verdicts_text(diagnosis: &DiagnoseDocument) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (index, verdict) in diagnosis.verdicts.iter().enumerate() {
        lines.push(format!("{}. {}", index + 1, verdict.text));
        lines.extend(verdict.advice.iter().map(|advice| format!("   Advice: {advice}")));
    }
    let run = RunDocument::from(diagnosis.clone());
    let document = documents::to_value(&LabelledDocument::run(&run)).map(|value| value.to_string()).unwrap_or_default();
    format!("\n{}\n\n{document}\n", lines.join("\n"))
}

/// Result of the test `diagnose`: the first cause as keys of its own, by which archives select, and all verdicts.
fn diagnose_result(diagnosis: &DiagnoseDocument) -> Value {
    let verdicts = documents::to_value(&diagnosis.verdicts).unwrap_or_default();
    let first = verdicts.get(0).cloned().unwrap_or_default();
    json!({
        "schema": 1,
        "succeeded": true,
        "cause": first["cause"],
        "location": first["location"],
        "confidence": first["confidence"],
        "verdict": first["text"],
        "goodput-bits": diagnosis.goodput_bits_per_second,
        "verdicts": verdicts,
    })
}
