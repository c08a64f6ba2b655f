//! Alerts of a monitor: what has become worse than it usually is, decided against the pair's own history.
//!
//! An alert needs two results in a row, so that one bad moment raises none, and comes once, when it begins.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_model::diagnosis::Cause;
use linerate_model::direction::Direction;
use linerate_units::WallTime;
use serde::Serialize;

use crate::usual::{TimedValue, UsualRange, WorseSide};

/// Kind of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// No result, twice in a row.
    Unreachable,
    /// A figure is worse than usual.
    WorseThanUsual,
    /// Another cause limits a direction.
    CauseChanged,
}

impl AlertKind {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::WorseThanUsual => "worse_than_usual",
            Self::CauseChanged => "cause_changed",
        }
    }
}

/// Alert on one host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MonitorAlert {
    /// Kind.
    pub kind: AlertKind,
    /// The host.
    pub destination: String,
    /// Sentence for people.
    pub text: String,
}

/// Figures that are watched, with the side on which they are worse and a difference that is too small to be said.
const WATCHED: [(&str, &str, WorseSide, f64); 5] = [
    ("goodput_up", "goodput up", WorseSide::Lower, 0.0),
    ("goodput_down", "goodput down", WorseSide::Lower, 0.0),
    ("rtt_idle_median", "round trip", WorseSide::Higher, 1e6),
    ("loss_up", "loss up", WorseSide::Higher, 1e-3),
    ("loss_down", "loss down", WorseSide::Higher, 1e-3),
];

/// Results of a cause that make it the usual one.
const USUAL_CAUSES: usize = 10;

/// Part of a result that alerts are decided by.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorSample {
    task: String,
    at: WallTime,
    outcome: SessionOutcome,
    reason: Option<String>,
    figures: [Option<f64>; WATCHED.len()],
    causes: [Option<Cause>; 2],
}

impl MonitorSample {
    /// Sample of a result.
    #[must_use]
    pub fn of(result: &FleetResult) -> Self {
        let run = result.run.as_deref();
        Self {
            task: result.task.clone(),
            at: result.at(),
            outcome: result.outcome,
            reason: result.reason.clone(),
            figures: WATCHED.map(|(name, ..)| result.figure(name)),
            causes: Direction::BOTH.map(|direction| Some(run?.first_cause(direction)?.cause)),
        }
    }

    /// Planned time.
    #[must_use]
    pub const fn at(&self) -> WallTime {
        self.at
    }
}

/// Alerts that begin with the last sample of a host; `show` writes a value of a figure for people.
#[must_use]
pub fn alerts(
    destination: &str,
    samples: &[MonitorSample],
    zone: &TimeZone,
    show: impl Fn(&str, f64) -> String,
) -> Vec<MonitorAlert> {
    let Some(last) = samples.last() else { return Vec::new() };
    // Skipped tests say nothing; tests and probes are apart.
    let own: Vec<&MonitorSample> =
        samples.iter().filter(|sample| sample.task == last.task && sample.outcome != SessionOutcome::Skipped).collect();
    if last.outcome == SessionOutcome::Skipped {
        return Vec::new();
    }
    let mut texts: Vec<(AlertKind, String)> = Vec::new();
    if begins(&own, is_unreachable) {
        let reason = last.reason.as_deref().unwrap_or("no reason is known");
        texts.push((AlertKind::Unreachable, format!("no result twice in a row: {reason}")));
    }
    for (index, (name, title, ..)) in WATCHED.iter().enumerate() {
        if begins(&own, |samples| worse(samples, index, zone).is_some())
            && let Some((value, usual)) = worse(&own, index, zone)
        {
            let [value, median] = [value, usual.median].map(|value| show(name, value));
            let (count, basis) = (usual.count, usual.basis.title());
            texts.push((
                AlertKind::WorseThanUsual,
                format!("{title} {value}, twice in a row, usually {median} ({count} results {basis})"),
            ));
        }
    }
    for (index, direction) in Direction::BOTH.into_iter().enumerate() {
        if let Some((before, now)) = changed_cause(&own, index) {
            let (direction, before, now) = (direction.name(), before.title(), now.title());
            texts.push((AlertKind::CauseChanged, format!("{direction} is limited by {now}, before by {before}")));
        }
    }
    let alert = |(kind, text)| MonitorAlert { kind, destination: destination.to_owned(), text };
    texts.into_iter().map(alert).collect()
}

/// True when a condition holds with the last sample, and did not before it.
fn begins(samples: &[&MonitorSample], holds: impl Fn(&[&MonitorSample]) -> bool) -> bool {
    holds(samples) && !holds(&samples[..samples.len() - 1])
}

fn is_unreachable(samples: &[&MonitorSample]) -> bool {
    matches!(samples, [.., before, last] if [before, last].iter().all(|one| one.outcome == SessionOutcome::Failed))
}

/// Last value of a figure, and its usual range, when it and the one before are both worse than that.
fn worse(samples: &[&MonitorSample], index: usize, zone: &TimeZone) -> Option<(f64, UsualRange)> {
    let (_, _, side, unnoticed) = WATCHED[index];
    let values: Vec<TimedValue> =
        samples.iter().filter_map(|sample| Some(TimedValue { at: sample.at, value: sample.figures[index]? })).collect();
    // Neither of the two is among what is usual.
    let [usual @ .., before, last] = values.as_slice() else { return None };
    let range = UsualRange::of(usual, before.at, side, zone)?;
    let is_worse = |value: f64| range.is_worse(value, side) && (value - range.median).abs() >= unnoticed;
    (is_worse(before.value) && is_worse(last.value)).then_some((last.value, range))
}

/// Usual cause of a direction and the present one, when the last two results have another one for the first time.
fn changed_cause(samples: &[&MonitorSample], index: usize) -> Option<(Cause, Cause)> {
    let causes: Vec<Cause> = samples.iter().filter_map(|sample| sample.causes[index]).collect();
    let [earlier @ .., before, last] = causes.as_slice() else { return None };
    let mut counts: BTreeMap<Cause, usize> = BTreeMap::new();
    for cause in earlier.iter().rev().take(USUAL_CAUSES) {
        *counts.entry(*cause).or_default() += 1;
    }
    let (usual, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let is_new = before == last && *last != usual && earlier.last() != Some(last);
    is_new.then_some((usual, *last))
}
