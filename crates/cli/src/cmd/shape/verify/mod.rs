//! The proof of a shaper: the path is measured without it, with it, and without it again, and a judge compares.
//!
//! | file | what it does |
//! |---|---|
//! | `course` | the order of things, and that the old state is back unless the shaper has passed |
//! | `bench` | one measurement against a linerate server, while the trees are watched |
//! | `trees` | what the queueing disciplines and the processors do meanwhile |
//! | `evidence` | all that as the judge wants it |
//! | `find_rate` | the search for the highest rates that pass |
//! | `document`, `text`, `progress` | what is told of it |

mod arguments;
mod bench;
mod course;
mod document;
mod evidence;
mod find_rate;
mod progress;
#[cfg(test)]
mod tests;
mod text;
mod trees;

use std::time::Duration;

use linerate_engine::load::LoadEvent;
use linerate_engine::probe::Target;
use linerate_model::schema::shape::{ShapeVerification, VerificationOutcome};
use linerate_shape::verify::{Attribution, Both, Difference, Evidence, Family, Kind, Profile, Verification};
use linerate_sys::signals::Interrupts;
use linerate_units::BitRate;

pub(crate) use arguments::VerifyArguments;
pub(crate) use find_rate::{Searched, Step};

pub(crate) use progress::VerifyProgress;
pub(crate) use text::text;

use super::error::ShapeError;
use super::shaped::Shaped;
use crate::exit::Exit;

/// The same evidence gives the same intervals.
const SEED: u64 = 6349;

/// What is measured, and what is asked of the shaper.
#[derive(Clone, Debug)]
pub(crate) struct VerifySettings {
    /// A linerate server behind the line.
    pub(crate) target: Target,
    /// How long the path at rest is probed.
    pub(crate) idle: Duration,
    /// How long each phase under load counts.
    pub(crate) time: Duration,
    /// Whether to leave out the second measurement without the shaper.
    pub(crate) quick: bool,
    /// What is asked.
    pub(crate) profile: Profile,
}

/// Which measurement it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Without the shaper, for what the line carries.
    Capacity,
    /// At rates that are tried.
    Trial,
    /// Without the shaper.
    Without,
    /// With it.
    With,
    /// Without it again.
    WithoutAgain,
}

/// What happens.
pub(crate) enum VerifyEvent<'a> {
    /// A measurement begins.
    Measuring(Part),
    /// Its second pass, over the other version of the Internet Protocol.
    OtherFamily(Family),
    /// What it says of itself.
    Load(&'a LoadEvent),
    /// The shaper was set up, and what stands was read back; these are the differences from the plan.
    Standing(&'a [Difference]),
    /// The old state is back.
    TakenDown,
    /// The search has measured a pair of rates.
    Step(&'a Step),
    /// Something that a person should know.
    Note(&'a str),
}

/// Whoever wants to know what happens.
pub(crate) type Events<'a> = &'a mut dyn FnMut(&VerifyEvent<'_>);

/// What was judged, and the judgement.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    /// The measurements.
    pub(crate) evidence: Evidence,
    /// What follows from them.
    pub(crate) verification: Verification,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct VerifyOutcome {
    /// The far end as the user wrote it, and its port.
    pub(crate) target: Target,
    /// How it ended.
    pub(crate) ended: VerificationOutcome,
    /// Whether the shaper stands now; if not, the old state is back.
    pub(crate) stands: bool,
    /// The judgement; `None` when it did not come to one.
    pub(crate) proof: Option<Proof>,
    /// Why the measurement with the shaper came to no end.
    pub(crate) broke_off: Option<String>,
    /// The search for the highest rates, if there was one.
    pub(crate) search: Option<Searched>,
    /// Versions of the Internet Protocol that were measured, that of the load first.
    pub(crate) families: Vec<Family>,
    /// Congestion control of the load, as both ends confirm it.
    pub(crate) congestion_control: Option<String>,
    /// How long each phase under load was to count.
    pub(crate) load_time: Duration,
    /// How long all of it took.
    pub(crate) lasted: Duration,
    /// What a reader should know.
    pub(crate) notes: Vec<String>,
}

impl Proof {
    /// Where the delay that is left comes from; `None` where load does not pass our trees, so that it says nothing of them.
    pub(crate) fn attribution(&self) -> Option<&Attribution> {
        let passed_by = [Kind::WrongInterface, Kind::NoRedirect, Kind::RedirectTargetDown, Kind::Bypassed];
        let misplaced = passed_by.into_iter().any(|kind| self.verification.found(kind));
        Some(&self.verification.attribution).filter(|_| !misplaced && !self.evidence.after.phases.is_empty())
    }
}

impl VerifyOutcome {
    /// How the command ends.
    pub(crate) const fn exit(&self) -> Exit {
        match self.ended {
            VerificationOutcome::Passed => Exit::Success,
            VerificationOutcome::Failed | VerificationOutcome::NoRate => Exit::RolledBack,
            VerificationOutcome::Interrupted => Exit::Partial,
        }
    }

    /// As `--json` prints it.
    pub(crate) fn document(&self) -> ShapeVerification {
        document::of(self)
    }
}

/// Proves that the shaper does what it should. It stands afterwards when it has passed, and only then; also on an error the
/// old state is back.
pub(crate) fn run(
    shaped: &mut dyn Shaped,
    settings: &VerifySettings,
    stop: Option<Interrupts>,
    events: Events<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    course::prove(shaped, settings, &mut bench::Loads::new(settings.target.clone(), stop), events)
}

/// Looks for the highest rates that pass, sets them, and proves the shaper with them, as [`run`] does.
///
/// A direction of which a rate is `given` is searched up to that rate, and the other one is left alone. Where none is given,
/// both are searched up to what the line carries without a shaper, which is measured first; what rates `shaped` has at the
/// beginning does not matter.
pub(crate) fn run_find_rate(
    shaped: &mut dyn Shaped,
    given: Both<Option<BitRate>>,
    settings: &VerifySettings,
    stop: Option<Interrupts>,
    events: Events<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    find_rate::find(shaped, given, settings, &mut bench::Loads::new(settings.target.clone(), stop), events)
}
