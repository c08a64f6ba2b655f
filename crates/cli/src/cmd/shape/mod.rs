//! `linerate shape DEV`: shapes an access link below its capacity, so that the queue forms where it is managed.

mod arguments;
mod autorate;
mod class_table;
mod link_arguments;
mod off;
mod persist_text;
mod plan_text;
mod set_up;
mod status;
mod terminal;
mod verify;

pub(crate) use arguments::ShapeArguments;

use arguments::ShaperAction;

use linerate_operate::shaping::error::{ShapeError, ShapeErrorKind};
use linerate_operate::shaping::line::RecordedShaper;
use linerate_operate::shaping::{persist, recorded_of};

use crate::console;
use crate::exit::ExitStatus;

/// Runs the requested action.
pub(crate) fn run(arguments: &ShapeArguments) -> ExitStatus {
    let (device, action) = match arguments.action() {
        Ok(found) => found,
        Err(text) => {
            console::error(&text, None);
            return ExitStatus::Unable;
        }
    };
    let done = match (device, action) {
        (Some(device), ShaperAction::SetUp) => set_up::run(arguments, device),
        (Some(device), ShaperAction::Off) => off::off(device, &arguments.options),
        (Some(device), ShaperAction::Confirm) => off::confirm(device),
        (Some(log), ShaperAction::Plot) => plot(log, &arguments.options),
        (device, ShaperAction::Status) => status::run(device, &arguments.options),
        (Some(device), ShaperAction::Persist) => persistence(arguments, device),
        (Some(device), ShaperAction::Unpersist) => unpersist(device, &arguments.options),
        // `action` guarantees an interface for these.
        (None, _) => Ok(ExitStatus::Unable),
    };
    done.unwrap_or_else(|error| report(&error))
}

/// Says what went wrong, and how the command ends.
fn report(error: &ShapeError) -> ExitStatus {
    let text = match &error.advice {
        Some(advice) => format!("{}\n{advice}", error.text),
        None => error.text.clone(),
    };
    console::error(&text, None);
    match error.kind {
        ShapeErrorKind::Unable => ExitStatus::Unable,
        ShapeErrorKind::Privilege => ExitStatus::Privilege,
        ShapeErrorKind::RolledBack => ExitStatus::RolledBack,
    }
}

/// Makes the given shaper, or the active one, start at boot; with --autorate, the given one.
fn persistence(arguments: &ShapeArguments, device: &str) -> Result<ExitStatus, ShapeError> {
    let mut asked = RecordedShaper { device: device.to_owned(), line: arguments.link.request()? };
    let mut autorate = Vec::new();
    if arguments.autorate.autorate {
        asked.line.variable = true;
        autorate = arguments.autorate.boot_arguments()?;
    } else if asked.line.up.is_none() && asked.line.down.is_none() {
        asked = recorded_of(device)?;
    }
    if asked.line.up.is_some() || asked.line.down.is_some() {
        asked.check()?;
    }
    let how = &arguments.options;
    let document = persist::persist((&asked.arguments(), &autorate), device, how.manager, how.dry_run)?;
    persist_text::show(&document, how.json);
    Ok(ExitStatus::Success)
}

fn unpersist(device: &str, how: &arguments::ShapeOptions) -> Result<ExitStatus, ShapeError> {
    persist_text::show(&persist::unpersist(device, how.dry_run)?, how.json);
    Ok(ExitStatus::Success)
}

/// Draws a log of `--autorate` as an HTML page.
fn plot(log: &str, how: &arguments::ShapeOptions) -> Result<ExitStatus, ShapeError> {
    let log = std::path::Path::new(log);
    let page = how.output.clone().unwrap_or_else(|| log.with_extension("html"));
    autorate::plot::draw(log, &page)?;
    console::note(&format!("page written to {}", page.display()));
    Ok(ExitStatus::Success)
}
