//! `linerate fleet`: tests between many hosts, by a description that all of them have.

mod agent;
mod plan;
mod report;
mod text;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use linerate_history::utc_time;
use linerate_units::WallTime;
use report::FleetReportArguments;

use crate::exit::ExitStatus;
use crate::export::ExportArguments;
use crate::planned::ResultArguments;
use crate::values;

/// `linerate fleet`.
#[derive(Debug, Args)]
pub(crate) struct FleetArguments {
    /// Selected command.
    #[command(subcommand)]
    command: FleetCommand,
}

/// Commands for fleets.
#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Show which test runs when, and what all of them cost; nothing runs
    ///
    /// The timetable follows from the description alone, so that every host has the same without a message.
    Plan(PlanArguments),
    /// Run the tests that start at an address of the description, at their times, until it is interrupted
    ///
    /// All hosts of the fleet run an agent and a `linerate serve`. Each test is kept in the history of the host that started it.
    Agent(AgentArguments),
    /// Show the results of a fleet as one page: what limits each direction, over time
    Report(FleetReportArguments),
}

/// `linerate fleet plan`.
#[derive(Debug, Args)]
struct PlanArguments {
    /// The description: a file or a URL in the format of psConfig (docs/fleet.md); - is the standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Only tests of this address
    #[arg(long, value_name = "NAME")]
    address: Option<String>,
    /// Starts from this time on (UTC) instead of from now on: 2026-11-26T06:00
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<WallTime>,
    /// Print a JSON document (schema 1) instead of text: the whole cycle
    #[arg(long)]
    json: bool,
    /// Print every start of the next cycle
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
}

/// `linerate fleet agent`.
#[derive(Debug, Args)]
struct AgentArguments {
    /// The description: a file or a URL in the format of psConfig (docs/fleet.md); it is read once
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Name of the address of this host
    #[arg(long, value_name = "NAME")]
    address: String,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration)]
    duration: Option<Duration>,
    /// Results.
    #[command(flatten)]
    results: ResultArguments,
    /// Export.
    #[command(flatten)]
    export: ExportArguments,
}

fn parse_time(text: &str) -> Result<WallTime, String> {
    utc_time::parse(text).ok_or_else(|| "expected a time such as 2026-11-26 or 2026-11-26T06:00 (UTC)".to_owned())
}

/// Runs the selected command.
pub(crate) fn run(arguments: &FleetArguments) -> ExitStatus {
    match &arguments.command {
        FleetCommand::Plan(arguments) => plan::run(arguments),
        FleetCommand::Agent(arguments) => agent::run(arguments),
        FleetCommand::Report(arguments) => report::run(arguments),
    }
}
