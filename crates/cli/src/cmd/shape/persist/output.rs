//! What was done, or would be, for people and as a document.

use linerate_model::schema::shaper_persistence::{PersistenceFile, PersistenceStep, SCHEMA, ShaperPersistenceDocument};
use linerate_report::throughput_text::Style;

use super::super::plan_text::Page;
use super::Plan;
use crate::cmd::measurement::print_json;
use crate::console;

/// Prints it.
pub(super) fn show(plan: &Plan, dry_run: bool, json: bool) {
    let document = document(plan, !dry_run);
    if json {
        print_json(&document);
    } else {
        console::data(&text(&document, console::data_style()));
    }
}

pub(super) fn document(plan: &Plan, is_done: bool) -> ShaperPersistenceDocument {
    let (before, after) = plan.changes.lines();
    let file = |file: &super::FileChange| PersistenceFile {
        path: file.path.clone(),
        becomes: file.becomes,
        mode: file.new.as_ref().map(|(_, mode)| mode.octal().to_owned()),
        contents: file.new.as_ref().map(|(contents, _)| contents.clone()),
    };
    ShaperPersistenceDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        device: plan.device.clone(),
        words: plan.words.clone(),
        is_done,
        managers: plan.managers.clone(),
        files: plan.files.iter().map(file).collect(),
        commands: before.into_iter().chain(after).collect(),
        notes: plan.notes.clone(),
    }
}

pub(super) fn text(document: &ShaperPersistenceDocument, style: Style) -> String {
    let mut page = Page::new(style);
    page.heading(&heading(document));
    for manager in &document.managers {
        page.entry(2, &manager.manager, 20, &manager.reason);
    }
    if !document.files.is_empty() {
        page.heading("Files");
    }
    for file in &document.files {
        let mode = file.mode.as_ref().map(|mode| format!(" ({mode})")).unwrap_or_default();
        page.line(&format!("  {:<10} {}{mode}", step(file.becomes, document.is_done), file.path));
    }
    if !document.commands.is_empty() {
        page.heading(if document.is_done { "Commands that were run" } else { "Commands" });
    }
    for command in &document.commands {
        page.line(&format!("  {command}"));
    }
    if !document.is_done {
        contents(&mut page, &document.files);
    }
    if !document.notes.is_empty() {
        page.heading("Notes");
    }
    for note in &document.notes {
        page.paragraph(2, note);
    }
    page.text()
}

fn heading(document: &ShaperPersistenceDocument) -> String {
    let (device, is_done) = (&document.device, document.is_done);
    match (document.words.is_empty(), document.files.is_empty()) {
        (true, true) => format!("{device}: no file of linerate's sets up a shaper at boot"),
        (true, false) if is_done => format!("{device}: no shaper is set up at boot any more"),
        (true, false) => format!("{device}: no shaper would be set up at boot any more"),
        (false, _) if is_done => format!("{device}: its shaper is set up at each boot, by"),
        (false, _) => format!("{device}: its shaper would be set up at each boot, by"),
    }
}

const fn step(step: PersistenceStep, is_done: bool) -> &'static str {
    match (step, is_done) {
        (PersistenceStep::Created, true) => "written",
        (PersistenceStep::Created, false) => "write",
        (PersistenceStep::Replaced, true) => "replaced",
        (PersistenceStep::Replaced, false) => "replace",
        (PersistenceStep::Unchanged, _) => "as it is",
        (PersistenceStep::Removed, true) => "removed",
        (PersistenceStep::Removed, false) => "remove",
    }
}

fn contents(page: &mut Page, files: &[PersistenceFile]) {
    for file in files.iter().filter(|file| file.becomes != PersistenceStep::Unchanged) {
        let Some(contents) = &file.contents else { continue };
        page.heading(&file.path);
        for line in contents.lines() {
            page.line(&if line.is_empty() { String::new() } else { format!("    {line}") });
        }
    }
}
