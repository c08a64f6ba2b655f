//! The verdict of a verification in a sentence.

use linerate_analysis::latency_under_load::LatencyUplift;
use linerate_analysis::statistics::SignedDifference;
use linerate_documents::shape::VerificationOutcome;
use linerate_model::direction::Direction;
use linerate_shape::verify::rate_search::RateSearchResult;
use linerate_shape::verify::{DelayRow, FindingFigure, FindingKind, ShaperFinding, ShaperVerdict};
use linerate_units::{BitRate, display};

use super::tree_sampler::both;
use super::{VerifyOutcome, find_rate};

/// The verdict in one sentence, or two.
pub(super) fn sentence(outcome: &VerifyOutcome) -> String {
    let after = if outcome.is_active { "It is active." } else { "The previous configuration is restored." };
    let said = match outcome.end {
        VerificationOutcome::Passed => passed(outcome),
        VerificationOutcome::DelayAboveLimit => above_limit(outcome),
        VerificationOutcome::Failed => failed(outcome),
        VerificationOutcome::Inconclusive => inconclusive(outcome),
        VerificationOutcome::NoRate => no_rate(outcome),
        VerificationOutcome::Interrupted => "The verification was interrupted.".to_owned(),
    };
    format!("{said} {after}")
}

fn passed(outcome: &VerifyOutcome) -> String {
    let judged = outcome.result.as_ref().map(|proof| &proof.verification);
    let change = judged.and_then(worst_change).map_or_else(String::new, |(without, with)| {
        format!(": load added up to {} to the delay, and adds {} now", time(without), time(with))
    });
    let grades = judged.and_then(|judged| judged.grades);
    let grades = grades.map_or_else(String::new, |(without, with)| {
        format!(" (grade {}, and {} with it)", without.letter(), with.letter())
    });
    let rates = outcome.search.as_ref().map_or_else(String::new, |searched| {
        let rates = both(|flow| searched.found.of(flow).and_then(highest));
        format!(" The highest rates that pass are {}.", find_rate::words(rates))
    });
    format!("The shaper works{change}{grades}.{rates}")
}

fn above_limit(outcome: &VerifyOutcome) -> String {
    let found = first_finding(outcome, |finding| finding.kind == FindingKind::DelayAboveLimit);
    format!("The shaper works, but misses --max-added. {found} Lower rates may reach it: --find-rate.")
}

fn inconclusive(outcome: &VerifyOutcome) -> String {
    let found = first_finding(outcome, |finding| finding.kind.fails());
    format!("The measurement does not suffice for a verdict. {found} A longer --time gives more samples.")
}

fn first_finding(outcome: &VerifyOutcome, is_wanted: impl Fn(&ShaperFinding) -> bool) -> &str {
    let findings = outcome.result.iter().flat_map(|proof| &proof.verification.findings);
    findings.into_iter().find(|finding| is_wanted(finding)).map_or("", |finding| finding.words.as_str())
}

const fn highest(found: RateSearchResult) -> Option<BitRate> {
    match found {
        RateSearchResult::Highest { rate, .. } => Some(rate),
        RateSearchResult::NothingPassed { .. } => None,
    }
}

fn failed(outcome: &VerifyOutcome) -> String {
    if let Some(reason) = &outcome.abort_reason {
        return format!("The shaper cuts the path off: {reason}.");
    }
    format!("The shaper does not do what it should. {}", first_finding(outcome, |finding| finding.kind.fails()))
}

fn no_rate(outcome: &VerifyOutcome) -> String {
    let Some(searched) = &outcome.search else { return "No rate passed.".to_owned() };
    let said = [(Direction::Up, "up"), (Direction::Down, "down")].into_iter().filter_map(|(flow, word)| match searched
        .found
        .of(flow)
    {
        Some(RateSearchResult::NothingPassed { tried, uplift }) => {
            Some(format!("at {} {word} load still added {}", display::rate(*tried), display::duration(*uplift)))
        }
        _ => None,
    });
    let said = said.collect::<Vec<_>>().join(", and ");
    format!(
        "No rate passed: {said}; the limit is {}. The delay is not from this link's queue, or other traffic loads the \
         link; a lower --goodput-floor allows lower rates.",
        display::duration(searched.largest)
    )
}

/// Delay under load of the worst counted class, without and with the shaper.
fn worst_change(
    judged: &ShaperVerdict,
) -> Option<(SignedDifference<std::time::Duration>, SignedDifference<std::time::Duration>)> {
    let felt = || judged.delays.iter().filter(|row| row.class.counts_for_verdict());
    let worst = |of: fn(&DelayRow) -> Option<LatencyUplift>| {
        felt().filter_map(of).map(|uplift| uplift.p95).max_by_key(|added| added.as_nanos())
    };
    worst(|row| row.before).zip(worst(|row| row.after))
}

fn time(time: SignedDifference<std::time::Duration>) -> String {
    FindingFigure::Time(time).display_text()
}
