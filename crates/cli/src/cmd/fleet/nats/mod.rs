//! Commands of a fleet whose agents meet over NATS.

mod agent;
mod collect;
mod members;
mod options;
mod publish;
mod run_task;
mod shipping;
mod task_loop;

pub(super) use agent::run as run_agent;
pub(super) use collect::{CollectArguments, run as collect};
pub(super) use members::{MembersArguments, run as members};
pub(super) use options::AgentServers;
pub(super) use publish::{PublishArguments, run as publish};
pub(super) use run_task::{RunArguments, run as run_task};

use linerate_fleet::{FleetDescription, Timetable};
use linerate_nats::NatsFleet;
use linerate_sys::host;

use crate::console;
use crate::exit::ExitStatus;

/// Exit status of a command, with its error on the standard error.
fn finish(command: &str, done: Result<(), String>) -> ExitStatus {
    match done {
        Ok(()) => ExitStatus::Success,
        Err(reason) => {
            console::error(&format!("fleet {command}: {reason}"), None);
            ExitStatus::Unable
        }
    }
}

/// Published description and its revision, with its timetable.
fn published(fleet: &NatsFleet) -> Result<(u64, FleetDescription, Timetable), String> {
    let stored = fleet.description().map_err(|error| error.to_string())?;
    let missing = || format!("{} has no description: publish one first (linerate fleet publish)", fleet.servers());
    let stored = stored.ok_or_else(missing)?;
    let read = FleetDescription::read(&stored.text).and_then(|description| {
        let timetable = Timetable::new(&description)?;
        Ok((stored.revision, description, timetable))
    });
    read.map_err(|error| format!("the description on {}, revision {}: {error}", fleet.servers(), stored.revision))
}

/// Random identity: 16 hexadecimal digits.
fn random_identity() -> Result<String, String> {
    let mut bytes = [0; 8];
    host::random_bytes(&mut bytes).map_err(|error| error.to_string())?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}
