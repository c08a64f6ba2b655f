//! Setting a shaper up: the request of the command line, and what it came to.

use linerate_documents::shape::VerificationOutcome;
use linerate_documents::shaper::ShaperOutcome;
use linerate_operate::shaping::document::{self, SetupOutcome};
use linerate_operate::shaping::error::ShapeError;
use linerate_operate::shaping::line::RecordedShaper;
use linerate_operate::shaping::shaped::ShaperControl;
use linerate_operate::shaping::verify::VerifyOutcome;
use linerate_operate::shaping::{SetUpRequest, ShapeEnd, Shaper, script, set_up};
use linerate_report::text::MAX_SUMMARY_LINES;
use linerate_shape::verify::PerDirection;
use linerate_sys::signals::InterruptSignals;

use super::arguments::{ShapeArguments, ShapeOptions};
use super::autorate;
use super::terminal::AtTerminal;
use super::{plan_text, verify};
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Does it.
pub(super) fn run(arguments: &ShapeArguments, device: &str) -> Result<ExitStatus, ShapeError> {
    let request = request(arguments, device)?;
    let how = &arguments.options;
    if how.script {
        console::data(&script(&request)?);
        return Ok(ExitStatus::Success);
    }
    let stop = InterruptSignals::install()?;
    let mut guide = AtTerminal::new(how, stop);
    let end = set_up(&request, stop, &mut guide)?;
    if let Some(settings) = request.autorate.as_ref().filter(|_| guide.has_followed()) {
        autorate::draw(settings, arguments.autorate.plot.as_deref())?;
    }
    Ok(match end {
        ShapeEnd::Done => ExitStatus::Success,
        ShapeEnd::LeftAlone => ExitStatus::Missed,
        ShapeEnd::NotVerified(ended) => exit_of(ended),
        ShapeEnd::NotConfirmed => ExitStatus::RolledBack,
    })
}

/// Exit status after a verification.
const fn exit_of(ended: VerificationOutcome) -> ExitStatus {
    match ended {
        VerificationOutcome::Passed => ExitStatus::Success,
        VerificationOutcome::DelayAboveLimit => ExitStatus::Missed,
        VerificationOutcome::Failed | VerificationOutcome::Inconclusive | VerificationOutcome::NoRate => {
            ExitStatus::RolledBack
        }
        VerificationOutcome::Interrupted => ExitStatus::Partial,
    }
}

fn request(arguments: &ShapeArguments, device: &str) -> Result<SetUpRequest, ShapeError> {
    let how = &arguments.options;
    let given = PerDirection { up: arguments.link.up, down: arguments.link.down };
    Ok(SetUpRequest {
        recorded: RecordedShaper { device: device.to_owned(), line: arguments.link.request()? },
        verify: arguments.verify.settings(),
        find_rate: arguments.verify.find_rate,
        autorate: arguments.autorate.autorate.then(|| arguments.autorate.settings(given)),
        follow: how.follow,
        replace: how.replace,
        confirm_within: how.confirm_within,
        dry_run: how.dry_run,
    })
}

/// Prints what was planned and what has become of it.
pub(super) fn show(shaper: &Shaper<'_>, how: &ShapeOptions, became: SetupOutcome, proof: Option<&VerifyOutcome>) {
    let outcome = became.outcome;
    let document = document::of(shaper.recorded(), shaper.choice(), (shaper.line(), shaper.traffic_classes()), became);
    if how.json {
        print_json(DocumentKind::Shaper, &document);
        return;
    }
    let style = console::data_style();
    match proof {
        Some(proof) if !how.verbose => {
            let head = plan_text::head(shaper.plan(), shaper.line(), style);
            let left = MAX_SUMMARY_LINES - head.lines().count();
            console::data(&format!("{head}{}", verify::summary(proof, left, style)));
            return;
        }
        _ => {}
    }
    if how.verbose {
        console::data(&plan_text::plan(&document, shaper.plan(), shaper.line(), style));
        if outcome == ShaperOutcome::Planned {
            console::data(&plan_text::commands(&document, style));
        }
    } else {
        console::data(&plan_text::summary(&document, shaper.plan(), shaper.line(), style));
    }
    if let Some(proof) = proof {
        console::data(&format!("\n{}", verify::text(proof, style)));
    }
}
