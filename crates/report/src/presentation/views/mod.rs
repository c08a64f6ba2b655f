//! Views: the tables, charts and notes of each kind of measurement.

pub mod diagnose;
pub mod doctor;
mod http_load;
pub mod load;
pub mod path;
mod profiles;
pub mod rfc6349;
mod route;
mod rr;
pub mod throughput;
pub mod tune;
pub mod web;

use linerate_documents::run::{RunDocument, RunResult};
use linerate_model::path::UnknownValue;

use linerate_documents::run::FigureUnit;

use super::{BarChart, BarGroup, Chart, ChartPlot, Presentation, Quantity};

/// Adds the content that is specific to the command's document.
pub(super) fn complete(presentation: &mut Presentation<'_>, run: &RunDocument) {
    match &run.result {
        RunResult::Throughput(document) => throughput::complete(presentation, document),
        RunResult::Path(document) => path::complete(presentation, document),
        RunResult::Load(document) => load::complete(presentation, document),
        RunResult::Rfc6349(document) => rfc6349::complete(presentation, document),
        RunResult::Rr(document) => rr::complete(presentation, document),
        RunResult::Diagnose(document) => diagnose::complete(presentation, document),
        RunResult::Tune(document) => tune::complete(presentation, document),
        RunResult::Doctor(document) => doctor::complete(presentation, document),
        RunResult::Web(document) => web::complete(presentation, document),
    }
}

/// Adds notes and the reasons for unknown values, each once: nested documents often repeat them.
fn add_notes(presentation: &mut Presentation<'_>, notes: &[String], unknown: &[UnknownValue]) {
    let reasons = unknown.iter().map(|unknown| format!("{}: {}.", unknown.key, unknown.reason.trim_end_matches('.')));
    for note in notes.iter().cloned().chain(reasons) {
        if !presentation.notes.contains(&note) {
            presentation.notes.push(note);
        }
    }
}

/// Rates side by side, those that are known; `None` where fewer than two are.
fn rates_chart<'a>(title: &str, rates: &[(&str, Option<f64>)]) -> Option<Chart<'a>> {
    let known: Vec<(&str, f64)> = rates.iter().filter_map(|(label, rate)| Some((*label, (*rate)?))).collect();
    let text = |(label, rate): &(&str, f64)| format!("{label} {}", Quantity::bits_per_second(*rate).display_text());
    let row = |(label, rate): &(&str, f64)| BarGroup { label: (*label).to_owned(), bars: vec![(Some(*rate), None)] };
    (known.len() > 1).then(|| Chart {
        name: "comparison".to_owned(),
        title: title.to_owned(),
        summary: format!("{title}: {}.", known.iter().map(text).collect::<Vec<_>>().join("; ")),
        plot: ChartPlot::Bars(BarChart {
            unit: FigureUnit::BitsPerSecond,
            legend: vec!["goodput".to_owned()],
            rows: known.iter().map(row).collect(),
        }),
    })
}

/// `yes` or `no`.
fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
