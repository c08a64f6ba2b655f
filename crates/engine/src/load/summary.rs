//! Summary of one class of probes in one phase.

use core::time::Duration;
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;

use linerate_analysis::statistics::SampleSummary;
use linerate_model::load::ProbeClass;
use linerate_model::summary::DurationDistribution;
use linerate_units::serde::nanoseconds;

use super::evidence::{ClassSamples, CountingWindow, ProbeFate, ProbeReading};

/// Steps of the distribution function, where there are enough samples.
const STEPS: usize = 100;

/// Idle baseline of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct IdleBaseline {
    pub(super) summary: Option<SampleSummary<Duration>>,
    /// Smallest one-way time up, including the clock offset.
    up: Option<i64>,
    /// The same, down.
    down: Option<i64>,
}

impl IdleBaseline {
    /// Baseline from the samples of the idle phase.
    pub(super) fn of(readings: &[ProbeReading]) -> Self {
        Self {
            summary: SampleSummary::of(&round_trips(readings)),
            up: readings.iter().filter_map(|reading| reading.up).min(),
            down: readings.iter().filter_map(|reading| reading.down).min(),
        }
    }

    /// Delay above the smallest of the idle phase; zero where clocks drift below it.
    pub(super) fn delay_up(&self, reading: &ProbeReading) -> Option<Duration> {
        above(reading.up?, self.up?)
    }

    /// The same, down.
    pub(super) fn delay_down(&self, reading: &ProbeReading) -> Option<Duration> {
        above(reading.down?, self.down?)
    }
}

fn above(time: i64, least: i64) -> Option<Duration> {
    let difference = time.checked_sub(least)?;
    Some(Duration::from_nanos(u64::try_from(difference).unwrap_or(0)))
}

/// Round trips of the answered probes.
pub(super) fn round_trips(readings: &[ProbeReading]) -> Vec<Duration> {
    readings.iter().filter_map(ProbeReading::round_trip).collect()
}

/// Summary of the class within this window. `None` when it sent nothing then.
pub(super) fn class(
    all: &ClassSamples,
    window: CountingWindow,
    rest: &IdleBaseline,
    is_idle: bool,
) -> Option<ProbeClass> {
    let readings = all.within(window);
    if readings.is_empty() {
        return None;
    }
    let times = round_trips(&readings);
    let summary = SampleSummary::of(&times);
    let uplift = |of: fn(&SampleSummary<Duration>) -> Duration| {
        let (load, idle) = (summary.as_ref()?, rest.summary.as_ref()?);
        let number = |time: Duration| i64::try_from(time.as_nanos()).ok();
        number(of(load))?.checked_sub(number(idle.median)?).filter(|_| !is_idle)
    };
    let one_way = |of: fn(&IdleBaseline, &ProbeReading) -> Option<Duration>| {
        let delays: Vec<Duration> = readings.iter().filter_map(|reading| of(rest, reading)).collect();
        SampleSummary::of(&delays).as_ref().map(DurationDistribution::from)
    };
    let losses = all.counts_losses.then(|| LossCounts::of(&readings));
    Some(ProbeClass {
        class: all.class,
        sent: sent(all, &readings),
        lost: losses.map(|losses| losses.all),
        lost_up: losses.and_then(LossCounts::up),
        lost_down: losses.and_then(LossCounts::down),
        rtt: summary.as_ref().map(Into::into),
        percentiles: summary.as_ref().map(Into::into),
        cdf_ns: distribution_function(&times),
        up: one_way(IdleBaseline::delay_up),
        down: one_way(IdleBaseline::delay_down),
        uplift_median_ns: uplift(|summary| summary.median),
        uplift_p95_ns: uplift(|summary| summary.p95),
        ipdv_mean_ns: variation(&times).map(nanoseconds),
    })
}

/// The kernel's samples are not sent; of pings on connections only the answered ones count.
fn sent(all: &ClassSamples, readings: &[ProbeReading]) -> Option<u64> {
    match all.class {
        LatencyClass::TcpInfo => None,
        _ if all.counts_losses => Some(readings.len() as u64),
        _ => Some(readings.iter().filter(|reading| reading.round_trip().is_some()).count() as u64),
    }
}

/// Probes without an answer.
#[derive(Clone, Copy)]
struct LossCounts {
    all: u64,
    known_up: u64,
    known_down: u64,
}

impl LossCounts {
    fn of(readings: &[ProbeReading]) -> Self {
        let count =
            |wanted: fn(&ProbeFate) -> bool| readings.iter().filter(|reading| wanted(&reading.fate)).count() as u64;
        Self {
            all: count(|fate| matches!(fate, ProbeFate::Lost(_))),
            known_up: count(|fate| *fate == ProbeFate::Lost(Some(Direction::Up))),
            known_down: count(|fate| *fate == ProbeFate::Lost(Some(Direction::Down))),
        }
    }

    /// Losses up, when the direction of every loss is known.
    fn up(self) -> Option<u64> {
        (self.known_up + self.known_down == self.all).then_some(self.known_up)
    }

    fn down(self) -> Option<u64> {
        (self.known_up + self.known_down == self.all).then_some(self.known_down)
    }
}

/// Samples at equal quantile steps, from the smallest to the largest.
fn distribution_function(times: &[Duration]) -> Vec<u64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else { return Vec::new() };
    let steps = last.min(STEPS);
    (0..=steps).map(|step| nanoseconds(sorted[(last * step).checked_div(steps).unwrap_or(0)])).collect()
}

/// Mean absolute difference of neighbours.
fn variation(times: &[Duration]) -> Option<Duration> {
    let differences: Vec<Duration> = times.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
    SampleSummary::of(&differences).map(|summary| summary.mean)
}

#[cfg(test)]
mod tests {
    use linerate_units::MonotonicTime;
    use proptest::prelude::*;

    use super::*;

    const fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    fn reading(sent: u64, round_trip: Option<u64>) -> ProbeReading {
        let fate = round_trip
            .map_or(ProbeFate::Lost(Some(Direction::Up)), |time| ProbeFate::Answered(Duration::from_millis(time)));
        ProbeReading {
            sent: at(sent),
            fate,
            up: round_trip.map(|time| time.cast_signed() * 1_000_000 - 77),
            down: Some(3),
        }
    }

    fn class_of(readings: &[ProbeReading]) -> ClassSamples {
        ClassSamples { class: LatencyClass::UdpBestEffort, readings: readings.to_vec(), counts_losses: true }
    }

    #[test]
    fn only_the_window_counts() {
        let idle: Vec<ProbeReading> = (0..20).map(|number| reading(number * 50, Some(20))).collect();
        let loaded = (0..40).map(|number| reading(1000 + number * 50, (number % 10 != 9).then_some(120)));
        let all: Vec<ProbeReading> = idle.iter().copied().chain(loaded).collect();
        let rest = IdleBaseline::of(&idle);
        let class =
            class(&class_of(&all), CountingWindow { from: at(2000), to: at(3000) }, &rest, false).expect("samples");
        assert_eq!((class.sent, class.lost, class.lost_up, class.lost_down), (Some(20), Some(2), Some(2), Some(0)));
        let rtt = class.rtt.expect("round trips");
        assert_eq!((rtt.count, rtt.median), (18, Duration::from_millis(120)));
        assert_eq!((class.uplift_median_ns, class.uplift_p95_ns), (Some(100_000_000), Some(100_000_000)));
        assert_eq!(class.up.map(|up| up.median), Some(Duration::from_millis(100)));
        assert_eq!(class.down.map(|down| down.max), Some(Duration::ZERO));
        assert_eq!(class.ipdv_mean_ns, Some(0));
        assert_eq!(class.cdf_ns.len(), 18);
    }

    #[test]
    fn idle_has_no_uplift_and_no_samples_have_no_summary() {
        let readings = [reading(0, Some(5)), reading(50, Some(7))];
        let whole = CountingWindow { from: at(0), to: at(100) };
        let class_idle = class(&class_of(&readings), whole, &IdleBaseline::of(&readings), true).expect("samples");
        assert_eq!((class_idle.uplift_median_ns, class_idle.ipdv_mean_ns), (None, Some(2_000_000)));
        assert_eq!(
            class(&class_of(&readings), CountingWindow { from: at(200), to: at(300) }, &IdleBaseline::default(), false),
            None
        );
        // Where the far end's count is inconclusive, only the sum is known.
        let lost = [ProbeReading { sent: at(0), fate: ProbeFate::Lost(None), up: None, down: None }];
        let class = class(&class_of(&lost), whole, &IdleBaseline::default(), false).expect("samples");
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
