//! Summary of a run: the result in plain words, a few figures and the next command, at most [`MAX_SUMMARY_LINES`] lines.

use super::{mark, remark, table, wrap};
use crate::escape;
use crate::footnotes::Footnotes;
use crate::presentation::{KeyFigure, Presentation, TableCell};
use crate::throughput_text::{TextColour, TextStyle};
use wrap::{columns, push_line, wrap_text};

/// Lines of a summary.
pub const MAX_SUMMARY_LINES: usize = 12;
/// Lines of the result in plain words, below a heading of one line.
const MAX_VERDICT_LINES: usize = 6;
/// Missing parts in a summary, and lines of each.
const MAX_MISSING: usize = 2;
const MAX_MISSING_LINES: usize = 2;
/// Figures of a summary.
const MAX_FIGURES: usize = 6;

/// Renders the summary of a run.
#[must_use]
pub fn summary(presentation: &Presentation<'_>, style: TextStyle) -> String {
    let mut text = String::new();
    heading(&mut text, presentation, style);
    verdict(&mut text, presentation, style);
    let (missing, next) = (missing(presentation, style), next(presentation, style));
    let used = [&text, &missing, &next].map(|part| part.lines().count()).iter().sum();
    figures(&mut text, presentation, MAX_SUMMARY_LINES.saturating_sub(used).min(MAX_FIGURES), style);
    text.push_str(&missing);
    text.push_str(&next);
    text
}

/// Renders the result in one line.
#[must_use]
pub fn brief(presentation: &Presentation<'_>, style: TextStyle) -> String {
    let badge = presentation.badge.as_ref().map_or_else(String::new, |badge| format!("{} ", mark(badge, style)));
    format!("{badge}{}\n", style.ascii(&escape::line(&presentation.verdict)))
}

/// Title, duration and early end: in one line, for which the least important part is omitted first, else in two.
fn heading(text: &mut String, presentation: &Presentation<'_>, style: TextStyle) {
    let separator = style.pick(" · ", " - ");
    let fact = |name: &str| presentation.facts.iter().find(|fact| fact.name == name);
    let shown = |text: &str| style.ascii(&escape::line(text));
    let [duration, ended] = ["Duration", "Ended"].map(|name| fact(name).map(|fact| shown(&fact.text)));
    let whole = shown(&presentation.title);
    let short = whole.rsplit_once(", port ").map_or(whole.as_str(), |(title, _)| title);
    let with = |facts: [Option<&String>; 2]| {
        let parts: Vec<&str> = core::iter::once("").chain(facts.into_iter().flatten().map(String::as_str)).collect();
        parts.join(separator)
    };
    let all = with([duration.as_ref(), ended.as_ref()]);
    let forms = [(whole.as_str(), all.clone()), (short, all), (short, with([None, ended.as_ref()]))];
    let fitting = forms.into_iter().find(|(title, facts)| style.width.fits(&format!("{title}{facts}")));
    let (title, facts) = fitting.clone().unwrap_or((short, String::new()));
    let columns = usize::from(style.width.get());
    let title = shortened(title, columns, style);
    push_line(text, &format!("{}{}", style.paint(TextColour::Bold, &title), style.paint(TextColour::Dim, &facts)));
    if let Some(ended) = ended.filter(|_| fitting.is_none()) {
        push_line(text, &style.paint(TextColour::Dim, &shortened(&ended, columns, style)));
    }
}

/// The text, or as much of it as fits.
fn shortened(text: &str, width: usize, style: TextStyle) -> String {
    let mut line = text.to_owned();
    if columns(&line) > width {
        shorten(&mut line, width, style);
    }
    line
}

fn verdict(text: &mut String, presentation: &Presentation<'_>, style: TextStyle) {
    let badge = presentation.badge.as_ref();
    let indent = 2 + badge.map_or(0, |badge| columns(&badge.text) + 4);
    let width = usize::from(style.width.get()).saturating_sub(indent).max(16);
    let mut lines = wrap_text(&style.ascii(&escape::line(&presentation.verdict)), width);
    let most = (MAX_VERDICT_LINES + 1).saturating_sub(text.lines().count());
    if lines.len() > most {
        lines.truncate(most);
        shorten(&mut lines[most - 1], width, style);
    }
    for (index, line) in lines.iter().enumerate() {
        let lead = match badge.filter(|_| index == 0) {
            Some(badge) => format!("  {}  ", mark(badge, style)),
            None => " ".repeat(indent),
        };
        push_line(text, &format!("{lead}{}", style.paint(TextColour::Bold, line)));
    }
}

/// Ends a line that goes on in the full report.
fn shorten(line: &mut String, width: usize, style: TextStyle) {
    let more = style.pick("…", "...");
    while columns(line) + columns(more) > width {
        line.pop();
    }
    line.push_str(more);
}

fn figures(text: &mut String, presentation: &Presentation<'_>, most: usize, style: TextStyle) {
    let is_known = |figure: &&KeyFigure| !matches!(figure.value, TableCell::Unknown(_) | TableCell::Nothing);
    let shown: Vec<&KeyFigure> = presentation.lead_figures().filter(is_known).take(most).collect();
    let mut unused = Footnotes::default();
    let rows: Vec<[String; 2]> = shown
        .iter()
        .map(|figure| {
            let value = table::cell_text(&figure.value, &mut unused, style);
            [style.ascii(&escape::line(&figure.title)), value]
        })
        .collect();
    let widest = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let (labels, values) = (widest(0), widest(1));
    for (figure, [label, value]) in shown.iter().zip(&rows) {
        let fits = |remark: &str| style.width.fits(&format!("  {label:<labels$}  {value:<values$}   {remark}"));
        let note = style.ascii(&escape::line(figure.note.as_deref().unwrap_or_default()));
        let rest = [remark(figure, style), note].into_iter().find(|remark| fits(remark)).unwrap_or_default();
        let rest = style.paint(TextColour::Dim, &rest);
        let padding = " ".repeat(values - columns(value));
        push_line(text, &format!("  {label:<labels$}  {}{padding}   {rest}", style.paint(TextColour::Bold, value)));
    }
}

/// Parts that were asked for and are missing, each with its reason.
fn missing(presentation: &Presentation<'_>, style: TextStyle) -> String {
    let mut text = String::new();
    let width = usize::from(style.width.get()).saturating_sub(2).max(16);
    for sentence in presentation.missing.iter().take(MAX_MISSING) {
        let mut lines = wrap_text(&style.ascii(&escape::line(sentence)), width);
        if lines.len() > MAX_MISSING_LINES {
            lines.truncate(MAX_MISSING_LINES);
            shorten(&mut lines[MAX_MISSING_LINES - 1], width, style);
        }
        for line in lines {
            push_line(&mut text, &format!("  {}", style.paint(TextColour::Dim, &line)));
        }
    }
    text
}

/// The next command, on a line of its own: it is copied.
fn next(presentation: &Presentation<'_>, style: TextStyle) -> String {
    let Some(command) = &presentation.next else { return String::new() };
    format!("  {} {}\n", style.paint(TextColour::Dim, "Next:"), style.ascii(&escape::line(command)))
}
