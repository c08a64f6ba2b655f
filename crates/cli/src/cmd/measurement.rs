//! What the commands that measure have in common: where to, how the result is shown, and how the run is kept.

use std::time::Duration;

use clap::Args;
use linerate_engine::probe::Target;
use linerate_model::schema::run::RunDocument;
use linerate_report::throughput_text::Style;
use linerate_report::{presentation, text};
use linerate_sys::clock;
use linerate_sys::net::Family;
use linerate_sys::signals::Interrupts;
use linerate_units::{MonotonicTime, Port};
use serde::Serialize;

use crate::app::{self, NetworkArguments};
use crate::console;
use crate::exit::Exit;
use crate::keep;
use crate::spark::spark;
use crate::surroundings::Surroundings;

/// Nobody answers for this long: nobody is there.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Options of every command that measures.
#[derive(Debug, Args)]
pub(crate) struct MeasurementArguments {
    /// Its port
    #[arg(short, long, default_value = "5201", value_parser = app::port)]
    pub(crate) port: Port,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on the standard error output
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The network side.
    #[command(flatten)]
    pub(crate) network: NetworkArguments,
}

impl MeasurementArguments {
    /// The far end, and from where to reach it.
    pub(crate) fn target(&self, host: &str) -> Target {
        Target {
            family: family(&self.network),
            bind: self.network.bind,
            device: self.network.bind_dev.clone(),
            connect_timeout: Some(CONNECT_LIMIT),
            ..Target::new(host, self.port)
        }
    }

    /// This host, and its way to the far end.
    pub(crate) fn surroundings(&self, host: &str) -> Surroundings {
        Surroundings::read(host, self.port, family(&self.network))
    }

    /// Prints the measurement's own document, or the run as a person reads it; and keeps the run.
    pub(crate) fn conclude(&self, document: &impl Serialize, run: &RunDocument) {
        self.show(document, run);
        self.keep(run);
    }

    /// Prints the measurement's own document, or the run as a person reads it.
    pub(crate) fn show(&self, document: &impl Serialize, run: &RunDocument) {
        if self.json {
            print_json(document);
        } else {
            console::data(&text::result(&presentation::present(&keep::as_shown(run)), console::data_style()));
        }
    }

    /// Keeps the run in the history.
    pub(crate) fn keep(&self, run: &RunDocument) {
        keep::keep(run, self.quiet || self.json);
    }
}

/// The family that was asked for.
pub(crate) fn family(network: &NetworkArguments) -> Family {
    match (network.ipv4, network.ipv6) {
        (true, _) => Family::Ipv4,
        (_, true) => Family::Ipv6,
        _ => Family::Any,
    }
}

/// Has signals end the measurement, not the process.
pub(crate) fn interrupts() -> Result<Interrupts, Exit> {
    Interrupts::install().map_err(|cause| {
        console::error(&cause.to_string(), None);
        Exit::of(&cause)
    })
}

/// Prints a document.
pub(crate) fn print_json(document: &impl Serialize) {
    match serde_json::to_string_pretty(document) {
        Ok(text) => console::data(&format!("{text}\n")),
        Err(cause) => console::error(&format!("writing the result as JSON: {cause}"), None),
    }
}

/// The command line, without the program.
pub(crate) fn own_arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The line that is replaced while a measurement runs, where somebody watches a terminal.
pub(crate) struct LiveLine {
    style: Option<Style>,
    shown: Option<MonotonicTime>,
}

/// The line moves this often at most.
const PACE: Duration = Duration::from_millis(100);

/// Most bars of its plot.
const MOST_BARS: usize = 30;

impl LiveLine {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { style: if quiet { None } else { console::progress_style() }, shown: None }
    }

    /// Whether there is one. If not, a measurement says what it does in plain lines.
    pub(crate) const fn is_there(&self) -> bool {
        self.style.is_some()
    }

    /// Shows this, with the latest readings as bars where there is room for them.
    pub(crate) fn show(&mut self, text: &str, readings: &[f64]) {
        let Some(style) = self.style else { return };
        let now = clock::monotonic_now();
        if self.shown.is_some_and(|shown| now.since(shown) < PACE) {
            return;
        }
        self.shown = Some(now);
        let width = usize::from(style.width.get());
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        let room = width.saturating_sub(text.chars().count() + 3).min(MOST_BARS);
        console::progress(format!("{text}  {}", spark(readings, room, style.unicode)).trim_end());
    }

    /// What is shown next is shown at once.
    pub(crate) fn renew(&mut self) {
        self.shown = None;
    }

    /// Writes a line that stays, above the live one.
    pub(crate) fn note(&mut self, text: &str) {
        self.clear();
        console::note(text);
        self.renew();
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.is_there() {
            console::progress("");
        }
    }
}
