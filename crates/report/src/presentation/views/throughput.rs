//! Tables of a throughput measurement.

use linerate_model::schema::throughput::{Limit, Run, StreamResult, ThroughputDocument, TimeDistribution, Verdict};

use crate::presentation::{Cell, Presentation, Quantity, Table, direction};

const SENDER_TELLS: &str = "only the sender's kernel knows it, and a stock iperf3 server does not tell";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &ThroughputDocument) {
    let tables = [runs(document), diagnoses(document), limits(document), streams(document), idle(document)];
    presentation.tables.extend(tables.into_iter().flatten());
    if !document.peer_is_linerate {
        let note = "The server is not a linerate: what only a linerate tells is unknown.";
        presentation.notes.push(note.to_owned());
    }
    for run in document.runs.iter().filter(|run| run.overlapping_tests.is_some_and(|others| others > 0)) {
        let others = run.overlapping_tests.unwrap_or_default();
        let label = label(run);
        presentation.notes.push(format!("Up to {others} other tests ran in the server meanwhile ({label})."));
    }
}

fn label(run: &Run) -> String {
    let noun = if run.streams == 1 { "stream" } else { "streams" };
    format!("{}, {} {noun}", direction(run.direction), run.streams)
}

fn known(value: Option<Quantity>, reason: &str) -> Cell {
    value.map_or_else(|| Cell::Unknown(reason.to_owned()), Cell::Value)
}

fn runs(document: &ThroughputDocument) -> Option<Table> {
    let columns = ["Run", "Goodput", "Retransmitted", "RTT loaded", "p95", "CPU here", "CPU peer", "Limited by"];
    let mut table = Table::new("runs", "Runs", &columns);
    for run in &document.runs {
        let cpu = |percent: Option<f64>| {
            known(percent.map(|percent| Quantity::share(percent / 100.0)), "the end did not report it")
        };
        let limit = run.limit.map_or_else(|| Cell::Unknown(SENDER_TELLS.to_owned()), |limit| Cell::text(word(&limit)));
        table.row(
            label(run),
            vec![
                known(run.bits_per_second.map(Quantity::bits_per_second), "no data arrived"),
                known(run.retransmitted_segments.map(Quantity::segments), SENDER_TELLS),
                known(run.loaded_rtt.map(|rtt| Quantity::nanoseconds(rtt.median_ns)), SENDER_TELLS),
                known(run.loaded_rtt.map(|rtt| Quantity::nanoseconds(rtt.p95_ns)), SENDER_TELLS),
                cpu(run.client_cpu_percent),
                cpu(run.server_cpu_percent),
                limit,
            ],
        );
    }
    table.filled()
}

/// The verdict in a word.
pub(crate) fn word(limit: &Limit) -> &'static str {
    match limit.verdict {
        Verdict::Application => "application",
        Verdict::Sender => "sending host",
        Verdict::Receiver => "receiving host",
        Verdict::Network => "network",
    }
}

/// The first verdict of each run that has one; the note says what would come next.
fn diagnoses(document: &ThroughputDocument) -> Option<Table> {
    let mut table = Table::new("diagnoses", "What limits", &["Run", "Limit", "Confidence", "Figures"]);
    let mut next = Vec::new();
    for run in &document.runs {
        let Some(diagnosis) = &run.diagnosis else { continue };
        let Some(first) = diagnosis.verdicts.first() else { continue };
        table.row(label(run), [&first.cause, &first.confidence, &first.text].map(Cell::text).into());
        if let Some(bound) = &diagnosis.next {
            let rate = Quantity::bits_per_second(bound.bits_per_second).shown();
            next.push(format!("{}: without that cause, {} would come next, at {rate}.", label(run), bound.name));
        }
    }
    table.note = (!next.is_empty()).then(|| next.join(" "));
    table.filled()
}

fn limits(document: &ThroughputDocument) -> Option<Table> {
    let columns = ["Run", "Application", "Send buffer", "Receive window", "Network", "CPU sender", "CPU receiver"];
    let mut table = Table::new("limits", "What the sender waited for", &columns);
    for run in &document.runs {
        let Some(limit) = &run.limit else { continue };
        let share = |share: f64| Cell::Value(Quantity::share(share));
        let cpu = |busy: Option<f64>| known(busy.map(Quantity::share), "the end did not report it");
        table.row(
            label(run),
            vec![
                share(limit.application),
                share(limit.send_buffer),
                share(limit.receive_window),
                share(limit.network),
                cpu(limit.sender_cpu),
                cpu(limit.receiver_cpu),
            ],
        );
    }
    table.filled()
}

fn streams(document: &ThroughputDocument) -> Option<Table> {
    let columns = ["Stream", "Goodput", "Received", "Retransmitted", "RTT median", "p95", "max", "Limited by"];
    let mut table = Table::new("streams", "Streams", &columns);
    for run in document.runs.iter().filter(|run| run.stream_results.len() > 1) {
        for stream in &run.stream_results {
            table.row(format!("{} ({})", stream.id, label(run)), stream_cells(stream));
        }
    }
    table.filled()
}

fn stream_cells(stream: &StreamResult) -> Vec<Cell> {
    let rtt = |value: fn(&TimeDistribution) -> u64| {
        known(stream.rtt.as_ref().map(value).map(Quantity::nanoseconds), SENDER_TELLS)
    };
    vec![
        known(stream.bits_per_second.map(Quantity::bits_per_second), "no data arrived"),
        known(stream.received_bytes.map(Quantity::bytes), "the receiver did not report it"),
        known(stream.retransmitted_segments.map(Quantity::segments), SENDER_TELLS),
        rtt(|rtt| rtt.median_ns),
        rtt(|rtt| rtt.p95_ns),
        rtt(|rtt| rtt.max_ns),
        stream.limit.map_or_else(|| Cell::Unknown(SENDER_TELLS.to_owned()), |limit| Cell::text(word(&limit))),
    ]
}

fn idle(document: &ThroughputDocument) -> Option<Table> {
    let mut table = Table::new("idle_rtt", "Round-trip time without load", &super::path::DISTRIBUTION_COLUMNS);
    if let Some(rtt) = &document.idle_rtt {
        table.row("TCP handshake", super::path::distribution(rtt));
    }
    table.filled()
}
