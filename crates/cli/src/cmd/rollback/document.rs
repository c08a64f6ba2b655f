//! The JSON documents of `linerate rollback`.

use linerate_change::{ChangeSet, Item, Listed, Mode, Phase, Report};
use linerate_history::moment::rfc3339;
use linerate_model::schema::change::ChangeDocument;
use linerate_sys::host_access::Identity;
use serde_json::{Value, json};

pub(super) fn of_sets(sets: &[Listed], here: &Identity) -> Value {
    let readable: Vec<Value> = sets.iter().filter_map(|(_, set)| Some(of_set(set.as_ref().ok()?, here))).collect();
    let unreadable: Vec<Value> = sets
        .iter()
        .filter_map(|(id, set)| Some(json!({ "id": id.get(), "reason": set.as_ref().err()?.to_string() })))
        .collect();
    json!({ "schema": 1, "sets": readable, "unreadable": unreadable })
}

fn of_set(set: &ChangeSet, here: &Identity) -> Value {
    let file = set.file.as_ref().map(|file| json!({ "path": file.path, "is_back": file.is_back }));
    json!({
        "id": set.id.get(),
        "state": set.state(here).name(),
        "begun_at": rfc3339(set.begun_at),
        "purpose": set.purpose,
        "linerate_version": set.linerate_version,
        "kernel": set.identity.kernel,
        "kept_at": set.kept.as_ref().map(|(time, _)| rfc3339(*time)),
        "warnings": set.kept.as_ref().map_or(&[][..], |(_, warnings)| warnings),
        "closed_at": set.closed.as_ref().map(|(time, ..)| rfc3339(*time)),
        "closed_because": set.closed.as_ref().map(|(_, _, reason)| reason),
        "file": file,
        "changes": set.items.iter().map(of_item).collect::<Vec<_>>(),
    })
}

fn of_item(item: &Item) -> Value {
    let phase = match item.phase {
        Phase::Planned => "planned",
        Phase::NoNeed => "no_need",
        Phase::Refused => "refused",
        Phase::Attempted | Phase::TakingBack { .. } => "unfinished",
        Phase::InForce { .. } => "in_force",
        Phase::Back => "back",
        Phase::Replaced => "replaced",
    };
    let now = match &item.phase {
        Phase::InForce { now } => now.as_deref(),
        _ => None,
    };
    json!({
        "name": item.change.target.to_string(),
        "change": ChangeDocument::from(&item.change),
        "phase": phase,
        "written": now,
        "message": item.message,
    })
}

pub(super) fn of_reports(reports: &[Report], mode: Mode) -> Value {
    json!({
        "schema": 1,
        "dry_run": mode == Mode::DryRun,
        "is_clean": reports.iter().all(Report::is_clean),
        "sets": reports.iter().map(of_report).collect::<Vec<_>>(),
    })
}

fn of_report(report: &Report) -> Value {
    let targets = report.targets.iter().map(|target| {
        json!({
            "name": target.target.to_string(),
            "from": target.from,
            "to": target.to,
            "result": target.result.name(),
            "message": target.result.shown(&target.target).to_string(),
        })
    });
    let file = report.file.as_ref();
    json!({
        "id": report.id.get(),
        "state": report.state.name(),
        "is_clean": report.is_clean(),
        "targets": targets.collect::<Vec<_>>(),
        "file": file.map(|file| json!({ "path": file.path, "is_back": file.is_back, "message": file.message })),
        "notes": report.notes,
    })
}
