//! `linerate pscheduler METHOD`: the plug-ins of pScheduler, the tool `linerate` and the test `diagnose`.
//!
//! pScheduler calls one executable per method, with JSON on the standard input and output. The JSON is composed in
//! `linerate-fleet`; here it is read and printed, and the runs take place.

mod echo;
mod endpoints;
mod latency;
mod latency_answers;
mod server;
mod transfer;

use std::io::Read;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_fleet::pscheduler::diagnose_test as test;
use linerate_fleet::pscheduler::{
    ParticipantRequest, RunInput, Specification, TestKind, can_run, duration_answer, merged_results, run_duration,
    run_output, tool_description,
};
use linerate_model::json;
use linerate_sys::clock::{monotonic_now, realtime_now, sleep_until};
use linerate_sys::host;
use linerate_units::{MonotonicTime, Port, display};
use linerate_wire::cookie::{AdmissionKey, KEY_LENGTH};
use serde_json::{Value, json};

use crate::cmd::tls::TlsArguments;
use crate::{console, values};

/// Time before the end of the slot at which the output has to be on its way.
const OUTPUT_TIME: Duration = Duration::from_millis(500);

/// Largest input: results of two participants.
const MAX_INPUT: u64 = 256 << 20;

/// `linerate pscheduler`.
#[derive(Debug, Args)]
pub(crate) struct PschedulerArguments {
    /// Method of the plug-in
    method: PluginMethod,
    /// Port of the server, for `participant-data`
    #[arg(long, default_value = "5201", value_parser = values::port, value_name = "PORT")]
    port: Port,
    /// TLS of transfers between two participants, for `run`.
    #[command(flatten)]
    tls: TlsArguments,
    /// Arguments of the method: a MIME type, or options of a test for `cli-to-spec`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Methods of both plug-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PluginMethod {
    Enumerate,
    CanRun,
    Duration,
    ParticipantData,
    Run,
    MergedResults,
    EnumerateTest,
    Participants,
    SpecIsValid,
    CliToSpec,
    SpecToCli,
    SpecFormat,
    ResultFormat,
    LimitIsValid,
}

/// Failure of a method, by the exit codes of pScheduler's contract.
enum MethodFailure {
    /// The input is unusable.
    Input(String),
    /// This host or this program failed.
    Other(String),
}

impl PluginMethod {
    /// Exit codes for an unusable input and for any other failure.
    const fn failure_codes(self) -> (u8, u8) {
        match self {
            Self::Duration | Self::ParticipantData => (2, 3),
            Self::Run => (2, 2),
            _ => (1, 2),
        }
    }
}

/// Runs a method.
pub(crate) fn run(arguments: &PschedulerArguments) -> ExitCode {
    let (unusable, other) = arguments.method.failure_codes();
    match answer(arguments) {
        Ok(exit) => exit,
        Err(MethodFailure::Input(text)) => {
            console::note(&text);
            ExitCode::from(unusable)
        }
        Err(MethodFailure::Other(text)) => {
            console::note(&text);
            ExitCode::from(other)
        }
    }
}

fn answer(arguments: &PschedulerArguments) -> Result<ExitCode, MethodFailure> {
    let version = env!("CARGO_PKG_VERSION");
    let mime_type = arguments.arguments.first().map_or("text/plain", String::as_str);
    let answer = match arguments.method {
        PluginMethod::Enumerate => tool_description(version),
        PluginMethod::EnumerateTest => test::test_description(version),
        PluginMethod::CanRun => can_run(&input()?),
        PluginMethod::Duration => duration_answer(&specification(&input()?)?),
        PluginMethod::ParticipantData => participant_data(&input()?, arguments.port)?,
        PluginMethod::Run => return perform(&input()?, arguments.tls.clone()),
        PluginMethod::MergedResults => merged_results(&input()?).map_err(MethodFailure::Input)?,
        PluginMethod::Participants => test::participants(&input()?).map_err(MethodFailure::Input)?,
        PluginMethod::SpecIsValid => test::spec_is_valid(&input()?),
        PluginMethod::CliToSpec => test::cli_to_spec(&command_line(arguments)?).map_err(MethodFailure::Input)?,
        PluginMethod::SpecToCli => test::spec_to_cli(&input()?).map_err(MethodFailure::Input)?,
        PluginMethod::LimitIsValid => test::limit_is_valid(&input()?),
        PluginMethod::SpecFormat => {
            return Ok(print(&test::format_spec(&input()?, mime_type).map_err(MethodFailure::Input)?));
        }
        PluginMethod::ResultFormat => {
            return Ok(print(&test::format_result(&input()?, mime_type).map_err(MethodFailure::Input)?));
        }
    };
    Ok(print(&answer.to_string()))
}

fn print(text: &str) -> ExitCode {
    console::data(&format!("{text}\n"));
    ExitCode::SUCCESS
}

/// JSON of the standard input.
fn input() -> Result<Value, MethodFailure> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_INPUT)
        .read_to_string(&mut text)
        .map_err(|cause| MethodFailure::Other(format!("reading the standard input: {cause}")))?;
    serde_json::from_str(&text)
        .map_err(|cause| MethodFailure::Input(format!("the standard input is not JSON: {cause}")))
}

/// Arguments of `cli-to-spec`: given, or as a JSON array on the standard input.
fn command_line(arguments: &PschedulerArguments) -> Result<Vec<String>, MethodFailure> {
    if !arguments.arguments.is_empty() {
        return Ok(arguments.arguments.clone());
    }
    json::from_value(input()?)
        .map_err(|cause| MethodFailure::Input(format!("the standard input is not an array of strings: {cause}")))
}

fn specification(input: &Value) -> Result<Specification, MethodFailure> {
    Specification::parse(input).map_err(|reasons| MethodFailure::Input(reasons.join("; ")))
}

/// Data for the other participants: the destination's port, and the key by which its server knows the source.
fn participant_data(input: &Value, port: Port) -> Result<Value, MethodFailure> {
    let request = ParticipantRequest::parse(input).map_err(MethodFailure::Input)?;
    let mut data = json!({ "schema": 1, "linerate-version": env!("CARGO_PKG_VERSION") });
    if request.participant == 1 {
        let mut entropy = [0; KEY_LENGTH];
        host::random_bytes(&mut entropy).map_err(|cause| MethodFailure::Other(cause.to_string()))?;
        data["port"] = json!(port.get());
        data["_key"] = json!(AdmissionKey::random(entropy).to_string());
    }
    Ok(data)
}

/// Outcome of a run, and the text for `diags`.
struct Performance {
    outcome: Result<Value, String>,
    diagnostics: String,
}

impl Performance {
    fn failed(error: impl Into<String>) -> Self {
        Self { outcome: Err(error.into()), diagnostics: String::new() }
    }
}

/// Waits for the scheduled start, runs the part of this participant, and prints its result before the slot ends.
fn perform(input: &Value, tls: TlsArguments) -> Result<ExitCode, MethodFailure> {
    let run = RunInput::parse(input).map_err(MethodFailure::Input)?;
    let slot = run.slot.unwrap_or_else(|| run_duration(&run.request.test));
    let until_start = run.start.since_unix_epoch().saturating_sub(realtime_now().since_unix_epoch());
    let late = realtime_now().since_unix_epoch().saturating_sub(run.start.since_unix_epoch());
    let begin = monotonic_now() + until_start;
    sleep_until(begin);
    let end = begin + slot.saturating_sub(late).saturating_sub(OUTPUT_TIME);
    let performance = within(end, move || take_part(&run, begin, &tls)).unwrap_or_else(|| {
        Performance::failed(format!("the run did not end within its slot of {}", display::duration(slot)))
    });
    let output = run_output(performance.outcome, &performance.diagnostics);
    console::data(&format!("{output}\n"));
    Ok(ExitCode::from(u8::from(output["succeeded"] != true)))
}

/// Result of a procedure, or `None` when it takes longer; its threads end with the process.
fn within<T: Send + 'static>(end: MonotonicTime, procedure: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(procedure()));
    receiver.recv_timeout(end.since(monotonic_now())).ok()
}

fn take_part(run: &RunInput, begin: MonotonicTime, tls: &TlsArguments) -> Performance {
    let test = &run.request.test;
    let light = |outcome| Performance { outcome, diagnostics: String::new() };
    match (test.kind, run.request.participant) {
        (TestKind::Throughput | TestKind::Diagnose, 0) => transfer::run_source(run, begin, tls),
        (TestKind::Throughput | TestKind::Diagnose, _) => server::run_destination(run, tls),
        (TestKind::Rtt, _) => light(echo::round_trips(&test.values)),
        (TestKind::Trace, _) => light(echo::trace(&test.values)),
        (TestKind::Mtu, _) => light(echo::path_mtu(&test.values)),
        (TestKind::Latency, _) => light(latency::delays(&test.values)),
    }
}
