//! The command line of `linerate shape`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use linerate_documents::shaper_persistence::ShaperManager;
use linerate_operate::shaping::persist;

use super::autorate::AutorateArguments;
use super::link_arguments::LinkArguments;
use super::verify::VerifyArguments;
use crate::{completion, values};

const ABOUT: &str = "Shapes an access link to slightly less than its rate, so that the queue forms here, where it can \
                     be kept short, and not in the modem. Interactive traffic goes first; flows and hosts share the \
                     remaining rate. Kernel features are probed in a separate network namespace. The previous \
                     configuration is recorded first; `linerate shape DEV off` restores it exactly.\n\nWith --verify \
                     the path is measured without and with the shaper (idle, loaded down, up and in both directions), \
                     and only a shaper that passes is kept.";

const AFTER_HELP: &str = "Actions:\n  \
    linerate shape eth0 off                 remove the shaper; restore the previous configuration\n  \
    linerate shape eth0 status              show the active shaper and its current figures\n  \
    linerate shape status                   the same for all interfaces\n  \
    linerate shape eth0 confirm             keep a shaper that waits for confirmation\n  \
    linerate shape eth0 persist             set it up at each boot, through the interface's manager\n  \
    linerate shape eth0 unpersist           stop setting it up at boot\n  \
    linerate shape plot FILE                draw a log of --autorate as an HTML page\n\n\
    Examples:\n  \
    linerate shape eth0 --up 19M --down 95M --dry-run     the plan and the expected delay\n  \
    sudo linerate shape eth0 --up 19M --down 95M --verify host\n  \
    sudo linerate shape eth0 --verify host --find-rate    also find the rates by measurement\n  \
    sudo linerate shape wwan0 --autorate                  rates that follow an LTE link\n  \
    linerate shape eth0 --up 19M --script > shaper.sh     for a host without linerate\n  \
    linerate shape eth0 --up 220k --down 850k --verify lab:xs4all-adsl\n\n\
    Exit codes: 0 done; 1 active, with warnings; 2 usage or environment; 3 interrupted; 4 privilege needed; 5 did not \
    pass and was rolled back.";

/// `linerate shape`.
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_help = AFTER_HELP)]
pub(crate) struct ShapeArguments {
    /// Interface of the access link; `status` shows all
    #[arg(value_name = "DEV", add = ArgValueCompleter::new(completion::interfaces))]
    pub(crate) device: String,
    /// off, status, confirm, persist or unpersist; without it, set the shaper up
    #[arg(value_name = "ACTION", add = ArgValueCompleter::new(completion::shaper_actions))]
    pub(crate) action: Option<String>,
    /// Access link.
    #[command(flatten)]
    pub(crate) link: LinkArguments,
    /// Verification.
    #[command(flatten)]
    pub(crate) verify: VerifyArguments,
    /// Automatic rates for variable links.
    #[command(flatten)]
    pub(crate) autorate: AutorateArguments,
    /// General options.
    #[command(flatten)]
    pub(crate) options: ShapeOptions,
}

/// General options of `linerate shape`.
#[derive(Debug, Args)]
pub(crate) struct ShapeOptions {
    /// Only show the plan, with each command
    #[arg(long, conflicts_with = "script")]
    pub(crate) dry_run: bool,
    /// Print an equivalent shell script that does not need linerate
    #[arg(long)]
    pub(crate) script: bool,
    /// Replace queueing disciplines that linerate did not install, without asking; `off` restores them
    #[arg(long)]
    pub(crate) replace: bool,
    /// Roll back unless confirmed within this time: for links that the change may cut off
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) confirm_within: Option<Duration>,
    /// Stay, and set it up again when the interface reappears or another program changes its queueing; used by the
    /// units of `persist`
    #[arg(long, conflicts_with = "autorate")]
    pub(crate) follow: bool,
    /// For persist: use this manager instead of the one that owns the interface
    #[arg(long, value_name = "NAME", value_parser = manager, add = ArgValueCompleter::new(completion::managers))]
    pub(crate) manager: Option<ShaperManager>,
    /// Show the status once, also on a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print JSON events while it verifies, one per line; the last one has the document
    #[arg(long, conflicts_with = "json")]
    pub(crate) json_stream: bool,
    /// No progress on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the whole plan with its commands; with --autorate, a line per second when standard error is no terminal
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Output file of `linerate shape plot LOG` [default: next to the log]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

fn manager(text: &str) -> Result<ShaperManager, String> {
    let names = || persist::managers().map(ShaperManager::name).collect::<Vec<_>>().join(", ");
    let known = persist::managers().find(|manager| manager.name() == text);
    known.ok_or_else(|| format!("unknown manager (expected one of: {})", names()))
}

/// Action on a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShaperAction {
    SetUp,
    Off,
    Status,
    Confirm,
    Persist,
    Unpersist,
    Plot,
}

impl ShapeArguments {
    /// Host that it is verified with.
    pub(crate) fn verification_host(&self) -> Option<&str> {
        self.verify.verify.as_deref()
    }

    /// Interface (`None`: all) and action.
    pub(crate) fn action(&self) -> Result<(Option<&str>, ShaperAction), String> {
        let device = Some(self.device.as_str());
        if let ("plot", Some(log)) = (self.device.as_str(), self.action.as_deref()) {
            return Ok((Some(log), ShaperAction::Plot));
        }
        match (self.device.as_str(), self.action.as_deref()) {
            ("status", None) => Ok((None, ShaperAction::Status)),
            (_, None) => Ok((device, ShaperAction::SetUp)),
            (_, Some("off")) => Ok((device, ShaperAction::Off)),
            (_, Some("status")) => Ok((device, ShaperAction::Status)),
            (_, Some("confirm")) => Ok((device, ShaperAction::Confirm)),
            (_, Some("persist")) => Ok((device, ShaperAction::Persist)),
            (_, Some("unpersist")) => Ok((device, ShaperAction::Unpersist)),
            ("off" | "confirm" | "persist" | "unpersist" | "status", Some(other)) => {
                Err(format!("the interface comes first: `linerate shape {other} {}`", self.device))
            }
            (_, Some(other)) => {
                Err(format!("unknown action '{other}' (expected one of: off, status, confirm, persist, unpersist)"))
            }
        }
    }
}
