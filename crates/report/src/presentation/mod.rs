//! What a report says, before it is decided how it looks.
//!
//! [`present`] turns a [`RunDocument`] into a [`Presentation`]: the verdict, the figures, the charts, the tables, the notes
//! and the environment, in the order in which a reader wants them. The renderers ([`crate::text`], [`crate::markdown`],
//! [`crate::html`]) know nothing of the kinds of measurement; the views in `views` know nothing of the renderers. Values
//! stay numbers with their units to the end, so that every form shows the number that the document holds.

mod charts;
mod comparison;
mod environment;
mod quantity;
mod reasons;
mod together;
pub mod views;

use std::borrow::Cow;

use linerate_model::schema::run::{Better, Figure, Kind, Panel, RunDocument, Unit};
use linerate_model::schema::throughput::{Direction, Outcome, Termination};

pub(crate) use charts::extent;
pub use charts::{Bars, BarsRow, Chart, Curve, Distribution, Lines, Phase, Plot, Ribbon, TimeSeries};
pub use comparison::compare;
pub use quantity::Quantity;
pub(crate) use quantity::unit_name;

/// A report of one run, or of two that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Presentation<'a> {
    /// What was measured and on what, for example `Latency under load: example.net, port 5201`.
    pub title: String,
    /// What the reader must know to find the run again: when, how long, with which command, to what end.
    pub facts: Vec<Fact>,
    /// What came out, in one sentence.
    pub verdict: String,
    /// A mark that can be seen from afar, where there is one: the grade.
    pub badge: Option<Badge>,
    /// The numbers that stand for the run.
    pub figures: Vec<KeyFigure>,
    /// Pictures.
    pub charts: Vec<Chart<'a>>,
    /// The details.
    pub tables: Vec<Table>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Where it was measured from, and where to.
    pub environment: Vec<Table>,
}

/// A named text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// What it is.
    pub text: String,
}

impl Fact {
    pub(crate) fn new(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), text: text.into() }
    }
}

/// A mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Badge {
    /// A few characters, for example `A+`.
    pub text: String,
    /// What it is a mark for, for example `grade`.
    pub meaning: String,
    /// What it says.
    pub tone: Tone,
}

/// Whether something is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It is.
    Good,
    /// In between.
    Fair,
    /// It is not.
    Bad,
}

/// A number that stands for the run.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFigure {
    /// Stable name in snake case.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// The value.
    pub value: Cell,
    /// The value of the run that this one is compared with.
    pub before: Option<Cell>,
    /// The 95 % confidence interval of the value.
    pub interval: Option<[Quantity; 2]>,
    /// Independent readings behind it.
    pub count: Option<u64>,
    /// Which way is good.
    pub better: Better,
    /// What must be known to read it.
    pub note: Option<String>,
}

/// A table. Rows may have fewer cells than there are columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Stable name in snake case, unique within the presentation.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// Headings; the first is over the rows' labels.
    pub columns: Vec<String>,
    /// In order.
    pub rows: Vec<Row>,
    /// What holds for the whole table.
    pub note: Option<String>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is about.
    pub label: String,
    /// One for each column after the first.
    pub cells: Vec<Cell>,
}

impl Table {
    pub(crate) fn new(name: &str, title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { name: name.to_owned(), title: title.to_owned(), columns, rows: Vec::new(), note: None }
    }

    pub(crate) fn row(&mut self, label: impl Into<String>, cells: Vec<Cell>) {
        self.rows.push(Row { label: label.into(), cells });
    }

    /// The table, unless it has no rows.
    pub(crate) fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}

/// What stands in a table or beside a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number.
    Value(Quantity),
    /// A number that words are needed to read: the text holds the number, too, for example `at least 940 Mbit/s`.
    Qualified(Quantity, String),
    /// Not known, and why.
    Unknown(String),
    /// Not applicable here.
    Nothing,
}

impl Cell {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// What a person reads, without the reason of what is unknown.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Qualified(_, text) => Cow::Borrowed(text),
            Self::Value(quantity) => Cow::Owned(quantity.shown()),
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

/// The report of `run`.
#[must_use]
pub fn present(run: &RunDocument) -> Presentation<'_> {
    let mut presentation = Presentation {
        title: title(run),
        facts: facts(run),
        verdict: run.verdict.clone(),
        badge: None,
        figures: run.figures.iter().map(key_figure).collect(),
        charts: charts::of_series(run),
        tables: Vec::new(),
        notes: Vec::new(),
        environment: environment::tables(&run.environment),
    };
    views::complete(&mut presentation, run);
    presentation
}

/// What was measured and on what. What was planned from given figures has no far end.
fn title(run: &RunDocument) -> String {
    let command = command(run.kind);
    if run.host.is_empty() { command.to_owned() } else { format!("{command}: {}, port {}", run.host, run.port) }
}

/// What a kind of measurement is called.
pub(crate) const fn command(kind: Kind) -> &'static str {
    match kind {
        Kind::Throughput => "Throughput",
        Kind::Path => "Path",
        Kind::Load => "Latency under load",
        Kind::Rfc6349 => "TCP throughput after RFC 6349",
        Kind::Diagnose => "Diagnosis",
        Kind::Tune => "Tuning",
        Kind::Doctor => "Guided run",
    }
}

fn facts(run: &RunDocument) -> Vec<Fact> {
    let took = Quantity::nanoseconds(run.duration_ns).shown();
    let mut facts = vec![
        Fact::new("Started", crate::civil_time::rfc3339(run.started_at_unix_ns)),
        Fact::new("Took", took),
        Fact::new("linerate", run.linerate_version.clone()),
    ];
    if !run.arguments.is_empty() {
        facts.push(Fact::new("Command", format!("linerate {}", run.arguments.join(" "))));
    }
    if let Some(ending) = ending(&run.termination) {
        facts.push(Fact::new("Ended", ending));
    }
    facts
}

/// How it ended, unless as asked.
fn ending(termination: &Termination) -> Option<String> {
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "for a reason not recorded".to_owned());
    match termination.outcome {
        Outcome::Complete => None,
        Outcome::Interrupted => Some(format!("cut short: interrupted by {}", said(&termination.signal))),
        Outcome::PeerTerminated => Some("cut short: the far end was told to stop".to_owned()),
        Outcome::Failed => Some(format!("failed: {}", said(&termination.message))),
    }
}

fn key_figure(figure: &Figure) -> KeyFigure {
    let quantity = |value: f64| Quantity::new(value, figure.unit);
    let value = match figure.value {
        Some(value) => Cell::Value(quantity(value)),
        None => Cell::Unknown(figure.note.clone().unwrap_or_else(|| reasons::NOT_SAID.to_owned())),
    };
    KeyFigure {
        name: figure.name.clone(),
        title: figure.title.clone(),
        before: None,
        interval: figure.low.zip(figure.high).map(|(low, high)| [quantity(low), quantity(high)]),
        count: figure.count,
        better: figure.better,
        note: figure.note.clone().filter(|_| figure.value.is_some()),
        value,
    }
}

pub(crate) const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

/// A panel's heading, its place in the report, and the unit that its axis has.
pub(crate) const fn panel(panel: Panel) -> (&'static str, &'static str, Unit) {
    match panel {
        Panel::Throughput => ("throughput", "Throughput", Unit::BitsPerSecond),
        Panel::Rtt => ("rtt", "Round-trip time of the loaded connections", Unit::Nanoseconds),
        Panel::Latency => ("latency", "Round-trip time of probes", Unit::Nanoseconds),
        Panel::OneWayDelay => ("one_way_delay", "One-way delay above the smallest", Unit::Nanoseconds),
        Panel::CongestionWindow => ("congestion_window", "Congestion window", Unit::Bytes),
        Panel::Retransmissions => ("retransmissions", "Segments sent again", Unit::Segments),
        Panel::Limits => ("limits", "What the sender waited for", Unit::Share),
        Panel::Queue => ("queue", "Bytes that wait", Unit::Bytes),
        Panel::Loss => ("loss", "Loss of probes", Unit::Share),
    }
}
