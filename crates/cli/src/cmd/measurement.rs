//! Shared parts of the measuring commands: target, output and history record.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
pub(crate) use linerate_documents::label::DocumentKind;
use linerate_documents::label::LabelledDocument;
use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_documents::run::RunDocument;
use linerate_engine::probe::{AnsweringService, ProbeError, ProbeTarget};
use linerate_engine::rr::QuicTransactions;
use linerate_engine::surroundings::LocalEnvironment;
use linerate_model::address_family::AddressFamily;
use linerate_model::json;
use linerate_operate::far::FarAddress;
use linerate_report::throughput_text::TextStyle;
use linerate_report::{presentation, text};
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::{MonotonicTime, Port};
use linerate_wire::cookie::AdmissionKey;
use serde::Serialize;

pub(crate) use crate::cmd::network::NetworkArguments;
use crate::cmd::tls::TlsArguments;
use crate::console;
use crate::exit::ExitStatus;
use crate::progress::{self, LiveArguments};
use crate::recorder;
use crate::spark::spark;
use crate::values;

/// Connection timeout.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Program at the far end of a host over ssh.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FarArguments {
    /// Command of the linerate on a host over ssh, with any prefix (`sudo -n linerate`) [default: linerate]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) far_program: Option<String>,
    /// Copy linerate to the host over ssh for this run, where none is installed: this program, or a static FILE
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = OWN_PROGRAM,
        value_hint = ValueHint::FilePath
    )]
    pub(crate) push: Option<PathBuf>,
    /// TLS of the conversation.
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
    /// Server that was started over ssh for this run.
    #[arg(skip)]
    pub(crate) session: Option<FarSession>,
}

/// File of this program.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Server that was started over ssh, and how it is reached.
#[derive(Clone, Debug)]
pub(crate) struct FarSession {
    /// Host.
    pub(crate) address: FarAddress,
    /// Name or address to connect to.
    pub(crate) host: String,
    /// Port of the server.
    pub(crate) port: Port,
    /// Key that the server asks its client for.
    pub(crate) key: AdmissionKey,
    /// Command of the program there.
    pub(crate) program: String,
}

impl FarArguments {
    /// Target as given, or as the session over ssh has it.
    pub(crate) fn target(&self, host: &str, port: Option<Port>) -> ProbeTarget {
        let target = ProbeTarget { tls: self.tls.options(), ..ProbeTarget::new(host, self.port(port)) };
        match &self.session {
            Some(session) => ProbeTarget { address: Some(session.host.clone()), key: Some(session.key), ..target },
            None => target,
        }
    }

    /// Port of the session over ssh, or the given one.
    pub(crate) fn port(&self, given: Option<Port>) -> Port {
        self.session.as_ref().map_or(given.unwrap_or(Port::IPERF3), |session| session.port)
    }

    /// Command of the linerate there.
    pub(crate) fn program(&self) -> &str {
        self.far_program.as_deref().unwrap_or("linerate")
    }
}

/// Options of every command that measures.
#[derive(Clone, Debug, Args)]
pub(crate) struct MeasurementArguments {
    /// Port of the server [default: 5201; a free one on a host over ssh]
    #[arg(short, long, value_parser = values::port)]
    pub(crate) port: Option<Port>,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print JSON events while it measures, one per line; the last one has the document
    #[arg(long, conflicts_with = "json")]
    pub(crate) json_stream: bool,
    /// No progress on the standard error output
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print all tables and notes, not only the summary
    #[arg(short, long, conflicts_with_all = ["json", "json_stream", "brief"])]
    pub(crate) verbose: bool,
    /// Print only the result in one line
    #[arg(long, conflicts_with_all = ["json", "json_stream"])]
    pub(crate) brief: bool,
    /// Address and interface options.
    #[command(flatten)]
    pub(crate) network: NetworkArguments,
    /// Options of hosts over ssh.
    #[command(flatten)]
    pub(crate) far: FarArguments,
    /// True when the server opens the connections (`--listen`).
    #[arg(skip)]
    pub(crate) dialed_in: bool,
}

impl MeasurementArguments {
    /// Port of the server.
    pub(crate) fn port(&self) -> Port {
        self.far.port(self.port)
    }

    /// Target host, and the local address and interface.
    pub(crate) fn target(&self, host: &str) -> ProbeTarget {
        ProbeTarget {
            family: family(&self.network),
            bind: self.network.bind,
            device: self.network.bind_dev.clone(),
            connect_timeout: Some(CONNECT_LIMIT),
            dialed_in: self.dialed_in,
            ..self.far.target(host, self.port)
        }
    }

    /// Reads this host's environment and route to the target.
    pub(crate) fn local_environment(&self, host: &str) -> LocalEnvironment {
        LocalEnvironment::read(self.target(host).address(), self.port(), family(&self.network))
    }

    /// Has the measurement drawn as a live picture, unless something else was asked for.
    pub(crate) fn draw(
        &self,
        command: &str,
        host: &str,
        how: LiveArguments,
        planned: &[&str],
        stop: InterruptSignals,
    ) -> Result<(), ExitStatus> {
        let shown = recorder::display_host(host);
        // A URL has its port.
        let port = if host.contains("://") { String::new() } else { format!(", port {}", self.port()) };
        let title = format!("linerate {command} {shown}{port}");
        progress::draw(how, !self.quiet && !self.json, (&title, planned), stop)
    }

    /// Prints the run as JSON or text, and records it.
    pub(crate) fn print_and_record(&self, run: &RunDocument) {
        self.show(run);
        self.record(run);
    }

    /// Prints the run as JSON, as a summary, in one line or in full.
    pub(crate) fn show(&self, run: &RunDocument) {
        let run = recorder::for_display(run);
        let style = console::data_style();
        match () {
            () if self.json => print_run(&run),
            () if self.brief => console::data(&text::brief(&presentation::present(&run), style)),
            () if self.verbose => console::data(&text::result(&presentation::present(&run), style)),
            () => console::data(&text::summary(&presentation::present(&run), style)),
        }
    }

    /// Prints the tables behind a summary; in other forms the run has them already.
    pub(crate) fn show_tables(&self, run: &RunDocument) {
        if !(self.json || self.brief || self.verbose) {
            let run = recorder::for_display(run);
            console::data(&text::tables(&presentation::present(&run), console::data_style()));
        }
    }

    /// Records the run in the history.
    pub(crate) fn record(&self, run: &RunDocument) {
        recorder::keep(run, self.quiet || self.json);
    }
}

/// Selected address family.
pub(crate) fn family(network: &NetworkArguments) -> Option<AddressFamily> {
    match (network.ipv4, network.ipv6) {
        (true, _) => Some(AddressFamily::Ipv4),
        (_, true) => Some(AddressFamily::Ipv6),
        _ => None,
    }
}

/// Installs handlers that end the measurement on a signal, not the process.
pub(crate) fn interrupts() -> Result<InterruptSignals, ExitStatus> {
    InterruptSignals::install().map_err(|cause| {
        console::error(&cause.to_string(), None);
        ExitStatus::from_error(&cause)
    })
}

/// Prints a document as JSON, labelled with its kind.
pub(crate) fn print_json(kind: DocumentKind, document: &impl Serialize) {
    print_labelled(&LabelledDocument::new(kind, document));
}

/// Prints a run as JSON.
pub(crate) fn print_run(run: &RunDocument) {
    print_labelled(&LabelledDocument::run(run));
}

/// Prints a run as JSON on one line, or as an event.
pub(crate) fn print_run_line(run: &RunDocument) {
    let run = recorder::for_display(run);
    if progress::is_streamed() {
        return print_run(&run);
    }
    match json::to_value(&LabelledDocument::run(&run)) {
        Ok(value) => console::data(&format!("{value}\n")),
        Err(cause) => console::error(&format!("writing the result as JSON: {cause}"), None),
    }
}

fn print_labelled(document: &impl Serialize) {
    if progress::is_streamed() {
        publish_document(EventKind::Result, document);
        return;
    }
    match json::to_string_pretty(document) {
        Ok(text) => console::data(&format!("{text}\n")),
        Err(cause) => console::error(&format!("writing the result as JSON: {cause}"), None),
    }
}

/// Publishes a document as an event of `--json-stream`; returns false when its reader is gone.
pub(crate) fn publish_document(event: EventKind, document: &impl Serialize) -> bool {
    match json::to_value(document) {
        Ok(document) => progress::publish(ProgressEvent { document: Some(document), ..ProgressEvent::new(event) }),
        Err(cause) => {
            console::error(&format!("writing the result as JSON: {cause}"), None);
            false
        }
    }
}

/// Arguments of this process, without the program and without what may hold a password.
pub(crate) fn own_arguments() -> Vec<String> {
    without_commands(std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()))
}

/// Option whose value is a command line, which may be `sshpass -p PASSWORD …`.
const COMMAND_OPTION: &str = "--far-program";

fn without_commands(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_command = false;
    let shown = |argument: String| {
        let is_hidden = core::mem::replace(&mut is_command, argument == COMMAND_OPTION);
        match argument.strip_prefix(COMMAND_OPTION).and_then(|value| value.strip_prefix('=')) {
            Some(_) => format!("{COMMAND_OPTION}=(not recorded)"),
            None if is_hidden => "(not recorded)".to_owned(),
            None => argument,
        }
    };
    arguments.map(shown).collect()
}

/// Command that serves measurements.
const SERVE: &str = "`linerate serve`";

/// Names the option that does without a server, where there is none.
pub(crate) fn hint_no_server(error: &ProbeError, effect: &str) {
    match error {
        // It has the advice.
        ProbeError::Unreachable(text) if text.contains(SERVE) => console::note(&format!("--no-server {effect}.")),
        ProbeError::NoProbeService(AnsweringService::WantsTls) => {}
        ProbeError::Unreachable(_) | ProbeError::NoProbeService(_) => {
            console::note(&format!("Run {SERVE} there, or an iperf3 server; --no-server {effect}."));
        }
        _ => {}
    }
}

/// Prints one line per missed threshold, on standard error.
pub(crate) fn report_missed(missed: &[String]) {
    for line in missed {
        console::note(&format!("missed: {line}"));
    }
}

/// Progress line that is replaced while a measurement runs on a terminal.
pub(crate) struct LiveLine {
    style: Option<TextStyle>,
    last_update: Option<MonotonicTime>,
}

/// Shortest time between two updates of the line.
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Largest number of bars in the line's plot.
const MAX_BARS: usize = 30;

impl LiveLine {
    pub(crate) fn new(quiet: bool) -> Self {
        let is_shown = !quiet && !progress::has_picture();
        Self { style: if is_shown { console::progress_style() } else { None }, last_update: None }
    }

    /// True when the line exists. If not, a measurement reports progress in plain lines.
    pub(crate) const fn is_there(&self) -> bool {
        self.style.is_some()
    }

    /// Shows the text, and the latest samples as bars in the remaining width.
    pub(crate) fn show(&mut self, text: &str, samples: &[f64]) {
        let Some(style) = self.style else { return };
        let now = clock::monotonic_now();
        if self.last_update.is_some_and(|shown| now.since(shown) < MIN_UPDATE_INTERVAL) {
            return;
        }
        self.last_update = Some(now);
        let width = usize::from(style.width.get());
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        let bars_width = width.saturating_sub(text.chars().count() + 3).min(MAX_BARS);
        console::progress(format!("{text}  {}", spark(samples, bars_width, style.unicode)).trim_end());
    }

    /// Makes the next update immediate.
    pub(crate) fn refresh_now(&mut self) {
        self.last_update = None;
    }

    /// Prints a permanent line above the live one, wrapped to the terminal's width.
    pub(crate) fn note(&mut self, text: &str) {
        self.clear();
        for line in wrapped(text, self.style) {
            console::note(&line);
        }
        self.refresh_now();
    }

    /// Clears the line.
    pub(crate) fn clear(&self) {
        if self.is_there() {
            console::progress("");
        }
    }
}

/// Lines of `text` on a terminal of this style; without one, the text as it is, for programs that look for it.
fn wrapped(text: &str, style: Option<TextStyle>) -> Vec<String> {
    match style {
        Some(style) => text::wrap_text(text, usize::from(style.width.get())),
        None => vec![text.to_owned()],
    }
}

/// QUIC of this program.
#[cfg(feature = "quic")]
#[expect(clippy::unnecessary_wraps, reason = "there is none without the feature")]
pub(crate) fn quic_transactions() -> Option<Arc<dyn QuicTransactions>> {
    Some(Arc::new(linerate_quic::QuicExchanges))
}

/// QUIC of this program: none without that feature.
#[cfg(not(feature = "quic"))]
pub(crate) fn quic_transactions() -> Option<Arc<dyn QuicTransactions>> {
    None
}

#[cfg(test)]
mod tests {
    use linerate_report::throughput_text::TextStyle;

    use super::{without_commands, wrapped};

    #[test]
    fn notes_fit_into_the_terminal() {
        let note = "this fills the path, for about 52.0 s and 2 min at most; at 100 Mbit/s that transfers about 650 MB";
        let lines = wrapped(note, Some(TextStyle::plain()));
        assert_eq!(lines, [note.trim_end_matches(" transfers about 650 MB"), "transfers about 650 MB"]);
        assert_eq!(wrapped(note, None), [note]);
    }

    #[test]
    fn command_lines_of_the_far_host_are_not_recorded() {
        let recorded = |line: &str| without_commands(line.split(' ').map(str::to_owned)).join(" ");
        let one = recorded("tune far --far-program sshpass --yes");
        assert_eq!(one, "tune far --far-program (not recorded) --yes");
        assert_eq!(recorded("tune --far-program=sudo far"), "tune --far-program=(not recorded) far");
        assert_eq!(recorded("tune --far-programs x"), "tune --far-programs x");
    }
}
