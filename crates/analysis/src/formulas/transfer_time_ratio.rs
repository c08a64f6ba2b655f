use core::time::Duration;

use linerate_units::Ratio;

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "transfer time ratio",
    text: "ratio = actual time / ideal time",
    citation: "RFC 6349 §4.1.2",
    explanation: "The actual duration of a transfer relative to that at the highest TCP rate of the path. 1 \
                  is ideal; the RFC's example is 12 s for 8: 1.5. A bad ratio is explained by a low TCP efficiency \
                  (loss), a high buffer delay (a queue), or, where both are good, by a window, a host or the \
                  application.",
};

/// Transfer time ratio. `None` for an ideal time of zero.
#[must_use]
pub fn transfer_time_ratio(actual: Duration, ideal: Duration) -> Option<Ratio> {
    Ratio::of(actual.as_secs_f64(), ideal.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::super::near;
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let (actual, ideal) = (Duration::from_secs(12), Duration::from_secs(8));
        let ratio = transfer_time_ratio(actual, ideal).unwrap_or_default();
        assert!(near(ratio.get(), 1.5, 1e-12));
        assert_eq!(transfer_time_ratio(actual, Duration::ZERO), None);
    }
}
