//! Command line of `linerate history`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use linerate_documents::civil_time;
use linerate_documents::run::RunKind;
use linerate_history::{RunFilter, RunReference, RunReferences};
use linerate_sys::clock;
use linerate_units::{WallTime, parse};

use super::limit::{SizeLimit, parse_limit};
use crate::completion;

/// `linerate history`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArguments {
    /// Selected command; without one, the runs are listed.
    #[command(subcommand)]
    pub(super) command: Option<HistoryCommand>,
    /// Options of the list.
    #[command(flatten)]
    pub(super) list: ListArguments,
}

/// Commands of the history.
#[derive(Debug, Subcommand)]
pub(super) enum HistoryCommand {
    /// List the runs, the latest first (this is what `linerate history` alone does)
    List(ListArguments),
    /// Show a run: its result and its first figures; with -v all figures and its environment
    Show {
        /// The run: its number, or last, last-1, …
        #[arg(add = ArgValueCompleter::new(completion::runs))]
        run: RunReference,
        /// Print the whole document (schema 1) instead of text
        #[arg(long)]
        json: bool,
        /// Print all tables, and the environment
        #[arg(short, long, conflicts_with = "json")]
        verbose: bool,
    },
    /// Compare runs of one path figure by figure, with 95 % confidence intervals, and list changes of the environment
    ///
    /// Three runs or more on each side show how much runs of the path vary by themselves. With fewer, intervals hold
    /// within these runs only, and better or worse is more than an assumed variation.
    Compare {
        /// The first run, or several: 1,2,3 or 1..3
        #[arg(value_name = "RUNS", add = ArgValueCompleter::new(completion::runs))]
        before: RunReferences,
        /// The second run, or several
        #[arg(value_name = "RUNS", add = ArgValueCompleter::new(completion::runs))]
        after: RunReferences,
        /// Exit with 1 when a figure of the second side is worse
        #[arg(long)]
        fail_on_worse: bool,
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// Show how a figure developed over the runs, for example `goodput_down`
    Trend {
        /// Name of the figure; `show --json` lists them
        #[arg(add = ArgValueCompleter::new(completion::figures))]
        figure: String,
        /// Run filter.
        #[command(flatten)]
        filter: FilterArguments,
        /// Results.
        #[command(flatten)]
        results: ResultSource,
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// Export runs for other programs
    Export {
        /// csv: a line for each figure; jsonl: the whole document of each run on a line
        #[arg(long, value_enum, default_value = "jsonl")]
        format: ExportFormat,
        /// File to write to instead of the standard output
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Run filter.
        #[command(flatten)]
        filter: FilterArguments,
    },
    /// Import runs that a measurement printed with --json, or `export` wrote; known ones are skipped
    Import {
        /// The files; - is the standard input
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
    /// Delete runs, after asking
    Delete {
        /// The runs: 7, 1..900, last
        #[arg(required = true, value_name = "RUNS", add = ArgValueCompleter::new(completion::runs))]
        runs: Vec<RunReferences>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Limit the size of the history, or show it
    ///
    /// From then on the oldest runs without a tag are deleted when a new one exceeds the limit. Without a limit nothing
    /// is ever deleted.
    Limit {
        /// Largest size (500MB, 2GB), or none
        #[arg(value_parser = parse_limit)]
        size: Option<SizeLimit>,
        /// Do not ask before runs are deleted
        #[arg(short, long)]
        yes: bool,
    },
    /// Tag a run with a text, to find it later
    Tag {
        /// The run
        #[arg(add = ArgValueCompleter::new(completion::runs))]
        run: RunReference,
        /// The text
        text: String,
        /// Remove the tag instead
        #[arg(long)]
        remove: bool,
    },
    /// Print the location of the history (`$LINERATE_HISTORY`, else below `$XDG_DATA_HOME` or `~/.local/share`)
    Path,
}

/// Options of the list.
#[derive(Clone, Debug, Args)]
pub(super) struct ListArguments {
    /// Run filter.
    #[command(flatten)]
    pub(super) filter: FilterArguments,
    /// Results.
    #[command(flatten)]
    pub(super) results: ResultSource,
    /// Print a JSON document (schema 1) instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Results instead of runs.
#[derive(Clone, Debug, Args)]
pub(super) struct ResultSource {
    /// Results of a monitor or an agent instead of runs, light tests summed up by hour [default: `results` where the history is]
    #[arg(long, value_name = "RESULTS", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kind", "tag"])]
    #[expect(clippy::option_option, reason = "an option whose value may be left out")]
    pub(super) results: Option<Option<PathBuf>>,
}

/// Run filter.
#[derive(Clone, Debug, Args)]
pub(super) struct FilterArguments {
    /// Only runs to this host, as given on the command line; an emulated path as lab:NAME
    #[arg(long)]
    pub(super) host: Option<String>,
    /// Only runs of this command
    #[arg(long, value_enum)]
    pub(super) kind: Option<RunKindChoice>,
    /// Only runs that began at or after this time: a date (2026-11-21, 2026-11-21T14:30, in UTC) or an age (90min, 7d)
    #[arg(long, value_name = "TIME", value_parser = moment_or_age)]
    pub(super) since: Option<WallTime>,
    /// Only runs that began before this time
    #[arg(long, value_name = "TIME", value_parser = moment_or_age)]
    pub(super) until: Option<WallTime>,
    /// At most N runs, the latest ones
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) limit: Option<NonZeroU32>,
    /// Only runs that were interrupted or failed
    #[arg(long)]
    pub(super) failed: bool,
    /// Only runs with this tag
    #[arg(long, value_name = "TEXT", add = ArgValueCompleter::new(completion::tags))]
    pub(super) tag: Option<String>,
}

impl FilterArguments {
    /// Filter in the history's own type.
    pub(super) fn filter(&self) -> RunFilter {
        RunFilter {
            host: self.host.clone(),
            kind: self.kind.map(RunKindChoice::kind),
            since: self.since,
            until: self.until,
            failed: self.failed,
            tag: self.tag.clone(),
            limit: self.limit,
        }
    }
}

/// Measuring command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RunKindChoice {
    /// linerate test
    Test,
    /// linerate path
    Path,
    /// linerate load
    Load,
    /// linerate rfc6349
    Rfc6349,
    /// linerate rr
    Rr,
    /// linerate diagnose
    Diagnose,
    /// linerate tune
    Tune,
    /// linerate doctor
    Doctor,
    /// tests in a browser (linerate serve --web)
    Web,
}

impl RunKindChoice {
    const fn kind(self) -> RunKind {
        match self {
            Self::Test => RunKind::Throughput,
            Self::Path => RunKind::Path,
            Self::Load => RunKind::Load,
            Self::Rfc6349 => RunKind::Rfc6349,
            Self::Rr => RunKind::Rr,
            Self::Diagnose => RunKind::Diagnose,
            Self::Tune => RunKind::Tune,
            Self::Doctor => RunKind::Doctor,
            Self::Web => RunKind::Web,
        }
    }
}

/// Export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// Figures, for spreadsheets
    Csv,
    /// Whole documents
    Jsonl,
}

fn moment_or_age(text: &str) -> Result<WallTime, String> {
    if let Some(moment) = civil_time::parse(text) {
        return Ok(moment);
    }
    let age = match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Duration::from_secs(86_400) * days,
        _ => parse::time(text).map_err(|_| {
            "expected a date (2026-11-21, 2026-11-21T14:30) or an age with its unit (90min, 24h, 7d)".to_owned()
        })?,
    };
    Ok(WallTime::from_unix(clock::realtime_now().since_unix_epoch().saturating_sub(age)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind without a name could be recorded, but not found.
    #[test]
    fn each_kind_has_the_name_of_its_command() {
        for kind in RunKind::ALL {
            let name = RunKindChoice::from_str(kind.command_name(), false).expect("a command name");
            assert_eq!(name.kind(), kind);
        }
    }
}
