use linerate_analysis::latency_under_load::{LatencyClass, LatencyGrade};
use linerate_model::diagnosis::Confidence;
use linerate_units::CompactSort;

use super::attribution::DelayAttribution;
use super::comparison_table::{self, DelayRow, RateRow};
use super::counter_checks;
use super::delay_checks::{self, LOADED_PHASES, worst};
use super::evidence::{PathMeasurement, ShaperEvidence};
use super::finding::{FindingKind, ShaperFinding};

/// Verdict on a shaper.
#[derive(Clone, Debug, PartialEq)]
pub struct ShaperVerdict {
    /// True when the shaper passes: no finding fails it.
    pub pass: bool,
    /// Findings, failures first.
    pub findings: Vec<ShaperFinding>,
    /// Origin of the remaining delay.
    pub attribution: DelayAttribution,
    /// Grades without and with the shaper, by the worse direction and the worse of UDP best effort and TCP in-band;
    /// `None` when
    /// neither was measured, or the path carried other traffic.
    pub grades: Option<(LatencyGrade, LatencyGrade)>,
    /// Delays before and after.
    pub delays: Vec<DelayRow>,
    /// Rates before and after.
    pub rates: Vec<RateRow>,
    /// Confidence of the verdict.
    pub confidence: Confidence,
}

impl ShaperVerdict {
    /// True when there is a finding of this kind.
    #[must_use]
    pub fn found(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }
}

/// Number of one-second blocks of samples for full confidence.
const MIN_CONFIDENT_BLOCKS: usize = 20;

/// Judges a shaper by measurements without it and with it.
#[must_use]
pub fn verify(evidence: &ShaperEvidence) -> ShaperVerdict {
    let mut findings = Vec::new();
    counter_checks::check(evidence, &mut findings);
    delay_checks::check(evidence, &mut findings);
    findings.sort_compactly_by_key(|finding| !finding.kind.fails());
    let found = |kind| findings.iter().any(|finding: &ShaperFinding| finding.kind == kind);
    let pass = !findings.iter().any(|finding| finding.kind.fails());
    let grade = |of: &PathMeasurement| {
        worst(of, &LOADED_PHASES, LatencyClass::counts_for_verdict).map(|worst| LatencyGrade::of(worst.graded))
    };
    let grades = grade(&evidence.before).zip(grade(&evidence.after)).filter(|_| !found(FindingKind::Contaminated));
    let doubtful = [FindingKind::Contaminated, FindingKind::Drift, FindingKind::TooFewSamples].into_iter().any(found);
    let confidence = if doubtful {
        Confidence::Low
    } else if evidence.before_again.is_some() && min_blocks(evidence) >= MIN_CONFIDENT_BLOCKS {
        Confidence::High
    } else {
        Confidence::Medium
    };
    ShaperVerdict {
        pass,
        attribution: DelayAttribution::of(evidence),
        grades,
        delays: comparison_table::delays(evidence),
        rates: comparison_table::rates(evidence),
        confidence,
        findings,
    }
}

/// Minimum number of one-second blocks over all relevant classes and loaded phases.
fn min_blocks(evidence: &ShaperEvidence) -> usize {
    let phases = evidence.before.phases.iter().chain(&evidence.after.phases);
    let loaded = phases.filter(|phase| LOADED_PHASES.contains(&phase.kind));
    let readings = loaded.flat_map(|phase| &phase.classes).filter(|reading| reading.class.counts_for_verdict());
    readings.map(|reading| reading.sample().blocks()).min().unwrap_or(0)
}
