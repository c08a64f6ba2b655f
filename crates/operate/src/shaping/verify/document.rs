//! JSON document of a verification.

use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_analysis::latency_under_load::LatencyUplift;
use linerate_analysis::statistics::SampleComparison;
use linerate_documents::run::FigureUnit;
use linerate_documents::shape::{
    AddedDelay, CountedTraffic, FoundRate, MeasuredPhase, MedianDifference, PhaseDelays, PhaseRates, RateSearch,
    SearchStep, ShapeVerification, VerificationFigure, VerificationFinding,
};
use linerate_shape::verify::rate_search::{RateSearchResult, TrialUplift};
use linerate_shape::verify::{
    DelayRow, FigureName, FindingFigure, FindingKind, PhaseMeasurement, RateRow, ShaperFinding,
};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, Ratio};

use super::find_rate::added_of;
use super::sentence::sentence;
use super::{RateSearchRecord, RateTrial, VerificationResult, VerifyOutcome};

/// Builds the document.
pub(super) fn of(outcome: &VerifyOutcome) -> ShapeVerification {
    let proof = outcome.result.as_ref();
    let judged = proof.map(|proof| &proof.verification);
    let grades = judged.and_then(|judged| judged.grades);
    ShapeVerification {
        host: outcome.target.host.clone(),
        port: outcome.target.port.get(),
        families: outcome.families.clone(),
        duration_ns: nanoseconds(outcome.duration),
        load_time_ns: nanoseconds(outcome.load_time),
        congestion_control: outcome.congestion_control.clone(),
        outcome: outcome.end,
        sentence: sentence(outcome),
        is_active: outcome.is_active,
        confidence: judged.map(|judged| judged.confidence),
        grade_without: grades.map(|(without, _)| without),
        grade_with: grades.map(|(_, with)| with),
        delays: judged.map(|judged| judged.delays.iter().map(delays).collect()).unwrap_or_default(),
        rates: judged.map(|judged| judged.rates.iter().map(rates).collect()).unwrap_or_default(),
        findings: judged.map(|judged| judged.findings.iter().map(finding).collect()).unwrap_or_default(),
        attribution: proof.and_then(VerificationResult::attribution).cloned(),
        differences: proof.map(|proof| proof.evidence.differences.clone()).unwrap_or_default(),
        measured_again: proof.is_some_and(|proof| proof.evidence.before_again.is_some()),
        drift: proof.and_then(drift),
        abort_reason: outcome.abort_reason.clone(),
        phases: proof.map(|proof| proof.evidence.after.phases.iter().map(phase).collect()).unwrap_or_default(),
        search: outcome.search.as_ref().map(search),
        notes: outcome.notes.clone(),
    }
}

fn drift(proof: &VerificationResult) -> Option<bool> {
    proof.evidence.before_again.is_some().then(|| proof.verification.found(FindingKind::Drift))
}

fn delays(row: &DelayRow) -> PhaseDelays {
    PhaseDelays {
        phase: row.phase,
        class: row.class,
        family: row.family,
        without: row.before.as_ref().map(added),
        with: row.after.as_ref().map(added),
        grade_without: row.grades.map(|(without, _)| without),
        grade_with: row.grades.map(|(_, with)| with),
        median: row.median.as_ref().map(median),
    }
}

fn added(uplift: &LatencyUplift) -> AddedDelay {
    AddedDelay {
        median_ns: uplift.median.as_nanos(),
        mean_ns: uplift.mean.as_nanos(),
        p90_ns: uplift.p90.as_nanos(),
        p95_ns: uplift.p95.as_nanos(),
    }
}

fn median(of: &SampleComparison<Duration>) -> MedianDifference {
    MedianDifference {
        without_ns: nanoseconds(of.before),
        with_ns: nanoseconds(of.after),
        difference_ns: of.difference.as_nanos(),
        low_ns: of.interval.map(|(low, _)| low.as_nanos()),
        high_ns: of.interval.map(|(_, high)| high.as_nanos()),
        confidence: of.confidence.get(),
        verdict: of.verdict,
    }
}

fn rates(row: &RateRow) -> PhaseRates {
    PhaseRates {
        phase: row.phase,
        direction: row.direction,
        without_bits_per_second: bits(row.before),
        with_bits_per_second: bits(row.after),
        set_bits_per_second: bits(row.set),
        realised: row.realised.map(Ratio::get),
    }
}

fn bits(rate: Option<BitRate>) -> Option<f64> {
    rate.map(BitRate::bits_per_second)
}

fn finding(finding: &ShaperFinding) -> VerificationFinding {
    VerificationFinding {
        kind: finding.kind,
        fails: finding.kind.fails(),
        direction: finding.direction,
        text: finding.words.clone(),
        figures: finding.figures.iter().map(|(name, value)| figure(*name, value)).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 nanoseconds, which are 104 days, or packets")]
fn figure(name: FigureName, figure: &FindingFigure) -> VerificationFigure {
    let (value, unit) = match figure {
        FindingFigure::Time(time) => (time.as_nanos() as f64, FigureUnit::Nanoseconds),
        FindingFigure::Rate(rate) => (rate.bits_per_second(), FigureUnit::BitsPerSecond),
        FindingFigure::Share(share) => (share.get(), FigureUnit::Share),
        FindingFigure::Size(size) => (size.as_f64(), FigureUnit::Bytes),
        FindingFigure::Packets(count) => (count.get() as f64, FigureUnit::Packets),
    };
    VerificationFigure { name, value, unit }
}

fn phase(phase: &PhaseMeasurement) -> MeasuredPhase {
    let counted = |flow| {
        let tree = (*phase.tree.of(flow)).as_ref();
        CountedTraffic {
            interface_bytes: phase.traffic.of(flow).map(|traffic| traffic.counted.get()),
            tree_bytes: tree.map(|tree| tree.bytes.get()),
            tree_packets: tree.map(|tree| tree.packets.get()),
            dropped: tree.map(|tree| tree.drops.get()),
            marked: tree.map(|tree| tree.marks.get()),
            largest_backlog_bytes: tree.and_then(|tree| tree.largest_backlog).map(ByteCount::get),
        }
    };
    MeasuredPhase {
        phase: phase.kind,
        up: counted(Direction::Up),
        down: counted(Direction::Down),
        busiest_processor: phase.processor.map(Ratio::get),
    }
}

fn search(searched: &RateSearchRecord) -> RateSearch {
    RateSearch {
        capacity_up_bits_per_second: bits(searched.capacity.up),
        capacity_down_bits_per_second: bits(searched.capacity.down),
        capacity_measured: searched.measured,
        largest_added_ns: nanoseconds(searched.largest),
        steps: searched.steps.iter().map(step).collect(),
        up: searched.found.up.as_ref().map(found),
        down: searched.found.down.as_ref().map(found),
    }
}

fn step(step: &RateTrial) -> SearchStep {
    SearchStep {
        up_bits_per_second: bits(step.rates.up),
        down_bits_per_second: bits(step.rates.down),
        one_way: matches!(step.added, TrialUplift::OneWay(_)),
        added_up_ns: nanoseconds(added_of(&step.added, Direction::Up)),
        added_down_ns: nanoseconds(added_of(&step.added, Direction::Down)),
        goodput_up_bits_per_second: bits(step.goodput.up),
        goodput_down_bits_per_second: bits(step.goodput.down),
        good_up: step.good.up,
        good_down: step.good.down,
    }
}

fn found(found: &RateSearchResult) -> FoundRate {
    match found {
        RateSearchResult::Highest { rate, share } => {
            FoundRate { good: true, bits_per_second: rate.bits_per_second(), share: Some(share.get()) }
        }
        RateSearchResult::NothingPassed { tried, .. } => {
            FoundRate { good: false, bits_per_second: tried.bits_per_second(), share: None }
        }
    }
}
