//! Command line of `linerate report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::completion;

/// `linerate report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The runs: numbers of the history, also as 4..6 or 1,3, last, last-1, …; or files with the output of --json, - for the standard input;
    /// or directories and files with the results of monitors and agents
    #[arg(value_name = "RUN", default_value = "last", add = ArgValueCompleter::new(completion::runs_and_files))]
    pub(super) runs: Vec<String>,
    /// Compare two runs: the first is before, the second after a change
    #[arg(long)]
    pub(super) compare: bool,
    /// Report format
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Html)]
    pub(super) format: ReportFormat,
    /// Destination: a file, or - for the standard output. Without it, HTML goes to linerate-report-RUN.html in this
    /// directory, other formats to the standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(super) force: bool,
    /// Show the file in the browser
    #[arg(long)]
    pub(super) open: bool,
}

/// Report formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// One file with pictures, for a browser
    Html,
    /// For this terminal
    Text,
    /// For issues, wikis and e-mail
    Markdown,
    /// The documents themselves (schema 1)
    Json,
}
