use linerate_model::latency_under_load::{Class, Grade};

use super::attribution::Attribution;
use super::carried;
use super::delays::{self, LOADED, worst};
use super::evidence::{Evidence, Measurement};
use super::finding::{Finding, Kind};
use super::table::{self, DelayRow, RateRow};

/// How much a judgement is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The path changed, others were on it, or there is too little to judge by.
    Low,
    /// Short, or measured without the shaper only once.
    Medium,
    /// Measured without the shaper twice, alike, and for at least twenty seconds in each phase.
    High,
}

/// The judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// Whether the shaper does what it should: nothing was found that fails it.
    pub pass: bool,
    /// What was found, what fails first.
    pub findings: Vec<Finding>,
    /// Where what is left comes from.
    pub attribution: Attribution,
    /// The grades without it and with it, by the worse direction and the worse of UDP best effort and TCP in-band; `None`
    /// when neither was measured, or others were on the path.
    pub grades: Option<(Grade, Grade)>,
    /// Delays before and after.
    pub delays: Vec<DelayRow>,
    /// Rates before and after.
    pub rates: Vec<RateRow>,
    /// How much all this is worth.
    pub confidence: Confidence,
}

impl Verification {
    /// Whether this was found.
    #[must_use]
    pub fn found(&self, kind: Kind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }
}

/// Seconds of readings for full confidence.
const ENOUGH_BLOCKS: usize = 20;

/// Judges a shaper by measurements without it and with it.
#[must_use]
pub fn verify(evidence: &Evidence) -> Verification {
    let mut findings = Vec::new();
    carried::check(evidence, &mut findings);
    delays::check(evidence, &mut findings);
    findings.sort_by_key(|finding| !finding.kind.fails());
    let found = |kind| findings.iter().any(|finding: &Finding| finding.kind == kind);
    let pass = !findings.iter().any(|finding| finding.kind.fails());
    let grade = |of: &Measurement| worst(of, &LOADED, Class::counts).map(|worst| Grade::of(worst.graded));
    let grades = grade(&evidence.before).zip(grade(&evidence.after)).filter(|_| !found(Kind::Contaminated));
    let doubtful = [Kind::Contaminated, Kind::Drift, Kind::TooFewReadings].into_iter().any(found);
    let confidence = if doubtful {
        Confidence::Low
    } else if evidence.before_again.is_some() && shortest(evidence) >= ENOUGH_BLOCKS {
        Confidence::High
    } else {
        Confidence::Medium
    };
    Verification {
        pass,
        attribution: Attribution::of(evidence),
        grades,
        delays: table::delays(evidence),
        rates: table::rates(evidence),
        confidence,
        findings,
    }
}

/// The fewest seconds of readings of any class that counts, in any phase under load.
fn shortest(evidence: &Evidence) -> usize {
    let phases = evidence.before.phases.iter().chain(&evidence.after.phases);
    let loaded = phases.filter(|phase| LOADED.contains(&phase.kind));
    let readings = loaded.flat_map(|phase| &phase.classes).filter(|reading| reading.class.counts());
    readings.map(|reading| reading.sample().blocks()).min().unwrap_or(0)
}
