//! Queueing of an interface and its intermediate device, from `tc -j`, or from its text where its JSON is broken.

use linerate_shape::plan::{ShaperPlan, TcParent};
use linerate_shape::read_back::{self, FoundQueueing, ReadBackError};
use linerate_sys::interface::NetworkInterface;
use linerate_sys::{command, iproute2};

use super::error::ShapeError;

fn tc(words: &[&str]) -> Result<String, ShapeError> {
    Ok(command::run_checked("tc", words, None, iproute2::TIME_LIMIT)?.stdout_text())
}

/// Reads both devices of a plan; a missing device has no queueing.
pub(crate) fn read(plan: &ShaperPlan) -> Result<FoundQueueing, ShapeError> {
    let mut standing = FoundQueueing::default();
    let devices = [Some(plan.device.as_str()), plan.intermediate.as_deref()];
    for device in devices.into_iter().flatten().filter(|device| NetworkInterface::by_name(device).is_ok()) {
        let unclear =
            |error: ReadBackError| ShapeError::impossible(format!("cannot read the queueing of {device}: {error}"));
        standing.disciplines.extend(
            read_back::disciplines(&tc(&["-j", "qdisc", "show", "dev", device])?, Some(device)).map_err(unclear)?,
        );
        standing
            .classes
            .extend(read_back::classes(&tc(&["-j", "class", "show", "dev", device])?, device).map_err(unclear)?);
        for parent in parents(plan, device) {
            let place = match parent {
                TcParent::Root => "root".to_owned(),
                TcParent::Ingress => "ffff:".to_owned(),
                TcParent::At(handle) => handle.to_string(),
            };
            // A missing parent has no filters.
            let words = ["-j", "filter", "show", "dev", device, "parent", &place];
            let answer = tc(&words).unwrap_or_default();
            let found = read_back::filters(&answer, device, parent);
            // An older `tc` mixes text into its JSON.
            standing.filters.extend(match found {
                Ok(found) => found,
                Err(_) => read_back::filters_of_text(&tc(&words[1..])?, device, parent),
            });
        }
    }
    Ok(standing)
}

/// Parents of the plan's filters on this device.
fn parents(plan: &ShaperPlan, device: &str) -> Vec<TcParent> {
    let mut parents: Vec<TcParent> =
        plan.filters().filter(|filter| filter.device == device).map(|filter| filter.parent).collect();
    parents.sort_unstable();
    parents.dedup();
    parents
}
