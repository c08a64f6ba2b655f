//! Search by measurement for the highest rates that keep the delay low.

use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_analysis::statistics::SignedDifference;
use linerate_documents::shape::VerificationOutcome;
use linerate_model::load::PhaseKind;
use linerate_shape::verify::rate_search::{
    PassingRateSearch, RateSearchLimits, RateSearchResult, RateSearchStep, TrialUplift,
};
use linerate_shape::verify::{PathMeasurement, PerDirection};
use linerate_units::{BitRate, display};

use super::super::error::ShapeError;
use super::super::shaped::ShaperControl;
use super::evidence::{longest_predicted, shaper_rate};
use super::measurement::{HOLD, MeasurementPlan, PathMeasurer, StopReason};
use super::procedure::{cannot_measure, concluded, prove, take_down};
use super::tree_sampler::both;
use super::{MeasurementPart, VerifyEvent, VerifyObserver, VerifyOutcome, VerifySettings};

/// Durations of a trial: short, as the result is verified at the end.
const TRIAL_IDLE_TIME: Duration = Duration::from_secs(3);
const TRIAL_LOAD_TIME: Duration = Duration::from_secs(8);

/// Maximum number of trials, for a path that changes all the time.
const MAX_TRIALS: usize = 40;

/// Rates; `None` in a direction that is not searched.
pub type DirectionRates = PerDirection<Option<BitRate>>;

/// A trial of a pair of rates.
#[derive(Clone, Debug, PartialEq)]
pub struct RateTrial {
    /// Number of the trial, from one.
    pub number: usize,
    /// Rates; `None` in a direction that is not searched.
    pub rates: DirectionRates,
    /// Delay added by load.
    pub added: TrialUplift,
    /// Goodput.
    pub goodput: DirectionRates,
    /// True when the rate passes.
    pub good: PerDirection<Option<bool>>,
}

/// Record of the search.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSearchRecord {
    /// Capacity of the link, as the shaper counts; `None` in a direction that is not searched.
    pub capacity: DirectionRates,
    /// True when the capacity was measured, false when given.
    pub measured: bool,
    /// Largest added delay that passes.
    pub largest: Duration,
    /// Trials in order.
    pub steps: Vec<RateTrial>,
    /// Result; `None` in a direction that is not searched, or after an early end.
    pub found: PerDirection<Option<RateSearchResult>>,
}

/// Searches, and verifies the result.
pub(super) fn find(
    shaped: &mut dyn ShaperControl,
    given: DirectionRates,
    settings: &VerifySettings,
    bench: &mut dyn PathMeasurer,
    events: VerifyObserver<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    let began = bench.now();
    let mut finder = RateFinder { settings, bench, events, outcome: VerifyOutcome::begun(settings) };
    let result = finder.run(shaped, given);
    let RateFinder { bench, events, mut outcome, .. } = finder;
    outcome.duration = bench.now().since(began);
    let rates = match result {
        Ok(Some(rates)) => rates,
        Ok(None) => return concluded(shaped, Ok(()), outcome, events),
        Err(stopped) => return concluded(shaped, Err(stopped), outcome, events),
    };
    // The trial's shaper is removed before other rates are planned.
    if shaped.is_up() {
        take_down(shaped, events)?;
    }
    shaped.set_rates(rates)?;
    let mut notes = std::mem::take(&mut outcome.notes);
    let mut proven = prove(shaped, settings, bench, events)?;
    proven.notes.retain(|note| !notes.contains(note));
    notes.append(&mut proven.notes);
    Ok(VerifyOutcome { search: outcome.search, notes, duration: bench.now().since(began), ..proven })
}

struct RateFinder<'a> {
    settings: &'a VerifySettings,
    bench: &'a mut dyn PathMeasurer,
    events: VerifyObserver<'a>,
    outcome: VerifyOutcome,
}

impl RateFinder<'_> {
    /// Searches the rates; `None` when a direction has none.
    fn run(
        &mut self,
        shaped: &mut dyn ShaperControl,
        given: DirectionRates,
    ) -> Result<Option<DirectionRates>, StopReason> {
        if shaped.is_up() {
            take_down(shaped, self.events)?;
        }
        let measured = given.up.is_none() && given.down.is_none();
        let capacity = if measured { self.capacity(shaped)? } else { given };
        let largest = self.added_delay_limit(shaped, capacity)?;
        let floor = self.settings.profile.goodput_floor;
        let mut search = PassingRateSearch::new(&RateSearchLimits { capacity, largest_uplift: largest, floor });
        self.outcome.search =
            Some(RateSearchRecord { capacity, measured, largest, steps: Vec::new(), found: PerDirection::default() });
        for number in 1..=MAX_TRIALS {
            let rates = match search.next() {
                RateSearchStep::Done(found) => return Ok(self.record_result(found)),
                RateSearchStep::Measure(rates) => rates,
            };
            let step = self.trial(shaped, rates, (number, largest))?;
            search.report(&step.added);
            (self.events)(&VerifyEvent::Trial(&step));
            if let Some(searched) = &mut self.outcome.search {
                searched.steps.push(step);
            }
        }
        let text = format!("the path still varies after {MAX_TRIALS} measurements");
        Err(StopReason::Failed(
            ShapeError::impossible(text).with_advice("Give the rates with `--up RATE --down RATE`."),
        ))
    }

    /// Measures the capacity of the link without a shaper.
    fn capacity(&mut self, shaped: &mut dyn ShaperControl) -> Result<DirectionRates, StopReason> {
        let order = self.order(vec![PhaseKind::Down, PhaseKind::Up]);
        (self.events)(&VerifyEvent::Measuring(MeasurementPart::Capacity));
        let measured = self.bench.measure(shaped, &order, self.events)?;
        self.outcome.take(&measured, self.events);
        let family = measured.families.first().copied().unwrap_or(AddressFamily::Ipv4);
        let goodput = both(|flow| measured.measurement.goodput(flow));
        match (&measured.error, goodput) {
            (None, PerDirection { up: Some(up), down: Some(down) }) => {
                let counted = |payload| Some(shaper_rate(shaped.line(), payload, family));
                Ok(PerDirection { up: counted(up), down: counted(down) })
            }
            (Some(reason), _) => Err(StopReason::Failed(cannot_measure(self.settings, reason))),
            (None, _) => {
                let reason = "the goodput of the load is unknown";
                Err(StopReason::Failed(cannot_measure(self.settings, reason)))
            }
        }
    }

    /// Limit of the added delay: as requested, or that of a slow link's own packets.
    fn added_delay_limit(
        &mut self,
        shaped: &mut dyn ShaperControl,
        capacity: DirectionRates,
    ) -> Result<Duration, StopReason> {
        shaped.set_rates(capacity)?;
        let (asked, own) = (self.settings.profile.largest_uplift, longest_predicted(shaped.plan()));
        if own > asked {
            let text = format!(
                "The serialisation delay of this link adds up to {}: the search allows that instead of {}.",
                display::duration(own),
                display::duration(asked)
            );
            self.outcome.note(&text, self.events);
        }
        Ok(own.max(asked))
    }

    fn order(&self, loads: Vec<PhaseKind>) -> MeasurementPlan {
        let settings = self.settings;
        MeasurementPlan {
            loads,
            idle: settings.idle.min(TRIAL_IDLE_TIME),
            time: settings.time.min(TRIAL_LOAD_TIME),
            other_family: false,
        }
    }

    fn trial(
        &mut self,
        shaped: &mut dyn ShaperControl,
        rates: DirectionRates,
        (number, largest): (usize, Duration),
    ) -> Result<RateTrial, StopReason> {
        shaped.set_rates(rates)?;
        shaped.set_up()?;
        shaped.renew(HOLD)?;
        let load = match (rates.up, rates.down) {
            (Some(_), None) => PhaseKind::Up,
            (None, Some(_)) => PhaseKind::Down,
            _ => PhaseKind::Both,
        };
        (self.events)(&VerifyEvent::Measuring(MeasurementPart::Trial));
        let order = self.order(vec![load]);
        let measured = self.bench.measure(shaped, &order, self.events)?;
        self.outcome.take(&measured, self.events);
        let added =
            added_delays(&measured.measurement, load).filter(|_| measured.error.is_none()).ok_or_else(|| {
                let reason = measured.error.clone().unwrap_or_else(|| "too few probes were answered".to_owned());
                StopReason::Failed(ShapeError::impossible(format!(
                    "cannot measure with the shaper at {}: {reason}",
                    words(rates)
                )))
            })?;
        let phase = measured.measurement.phase(load);
        let goodput = both(|flow| phase.and_then(|phase| *phase.goodput.of(flow)));
        let good = both(|flow| rates.of(flow).map(|_| added_of(&added, flow) <= largest));
        Ok(RateTrial { number, rates, added, goodput, good })
    }

    fn record_result(&mut self, found: PerDirection<Option<RateSearchResult>>) -> Option<DirectionRates> {
        if let Some(searched) = &mut self.outcome.search {
            searched.found = found;
        }
        let failed =
            [found.up, found.down].iter().flatten().any(|one| matches!(one, RateSearchResult::NothingPassed { .. }));
        if failed {
            self.outcome.end = VerificationOutcome::NoRate;
            return None;
        }
        Some(both(|flow| match found.of(flow) {
            Some(RateSearchResult::Highest { rate, .. }) => Some(*rate),
            _ => None,
        }))
    }
}

/// Delay added in a direction; that of the round trip where one-way delays are unknown.
pub const fn added_of(trial: &TrialUplift, flow: Direction) -> Duration {
    match trial {
        TrialUplift::OneWay(added) => *added.of(flow),
        TrialUplift::RoundTrip(added) => *added,
    }
}

/// Formats rates for a sentence.
pub fn words(rates: DirectionRates) -> String {
    let word = |rate: Option<BitRate>, direction: &str| rate.map(|rate| format!("{} {direction}", display::rate(rate)));
    let all: Vec<String> = [word(rates.up, "up"), word(rates.down, "down")].into_iter().flatten().collect();
    all.join(", ")
}

/// Delay that load added to best effort in this phase: per direction where known, else of the round trip; without
/// datagrams, of the load's own connections. `None` when neither was measured.
fn added_delays(measurement: &PathMeasurement, load: PhaseKind) -> Option<TrialUplift> {
    let readings = |class| {
        let of = |kind| {
            let found = |family| measurement.class_delays(kind, class, family);
            found(AddressFamily::Ipv4).or_else(|| found(AddressFamily::Ipv6))
        };
        Some((of(PhaseKind::Idle)?, of(load)?))
    };
    let (rest, loaded) = readings(LatencyClass::UdpBestEffort).or_else(|| readings(LatencyClass::TcpInfo))?;
    if let (Some(rest), Some(loaded)) = (&rest.one_way, &loaded.one_way) {
        let added = |flow| SignedDifference::between(rest.of(flow).median, loaded.of(flow).p95).allow_zero();
        return Some(TrialUplift::OneWay(both(added)));
    }
    let uplift = measurement.uplift(load, loaded.class, loaded.family)?;
    Some(TrialUplift::RoundTrip(uplift.graded()))
}
