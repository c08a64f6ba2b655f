//! `linerate shape DEV --autorate`: rates that follow a line whose capacity changes.
//!
//! The decisions are [`linerate_shape::autorate::Controller`]'s, which reads no clock and sends nothing; here is what it is
//! told and what it has done. One thread sends probes and receives answers, reads counters and backlogs ten times a
//! second, and sets rates in place.

mod arguments;
mod course;
mod line_watch;
mod log_file;
pub(crate) mod plot;
mod probes;
mod status;

#[cfg(test)]
mod tests;

pub(crate) use self::arguments::AutorateArguments;
pub(crate) use self::arguments::AutorateSettings;
use self::course::Course;
use super::error::ShapeError;
use super::shaped::Shaped;
use crate::console;
use crate::exit::Exit;
use linerate_sys::signals::Interrupts;

/// Follows the line until a signal comes or its time is over, then says what it came to. The shaper is set up if it is not,
/// and stays with its last rates unless it is to be taken down.
pub(crate) fn run(shaped: &mut dyn Shaped, settings: &AutorateSettings, stop: Interrupts) -> Result<Exit, ShapeError> {
    shaped.set_up()?;
    let mut course = Course::begin(shaped, settings, stop)?;
    let outcome = course.follow();
    course.status.clear();
    console::data(&course.status.summary(course.controller()));
    outcome?;
    if let (Some(log), Some(page)) = (course.log_path(), &settings.plot) {
        plot::draw(log, page)?;
        console::note(&format!("The page is {}.", page.display()));
    }
    if settings.off_at_end {
        course.take_down()?;
    }
    // Being interrupted is how this ends.
    Ok(Exit::Success)
}
