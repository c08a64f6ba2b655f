//! Tables of a throughput measurement.

use core::time::Duration;

use linerate_documents::throughput::{SenderLimit, StreamResult, ThroughputDocument, ThroughputTest};
use linerate_model::limit::TransferLimit;
use linerate_model::quic::QuicEnd;
use linerate_model::summary::DurationDistribution;
use linerate_units::serde::nanoseconds;
use linerate_units::{Ratio, display};

use crate::presentation::{Presentation, Quantity, ReportTable, TableCell, direction_label};

const SENDER_ONLY: &str = "known only to the sender's kernel; not reported by a stock iperf3 server";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &ThroughputDocument) {
    let tables = [
        runs(document),
        diagnoses(document),
        limits(document),
        streams(document),
        idle(document),
        handshakes(document),
        quic_runs(document),
    ];
    presentation.tables.extend(tables.into_iter().flatten());
    if let Some(quic) = &document.quic {
        presentation.notes.extend(quic.failure.iter().map(|failure| format!("QUIC: {failure}.")));
        presentation.notes.extend(quic.verdicts.iter().map(|verdict| format!("{}.", verdict.text)));
    }
    if !document.peer_is_linerate {
        let note = "The server is not linerate: figures that only linerate reports are unknown.";
        presentation.notes.push(note.to_owned());
    }
    for run in document.runs.iter().filter(|run| run.overlapping_tests.is_some_and(|others| others > 0)) {
        let others = run.overlapping_tests.unwrap_or_default();
        let label = label(run);
        presentation.notes.push(format!("Up to {others} other tests ran on the server at the same time ({label})."));
    }
}

fn label(run: &ThroughputTest) -> String {
    format!("{}, {}", direction_label(run.direction), display::counted(run.streams, "stream"))
}

fn known(value: Option<Quantity>, reason: &str) -> TableCell {
    value.map_or_else(|| TableCell::Unknown(reason.to_owned()), TableCell::Value)
}

fn runs(document: &ThroughputDocument) -> Option<ReportTable> {
    let columns = ["Run", "Goodput", "Retransmitted", "RTT loaded", "p95", "CPU here", "CPU peer", "Limited by"];
    let mut table = ReportTable::new("runs", "Runs", &columns);
    for run in &document.runs {
        let cpu = |percent: Option<f64>| {
            known(percent.map(|percent| Quantity::share(percent / 100.0)), "the end did not report it")
        };
        let limit = run
            .limit
            .map_or_else(|| TableCell::Unknown(SENDER_ONLY.to_owned()), |limit| TableCell::text(verdict_label(&limit)));
        table.push_row(
            label(run),
            vec![
                known(run.bits_per_second.map(Quantity::bits_per_second), "no data arrived"),
                known(run.retransmitted_segments.map(Quantity::segments), SENDER_ONLY),
                known(run.loaded_rtt.map(|rtt| Quantity::nanoseconds(nanoseconds(rtt.median))), SENDER_ONLY),
                known(run.loaded_rtt.map(|rtt| Quantity::nanoseconds(nanoseconds(rtt.p95))), SENDER_ONLY),
                cpu(run.client_cpu_percent),
                cpu(run.server_cpu_percent),
                limit,
            ],
        );
    }
    table.non_empty()
}

/// Display name of the verdict.
pub(crate) fn verdict_label(limit: &SenderLimit) -> &'static str {
    match limit.verdict {
        TransferLimit::Application => "application",
        TransferLimit::Sender => "sending host",
        TransferLimit::Receiver => "receiving host",
        TransferLimit::Network => "network",
    }
}

/// First verdict of each run that has one; the note names the next limit, and what else was observed.
fn diagnoses(document: &ThroughputDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("diagnoses", "Limiting factor", &["Run", "Limit", "Confidence", "Figures"]);
    let mut notes = Vec::new();
    for run in &document.runs {
        let Some(diagnosis) = &run.diagnosis else { continue };
        let Some(first) = diagnosis.verdicts.first() else { continue };
        table.push_row(
            label(run),
            [first.cause.name(), first.confidence.name(), &first.text].map(TableCell::text).into(),
        );
        if let Some(bound) = &diagnosis.next {
            let rate = Quantity::bits_per_second(bound.rate.bits_per_second()).display_text();
            notes.push(format!("{}: the next limit is {}, at {rate}.", label(run), bound.kind.title()));
        }
        notes.extend(diagnosis.notes.iter().map(|note| format!("{}: {note}", label(run))));
    }
    table.note = (!notes.is_empty()).then(|| notes.join(" "));
    table.non_empty()
}

fn limits(document: &ThroughputDocument) -> Option<ReportTable> {
    let columns = ["Run", "Application", "Send buffer", "Receive window", "Network", "CPU sender", "CPU receiver"];
    let mut table = ReportTable::new("limits", "Time by limiting factor", &columns);
    for run in &document.runs {
        let Some(limit) = &run.limit else { continue };
        let share = |share: f64| TableCell::Value(Quantity::share(share));
        let cpu = |busy: Option<f64>| known(busy.map(Quantity::share), "the end did not report it");
        table.push_row(
            label(run),
            vec![
                share(limit.shares.application.get()),
                share(limit.shares.send_buffer.get()),
                share(limit.shares.receive_window.get()),
                share(limit.shares.network.get()),
                cpu(limit.shares.sender_cpu.map(Ratio::get)),
                cpu(limit.shares.receiver_cpu.map(Ratio::get)),
            ],
        );
    }
    table.non_empty()
}

fn streams(document: &ThroughputDocument) -> Option<ReportTable> {
    let columns = ["Stream", "Goodput", "Received", "Retransmitted", "RTT median", "p95", "max", "Limited by"];
    let mut table = ReportTable::new("streams", "Streams", &columns);
    for run in document.runs.iter().filter(|run| run.stream_results.len() > 1) {
        for stream in &run.stream_results {
            table.push_row(format!("{} ({})", stream.id, label(run)), stream_cells(stream));
        }
    }
    table.non_empty()
}

fn stream_cells(stream: &StreamResult) -> Vec<TableCell> {
    let rtt = |value: fn(&DurationDistribution) -> Duration| {
        known(stream.rtt.as_ref().map(value).map(Quantity::duration), SENDER_ONLY)
    };
    vec![
        known(stream.bits_per_second.map(Quantity::bits_per_second), "no data arrived"),
        known(stream.received_bytes.map(Quantity::bytes), "the receiver did not report it"),
        known(stream.retransmitted_segments.map(Quantity::segments), SENDER_ONLY),
        rtt(|rtt| rtt.median),
        rtt(|rtt| rtt.p95),
        rtt(|rtt| rtt.max),
        stream
            .limit
            .map_or_else(|| TableCell::Unknown(SENDER_ONLY.to_owned()), |limit| TableCell::text(verdict_label(&limit))),
    ]
}

fn idle(document: &ThroughputDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("idle_rtt", "Round-trip time without load", &super::path::DISTRIBUTION_COLUMNS);
    if let Some(rtt) = &document.idle_rtt {
        table.push_row("TCP handshake", super::path::distribution(rtt));
    }
    table.non_empty()
}

fn handshakes(document: &ThroughputDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("quic_handshakes", "QUIC handshakes", &["Handshake", "Complete", "First answer"]);
    for handshake in document.quic.iter().flat_map(|quic| &quic.handshakes) {
        let time = |time: Duration| TableCell::Value(Quantity::duration(time));
        table.push_row(handshake.kind.title(), vec![time(handshake.complete), time(handshake.answer)]);
    }
    table.non_empty()
}

fn quic_runs(document: &ThroughputDocument) -> Option<ReportTable> {
    const RECEIVER: &str = "the sender's end did not report it";
    let columns = ["Transfer", "Goodput", "Lost", "At the buffer", "RTT loaded", "Window", "CPU here", "CPU peer"];
    let mut table = ReportTable::new("quic_runs", "Transfers over QUIC", &columns);
    for run in document.quic.iter().flat_map(|quic| &quic.runs) {
        let (sender, receiver) = (run.sender(), run.receiver());
        let streams = display::counted(run.streams, "stream");
        let cpu = |end: &QuicEnd| {
            known(end.processor_share().map(|share| Quantity::share(share.get())), "nothing was measured")
        };
        let goodput = run.rate().map(|rate| Quantity::bits_per_second(rate.bits_per_second()));
        let ending = if run.interrupted { ", cut short" } else { "" };
        table.push_row(
            format!("{}, {streams}{ending}", direction_label(run.direction)),
            vec![
                known(goodput, "nothing was counted"),
                known(sender.loss().map(|loss| Quantity::share(loss.get())), RECEIVER),
                known(receiver.buffer_drops.map(Quantity::packets), "the kernel does not report it"),
                known(sender.rtt.map(|rtt| Quantity::duration(rtt.median)), RECEIVER),
                known(sender.congestion_window_bytes.map(Quantity::bytes), RECEIVER),
                cpu(&run.client),
                cpu(&run.server),
            ],
        );
    }
    table.non_empty()
}
