//! The command line of `linerate doctor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::cmd::measurement::MeasurementArguments;
use crate::cmd::tune::HowArguments;

const ABOUT: &str = "One guided run: measures the path, the delay under load and a transfer, says what limits it, plans the \
                     one change that matters, asks, tries it, proves it against measurements without it, keeps it or takes \
                     it back, and writes a report. Interrupted, it goes on where it was when it is started again.";

const AFTER_HELP: &str = "Examples:\n  \
    linerate doctor host                           asks before anything is changed; changing needs root\n  \
    sudo linerate doctor host --far ssh:me@host    both ends\n  \
    linerate doctor host --dry-run                 up to the plan\n  \
    linerate doctor lab:rhel-10g-117ms             the whole of it on an emulated path: no root, no second machine\n\n\
    Exit codes: 0 nothing is wrong, or it was removed; 1 a limit was found and not removed; 2 usage or environment; \
    3 broken off, and taken back; 4 privilege needed; 5 tried and taken back.";

/// `linerate doctor`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_help = AFTER_HELP)]
pub(crate) struct DoctorArguments {
    /// The far end: a linerate (`linerate serve`), or any iperf3 server, which tells less; or an emulated path, as
    /// `lab:NAME`
    #[arg(value_hint = ValueHint::Hostname)]
    pub(crate) host: String,
    /// Begin anew, also when an earlier run was interrupted
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Leave out the delay under load
    #[arg(long)]
    pub(crate) no_load: bool,
    /// Also measure what a well-known guide recommends for such a path, where windows limit; for a moment, then it is
    /// taken back. An emulated path has it anyway
    #[arg(long)]
    pub(crate) compare_guide: bool,
    /// File of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// No report as a file
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,
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
