//! The command line of `linerate history`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use linerate_history::{Filter, RunReference, moment};
use linerate_model::schema::run::Kind;
use linerate_sys::clock;
use linerate_units::{WallTime, parse};

/// `linerate history`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArguments {
    /// What to do; without it, the runs are listed.
    #[command(subcommand)]
    pub(super) command: Option<HistoryCommand>,
    /// How they are listed.
    #[command(flatten)]
    pub(super) list: ListArguments,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum HistoryCommand {
    /// List the runs, the latest first (this is what `linerate history` alone does)
    List(ListArguments),
    /// Show a run: what came out, its figures, where it was measured
    Show {
        /// The run: its number, or last, last-1, …
        run: RunReference,
        /// Print the whole document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// Compare two runs figure by figure, with 95 % confidence intervals, and say what was different around them
    Compare {
        /// The first run
        before: RunReference,
        /// The second run
        after: RunReference,
        /// Exit with 1 when a figure of the second run is worse
        #[arg(long)]
        fail_on_worse: bool,
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// Show how a figure developed over the runs, for example `goodput_down`
    Trend {
        /// The figure's name; `show --json` has them
        figure: String,
        /// Which runs.
        #[command(flatten)]
        filter: FilterArguments,
        /// Print a JSON document (schema 1) instead of text
        #[arg(long)]
        json: bool,
    },
    /// Write runs for other programs
    Export {
        /// csv: a line for each figure; jsonl: the whole document of each run on a line
        #[arg(long, value_enum, default_value = "jsonl")]
        format: Format,
        /// File to write to instead of the standard output
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Which runs.
        #[command(flatten)]
        filter: FilterArguments,
    },
    /// Take in runs that `export --format jsonl` wrote; those that are known already are skipped
    Import {
        /// The files; - is the standard input
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
    /// Delete runs, after asking
    Delete {
        /// The runs
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<RunReference>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Write a word or a sentence beside a run, to find it by
    Tag {
        /// The run
        run: RunReference,
        /// The text
        text: String,
        /// Take the text away instead
        #[arg(long)]
        remove: bool,
    },
    /// Print where the history lies (`$LINERATE_HISTORY`, else below `$XDG_DATA_HOME` or `~/.local/share`)
    Path,
}

/// How runs are listed.
#[derive(Clone, Debug, Args)]
pub(super) struct ListArguments {
    /// Which runs.
    #[command(flatten)]
    pub(super) filter: FilterArguments,
    /// Print a JSON document (schema 1) instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Which runs.
#[derive(Clone, Debug, Args)]
pub(super) struct FilterArguments {
    /// Only runs to this host, as it was given; an emulated path as lab:NAME
    #[arg(long)]
    pub(super) host: Option<String>,
    /// Only runs of this command
    #[arg(long, value_enum)]
    pub(super) kind: Option<KindName>,
    /// Only runs that began then or later: a date (2026-11-21, 2026-11-21T14:30, in UTC) or a time ago (90min, 7d)
    #[arg(long, value_name = "TIME", value_parser = moment_or_age)]
    pub(super) since: Option<WallTime>,
    /// Only runs that began before then
    #[arg(long, value_name = "TIME", value_parser = moment_or_age)]
    pub(super) until: Option<WallTime>,
    /// At most so many, the latest ones
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) limit: Option<NonZeroU32>,
    /// Only runs that were broken off or failed
    #[arg(long)]
    pub(super) failed: bool,
    /// Only runs with this tag
    #[arg(long, value_name = "TEXT")]
    pub(super) tag: Option<String>,
}

impl FilterArguments {
    /// As the history takes it.
    pub(super) fn filter(&self) -> Filter {
        Filter {
            host: self.host.clone(),
            kind: self.kind.map(KindName::kind),
            since: self.since,
            until: self.until,
            failed: self.failed,
            tag: self.tag.clone(),
            limit: self.limit,
        }
    }
}

/// A command that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum KindName {
    /// linerate test
    Test,
    /// linerate path
    Path,
    /// linerate load
    Load,
    /// linerate rfc6349
    Rfc6349,
    /// linerate diagnose
    Diagnose,
    /// linerate tune
    Tune,
    /// linerate doctor
    Doctor,
}

impl KindName {
    const fn kind(self) -> Kind {
        match self {
            Self::Test => Kind::Throughput,
            Self::Path => Kind::Path,
            Self::Load => Kind::Load,
            Self::Rfc6349 => Kind::Rfc6349,
            Self::Diagnose => Kind::Diagnose,
            Self::Tune => Kind::Tune,
            Self::Doctor => Kind::Doctor,
        }
    }
}

/// The word of the command line for a kind of run.
pub(super) const fn command_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Throughput => "test",
        Kind::Path => "path",
        Kind::Load => "load",
        Kind::Rfc6349 => "rfc6349",
        Kind::Diagnose => "diagnose",
        Kind::Tune => "tune",
        Kind::Doctor => "doctor",
    }
}

/// What an export looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Figures, for spreadsheets
    Csv,
    /// Whole documents
    Jsonl,
}

fn moment_or_age(text: &str) -> Result<WallTime, String> {
    if let Some(moment) = moment::parse(text) {
        return Ok(moment);
    }
    let age = match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Duration::from_secs(86_400) * days,
        _ => parse::time(text).map_err(|_| {
            "neither a date (2026-11-21, 2026-11-21T14:30) nor a time ago with its unit (90min, 24h, 7d)".to_owned()
        })?,
    };
    Ok(WallTime::from_unix(clock::realtime_now().since_unix_epoch().saturating_sub(age)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that no word names could be kept, but not found.
    #[test]
    fn each_kind_has_the_word_of_its_command() {
        for kind in Kind::ALL {
            let word = KindName::from_str(command_of(kind), false).expect("the word of a command");
            assert_eq!(word.kind(), kind);
        }
    }
}
