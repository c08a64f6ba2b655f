//! Tables of the report.

use std::fmt::Write as _;

use super::cell::CellKind;
use super::figures::Figure;
use super::series::{CellOutcome, CellSeries, ContenderSeries};
use super::statistics::MedianEstimate;

/// Formats one row per cell: linerate with its best options against the best of the others, and against the limit.
pub(super) fn summary(cells: &[CellSeries]) -> String {
    let count = |outcome| cells.iter().filter(|cell| cell.outcome() == Some(outcome)).count();
    let mut text = format!(
        "Of {} cells, linerate is ahead of the best of the others in {}, behind in {}; in {} the interval holds 1.\n\n\
         | cell | linerate | best of the others | goodput | processor time | machine's | wait | of the bare loop | |\n\
         |---|---|---|---:|---:|---:|---:|---:|---|\n",
        cells.len(),
        count(CellOutcome::Ahead),
        count(CellOutcome::Behind),
        count(CellOutcome::Equal),
    );
    for cell in cells {
        let (own, peer) = (cell.own(), cell.best_peer());
        let against = |other: Option<&ContenderSeries>, figure| {
            ratio(own.zip(other).and_then(|(own, other)| own.ratio(other, figure)))
        };
        let outcome = match cell.outcome() {
            Some(CellOutcome::Ahead) => "ahead",
            Some(CellOutcome::Behind) => "**behind**",
            Some(CellOutcome::Equal) => "equal",
            None => "–",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {outcome} |",
            cell.cell.title,
            own.map_or("–", |own| own.label.as_str()),
            peer.map_or("–", |peer| peer.label.as_str()),
            against(peer, Figure::Goodput),
            against(peer, Figure::Cpu),
            against(peer, Figure::MachineCpu),
            against(peer, Figure::Wait),
            against(cell.bare(), Figure::Goodput),
        );
    }
    text
}

/// Formats a table of every contender of the transfer cells.
pub(super) fn transfers(cells: &[CellSeries]) -> String {
    let mut text = String::from(
        "| cell | program | goodput | packets/s | loss | jitter | CPU s/Gbit | machine's | waits/s |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for cell in cells.iter().filter(|cell| cell.cell.is_transfer()) {
        for (index, contender) in cell.contenders.iter().enumerate() {
            let of = |kind, form: fn(f64) -> String| figure(contender.median(kind), form);
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                if index == 0 { cell.cell.title.as_str() } else { "" },
                contender.label,
                of(Figure::Goodput, rate),
                of(Figure::PacketRate, |packets| format!("{:.3} M", packets / 1e6)),
                of(Figure::Loss, |loss| format!("{:.3} %", loss * 100.0)),
                of(Figure::Jitter, |jitter| format!("{jitter:.4} ms")),
                of(Figure::Cpu, |seconds| format!("{seconds:.4}")),
                of(Figure::MachineCpu, |seconds| format!("{seconds:.4}")),
                of(Figure::Waits, |waits| format!("{waits:.0}")),
            );
        }
    }
    text
}

/// Formats a table of every contender of the cells that wait for something.
pub(super) fn waits(cells: &[CellSeries]) -> String {
    let mut text = String::from("| wait | program | median |\n|---|---|---:|\n");
    for cell in cells.iter().filter(|cell| !cell.cell.is_transfer()) {
        debug_assert!(!matches!(cell.cell.kind, CellKind::Unlimited | CellKind::Paced), "not a transfer");
        for (index, contender) in cell.contenders.iter().enumerate() {
            let title = if index == 0 { cell.cell.title.as_str() } else { "" };
            let wait = figure(contender.median(Figure::Wait), |time| format!("{time:.1} ms"));
            let _ = writeln!(text, "| {title} | {} | {wait} |", contender.label);
        }
    }
    text
}

/// Formats the list of failed runs; empty without any.
pub(super) fn failures(cells: &[CellSeries]) -> String {
    let failures: Vec<&String> = cells.iter().flat_map(|cell| &cell.failures).collect();
    if failures.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = failures.iter().map(|failure| format!("- {failure}\n")).collect();
    format!("\nFailed runs, excluded from all medians:\n\n{}", lines.concat())
}

/// Returns one line about a cell for the terminal.
pub(super) fn line(cell: &CellSeries) -> String {
    let (kind, _) = cell.deciding();
    let form = |value: f64| match kind {
        Figure::Goodput => rate(value),
        Figure::Wait => format!("{value:.1} ms"),
        _ => format!("{value:.4} s/Gbit"),
    };
    let mut line = format!("{:18}", cell.cell.name);
    for contender in &cell.contenders {
        let _ = write!(line, "  {} {}", contender.label, figure(contender.median(kind), form));
    }
    line + &failures(std::slice::from_ref(cell))
}

/// Formats a figure, or a dash when it is unknown.
fn figure(value: Option<f64>, form: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), form)
}

fn ratio(ratio: Option<MedianEstimate>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |found| format!("{:.2} [{:.2}, {:.2}]", found.median, found.low, found.high))
}

fn rate(bits_per_second: f64) -> String {
    if bits_per_second < 2e9 {
        format!("{:.2} Mbit/s", bits_per_second / 1e6)
    } else {
        format!("{:.2} Gbit/s", bits_per_second / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::program::Dialect;
    use crate::bench::series::tests::series;

    #[test]
    fn wins_and_losses_are_both_named() {
        let programs = |own, peer| [("linerate", Dialect::Iperf3, own), ("iperf3", Dialect::Iperf3, peer)];
        let mut cells = vec![
            series("tcp-p1-up", &programs(20e9, 10e9)),
            series("start-up", &programs(4.0, 2.0)),
            series("tcp-p8-up", &programs(5e9, 5e9)),
        ];
        cells[0].failures.push("tcp-p1-up, iperf3, round 2: no answer".to_owned());
        let text = summary(&cells);
        assert!(
            text.starts_with("Of 3 cells, linerate is ahead of the best of the others in 1, behind in 1; in 1 "),
            "{text}"
        );
        let ahead = "| TCP, -P 1, up | linerate | iperf3 | 2.00 [2.00, 2.00] | – | – | – | – | ahead |";
        let behind = "| start-up (`--version`) | linerate | iperf3 | – | – | – | 2.00 [2.00, 2.00] | – | **behind** |";
        assert!(text.contains(ahead) && text.contains(behind), "{text}");
        assert!(transfers(&cells).contains("| TCP, -P 1, up | linerate | 20.02 Gbit/s | – | – | – | – | – | – |"));
        assert!(waits(&cells).contains("|  | iperf3 | 2.0 ms |"));
        assert!(failures(&cells).contains("- tcp-p1-up, iperf3, round 2: no answer"));
        assert!(line(&cells[0]).contains("linerate 20.02 Gbit/s  iperf3 10.01 Gbit/s"));
    }
}
