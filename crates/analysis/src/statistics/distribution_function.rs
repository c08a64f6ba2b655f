use linerate_units::Ratio;

use super::StatisticalQuantity;
use super::summary::sorted_numbers;

/// Point of an empirical distribution function: this share of the samples is at most this value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistributionStep<Q> {
    /// Sample value.
    pub value: Q,
    /// Share of the samples that do not exceed it.
    pub share: Ratio,
}

/// Empirical distribution function (RFC 2330 §11.3) of samples in any order, thinned to at most `at_most` points.
///
/// The smallest and the largest sample are always included (with two points or more). Nine tenths of the points are
/// spread evenly over the samples, the last tenth over their largest hundredth, so that a chart on a logarithmic scale
/// has a tail. No point is interpolated: each is a sample with its true share. Empty without samples.
#[must_use]
pub fn distribution_function<Q: StatisticalQuantity>(samples: &[Q], at_most: usize) -> Vec<DistributionStep<Q>> {
    let sorted = sorted_numbers(samples);
    let whole = sorted.len();
    let mut ranks = ranks(whole, at_most);
    ranks.dedup();
    let mut steps: Vec<DistributionStep<Q>> = Vec::with_capacity(ranks.len());
    for rank in ranks {
        let value = Q::from_number(sorted[rank]);
        // Of equal samples the last has the share.
        let share = share_of(sorted.partition_point(|other| *other <= sorted[rank]), whole);
        if steps.last().is_none_or(|last| last.value < value) {
            steps.push(DistributionStep { value, share });
        }
    }
    steps
}

/// Indices to keep, in order.
fn ranks(whole: usize, at_most: usize) -> Vec<usize> {
    if whole == 0 || at_most == 0 {
        return Vec::new();
    }
    if whole <= at_most {
        return (0..whole).collect();
    }
    if at_most == 1 {
        return vec![whole - 1];
    }
    let tail_starts = whole - whole.div_ceil(100);
    let tail_points = (at_most / 10).min(whole - 1 - tail_starts);
    let body_points = at_most - tail_points;
    let body_end = if tail_points == 0 { whole - 1 } else { tail_starts };
    let body = (0..body_points).map(|point| body_end * point / (body_points - 1).max(1));
    let tail = (1..=tail_points).map(|point| tail_starts + (whole - 1 - tail_starts) * point / tail_points);
    body.chain(tail).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples are far below 2^53")]
fn share_of(part: usize, whole: usize) -> Ratio {
    Ratio::of(part as f64, whole as f64).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "small counts, exact shares")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_samples_are_all_kept() {
        let steps = distribution_function(&[3.0, 1.0, 2.0, 2.0], 10);
        let pairs: Vec<_> = steps.iter().map(|step| (step.value, step.share.get())).collect();
        assert_eq!(pairs, [(1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]);
        assert!(distribution_function::<f64>(&[], 10).is_empty());
        assert!(distribution_function(&[1.0], 0).is_empty());
    }

    proptest! {
        #[test]
        fn thinned_functions_stay_true(
            samples in proptest::collection::vec(0_u32..500, 1..3000), at_most in 2_usize..300
        ) {
            let samples: Vec<f64> = samples.into_iter().map(f64::from).collect();
            let steps = distribution_function(&samples, at_most);
            prop_assert!(steps.len() <= at_most);
            prop_assert!(steps.windows(2).all(|pair| pair[0].value < pair[1].value && pair[0].share < pair[1].share));
            for step in &steps {
                let below = samples.iter().filter(|sample| **sample <= step.value).count();
                prop_assert_eq!(step.share.get(), below as f64 / samples.len() as f64);
            }
            let (first, last) = (steps.first().expect("not empty"), steps.last().expect("not empty"));
            prop_assert_eq!(last.share.get(), 1.0);
            prop_assert!(samples.iter().all(|sample| *sample >= first.value && *sample <= last.value));
        }

        #[test]
        fn no_gap_in_the_body_is_wide(count in 1000_u32..5000) {
            let samples: Vec<f64> = (0..count).map(f64::from).collect();
            let steps = distribution_function(&samples, 100);
            let widest = steps.windows(2).map(|pair| pair[1].share.get() - pair[0].share.get()).fold(0.0, f64::max);
            prop_assert!(widest < 0.0125, "{}", widest);
        }
    }
}
