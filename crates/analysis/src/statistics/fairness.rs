use linerate_units::{BitRate, Ratio};

/// Jain's fairness index, `(Σx)² / (n Σx²)` (Jain, Chiu and Hawe 1984, DEC-TR-301): 1 when all flows have the same
/// rate, `1 / n` when one has everything. `None` without flows, and when all rates are zero.
#[must_use]
pub fn jain(rates: &[BitRate]) -> Option<Ratio> {
    // Shares of the largest, so that squares of large rates do not lose digits.
    let largest = rates.iter().max()?.bits_per_second();
    let shares = || rates.iter().map(|rate| rate.bits_per_second() / largest);
    let (sum, squares) = (shares().sum::<f64>(), shares().map(|share| share * share).sum::<f64>());
    #[expect(clippy::cast_precision_loss, reason = "counts of flows are far below 2^53")]
    let count = rates.len() as f64;
    Ratio::of(sum * sum, count * squares)
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small counts")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(rates: &[f64]) -> Option<f64> {
        let rates: Vec<_> = rates.iter().copied().map(BitRate::from_bits_per_second).collect();
        jain(&rates).map(Ratio::get)
    }

    #[test]
    fn shares_of_users() {
        // When k of n users share evenly and the others have nothing, the index is k / n. 130² / (3 × 5900) = 0.9548.
        assert_eq!(index(&[1e6, 1e6, 1e6, 0.0]), Some(0.75));
        assert!(index(&[50.0, 30.0, 50.0]).is_some_and(|value| (value - 0.9548).abs() < 1e-4));
        assert_eq!(index(&[]), None);
        assert_eq!(index(&[0.0, 0.0]), None);
    }

    proptest! {
        #[test]
        fn bounds_and_scale(rates in proptest::collection::vec(1.0..1e11_f64, 1..64), factor in 0.001..1e3_f64) {
            let value = index(&rates).expect("something flows");
            prop_assert!(value <= 1.0 + 1e-12 && value >= 1.0 / rates.len() as f64 - 1e-12);
            let scaled: Vec<f64> = rates.iter().map(|rate| rate * factor).collect();
            prop_assert!((index(&scaled).expect("something flows") - value).abs() < 1e-9);
        }
    }
}
