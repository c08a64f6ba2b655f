use linerate_units::{CompactSort, Ratio};

/// Returns for each test of a family if its null hypothesis is rejected, with this error probability for all of them
/// together (Holm 1979). Tests without a probability are not rejected, and do not count.
#[must_use]
pub fn holm(probabilities: &[Option<Ratio>], error: Ratio) -> Vec<bool> {
    let mut order: Vec<(usize, f64)> =
        probabilities.iter().enumerate().filter_map(|(index, p)| Some((index, (*p)?.get()))).collect();
    order.sort_compactly_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut rejected = vec![false; probabilities.len()];
    for (left, (index, p)) in (1_u32..=u32::try_from(order.len()).unwrap_or(u32::MAX)).rev().zip(order) {
        if p > error.get() / f64::from(left) {
            break;
        }
        rejected[index] = true;
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        // Four tests at 5 %: the thresholds are 0.0125, 0.0167, 0.025, 0.05. 0.005 and 0.01 pass; 0.03 does not, and so
        // neither does 0.04.
        let p = |value| Ratio::new(value);
        let five = Ratio::new(0.05).expect("a share");
        assert_eq!(holm(&[p(0.01), p(0.04), p(0.03), p(0.005)], five), [true, false, false, true]);
        assert_eq!(holm(&[p(0.01), None, p(0.04)], five), [true, false, true]);
        assert_eq!(holm(&[], five), Vec::<bool>::new());
    }
}
