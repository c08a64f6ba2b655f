//! `linerate fleet run`.

use std::time::Duration;

use clap::Args;
use linerate_documents::civil_time::rfc3339;
use linerate_fleet::{FleetDescription, TestSession, Timetable};
use linerate_nats::{FleetTask, NatsFleet, TaskTime};
use linerate_sys::clock::realtime_now;
use linerate_units::WallTime;

use super::options::RequiredServers;
use super::task_loop::find_session;
use super::{finish, published, random_identity};
use crate::cmd::fleet::{parse_time, plan, text};
use crate::console;
use crate::exit::ExitStatus;

/// `linerate fleet run`.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Name of an address of the description
    first: String,
    /// Name of another one
    second: String,
    /// Name of a task of the description that tests this pair
    task: String,
    /// Servers.
    #[command(flatten)]
    servers: RequiredServers,
    /// Run it once from this time on (UTC): 2026-11-26T06:00
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<WallTime>,
    /// Run it again and again: 15m, @hourly, or six fields of cron from seconds on, such as "0 30 6 * * *" (UTC)
    #[arg(long, value_name = "CRON", conflicts_with = "at")]
    every: Option<String>,
    /// End the repetitions of --every of this task between these addresses
    #[arg(long, conflicts_with_all = ["at", "every"])]
    end: bool,
}

pub(crate) fn run(arguments: &RunArguments) -> ExitStatus {
    finish("run", assign(arguments))
}

fn assign(arguments: &RunArguments) -> Result<(), String> {
    if arguments.at.is_some_and(|at| at < realtime_now()) {
        return Err("the time of --at is over: give a later one".to_owned());
    }
    let fleet = arguments.servers.connect()?;
    let addresses = [arguments.first.clone(), arguments.second.clone()];
    let task = FleetTask { id: random_identity()?, task: arguments.task.clone(), addresses };
    if arguments.end {
        return end(&fleet, &task);
    }
    let (_, description, timetable) = published(&fleet)?;
    for name in &task.addresses {
        plan::check_address(&description, name)?;
    }
    let session = find_session(&timetable, &task).ok_or_else(|| no_session(&description, &timetable, &task))?;
    let starter = session.starter_address();
    let (time, from) = match (arguments.at, &arguments.every) {
        (Some(at), _) => (TaskTime::At(rfc3339(at)), at),
        (None, Some(pattern)) => (TaskTime::Every(schedule(pattern)), realtime_now()),
        (None, None) => (TaskTime::Now, realtime_now()),
    };
    let Some(slot) = timetable.next_free(&description, session, from) else {
        return Err(no_slot(session));
    };
    fleet.assign(&task, starter, &time).map_err(|error| error.to_string())?;
    let when = match &time {
        TaskTime::Every(pattern) => format!("by the schedule {pattern:?}, each time in the next free slot"),
        _ => format!("not before {} UTC", rfc3339(slot).trim_end_matches('Z').replace('T', " ")),
    };
    console::data(&format!("{starter} runs {} {when}.\n", text::session_line(session)));
    let members = fleet.members().map_err(|error| error.to_string())?;
    if !members.iter().any(|member| member.record.name == *starter) {
        console::note(&format!("no agent of {starter} runs: the task waits for it for a day"));
    }
    Ok(())
}

fn end(fleet: &NatsFleet, task: &FleetTask) -> Result<(), String> {
    let [first, second] = &task.addresses;
    if fleet.end_schedule(task).map_err(|error| error.to_string())? == 0 {
        return Err(format!("task {:?} between {first:?} and {second:?} is not repeated", task.task));
    }
    console::data(&format!("Task {} between {first} and {second} is repeated no longer.\n", task.task));
    Ok(())
}

/// Pattern as the servers read it: a duration is an interval.
fn schedule(pattern: &str) -> String {
    let is_duration = crate::values::duration(pattern).is_ok_and(|time| time >= Duration::from_secs(1));
    if is_duration { format!("@every {pattern}") } else { pattern.to_owned() }
}

/// Reason why there is no such test, with those that there are.
fn no_session(description: &FleetDescription, timetable: &Timetable, task: &FleetTask) -> String {
    let [first, second] = &task.addresses;
    if !description.tasks.contains_key(&task.task) {
        let names: Vec<&str> = description.tasks.keys().map(String::as_str).take(10).collect();
        return format!("the description has no task {:?}; it has {}", task.task, names.join(", "));
    }
    let planned = timetable.sessions.iter().map(|planned| &planned.session).chain(&timetable.light);
    let of_pair = planned.filter(|session| is_pair(session, first, second));
    let names: Vec<&str> = of_pair.map(|session| &*session.task).collect();
    let remedy = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("task {:?} does not test {first:?} and {second:?}; the tasks that do: {remedy}", task.task)
}

fn is_pair(session: &TestSession, first: &str, second: &str) -> bool {
    let [one, other] = [&*session.addresses[0], &*session.addresses[1]];
    [one, other] == [first, second] || [other, one] == [first, second]
}

/// Reason why a test cannot run between those of the timetable.
pub(super) fn no_slot(session: &TestSession) -> String {
    let [first, second] = &session.addresses;
    format!(
        "the timetable leaves no slot free for {first} and {second} within 31 days: give its tasks a longer `repeat`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_intervals_and_other_patterns_stay() {
        for (pattern, expected) in
            [("15m", "@every 15m"), ("@hourly", "@hourly"), ("0 30 6 * * *", "0 30 6 * * *"), ("0.5s", "0.5s")]
        {
            assert_eq!(schedule(pattern), expected);
        }
    }
}
