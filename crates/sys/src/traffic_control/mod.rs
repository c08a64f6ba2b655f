//! The whole traffic control of an interface: reading it into a record, making it from a record or from the commands of a
//! plan, and finding out beforehand whether a record can be made again.
//!
//! A record is text, one line for each object, and two records of a tree that nobody has changed are equal, whatever
//! traffic went through it. Everything is read and made over rtnetlink in the kernel's own bytes: what `tc` shows is
//! rounded, and not always taken again.

mod commands;
mod dump;
mod inputs;
mod proof;
mod record;
mod replay;
mod summary;
#[cfg(test)]
mod tests;
mod volatile;

pub use proof::in_scratch_namespace;
pub use summary::{is_kernels_own, is_still, summary};

use record::Record;

use crate::error::{Error, Result};

/// What stands on an interface and its intermediate device, as a record. Fails with what could not be put back: filters
/// of unknown kinds, programs without their instructions, blocks that interfaces share.
pub fn read(interface: &str) -> Result<String> {
    dump::dump(interface).map(|record| record.to_string())
}

/// Makes what `value` has: a record exactly, commands of `tc` and `ip` (one a line) from nothing. `None` takes everything
/// away, the intermediate device as well. When this is an error, what stands there is neither the one nor the other: write
/// the record of before.
pub fn write(interface: &str, value: Option<&str>) -> Result<()> {
    match value {
        None => replay::remove(interface),
        Some(commands) if commands::is_commands(commands) => {
            let commands = commands::parse(interface, commands)?;
            commands::carry_out(interface, &commands)
        }
        Some(text) => restore(&record_of(interface, text)?),
    }
}

/// The kernel takes deleted actions away a moment later, and until then hands them out again under their old number, with
/// what they did before: then it is done once more.
fn restore(record: &Record) -> Result<()> {
    const TRIES: u32 = 5;
    const MOMENT: core::time::Duration = core::time::Duration::from_millis(20);
    for attempt in 1..=TRIES {
        replay::restore(record)?;
        if dump::dump(&record.interface)? == *record {
            break;
        }
        std::thread::sleep(MOMENT * attempt);
    }
    Ok(())
}

/// Fails when what a record has could not be put back exactly as it is: the kernel is asked, in a network namespace that is
/// made for it and gone afterwards. Needs root, except for what the kernel made by itself.
pub fn check_restorable(interface: &str, record: &str) -> Result<()> {
    proof::prove(&record_of(interface, record)?)
}

fn record_of(interface: &str, text: &str) -> Result<Record> {
    let refused = |reason: String| Error::refused(format!("setting the traffic control of {interface}"), reason);
    let record = Record::parse(text).map_err(|line| {
        refused(format!("{line:?} is neither a line of a record of traffic control nor a command of tc or ip"))
    })?;
    if record.interface == interface {
        Ok(record)
    } else {
        Err(refused(format!("the record is about {}", record.interface)))
    }
}
