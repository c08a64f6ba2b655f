//! Samples as bars in a line of text.

use linerate_report::bars;
use linerate_units::Ratio;

/// Bars of the latest samples that fit into `width`, from zero to the largest of them.
pub(crate) fn spark(samples: &[f64], width: usize, unicode: bool) -> String {
    let shown = &samples[samples.len().saturating_sub(width)..];
    let largest = shown.iter().copied().fold(0.0, f64::max);
    shown.iter().map(|value| bar(*value, largest, unicode)).collect()
}

/// Bar of a value between zero and `largest`.
pub(crate) fn bar(value: f64, largest: f64, unicode: bool) -> char {
    bars::bar(Ratio::of(value, largest).unwrap_or_default(), unicode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_go_from_zero_to_the_largest() {
        assert_eq!(spark(&[0.0, 7.0, 14.0], 10, true), "▁▅█");
        assert_eq!(spark(&[9.0, 7.0, 14.0], 2, false), "=#");
        assert_eq!(spark(&[0.0, 0.0], 8, false), "__");
        assert_eq!(spark(&[], 8, true), "");
    }
}
