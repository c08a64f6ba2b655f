//! A report in Markdown (`CommonMark` with GitHub's tables), for issues, wikis and mails.
//!
//! Charts become their summaries. Text from a document is escaped.

use core::fmt::Write as _;

use crate::escape;
use crate::footnotes::Footnotes;
use crate::presentation::{
    BarChart, Chart, ChartPlot, Presentation, Quantity, ReportTable, SettingsInEffect, TableCell,
};

/// Renders all `presentations`, one after the other.
#[must_use]
pub fn render(presentations: &[Presentation<'_>]) -> String {
    let pages: Vec<String> = presentations.iter().map(page).collect();
    pages.join("\n---\n\n")
}

fn page(presentation: &Presentation<'_>) -> String {
    let mut text = String::new();
    heading(&mut text, presentation);
    let mut footnotes = Footnotes::default();
    figures(&mut text, presentation, &mut footnotes);
    settings(&mut text, &presentation.settings);
    for chart in &presentation.charts {
        picture(&mut text, chart);
    }
    for table in &presentation.tables {
        push_table(&mut text, table, &mut footnotes);
    }
    if !presentation.notes.is_empty() {
        text.push_str("\n## Notes\n\n");
        for note in &presentation.notes {
            push(&mut text, &format!("* {}", escaped(note)));
        }
    }
    for table in &presentation.environment {
        push_table(&mut text, table, &mut footnotes);
    }
    if !footnotes.is_empty() {
        text.push_str("\n## Unknown because\n\n");
        for (number, reason) in footnotes.all() {
            push(&mut text, &format!("{number}. {}", escaped(reason)));
        }
    }
    text
}

fn heading(text: &mut String, presentation: &Presentation<'_>) {
    push(text, &format!("# {}\n", escaped(&presentation.title)));
    let badge = presentation.badge.as_ref().map_or_else(String::new, |badge| format!("{}: ", escaped(&badge.text)));
    if presentation.has_verdict() {
        push(text, &format!("**{badge}{}**\n", escaped(&presentation.verdict)));
    }
    for fact in &presentation.facts {
        push(text, &format!("* {}: {}", escaped(&fact.name), escaped(&fact.text)));
    }
}

fn figures(text: &mut String, presentation: &Presentation<'_>, footnotes: &mut Footnotes) {
    if presentation.figures.is_empty() {
        return;
    }
    let compared = presentation.figures.iter().any(|figure| figure.before.is_some());
    let (head, rule) = if compared { ("| Before ", "|---:") } else { ("", "") };
    push(text, &format!("\n## Figures\n\n| Figure {head}| Value | 95 % interval | Remark |\n|---{rule}|---:|---|---|"));
    for figure in &presentation.figures {
        let interval = figure
            .interval
            .map_or_else(String::new, |[low, high]| format!("{} to {}", low.display_text(), high.display_text()));
        let before = figure.before.as_ref().map(|before| format!("{} | ", cell(before, footnotes)));
        let before = before.unwrap_or_else(|| if compared { " | ".to_owned() } else { String::new() });
        let (title, value) = (escaped(&figure.title), cell(&figure.value, footnotes));
        let note = figure.note.as_deref().map_or_else(String::new, escaped);
        push(text, &format!("| {title} | {before}{value} | {interval} | {note} |"));
    }
}

fn settings(text: &mut String, SettingsInEffect { settings, undo }: &SettingsInEffect) {
    if settings.is_empty() {
        return;
    }
    text.push_str("\n## Settings in effect\n\n");
    for fact in settings {
        push(text, &format!("* {}: {}", escaped(&fact.name), escaped(&fact.text)));
    }
    for command in undo {
        push(text, &format!("* To undo: {}", escaped(command)));
    }
}

fn picture(text: &mut String, chart: &Chart<'_>) {
    push(text, &format!("\n## {}\n\n{}", escaped(&chart.title), escaped(&chart.summary)));
    if let ChartPlot::Bars(bars) = &chart.plot {
        push_bars(text, bars);
    }
}

fn push_bars(text: &mut String, bars: &BarChart) {
    let legend: Vec<String> = bars.legend.iter().map(|entry| escaped(entry)).collect();
    push(text, &format!("\n| | {} |\n|---|{}", legend.join(" | "), "---:|".repeat(legend.len())));
    for row in &bars.rows {
        let shown = |value: Option<f64>| {
            value.map_or("unknown".to_owned(), |value| Quantity::new(value, bars.unit).display_text())
        };
        let values: Vec<String> = row.bars.iter().map(|(value, _)| shown(*value)).collect();
        push(text, &format!("| {} | {} |", escaped(&row.label), values.join(" | ")));
    }
}

fn push_table(text: &mut String, table: &ReportTable, footnotes: &mut Footnotes) {
    push(text, &format!("\n## {}\n", escaped(&table.title)));
    let columns: Vec<String> = table.columns.iter().map(|column| escaped(column)).collect();
    let alignments: Vec<&str> =
        (0..columns.len()).map(|index| if index > 0 && is_numeric(table, index) { "---:" } else { "---" }).collect();
    push(text, &format!("| {} |\n|{}|", columns.join(" | "), alignments.join("|")));
    for row in &table.rows {
        let cells =
            (1..columns.len()).map(|index| cell(row.cells.get(index - 1).unwrap_or(&TableCell::Nothing), footnotes));
        let cells: Vec<String> = cells.collect();
        push(text, &format!("| {} | {} |", escaped(&row.label), cells.join(" | ")));
    }
    if let Some(note) = &table.note {
        push(text, &format!("\n{}", escaped(note)));
    }
}

fn is_numeric(table: &ReportTable, index: usize) -> bool {
    table.rows.iter().all(|row| !matches!(row.cells.get(index - 1), Some(TableCell::Text(_))))
}

fn cell(cell: &TableCell, footnotes: &mut Footnotes) -> String {
    match cell {
        TableCell::Unknown(reason) => format!("unknown \\[{}\\]", footnotes.number(reason)),
        other => escaped(&other.display_text()),
    }
}

fn push(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String never fails");
}

/// `text` in one line, with Markdown and HTML escaped.
fn escaped(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    let line = escape::line(&line);
    let mut escaped = String::with_capacity(line.len());
    for character in line.chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '$') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markdown_is_shown() {
        assert_eq!(escaped("a|b <c> [d](e) *f*\n`g`"), "a\\|b \\<c\\> \\[d\\](e) \\*f\\* \\`g\\`");
    }

    proptest! {
        #[test]
        fn no_text_breaks_out_of_its_cell(text in any::<String>()) {
            let shown = escaped(&text);
            prop_assert!(!shown.contains('\n'));
            let mut escape = false;
            for character in shown.chars() {
                prop_assert!(escape || !"|<>[]`*&".contains(character), "{shown}");
                escape = character == '\\' && !escape;
            }
        }
    }
}
