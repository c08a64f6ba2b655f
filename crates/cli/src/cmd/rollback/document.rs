//! JSON documents of `linerate rollback`.

use linerate_change::{ChangePhase, ChangeSet, ListedChangeSet, PlannedChange, RollbackMode, RollbackReport};
use linerate_history::utc_time::rfc3339;
use linerate_sys::host_access::HostIdentity;
use serde_json::{Value, json};

pub(super) fn sets_document(sets: &[ListedChangeSet], here: &HostIdentity) -> Value {
    let readable: Vec<Value> =
        sets.iter().filter_map(|(_, set)| Some(set_document(set.as_ref().ok()?, here))).collect();
    let unreadable: Vec<Value> = sets
        .iter()
        .filter_map(|(id, set)| Some(json!({ "id": id.get(), "reason": set.as_ref().err()?.to_string() })))
        .collect();
    json!({ "schema": 1, "sets": readable, "unreadable": unreadable })
}

fn set_document(set: &ChangeSet, here: &HostIdentity) -> Value {
    let file = set.file.as_ref().map(|file| json!({ "path": file.path, "is_back": file.is_reverted }));
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
        "changes": set.items.iter().map(item_document).collect::<Vec<_>>(),
    })
}

fn item_document(item: &PlannedChange) -> Value {
    let phase = match item.phase {
        ChangePhase::Planned => "planned",
        ChangePhase::NoNeed => "no_need",
        ChangePhase::Refused => "refused",
        ChangePhase::Attempted | ChangePhase::TakingBack { .. } => "unfinished",
        ChangePhase::InForce { .. } => "in_force",
        ChangePhase::Back => "back",
        ChangePhase::Replaced => "replaced",
    };
    let now = match &item.phase {
        ChangePhase::InForce { now } => now.as_deref(),
        _ => None,
    };
    json!({
        "name": item.change.target.to_string(),
        "change": item.change,
        "phase": phase,
        "written": now,
        "message": item.message,
    })
}

pub(super) fn reports_document(reports: &[RollbackReport], mode: RollbackMode) -> Value {
    json!({
        "schema": 1,
        "dry_run": mode == RollbackMode::DryRun,
        "is_clean": reports.iter().all(RollbackReport::is_clean),
        "sets": reports.iter().map(report_document).collect::<Vec<_>>(),
    })
}

fn report_document(report: &RollbackReport) -> Value {
    let targets = report.targets.iter().map(|target| {
        json!({
            "name": target.target.to_string(),
            "from": target.from,
            "to": target.to,
            "result": target.result.name(),
            "message": target.result.with_display_values(&target.target).to_string(),
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
