//! A report for a terminal.
//!
//! Pure functions of a [`Presentation`] and a [`Style`]: colours only when asked for, ASCII where there is no Unicode, and
//! nothing wider than the terminal as long as single words fit into it. What comes from a document is made harmless
//! ([`crate::escape`]).

mod plots;
mod table;
mod wrap;

use crate::escape;
use crate::footnotes::Footnotes;
use crate::presentation::{Badge, KeyFigure, Presentation, Tone};
use crate::throughput_text::{Paint, Style};
pub use wrap::wrapped;
use wrap::{columns, push_line, push_wrapped};

/// All of `presentations`, one after the other; each line ends with a line feed.
#[must_use]
pub fn render(presentations: &[Presentation<'_>], style: Style) -> String {
    let pages: Vec<String> = presentations.iter().map(|presentation| page(presentation, style, true)).collect();
    let rule = style.pick("─", "-").repeat(usize::from(style.width.get()).min(80));
    pages.join(&format!("\n{}\n\n", style.paint(Paint::Dim, &rule)))
}

/// One report without the environment: what a measurement shows when it is done.
#[must_use]
pub fn result(presentation: &Presentation<'_>, style: Style) -> String {
    page(presentation, style, false)
}

fn page(presentation: &Presentation<'_>, style: Style, environment: bool) -> String {
    let mut text = String::new();
    heading(&mut text, presentation, style);
    verdict(&mut text, presentation, style);
    let mut footnotes = Footnotes::default();
    figures(&mut text, &presentation.figures, &mut footnotes, style);
    for chart in &presentation.charts {
        plots::push(&mut text, chart, style);
    }
    for table in &presentation.tables {
        table::push(&mut text, table, &mut footnotes, style);
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

fn heading(text: &mut String, presentation: &Presentation<'_>, style: Style) {
    let heading = escape::line(&presentation.title);
    text.push_str(&style.paint(Paint::Bold, &heading));
    text.push('\n');
    let separator = style.pick(" · ", " - ");
    let facts: Vec<String> =
        presentation.facts.iter().map(|fact| format!("{} {}", fact.name, escape::line(&fact.text))).collect();
    push_wrapped(text, &style.ascii(&facts.join(separator)), "", "", style, Some(Paint::Dim));
}

fn verdict(text: &mut String, presentation: &Presentation<'_>, style: Style) {
    text.push('\n');
    let sentence = style.ascii(&escape::line(&presentation.verdict));
    match &presentation.badge {
        Some(badge) => {
            let mark = mark(badge, style);
            let indent = " ".repeat(columns(&badge.text) + 6);
            let mut lines = String::new();
            push_wrapped(&mut lines, &sentence, &indent, &indent, style, Some(Paint::Bold));
            text.push_str("  ");
            text.push_str(&mark);
            text.push_str("  ");
            text.push_str(lines.trim_start());
        }
        None => push_wrapped(text, &sentence, "  ", "  ", style, Some(Paint::Bold)),
    }
}

fn mark(badge: &Badge, style: Style) -> String {
    let paint = match badge.tone {
        Tone::Good => Paint::Green,
        Tone::Fair => Paint::Yellow,
        Tone::Bad => Paint::Red,
    };
    style.paint(paint, &format!("[{}]", escape::line(&badge.text)))
}

/// `  Goodput down     9.41 Mbit/s   95 % interval 9.38 to 9.44 Mbit/s`.
fn figures(text: &mut String, figures: &[KeyFigure], footnotes: &mut Footnotes, style: Style) {
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
            let rest = if rest.is_empty() { rest } else { format!("   {}", style.paint(Paint::Dim, &rest)) };
            push_line(text, &format!("{lead}{}{rest}", style.paint(Paint::Bold, &value)));
        } else {
            push_line(text, &format!("{lead}{}", style.paint(Paint::Bold, &value)));
            push_wrapped(text, &rest, "      ", "      ", style, Some(Paint::Dim));
        }
    }
}

/// The interval and the note.
fn remark(figure: &KeyFigure, style: Style) -> String {
    let interval = figure.interval.filter(|_| figure.before.is_none());
    let interval = interval.map(|[low, high]| format!("95 % interval {} to {}", low.shown(), high.shown()));
    let note = figure.note.as_ref().map(|note| escape::line(note).into_owned());
    let parts: Vec<String> = [interval, note].into_iter().flatten().collect();
    style.ascii(&parts.join("; "))
}

fn title(text: &mut String, words: &str, style: Style) {
    text.push('\n');
    text.push_str(&style.paint(Paint::Cyan, &style.ascii(&escape::line(words))));
    text.push('\n');
}

fn item(text: &mut String, mark: &str, words: &str, style: Style) {
    let first = format!("  {mark} ");
    let rest = " ".repeat(columns(&first));
    push_wrapped(text, &style.ascii(&escape::line(words)), &first, &rest, style, None);
}
