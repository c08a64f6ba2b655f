//! `linerate fleet`: tests between many hosts, by a description that all of them have.

mod agent;
#[cfg(feature = "nats")]
mod nats;
mod plan;
pub(crate) mod report;
mod text;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use linerate_documents::civil_time;
use linerate_units::WallTime;
use report::FleetReportArguments;

use crate::cmd::tls::TlsArguments;
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
    Agent(Box<AgentArguments>),
    /// Show the results of a fleet as one page: what limits each direction, over time
    Report(FleetReportArguments),
    /// Give a description to the agents of a fleet, by NATS
    ///
    /// Makes the streams and buckets that are missing. Agents take up a changed description by themselves.
    #[cfg(feature = "nats")]
    Publish(nats::PublishArguments),
    /// List the agents of a fleet that run, by NATS
    #[cfg(feature = "nats")]
    Members(nats::MembersArguments),
    /// Run a test of the description between two addresses now, at a time or again and again, by NATS
    ///
    /// The agent of the address that starts it runs it in a slot that the timetable leaves free for both hosts.
    #[cfg(feature = "nats")]
    Run(nats::RunArguments),
    /// Append the results of all agents to a file, each once, by NATS
    ///
    /// It runs until it is interrupted, and goes on where it was, also after it was killed.
    #[cfg(feature = "nats")]
    Collect(nats::CollectArguments),
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
    /// The description: a file or a URL in the format of psConfig (docs/fleet.md), read once; with --nats it comes from the servers
    #[arg(value_hint = ValueHint::FilePath)]
    #[cfg_attr(feature = "nats", arg(required_unless_present = "servers", conflicts_with = "servers"))]
    #[cfg_attr(not(feature = "nats"), arg(required = true))]
    file: Option<PathBuf>,
    /// Name of the address of this host
    #[arg(long, value_name = "NAME")]
    address: String,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration)]
    duration: Option<Duration>,
    /// TLS of the tests.
    #[command(flatten)]
    tls: TlsArguments,
    /// Results.
    #[command(flatten)]
    results: ResultArguments,
    /// Export.
    #[command(flatten)]
    export: ExportArguments,
    /// Servers.
    #[cfg(feature = "nats")]
    #[command(flatten)]
    nats: nats::AgentServers,
}

fn parse_time(text: &str) -> Result<WallTime, String> {
    civil_time::parse(text).ok_or_else(|| "expected a time such as 2026-11-26 or 2026-11-26T06:00 (UTC)".to_owned())
}

/// Runs the selected command.
pub(crate) fn run(arguments: &FleetArguments) -> ExitStatus {
    match &arguments.command {
        FleetCommand::Plan(arguments) => plan::run(arguments),
        #[cfg(feature = "nats")]
        FleetCommand::Agent(arguments) if arguments.nats.is_given() => nats::run_agent(arguments),
        FleetCommand::Agent(arguments) => agent::run(arguments),
        FleetCommand::Report(arguments) => report::run(arguments),
        #[cfg(feature = "nats")]
        FleetCommand::Publish(arguments) => nats::publish(arguments),
        #[cfg(feature = "nats")]
        FleetCommand::Members(arguments) => nats::members(arguments),
        #[cfg(feature = "nats")]
        FleetCommand::Run(arguments) => nats::run_task(arguments),
        #[cfg(feature = "nats")]
        FleetCommand::Collect(arguments) => nats::collect(arguments),
    }
}
