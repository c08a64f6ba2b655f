//! The command line of `linerate tune`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use linerate_change::ChangeId;
use linerate_rules::export::{self, FORMATS};
use linerate_rules::tuning::Goal;
use linerate_units::{BitRate, StreamCount};

use super::far::FarAddress;
use crate::app;
use crate::cmd::measurement::MeasurementArguments;

const ABOUT: &str = "Finds what limits a transfer, changes that one thing on trial, measures without and with it in turn, and \
                     keeps the change only if the measurements say so. What is unclear is not kept.\n\nWith a HOST the path \
                     is measured; with --rate and --rtt the same is computed for a path that somebody knows; with neither, \
                     this host is audited. A server never changes its own host: the far end is tuned over your own ssh \
                     (--far ssh:user@host), or by running linerate there.";

const AFTER_HELP: &str = "Examples:\n  \
    sudo linerate tune host                        measure, explain, ask, try, prove, keep\n  \
    sudo linerate tune host --far ssh:me@host      … and change the far end, too, if it is what limits\n  \
    linerate tune host --dry-run                   only the plan\n  \
    linerate tune host -- -R                       for data from the host\n  \
    linerate tune --rate 10G --rtt 117ms           what such a path needs of this host\n  \
    linerate tune --rate 10G --rtt 117ms --export ansible\n  \
    linerate tune undo                             take back the latest changes that are in force\n  \
    linerate tune export --format nixos            what is in force, in another tool's words\n\n\
    Exit codes: 0 kept, planned, or nothing to change; 1 a limit was found and not removed; 2 usage or environment; \
    3 broken off, and taken back; 4 privilege needed; 5 tried and taken back.";

/// `linerate tune`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct TuneArguments {
    /// What to do with what linerate has changed before
    #[command(subcommand)]
    pub(crate) action: Option<TuneAction>,
    /// The far end: a linerate (`linerate serve`), or any iperf3 server, which tells less; or an emulated path, as
    /// `lab:NAME`
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: Option<String>,
    /// Rate of a path that is not measured, in bit/s (10G)
    #[arg(long, value_name = "RATE", value_parser = app::rate, requires = "rtt", conflicts_with = "host")]
    pub(crate) rate: Option<BitRate>,
    /// Round trip of a path that is not measured (117ms)
    #[arg(long, value_name = "TIME", value_parser = app::duration, requires = "rate", conflicts_with = "host")]
    pub(crate) rtt: Option<Duration>,
    /// Apply a plan that was computed without a measurement: on trial, until you confirm it
    #[arg(long, requires = "rate", conflicts_with_all = ["dry_run", "export"])]
    pub(crate) apply: bool,
    /// What to do, and how far to go.
    #[command(flatten)]
    pub(crate) how: HowArguments,
    /// What all measurements have.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
    /// The transfer's options, as iperf3 has them: time, streams, direction, buffers, congestion control
    #[arg(last = true, value_name = "IPERF3 OPTIONS")]
    pub(crate) transfer: Vec<String>,
}

/// What `tune` and `doctor` have in common.
#[derive(Debug, Args)]
pub(crate) struct HowArguments {
    /// What the hosts are for: what is to become better, and what must not become worse
    #[arg(long, default_value = "wan-bulk", value_parser = role)]
    pub(crate) role: Goal,
    /// Connections that will carry much data at the same time; as many as the transfer has, unless said
    #[arg(long, value_name = "COUNT", value_parser = streams)]
    pub(crate) flows: Option<StreamCount>,
    /// How the far end's host can be changed: `ssh:[USER@]HOST[:PORT]`, or `netns:NAME` for a network namespace of this one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) far: Option<FarAddress>,
    /// The linerate over there, with what must stand before it (`sudo -n linerate`)
    #[arg(long, value_name = "COMMAND", default_value = "linerate", requires = "far")]
    pub(crate) far_program: String,
    /// Only the plan: nothing is touched
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// After the proof, take everything back unless somebody answers within this time: for a line that may be lost
    #[arg(long, value_name = "TIME", value_parser = app::duration)]
    pub(crate) confirm_within: Option<Duration>,
    /// Keep until the next boot only: no file is written
    #[arg(long)]
    pub(crate) until_reboot: bool,
    /// Also try what lives with a cause on the path instead of removing it: another congestion control on a lossy path,
    /// pacing below a policer
    #[arg(long)]
    pub(crate) work_around: bool,
    /// Most pairs of measurements for one group of changes; fewer than five prove nothing
    #[arg(long, value_name = "COUNT", default_value = "12", value_parser = clap::value_parser!(u8).range(5..=50))]
    pub(crate) max_pairs: u8,
    /// Print the plan in the words of another tool, and do nothing else
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) export: Option<&'static export::Format>,
}

/// What to do with earlier changes.
#[derive(Debug, Subcommand)]
pub(crate) enum TuneAction {
    /// Take back what was kept; without a number, the latest that is in force
    Undo {
        /// Number of the changes (`linerate rollback --list`)
        id: Option<ChangeId>,
    },
    /// What linerate has changed and is in force, in the words of another tool
    Export {
        /// The tool
        #[arg(short, long, default_value = "sysctl.d", value_parser = format)]
        format: &'static export::Format,
        /// Number of the changes; without it, all that are in force
        id: Option<ChangeId>,
    },
}

fn role(text: &str) -> Result<Goal, String> {
    Goal::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Goal::ALL.iter().map(|goal| goal.name()).collect();
        format!("there are the roles {}", names.join(", "))
    })
}

fn streams(text: &str) -> Result<StreamCount, String> {
    let count: u64 = text.parse().map_err(|_| "connections are counted".to_owned())?;
    if (1..=10_000).contains(&count) { Ok(StreamCount::new(count)) } else { Err("1 to 10000".to_owned()) }
}

fn format(text: &str) -> Result<&'static export::Format, String> {
    export::format(text).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        format!("there are the formats {}", names.join(", "))
    })
}
