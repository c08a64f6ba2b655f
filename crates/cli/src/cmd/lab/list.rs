//! `linerate lab list`: paths of the library.

use linerate_documents::lab_paths::{self, LabPathEntry, LabPathsDocument};
use linerate_lab::description::PathDescription;
use linerate_lab::library;
use linerate_model::diagnosis::{Cause, CauseLocation, PathLabel};
use linerate_report::text::wrap_text;
use linerate_report::throughput_text::TextStyle;

use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Indentation of a description.
const INDENT: &str = "    ";

/// Lists all paths, or those with one cause.
pub(super) fn run(label: Option<&str>, json: bool) -> ExitStatus {
    let wanted = match label.map(|name| PathLabel::from_name(name).ok_or(name)).transpose() {
        Ok(wanted) => wanted,
        Err(name) => return unknown_label(name),
    };
    let paths: Vec<PathDescription> = library::all()
        .iter()
        .filter_map(|entry| entry.description().ok())
        .filter(|path| wanted.is_none_or(|label| path.label == label))
        .collect();
    if json {
        let paths = paths.into_iter().map(entry).collect();
        print_json(DocumentKind::LabPaths, &LabPathsDocument { schema: lab_paths::SCHEMA, paths });
    } else {
        console::data(&text(&paths, console::data_style()));
    }
    ExitStatus::Success
}

fn entry(path: PathDescription) -> LabPathEntry {
    let PathDescription { name, label, story, source, scenario, .. } = path;
    LabPathEntry { name, label, location: cause_location(label), story, source, scenario }
}

/// Location of the cause that a path is built around.
fn cause_location(label: PathLabel) -> CauseLocation {
    let cause = Cause::ALL.iter().find(|cause| cause.name() == label.name());
    cause.map_or(CauseLocation::Nowhere, |cause| cause.location())
}

fn unknown_label(name: &str) -> ExitStatus {
    let known: Vec<&str> = PathLabel::ALL.iter().map(|label| label.name()).collect();
    console::error(&format!("unknown label {name:?}\nexpected one of: {}", known.join(", ")), None);
    ExitStatus::Unable
}

/// Name and label of each path, followed by its description.
fn text(paths: &[PathDescription], style: TextStyle) -> String {
    use std::fmt::Write as _;

    let width = usize::from(style.width.get());
    let (bold, dim, plain) = if style.colour { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let mut text = String::new();
    for path in paths {
        let _ = writeln!(text, "{bold}{}{plain}  {dim}[{}]{plain}", path.name, path.label.name());
        for line in wrap_text(&path.story, width.saturating_sub(INDENT.len())) {
            let _ = writeln!(text, "{INDENT}{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_of_a_cause_has_its_location() {
        for label in PathLabel::ALL {
            let is_known = Cause::ALL.iter().any(|cause| cause.name() == label.name());
            assert_eq!(is_known, ![PathLabel::None, PathLabel::VariableRate].contains(label), "{label}");
        }
        assert_eq!(cause_location(PathLabel::ReceiveWindow), CauseLocation::Receiver);
        assert_eq!(cause_location(PathLabel::None), CauseLocation::Nowhere);
    }
}
