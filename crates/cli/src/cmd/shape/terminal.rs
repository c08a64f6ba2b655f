//! Output and questions on a terminal while a shaper is set up.

use std::io;
use std::time::Duration;

use linerate_change::RollbackMode;
use linerate_documents::shaper::ShaperOutcome;
use linerate_operate::shaping::document::SetupOutcome;
use linerate_operate::shaping::error::ShapeError;
use linerate_operate::shaping::shaped::ShaperControl;
use linerate_operate::shaping::verify::VerifyOutcome;
use linerate_operate::shaping::{ConfirmationAnswer, ShapeEvent, ShapeInterface, Shaper};
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::terminal;
use linerate_units::display;

use super::arguments::ShapeOptions;
use super::autorate::AutorateProgress;
use super::plan_text;
use super::set_up::show;
use super::verify::VerifyProgress;
use crate::cmd::rollback;
use crate::console;

/// At the terminal.
pub(super) struct AtTerminal<'a> {
    how: &'a ShapeOptions,
    stop: InterruptSignals,
    input: io::Stdin,
    verify: Option<VerifyProgress>,
    autorate: AutorateProgress,
}

impl<'a> AtTerminal<'a> {
    pub(super) fn new(how: &'a ShapeOptions, stop: InterruptSignals) -> Self {
        Self { how, stop, input: io::stdin(), verify: None, autorate: AutorateProgress::new(how.verbose) }
    }

    /// True when the link was followed.
    pub(super) const fn has_followed(&self) -> bool {
        self.autorate.has_begun()
    }

    fn say(&self, text: &str) {
        if !self.how.quiet {
            console::note(text);
        }
    }

    fn concluded(&self, shaper: &Shaper<'_>, became: SetupOutcome, proof: Option<&VerifyOutcome>) {
        match became.outcome {
            ShaperOutcome::Unchanged if !self.how.json => {
                self.say(&format!("{} is shaped so already", shaper.device()));
            }
            ShaperOutcome::Changed if !self.how.json => {
                self.say(&format!("{}: {}, changed in place", shaper.device(), plan_text::rates(shaper.line())));
            }
            _ => show(shaper, self.how, became, proof),
        }
    }

    fn ask_for_confirmation(&self, device: &str, within: Duration) {
        let here = if terminal::is_terminal(&self.input) { " (or Enter here)" } else { "" };
        let time = display::duration(within);
        console::note(&format!(
            "It is active. Without `linerate shape {device} confirm`{here} within {time} it is rolled back."
        ));
    }
}

impl ShapeInterface for AtTerminal<'_> {
    fn event(&mut self, event: ShapeEvent<'_>) {
        match event {
            ShapeEvent::Note(text) => console::note(text),
            ShapeEvent::Step(text) => self.say(text),
            ShapeEvent::RolledBack { store, report } => {
                console::note(&rollback::report_text(store, report, RollbackMode::ForReal));
            }
            ShapeEvent::Unconfirmed { device, within } => self.ask_for_confirmation(device, within),
            ShapeEvent::Verify(event) => {
                let quiet = self.how.quiet || self.how.json;
                self.verify.get_or_insert_with(|| VerifyProgress::new(quiet)).event(event);
            }
            ShapeEvent::Verified => {
                if let Some(mut progress) = self.verify.take() {
                    progress.finish();
                }
            }
            ShapeEvent::Autorate(event) => self.autorate.event(event),
            ShapeEvent::Concluded { shaper, became, proof } => self.concluded(shaper, became, proof),
        }
    }

    fn replaces(&mut self, found: &str) -> Result<bool, ShapeError> {
        if !terminal::is_terminal(&self.input) {
            return Ok(false);
        }
        console::note(found);
        answers("Replace it? It is recorded, and comes back with `off`. [y/N] ", self.stop)
    }

    fn answer(&mut self, time: Duration) -> Result<ConfirmationAnswer, ShapeError> {
        if !terminal::is_terminal(&self.input) {
            let is_ending = poll::wait_for(&self.stop, PollInterest::READ, Some(time))?;
            return Ok(if is_ending { ConfirmationAnswer::Ending } else { ConfirmationAnswer::Nothing });
        }
        let (stop, input) = (self.stop, &self.input);
        let mut items = [PollItem::new(&stop, PollInterest::READ), PollItem::new(input, PollInterest::READ)];
        poll::wait(&mut items, Some(time))?;
        Ok(if items[0].is_readable() {
            ConfirmationAnswer::Ending
        } else if items[1].is_readable() {
            let mut line = String::new();
            ConfirmationAnswer::Given(input.read_line(&mut line).is_ok_and(|bytes| bytes > 0))
        } else {
            ConfirmationAnswer::Nothing
        })
    }
}

/// Asks the question; true when the answer is yes.
fn answers(question: &str, stop: InterruptSignals) -> Result<bool, ShapeError> {
    console::ask(question);
    let input = io::stdin();
    let mut items = [PollItem::new(&stop, PollInterest::READ), PollItem::new(&input, PollInterest::READ)];
    poll::wait(&mut items, None)?;
    if items[0].is_readable() || !items[1].is_readable() {
        console::note("");
        return Ok(false);
    }
    let mut answer = String::new();
    Ok(input.read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}
