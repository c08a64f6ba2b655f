//! The proof of a shaper: the path is measured without it, with it, and without it again, and a judge compares.
//!
//! | file | what it does |
//! |---|---|
//! | `procedure` | the order of things, and that the old state is back unless the shaper has passed |
//! | `bench` | one measurement against a linerate server, while the trees are watched |
//! | `trees` | what the queueing disciplines and the processors do meanwhile |
//! | `evidence` | all that as the judge wants it |
//! | `find_rate` | the search for the highest rates that pass |
//! | `document`, `sentence` | what is told of it |

mod document;
mod evidence;
pub mod find_rate;
mod measurement;
mod procedure;
mod sentence;
#[cfg(test)]
mod tests;
mod tree_sampler;

use linerate_model::address_family::AddressFamily;
use std::time::Duration;

use linerate_documents::shape::{ShapeVerification, VerificationOutcome};
use linerate_engine::load::LoadEvent;
use linerate_engine::probe::ProbeTarget;
use linerate_shape::verify::{
    DelayAttribution, FindingKind, PerDirection, ReadBackDifference, ShaperEvidence, ShaperRequirements, ShaperVerdict,
};
use linerate_sys::signals::InterruptSignals;
use linerate_units::BitRate;

pub use evidence::family_title;
pub use find_rate::{RateSearchRecord, RateTrial};

use super::error::ShapeError;
use super::shaped::ShaperControl;

/// The same evidence gives the same intervals.
const SEED: u64 = 6349;

/// Settings of the measurement, and requirements of the shaper.
#[derive(Clone, Debug)]
pub struct VerifySettings {
    /// A linerate server behind the line.
    pub target: ProbeTarget,
    /// Duration of probing the idle path.
    pub idle: Duration,
    /// Duration of each phase under load.
    pub time: Duration,
    /// Leaves out the second measurement without the shaper.
    pub quick: bool,
    /// Requirements.
    pub profile: ShaperRequirements,
}

/// Measurement of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementPart {
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

/// Event of a verification.
pub enum VerifyEvent<'a> {
    /// A measurement begins.
    Measuring(MeasurementPart),
    /// Its second pass, over the other version of the Internet Protocol.
    OtherFamily(AddressFamily),
    /// Event of the load measurement.
    Load(&'a LoadEvent),
    /// The shaper was set up, and what stands was read back; these are the differences from the plan.
    ReadBack(&'a [ReadBackDifference]),
    /// The old state is back.
    Removed,
    /// The search has measured a pair of rates.
    Trial(&'a RateTrial),
    /// Something that a person should know.
    Note(&'a str),
}

/// Receiver of a verification's events.
pub type VerifyObserver<'a> = &'a mut dyn FnMut(&VerifyEvent<'_>);

/// Evidence and verdict.
#[derive(Clone, Debug)]
pub struct VerificationResult {
    /// The measurements.
    pub evidence: ShaperEvidence,
    /// Verdict.
    pub verification: ShaperVerdict,
}

/// Result of a verification.
#[derive(Clone, Debug)]
pub struct VerifyOutcome {
    /// The far end as the user wrote it, and its port.
    pub target: ProbeTarget,
    /// Outcome.
    pub end: VerificationOutcome,
    /// True when the shaper is active; otherwise the previous configuration is restored.
    pub is_active: bool,
    /// The judgement; `None` when it did not come to one.
    pub result: Option<VerificationResult>,
    /// Reason why the measurement with the shaper came to no end.
    pub abort_reason: Option<String>,
    /// The search for the highest rates, if there was one.
    pub search: Option<RateSearchRecord>,
    /// Versions of the Internet Protocol that were measured, that of the load first.
    pub families: Vec<AddressFamily>,
    /// Congestion control of the load, as both ends confirm it.
    pub congestion_control: Option<String>,
    /// Planned duration of each phase under load.
    pub load_time: Duration,
    /// Duration of the whole verification.
    pub duration: Duration,
    /// Notes shown below the result.
    pub notes: Vec<String>,
}

impl VerificationResult {
    /// Source of the delay that is left; `None` where load does not pass our trees, which it shows nothing of then.
    pub fn attribution(&self) -> Option<&DelayAttribution> {
        let passed_by = [
            FindingKind::WrongInterface,
            FindingKind::NoRedirect,
            FindingKind::RedirectTargetDown,
            FindingKind::Bypassed,
        ];
        let misplaced = passed_by.into_iter().any(|kind| self.verification.found(kind));
        Some(&self.verification.attribution).filter(|_| !misplaced && !self.evidence.after.phases.is_empty())
    }
}

impl VerifyOutcome {
    /// The verdict in one sentence, or two.
    pub fn sentence(&self) -> String {
        sentence::sentence(self)
    }

    /// As `--json` prints it.
    pub fn document(&self) -> ShapeVerification {
        document::of(self)
    }
}

/// Proves that the shaper does what it should. It stands afterwards when it has passed, and only then; also on an error the
/// old state is back.
pub fn run(
    shaped: &mut dyn ShaperControl,
    settings: &VerifySettings,
    stop: Option<InterruptSignals>,
    events: VerifyObserver<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    procedure::prove(shaped, settings, &mut measurement::LoadMeasurer::new(settings.target.clone(), stop), events)
}

/// Looks for the highest rates that pass, sets them, and proves the shaper with them, as [`run`] does.
///
/// A direction of which a rate is `given` is searched up to that rate, and the other one is left alone. Where none is given,
/// both are searched up to what the line carries without a shaper, which is measured first; what rates `shaped` has at the
/// beginning does not matter.
pub fn run_find_rate(
    shaped: &mut dyn ShaperControl,
    given: PerDirection<Option<BitRate>>,
    settings: &VerifySettings,
    stop: Option<InterruptSignals>,
    events: VerifyObserver<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    find_rate::find(shaped, given, settings, &mut measurement::LoadMeasurer::new(settings.target.clone(), stop), events)
}
