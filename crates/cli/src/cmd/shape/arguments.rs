//! The command line of `linerate shape`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::autorate::AutorateArguments;
use super::line::LineArguments;
use super::persist;
use super::verify::VerifyArguments;
use crate::app;

const ABOUT: &str = "Holds a line to a little less than its rate, so that its queue stands here, where it can be kept short, and not in \
                     the modem. What somebody waits for goes first, flows and hosts share the rest. What the kernel can do is \
                     found by trying, in a network namespace of its own; what stood there before is recorded first, and comes \
                     back with `linerate shape DEV off`, byte for byte.\n\nWith --verify the path is measured without and with \
                     the shaper (idle, full down, up and both ways), and only a shaper that passes stays.";

const AFTER_HELP: &str = "Actions:\n  \
    linerate shape eth0 off                 take it down; what was there before comes back\n  \
    linerate shape eth0 status              what stands there and what it does now\n  \
    linerate shape status                   the same for all interfaces\n  \
    linerate shape eth0 confirm             keep what --confirm-within waits for\n  \
    linerate shape eth0 persist             set it up at each boot, through the manager that owns the interface\n  \
    linerate shape eth0 unpersist           not any more\n  \
    linerate shape plot FILE                a log of --autorate as a page\n\n\
    Examples:\n  \
    linerate shape eth0 --up 19M --down 95M --dry-run     what would be set up, and what to expect\n  \
    sudo linerate shape eth0 --up 19M --down 95M --verify host\n  \
    sudo linerate shape eth0 --verify host --find-rate    … and find the rates by measurement\n  \
    sudo linerate shape wwan0 --autorate                  rates that follow an LTE line\n  \
    linerate shape eth0 --up 19M --script > shaper.sh     for a host without linerate\n  \
    linerate shape eth0 --up 220k --down 850k --verify lab:xs4all-adsl\n\n\
    Exit codes: 0 done; 1 it stands, but something is to be looked at; 2 usage or environment; 3 broken off; 4 privilege \
    needed; 5 it did not pass, and was taken back.";

/// `linerate shape`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_help = AFTER_HELP)]
pub(crate) struct ShapeArguments {
    /// The interface towards the line; or `status` for all
    #[arg(value_name = "DEV")]
    pub(crate) device: String,
    /// What to do with the shaper: off, status, confirm, persist, unpersist; without it, set it up
    #[arg(value_name = "ACTION")]
    pub(crate) action: Option<String>,
    /// The line.
    #[command(flatten)]
    pub(crate) line: LineArguments,
    /// Proving it.
    #[command(flatten)]
    pub(crate) verify: VerifyArguments,
    /// Following a line whose capacity changes.
    #[command(flatten)]
    pub(crate) autorate: AutorateArguments,
    /// How to go about it.
    #[command(flatten)]
    pub(crate) how: HowArguments,
}

/// How to go about it.
#[derive(Debug, Args)]
pub(crate) struct HowArguments {
    /// Only show what would be set up, with each command
    #[arg(long, conflicts_with = "script")]
    pub(crate) dry_run: bool,
    /// Print a shell script that does the same without linerate
    #[arg(long)]
    pub(crate) script: bool,
    /// Replace queueing disciplines that somebody else has set, without asking; they come back with `off`
    #[arg(long)]
    pub(crate) replace: bool,
    /// Take it down again unless it is confirmed within this time: for a line that may be lost
    #[arg(long, value_name = "TIME", value_parser = app::duration)]
    pub(crate) confirm_within: Option<Duration>,
    /// Stay, and set it up again when the interface comes back or somebody else has changed its queueing; what units of
    /// `persist` do
    #[arg(long, conflicts_with = "autorate")]
    pub(crate) follow: bool,
    /// For persist: only by this manager, instead of the one that owns the interface
    #[arg(long, value_name = "NAME", value_parser = manager)]
    pub(crate) manager: Option<String>,
    /// Show the status once, on a terminal too
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on the standard error output
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Each second of --autorate as a line, where the standard error output is no terminal
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Where the page of `linerate shape plot LOG` goes; without it beside the log
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

fn manager(text: &str) -> Result<String, String> {
    let names = || persist::manager_names().collect::<Vec<_>>().join(", ");
    let is_known = persist::manager_names().any(|name| name == text);
    if is_known { Ok(text.to_owned()) } else { Err(format!("there are {}", names())) }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    SetUp,
    Off,
    Status,
    Confirm,
    Persist,
    Unpersist,
    Plot,
}

impl ShapeArguments {
    /// The emulated path (`lab:NAME`) on which it is to be proven.
    pub(crate) fn lab(&self) -> Option<&str> {
        self.verify.verify.as_deref().filter(|host| crate::cmd::lab::name_of(host).is_some())
    }

    /// What is to be done to which interface; `None` stands for all.
    pub(crate) fn action(&self) -> Result<(Option<&str>, Action), String> {
        let device = Some(self.device.as_str());
        if let ("plot", Some(log)) = (self.device.as_str(), self.action.as_deref()) {
            return Ok((Some(log), Action::Plot));
        }
        match (self.device.as_str(), self.action.as_deref()) {
            ("status", None) => Ok((None, Action::Status)),
            (_, None) => Ok((device, Action::SetUp)),
            (_, Some("off")) => Ok((device, Action::Off)),
            (_, Some("status")) => Ok((device, Action::Status)),
            (_, Some("confirm")) => Ok((device, Action::Confirm)),
            (_, Some("persist")) => Ok((device, Action::Persist)),
            (_, Some("unpersist")) => Ok((device, Action::Unpersist)),
            ("off" | "confirm" | "persist" | "unpersist" | "status", Some(other)) => {
                Err(format!("the interface comes first: linerate shape {other} {}", self.device))
            }
            (_, Some(other)) => Err(format!(
                "{other} is nothing to do with a shaper: there are off, status, confirm, persist and unpersist"
            )),
        }
    }
}
