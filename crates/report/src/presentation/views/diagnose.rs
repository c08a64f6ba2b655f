//! Diagnosis: the limit of a transfer and its evidence.

use linerate_documents::diagnose::{DiagnoseDocument, HostKernelEvents, TransferHost};
use linerate_model::diagnosis::{BoundKind, CauseLocation, Confidence, DiagnosisVerdict};
use linerate_model::direction::Direction;
use linerate_units::BitRate;

use super::{path, rates_chart};
use crate::presentation::{BadgeTone, Chart, Presentation, Quantity, ReportTable, TableCell, VerdictBadge};

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &DiagnoseDocument) {
    presentation.badge = document.verdicts.first().map(badge);
    presentation.verdict.push_str(document.verdicts.first().map_or("", doubt));
    presentation.lead(goodput_chart(document));
    let tables = [evidence(document), advice(document), states(document), bounds(document), further_verdicts(document)];
    presentation.tables.extend(tables.into_iter().flatten());
    presentation.tables.extend(kernel_events(document));
    presentation.missing.extend(missing_kernel_events(document));
    if let Some(path) = &document.path {
        presentation.tables.extend(path::direction_table(path));
        presentation.notes.extend(path.notes.iter().cloned());
    }
    let reasons = document.unknown.iter().map(|unknown| format!("{}: {}.", unknown.key, unknown.reason));
    let contradictions = document.contradictions.iter().map(|text| format!("Not used: {text}."));
    presentation.notes.extend(document.notes.iter().cloned().chain(contradictions).chain(reasons));
}

/// Confidence of a verdict that is not certain, as a sentence.
fn doubt(verdict: &DiagnosisVerdict) -> &'static str {
    match verdict.confidence {
        Confidence::High => "",
        _ if verdict.cause.location() == CauseLocation::Unknown => "",
        Confidence::Medium => " Confidence: medium.",
        Confidence::Low => " Confidence: low.",
    }
}

fn badge(verdict: &DiagnosisVerdict) -> VerdictBadge {
    let tone = match verdict.cause.location() {
        CauseLocation::Nowhere => BadgeTone::Good,
        CauseLocation::Network | CauseLocation::Unknown => BadgeTone::Fair,
        _ => BadgeTone::Bad,
    };
    VerdictBadge {
        text: verdict.cause.to_string(),
        meaning: format!("limit ({} confidence)", verdict.confidence),
        tone,
    }
}

/// Goodput, next to the upper bound by each resource.
fn goodput_chart<'a>(document: &DiagnoseDocument) -> Option<Chart<'a>> {
    let capacity = document.path.as_ref().and_then(|path| {
        let end = if document.direction == Direction::Up { &path.up } else { &path.down };
        Some(end.capacity.as_ref()?.bits_per_second)
    });
    let without = document.verdicts.first().and_then(|first| Some(first.without?.expected.bits_per_second()));
    let is_pair = document.verdicts.first().is_some_and(|first| first.together_with.is_some());
    let without = (if is_pair { "without the first two causes" } else { "without the first cause" }, without);
    let goodput = [("goodput", document.goodput_bits_per_second), without];
    let has_path_bound = document.bounds.iter().any(|bound| bound.kind == BoundKind::Path);
    let bounds = document.bounds.iter().map(|bound| (bound.kind.title(), Some(bound.rate.bits_per_second())));
    let capacity = [("path capacity", capacity.filter(|_| !has_path_bound))];
    let rates: Vec<(&str, Option<f64>)> = goodput.into_iter().chain(bounds).chain(capacity).collect();
    rates_chart("Goodput and its upper bounds", &rates)
}

/// Figures of the first verdict.
pub(super) fn evidence(document: &DiagnoseDocument) -> Option<ReportTable> {
    let first = document.verdicts.first()?;
    let mut table = ReportTable::new("evidence", "Evidence", &["Figure", "Value"]);
    for line in &first.evidence {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        table.push_row(name, vec![TableCell::text(value)]);
    }
    if let Some(without) = &first.without {
        let rate = |rate: BitRate| Quantity::bits_per_second(rate.bits_per_second()).display_text();
        let text = format!("{} ({} to {})", rate(without.expected), rate(without.low), rate(without.high));
        let name = match first.together_with {
            Some(other) => format!("estimated goodput without this cause and without {other}"),
            None => "estimated goodput without this cause".to_owned(),
        };
        table.push_row(name, vec![TableCell::text(text)]);
    }
    table.non_empty()
}

fn advice(document: &DiagnoseDocument) -> Option<ReportTable> {
    let first = document.verdicts.first()?;
    let mut table = ReportTable::new("advice", "Advice", &["", "Advice"]);
    for (number, text) in first.advice.iter().enumerate() {
        table.push_row(format!("{}", number + 1), vec![TableCell::text(text)]);
    }
    table.non_empty()
}

fn states(document: &DiagnoseDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("states", "Sender states", &["State", "Share"]);
    for state in &document.states {
        table
            .push_row(state.state.name().replace('_', " "), vec![TableCell::Value(Quantity::share(state.share.get()))]);
    }
    table.non_empty()
}

fn bounds(document: &DiagnoseDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("bounds", "Upper bounds by resource", &["Resource", "Goodput", "Computed from"]);
    for bound in &document.bounds {
        table.push_row(
            bound.kind.title(),
            vec![
                TableCell::Value(Quantity::bits_per_second(bound.rate.bits_per_second())),
                TableCell::text(&bound.arithmetic),
            ],
        );
    }
    if let Some(next) = &document.next {
        let rate = Quantity::bits_per_second(next.rate.bits_per_second()).display_text();
        table.note = Some(format!("The next limit is {}, at {rate}.", next.kind.title()));
    }
    table.non_empty()
}

/// Further verdicts.
fn further_verdicts(document: &DiagnoseDocument) -> Option<ReportTable> {
    let columns = ["Cause", "Goodput without", "Confidence", "Figures"];
    let mut table = ReportTable::new("others", "Further verdicts", &columns);
    for verdict in document.verdicts.iter().skip(1) {
        let without = verdict.without.map(|without| Quantity::bits_per_second(without.expected.bits_per_second()));
        table.push_row(
            verdict.cause.to_string(),
            vec![
                without.map_or_else(|| TableCell::text("–"), TableCell::Value),
                TableCell::text(verdict.confidence.name()),
                TableCell::text(&verdict.text),
            ],
        );
    }
    table.non_empty()
}

/// Beginning of the keys of hosts that did not trace their kernels.
const UNTRACED: &str = "kernel events of the ";

/// Sentences on hosts that did not trace their kernels; one on both where they have the same reason.
fn missing_kernel_events(document: &DiagnoseDocument) -> Vec<String> {
    let refused: Vec<(&str, &str)> = document
        .unknown
        .iter()
        .filter_map(|unknown| Some((unknown.key.strip_prefix(UNTRACED)?, unknown.reason.as_str())))
        .collect();
    match refused.as_slice() {
        [(_, first), (_, second)] if first == second => vec![format!("No kernel events of both hosts: {first}.")],
        each => each.iter().map(|(host, reason)| format!("No kernel events of the {host}: {reason}.")).collect(),
    }
}

/// Events that the kernels traced: the longest, busiest and most frequent of each kind.
fn kernel_events(document: &DiagnoseDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("kernel-events", "Events in the kernels", &["Event", "Value", "Where"]);
    for host in &document.kernel_events {
        for (event, value, place) in events_of(host) {
            let end = match host.host {
                TransferHost::Sender => "sender",
                TransferHost::Receiver => "receiver",
            };
            table.push_row(format!("{end}: {event}"), vec![TableCell::Value(value), TableCell::text(place)]);
        }
    }
    table.non_empty()
}

fn events_of(host: &HostKernelEvents) -> Vec<(&'static str, Quantity, String)> {
    let events = &host.events;
    let wait = events.run_queue.as_ref().filter(|run_queue| run_queue.delay.count > 0).map(|run_queue| {
        let behind = run_queue.occupants.iter().max_by_key(|one| one.longest_ns);
        let place = behind.map(|one| {
            let process = one.process.as_deref().map_or_else(String::new, |process| format!(" of {process}"));
            format!("processor {}, behind {}{process}", one.processor, one.task)
        });
        ("longest wait for a processor", Quantity::nanoseconds(run_queue.delay.longest_ns), place.unwrap_or_default())
    });
    let softirq = events.softirqs.as_deref().and_then(<[_]>::first).map(|one| {
        let place = format!("processor {}, {}", one.processor, one.vector);
        ("time in a software interrupt", Quantity::nanoseconds(one.time_ns), place)
    });
    let qdisc = events.qdisc.as_ref().filter(|delay| delay.count > 0);
    let qdisc =
        qdisc.map(|delay| ("longest time in the qdisc", Quantity::nanoseconds(delay.longest_ns), String::new()));
    let full = events.full_sockets.as_deref().and_then(<[_]>::first).map(|queue| {
        let place = queue.port.map_or_else(String::new, |port| format!("port {port}"));
        ("dropped at a full socket", Quantity::packets(queue.packets), place)
    });
    let drops = events.drops.as_deref().unwrap_or_default().iter().take(3).map(|drop| {
        let location = drop.location.as_deref().map(|name| format!(" in {name}"));
        ("dropped", Quantity::packets(drop.packets), format!("{}{}", drop.reason, location.unwrap_or_default()))
    });
    let by_timer = events
        .retransmissions
        .map(|triggers| ("retransmitted by a timer", Quantity::segments(triggers.by_timer), String::new()));
    [wait, softirq, qdisc, full].into_iter().flatten().chain(drops).chain(by_timer).collect()
}
