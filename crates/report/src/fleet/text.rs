//! Results of a fleet as text for a terminal.

use core::fmt::Write as _;

use linerate_documents::fleet_report::UnusualFigure;
use linerate_documents::fleet_result::{FleetResult, SessionOutcome};
use linerate_units::display::{self, counted};

use super::faults::faults;
use super::matrix::{CellState, FleetMatrix};
use super::unusual;
use crate::escape;
use crate::text::wrap_text;
use crate::throughput_text::TextStyle;

/// Largest number of hosts whose matrix is shown as a list of directions.
const MAX_LISTED_HOSTS: usize = 6;

/// Largest number of figures that are worse than usual in the text.
const MAX_UNUSUAL: usize = 20;

/// Summary: what was measured, the faults, what is worse than usual, and for a small fleet each direction.
#[must_use]
pub fn summary(results: &[FleetResult], unusual: &[UnusualFigure], style: TextStyle) -> String {
    let matrix = FleetMatrix::new(results);
    let width = usize::from(style.width.get());
    let mut text = String::new();
    let mut sentence = |words: &str| {
        for line in wrap_text(&escape::line(words), width) {
            let _ = writeln!(text, "{line}");
        }
    };
    sentence(&extent(&matrix, results));
    let found = faults(&matrix);
    if found.is_empty() && !matrix.directions.is_empty() {
        sentence("Nothing but the paths' own rates limits a direction.");
    }
    for fault in &found {
        sentence(&format!("- {}", fault.sentence(&matrix)));
    }
    if !unusual.is_empty() {
        sentence(&format!("Worse than usual: {}", counted(unusual.len(), "figure")));
    }
    for figure in unusual.iter().take(MAX_UNUSUAL) {
        sentence(&format!("- {}. {}", unusual::sentence(figure), unusual::changes(figure)));
    }
    if unusual.len() > MAX_UNUSUAL {
        sentence(&format!("- and {} more: --format json lists all", unusual.len() - MAX_UNUSUAL));
    }
    if matrix.hosts.len() <= MAX_LISTED_HOSTS {
        for ((from, to), direction) in &matrix.directions {
            if let Some(state) = direction.latest() {
                sentence(&format!("{} -> {}: {}", matrix.hosts[*from], matrix.hosts[*to], short(state)));
            }
        }
    }
    text
}

/// Sentence on the number of results.
pub(super) fn extent(matrix: &FleetMatrix<'_>, results: &[FleetResult]) -> String {
    let hosts = matrix.hosts.len();
    let [failed, skipped] = [SessionOutcome::Failed, SessionOutcome::Skipped]
        .map(|outcome| results.iter().filter(|result| result.outcome == outcome).count());
    let possible = hosts * hosts.saturating_sub(1);
    let foreign = match matrix.foreign {
        0 => String::new(),
        count => format!(" {} left out: another member than the source published them.", counted(count, "result")),
    };
    format!(
        "{} results between {hosts} hosts: {} of {possible} directions measured, {failed} failed, {skipped} skipped.{foreign}",
        matrix.count,
        matrix.directions.values().filter(|one| one.states.iter().any(is_measured)).count(),
    )
}

fn is_measured(state: &CellState<'_>) -> bool {
    state.result.outcome == SessionOutcome::Done
}

/// Goodput and cause, or the reason why there are none.
pub(super) fn short(state: &CellState<'_>) -> String {
    if state.result.outcome != SessionOutcome::Done {
        let reason = state.result.reason.as_deref().unwrap_or("no reason is known");
        return format!("{}: {reason}", state.result.outcome.name());
    }
    let mut parts = Vec::new();
    parts.extend(state.goodput.map(display::rate));
    parts.extend(state.cause.map(|verdict| verdict.cause.title().to_owned()));
    parts.extend(state.round_trip.map(|time| format!("round trip {}", display::duration(time))));
    parts.extend(state.added_delay.map(|time| format!("a load adds {}", display::duration(time))));
    parts.extend(state.loss.map(|loss| format!("loss {}", display::percent(loss))));
    parts.join(", ")
}
