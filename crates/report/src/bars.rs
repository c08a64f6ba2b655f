//! Values as bars of eight heights in a line of text.

use linerate_units::Ratio;

const UNICODE_BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

/// Bar of a share of the largest value; more than all of it is the highest bar.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
pub fn bar(share: Ratio, unicode: bool) -> char {
    let bars = if unicode { UNICODE_BARS } else { ASCII_BARS };
    bars[(share.get().min(1.0) * 7.0).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_the_nearest_of_eight() {
        let line = |unicode: bool| -> String {
            let shares = [0.0, 0.07, 0.08, 0.5, 1.0, 9.0].into_iter().filter_map(Ratio::new);
            shares.map(|share| bar(share, unicode)).collect()
        };
        assert_eq!((line(true), line(false)), ("▁▁▂▅██".to_owned(), "__.=##".to_owned()));
    }
}
