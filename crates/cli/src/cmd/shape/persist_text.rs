//! Text and JSON output of `persist`.

use linerate_documents::shaper_persistence::{PersistenceFile, PersistenceStep, ShaperPersistenceDocument};
use linerate_report::throughput_text::TextStyle;

use super::plan_text::PlanPage;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;

/// Prints the plan or its result.
pub(super) fn show(document: &ShaperPersistenceDocument, json: bool) {
    if json {
        print_json(DocumentKind::ShaperPersistence, document);
    } else {
        console::data(&text(document, console::data_style()));
    }
}

pub(super) fn text(document: &ShaperPersistenceDocument, style: TextStyle) -> String {
    let mut page = PlanPage::new(style);
    page.heading(&heading(document));
    for manager in &document.managers {
        page.entry(2, manager.manager.name(), 20, &manager.reason);
    }
    if !document.files.is_empty() {
        page.heading("Files");
    }
    for file in &document.files {
        let mode = file.mode.as_ref().map(|mode| format!(" ({mode})")).unwrap_or_default();
        page.line(&format!("  {:<10} {}{mode}", step(file.change, document.is_done), file.path));
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
    match (document.arguments.is_empty(), document.files.is_empty()) {
        (true, true) => format!("{device}: no file of linerate sets up a shaper at boot"),
        (true, false) if is_done => format!("{device}: its shaper is no longer set up at boot"),
        (true, false) => format!("{device}: its shaper would no longer be set up at boot"),
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
        (PersistenceStep::Edited, true) => "edited",
        (PersistenceStep::Edited, false) => "edit",
        (PersistenceStep::Unchanged, _) => "unchanged",
        (PersistenceStep::Removed, true) => "removed",
        (PersistenceStep::Removed, false) => "remove",
    }
}

fn contents(page: &mut PlanPage, files: &[PersistenceFile]) {
    for file in files.iter().filter(|file| file.change != PersistenceStep::Unchanged) {
        let Some(contents) = &file.contents else { continue };
        page.heading(&file.path);
        for line in contents.lines() {
            page.line(&if line.is_empty() { String::new() } else { format!("    {line}") });
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_documents::shaper_persistence::{PersistenceManager, SCHEMA, ShaperManager};

    use super::*;

    fn document(is_done: bool) -> ShaperPersistenceDocument {
        let file = PersistenceFile {
            path: "/etc/systemd/system/linerate-shape-eth0.service".to_owned(),
            change: PersistenceStep::Created,
            mode: Some("0644".to_owned()),
            contents: Some("[Unit]\nBindsTo=a.device\n".to_owned()),
        };
        ShaperPersistenceDocument {
            schema: SCHEMA,
            linerate_version: String::new(),
            device: "eth0".to_owned(),
            arguments: vec!["eth0".to_owned()],
            is_done,
            managers: vec![PersistenceManager { manager: ShaperManager::Networkd, reason: "asked for".to_owned() }],
            files: vec![file],
            commands: vec!["systemctl daemon-reload".to_owned()],
            notes: vec!["no [CAKE] section".to_owned()],
        }
    }

    #[test]
    fn people_and_programs_are_told_the_same() {
        let planned = text(&document(false), TextStyle::plain());
        for part in ["would be set up", "networkd", "systemctl daemon-reload", "BindsTo=", "[CAKE]"] {
            assert!(planned.contains(part), "{part}\n{planned}");
        }
        let done = text(&document(true), TextStyle::plain());
        assert!(done.contains("is set up") && !done.contains("BindsTo="), "{done}");
        let nothing = ShaperPersistenceDocument { arguments: Vec::new(), files: Vec::new(), ..document(true) };
        assert!(text(&nothing, TextStyle::plain()).contains("no file"));
    }
}
