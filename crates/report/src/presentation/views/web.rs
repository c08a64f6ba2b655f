//! Tables of a test in a browser.

use linerate_documents::web::{WebDocument, WebPhase};
use linerate_model::diagnosis::DiagnosisVerdict;
use linerate_model::load::PhaseKind;
use linerate_model::summary::DurationDistribution;

use super::load::{add_directions, badge, phase_name};
use crate::presentation::reasons::UnknownReasons;
use crate::presentation::{Presentation, Quantity, ReportTable, TableCell};

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &WebDocument) {
    presentation.badge = document.grade.as_ref().map(|grade| badge(grade.letter));
    let tables = [latency(document), load(document), view(document), limits(document), grade(document)];
    presentation.tables.extend(tables.into_iter().flatten());
    let browser = document.browser.iter().map(|name| format!("Browser, by its own account: {name}."));
    super::add_notes(presentation, &document.notes, &[]);
    presentation.notes.extend(browser);
}

fn loaded(document: &WebDocument) -> impl Iterator<Item = &WebPhase> {
    document.phases.iter().filter(|phase| phase.kind != PhaseKind::Idle)
}

fn key(phase: &WebPhase, rest: &str) -> String {
    format!("phases.{}.{rest}", phase_name(phase.kind))
}

fn latency(document: &WebDocument) -> Option<ReportTable> {
    let columns = ["Load", "min", "median", "p95", "max", "added, median", "added, p95"];
    let mut table = ReportTable::new("latency", "Round trips, as the browser reports them", &columns);
    for phase in &document.phases {
        let Some(rtt) = &phase.browser_rtt else { continue };
        let added = |value: Option<i64>| match value.map(Quantity::signed_nanoseconds) {
            Some(added) => TableCell::Qualified(added, added.signed_text()),
            None => TableCell::Nothing,
        };
        let mut cells: Vec<TableCell> = [rtt.min, rtt.median, rtt.p95, rtt.max]
            .into_iter()
            .map(|time| TableCell::Value(Quantity::duration(time)))
            .collect();
        cells.extend([phase.browser_added_median_ns, phase.browser_added_p95_ns].map(added));
        table.push_row(phase_name(phase.kind), cells);
    }
    table.note = Some("Small requests on a connection of their own, HTTP and the browser's work included.".to_owned());
    table.non_empty()
}

fn load(document: &WebDocument) -> Option<ReportTable> {
    let reasons = UnknownReasons::of(&document.unknown);
    let columns = ["Load", "Goodput", "Data", "Connections"];
    let mut table = ReportTable::new("goodput", "Load, as the server counted it", &columns);
    for phase in loaded(document) {
        let goodput = phase.goodput_bits_per_second.map(Quantity::bits_per_second);
        let bytes = phase.bytes.map(Quantity::bytes);
        table.push_row(
            phase_name(phase.kind),
            vec![
                reasons.cell(&key(phase, "goodput_bits_per_second"), goodput),
                reasons.cell(&key(phase, "bytes"), bytes),
                TableCell::Value(Quantity::count(phase.connections.into())),
            ],
        );
    }
    let control = document.congestion_control.as_deref().unwrap_or("unknown congestion control");
    table.note = Some(format!("TCP, {control} at the server. Goodput without the first second of a phase."));
    table.non_empty()
}

/// State of the server's connections.
fn view(document: &WebDocument) -> Option<ReportTable> {
    let reasons = UnknownReasons::of(&document.unknown);
    let columns = ["Load", "RTT, min", "RTT, median", "RTT, p95", "Congestion window", "Retransmitted", "Share"];
    let mut table = ReportTable::new("server", "Connections, by the server's kernel", &columns);
    for phase in loaded(document) {
        let time = |of: fn(&DurationDistribution) -> core::time::Duration| {
            reasons.cell(&key(phase, "kernel_rtt"), phase.kernel_rtt.as_ref().map(|rtt| Quantity::duration(of(rtt))))
        };
        let window = phase.congestion_window_bytes.map(Quantity::bytes);
        let segments = phase.retransmitted_segments.map(Quantity::segments);
        table.push_row(
            phase_name(phase.kind),
            vec![
                reasons.cell(&key(phase, "kernel_rtt_min_ns"), phase.kernel_rtt_min_ns.map(Quantity::nanoseconds)),
                time(|rtt| rtt.median),
                time(|rtt| rtt.p95),
                reasons.cell(&key(phase, "congestion_window_bytes"), window),
                reasons.cell(&key(phase, "retransmitted_segments"), segments),
                reasons.cell(&key(phase, "retransmitted_share"), phase.retransmitted_share.map(Quantity::share)),
            ],
        );
    }
    table.non_empty()
}

fn limits(document: &WebDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("limits", "Limit, by the server's view alone", &["Load", "Limit", "Confidence"]);
    for phase in loaded(document) {
        for DiagnosisVerdict { confidence, text, .. } in phase.verdicts.iter().take(1) {
            table.push_row(phase_name(phase.kind), vec![TableCell::text(text), TableCell::text(confidence.name())]);
        }
    }
    table.non_empty()
}

fn grade(document: &WebDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("grade", "Grade", &["Grade", "Value"]);
    let Some(grade) = &document.grade else {
        table.push_row("Grade", vec![TableCell::Unknown(document.ungraded_because.clone()?)]);
        return Some(table);
    };
    table.push_row("Overall", vec![TableCell::text(grade.letter.letter())]);
    let directions = [("Upload", grade.up), ("Download", grade.down)];
    add_directions(&mut table, directions, &grade.thresholds);
    Some(table)
}
