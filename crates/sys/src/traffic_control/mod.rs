//! The whole traffic control of an interface: reading it into a record, restoring it from a record or making it from
//! the commands of a plan, and checking beforehand that a record can be restored.
//!
//! A record is text, one line for each object, and two records of an unchanged tree are equal, whatever traffic went
//! through it. Everything is read and made over rtnetlink in the kernel's own bytes: the output of `tc` is rounded, and
//! not always accepted again.

mod commands;
mod dual_queue;
mod dump;
mod inputs;
mod intermediate;
mod proof;
mod record;
mod replay;
mod summary;
#[cfg(test)]
mod tests;
mod volatile;

pub use proof::in_scratch_namespace;
pub use summary::{is_kernel_default, is_still_installed, summary};

use record::TrafficControlRecord;

use crate::error::{Error, Result};

/// Record of the objects on an interface and its intermediate device. Fails for objects that could not be restored:
/// filters of unknown kinds, programs without their instructions, blocks that interfaces share.
pub fn read(interface: &str) -> Result<String> {
    dump::dump(interface).map(|record| record.to_string())
}

/// Applies `value`: restores a record exactly, or runs commands of `tc` and `ip` (one a line) on a cleared interface.
/// `None` removes everything, the intermediate device as well. After an error, the present state is neither the old nor
/// the new one: write the record of before.
pub fn write(interface: &str, value: Option<&str>) -> Result<()> {
    match value {
        None => replay::remove(interface),
        Some(commands) if commands::is_commands(commands) => {
            let commands = commands::parse(interface, commands)?;
            commands::run_all(interface, &commands)
        }
        Some(text) => restore(&record_of(interface, text)?),
    }
}

/// The kernel frees deleted actions a moment later, and until then reuses them under their old number, with their old
/// effect. Then everything is removed, so that nothing holds them any longer, and restored again.
fn restore(record: &TrafficControlRecord) -> Result<()> {
    const TRIES: u32 = 5;
    const MOMENT: core::time::Duration = core::time::Duration::from_millis(20);
    for attempt in 1..TRIES {
        replay::restore(record)?;
        if dump::dump(&record.interface)? == *record {
            return Ok(());
        }
        replay::clear_interface(&record.interface)?;
        std::thread::sleep(MOMENT * attempt);
    }
    replay::restore(record)
}

/// Fails when a record could not be restored exactly: the kernel is asked, in a network namespace that is made for it
/// and gone afterwards. Needs root, except for the kernel's own defaults.
pub fn check_restorable(interface: &str, record: &str) -> Result<()> {
    proof::verify_restorable(&record_of(interface, record)?)
}

fn record_of(interface: &str, text: &str) -> Result<TrafficControlRecord> {
    let refused = |reason: String| Error::refused(format!("setting the traffic control of {interface}"), reason);
    let record = TrafficControlRecord::parse(text).map_err(|line| {
        refused(format!("{line:?} is neither a line of a record of traffic control nor a command of tc or ip"))
    })?;
    if record.interface == interface {
        Ok(record)
    } else {
        Err(refused(format!("the record is about {}", record.interface)))
    }
}
