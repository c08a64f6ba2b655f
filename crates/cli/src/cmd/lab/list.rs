//! `linerate lab list`: the library.

use linerate_lab::description::{Label, PathDescription};
use linerate_lab::library;
use linerate_model::diagnosis::{Cause, Place};
use linerate_report::throughput_text::Style;
use serde_json::json;

use crate::console;
use crate::exit::Exit;

/// Before each line of a story.
const INDENT: &str = "    ";

/// Lists the paths, all or those with one cause.
pub(super) fn run(label: Option<&str>, json: bool) -> Exit {
    let wanted = match label.map(|name| Label::from_name(name).ok_or(name)).transpose() {
        Ok(wanted) => wanted,
        Err(name) => return unknown_label(name),
    };
    let paths: Vec<PathDescription> = library::all()
        .iter()
        .filter_map(|entry| entry.description().ok())
        .filter(|path| wanted.is_none_or(|label| path.label == label))
        .collect();
    if json {
        let entries: Vec<_> = paths
            .iter()
            .map(|path| {
                json!({
                    "name": path.name,
                    "label": path.label.name(),
                    "place": place(path.label).name(),
                    "story": path.story,
                    "source": path.source,
                    "scenario": path.scenario,
                })
            })
            .collect();
        console::data(&format!("{:#}\n", json!({ "schema": 1, "paths": entries })));
    } else {
        console::data(&text(&paths, console::data_style()));
    }
    Exit::Success
}

/// Where the cause lies that a path is built around.
fn place(label: Label) -> Place {
    let cause = Cause::ALL.iter().find(|cause| cause.name() == label.name());
    cause.map_or(Place::Nowhere, |cause| cause.place())
}

fn unknown_label(name: &str) -> Exit {
    let known: Vec<&str> = Label::ALL.iter().map(|label| label.name()).collect();
    console::error(&format!("there is no label {name:?}\nthe labels are {}", known.join(", ")), None);
    Exit::Unable
}

/// Each path's name and label on a line, its story below.
fn text(paths: &[PathDescription], style: Style) -> String {
    use std::fmt::Write as _;

    let width = usize::from(style.width.get());
    let (bold, dim, plain) = if style.colour { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let mut text = String::new();
    for path in paths {
        let _ = writeln!(text, "{bold}{}{plain}  {dim}[{}]{plain}", path.name, path.label.name());
        for line in wrapped(&path.story, width.saturating_sub(INDENT.len())) {
            let _ = writeln!(text, "{INDENT}{line}");
        }
    }
    text
}

/// Breaks `text` between words, so that each line has at most `room` characters where words allow.
pub(super) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_of_a_cause_has_its_place() {
        for label in Label::ALL {
            let is_known = Cause::ALL.iter().any(|cause| cause.name() == label.name());
            assert_eq!(is_known, ![Label::None, Label::VariableRate].contains(label), "{label}");
        }
        assert_eq!(place(Label::ReceiveWindow), Place::Receiver);
        assert_eq!(place(Label::None), Place::Nowhere);
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("extraordinarily long", 5), ["extraordinarily", "long"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
