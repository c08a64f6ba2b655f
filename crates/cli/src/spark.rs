//! Samples as bars in a line of text.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

/// Bars of the latest samples that fit into `width`, from zero to the largest of them.
pub(crate) fn spark(samples: &[f64], width: usize, unicode: bool) -> String {
    let shown = &samples[samples.len().saturating_sub(width)..];
    let largest = shown.iter().copied().fold(0.0, f64::max);
    shown.iter().map(|value| bar(*value, largest, unicode)).collect()
}

/// Bar of a value between zero and `largest`.
pub(crate) fn bar(value: f64, largest: f64, unicode: bool) -> char {
    let bars = if unicode { BARS } else { ASCII_BARS };
    bars[level(value, largest)]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the largest is 0 to 1")]
fn level(value: f64, largest: f64) -> usize {
    if largest > 0.0 { ((value / largest * 7.0).round() as usize).min(7) } else { 0 }
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
