//! Page of a fleet: the faults, the matrix with a slider of time, and the results of each direction.

use core::time::Duration;
use std::collections::BTreeSet;

use linerate_documents::civil_time;
use linerate_documents::fleet_report::UnusualFigure;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_model::diagnosis::{CauseLocation, DiagnosisVerdict};
use linerate_units::{BitRate, Ratio, WallTime, display};
use serde_json::{Value, json};

use super::faults::{Ends, faults};
use super::history_chart;
use super::matrix::{CellState, DirectedResults, FleetMatrix};
use super::text::{extent, short};
use super::unusual;
use crate::html::{FleetPage, HtmlWriter as _, embedded_json, escaped, fleet_page};
use crate::presentation::{Presentation, present};

/// Largest number of runs whose whole report is on the page, the latest of each direction; the others have their command.
const MAX_WHOLE_RUNS: usize = 24;

/// Largest number of results that are listed for a direction, the latest ones.
const MAX_LISTED: usize = 48;

/// Largest number of times of the slider.
const MAX_TIMES: usize = 400;

/// Page of results, which are in the order of their times. It needs no network, and shows the latest state without scripts.
#[must_use]
pub fn page(title: &str, results: &[FleetResult], unusual: &[UnusualFigure]) -> String {
    let matrix = FleetMatrix::new(results);
    let mut body = String::new();
    body.push_fmt(format_args!("<section class=\"fleet\">\n<h1>{}</h1>\n", escaped(title)));
    body.push_fmt(format_args!("<p class=\"extent\">{}</p>\n", escaped(&extent(&matrix, results))));
    push_faults(&mut body, &matrix);
    push_unusual(&mut body, &matrix, unusual);
    push_controls(&mut body);
    let marked: BTreeSet<Ends> = unusual.iter().flat_map(|figure| ends_of(&matrix, figure)).collect();
    push_matrix(&mut body, &matrix, &marked);
    body.push_str("</section>\n");
    let whole = whole_runs(&matrix);
    push_directions(&mut body, &matrix, &whole);
    body.push_fmt(format_args!(
        "<script type=\"application/json\" id=\"fleet-data\">{}</script>\n",
        embedded_json(&data(&matrix))
    ));
    let presentations: Vec<Presentation<'_>> =
        whole.iter().filter_map(|result| result.run.as_deref()).map(present).collect();
    fleet_page(&FleetPage { title, body: &body, runs: &presentations })
}

fn push_faults(html: &mut String, matrix: &FleetMatrix<'_>) {
    let found = faults(matrix);
    if found.is_empty() {
        let sentence = if matrix.directions.is_empty() {
            "Nothing was measured."
        } else {
            "Nothing but the paths' own rates limits a direction."
        };
        html.push_fmt(format_args!("<p class=\"verdict\">{sentence}</p>\n"));
        return;
    }
    html.push_str("<ul class=\"faults\">\n");
    for fault in found {
        let class = class_of(fault.cause.location());
        let sentence = escaped(&fault.sentence(matrix));
        html.push_fmt(format_args!("<li><span class=\"cell {class}\">{}</span> {sentence}</li>\n", letter(class)));
    }
    html.push_str("</ul>\n");
}

fn push_controls(html: &mut String) {
    html.push_str(
        "<div class=\"controls\" hidden><label>Colour <select id=\"fleet-layer\">\
         <option value=\"cause\">what limits it</option><option value=\"goodput\">goodput</option>\
         <option value=\"added\">delay that a load adds</option><option value=\"rtt\">round trip</option>\
         <option value=\"loss\">loss</option></select></label>\
         <label class=\"time\">Time <input type=\"range\" id=\"fleet-time\" min=\"0\" value=\"0\"> \
         <output id=\"fleet-clock\"></output></label></div>\n",
    );
}

fn push_matrix(html: &mut String, matrix: &FleetMatrix<'_>, marked: &BTreeSet<Ends>) {
    html.push_str("<div class=\"scroll\"><table class=\"matrix\">\n<thead><tr><th>from \\ to</th>");
    for host in &matrix.hosts {
        html.push_fmt(format_args!("<th scope=\"col\"><span>{}</span></th>", escaped(host)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (from, host) in matrix.hosts.iter().enumerate() {
        html.push_fmt(format_args!("<tr><th scope=\"row\">{}</th>", escaped(host)));
        for to in 0..matrix.hosts.len() {
            push_cell(html, matrix, (from, to), marked.contains(&(from, to)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html.push_str("<ul class=\"key\">");
    for (class, meaning) in CLASSES {
        html.push_fmt(format_args!("<li><span class=\"cell {class}\">{}</span> {meaning}</li>", letter(class)));
    }
    if !marked.is_empty() {
        html.push_str("<li class=\"slow\"><span class=\"cell c-none\"></span> worse than usual now</li>");
    }
    html.push_str("</ul>\n");
}

/// Directions of a figure; both for one of the round trip.
fn ends_of(matrix: &FleetMatrix<'_>, figure: &UnusualFigure) -> Vec<Ends> {
    let index = |name: &str| matrix.hosts.binary_search(&name).ok();
    let [from, to] = unusual::ends(figure);
    let (Some(from), Some(to)) = (index(from), index(to)) else { return Vec::new() };
    if figure.direction.is_some() { vec![(from, to)] } else { vec![(from, to), (to, from)] }
}

fn push_unusual(html: &mut String, matrix: &FleetMatrix<'_>, figures: &[UnusualFigure]) {
    if figures.is_empty() {
        return;
    }
    html.push_str("<h2>Worse than usual</h2>\n<ul class=\"unusual\">\n");
    for figure in figures {
        let sentence = escaped(&unusual::sentence(figure));
        let linked = match ends_of(matrix, figure).first() {
            Some((from, to)) => format!("<a href=\"#direction-{from}-{to}\">{sentence}</a>"),
            None => sentence,
        };
        html.push_fmt(format_args!("<li>{linked}<p>{}</p></li>\n", escaped(&unusual::changes(figure))));
    }
    html.push_str("</ul>\n");
}

fn push_cell(html: &mut String, matrix: &FleetMatrix<'_>, ends: Ends, is_unusual: bool) {
    let latest = matrix.directions.get(&ends).and_then(DirectedResults::latest);
    match latest {
        None if ends.0 == ends.1 => html.push_str("<td class=\"own\"></td>"),
        None => html.push_str("<td><span class=\"cell c-none\" title=\"not measured\"></span></td>"),
        Some(state) => {
            let (class, (from, to)) = (cell_class(state), ends);
            let title = format!("{} → {}: {}", matrix.hosts[from], matrix.hosts[to], short(state));
            html.push_fmt(format_args!(
                "<td{}><a class=\"cell {class}\" id=\"cell-{from}-{to}\" href=\"#direction-{from}-{to}\" title=\"{}\">{}</a></td>",
                if is_unusual { " class=\"slow\"" } else { "" },
                escaped(&title),
                letter(class)
            ));
        }
    }
}

/// Classes of cells and their meanings.
const CLASSES: [(&str, &str); 7] = [
    ("c-full", "the path is full"),
    ("c-application", "an application"),
    ("c-host", "a host"),
    ("c-network", "the network"),
    ("c-unknown", "unknown"),
    ("c-failed", "failed or skipped"),
    ("c-none", "not measured"),
];

fn cell_class(state: &CellState<'_>) -> &'static str {
    match (state.result.outcome, state.cause) {
        (SessionOutcome::Done, Some(verdict)) => class_of(verdict.cause.location()),
        (SessionOutcome::Done, None) => "c-unknown",
        _ => "c-failed",
    }
}

const fn class_of(location: CauseLocation) -> &'static str {
    match location {
        CauseLocation::Nowhere => "c-full",
        CauseLocation::Application => "c-application",
        CauseLocation::Sender | CauseLocation::Receiver | CauseLocation::Hosts => "c-host",
        CauseLocation::Network => "c-network",
        CauseLocation::Unknown => "c-unknown",
    }
}

/// Letter of a class: colours alone do not reach every reader.
fn letter(class: &str) -> &'static str {
    match class {
        "c-full" => "✓",
        "c-application" => "A",
        "c-host" => "H",
        "c-network" => "N",
        "c-unknown" => "?",
        "c-failed" => "×",
        _ => "",
    }
}

/// Latest runs of directions, faults first, each once.
fn whole_runs<'a>(matrix: &FleetMatrix<'a>) -> Vec<&'a FleetResult> {
    let latest = || matrix.directions.values().filter_map(DirectedResults::latest);
    let faults = latest().filter(|state| state.is_fault());
    let others = latest().filter(|state| !state.is_fault());
    let mut runs: Vec<&FleetResult> = Vec::new();
    for state in faults.chain(others) {
        let result = state.result;
        if result.run.is_some() && !runs.iter().any(|known| known.id == result.id) && runs.len() < MAX_WHOLE_RUNS {
            runs.push(result);
        }
    }
    runs
}

fn push_directions(html: &mut String, matrix: &FleetMatrix<'_>, whole: &[&FleetResult]) {
    html.push_str("<section class=\"directions\" aria-label=\"Directions\">\n");
    for ((from, to), direction) in &matrix.directions {
        let name = escaped(&format!("{} → {}", matrix.hosts[*from], matrix.hosts[*to]));
        let latest = direction.latest().map(short).unwrap_or_default();
        html.push_fmt(format_args!(
            "<details id=\"direction-{from}-{to}\"><summary><b>{name}</b> {}</summary>\n",
            escaped(&latest)
        ));
        html.push_str(&history_chart::picture(direction, cell_class).unwrap_or_default());
        html.push_str("<ol>\n");
        for state in direction.states.iter().rev().take(MAX_LISTED) {
            push_state(html, state, whole);
        }
        html.push_str("</ol>\n");
        if direction.states.len() > MAX_LISTED {
            html.push_fmt(format_args!("<p>{} earlier results.</p>\n", direction.states.len() - MAX_LISTED));
        }
        html.push_str("</details>\n");
    }
    html.push_str("</section>\n");
}

fn push_state(html: &mut String, state: &CellState<'_>, whole: &[&FleetResult]) {
    let result = state.result;
    let time = civil_time::readable(state.result.at());
    html.push_fmt(format_args!(
        "<li><time>{}</time> <i>{}</i> {}",
        escaped(&time),
        escaped(result.test.name()),
        escaped(&short(state))
    ));
    if let Some(index) = whole.iter().position(|known| known.id == result.id) {
        html.push_fmt(format_args!(" <a href=\"#run-{}\">report</a>", index + 1));
    } else if result.run.is_some() {
        html.push_fmt(format_args!(" <code>linerate fleet report RESULTS --run {}</code>", escaped(&result.id)));
    }
    if let Some(verdict) = state.cause {
        push_evidence(html, verdict);
    }
    html.push_str("</li>\n");
}

fn push_evidence(html: &mut String, verdict: &DiagnosisVerdict) {
    let confidence = verdict.confidence.name();
    html.push_fmt(format_args!("<p>{} ({} confidence)</p>", escaped(&verdict.text), confidence));
    for advice in &verdict.advice {
        html.push_fmt(format_args!("<p>{}</p>", escaped(advice)));
    }
}

/// States over time for the script: the times of the slider, and for each direction its states by the index of their time.
fn data(matrix: &FleetMatrix<'_>) -> Value {
    let mut times: Vec<u64> = matrix
        .directions
        .values()
        .flat_map(|direction| &direction.states)
        .filter(|state| state.is_judgement() || state.round_trip.is_some())
        .map(|state| state.at.since_unix_epoch().as_secs())
        .collect();
    times.sort_unstable();
    times.dedup();
    let step = times.len().div_ceil(MAX_TIMES).max(1);
    // The last time of each group, so that the end of the slider is the latest state.
    let times: Vec<u64> = times.chunks(step).filter_map(|group| group.last().copied()).collect();
    let cells: Vec<Value> = matrix
        .directions
        .iter()
        .map(|((from, to), direction)| {
            json!({ "from": from, "to": to, "states": direction.states.iter().map(|state| state_data(state, &times)).collect::<Vec<_>>() })
        })
        .collect();
    let names: Vec<String> =
        times.iter().map(|time| civil_time::readable(WallTime::from_unix(Duration::from_secs(*time)))).collect();
    json!({ "hosts": matrix.hosts, "times": names, "cells": cells })
}

fn state_data(state: &CellState<'_>, times: &[u64]) -> Value {
    let at = state.at.since_unix_epoch().as_secs();
    let class = if state.is_judgement() { Some(cell_class(state)) } else { None };
    json!([
        times.partition_point(|time| *time < at),
        class,
        class.map(letter),
        short(state),
        state.goodput.map(BitRate::bits_per_second),
        state.added_delay.map(|time| time.as_secs_f64() * 1e3),
        state.round_trip.map(|time| time.as_secs_f64() * 1e3),
        state.loss.map(Ratio::get),
        state.goodput.map(display::rate),
    ])
}
