//! Content of a report, independent of its format.
//!
//! [`present`] turns a [`RunDocument`] into a [`Presentation`]: the verdict, the figures, the charts, the tables, the
//! notes and the environment, in reading order. The renderers ([`crate::text`], [`crate::markdown`], [`crate::html`])
//! know nothing of the kinds of measurement; the views in `views` know nothing of the renderers. Values stay numbers
//! with their units to the end, so that every format shows the document's number.

mod aggregate;
mod charts;
mod comparison;
mod document;
mod environment;
mod next_command;
mod overview;
mod quantity;
mod reasons;
mod settings;
pub mod views;

use std::borrow::Cow;

use linerate_documents::civil_time;
use linerate_documents::run::{
    ChartPanel, FigureJudgement, FigureUnit, ImprovementDirection, RunDocument, RunFigure, RunKind,
};
use linerate_model::direction::Direction;
use linerate_model::report::TestTermination;

pub(crate) use aggregate::median_interval;
pub use charts::{
    BarChart, BarGroup, Chart, ChartPhase, ChartPlot, DistributionCurve, DistributionPlot, LevelMark, LineChart,
    Overview, OverviewPanel, Smoothing, StackedShares, TimeSeries,
};
pub(crate) use charts::{MAX_SERIES, extent};
pub use comparison::{compare, comparison_note, judgement_label};
pub use document::present_document;
pub use quantity::Quantity;
pub(crate) use quantity::{as_f64, unit_name, whole};

/// A report of one run, or of two that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Presentation<'a> {
    /// Measurement and target, for example `Latency under load: example.net, port 5201`.
    pub title: String,
    /// Facts that identify the run: time, duration, command and ending.
    pub facts: Vec<NamedFact>,
    /// Result in one sentence.
    pub verdict: String,
    /// Grade or outcome, where there is one.
    pub badge: Option<VerdictBadge>,
    /// Key figures of the run.
    pub figures: Vec<KeyFigure>,
    /// Settings that were in effect, or are by now.
    pub settings: SettingsInEffect,
    /// Charts, the one that says most first.
    pub charts: Vec<Chart<'a>>,
    /// Detail tables.
    pub tables: Vec<ReportTable>,
    /// Notes shown below the tables.
    pub notes: Vec<String>,
    /// Parts that were asked for and are missing, each with its reason, in a sentence: a summary has them, too.
    pub missing: Vec<String>,
    /// Environment of both ends.
    pub environment: Vec<ReportTable>,
    /// Command that follows from the result.
    pub next: Option<String>,
}

/// Settings that a result depends on, and the way back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsInEffect {
    /// Changes that linerate made and that are in effect, else the settings of this host.
    pub settings: Vec<NamedFact>,
    /// Commands that undo the changes.
    pub undo: Vec<String>,
}

/// Figures that say most about a run, by kind, in order of importance.
const LEAD_FIGURES: [&str; 19] = [
    "voice_mos",
    "game_missed_share",
    "video_call_frozen_share",
    "streaming_stalled_share",
    "backup_added_p95",
    "added_up_p95",
    "added_down_p95",
    "tls_request_up_p95",
    "quic_request_up_p95",
    "tls_request_down_p95",
    "quic_request_down_p95",
    "goodput_up",
    "goodput_down",
    "rpm_both",
    "capacity_up",
    "capacity_down",
    "rtt_idle_median",
    "loss_up",
    "loss_down",
];

impl<'a> Presentation<'a> {
    /// Makes `chart` the first one.
    fn lead(&mut self, chart: Option<Chart<'a>>) {
        self.charts.splice(0..0, chart);
    }

    /// The figures, those of [`LEAD_FIGURES`] first.
    pub(crate) fn lead_figures(&self) -> impl Iterator<Item = &KeyFigure> {
        let is_lead = |figure: &&KeyFigure| LEAD_FIGURES.contains(&figure.name.as_str());
        let lead = LEAD_FIGURES.iter().filter_map(|name| self.figures.iter().find(|figure| figure.name == *name));
        lead.chain(self.figures.iter().filter(move |figure| !is_lead(figure)))
    }

    /// True when there is a result to show first; a document that only lists facts has none.
    pub(crate) fn has_verdict(&self) -> bool {
        self.badge.is_some() || !self.verdict.is_empty()
    }
}

/// A named text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFact {
    /// Name.
    pub name: String,
    /// Value.
    pub text: String,
}

impl NamedFact {
    pub(crate) fn new(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), text: text.into() }
    }
}

/// A badge: a grade or an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictBadge {
    /// A few characters, for example `A+`.
    pub text: String,
    /// Meaning of the badge, for example `grade`.
    pub meaning: String,
    /// Rating.
    pub tone: BadgeTone,
}

/// Rating of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadgeTone {
    /// Good.
    Good,
    /// In between.
    Fair,
    /// Bad.
    Bad,
}

/// A key figure of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFigure {
    /// Stable name in snake case.
    pub name: String,
    /// Display title.
    pub title: String,
    /// The value.
    pub value: TableCell,
    /// Value of the run that this one is compared with.
    pub before: Option<TableCell>,
    /// The 95 % confidence interval of the value.
    pub interval: Option<[Quantity; 2]>,
    /// Number of independent samples.
    pub count: Option<u64>,
    /// Direction of improvement.
    pub better: ImprovementDirection,
    /// Judgement of the difference from the run that this one is compared with.
    pub judgement: Option<FigureJudgement>,
    /// Note needed to interpret the value.
    pub note: Option<String>,
}

/// A table. Rows may have fewer cells than there are columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportTable {
    /// Stable name in snake case, unique within the presentation.
    pub name: String,
    /// Display title.
    pub title: String,
    /// Headings; the first is over the rows' labels.
    pub columns: Vec<String>,
    /// In order.
    pub rows: Vec<TableRow>,
    /// Note for the whole table.
    pub note: Option<String>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Row label.
    pub label: String,
    /// One for each column after the first.
    pub cells: Vec<TableCell>,
}

impl ReportTable {
    pub(crate) fn new(name: &str, title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { name: name.to_owned(), title: title.to_owned(), columns, rows: Vec::new(), note: None }
    }

    pub(crate) fn push_row(&mut self, label: impl Into<String>, cells: Vec<TableCell>) {
        self.rows.push(TableRow { label: label.into(), cells });
    }

    /// The table, unless it has no rows.
    pub(crate) fn non_empty(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}

/// Content of a table cell or a key figure.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    /// Text.
    Text(String),
    /// A number.
    Value(Quantity),
    /// A number with a qualification; the text contains the number, for example `at least 940 Mbit/s`.
    Qualified(Quantity, String),
    /// Unknown, with the reason.
    Unknown(String),
    /// Not applicable here.
    Nothing,
}

impl TableCell {
    /// Text cell.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Display text, without the reason of an unknown value.
    #[must_use]
    pub fn display_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Qualified(_, text) => Cow::Borrowed(text),
            Self::Value(quantity) => Cow::Owned(quantity.display_text()),
            Self::Unknown(_) => Cow::Borrowed("unknown"),
            Self::Nothing => Cow::Borrowed("–"),
        }
    }

    /// The number, where it is one.
    #[must_use]
    pub fn quantity(&self) -> Option<Quantity> {
        match self {
            Self::Value(quantity) | Self::Qualified(quantity, _) => Some(*quantity),
            Self::Text(_) | Self::Unknown(_) | Self::Nothing => None,
        }
    }
}

/// Report of `run`.
#[must_use]
pub fn present(run: &RunDocument) -> Presentation<'_> {
    let mut presentation = Presentation {
        title: title(run),
        facts: facts(run),
        verdict: run.verdict.clone(),
        badge: None,
        figures: run.figures.iter().map(key_figure).collect(),
        settings: settings::in_effect(run),
        charts: overview::of(run).into_iter().chain(charts::series_charts(run)).collect(),
        tables: Vec::new(),
        notes: Vec::new(),
        missing: Vec::new(),
        environment: environment::tables(&run.environment),
        next: next_command::next_command(run),
    };
    views::complete(&mut presentation, run);
    presentation
}

/// Measurement and target. A plan from given figures has no far end.
fn title(run: &RunDocument) -> String {
    let command = kind_title(run.kind);
    if run.host.is_empty() { command.to_owned() } else { format!("{command}: {}", target(run)) }
}

/// Host and port; a URL has its port.
fn target(run: &RunDocument) -> String {
    if run.host.contains("://") { run.host.clone() } else { format!("{}, port {}", run.host, run.port) }
}

/// Display name of a kind of measurement.
pub(crate) const fn kind_title(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Throughput => "Throughput",
        RunKind::Path => "Path",
        RunKind::Load => "Latency under load",
        RunKind::Rfc6349 => "TCP throughput after RFC 6349",
        RunKind::Rr => "Requests and responses",
        RunKind::Diagnose => "Diagnosis",
        RunKind::Tune => "Tuning",
        RunKind::Doctor => "Guided run",
        RunKind::Web => "Browser test",
    }
}

fn facts(run: &RunDocument) -> Vec<NamedFact> {
    let duration = Quantity::nanoseconds(run.duration_ns).display_text();
    let mut facts = vec![
        NamedFact::new("Started", civil_time::of_unix_ns(run.started_at_unix_ns)),
        NamedFact::new("Duration", duration),
        NamedFact::new("linerate", run.linerate_version.clone()),
    ];
    if !run.arguments.is_empty() {
        facts.push(NamedFact::new("Command", format!("linerate {}", run.arguments.join(" "))));
    }
    if let Some(ending) = ending_text(&run.termination) {
        facts.push(NamedFact::new("Ended", ending));
    }
    facts
}

/// Text of an interruption by the signal that iperf3 calls so, such as `Interrupt(2)`.
pub(crate) fn interruption(signal: Option<&str>) -> String {
    let number = signal.and_then(|signal| signal.rsplit_once('(')?.1.strip_suffix(')'));
    match (number, signal) {
        (Some("1"), _) => "interrupted (SIGHUP)".to_owned(),
        (Some("2"), _) => "interrupted (SIGINT)".to_owned(),
        (Some("15"), _) => "interrupted (SIGTERM)".to_owned(),
        (_, Some(signal)) => format!("interrupted ({signal})"),
        (_, None) => "interrupted".to_owned(),
    }
}

/// Reason for an early end; `None` for a complete run.
fn ending_text(termination: &TestTermination) -> Option<String> {
    match termination {
        TestTermination::Complete => None,
        TestTermination::Interrupted { signal } => Some(format!("cut short: {}", interruption(signal.as_deref()))),
        TestTermination::PeerTerminated => Some("cut short: the far end was terminated".to_owned()),
        TestTermination::Failed { message } => Some(format!("failed: {message}")),
    }
}

fn key_figure(figure: &RunFigure) -> KeyFigure {
    let quantity = |value: f64| Quantity::new(value, figure.unit);
    let value = match figure.value {
        Some(value) => TableCell::Value(quantity(value)),
        None => TableCell::Unknown(figure.note.clone().unwrap_or_else(|| reasons::NO_REASON_RECORDED.to_owned())),
    };
    KeyFigure {
        name: figure.name.clone(),
        title: figure.title.clone(),
        before: None,
        interval: figure.low.zip(figure.high).map(|(low, high)| [quantity(low), quantity(high)]),
        count: figure.count,
        better: figure.better,
        judgement: None,
        note: figure.note.clone().filter(|_| figure.value.is_some()),
        value,
    }
}

pub(crate) const fn direction_label(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

/// Title of a panel in a report of this run.
pub(crate) fn panel_title(run: &RunDocument, panel: ChartPanel) -> &'static str {
    match (run.kind, panel) {
        (RunKind::Rr, ChartPanel::Latency) => "Latency of transactions",
        _ => panel_properties(panel).1,
    }
}

/// Stable name, title and axis unit of a panel.
pub(crate) const fn panel_properties(panel: ChartPanel) -> (&'static str, &'static str, FigureUnit) {
    match panel {
        ChartPanel::Throughput => ("throughput", "Throughput", FigureUnit::BitsPerSecond),
        ChartPanel::Rtt => ("rtt", "Round-trip time of the loaded connections", FigureUnit::Nanoseconds),
        ChartPanel::Latency => ("latency", "Round-trip time of probes", FigureUnit::Nanoseconds),
        ChartPanel::OneWayDelay => ("one_way_delay", "One-way delay above the smallest", FigureUnit::Nanoseconds),
        ChartPanel::CongestionWindow => ("congestion_window", "Congestion window", FigureUnit::Bytes),
        ChartPanel::Retransmissions => ("retransmissions", "Retransmitted segments", FigureUnit::Segments),
        ChartPanel::Limits => ("limits", "Time by limiting factor", FigureUnit::Share),
        ChartPanel::Queue => ("queue", "Queued bytes", FigureUnit::Bytes),
        ChartPanel::Loss => ("loss", "Loss of probes", FigureUnit::Share),
    }
}
