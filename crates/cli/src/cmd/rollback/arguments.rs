//! Command line of `linerate rollback`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_change::ChangeId;

use crate::values::duration;

/// `linerate rollback`.
#[derive(Debug, Args)]
#[command(
    long_about = "Rolls back changes that linerate made on this host. Each target gets its previous value, is \
                  read again, and reported. A target whose value is not the one that linerate wrote was changed by \
                  another program: it is reported and left unchanged. A second rollback has no effect.\n\nChanges on \
                  trial are rolled back automatically when their process ends or their time limit expires; changes \
                  interrupted before that are `pending`. Commands that change this host roll those back first, and \
                  repeat a rollback that could not restore everything.",
    after_help = "Examples:\n  linerate rollback --list     changes, their times and their states\n  \
                  sudo linerate rollback       roll back the latest changes in effect\n  \
                  sudo linerate rollback 7     roll back changes 7\n  \
                  linerate rollback 7 --dry-run\n\nExit codes: 0 all rolled back, 1 a target could not be restored \
                  (the reason is printed), 2 usage or environment, 4 privilege needed."
)]
pub(crate) struct RollbackArguments {
    /// Number of the changes; without it, the latest in effect
    #[arg(value_name = "ID", conflicts_with_all = ["list", "pending", "watch"])]
    pub(super) id: Option<ChangeId>,
    /// List all changes with their states, the latest first
    #[arg(short, long, conflicts_with_all = ["pending", "dry_run"])]
    pub(super) list: bool,
    /// Roll back all changes that were interrupted during their trial, or only rolled back in part
    #[arg(long)]
    pub(super) pending: bool,
    /// Print the rollback without doing it
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(super) json: bool,
    /// Guard changes on trial: roll them back when their process ends or their time limit expires
    #[arg(long, hide = true, value_name = "ID", conflicts_with_all = ["list", "pending", "dry_run", "json"])]
    pub(super) watch: Option<ChangeId>,
}

/// Hidden command that carries out a plan and waits, to test the end of such a process.
#[derive(Debug, Args)]
pub(crate) struct TrialArguments {
    /// File with the plan (schema 1)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) plan: PathBuf,
    /// Keep the changes, recorded in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) keep_in: Option<PathBuf>,
    /// Time until the watchdog rolls them back
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "TIME")]
    pub(super) time_limit: Duration,
    /// Time to wait before ending
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    pub(super) hold: Duration,
}
