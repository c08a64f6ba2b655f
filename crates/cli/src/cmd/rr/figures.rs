//! Figures of requests and responses.

use linerate_documents::rr::RrDocument;
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunFigure};

pub(super) fn all_figures(document: &RrDocument) -> Vec<RunFigure> {
    let mut rate = RunFigure::new(
        "transactions",
        "Transactions",
        FigureUnit::PerSecond,
        // With a schedule it is the schedule's.
        if document.scheduled_per_second.is_some() {
            ImprovementDirection::Neither
        } else {
            ImprovementDirection::Higher
        },
    );
    rate.value = document.transactions_per_second;
    rate.note = Some(document.mode.title().to_owned());
    let mut figures = vec![rate];
    let percentiles = document.latency.map(|latency| latency.percentiles());
    for (index, title) in ["p50", "p90", "p99", "p99.9", "max"].into_iter().enumerate() {
        let name = format!("latency_{}", title.replace('.', "_"));
        let mut figure =
            RunFigure::new(name, format!("Latency, {title}"), FigureUnit::Nanoseconds, ImprovementDirection::Lower);
        figure.value = percentiles.map(|percentiles| number(percentiles[index].1));
        figure.count = document.latency.map(|latency| latency.count);
        figures.push(figure);
    }
    if let Some(lost) = document.lost {
        let sent = document.transactions + lost;
        let mut figure = RunFigure::new("loss", "Requests lost", FigureUnit::Share, ImprovementDirection::Lower);
        figure.value = (sent > 0).then(|| number(lost) / number(sent));
        figures.push(figure);
    }
    for figure in &mut figures {
        if figure.value.is_none() {
            figure.note = Some("no transaction was completed".to_owned());
        }
    }
    figures
}

#[expect(clippy::cast_precision_loss, reason = "counts and times of a measurement stay below 2^53")]
fn number(value: u64) -> f64 {
    value as f64
}
