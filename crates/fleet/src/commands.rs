//! Command line of a session.

use core::time::Duration;

use linerate_documents::fleet_plan::{SessionDirections, TestSession};
use linerate_documents::fleet_result::FleetTestKind;

use crate::description::FleetDescription;
use crate::sessions;

/// Packets of a light session: a few seconds at the rate of `linerate path`.
const LIGHT_PACKETS: u32 = 50;

/// Arguments of linerate with which the agent of the starting address runs a session; `None` when the session is not one of
/// this description.
#[must_use]
pub fn session_command(description: &FleetDescription, session: &TestSession) -> Option<Vec<String>> {
    let address = &description.addresses.get(session.other_address())?.address;
    let test = description.tests.get(&description.tasks.get(&*session.task)?.test)?;
    let time = seconds(sessions::transfer_time(test));
    let mut command: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| command.extend(words.iter().map(|word| (*word).to_owned()));
    match &session.kind {
        FleetTestKind::Throughput => {
            let streams = test.spec.parallel.unwrap_or(1).to_string();
            add(&["test", address, "-t", &time, "-P", &streams]);
            add(direction(session));
            if let Some(name) = &test.spec.congestion {
                add(&[&format!("--congestion={name}")]);
            }
            if let Some(size) = test.spec.window_size {
                add(&["--window", &size.to_string()]);
            }
        }
        FleetTestKind::Load => add(&["load", address, "-t", &time, "--idle", &time]),
        FleetTestKind::Diagnose => add(&["diagnose", address, "--", "-t", time.trim_end_matches('s')]),
        _ => add(&["path", address, "--no-capacity", "--count", &LIGHT_PACKETS.to_string()]),
    }
    Some(command)
}

/// Option for a session in one direction only: up is away from the host that starts it.
fn direction(session: &TestSession) -> &'static [&'static str] {
    match (session.directions, session.starter) {
        (SessionDirections::Both, _) => &[],
        (SessionDirections::Forward, 0) | (SessionDirections::Backward, 1) => &["--up"],
        _ => &["--down"],
    }
}

fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs().max(1))
}
