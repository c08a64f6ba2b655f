//! The command line of `linerate report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// `linerate report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The runs: numbers of the history, last, last-1, …; or files with a run as JSON, - for the standard input
    #[arg(value_name = "RUN", default_value = "last", value_hint = ValueHint::FilePath)]
    pub(super) runs: Vec<String>,
    /// Compare two runs: the first is before, the second after
    #[arg(long)]
    pub(super) compare: bool,
    /// The form
    #[arg(short, long, value_enum, default_value_t = Format::Html)]
    pub(super) format: Format,
    /// Where to: a file, or - for the standard output. Without it, HTML goes to linerate-report-RUN.html here, the other
    /// forms to the standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(super) force: bool,
    /// Show the file in the browser
    #[arg(long)]
    pub(super) open: bool,
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// One file with pictures, for a browser
    Html,
    /// For this terminal
    Text,
    /// For issues, wikis and mails
    Markdown,
    /// The runs themselves (schema 1)
    Json,
}
