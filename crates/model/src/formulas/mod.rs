//! What a path can give, computed: one formula per file, each with its source and its published figures as tests.
//!
//! All take and give quantities with their units, so that none can be wrong by a factor of eight or of a thousand. What
//! has no answer (a rate over no time, a bound where nothing is lost) is `None`.

mod bandwidth_delay_product;
mod cubic;
mod goodput_share;
mod loss_response;
mod mathis;
mod policer;
mod queueing_delay;
mod serialisation;
mod slow_start;
mod usable_window;
mod window_rate;

pub use bandwidth_delay_product::bandwidth_delay_product;
pub use cubic::cubic_rate;
pub use goodput_share::{Framing, InternetProtocol};
pub use loss_response::loss_limited_rate;
pub use mathis::{ACK_PER_SEGMENT, DELAYED_ACKS, mathis_loss, mathis_rate};
pub use policer::{policed_goodput, policed_volume};
pub use queueing_delay::queueing_delay;
pub use serialisation::serialisation_time;
pub use slow_start::{INITIAL_WINDOW, slow_start_time};
pub use usable_window::{receive_buffer_for, usable_window, window_share};
pub use window_rate::{window_for_rate, window_rate};

/// A formula as documentation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formula {
    /// What it computes.
    pub name: &'static str,
    /// The formula itself.
    pub text: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
}

/// All formulas of this module.
pub const ALL: [Formula; 11] = [
    bandwidth_delay_product::FORMULA,
    window_rate::FORMULA,
    usable_window::FORMULA,
    mathis::FORMULA,
    cubic::FORMULA,
    loss_response::FORMULA,
    serialisation::FORMULA,
    goodput_share::FORMULA,
    queueing_delay::FORMULA,
    policer::FORMULA,
    slow_start::FORMULA,
];

/// Whether two figures agree to `digits` parts of their size.
#[cfg(test)]
fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= expected.abs() * tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formula_says_what_it_is_and_where_it_comes_from() {
        for formula in ALL {
            assert!(!formula.name.is_empty() && !formula.text.is_empty(), "{formula:?}");
            assert!(formula.citation.contains(char::is_numeric), "{formula:?}: no year, number or section");
        }
        for (index, formula) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != formula.name), "{}", formula.name);
        }
    }
}
