//! Export of changes in effect in another tool's format.

use linerate_change::ChangeId;
use linerate_model::change::ChangePlan;
use linerate_operate::diagnose::RunStart;
use linerate_operate::tuning::changes_in_force;
use linerate_rules::export::PlanFormat;

use super::known_path::heading;
use crate::console;
use crate::exit::ExitStatus;

/// Prints the export.
pub(super) fn run(format: &PlanFormat, id: Option<ChangeId>) -> ExitStatus {
    match changes_in_force(id) {
        Ok(found) if found.sets.is_empty() => {
            console::note("no changes of linerate are in effect");
            ExitStatus::Success
        }
        Ok(found) => {
            let begun = RunStart::now();
            let numbers: Vec<String> = found.sets.iter().map(ToString::to_string).collect();
            let evidence = format!("change sets {} of `linerate rollback --list`", numbers.join(", "));
            let plan = ChangePlan { made_at: begun.at, changes: found.changes };
            console::data(&format.export(&plan, &heading(&begun, evidence)));
            ExitStatus::Success
        }
        Err(error) => {
            console::error(&error.to_string(), None);
            if error.needs_privilege() { ExitStatus::Privilege } else { ExitStatus::Unable }
        }
    }
}
