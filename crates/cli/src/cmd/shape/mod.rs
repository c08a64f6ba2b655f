//! `linerate shape DEV`: hold a line to a rate below its own, so that its queue stands where it can be managed.

mod arguments;
mod asking;
pub(crate) mod autorate;
mod course;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod follow;
mod line;
mod off;
pub(crate) mod persist;
pub(crate) mod plan_text;
mod record;
mod selection;
pub(crate) mod shaped;
mod shaper;
mod standing;
mod status;
mod trials;
mod verify;

pub(crate) use arguments::ShapeArguments;

use arguments::Action;

use crate::console;
use crate::exit::Exit;

/// Does what was asked for.
pub(crate) fn run(arguments: &ShapeArguments) -> Exit {
    let (device, action) = match arguments.action() {
        Ok(found) => found,
        Err(text) => {
            console::error(&text, None);
            return Exit::Unable;
        }
    };
    let done = match (device, action) {
        (Some(device), Action::SetUp) => course::run(arguments, device),
        (Some(device), Action::Off) => off::off(device, &arguments.how),
        (Some(device), Action::Confirm) => off::confirm(device),
        (Some(log), Action::Plot) => plot(log, &arguments.how),
        (device, Action::Status) => status::run(device, &arguments.how),
        (Some(device), Action::Persist) => persistence(arguments, device),
        (Some(device), Action::Unpersist) => persist::unpersist(device, arguments.how.dry_run, arguments.how.json),
        // All of them need an interface, which `action` has seen to.
        (None, _) => Ok(Exit::Unable),
    };
    done.unwrap_or_else(|error| error.report())
}

/// The shaper of the command line, or the one that stands, at each boot; with --autorate, the one of the command line.
fn persistence(arguments: &ShapeArguments, device: &str) -> Result<Exit, error::ShapeError> {
    let mut asked = line::Recorded { device: device.to_owned(), line: arguments.line.clone() };
    let how = &arguments.how;
    if arguments.autorate.autorate {
        asked.line.variable = true;
        let words = (&*asked.words(), &*arguments.autorate.lasting_words()?);
        return persist::persist(words, device, how.manager.as_deref(), how.dry_run, how.json);
    }
    let recorded = if asked.line.up.is_some() || asked.line.down.is_some() {
        asked
    } else {
        let store = linerate_change::Store::from_environment()?;
        let standing = record::of_device(&store, &linerate_sys::host_access::RealHost, device)?;
        standing.and_then(|standing| standing.recorded).ok_or_else(|| {
            let text = format!("having {device} shaped at each boot: no shaper of linerate stands there");
            error::ShapeError::unable(text).with_advice("set one up first, or give its rates: --up, --down")
        })?
    };
    persist::persist((&recorded.words(), &[]), device, how.manager.as_deref(), how.dry_run, how.json)
}

/// A log of `--autorate` as a page.
fn plot(log: &str, how: &arguments::HowArguments) -> Result<Exit, error::ShapeError> {
    let log = std::path::Path::new(log);
    let page = how.output.clone().unwrap_or_else(|| log.with_extension("html"));
    autorate::plot::draw(log, &page)?;
    console::note(&format!("the page is {}", page.display()));
    Ok(Exit::Success)
}
