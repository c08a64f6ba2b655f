//! Alerts of a monitor: what has become worse than it usually is, decided against the pair's own history.
//!
//! An alert needs two results in a row, so that one bad moment raises none, and comes once, when it begins.

use core::time::Duration;
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

/// Age of the results by which the usual range is decided: five weeks, so that each hour of the week has some.
pub const REMEMBERED: Duration = Duration::from_secs(35 * 24 * 3600);

/// Figure that is watched.
#[derive(Debug)]
pub(crate) struct WatchedFigure {
    /// Name in results.
    pub(crate) name: &'static str,
    /// Name for people, without its direction.
    pub(crate) title: &'static str,
    /// Direction; `None` for both.
    pub(crate) direction: Option<Direction>,
    /// Side on which it is worse.
    pub(crate) side: WorseSide,
    /// Difference that is too small to be noted.
    unnoticed: f64,
}

impl WatchedFigure {
    const fn goodput(name: &'static str, direction: Direction) -> Self {
        Self { name, title: "goodput", direction: Some(direction), side: WorseSide::Lower, unnoticed: 0.0 }
    }

    const fn loss(name: &'static str, direction: Direction) -> Self {
        Self { name, title: "loss", direction: Some(direction), side: WorseSide::Higher, unnoticed: 1e-3 }
    }

    const fn round_trip(name: &'static str) -> Self {
        Self { name, title: "round trip", direction: None, side: WorseSide::Higher, unnoticed: 1e6 }
    }

    /// True for a value that is worse than usual.
    pub(crate) fn is_worse(&self, value: f64, range: &UsualRange) -> bool {
        range.is_worse(value, self.side) && (value - range.median).abs() >= self.unnoticed
    }

    fn full_title(&self) -> String {
        self.direction.map_or_else(|| self.title.to_owned(), |direction| format!("{} {}", self.title, direction.name()))
    }
}

/// Figures that are watched.
pub(crate) const WATCHED: [WatchedFigure; 5] = [
    WatchedFigure::goodput("goodput_up", Direction::Up),
    WatchedFigure::goodput("goodput_down", Direction::Down),
    WatchedFigure::round_trip("rtt_idle_median"),
    WatchedFigure::loss("loss_up", Direction::Up),
    WatchedFigure::loss("loss_down", Direction::Down),
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
            figures: WATCHED.map(|watched| result.figure(watched.name)),
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
    for (index, watched) in WATCHED.iter().enumerate() {
        if begins(&own, |samples| worse(samples, index, zone).is_some())
            && let Some((value, usual)) = worse(&own, index, zone)
        {
            let [value, median] = [value, usual.median].map(|value| show(watched.name, value));
            let title = watched.full_title();
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
    let watched = &WATCHED[index];
    let values: Vec<TimedValue> =
        samples.iter().filter_map(|sample| Some(TimedValue { at: sample.at, value: sample.figures[index]? })).collect();
    // Neither of the two is among what is usual.
    let [usual @ .., before, last] = values.as_slice() else { return None };
    let range = UsualRange::of(usual, before.at, watched.side, zone)?;
    [before, last].iter().all(|one| watched.is_worse(one.value, &range)).then_some((last.value, range))
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
