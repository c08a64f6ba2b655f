//! What `--json` prints of a proof.

use std::time::Duration;

use linerate_model::latency_under_load::{Class, Grade, Uplift};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::run::Unit;
use linerate_model::schema::shape::{
    AddedDelay, Attribution, CountedTraffic, Delays, FoundRate, MeasuredPhase, MedianDifference, RateSearch, Rates,
    ReadBackDifference, SearchStep, ShapeVerification, VerificationFigure, VerificationFinding,
};
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::{Comparison, Verdict};
use linerate_model::throughput::Flow;
use linerate_shape::verify::margin::{Found, Trial};
use linerate_shape::verify::{
    self, Confidence, DelayRow, Difference, DifferenceKind, Family, Figure, Finding, Kind, PhaseReading, Place, RateRow,
};
use linerate_units::{BitRate, ByteCount, Ratio};

use super::find_rate::added_of;
use super::{Proof, Searched, Step, VerifyOutcome, text};

/// Everything.
pub(super) fn of(outcome: &VerifyOutcome) -> ShapeVerification {
    let proof = outcome.proof.as_ref();
    let judged = proof.map(|proof| &proof.verification);
    let grades = judged.and_then(|judged| judged.grades);
    ShapeVerification {
        host: outcome.target.host.clone(),
        port: outcome.target.port.get(),
        families: outcome.families.iter().map(|family| family_name(*family).to_owned()).collect(),
        duration_ns: nanoseconds(outcome.lasted),
        load_time_ns: nanoseconds(outcome.load_time),
        congestion_control: outcome.congestion_control.clone(),
        outcome: outcome.ended,
        sentence: text::sentence(outcome),
        stands: outcome.stands,
        confidence: judged.map(|judged| confidence(judged.confidence).to_owned()),
        grade_without: grades.map(|(without, _)| letter(without)),
        grade_with: grades.map(|(_, with)| letter(with)),
        delays: judged.map(|judged| judged.delays.iter().map(delays).collect()).unwrap_or_default(),
        rates: judged.map(|judged| judged.rates.iter().map(rates).collect()).unwrap_or_default(),
        findings: judged.map(|judged| judged.findings.iter().map(finding).collect()).unwrap_or_default(),
        attribution: proof.and_then(Proof::attribution).map(attribution),
        differences: proof.map(|proof| proof.evidence.differences.iter().map(difference).collect()).unwrap_or_default(),
        measured_again: proof.is_some_and(|proof| proof.evidence.before_again.is_some()),
        drift: proof.and_then(drift),
        broke_off: outcome.broke_off.clone(),
        phases: proof.map(|proof| proof.evidence.after.phases.iter().map(phase).collect()).unwrap_or_default(),
        search: outcome.search.as_ref().map(search),
        notes: outcome.notes.clone(),
    }
}

fn drift(proof: &Proof) -> Option<bool> {
    proof.evidence.before_again.is_some().then(|| proof.verification.found(Kind::Drift))
}

fn letter(grade: Grade) -> String {
    grade.letter().to_owned()
}

pub(super) const fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

const fn family_name(family: Family) -> &'static str {
    match family {
        Family::Four => "ipv4",
        Family::Six => "ipv6",
    }
}

const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Icmp => "icmp",
        Class::UdpBestEffort => "udp_best_effort",
        Class::UdpExpedited => "udp_expedited_forwarding",
        Class::TcpInBand => "tcp_in_band",
    }
}

const fn flow(flow: Flow) -> Direction {
    match flow {
        Flow::Up => Direction::Up,
        Flow::Down => Direction::Down,
    }
}

fn delays(row: &DelayRow) -> Delays {
    Delays {
        phase: row.phase,
        class: class_name(row.class).to_owned(),
        family: family_name(row.family).to_owned(),
        without: row.before.as_ref().map(added),
        with: row.after.as_ref().map(added),
        grade_without: row.grades.map(|(without, _)| letter(without)),
        grade_with: row.grades.map(|(_, with)| letter(with)),
        median: row.median.as_ref().map(median),
    }
}

fn added(uplift: &Uplift) -> AddedDelay {
    AddedDelay {
        median_ns: uplift.median.as_nanos(),
        mean_ns: uplift.mean.as_nanos(),
        p90_ns: uplift.p90.as_nanos(),
        p95_ns: uplift.p95.as_nanos(),
    }
}

fn median(of: &Comparison<Duration>) -> MedianDifference {
    MedianDifference {
        without_ns: nanoseconds(of.before),
        with_ns: nanoseconds(of.after),
        difference_ns: of.difference.as_nanos(),
        low_ns: of.interval.map(|(low, _)| low.as_nanos()),
        high_ns: of.interval.map(|(_, high)| high.as_nanos()),
        confidence: of.confidence.get(),
        verdict: match of.verdict {
            Verdict::Equal => "equal",
            Verdict::Different => "different",
            Verdict::NotEnoughData => "not_enough_data",
        }
        .to_owned(),
    }
}

fn rates(row: &RateRow) -> Rates {
    Rates {
        phase: row.phase,
        direction: flow(row.direction),
        without_bits_per_second: bits(row.before),
        with_bits_per_second: bits(row.after),
        set_bits_per_second: bits(row.set),
        realised: row.realised.map(Ratio::get),
    }
}

fn bits(rate: Option<BitRate>) -> Option<f64> {
    rate.map(BitRate::bits_per_second)
}

fn finding(finding: &Finding) -> VerificationFinding {
    VerificationFinding {
        kind: finding.kind.name().to_owned(),
        fails: finding.kind.fails(),
        direction: finding.direction.map(flow),
        text: finding.words.clone(),
        figures: finding.figures.iter().map(|(name, value)| figure(name, value)).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 nanoseconds, which are 104 days, or packets")]
fn figure(name: &str, figure: &Figure) -> VerificationFigure {
    let (value, unit) = match figure {
        Figure::Time(time) => (time.as_nanos() as f64, Unit::Nanoseconds),
        Figure::Rate(rate) => (rate.bits_per_second(), Unit::BitsPerSecond),
        Figure::Share(share) => (share.get(), Unit::Share),
        Figure::Size(size) => (size.as_f64(), Unit::Bytes),
        Figure::Packets(count) => (count.get() as f64, Unit::Packets),
    };
    VerificationFigure { name: name.to_owned(), value, unit }
}

fn attribution(of: &verify::Attribution) -> Attribution {
    Attribution {
        place: match of.place {
            Place::OwnLeaf => "own_leaf",
            Place::Upstream => "upstream",
            Place::Processor => "processor",
            Place::Burst => "burst",
            Place::None => "none",
            Place::Unknown => "unknown",
        }
        .to_owned(),
        direction: of.direction.map(flow),
        confidence: confidence(of.confidence).to_owned(),
        text: of.words.clone(),
    }
}

fn difference(difference: &Difference) -> ReadBackDifference {
    ReadBackDifference {
        kind: match difference.kind {
            DifferenceKind::RedirectMissing => "redirect_missing",
            DifferenceKind::RedirectTargetDown => "redirect_target_down",
            DifferenceKind::Missing => "missing",
            DifferenceKind::OtherKind => "other_kind",
            DifferenceKind::OtherRate => "other_rate",
            DifferenceKind::Other => "other",
        }
        .to_owned(),
        direction: flow(difference.direction),
        text: difference.words.clone(),
    }
}

fn phase(phase: &PhaseReading) -> MeasuredPhase {
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
        up: counted(Flow::Up),
        down: counted(Flow::Down),
        busiest_processor: phase.processor.map(Ratio::get),
    }
}

fn search(searched: &Searched) -> RateSearch {
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

fn step(step: &Step) -> SearchStep {
    SearchStep {
        up_bits_per_second: bits(step.rates.up),
        down_bits_per_second: bits(step.rates.down),
        one_way: matches!(step.added, Trial::OneWay(_)),
        added_up_ns: nanoseconds(added_of(&step.added, Flow::Up)),
        added_down_ns: nanoseconds(added_of(&step.added, Flow::Down)),
        goodput_up_bits_per_second: bits(step.goodput.up),
        goodput_down_bits_per_second: bits(step.goodput.down),
        good_up: step.good.up,
        good_down: step.good.down,
    }
}

fn found(found: &Found) -> FoundRate {
    match found {
        Found::Highest { rate, share } => {
            FoundRate { good: true, bits_per_second: rate.bits_per_second(), share: Some(share.get()) }
        }
        Found::NothingPassed { tried, .. } => {
            FoundRate { good: false, bits_per_second: tried.bits_per_second(), share: None }
        }
    }
}
