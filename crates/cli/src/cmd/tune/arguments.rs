//! The command line of `linerate tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use linerate_change::ChangeId;
use linerate_operate::far::FarAddress;
use linerate_operate::tuning::HostOptions;
use linerate_rules::export::{self, FORMATS, PlanFormat};
use linerate_rules::tuning::TuningGoal;
use linerate_units::{BitRate, StreamCount};

use crate::cmd::measurement::MeasurementArguments;
use crate::{completion, values};

const ABOUT: &str = "Finds what limits a transfer, changes that one thing on trial, measures without and with it in \
                     turn, and keeps the change only if the measurements confirm it. Unclear results are rolled \
                     back.\n\nWith a HOST the path is measured; with --rate and --rtt the plan is computed for a known \
                     path; with neither, this host is audited. A server never changes its own host: the far end is \
                     tuned over your own ssh (`linerate tune ssh:user@host`, or --far), or by running linerate there.";

const AFTER_HELP: &str = "Examples:\n  \
    sudo linerate tune host                        measure, explain, ask, try, verify, keep\n  \
    sudo linerate tune host --far ssh:me@host      also change the far end if it limits\n  \
    sudo linerate tune ssh:me@host --push          the same, with nothing installed at the far end\n  \
    linerate tune host --dry-run                   only the plan\n  \
    linerate tune host -- -R                       for data from the host\n  \
    linerate tune --rate 10G --rtt 117ms           settings of this host for such a path\n  \
    linerate tune --rate 10G --rtt 117ms --export ansible\n  \
    linerate tune undo                             roll back the latest changes in effect\n  \
    linerate tune export --format nixos            changes in effect, in another tool's format\n\n\
    Exit codes: 0 kept, planned, or nothing to change; 1 a limit was found and not removed; 2 usage or environment; 3 \
    interrupted and rolled back; 4 privilege needed; 5 tried and rolled back. With --export: 1 also when the format \
                          cannot express every change; each is named on standard error and in the files.";

/// `linerate tune`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct TuneArguments {
    /// Action on earlier changes
    #[command(subcommand)]
    pub(crate) action: Option<TuneAction>,
    /// Far end: a linerate server (`linerate serve`), a host over ssh that is changed, too (`ssh:USER@HOST`), any iperf3
    /// server (fewer figures), or an emulated path (`lab:NAME`)
    #[arg(add = ArgValueCompleter::new(completion::hosts))]
    pub(crate) host: Option<String>,
    /// Rate of a known path, in bit/s (10G)
    #[arg(long, value_name = "RATE", value_parser = values::rate, requires = "rtt", conflicts_with = "host")]
    pub(crate) rate: Option<BitRate>,
    /// Round trip of a known path (117ms)
    #[arg(long, value_name = "TIME", value_parser = values::delay, requires = "rate", conflicts_with = "host")]
    pub(crate) rtt: Option<Duration>,
    /// Apply a plan computed without a measurement, on trial until confirmed
    #[arg(long, requires = "rate", conflicts_with_all = ["dry_run", "export"])]
    pub(crate) apply: bool,
    /// Only print the plan in another tool's format, one section per file
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) export: Option<&'static PlanFormat>,
    /// Directory in which to write the exported files, one directory per host [default: the standard output]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath, requires = "export")]
    pub(crate) out: Option<PathBuf>,
    /// Options of the run.
    #[command(flatten)]
    pub(crate) options: TuneOptions,
    /// Options of all measurements.
    #[command(flatten)]
    pub(crate) common: MeasurementArguments,
    /// Options of the transfer, as in iperf3: time, streams, direction, buffers, congestion control
    #[arg(last = true, value_name = "IPERF3 OPTIONS")]
    pub(crate) transfer: Vec<String>,
}

/// Options common to `tune` and `doctor`.
#[derive(Debug, Args)]
pub(crate) struct TuneOptions {
    /// Role of the hosts: what to improve, and what must not get worse
    #[arg(long, default_value = "wan-bulk", value_parser = roles())]
    pub(crate) role: TuningGoal,
    /// Expected number of concurrent bulk connections [default: that of the transfer]
    #[arg(long, value_name = "COUNT", value_parser = streams)]
    pub(crate) flows: Option<StreamCount>,
    /// Access to the far host, to change it, too: `ssh:[USER@]HOST[:PORT]`, or `netns:NAME` for a local network
    /// namespace [default: HOST where that is over ssh]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) far: Option<FarAddress>,
    /// Show the plan only; change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// After verification, roll back unless confirmed within this time: for links that the change may cut off
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) confirm_within: Option<Duration>,
    /// Keep until reboot only; write no file
    #[arg(long)]
    pub(crate) until_reboot: bool,
    /// Also try work-arounds for causes on the path: another congestion control on a lossy path, pacing below a policer
    #[arg(long)]
    pub(crate) work_around: bool,
    /// Maximum pairs of measurements per candidate; few are needed for large effects, more for small or noisy ones
    #[arg(long, value_name = "COUNT", default_value = "20", value_parser = clap::value_parser!(u8).range(5..=50))]
    pub(crate) max_pairs: u8,
    /// Seed of the random order of measurements within pairs [default: from the clock]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u32>,
}

impl TuneOptions {
    /// Access to the hosts, and the limits of what is changed there.
    pub(crate) fn host_options(&self, common: &MeasurementArguments) -> HostOptions {
        // The program of a session is that of its own host.
        let session = common.far.session.as_ref().filter(|session| self.far.as_ref() == Some(&session.address));
        HostOptions {
            far: self.far.clone(),
            far_program: session.map_or_else(|| common.far.program().to_owned(), |session| session.program.clone()),
            dry_run: self.dry_run,
            until_reboot: self.until_reboot,
        }
    }
}

/// Action on earlier changes.
#[derive(Debug, Subcommand)]
pub(crate) enum TuneAction {
    /// Roll back kept changes [default: the latest in effect]
    Undo {
        /// Number of the changes (`linerate rollback --list`)
        id: Option<ChangeId>,
    },
    /// Print changes in effect in another tool's format
    Export {
        /// Output format
        #[arg(short, long, default_value = "sysctl.d", value_parser = formats())]
        format: &'static PlanFormat,
        /// Directory in which to write the files [default: the standard output]
        #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
        out: Option<PathBuf>,
        /// Number of the changes [default: all in effect]
        id: Option<ChangeId>,
    },
}

fn roles() -> impl TypedValueParser<Value = TuningGoal> {
    let values = TuningGoal::ALL.iter().map(|goal| PossibleValue::new(goal.name()));
    PossibleValuesParser::new(values).map(|name| TuningGoal::from_name(&name).expect("one of the possible values"))
}

fn streams(text: &str) -> Result<StreamCount, String> {
    let count: u64 = text.parse().map_err(|_| "expected a number of connections".to_owned())?;
    if (1..=10_000).contains(&count) {
        Ok(StreamCount::new(count))
    } else {
        Err("expected 1 to 10000 connections".to_owned())
    }
}

fn formats() -> impl TypedValueParser<Value = &'static PlanFormat> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.title));
    PossibleValuesParser::new(values).map(|name| export::format(&name).expect("one of the possible values"))
}
