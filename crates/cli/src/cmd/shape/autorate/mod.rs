//! `linerate shape DEV --autorate` at the terminal: options, the line that changes, and the log as a page.

mod arguments;
pub(crate) mod plot;
mod status;

use std::path::Path;

use linerate_operate::shaping::autorate::AutorateEvent;
use linerate_operate::shaping::autorate::settings::AutorateSettings;
use linerate_operate::shaping::error::ShapeError;

pub(crate) use self::arguments::AutorateArguments;
use self::status::AutorateStatus;
use crate::console;

/// Progress on a terminal while a link is followed, and the summary at the end.
pub(super) struct AutorateProgress {
    verbose: bool,
    status: Option<AutorateStatus>,
}

impl AutorateProgress {
    /// `verbose`: each second is a line where the standard error output is no terminal.
    pub(super) const fn new(verbose: bool) -> Self {
        Self { verbose, status: None }
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    pub(super) fn event(&mut self, event: &AutorateEvent<'_>) {
        if let AutorateEvent::Begun { line, now } = event {
            self.status = Some(AutorateStatus::new(self.verbose, line, *now));
        }
        let Some(status) = &mut self.status else { return };
        match event {
            AutorateEvent::Begun { .. } => {}
            AutorateEvent::Input(input) => status.count_input(input),
            AutorateEvent::State(state) => status.entered(*state),
            AutorateEvent::Replaced { old, new } => status.replaced(old, new),
            AutorateEvent::Line(line) => status.line(line),
            AutorateEvent::RatesSet(took) => status.count_change(*took),
            AutorateEvent::Second(controller) => status.show(controller),
            AutorateEvent::Ended(controller) => {
                status.clear();
                console::data(&status.summary(controller));
            }
        }
    }
}

/// Draws the log of a line that was followed, where that was asked for.
pub(super) fn draw(settings: &AutorateSettings, page: Option<&Path>) -> Result<(), ShapeError> {
    let (Some(log), Some(page)) = (&settings.log, page) else { return Ok(()) };
    plot::draw(log, page)?;
    console::note(&format!("The page is {}.", page.display()));
    Ok(())
}
