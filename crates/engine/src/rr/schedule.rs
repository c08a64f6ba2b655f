//! Intended times of the requests of a flow.

use core::time::Duration;

use linerate_units::MonotonicTime;

use super::RrOptions;
use crate::probe::stream::PoissonProcess;

/// Intended times of requests.
#[derive(Clone, Debug)]
pub(super) enum RequestSchedule {
    /// Each follows the previous response.
    Closed,
    /// Equal intervals: the times are computed from their number, so that no error adds up.
    Constant {
        /// First time.
        first: MonotonicTime,
        /// Requests per second.
        rate: f64,
        /// Number of the next one.
        number: u64,
    },
    /// Random intervals.
    Poisson {
        /// Source of the intervals.
        process: PoissonProcess,
        /// Next time.
        next: MonotonicTime,
    },
}

impl RequestSchedule {
    /// Schedule of the flow with this number: together the flows have the rate of the test, in turn.
    pub(super) fn new(options: &RrOptions, flow: u32, start: MonotonicTime) -> Self {
        let Some(total) = options.rate else { return Self::Closed };
        let rate = total / f64::from(options.flows);
        let Some(seed) = options.poisson else {
            let first = start + Duration::from_secs_f64(f64::from(flow) / total);
            return Self::Constant { first, rate, number: 0 };
        };
        let mean = Duration::from_secs_f64(1.0 / rate);
        let mut process = PoissonProcess::new(seed.wrapping_add(u64::from(flow)), mean, start);
        let next = start + process.interval();
        Self::Poisson { process, next }
    }

    /// Next intended time; `None` in a closed loop.
    pub(super) fn next(&mut self) -> Option<MonotonicTime> {
        match self {
            Self::Closed => None,
            Self::Constant { first, rate, number } => {
                #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 requests")]
                let after = Duration::from_secs_f64(*number as f64 / *rate);
                *number += 1;
                Some(*first + after)
            }
            Self::Poisson { process, next } => {
                let intended = *next;
                *next = intended + process.interval();
                Some(intended)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeTarget;
    use linerate_model::rr::RrMode;
    use linerate_units::Port;

    fn times(poisson: Option<u64>, flows: u32, count: usize) -> Vec<Vec<u64>> {
        let target = ProbeTarget::new("host", Port::IPERF3);
        let options = RrOptions { rate: Some(1000.0), poisson, flows, ..RrOptions::new(target, RrMode::Tcp) };
        let start = MonotonicTime::from_nanos(0);
        let of = |flow| {
            let mut schedule = RequestSchedule::new(&options, flow, start);
            (0..count).filter_map(|_| schedule.next()).map(MonotonicTime::as_nanos).collect()
        };
        (0..flows).map(of).collect()
    }

    #[test]
    fn flows_take_turns() {
        assert_eq!(times(None, 2, 3), [[0, 2_000_000, 4_000_000], [1_000_000, 3_000_000, 5_000_000]]);
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "times of a few minutes")]
    fn random_intervals_have_the_mean_and_the_spread_of_a_poisson_process() {
        let times = times(Some(7), 1, 100_001).remove(0);
        let gaps: Vec<f64> = times.windows(2).map(|two| (two[1] - two[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "an exponential distribution: {}", variance.sqrt() / mean);
    }
}
