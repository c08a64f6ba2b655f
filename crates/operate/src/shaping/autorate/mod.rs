//! Rates that follow an access link whose capacity changes.
//!
//! The decisions are [`linerate_shape::autorate::RateController`]'s, which reads no clock and sends nothing; here is what it is
//! told and what it has done. One thread sends probes and receives answers, reads counters and backlogs ten times a
//! second, and sets rates in place.

mod link_monitor;
mod log_file;
mod probes;
mod session;
pub mod settings;

#[cfg(test)]
mod tests;

use std::time::Duration;

use linerate_shape::autorate::{AutorateLogLine, ControllerInput, ControllerState, RateController};
use linerate_shape::link::AccessLink;
use linerate_sys::signals::InterruptSignals;
use linerate_units::MonotonicTime;

use self::session::AutorateSession;
use self::settings::AutorateSettings;
use super::error::ShapeError;
use super::shaped::ShaperControl;

/// Event while a link is followed.
pub enum AutorateEvent<'a> {
    /// Following begins.
    Begun {
        /// Link with its first rates.
        line: &'a AccessLink,
        /// Time.
        now: MonotonicTime,
    },
    /// Input of the controller.
    Input(&'a ControllerInput),
    /// Another state of the controller.
    State(ControllerState),
    /// A reflector is probed in place of one that failed.
    Replaced {
        /// Name of the one that failed.
        old: &'a str,
        /// Name of the new one.
        new: &'a str,
    },
    /// A line of the log.
    Line(&'a AutorateLogLine),
    /// Rates were set, which took this long.
    RatesSet(Duration),
    /// Another second, or another state, with the controller.
    Second(&'a RateController),
    /// Following has ended.
    Ended(&'a RateController),
}

/// Receiver of events.
pub type AutorateEvents<'a> = &'a mut dyn FnMut(&AutorateEvent<'_>);

/// Follows the line until a signal comes or its time is over. The shaper is set up if it is not, and stays with its last
/// rates unless it is to be taken down.
pub fn run(
    shaped: &mut dyn ShaperControl,
    settings: &AutorateSettings,
    stop: InterruptSignals,
    events: AutorateEvents<'_>,
) -> Result<(), ShapeError> {
    shaped.set_up()?;
    let mut session = AutorateSession::begin(shaped, settings, stop, events)?;
    let outcome = session.follow();
    session.end();
    outcome?;
    if settings.off_at_end {
        session.take_down()?;
    }
    // Being interrupted is how this ends.
    Ok(())
}
