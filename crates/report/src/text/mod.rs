//! A report for a terminal.
//!
//! Pure functions of a [`Presentation`] and a [`TextStyle`]: colours only on request, ASCII where there is no Unicode, and
//! no line wider than the terminal as long as single words fit into it. Text from a document is escaped
//! ([`crate::escape`]).

mod plots;
mod summary;
mod table;
mod wrap;

use crate::escape;
use crate::footnotes::Footnotes;
use crate::presentation::{BadgeTone, KeyFigure, Presentation, VerdictBadge};
use crate::throughput_text::{TextColour, TextStyle};
pub use summary::{MAX_SUMMARY_LINES, brief, summary};
pub use wrap::wrap_text;
use wrap::{columns, push_line, push_wrapped};

/// Renders all `presentations`, one after the other; each line ends with a line feed.
#[must_use]
pub fn render(presentations: &[Presentation<'_>], style: TextStyle) -> String {
    let pages: Vec<String> = presentations.iter().map(|presentation| page(presentation, style, true)).collect();
    let rule = style.pick("─", "-").repeat(usize::from(style.width.get()).min(80));
    pages.join(&format!("\n{}\n\n", style.paint(TextColour::Dim, &rule)))
}

/// Renders one report without the environment, as shown after a measurement.
#[must_use]
pub fn result(presentation: &Presentation<'_>, style: TextStyle) -> String {
    page(presentation, style, false)
}

/// Renders the tables and notes of a report, to follow its summary.
#[must_use]
pub fn tables(presentation: &Presentation<'_>, style: TextStyle) -> String {
    let (mut text, mut footnotes) = (String::new(), Footnotes::default());
    for table in &presentation.tables {
        table::push(&mut text, table, &mut footnotes, style);
    }
    for note in &presentation.notes {
        item(&mut text, style.pick("•", "*"), note, style);
    }
    text
}

fn page(presentation: &Presentation<'_>, style: TextStyle, environment: bool) -> String {
    let mut text = String::new();
    heading(&mut text, presentation, style);
    if presentation.has_verdict() {
        verdict(&mut text, presentation, style);
    }
    let mut footnotes = Footnotes::default();
    figures(&mut text, &presentation.figures, &mut footnotes, style);
    for chart in &presentation.charts {
        plots::push(&mut text, chart, style);
    }
    for table in &presentation.tables {
        table::push(&mut text, table, &mut footnotes, style);
    }
    if let Some(command) = &presentation.next {
        title(&mut text, "Next", style);
        push_line(&mut text, &format!("  {}", style.ascii(&escape::line(command))));
    }
    if !presentation.notes.is_empty() {
        title(&mut text, "Notes", style);
        for note in &presentation.notes {
            item(&mut text, style.pick("•", "*"), note, style);
        }
    }
    if environment {
        for table in &presentation.environment {
            table::push(&mut text, table, &mut footnotes, style);
        }
    }
    if !footnotes.is_empty() {
        title(&mut text, "Unknown because", style);
        for (number, reason) in footnotes.all() {
            item(&mut text, &format!("[{number}]"), reason, style);
        }
    }
    text
}

fn heading(text: &mut String, presentation: &Presentation<'_>, style: TextStyle) {
    let heading = escape::line(&presentation.title);
    text.push_str(&style.paint(TextColour::Bold, &heading));
    text.push('\n');
    let separator = style.pick(" · ", " - ");
    let facts: Vec<String> =
        presentation.facts.iter().map(|fact| format!("{} {}", fact.name, escape::line(&fact.text))).collect();
    push_wrapped(text, &style.ascii(&facts.join(separator)), "", "", style, Some(TextColour::Dim));
}

fn verdict(text: &mut String, presentation: &Presentation<'_>, style: TextStyle) {
    text.push('\n');
    let sentence = style.ascii(&escape::line(&presentation.verdict));
    match &presentation.badge {
        Some(badge) => {
            let mark = mark(badge, style);
            let indent = " ".repeat(columns(&badge.text) + 6);
            let mut lines = String::new();
            push_wrapped(&mut lines, &sentence, &indent, &indent, style, Some(TextColour::Bold));
            text.push_str("  ");
            text.push_str(&mark);
            text.push_str("  ");
            text.push_str(lines.trim_start());
        }
        None => push_wrapped(text, &sentence, "  ", "  ", style, Some(TextColour::Bold)),
    }
}

fn mark(badge: &VerdictBadge, style: TextStyle) -> String {
    let paint = match badge.tone {
        BadgeTone::Good => TextColour::Green,
        BadgeTone::Fair => TextColour::Yellow,
        BadgeTone::Bad => TextColour::Red,
    };
    style.paint(paint, &format!("[{}]", escape::line(&badge.text)))
}

/// `  Goodput down     9.41 Mbit/s   95 % interval 9.38 to 9.44 Mbit/s`.
fn figures(text: &mut String, figures: &[KeyFigure], footnotes: &mut Footnotes, style: TextStyle) {
    if figures.is_empty() {
        return;
    }
    text.push('\n');
    let rows: Vec<[String; 2]> = figures
        .iter()
        .map(|figure| {
            let value = table::cell_text(&figure.value, footnotes, style);
            let before = figure.before.as_ref().map(|before| table::cell_text(before, footnotes, style));
            let value =
                before.map_or_else(|| value.clone(), |before| format!("{before} {} {value}", style.pick("→", "->")));
            [style.ascii(&escape::line(&figure.title)), value]
        })
        .collect();
    let widest = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0).min(36);
    let (labels, values) = (widest(0), widest(1));
    for (figure, [label, value]) in figures.iter().zip(&rows) {
        let value = format!("{}{value}", " ".repeat(values.saturating_sub(columns(value))));
        let lead = format!("  {label:<labels$}  ");
        let rest = remark(figure, style);
        let plain = format!("{lead}{value}   {rest}");
        if style.width.fits(&plain) || rest.is_empty() {
            let rest = if rest.is_empty() { rest } else { format!("   {}", style.paint(TextColour::Dim, &rest)) };
            push_line(text, &format!("{lead}{}{rest}", style.paint(TextColour::Bold, &value)));
        } else {
            push_line(text, &format!("{lead}{}", style.paint(TextColour::Bold, &value)));
            push_wrapped(text, &rest, "      ", "      ", style, Some(TextColour::Dim));
        }
    }
}

/// Interval and note of a figure.
fn remark(figure: &KeyFigure, style: TextStyle) -> String {
    let interval = figure.interval.filter(|_| figure.before.is_none());
    let interval =
        interval.map(|[low, high]| format!("95 % interval {} to {}", low.display_text(), high.display_text()));
    let note = figure.note.as_ref().map(|note| escape::line(note).into_owned());
    let parts: Vec<String> = [interval, note].into_iter().flatten().collect();
    style.ascii(&parts.join("; "))
}

fn title(text: &mut String, line: &str, style: TextStyle) {
    text.push('\n');
    text.push_str(&style.paint(TextColour::Cyan, &style.ascii(&escape::line(line))));
    text.push('\n');
}

fn item(text: &mut String, mark: &str, line: &str, style: TextStyle) {
    let first = format!("  {mark} ");
    let rest = " ".repeat(columns(&first));
    push_wrapped(text, &style.ascii(&escape::line(line)), &first, &rest, style, None);
}
