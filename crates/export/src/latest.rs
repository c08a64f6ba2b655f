//! Latest result of each pair and task, as metrics for Prometheus.

use std::collections::BTreeMap;

use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_documents::rfc6349::LoadedDirections;

use crate::causes::limiting_causes;
use crate::exposition::Exposition;
use crate::metric::{ExportedFigure, ExportedMetric, exported_figures};

/// Largest number of pairs and tasks with series; a log of more is not one agent's.
const MAX_PAIRS: usize = 10_000;

const OUTCOMES: [SessionOutcome; 3] = [SessionOutcome::Done, SessionOutcome::Failed, SessionOutcome::Skipped];

/// Latest results, without their documents.
#[derive(Debug, Default)]
pub struct LatestResults {
    pairs: BTreeMap<PairKey, LatestResult>,
    /// Results since the start, by outcome.
    counts: [u64; OUTCOMES.len()],
}

/// Names of a series: source, destination, task, type of the test.
type PairKey = [String; 4];

#[derive(Debug)]
struct LatestResult {
    at_unix_ns: u64,
    outcome: SessionOutcome,
    success: Option<MeasuredResult>,
}

/// Last result with figures.
#[derive(Debug)]
struct MeasuredResult {
    at_unix_ns: u64,
    figures: Vec<ExportedFigure>,
    causes: Vec<(&'static str, &'static str)>,
    duration_ns: Option<u64>,
}

impl MeasuredResult {
    fn of(result: &FleetResult) -> Self {
        let causes = limiting_causes(result).into_iter();
        Self {
            at_unix_ns: result.at_unix_ns,
            figures: exported_figures(result),
            causes: causes.map(|(direction, cause)| (direction.name(), cause.name())).collect(),
            duration_ns: result.run.as_ref().map(|run| run.duration_ns),
        }
    }
}

impl LatestResults {
    /// Adds a result. The figures of an earlier one stay when a test failed or was skipped, with their time.
    pub fn add(&mut self, result: &FleetResult) {
        let key = [&result.source, &result.destination, &result.task, result.test.name()].map(str::to_owned);
        if let Some(position) = OUTCOMES.iter().position(|outcome| *outcome == result.outcome) {
            self.counts[position] += 1;
        }
        if self.pairs.len() >= MAX_PAIRS && !self.pairs.contains_key(&key) {
            return;
        }
        let success = (result.outcome == SessionOutcome::Done).then(|| MeasuredResult::of(result));
        let (at_unix_ns, outcome) = (result.at_unix_ns, result.outcome);
        let latest = self.pairs.entry(key).or_insert(LatestResult { at_unix_ns, outcome, success: None });
        if at_unix_ns >= latest.at_unix_ns {
            (latest.at_unix_ns, latest.outcome) = (at_unix_ns, outcome);
        }
        let known = latest.success.as_ref().map(|success| success.at_unix_ns);
        if let Some(success) = success.filter(|success| known.is_none_or(|known| success.at_unix_ns >= known)) {
            latest.success = Some(success);
        }
    }

    /// Adds all families to a page.
    pub fn expose(&self, page: &mut Exposition) {
        self.outcomes(page);
        self.times(page);
        self.causes(page);
        for metric in ExportedMetric::all() {
            self.figures(page, metric);
        }
    }

    fn outcomes(&self, page: &mut Exposition) {
        page.family("linerate_results_total", "Results in the log since the start of the metrics.", "counter");
        for (outcome, count) in OUTCOMES.iter().zip(self.counts) {
            page.series("linerate_results_total", &[("outcome", outcome.name())], count);
        }
        page.family("linerate_last_outcome", "1 for the outcome of the last test, 0 for the others.", "gauge");
        for (key, latest) in &self.pairs {
            for outcome in OUTCOMES {
                let labels = labels(key, &[("outcome", outcome.name())]);
                page.series("linerate_last_outcome", &labels, u8::from(outcome == latest.outcome));
            }
        }
    }

    fn times(&self, page: &mut Exposition) {
        let name = "linerate_last_run_timestamp_seconds";
        page.family(name, "Time of the last test, also of one that failed or was skipped.", "gauge");
        for (key, latest) in &self.pairs {
            page.series(name, &labels(key, &[]), seconds(latest.at_unix_ns));
        }
        let name = "linerate_last_success_timestamp_seconds";
        page.family(name, "Time of the test that measured the values here.", "gauge");
        for (key, success) in self.successes() {
            page.series(name, &labels(key, &[]), seconds(success.at_unix_ns));
        }
        let name = "linerate_run_duration_seconds";
        page.family(name, "Duration of the last run.", "gauge");
        for (key, success) in self.successes() {
            if let Some(duration) = success.duration_ns {
                page.series(name, &labels(key, &[]), seconds(duration));
            }
        }
    }

    fn causes(&self, page: &mut Exposition) {
        page.family("linerate_verdict", "1 for the cause that limited the last test in this direction.", "gauge");
        for (key, success) in self.successes() {
            for (direction, cause) in &success.causes {
                let labels = labels(key, &[("direction", direction), ("verdict", cause)]);
                page.series("linerate_verdict", &labels, 1);
            }
        }
    }

    fn figures(&self, page: &mut Exposition, metric: &'static ExportedMetric) {
        let of_metric = |figure: &&ExportedFigure| figure.metric == metric;
        let mut is_begun = false;
        for (key, success) in self.successes() {
            for figure in success.figures.iter().filter(of_metric) {
                if !is_begun {
                    page.family(metric.prometheus, metric.help, "gauge");
                    is_begun = true;
                }
                let labels = labels(
                    key,
                    &[("direction", figure.direction.map_or("", LoadedDirections::name)), ("figure", &figure.figure)],
                );
                page.series(metric.prometheus, &labels, figure.value);
            }
        }
    }

    fn successes(&self) -> impl Iterator<Item = (&PairKey, &MeasuredResult)> {
        self.pairs.iter().filter_map(|(key, latest)| Some((key, latest.success.as_ref()?)))
    }
}

fn labels<'a>(key: &'a PairKey, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let [source, destination, task, test] = key;
    let mut labels = vec![
        ("source", source.as_str()),
        ("destination", destination.as_str()),
        ("task", task.as_str()),
        ("test", test.as_str()),
    ];
    labels.extend_from_slice(more);
    labels
}

/// Seconds with all digits: a number of this size has no nanoseconds as a floating-point one.
fn seconds(nanoseconds: u64) -> String {
    let (whole, part) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    format!("{whole}.{part:09}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
