//! The command line of `linerate doctor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::cmd::measurement::MeasurementArguments;
use crate::cmd::tune::TuneOptions;
use crate::completion;

const ABOUT: &str = "One guided run: measures the path, the delay under load and a transfer, reports the limit, plans \
                     the one change that matters, asks, tries it, verifies it against measurements without it, keeps \
                     it or rolls it back, and writes a report. A restart after an interruption resumes the run.";

const AFTER_HELP: &str = "Examples:\n  \
    linerate doctor host                           asks before any change; changes need root\n  \
    sudo linerate doctor host --far ssh:me@host    both ends\n  \
    linerate doctor host --dry-run                 up to the plan\n  \
    linerate doctor lab:rhel-10g-117ms             the whole run on an emulated path: no root, no second machine\n  \
    sudo linerate doctor --check                   what works on this host, and what to install; 0 when changes are \
    safe, 1 when something is missing\n\n\
    Exit codes: 0 no limit, or the limit was removed; 1 a limit was found and not removed; 2 usage or environment; 3 \
    interrupted and rolled back; 4 privilege needed; 5 tried and rolled back.";

/// `linerate doctor`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_help = AFTER_HELP)]
pub(crate) struct DoctorArguments {
    /// Far end: a linerate server (`linerate serve`), a host over ssh that is changed, too (`ssh:USER@HOST`), any iperf3
    /// server (fewer figures), or an emulated path (`lab:NAME`)
    #[arg(add = ArgValueCompleter::new(completion::hosts), required_unless_present = "check", conflicts_with = "check")]
    pub(crate) host: Option<String>,
    /// Only check this host: try everything that changes, shaping and measurements need, and change nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Start over instead of resuming an interrupted run
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Skip the delay under load
    #[arg(long)]
    pub(crate) no_load: bool,
    /// Also measure the settings of a well-known tuning guide where windows limit, then roll them back. Always done on
    /// an emulated path
    #[arg(long)]
    pub(crate) compare_guide: bool,
    /// Write the report to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Write no report file
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,
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
