//! What one class of probes saw in one phase.

use core::time::Duration;

use linerate_model::schema::load::{ClassName, ProbeClass};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::throughput::{Direction, TimeDistribution};
use linerate_model::statistics::Summary;

use super::evidence::{ClassReadings, Fate, Reading, Window};

/// Steps of the distribution function, where there are enough readings.
const STEPS: usize = 100;

/// What the idle phase says of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rest {
    pub(super) summary: Option<Summary<Duration>>,
    /// Smallest one-way time up, with the difference of the clocks in it.
    up: Option<i64>,
    /// The same, down.
    down: Option<i64>,
}

impl Rest {
    /// Of the readings of the idle phase.
    pub(super) fn of(readings: &[Reading]) -> Self {
        Self {
            summary: Summary::of(&round_trips(readings)),
            up: readings.iter().filter_map(|reading| reading.up).min(),
            down: readings.iter().filter_map(|reading| reading.down).min(),
        }
    }

    /// Above the smallest of the idle phase; clocks that drift apart make it no less than nothing.
    pub(super) fn delay_up(&self, reading: &Reading) -> Option<Duration> {
        above(reading.up?, self.up?)
    }

    /// The same, down.
    pub(super) fn delay_down(&self, reading: &Reading) -> Option<Duration> {
        above(reading.down?, self.down?)
    }
}

fn above(time: i64, least: i64) -> Option<Duration> {
    let difference = time.checked_sub(least)?;
    Some(Duration::from_nanos(u64::try_from(difference).unwrap_or(0)))
}

/// Round trips of the probes that came back.
pub(super) fn round_trips(readings: &[Reading]) -> Vec<Duration> {
    readings.iter().filter_map(Reading::round_trip).collect()
}

/// The class in this window. `None` when it sent nothing then.
pub(super) fn class(all: &ClassReadings, window: Window, rest: &Rest, is_idle: bool) -> Option<ProbeClass> {
    let readings = all.within(window);
    if readings.is_empty() {
        return None;
    }
    let times = round_trips(&readings);
    let summary = Summary::of(&times);
    let uplift = |of: fn(&Summary<Duration>) -> Duration| {
        let (load, idle) = (summary.as_ref()?, rest.summary.as_ref()?);
        let number = |time: Duration| i64::try_from(time.as_nanos()).ok();
        number(of(load))?.checked_sub(number(idle.median)?).filter(|_| !is_idle)
    };
    let one_way = |of: fn(&Rest, &Reading) -> Option<Duration>| {
        let delays: Vec<Duration> = readings.iter().filter_map(|reading| of(rest, reading)).collect();
        Summary::of(&delays).as_ref().map(TimeDistribution::from)
    };
    let losses = all.counts_losses.then(|| Losses::of(&readings));
    Some(ProbeClass {
        class: all.class,
        sent: sent(all, &readings),
        lost: losses.map(|losses| losses.all),
        lost_up: losses.and_then(Losses::up),
        lost_down: losses.and_then(Losses::down),
        rtt: summary.as_ref().map(Into::into),
        percentiles: summary.as_ref().map(Into::into),
        cdf_ns: distribution_function(&times),
        up: one_way(Rest::delay_up),
        down: one_way(Rest::delay_down),
        uplift_median_ns: uplift(|summary| summary.median),
        uplift_p95_ns: uplift(|summary| summary.p95),
        ipdv_mean_ns: variation(&times).map(nanoseconds),
    })
}

/// The kernel's readings are not sent; of what goes over connections only the answered counts.
fn sent(all: &ClassReadings, readings: &[Reading]) -> Option<u64> {
    match all.class {
        ClassName::TcpInfo => None,
        _ if all.counts_losses => Some(readings.len() as u64),
        _ => Some(readings.iter().filter(|reading| reading.round_trip().is_some()).count() as u64),
    }
}

/// Probes without an answer.
#[derive(Clone, Copy)]
struct Losses {
    all: u64,
    known_up: u64,
    known_down: u64,
}

impl Losses {
    fn of(readings: &[Reading]) -> Self {
        let count = |wanted: fn(&Fate) -> bool| readings.iter().filter(|reading| wanted(&reading.fate)).count() as u64;
        Self {
            all: count(|fate| matches!(fate, Fate::Lost(_))),
            known_up: count(|fate| *fate == Fate::Lost(Some(Direction::Up))),
            known_down: count(|fate| *fate == Fate::Lost(Some(Direction::Down))),
        }
    }

    /// Only where it is known of each.
    fn up(self) -> Option<u64> {
        (self.known_up + self.known_down == self.all).then_some(self.known_up)
    }

    fn down(self) -> Option<u64> {
        (self.known_up + self.known_down == self.all).then_some(self.known_down)
    }
}

/// Readings at equal steps of share, the first the smallest, the last the largest.
fn distribution_function(times: &[Duration]) -> Vec<u64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else { return Vec::new() };
    let steps = last.min(STEPS);
    (0..=steps).map(|step| nanoseconds(sorted[(last * step).checked_div(steps).unwrap_or(0)])).collect()
}

/// The mean of the absolute differences of neighbours.
fn variation(times: &[Duration]) -> Option<Duration> {
    let differences: Vec<Duration> = times.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
    Summary::of(&differences).map(|summary| summary.mean)
}

#[cfg(test)]
mod tests {
    use linerate_units::MonotonicTime;
    use proptest::prelude::*;

    use super::*;

    const fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    fn reading(sent: u64, round_trip: Option<u64>) -> Reading {
        let fate =
            round_trip.map_or(Fate::Lost(Some(Direction::Up)), |time| Fate::Answered(Duration::from_millis(time)));
        Reading { sent: at(sent), fate, up: round_trip.map(|time| time.cast_signed() * 1_000_000 - 77), down: Some(3) }
    }

    fn class_of(readings: &[Reading]) -> ClassReadings {
        ClassReadings { class: ClassName::UdpBestEffort, readings: readings.to_vec(), counts_losses: true }
    }

    #[test]
    fn only_the_window_counts() {
        let idle: Vec<Reading> = (0..20).map(|number| reading(number * 50, Some(20))).collect();
        let loaded = (0..40).map(|number| reading(1000 + number * 50, (number % 10 != 9).then_some(120)));
        let all: Vec<Reading> = idle.iter().copied().chain(loaded).collect();
        let rest = Rest::of(&idle);
        let class = class(&class_of(&all), Window { from: at(2000), to: at(3000) }, &rest, false).expect("readings");
        assert_eq!((class.sent, class.lost, class.lost_up, class.lost_down), (Some(20), Some(2), Some(2), Some(0)));
        let rtt = class.rtt.expect("round trips");
        assert_eq!((rtt.count, rtt.median_ns), (18, 120_000_000));
        assert_eq!((class.uplift_median_ns, class.uplift_p95_ns), (Some(100_000_000), Some(100_000_000)));
        assert_eq!(class.up.map(|up| up.median_ns), Some(100_000_000));
        assert_eq!(class.down.map(|down| down.max_ns), Some(0));
        assert_eq!(class.ipdv_mean_ns, Some(0));
        assert_eq!(class.cdf_ns.len(), 18);
    }

    #[test]
    fn idle_has_no_uplift_and_nothing_is_nothing() {
        let readings = [reading(0, Some(5)), reading(50, Some(7))];
        let whole = Window { from: at(0), to: at(100) };
        let class_idle = class(&class_of(&readings), whole, &Rest::of(&readings), true).expect("readings");
        assert_eq!((class_idle.uplift_median_ns, class_idle.ipdv_mean_ns), (None, Some(2_000_000)));
        assert_eq!(class(&class_of(&readings), Window { from: at(200), to: at(300) }, &Rest::default(), false), None);
        // Where the far end's count does not tell, the sum is all there is.
        let lost = [Reading { sent: at(0), fate: Fate::Lost(None), up: None, down: None }];
        let class = class(&class_of(&lost), whole, &Rest::default(), false).expect("readings");
        assert_eq!((class.lost, class.lost_up, class.lost_down, class.rtt), (Some(1), None, None, None));
    }

    proptest! {
        #[test]
        fn the_distribution_function_rises_from_the_smallest_to_the_largest(
            times in proptest::collection::vec(0_u64..1_000_000, 1..500)
        ) {
            let readings: Vec<Duration> = times.iter().map(|time| Duration::from_nanos(*time)).collect();
            let steps = distribution_function(&readings);
            prop_assert!(steps.is_sorted());
            prop_assert_eq!(steps.first(), times.iter().min());
            prop_assert_eq!(steps.last(), times.iter().max());
            prop_assert_eq!(steps.len(), times.len().min(101));
        }
    }
}
