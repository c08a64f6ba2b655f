//! The search for the highest rates that keep the delay low, by measurement.

use std::time::Duration;

use linerate_model::latency_under_load::Class;
use linerate_model::schema::load::PhaseKind;
use linerate_model::schema::shape::VerificationOutcome;
use linerate_model::statistics::Signed;
use linerate_model::throughput::Flow;
use linerate_shape::verify::margin::{Found, Limits, Next, Search, Trial};
use linerate_shape::verify::{Both, Family, Measurement};
use linerate_units::{BitRate, display};

use super::super::error::ShapeError;
use super::super::shaped::Shaped;
use super::bench::{Bench, HOLD, Order, Stopped};
use super::course::{cannot_measure, concluded, prove, take_down};
use super::evidence::{as_counted, longest_predicted};
use super::trees::both;
use super::{Events, Part, VerifyEvent, VerifyOutcome, VerifySettings};

/// A trial is short: what it finds is proven at the end.
const IDLE: Duration = Duration::from_secs(3);
const LOAD: Duration = Duration::from_secs(8);

/// The search ends before this by itself; a path that changes all the time must not keep it going.
const MOST_STEPS: usize = 40;

/// `None` in a direction that is not searched.
type Rates = Both<Option<BitRate>>;

/// One pair of rates that was tried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// Which one, from one.
    pub(crate) number: usize,
    /// The rates; `None` in a direction that is not searched.
    pub(crate) rates: Rates,
    /// What load added.
    pub(crate) added: Trial,
    /// What was carried, as payload.
    pub(crate) goodput: Rates,
    /// Whether that is good enough.
    pub(crate) good: Both<Option<bool>>,
}

/// The whole search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Searched {
    /// What the line carries, as the shaper counts; `None` in a direction that is not searched.
    pub(crate) capacity: Rates,
    /// Whether that was measured; else it was given.
    pub(crate) measured: bool,
    /// The largest added delay that is good enough.
    pub(crate) largest: Duration,
    /// In order.
    pub(crate) steps: Vec<Step>,
    /// The result; `None` in a direction that is not searched, or when it came to no end.
    pub(crate) found: Both<Option<Found>>,
}

/// Searches, and proves what was found.
pub(super) fn find(
    shaped: &mut dyn Shaped,
    given: Rates,
    settings: &VerifySettings,
    bench: &mut dyn Bench,
    events: Events<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    let began = bench.now();
    let mut finder = Finder { settings, bench, events, outcome: VerifyOutcome::begun(settings) };
    let result = finder.run(shaped, given);
    let Finder { bench, events, mut outcome, .. } = finder;
    outcome.lasted = bench.now().since(began);
    let rates = match result {
        Ok(Some(rates)) => rates,
        Ok(None) => return concluded(shaped, Ok(()), outcome, events),
        Err(stopped) => return concluded(shaped, Err(stopped), outcome, events),
    };
    // What a trial left standing is taken down with its own rates, before others are planned.
    if shaped.is_up() {
        take_down(shaped, events)?;
    }
    shaped.set_rates(rates)?;
    let mut notes = std::mem::take(&mut outcome.notes);
    let mut proven = prove(shaped, settings, bench, events)?;
    proven.notes.retain(|note| !notes.contains(note));
    notes.append(&mut proven.notes);
    Ok(VerifyOutcome { search: outcome.search, notes, lasted: bench.now().since(began), ..proven })
}

struct Finder<'a> {
    settings: &'a VerifySettings,
    bench: &'a mut dyn Bench,
    events: Events<'a>,
    outcome: VerifyOutcome,
}

impl Finder<'_> {
    /// The rates that were found; `None` when a direction has none.
    fn run(&mut self, shaped: &mut dyn Shaped, given: Rates) -> Result<Option<Rates>, Stopped> {
        if shaped.is_up() {
            take_down(shaped, self.events)?;
        }
        let measured = given.up.is_none() && given.down.is_none();
        let capacity = if measured { self.capacity(shaped)? } else { given };
        let largest = self.largest(shaped, capacity)?;
        let floor = self.settings.profile.goodput_floor;
        let mut search = Search::new(&Limits { capacity, largest_uplift: largest, floor });
        self.outcome.search = Some(Searched { capacity, measured, largest, steps: Vec::new(), found: Both::default() });
        for number in 1..=MOST_STEPS {
            let rates = match search.next() {
                Next::Done(found) => return Ok(self.found(found)),
                Next::Measure(rates) => rates,
            };
            let step = self.trial(shaped, rates, (number, largest))?;
            search.report(&step.added);
            (self.events)(&VerifyEvent::Step(&step));
            if let Some(searched) = &mut self.outcome.search {
                searched.steps.push(step);
            }
        }
        let text = format!("after {MOST_STEPS} measurements the path still answers differently each time");
        Err(Stopped::Failed(ShapeError::unable(text).with_advice("Give a rate: `--up RATE --down RATE`.")))
    }

    /// What the line carries without a shaper.
    fn capacity(&mut self, shaped: &mut dyn Shaped) -> Result<Rates, Stopped> {
        let order = self.order(vec![PhaseKind::Down, PhaseKind::Up]);
        (self.events)(&VerifyEvent::Measuring(Part::Capacity));
        let measured = self.bench.measure(shaped, &order, self.events)?;
        self.outcome.take(&measured, self.events);
        let family = measured.families.first().copied().unwrap_or(Family::Four);
        let goodput = both(|flow| measured.measurement.goodput(flow));
        match (&measured.error, goodput) {
            (None, Both { up: Some(up), down: Some(down) }) => {
                let counted = |payload| Some(as_counted(shaped.line(), payload, family));
                Ok(Both { up: counted(up), down: counted(down) })
            }
            (Some(reason), _) => Err(Stopped::Failed(cannot_measure(self.settings, reason))),
            (None, _) => {
                let reason = "what the load carried is not known";
                Err(Stopped::Failed(cannot_measure(self.settings, reason)))
            }
        }
    }

    /// What may be added: as asked, or what a slow line's own packets take.
    fn largest(&mut self, shaped: &mut dyn Shaped, capacity: Rates) -> Result<Duration, Stopped> {
        shaped.set_rates(capacity)?;
        let (asked, own) = (self.settings.profile.largest_uplift, longest_predicted(shaped.plan()));
        if own > asked {
            let text = format!(
                "A queue of this line's own packets adds up to {}: the search asks for that, not for {}.",
                display::duration(own),
                display::duration(asked)
            );
            self.outcome.note(&text, self.events);
        }
        Ok(own.max(asked))
    }

    fn order(&self, loads: Vec<PhaseKind>) -> Order {
        let settings = self.settings;
        Order { loads, idle: settings.idle.min(IDLE), time: settings.time.min(LOAD), other_family: false }
    }

    fn trial(
        &mut self,
        shaped: &mut dyn Shaped,
        rates: Rates,
        (number, largest): (usize, Duration),
    ) -> Result<Step, Stopped> {
        shaped.set_rates(rates)?;
        shaped.set_up()?;
        shaped.renew(HOLD)?;
        let load = match (rates.up, rates.down) {
            (Some(_), None) => PhaseKind::Up,
            (None, Some(_)) => PhaseKind::Down,
            _ => PhaseKind::Both,
        };
        (self.events)(&VerifyEvent::Measuring(Part::Trial));
        let order = self.order(vec![load]);
        let measured = self.bench.measure(shaped, &order, self.events)?;
        self.outcome.take(&measured, self.events);
        let added = trial_of(&measured.measurement, load).filter(|_| measured.error.is_none()).ok_or_else(|| {
            let reason = measured.error.clone().unwrap_or_else(|| "too few probes came back".to_owned());
            Stopped::Failed(ShapeError::unable(format!("measuring with the shaper at {}: {reason}", words(rates))))
        })?;
        let phase = measured.measurement.phase(load);
        let goodput = both(|flow| phase.and_then(|phase| *phase.goodput.of(flow)));
        let good = both(|flow| rates.of(flow).map(|_| added_of(&added, flow) <= largest));
        Ok(Step { number, rates, added, goodput, good })
    }

    fn found(&mut self, found: Both<Option<Found>>) -> Option<Rates> {
        if let Some(searched) = &mut self.outcome.search {
            searched.found = found;
        }
        let failed = [found.up, found.down].iter().flatten().any(|one| matches!(one, Found::NothingPassed { .. }));
        if failed {
            self.outcome.ended = VerificationOutcome::NoRate;
            return None;
        }
        Some(both(|flow| match found.of(flow) {
            Some(Found::Highest { rate, .. }) => Some(*rate),
            _ => None,
        }))
    }
}

/// What load added in a direction; that of the round trip where the far end tells no more.
pub(super) const fn added_of(trial: &Trial, flow: Flow) -> Duration {
    match trial {
        Trial::OneWay(added) => *added.of(flow),
        Trial::RoundTrip(added) => *added,
    }
}

/// Rates in a sentence.
pub(super) fn words(rates: Rates) -> String {
    let word = |rate: Option<BitRate>, direction: &str| rate.map(|rate| format!("{} {direction}", display::rate(rate)));
    let all: Vec<String> = [word(rates.up, "up"), word(rates.down, "down")].into_iter().flatten().collect();
    all.join(", ")
}

/// What load added to best effort in this phase: of each way where the far end tells it. Where no datagram comes through, to
/// the round trips of the load's connections. `None` when neither was measured.
fn trial_of(measurement: &Measurement, load: PhaseKind) -> Option<Trial> {
    let readings = |class| {
        let of = |kind| {
            let found = |family| measurement.reading(kind, class, family);
            found(Family::Four).or_else(|| found(Family::Six))
        };
        Some((of(PhaseKind::Idle)?, of(load)?))
    };
    let (rest, loaded) = readings(Class::UdpBestEffort).or_else(|| readings(Class::TcpInBand))?;
    if let (Some(rest), Some(loaded)) = (&rest.one_way, &loaded.one_way) {
        let added = |flow| Signed::between(rest.of(flow).median, loaded.of(flow).p95).or_zero();
        return Some(Trial::OneWay(both(added)));
    }
    let uplift = measurement.uplift(load, loaded.class, loaded.family)?;
    Some(Trial::RoundTrip(uplift.graded()))
}
