//! Figures that are worse than usual now, decided as alerts are, and what changed when that began.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use linerate_documents::fleet_report::UnusualFigure;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};

use crate::alerts::{REMEMBERED, WATCHED, WatchedFigure};
use crate::facts::TestFacts;
use crate::usual::{TimedValue, UsualRange, UsualValues};

/// Values in a row that are no worse than usual, after which a figure is as usual again.
const USUAL_AGAIN: usize = 2;

/// Values that are worse than usual until now.
struct Episode {
    /// Index of the first of them.
    first: usize,
    /// Usual range when it began.
    usual: UsualRange,
    /// Values at the end that are no worse than usual.
    usual_again: usize,
}

/// Figures that are worse than usual at the end of results, which are in the order of their times.
#[must_use]
pub fn unusual_figures(results: &[FleetResult], zone: &TimeZone) -> Vec<UnusualFigure> {
    let mut pairs: BTreeMap<[&str; 2], Vec<&FleetResult>> = BTreeMap::new();
    for result in results.iter().filter(|result| result.publisher.is_none()) {
        pairs.entry([&result.source, &result.destination]).or_default().push(result);
    }
    let mut found = Vec::new();
    for pair in pairs.values() {
        let mut tasks: BTreeMap<&str, Vec<&FleetResult>> = BTreeMap::new();
        // A test at the same time explains a result that has a reason.
        for result in pair.iter().filter(|one| one.outcome == SessionOutcome::Done && one.reason.is_none()) {
            tasks.entry(&result.task).or_default().push(result);
        }
        for task in tasks.values() {
            found.extend(WATCHED.iter().filter_map(|watched| unusual(watched, task, pair, zone)));
        }
    }
    found
}

fn unusual(
    watched: &WatchedFigure,
    task: &[&FleetResult],
    pair: &[&FleetResult],
    zone: &TimeZone,
) -> Option<UnusualFigure> {
    let of_figure = |result: &&FleetResult| result.figures.iter().find(|figure| figure.name == watched.name)?.value;
    let measured: Vec<(&FleetResult, TimedValue)> = task
        .iter()
        .filter_map(|result| Some((*result, TimedValue { at: result.at(), value: of_figure(result)? })))
        .collect();
    let values: Vec<TimedValue> = measured.iter().map(|(_, value)| *value).collect();
    let episode = last_episode(&values, watched, zone)?;
    let (first, _) = measured[episode.first];
    let unit = first.figures.iter().find(|figure| figure.name == watched.name)?.unit;
    let mut since: Vec<f64> = values[episode.first..].iter().map(|value| value.value).collect();
    since.sort_by(f64::total_cmp);
    let begin = pair.partition_point(|result| result.at_unix_ns < first.at_unix_ns);
    let before = TestFacts::first_of(&pair[..begin].iter().rev().copied());
    let after = TestFacts::first_of(&pair[begin..].iter().copied());
    Some(UnusualFigure {
        source: first.source.clone(),
        destination: first.destination.clone(),
        task: first.task.clone(),
        figure: watched.name.to_owned(),
        title: watched.title.to_owned(),
        direction: watched.direction,
        unit,
        value: since[since.len() / 2],
        usual: episode.usual.median,
        bound: episode.usual.bound,
        usual_count: episode.usual.count as u64,
        usual_basis: episode.usual.basis,
        since_unix_ns: first.at_unix_ns,
        count: since.len() as u64,
        changes: before.changes_to(&after),
    })
}

/// Values that are worse than usual up to the last one; `None` when it is as usual. It begins where an alert does, and the
/// values in it do not count as usual ones.
fn last_episode(values: &[TimedValue], watched: &WatchedFigure, zone: &TimeZone) -> Option<Episode> {
    let mut usual = UsualValues::new(zone);
    let mut episode: Option<Episode> = None;
    for (index, value) in values.iter().enumerate().skip(1) {
        usual.forget_before(value.at, REMEMBERED);
        if let Some(open) = &mut episode {
            let range = usual.range(value.at, watched.side);
            let is_worse = range.is_some_and(|range| watched.is_worse(value.value, &range));
            open.usual_again = if is_worse { 0 } else { open.usual_again + 1 };
            // Values that are too old to compare with are no longer usual.
            if open.usual_again < USUAL_AGAIN && range.is_some() {
                continue;
            }
            let first = open.first;
            episode = None;
            values[first..index].iter().for_each(|value| usual.add(*value));
            continue;
        }
        let before = values[index - 1];
        match usual.range(before.at, watched.side) {
            Some(range) if [before, *value].iter().all(|one| watched.is_worse(one.value, &range)) => {
                episode = Some(Episode { first: index - 1, usual: range, usual_again: 0 });
            }
            _ => usual.add(before),
        }
    }
    episode
}
