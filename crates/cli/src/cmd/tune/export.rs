//! Export of plans and of changes in effect in another tool's format.

use std::fs;
use std::io;
use std::path::Path;

use linerate_change::ChangeId;
use linerate_model::change::ChangePlan;
use linerate_operate::tuning::changes_in_force;
use linerate_rules::export::{ExportHeading, ExportedFile, HostPlan, OmittedChange, PlanFormat, complete_formats};
use linerate_sys::{clock, host};
use linerate_units::WallTime;

use crate::console;
use crate::exit::ExitStatus;

/// Maximum length of an omitted change on standard error; the files have all of it.
const MAX_LINE_LENGTH: usize = 200;

/// Exports changes in effect.
pub(super) fn changes(format: &PlanFormat, directory: Option<&Path>, id: Option<ChangeId>) -> ExitStatus {
    match changes_in_force(id) {
        Ok(found) => {
            let Some(made_at) = found.changed_at.filter(|_| !found.changes.is_empty()) else {
                console::note("no changes of linerate are in effect");
                return ExitStatus::Success;
            };
            let numbers: Vec<String> = found.sets.iter().map(ToString::to_string).collect();
            let evidence = format!("change sets {} of `linerate rollback --list`", numbers.join(", "));
            let plan = HostPlan { host: host::host_name(), plan: ChangePlan { made_at, changes: found.changes } };
            write(format, directory, &[plan], &heading(made_at, evidence))
        }
        Err(error) => {
            console::error(&error.to_string(), None);
            if error.needs_privilege() { ExitStatus::Privilege } else { ExitStatus::Unable }
        }
    }
}

/// Header of an export.
pub(super) fn heading(at: WallTime, evidence: String) -> ExportHeading {
    ExportHeading {
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        date: clock::format_utc(at, "%Y-%m-%d %H:%M UTC"),
        evidence,
    }
}

/// Prints the export, or writes its files. A plan with a change that the format cannot express misses its threshold.
pub(super) fn write(
    format: &PlanFormat,
    directory: Option<&Path>,
    plans: &[HostPlan],
    heading: &ExportHeading,
) -> ExitStatus {
    if plans.iter().all(|host| host.plan.changes.is_empty()) {
        console::note("nothing to export: the plan has no changes");
        return ExitStatus::Success;
    }
    let export = format.export(plans, heading);
    match directory {
        None => print(&export.files),
        Some(directory) => {
            if let Err(problem) = save(directory, &export.files) {
                console::error(&problem, None);
                return ExitStatus::Unable;
            }
        }
    }
    if export.omitted.is_empty() {
        return ExitStatus::Success;
    }
    report_omitted(format, plans, &export.omitted);
    ExitStatus::Missed
}

/// Prints the files; several as sections under their names.
fn print(files: &[ExportedFile]) {
    if let [file] = files {
        return console::data(&file.text);
    }
    let sections: Vec<String> = files.iter().map(|file| format!("# ==> {} <==\n{}", file.name, file.text)).collect();
    console::data(&sections.join("\n"));
    console::note(&format!("{} files, each under its name: --out DIRECTORY writes them", files.len()));
}

/// Writes the files and prints their names.
fn save(directory: &Path, files: &[ExportedFile]) -> Result<(), String> {
    for ExportedFile { name, text, .. } in files {
        let file = directory.join(name);
        let failed =
            |cause: io::Error| format!("writing {}: {}", file.display(), linerate_sys::describe_os_error(&cause));
        fs::create_dir_all(file.parent().unwrap_or(directory)).map_err(failed)?;
        fs::write(&file, text).map_err(failed)?;
        console::data(&format!("{}\n", file.display()));
    }
    Ok(())
}

fn report_omitted(format: &PlanFormat, plans: &[HostPlan], omitted: &[OmittedChange]) {
    let total: usize = plans.iter().map(|host| host.plan.changes.len()).sum();
    let mut lines = format!("the format {} cannot express {} of {total} changes:", format.name, omitted.len());
    for change in omitted {
        let line: String = change.to_string().chars().take(MAX_LINE_LENGTH).collect();
        lines.push_str("\n  ");
        lines.push_str(&line);
    }
    let complete = complete_formats(plans);
    if !complete.is_empty() {
        lines.push_str("\nall of them fit in: ");
        lines.push_str(&complete.join(", "));
    }
    console::error(&lines, None);
}
