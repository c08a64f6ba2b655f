//! Answers of the calculators, as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use linerate_analysis::formulas::FormulaDescription;
use linerate_documents::calculation::{self, CalculatedFigure, CalculationDocument, CalculationUnit};
use linerate_report::text::{MAX_SUMMARY_LINES, wrap_text};
use linerate_report::throughput_text::TextStyle;
use linerate_units::{BitRate, ByteCount, Ratio};
use serde_json::Number;

use super::catalogue::CatalogueEntry;
use super::figure;

/// Quantity with its kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Quantity {
    Rate(BitRate),
    Size(ByteCount),
    Time(Duration),
    /// Share of a whole, in percent.
    Share(Ratio),
    /// Probability of loss: in percent, and as one in N.
    Loss(Ratio),
    /// Number of this unit.
    Count(u64, CalculationUnit),
    /// Number without a unit.
    Number(f64),
}

impl From<BitRate> for Quantity {
    fn from(rate: BitRate) -> Self {
        Self::Rate(rate)
    }
}

impl From<ByteCount> for Quantity {
    fn from(size: ByteCount) -> Self {
        Self::Size(size)
    }
}

impl From<Duration> for Quantity {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl Quantity {
    /// Value with its unit: `146.25 MB`.
    fn text(self) -> String {
        match self {
            Self::Rate(rate) => figure::rate(rate),
            Self::Size(size) => figure::size(size),
            Self::Time(time) => figure::time(time),
            Self::Share(ratio) | Self::Loss(ratio) => figure::percent(ratio),
            Self::Count(count, unit) => format!("{} {}", figure::number(ByteCount::new(count).as_f64()), unit.name()),
            Self::Number(number) => figure::number(number),
        }
    }

    /// Same value in other useful units.
    fn alternative_forms(self) -> Vec<String> {
        match self {
            Self::Rate(rate) if rate.bits_per_second() >= 8000.0 => vec![figure::rate_in_bytes(rate)],
            Self::Size(size) if size.get() >= figure::EXACT_BYTES_BELOW => {
                vec![figure::size_binary(size), format!("{} B", figure::grouped(size.get()))]
            }
            Self::Loss(ratio) => figure::one_in(ratio).into_iter().collect(),
            Self::Time(time) if time >= Duration::from_secs(60) => {
                vec![format!("{} s", figure::number(time.as_secs_f64()))]
            }
            _ => Vec::new(),
        }
    }

    /// Number in base units, and that unit; `None` for an infinite number.
    fn base(self) -> (Option<Number>, CalculationUnit) {
        match self {
            Self::Rate(rate) => (Number::from_f64(rate.bits_per_second()), CalculationUnit::BitsPerSecond),
            Self::Size(size) => (Some(size.get().into()), CalculationUnit::Bytes),
            Self::Time(time) => (Number::from_f64(time.as_secs_f64()), CalculationUnit::Seconds),
            Self::Share(ratio) | Self::Loss(ratio) => (Number::from_f64(ratio.get()), CalculationUnit::One),
            Self::Count(count, unit) => (Some(count.into()), unit),
            Self::Number(number) => (Number::from_f64(number), CalculationUnit::One),
        }
    }

    /// Figure of the document.
    fn figure(self, title: &str) -> CalculatedFigure {
        let (value, unit) = self.base();
        CalculatedFigure { title: title.to_owned(), value, unit, text: self.text() }
    }
}

/// Quantities with their names.
type NamedQuantities = Vec<(&'static str, Quantity)>;

/// Answer of a calculator.
#[derive(Debug, Default)]
pub(super) struct CalculatorAnswer {
    results: NamedQuantities,
    inputs: NamedQuantities,
    derived: NamedQuantities,
}

impl CalculatorAnswer {
    /// Answer with one result.
    pub(super) fn new(title: &'static str, result: impl Into<Quantity>) -> Self {
        Self::default().result(title, Some(result))
    }

    /// Adds a result, if there is one.
    pub(super) fn result(mut self, title: &'static str, result: Option<impl Into<Quantity>>) -> Self {
        self.results.extend(result.map(|result| (title, result.into())));
        self
    }

    /// Adds an input, if it was given.
    pub(super) fn input(mut self, title: &'static str, input: Option<impl Into<Quantity>>) -> Self {
        self.inputs.extend(input.map(|input| (title, input.into())));
        self
    }

    /// Adds a figure that follows from the result, if it is defined.
    pub(super) fn derived(mut self, title: &'static str, figure: Option<impl Into<Quantity>>) -> Self {
        self.derived.extend(figure.map(|figure| (title, figure.into())));
        self
    }

    /// True without any result.
    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Renders the same in at most twelve lines: the results, the formula, and the figures that fit.
    pub(super) fn summary(&self, entry: &CatalogueEntry, style: TextStyle) -> String {
        let mut text = self.headline(style);
        for FormulaDescription { text: formula, citation, .. } in entry.formulas {
            let formula = substitute_ascii(format!("{formula} ({citation})"), style);
            for line in wrap_text(&formula, usize::from(style.width.get())) {
                let _ = writeln!(text, "{line}");
            }
        }
        let mut rows = String::new();
        let width = self.inputs.iter().chain(&self.derived).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        push_rows(&mut rows, "  given  ", &self.inputs, width, style);
        push_rows(&mut rows, "  hence  ", &self.derived, width, style);
        let room = MAX_SUMMARY_LINES.saturating_sub(text.lines().count() + 1);
        for line in rows.lines().take(room) {
            let _ = writeln!(text, "{line}");
        }
        let more = if rows.lines().count() > room { "-v: all figures; " } else { "" };
        let _ = writeln!(text, "{}", paint(style, 2, &format!("{more}linerate calc {} --help: details", entry.name())));
        substitute_ascii(text, style)
    }

    /// Renders the results, then the formulas, inputs and derived figures.
    pub(super) fn text(&self, entry: &CatalogueEntry, style: TextStyle) -> String {
        let mut text = self.headline(style) + "\n";
        for FormulaDescription { text: formula, citation, .. } in entry.formulas {
            let formula = substitute_ascii(format!("{formula}\n({citation})"), style);
            for line in wrap_text(&formula, usize::from(style.width.get())) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        push_table(&mut text, "given", &self.inputs, style);
        push_table(&mut text, "derived", &self.derived, style);
        let _ = writeln!(text, "\n{}", paint(style, 2, &format!("linerate calc {} --help for details", entry.name())));
        substitute_ascii(text, style)
    }

    /// Renders the results alone.
    pub(super) fn headline(&self, style: TextStyle) -> String {
        let mut text = String::new();
        for (title, result) in &self.results {
            let _ = writeln!(text, "{}", paint(style, 1, &format!("{title}: {}", result.text())));
            let forms = result.alternative_forms();
            if !forms.is_empty() {
                let _ = writeln!(text, "{:width$}{}", "", forms.join(" = "), width = title.chars().count() + 2);
            }
        }
        substitute_ascii(text, style)
    }

    /// Document of the answer: numbers in base units and unrounded.
    pub(super) fn document(&self, entry: &CatalogueEntry) -> CalculationDocument {
        let figures = |quantities: &NamedQuantities| -> Vec<CalculatedFigure> {
            quantities.iter().map(|(title, quantity)| quantity.figure(title)).collect()
        };
        CalculationDocument {
            schema: calculation::SCHEMA,
            calc: entry.calculator,
            answers: figures(&self.results),
            inputs: figures(&self.inputs),
            derived: figures(&self.derived),
            formulas: entry.formulas.to_vec(),
        }
    }
}

/// Appends rows whose first one has the title; another unit only where the line has space for it.
fn push_rows(text: &mut String, title: &str, rows: &NamedQuantities, width: usize, style: TextStyle) {
    let mut lead = title.to_owned();
    for (name, quantity) in rows {
        let mut line = format!("{lead}{name:<width$}  {}", quantity.text());
        if let Some(form) = quantity.alternative_forms().first() {
            let longer = format!("{line} = {form}");
            if longer.chars().count() <= usize::from(style.width.get()) {
                line = longer;
            }
        }
        let _ = writeln!(text, "{line}");
        lead = " ".repeat(title.len());
    }
}

fn push_table(text: &mut String, title: &str, rows: &NamedQuantities, style: TextStyle) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", paint(style, 2, title));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, quantity) in rows {
        let forms: Vec<String> = [quantity.text()].into_iter().chain(quantity.alternative_forms()).collect();
        let _ = writeln!(text, "  {name:<width$}  {}", forms.join(" = "));
    }
}

/// Paints text with an SGR code: 1 is bold, 2 is dim.
pub(super) fn paint(style: TextStyle, code: u8, text: &str) -> String {
    if style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// ASCII substitutes for terminals without Unicode.
const ASCII_SUBSTITUTES: [(&str, &str); 19] = [
    ("2³²", "2^32"),
    ("√", "sqrt "),
    ("×", "*"),
    ("−", "-"),
    ("≤", "<="),
    ("⌊", "floor("),
    ("⌋", ")"),
    ("²", "^2"),
    ("³", "^3"),
    ("⁷", "^7"),
    ("^¼", "^(1/4)"),
    ("^¾", "^(3/4)"),
    ("¾", "3/4"),
    ("₂", "2"),
    ("µ", "u"),
    ("β", "beta"),
    ("λ", "lambda "),
    ("§", "section "),
    ("…", "..."),
];

fn substitute_ascii(text: String, style: TextStyle) -> String {
    if style.unicode {
        return text;
    }
    ASCII_SUBSTITUTES.iter().fold(text, |text, (character, ascii)| text.replace(character, ascii))
}
