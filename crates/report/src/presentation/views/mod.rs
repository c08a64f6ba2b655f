//! Views: the tables, charts and notes of each kind of measurement.

pub mod diagnose;
pub mod doctor;
pub mod load;
pub mod path;
pub mod rfc6349;
pub mod throughput;
pub mod tune;

use linerate_documents::run::{RunDocument, RunResult};
use linerate_model::path::UnknownValue;

use super::Presentation;

/// Adds the content that is specific to the command's document.
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

/// Adds notes and the reasons for unknown values, each once: nested documents often repeat them.
fn add_notes(presentation: &mut Presentation<'_>, notes: &[String], unknown: &[UnknownValue]) {
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
