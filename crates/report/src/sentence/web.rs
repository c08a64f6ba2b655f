//! Verdict on a test in a browser in one sentence.

use core::time::Duration;

use linerate_documents::web::WebDocument;
use linerate_model::direction::Direction;
use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, display};

/// Rates of both directions, then the grade and its basis.
#[must_use]
pub fn sentence(document: &WebDocument) -> String {
    let rate = |kind: PhaseKind| {
        let rate = document.phase(kind)?.goodput_bits_per_second?;
        Some(format!("{} {}", display::rate(BitRate::from_bits_per_second(rate)), kind.name()))
    };
    let rates: Vec<String> = [PhaseKind::Down, PhaseKind::Up].into_iter().filter_map(rate).collect();
    let rates = if rates.is_empty() { "No rate was measured".to_owned() } else { rates.join(", ") };
    match (&document.grade, &document.ungraded_because) {
        (Some(grade), _) => {
            let load = match grade.direction {
                Direction::Up => "upload",
                Direction::Down => "download",
            };
            let added = display::duration(Duration::from_nanos(grade.added_ns));
            format!("{rates}. Grade {}: the {load} adds {added} (95th percentile, browser).", grade.letter)
        }
        (None, Some(reason)) => format!("{rates}. No grade, as {reason}."),
        (None, None) => format!("{rates}."),
    }
}
