//! What is particular to each kind of measurement: its tables, its own charts, its notes.

pub mod diagnose;
pub mod doctor;
pub mod load;
pub mod path;
pub mod rfc6349;
pub mod throughput;
pub mod tune;

use linerate_model::schema::path::Unknown;
use linerate_model::schema::run::{RunDocument, RunResult};

use super::Presentation;

/// Adds what only the command's own document holds.
pub(super) fn complete(presentation: &mut Presentation<'_>, run: &RunDocument) {
    match &run.result {
        RunResult::Throughput(document) => throughput::complete(presentation, document),
        RunResult::Path(document) => path::complete(presentation, document),
        RunResult::Load(document) => load::complete(presentation, document),
        RunResult::Rfc6349(document) => rfc6349::complete(presentation, document),
        RunResult::Diagnose(document) => diagnose::complete(presentation, document),
        RunResult::Tune(document) => tune::complete(presentation, document),
        RunResult::Doctor(document) => doctor::complete(presentation, document),
    }
}

/// Adds notes and what is unknown with its reason, each once: documents within a document often say the same.
fn add_notes(presentation: &mut Presentation<'_>, notes: &[String], unknown: &[Unknown]) {
    let reasons = unknown.iter().map(|unknown| format!("{}: {}.", unknown.key, unknown.reason.trim_end_matches('.')));
    for note in notes.iter().cloned().chain(reasons) {
        if !presentation.notes.contains(&note) {
            presentation.notes.push(note);
        }
    }
}

/// `yes` or `no`.
fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
