//! Text and table sections of the page.

use super::markup::{HtmlWriter as _, escaped, escaped_lines};
use super::plots::{self, DrawingContext};
use super::reduce::SliceCount;
use crate::footnotes::Footnotes;
use crate::presentation::{BadgeTone, KeyFigure, Presentation, ReportTable, SettingsInEffect, TableCell, VerdictBadge};
use linerate_documents::run::FigureJudgement;

/// A run, or two that are compared; `number` is unique within the page.
pub(super) fn article(presentation: &Presentation<'_>, number: usize, parts: SliceCount) -> String {
    let mut footnotes = Footnotes::default();
    let mut html = String::new();
    let end = plots::end_of(&presentation.charts);
    let title = escaped(&presentation.title);
    html.push_fmt(format_args!("<article id=\"run-{number}\" data-end=\"{end}\">\n<header>\n<h1>{title}</h1>\n"));
    if presentation.has_verdict() {
        verdict(&mut html, presentation);
    }
    facts(&mut html, presentation);
    html.push_str("</header>\n");
    figures(&mut html, &presentation.figures, number, &mut footnotes);
    settings(&mut html, presentation);
    if !presentation.charts.is_empty() {
        html.push_str("<section class=\"charts\" aria-label=\"Charts\">\n");
        let context = DrawingContext { parts, picture_parts: SliceCount::PICTURE, end_ns: end };
        for (index, chart) in presentation.charts.iter().enumerate() {
            html.push_str(&plots::figure(chart, &format!("run-{number}-chart-{}", index + 1), &context));
        }
        html.push_str("</section>\n");
    }
    for table in &presentation.tables {
        push_table(&mut html, table, number, &mut footnotes);
    }
    notes(&mut html, &presentation.notes);
    for table in &presentation.environment {
        push_table(&mut html, table, number, &mut footnotes);
    }
    push_footnotes(&mut html, number, &footnotes);
    html.push_str("</article>\n");
    html
}

fn verdict(html: &mut String, presentation: &Presentation<'_>) {
    html.push_str("<p class=\"verdict\">");
    if let Some(VerdictBadge { text, meaning, tone }) = &presentation.badge {
        // The border differs, too: solid, dashed and double.
        let tone = match tone {
            BadgeTone::Good => "good",
            BadgeTone::Fair => "fair",
            BadgeTone::Bad => "bad",
        };
        let (text, meaning) = (escaped(text), escaped(meaning));
        html.push_fmt(format_args!("<span class=\"badge {tone}\" title=\"{meaning}\">{text}</span> "));
    }
    html.push_fmt(format_args!("<span>{}</span></p>\n", escaped(&presentation.verdict)));
}

fn facts(html: &mut String, presentation: &Presentation<'_>) {
    html.push_str("<dl class=\"facts\">\n");
    for fact in &presentation.facts {
        html.push_fmt(format_args!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(&fact.name), escaped(&fact.text)));
    }
    html.push_str("</dl>\n");
}

fn figures(html: &mut String, figures: &[KeyFigure], number: usize, footnotes: &mut Footnotes) {
    if figures.is_empty() {
        return;
    }
    html.push_str("<section aria-label=\"Figures\"><dl class=\"figures\">\n");
    for figure in figures {
        html.push_fmt(format_args!(
            "<div data-figure=\"{}\"><dt>{}</dt>",
            escaped(&figure.name),
            escaped(&figure.title)
        ));
        let value = cell(&figure.value, number, footnotes);
        match figure.before.as_ref().map(|before| cell(before, number, footnotes)) {
            Some(before) => html.push_fmt(format_args!("<dd><span class=\"before\">{before} →</span> {value}</dd>")),
            None => html.push_fmt(format_args!("<dd>{value}</dd>")),
        }
        if let Some([low, high]) = figure.interval.filter(|_| figure.before.is_none()) {
            let title = "95 % confidence interval";
            html.push_fmt(format_args!(
                "<dd class=\"interval\" title=\"{title}\">{} to {}</dd>",
                low.display_text(),
                high.display_text()
            ));
        }
        if let Some(note) = &figure.note {
            let (class, sign) = figure.judgement.map_or(("", ""), judgement);
            html.push_fmt(format_args!("<dd class=\"remark {class}\">{sign}{}</dd>", escaped(note)));
        }
        html.push_str("</div>\n");
    }
    html.push_str("</dl></section>\n");
}

/// Settings in effect, the commands that undo the changes, and the one that goes on from the result.
fn settings(html: &mut String, presentation: &Presentation<'_>) {
    let SettingsInEffect { settings, undo } = &presentation.settings;
    let next = presentation.next.as_ref().filter(|_| undo.is_empty());
    if settings.is_empty() && next.is_none() {
        return;
    }
    html.push_str("<section class=\"settings\" aria-label=\"Settings\">\n");
    if !settings.is_empty() {
        html.push_str("<h2>Settings in effect</h2>\n<dl class=\"facts\">\n");
        for fact in settings {
            let (name, text) = (escaped(&fact.name), escaped(&fact.text));
            html.push_fmt(format_args!("<div><dt>{name}</dt><dd>{text}</dd></div>\n"));
        }
        html.push_str("</dl>\n");
    }
    for (label, command) in undo.iter().map(|undo| ("To undo", undo)).chain(next.map(|next| ("Next", next))) {
        html.push_fmt(format_args!("<p class=\"command\">{label}: <code>{}</code></p>\n", escaped(command)));
    }
    html.push_str("</section>\n");
}

/// Class and sign of a judgement: a sign differs where colours do not.
const fn judgement(judgement: FigureJudgement) -> (&'static str, &'static str) {
    match judgement {
        FigureJudgement::Better => ("good", "✓ "),
        FigureJudgement::Worse => ("bad", "✗ "),
        FigureJudgement::Different => ("fair", "≠ "),
        FigureJudgement::Equal => ("", "= "),
        FigureJudgement::CannotTell => ("", "? "),
    }
}

fn push_table(html: &mut String, table: &ReportTable, number: usize, footnotes: &mut Footnotes) {
    let (name, title) = (escaped(&table.name), escaped(&table.title));
    html.push_fmt(format_args!(
        "<section class=\"table\" data-table=\"{name}\">\n<h2 id=\"run-{number}-{name}\">{title}</h2>\n\
         <div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"run-{number}-{name}\"><table>\n<thead><tr>"
    ));
    for (index, column) in table.columns.iter().enumerate() {
        let class = if index == 0 || !is_numeric(table, index) { " class=\"words\"" } else { "" };
        html.push_fmt(format_args!("<th scope=\"col\"{class}>{}</th>", escaped(column)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_fmt(format_args!("<tr><th scope=\"row\">{}</th>", escaped(&row.label)));
        for index in 1..table.columns.len() {
            let class = if is_numeric(table, index) { "" } else { " class=\"words\"" };
            let shown = cell(row.cells.get(index - 1).unwrap_or(&TableCell::Nothing), number, footnotes);
            html.push_fmt(format_args!("<td{class}>{shown}</td>"));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    if let Some(note) = &table.note {
        html.push_fmt(format_args!("<p class=\"remark\">{}</p>\n", escaped(note)));
    }
    html.push_str("</section>\n");
}

/// Numbers are right-aligned, so that their digits can be compared; text and long qualifications are left-aligned.
fn is_numeric(table: &ReportTable, index: usize) -> bool {
    const SHORT: usize = 16;
    table.rows.iter().all(|row| match row.cells.get(index - 1) {
        Some(TableCell::Text(_)) => false,
        Some(TableCell::Qualified(_, text)) => text.chars().count() <= SHORT,
        _ => true,
    })
}

fn cell(cell: &TableCell, number: usize, footnotes: &mut Footnotes) -> String {
    let shown = cell.display_text();
    match cell {
        TableCell::Text(text) if text.contains('\n') => format!("<pre>{}</pre>", escaped_lines(text)),
        TableCell::Text(text) => escaped(text),
        TableCell::Value(quantity) | TableCell::Qualified(quantity, _) => {
            format!(
                "<data value=\"{}\" data-unit=\"{}\">{}</data>",
                quantity.exact(),
                quantity.unit_name(),
                escaped(&shown)
            )
        }
        TableCell::Unknown(reason) => {
            let note = footnotes.number(reason);
            format!(
                "<span class=\"unknown\" title=\"{}\">unknown<sup><a href=\"#run-{number}-reason-{note}\" \
                 aria-label=\"reason {note}\">{note}</a></sup></span>",
                escaped(reason)
            )
        }
        TableCell::Nothing => "<span class=\"unknown\">–</span>".to_owned(),
    }
}

fn notes(html: &mut String, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    html.push_str("<section class=\"notes\"><h2>Notes</h2>\n<ul>\n");
    for note in notes {
        html.push_fmt(format_args!("<li>{}</li>\n", escaped(note)));
    }
    html.push_str("</ul></section>\n");
}

fn push_footnotes(html: &mut String, number: usize, footnotes: &Footnotes) {
    if footnotes.is_empty() {
        return;
    }
    html.push_str("<section class=\"notes\"><h2>Unknown because</h2>\n<ol>\n");
    for (note, reason) in footnotes.all() {
        html.push_fmt(format_args!("<li id=\"run-{number}-reason-{note}\">{}</li>\n", escaped(reason)));
    }
    html.push_str("</ol></section>\n");
}
