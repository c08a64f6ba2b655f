//! What is particular to each kind of measurement: its tables, its own charts, its notes.

pub mod diagnose;
pub mod load;
pub mod path;
pub mod rfc6349;
pub mod throughput;

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
    }
}

/// `yes` or `no`.
fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
