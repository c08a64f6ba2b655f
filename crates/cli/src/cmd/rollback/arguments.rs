//! The command line of `linerate rollback`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_change::ChangeId;

use crate::app::duration;

/// `linerate rollback`.
#[derive(Debug, Args)]
#[command(
    long_about = "Takes back what linerate has changed on this host. Each target gets back what stood there before, is \
                  read again, and reported. A target that has another value than the one linerate wrote belongs to \
                  somebody else by now: it is said, and left alone. Doing it twice does no harm.\n\nChanges that are \
                  being tried are taken back by themselves when the process that tries them ends or its time is over; \
                  what was interrupted together with that is `pending`.",
    after_help = "Examples:\n  linerate rollback --list     what was changed, when, and what has become of it\n  \
                  sudo linerate rollback       take back the latest changes that are in force\n  \
                  sudo linerate rollback 7     take back changes 7\n  \
                  linerate rollback 7 --dry-run\n\nExit codes: 0 all of it is back, 1 something could not be put back \
                  (the reason is printed), 2 usage or environment, 4 privilege needed."
)]
pub(crate) struct RollbackArguments {
    /// Number of the changes; without it, the latest that are in force
    #[arg(value_name = "ID", conflicts_with_all = ["list", "pending", "watch"])]
    pub(super) id: Option<ChangeId>,
    /// List all changes with what has become of them, the latest first
    #[arg(short, long, conflicts_with_all = ["pending", "dry_run"])]
    pub(super) list: bool,
    /// Take back all changes that were interrupted while they were tried
    #[arg(long)]
    pub(super) pending: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(super) json: bool,
    /// Watch over changes that are being tried, and take them back when their process ends or its time is over
    #[arg(long, hide = true, value_name = "ID", conflicts_with_all = ["list", "pending", "dry_run", "json"])]
    pub(super) watch: Option<ChangeId>,
}

/// Carries out a plan and waits: for tests of what happens to a process that does.
#[derive(Debug, Args)]
pub(crate) struct TrialArguments {
    /// File with the plan (schema 1)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) plan: PathBuf,
    /// Keep the changes, in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) keep_in: Option<PathBuf>,
    /// Time until the watchdog takes them back
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "TIME")]
    pub(super) time_limit: Duration,
    /// How long to wait before ending
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    pub(super) hold: Duration,
}
