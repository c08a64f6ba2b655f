//! JSON documents of `linerate rollback`.

use linerate_change::{
    ChangePhase, ChangeSet, KeptFile, ListedChangeSet, PlannedChange, RollbackMode, RollbackReport, TargetReport,
};
use linerate_documents::change_reports::{
    self, ChangeReportsDocument, ChangeSetRollback, FileRollback, TargetRollback,
};
use linerate_documents::change_sets::{
    self, ChangeSetsDocument, PersistentFile, RecordedChange, RecordedChangeSet, UnreadableChangeSet,
};
use linerate_documents::civil_time::rfc3339;
use linerate_sys::host_access::HostIdentity;

pub(super) fn sets_document(sets: &[ListedChangeSet], here: &HostIdentity) -> ChangeSetsDocument {
    let mut document = ChangeSetsDocument { schema: change_sets::SCHEMA, sets: Vec::new(), unreadable: Vec::new() };
    for (id, set) in sets {
        match set {
            Ok(set) => document.sets.push(recorded_set(set, here)),
            Err(error) => document.unreadable.push(UnreadableChangeSet { id: id.get(), reason: error.to_string() }),
        }
    }
    document
}

fn recorded_set(set: &ChangeSet, here: &HostIdentity) -> RecordedChangeSet {
    RecordedChangeSet {
        id: set.id.get(),
        state: set.state(here),
        begun_at: rfc3339(set.begun_at),
        purpose: set.purpose.clone(),
        linerate_version: set.linerate_version.clone(),
        kernel: set.identity.kernel.clone(),
        kept_at: set.kept.as_ref().map(|(time, _)| rfc3339(*time)),
        warnings: set.kept.as_ref().map(|(_, warnings)| warnings.clone()).unwrap_or_default(),
        closed_at: set.closed.as_ref().map(|(time, ..)| rfc3339(*time)),
        closed_because: set.closed.as_ref().map(|(_, _, reason)| reason.clone()),
        file: set.file.as_ref().map(persistent_file),
        changes: set.items.iter().map(recorded_change).collect(),
    }
}

fn persistent_file(file: &KeptFile) -> PersistentFile {
    PersistentFile { path: file.path.display().to_string(), is_back: file.is_reverted }
}

fn recorded_change(item: &PlannedChange) -> RecordedChange {
    let written = match &item.phase {
        ChangePhase::InForce { now } => now.clone(),
        _ => None,
    };
    RecordedChange {
        name: item.change.target.to_string(),
        change: item.change.clone(),
        phase: item.phase.name(),
        written,
        message: item.message.clone(),
    }
}

pub(super) fn reports_document(reports: &[RollbackReport], mode: RollbackMode) -> ChangeReportsDocument {
    ChangeReportsDocument {
        schema: change_reports::SCHEMA,
        dry_run: mode == RollbackMode::DryRun,
        is_clean: reports.iter().all(RollbackReport::is_clean),
        sets: reports.iter().map(set_rollback).collect(),
    }
}

fn set_rollback(report: &RollbackReport) -> ChangeSetRollback {
    let file = report.file.as_ref().map(|file| FileRollback {
        path: file.path.display().to_string(),
        is_back: file.is_back,
        message: file.message.clone(),
    });
    ChangeSetRollback {
        id: report.id.get(),
        state: report.state,
        is_clean: report.is_clean(),
        targets: report.targets.iter().map(target_rollback).collect(),
        file,
        notes: report.notes.clone(),
    }
}

fn target_rollback(target: &TargetReport) -> TargetRollback {
    TargetRollback {
        name: target.target.to_string(),
        from: target.from.clone(),
        to: target.to.clone(),
        result: target.result.name(),
        message: target.result.with_display_values(&target.target).to_string(),
    }
}
