//! Output and questions of a guided run on a terminal.

use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_operate::doctor::{DoctorEvent, DoctorInterface};
use linerate_operate::tuning::session::{
    DiagnosedTransfer, TrialConsent, TrialCost, TriedGroup, TuningEvent, TuningInterface,
};
use linerate_rules::tuning::TuningProposal;
use linerate_sys::signals::InterruptSignals;

use super::arguments::DoctorArguments;
use crate::cmd::tune::terminal::{self, say};
use crate::cmd::{load, path};
use crate::console;
use crate::progress;
use crate::recorder::display_host;

/// At the terminal.
pub(super) struct AtTerminal<'a> {
    arguments: &'a DoctorArguments,
    /// Duration of the transfer.
    total: Option<Duration>,
    tuning: terminal::TerminalInterface,
    path: Option<path::PathProgressDisplay>,
    load: Option<load::LoadProgressDisplay>,
}

impl<'a> AtTerminal<'a> {
    pub(super) fn new(arguments: &'a DoctorArguments, total: Option<Duration>, stop: InterruptSignals) -> Self {
        let (how, quiet) = (&arguments.options, arguments.common.quiet);
        let tuning = terminal::TerminalInterface::new(quiet, how.yes, how.confirm_within, total, stop);
        Self { arguments, total, tuning, path: None, load: None }
    }

    /// Announces the steps, and the time and traffic that they take.
    fn announce(&self, is_resumed: bool) {
        if self.arguments.common.quiet {
            return;
        }
        let load = if self.arguments.no_load { "" } else { " the delay under load (about 20 s)," };
        let text = format!(
            "Examining the path to {}: the path itself (about 25 s),{load} and a transfer ({} s). Nothing is changed \
             before you are asked.",
            display_host(self.arguments.host.as_deref().unwrap_or_default()),
            self.total.unwrap_or_default().as_secs()
        );
        say(&text, 0);
        if is_resumed {
            say("Resuming the interrupted run (--fresh starts a new one).", 0);
        }
    }

    fn finish(&mut self) {
        if let Some(progress) = self.path.take() {
            progress.finish();
        }
        if let Some(progress) = self.load.take() {
            progress.finish();
        }
    }
}

impl DoctorInterface for AtTerminal<'_> {
    fn examined(&mut self, event: DoctorEvent<'_>) {
        let quiet = self.arguments.common.quiet;
        match event {
            DoctorEvent::Begun { is_resumed } => self.announce(is_resumed),
            DoctorEvent::Path(event) => {
                self.path.get_or_insert_with(|| path::PathProgressDisplay::new(quiet, "")).event(event);
            }
            DoctorEvent::Load(event) => {
                self.load.get_or_insert_with(|| load::LoadProgressDisplay::new(quiet)).event(event);
            }
            DoctorEvent::Measured => self.finish(),
            DoctorEvent::Step { name, text } => {
                let text = format!("{}: {text}", name.name());
                progress::publish(ProgressEvent::with_text(EventKind::Note, text.as_str()));
                if !quiet {
                    say(&text, 0);
                }
            }
            DoctorEvent::Problem(text) => console::error(text, None),
        }
    }

    fn has_no_terminal(&self) -> bool {
        self.tuning.has_no_terminal
    }
}

impl TuningInterface for AtTerminal<'_> {
    fn event(&mut self, event: TuningEvent<'_>) {
        self.tuning.event(event);
    }

    fn consents(&mut self, seen: &DiagnosedTransfer, proposal: &TuningProposal, effort: &TrialCost) -> TrialConsent {
        self.tuning.consents(seen, proposal, effort)
    }

    fn confirms(&mut self, trials: &[TriedGroup]) -> bool {
        self.tuning.confirms(trials)
    }
}
