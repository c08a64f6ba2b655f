//! `linerate fleet publish`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_fleet::{FleetDescription, Timetable, fleet_cost};
use linerate_nats::PreparedStorage;
use linerate_report::text::wrap_text;
use linerate_units::display::counted;

use super::finish;
use super::options::RequiredServers;
use crate::cmd::fleet::{plan, text};
use crate::console;
use crate::exit::ExitStatus;
use crate::values;

/// Shortest and longest time after which an agent that ended is no member.
const MEMBER_TIMES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(3600)];

/// `linerate fleet publish`.
#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// The description: a file in the format of psConfig (docs/fleet.md); - is the standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Servers.
    #[command(flatten)]
    servers: RequiredServers,
    /// Time after which an agent that ended is no member, and its task is given to its successor: 2s to 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = member_time)]
    member_time: Duration,
}

fn member_time(text: &str) -> Result<Duration, String> {
    let time = values::duration(text)?;
    let [least, most] = MEMBER_TIMES;
    if (least..=most).contains(&time) { Ok(time) } else { Err("expected 2s to 1h".to_owned()) }
}

pub(crate) fn run(arguments: &PublishArguments) -> ExitStatus {
    finish("publish", publish(arguments))
}

fn publish(arguments: &PublishArguments) -> Result<(), String> {
    let text = plan::read_text(&arguments.file)?;
    let name = arguments.file.display();
    let invalid = |error: linerate_fleet::FleetError| format!("{name}: {error}");
    let description = FleetDescription::read(&text).map_err(invalid)?;
    let timetable = Timetable::new(&description).map_err(invalid)?;
    let fleet = arguments.servers.connect()?;
    let prepared = fleet.prepare(arguments.member_time).map_err(|error| error.to_string())?;
    let old = fleet.description().map_err(|error| error.to_string())?;
    let cost = fleet_cost(&timetable, &description);
    let extent = format!(
        "{}, {}",
        counted(cost.hosts, "host"),
        counted(timetable.sessions.len() + timetable.light.len(), "test")
    );
    let line = match old {
        Some(old) if old.text == text => {
            format!("Revision {} on the servers is this description: {extent}.", old.revision)
        }
        old => {
            let expected = old.map_or(0, |old| old.revision);
            let revision = fleet.store_description(&text, expected).map_err(|error| error.to_string())?;
            format!("Published as revision {revision}: {extent}.")
        }
    };
    let width = usize::from(console::data_style().width.get());
    let lines = [line, storage(&prepared)].map(|sentence| wrap_text(&sentence, width).join("\n") + "\n");
    console::data(&lines.concat());
    Ok(())
}

fn storage(prepared: &PreparedStorage) -> String {
    let made = match prepared.created.len() {
        0 => String::new(),
        count => format!("Made {}. ", counted(count, "stream")),
    };
    let copies = match (&prepared.refusal, prepared.replicas) {
        (Some(refusal), count) => format!(
            "{} of each, not three ({refusal}): publish again when the cluster has three servers.",
            text::copies(count)
        ),
        (None, count) => format!("{} of each, on different servers.", text::copies(count)),
    };
    format!("{made}{copies}")
}
