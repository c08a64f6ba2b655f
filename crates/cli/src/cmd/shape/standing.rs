//! What stands on an interface and its intermediate device, as `tc -j` tells it.

use std::time::Duration;

use linerate_shape::plan::{Parent, Plan};
use linerate_shape::read_back::{self, ReadBackError, Standing};
use linerate_sys::command;
use linerate_sys::interface::Interface;

use super::error::ShapeError;

const PATIENCE: Duration = Duration::from_secs(10);

fn tc(words: &[&str]) -> Result<String, ShapeError> {
    Ok(command::run_checked("tc", words, None, PATIENCE)?.stdout_text())
}

/// Reads both devices of a plan; one that is not there has nothing.
pub(crate) fn read(plan: &Plan) -> Result<Standing, ShapeError> {
    let mut standing = Standing::default();
    let devices = [Some(plan.device.as_str()), plan.intermediate.as_deref()];
    for device in devices.into_iter().flatten().filter(|device| Interface::by_name(device).is_ok()) {
        let unclear = |error: ReadBackError| ShapeError::unable(format!("reading what stands on {device}: {error}"));
        standing.disciplines.extend(
            read_back::disciplines(&tc(&["-j", "qdisc", "show", "dev", device])?, Some(device)).map_err(unclear)?,
        );
        standing
            .classes
            .extend(read_back::classes(&tc(&["-j", "class", "show", "dev", device])?, device).map_err(unclear)?);
        for parent in parents(plan, device) {
            let place = match parent {
                Parent::Root => "root".to_owned(),
                Parent::Ingress => "ffff:".to_owned(),
                Parent::At(handle) => handle.to_string(),
            };
            // A parent that is not there has no filters.
            let told = tc(&["-j", "filter", "show", "dev", device, "parent", &place]).unwrap_or_default();
            if !told.trim().is_empty() {
                standing.filters.extend(read_back::filters(&told, device, parent).map_err(unclear)?);
            }
        }
    }
    Ok(standing)
}

/// Where the plan has filters on this device.
fn parents(plan: &Plan, device: &str) -> Vec<Parent> {
    let mut parents: Vec<Parent> =
        plan.filters().filter(|filter| filter.device == device).map(|filter| filter.parent).collect();
    parents.sort_unstable();
    parents.dedup();
    parents
}
