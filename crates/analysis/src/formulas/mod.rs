//! Performance formulas for paths and hosts: one formula per file, each with its source and its published figures as
//! tests.
//!
//! All arguments and results are quantities with units, so that none can be wrong by a factor of eight or of a
//! thousand. Undefined results (a rate over no time, a bound without loss) are `None`.

mod bandwidth_delay_product;
mod bbr;
mod buffer_delay;
mod cubic;
mod e_model;
mod frame_rate;
mod goodput_share;
mod little;
mod loss_response;
mod mathis;
mod memory_pages;
mod pacing;
mod padhye;
mod policer;
mod queueing_delay;
mod segment_size;
mod send_memory;
mod sequence_wrap;
mod serialisation;
mod slow_start;
mod socket_memory;
mod tcp_efficiency;
mod transfer_time;
mod transfer_time_ratio;
mod usable_window;
mod window_rate;
mod window_scale;

pub use bandwidth_delay_product::{bandwidth_delay_product, round_trip_of_product};
pub use bbr::{bbr_goodput, bbr_loss_limit, bbr_window};
pub use buffer_delay::buffer_delay;
pub use cubic::{cubic_loss, cubic_rate};
pub use e_model::{TransmissionRating, VoiceCodec, delay_impairment};
pub use frame_rate::frames_in;
pub use goodput_share::{InternetProtocol, SegmentFraming};
pub use little::{little_in_flight, little_rate, little_round_trip};
pub use loss_response::{loss_for_rate, loss_limited_rate};
pub use mathis::{ACK_PER_SEGMENT, DELAYED_ACKS, mathis_loss, mathis_rate};
pub use memory_pages::{DEFAULT_PAGE_SIZE, PageCount, memory_of_pages, pages_of_memory};
pub use pacing::{PACING_GAIN, PACING_GAIN_SLOW_START, pacing_rate};
pub use padhye::{padhye_loss, padhye_rate};
pub use policer::{policed_goodput, policed_volume};
pub use queueing_delay::{buffer_of_delay, queueing_delay};
pub use send_memory::{SEND_MEMORY_FACTOR, SEND_MEMORY_FACTOR_BBR, segment_memory, send_memory, window_of_send_memory};
pub use sequence_wrap::{SEQUENCE_SPACE, sequence_wrap_time};
pub use serialisation::serialisation_time;
pub use slow_start::{INITIAL_WINDOW, slow_start_rounds, slow_start_time, slow_start_volume};
pub use socket_memory::{SOCKET_BUFFER_FACTOR, socket_memory};
pub use tcp_efficiency::{retransmitted_bytes, sent_bytes, tcp_efficiency};
pub use transfer_time::{transfer_rate, transfer_time, transfer_volume};
pub use transfer_time_ratio::transfer_time_ratio;
pub use usable_window::{receive_buffer_for, usable_window, window_share};
pub use window_rate::{window_for_rate, window_rate};
pub use window_scale::WindowScale;

/// Formula with its documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormulaDescription {
    /// Name of the result.
    pub name: &'static str,
    /// Formula.
    pub text: &'static str,
    /// Source.
    pub citation: &'static str,
    /// Explanation with caveats and corrections of published figures; an empty line between paragraphs.
    pub explanation: &'static str,
}

/// Each formula under its own name.
pub mod entry {
    pub use super::bandwidth_delay_product::FORMULA as BANDWIDTH_DELAY_PRODUCT;
    pub use super::bbr::FORMULA as BBR;
    pub use super::buffer_delay::FORMULA as BUFFER_DELAY;
    pub use super::cubic::FORMULA as CUBIC;
    pub use super::e_model::FORMULA as E_MODEL;
    pub use super::frame_rate::FORMULA as FRAME_RATE;
    pub use super::goodput_share::FORMULA as GOODPUT_SHARE;
    pub use super::little::FORMULA as LITTLE;
    pub use super::loss_response::FORMULA as LOSS_RESPONSE;
    pub use super::mathis::FORMULA as MATHIS;
    pub use super::memory_pages::FORMULA as MEMORY_PAGES;
    pub use super::pacing::FORMULA as PACING;
    pub use super::padhye::FORMULA as PADHYE;
    pub use super::policer::FORMULA as POLICER;
    pub use super::queueing_delay::FORMULA as QUEUEING_DELAY;
    pub use super::segment_size::FORMULA as SEGMENT_SIZE;
    pub use super::send_memory::FORMULA as SEND_MEMORY;
    pub use super::sequence_wrap::FORMULA as SEQUENCE_WRAP;
    pub use super::serialisation::FORMULA as SERIALISATION;
    pub use super::slow_start::FORMULA as SLOW_START;
    pub use super::socket_memory::FORMULA as SOCKET_MEMORY;
    pub use super::tcp_efficiency::FORMULA as TCP_EFFICIENCY;
    pub use super::transfer_time::FORMULA as TRANSFER_TIME;
    pub use super::transfer_time_ratio::FORMULA as TRANSFER_TIME_RATIO;
    pub use super::usable_window::FORMULA as USABLE_WINDOW;
    pub use super::window_rate::FORMULA as WINDOW_RATE;
    pub use super::window_scale::FORMULA as WINDOW_SCALE;
}

/// All formulas of this module.
pub const ALL: [FormulaDescription; 27] = [
    entry::BANDWIDTH_DELAY_PRODUCT,
    entry::WINDOW_RATE,
    entry::USABLE_WINDOW,
    entry::LITTLE,
    entry::LOSS_RESPONSE,
    entry::MATHIS,
    entry::PADHYE,
    entry::CUBIC,
    entry::BBR,
    entry::SLOW_START,
    entry::PACING,
    entry::TRANSFER_TIME,
    entry::SERIALISATION,
    entry::GOODPUT_SHARE,
    entry::FRAME_RATE,
    entry::SEGMENT_SIZE,
    entry::QUEUEING_DELAY,
    entry::POLICER,
    entry::SEQUENCE_WRAP,
    entry::WINDOW_SCALE,
    entry::SEND_MEMORY,
    entry::SOCKET_MEMORY,
    entry::MEMORY_PAGES,
    entry::TRANSFER_TIME_RATIO,
    entry::TCP_EFFICIENCY,
    entry::BUFFER_DELAY,
    entry::E_MODEL,
];

/// Returns true if two figures agree within a relative tolerance.
#[cfg(test)]
fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= expected.abs() * tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formula_is_documented_with_its_source() {
        for formula in ALL {
            assert!(!formula.name.is_empty() && !formula.text.is_empty(), "{formula:?}");
            let paragraphs = formula.explanation.split("\n\n");
            assert!(paragraphs.clone().all(|text| text.ends_with('.') && !text.contains('\n')), "{formula:?}");
            assert!(!formula.explanation.contains("  "), "{formula:?}");
            assert!(formula.citation.contains(char::is_numeric), "{formula:?}: no year, number or section");
        }
        for (index, formula) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != formula.name), "{}", formula.name);
        }
    }

    #[test]
    fn errors_of_published_figures_are_explained() {
        for (formula, figures) in [
            (entry::BANDWIDTH_DELAY_PRODUCT, &["10 683 760", "146 250 000", "6.75 MB", "6.625 MB"][..]),
            (entry::WINDOW_RATE, &["380", "349.5", "2473", "16 × 1024 × 1000", "2415", "2532"]),
            (entry::SOCKET_MEMORY, &["512 GB", "524 GB"]),
            (entry::MEMORY_PAGES, &["64 GiB"]),
            (entry::WINDOW_SCALE, &["8 388 480"]),
            (entry::BUFFER_DELAY, &["117.208", "117.056"]),
            (entry::TCP_EFFICIENCY, &["98.03", "98.04"]),
            (entry::LITTLE, &["139 ms"]),
        ] {
            for figure in figures {
                assert!(formula.explanation.contains(figure), "{}: {figure}", formula.name);
            }
        }
    }
}
