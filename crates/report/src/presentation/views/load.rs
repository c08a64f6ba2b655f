//! Tables and distributions of latency under load.

use core::time::Duration;

use linerate_documents::run::FigureUnit;
use linerate_model::load::{DualQueue, LatencyClass, MedianDelay};
use linerate_model::load::{LatencyGrade, LoadDocument, LoadPhase, PhaseKind, ProbeClass, QueueHost};
use linerate_model::path::PathHop;
use linerate_model::summary::DurationDistribution;
use linerate_units::display;
use linerate_units::serde::nanoseconds;

use crate::presentation::quantity::as_f64;
use crate::presentation::reasons::UnknownReasons;
use crate::presentation::{
    BadgeTone, Chart, ChartPlot, DistributionCurve, DistributionPlot, Presentation, Quantity, ReportTable, TableCell,
    VerdictBadge, direction_label,
};

const NO_PROBE: &str = "no probe of this class was answered in this phase";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &LoadDocument) {
    presentation.badge = document.grade.as_ref().map(|grade| badge(grade.letter));
    presentation.charts.extend(distributions(document));
    presentation.tables.extend(tables(document));
    presentation.notes.extend(document.notes.iter().cloned());
    if let Some(others) = &document.contamination {
        let share = Quantity::share(others.share).display_text();
        presentation.notes.push(format!("Other traffic: up to {share} of the total. {}", others.evidence));
    }
}

/// Tables that have content, in order.
pub(super) fn tables(document: &LoadDocument) -> Vec<ReportTable> {
    let reasons = UnknownReasons::of(&document.unknown);
    let tables = [
        latency(document),
        goodput(document, reasons),
        grade(document),
        super::profiles::grades(document),
        super::profiles::packets(document),
        responsiveness(document, reasons),
        super::http_load::parts(document),
        losses(document, reasons),
        one_way(document),
        queues(document, reasons),
        dual_queues(document),
        hops(document),
    ];
    tables.into_iter().flatten().collect()
}

pub(super) fn badge(grade: LatencyGrade) -> VerdictBadge {
    let tone = match grade {
        LatencyGrade::APlus | LatencyGrade::A => BadgeTone::Good,
        LatencyGrade::B | LatencyGrade::C => BadgeTone::Fair,
        _ => BadgeTone::Bad,
    };
    VerdictBadge { text: grade.to_string(), meaning: "grade of latency under load".to_owned(), tone }
}

/// Class that represents a load: the one that decides the grade, else the first that was answered.
pub(crate) fn decisive_class(document: &LoadDocument) -> Option<LatencyClass> {
    let graded = document.grade.as_ref().map(|grade| grade.class);
    let mut classes = document.phases.iter().flat_map(|phase| &phase.classes);
    graded.or_else(|| classes.find(|class| class.rtt.is_some()).map(|class| class.class))
}

/// Display name of a phase.
pub(crate) const fn phase_name(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Idle => "idle",
        PhaseKind::Down => "down",
        PhaseKind::Up => "up",
        PhaseKind::Both => "both",
    }
}

/// Display name of a class.
pub(crate) const fn class_name(class: LatencyClass) -> &'static str {
    match class {
        LatencyClass::Icmp => "ICMP echo",
        LatencyClass::UdpBestEffort => "UDP best effort",
        LatencyClass::UdpExpeditedForwarding => "UDP EF",
        LatencyClass::UdpEct0 => "UDP ECT(0)",
        LatencyClass::UdpEct1 => "UDP ECT(1)",
        LatencyClass::TcpApplication => "TCP in-band",
        LatencyClass::TcpInfo => "TCP kernel",
        LatencyClass::TcpHandshake => "TCP handshake",
        LatencyClass::TlsHandshake => "TLS handshake",
        LatencyClass::HttpRequest => "HTTP request",
        LatencyClass::TlsRequest => "TLS request",
        LatencyClass::QuicRequest => "QUIC request",
    }
}

/// Each class with each phase, grouped by class.
fn rows(document: &LoadDocument) -> Vec<(LatencyClass, &LoadPhase, &ProbeClass)> {
    let mut classes: Vec<LatencyClass> = Vec::new();
    for class in document.phases.iter().flat_map(|phase| &phase.classes) {
        if !classes.contains(&class.class) {
            classes.push(class.class);
        }
    }
    let of = |wanted: LatencyClass| {
        let phases = document.phases.iter();
        phases.flat_map(move |phase| {
            phase.classes.iter().filter(move |class| class.class == wanted).map(move |class| (wanted, phase, class))
        })
    };
    classes.into_iter().flat_map(of).collect()
}

/// Table of the Linux Advanced Routing & Traffic Control HOWTO (§15.8): minimum, average and maximum while the link is
/// idle, loaded down, up, and in both directions; extended by the median, percentiles and the uplift.
fn latency(document: &LoadDocument) -> Option<ReportTable> {
    let columns = ["Probe, load", "min", "avg", "max", "median", "p95", "p99", "added, median", "added, p95"];
    let mut table = ReportTable::new("latency", "Round-trip time under load", &columns);
    for (name, phase, class) in rows(document) {
        let time = |of: fn(&DurationDistribution) -> Duration| {
            class.rtt.as_ref().map_or_else(unknown, |rtt| TableCell::Value(Quantity::duration(of(rtt))))
        };
        table.push_row(
            format!("{}, {}", class_name(name), phase_name(phase.kind)),
            vec![
                time(|rtt| rtt.min),
                time(|rtt| rtt.mean),
                time(|rtt| rtt.max),
                time(|rtt| rtt.median),
                time(|rtt| rtt.p95),
                time(|rtt| rtt.p99),
                added(phase.kind, class.uplift_median_ns),
                added(phase.kind, class.uplift_p95_ns),
            ],
        );
    }
    table.note = Some("Added: under load, minus the median of the idle phase, of the same class.".to_owned());
    table.non_empty()
}

fn unknown() -> TableCell {
    TableCell::Unknown(NO_PROBE.to_owned())
}

fn added(kind: PhaseKind, uplift: Option<i64>) -> TableCell {
    match (kind, uplift.map(Quantity::signed_nanoseconds)) {
        (PhaseKind::Idle, _) => TableCell::Nothing,
        (_, Some(uplift)) => TableCell::Qualified(uplift, uplift.signed_text()),
        (_, None) => unknown(),
    }
}

fn goodput(document: &LoadDocument, reasons: UnknownReasons<'_>) -> Option<ReportTable> {
    let columns = ["Load", "Goodput down", "Goodput up", "Retransmitted", "Stable"];
    let mut table = ReportTable::new("goodput", "Load", &columns);
    for phase in document.phases.iter().filter(|phase| phase.kind != PhaseKind::Idle) {
        let name = phase_name(phase.kind);
        let key = |rest: &str| format!("phases.{name}.{rest}");
        let rate = |loads: bool, rest: &str, rate: Option<f64>| match rate {
            None if !loads => TableCell::Nothing,
            rate => reasons.cell(&key(rest), rate.map(Quantity::bits_per_second)),
        };
        let stable = phase.stable.map(|stable| {
            let after =
                phase.stable_ns.map(|at| Quantity::nanoseconds(at.saturating_sub(phase.start_ns)).display_text());
            match (stable, after) {
                (true, Some(after)) => format!("after {after}"),
                (true, None) => "yes".to_owned(),
                (false, _) => "no".to_owned(),
            }
        });
        let retransmitted = phase.retransmitted_segments.map(Quantity::segments);
        table.push_row(
            name,
            vec![
                rate(phase.kind != PhaseKind::Up, "goodput_down_bits_per_second", phase.goodput_down_bits_per_second),
                rate(phase.kind != PhaseKind::Down, "goodput_up_bits_per_second", phase.goodput_up_bits_per_second),
                reasons.cell(&key("retransmitted_segments"), retransmitted),
                reasons.text(&key("stable"), stable),
            ],
        );
    }
    let control = document.congestion_control.as_deref().unwrap_or("unknown congestion control");
    let connections = display::counted(document.connections, "connection");
    table.note = Some(format!("TCP, {connections} in each direction, {control}."));
    table.non_empty()
}

fn grade(document: &LoadDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("grade", "Grade", &["Grade", "Value"]);
    let Some(grade) = &document.grade else {
        if document.http.is_some() {
            return None;
        }
        let reason = document.ungraded_because.clone()?;
        table.push_row("Grade", vec![TableCell::Unknown(reason)]);
        return Some(table);
    };
    let delay = Quantity::nanoseconds(grade.added_ns);
    let decided =
        format!("{} by {} {}", delay.signed_text(), class_name(grade.class), direction_label(grade.direction));
    table.push_row("Overall", vec![TableCell::text(grade.letter.letter())]);
    table.push_row("Decided by", vec![TableCell::Qualified(delay, decided)]);
    let directions = [("Loaded up", grade.up), ("Loaded down", grade.down)];
    add_directions(&mut table, directions, &grade.thresholds);
    Some(table)
}

/// Adds the grade of each direction, and the thresholds as a note.
pub(super) fn add_directions(
    table: &mut ReportTable,
    directions: [(&str, Option<LatencyGrade>); 2],
    thresholds: &[(LatencyGrade, u64)],
) {
    for (label, letter) in directions {
        let reason = || TableCell::Unknown("no grade for that phase".to_owned());
        table.push_row(label, vec![letter.map_or_else(reason, |letter| TableCell::text(letter.letter()))]);
    }
    let below = |(letter, limit): &(LatencyGrade, u64)| {
        format!("{letter} below {}", Quantity::nanoseconds(*limit).display_text())
    };
    let thresholds: Vec<String> = thresholds.iter().map(below).collect();
    table.note = Some(format!("Delay added by the load: {}; F above.", thresholds.join(", ")));
}

fn responsiveness(document: &LoadDocument, reasons: UnknownReasons<'_>) -> Option<ReportTable> {
    let responsiveness = document.responsiveness.as_ref()?;
    let mut table = ReportTable::new("responsiveness", "Responsiveness", &["Load", "Round trips per minute"]);
    let loads = [("down", responsiveness.down), ("up", responsiveness.up), ("both", responsiveness.both)];
    for (name, value) in loads {
        let quantity = value.map(|value| Quantity::new(value, FigureUnit::RoundTripsPerMinute));
        table.push_row(name, vec![reasons.cell(&format!("responsiveness.{name}"), quantity)]);
    }
    table.note = Some(format!("Method: {}; confidence: {}.", responsiveness.method.title(), responsiveness.confidence));
    Some(table)
}

fn losses(document: &LoadDocument, reasons: UnknownReasons<'_>) -> Option<ReportTable> {
    let mut table = ReportTable::new("losses", "Lost probes", &["Probe, load", "Sent", "Lost", "Lost up", "Lost down"]);
    for (name, phase, class) in rows(document).into_iter().filter(|(_, _, class)| class.sent.is_some()) {
        let key = |rest: &str| format!("phases.{}.{rest}", phase_name(phase.kind));
        let count = |rest: &str, count: Option<u64>| reasons.cell(&key(rest), count.map(Quantity::count));
        table.push_row(
            format!("{}, {}", class_name(name), phase_name(phase.kind)),
            vec![
                count("sent", class.sent),
                count("lost", class.lost),
                count("lost_up", class.lost_up),
                count("lost_down", class.lost_down),
            ],
        );
    }
    table.non_empty()
}

/// One-way delays, which show the direction whose delay grows.
fn one_way(document: &LoadDocument) -> Option<ReportTable> {
    let columns = ["Probe, load", "up, median", "up, p95", "down, median", "down, p95"];
    let mut table = ReportTable::new("one_way", "One-way delay above the smallest of the idle phase", &columns);
    let measured = |class: &ProbeClass| class.up.is_some() || class.down.is_some();
    for (name, phase, class) in rows(document).into_iter().filter(|(_, _, class)| measured(class)) {
        let time = |times: &Option<DurationDistribution>, of: fn(&DurationDistribution) -> Duration| {
            times.as_ref().map_or_else(unknown, |times| TableCell::Value(Quantity::duration(of(times))))
        };
        table.push_row(
            format!("{}, {}", class_name(name), phase_name(phase.kind)),
            vec![
                time(&class.up, |times| times.median),
                time(&class.up, |times| times.p95),
                time(&class.down, |times| times.median),
                time(&class.down, |times| times.p95),
            ],
        );
    }
    table.non_empty()
}

fn queues(document: &LoadDocument, reasons: UnknownReasons<'_>) -> Option<ReportTable> {
    let columns = ["Loaded", "Queue", "Added delay", "Confirmed by one-way delay", "Evidence"];
    let mut table = ReportTable::new("queues", "Queue location", &columns);
    for queue in &document.queues {
        let name = direction_label(queue.direction);
        let place = match queue.location {
            QueueHost::ThisHost => TableCell::text("in this host"),
            QueueHost::NextHop => TableCell::text("at the next hop"),
            QueueHost::Beyond => TableCell::text("beyond the next hop"),
            QueueHost::Unknown => TableCell::Unknown(queue.evidence.clone()),
            QueueHost::Nowhere => TableCell::text("nowhere"),
        };
        let added = queue.added_ns.map(Quantity::nanoseconds);
        let confirms = queue.one_way_confirms.map(super::yes_or_no);
        table.push_row(
            name,
            vec![
                place,
                reasons.cell(&format!("queues.{name}.added_ns"), added),
                reasons.text(&format!("queues.{name}.one_way_confirms"), confirms),
                TableCell::text(&queue.evidence),
            ],
        );
    }
    table.non_empty()
}

/// Delays by ECN codepoint, which show a queue of its own for L4S.
fn dual_queues(document: &LoadDocument) -> Option<ReportTable> {
    let columns =
        ["Loaded", "Dual queue", "Not-ECT", "ECT(0)", "ECT(1)", "ECT(1) arrives", "ECT(1) marked", "Evidence"];
    let mut table = ReportTable::new("dual_queues", "Delay by ECN codepoint", &columns);
    for found in &document.dual_queues {
        let presence = match found.finding {
            DualQueue::Found => TableCell::text("found"),
            DualQueue::NotFound => TableCell::text("not found"),
            _ => TableCell::Unknown(found.evidence.clone()),
        };
        let share = |share: Option<f64>| {
            let reason = || TableCell::Unknown("the far end does not report it".to_owned());
            share.map_or_else(reason, |share| TableCell::Value(Quantity::share(share)))
        };
        let cells = vec![
            presence,
            codepoint_delay(found.not_ect),
            codepoint_delay(found.ect0),
            codepoint_delay(found.ect1),
            share(found.ect1_intact),
            share(found.ect1_marked),
            TableCell::text(&found.evidence),
        ];
        table.push_row(direction_label(found.direction), cells);
    }
    table.note = Some(
        "Medians of the loaded direction with 95 % intervals, above the smallest delay of the idle phase.".to_owned(),
    );
    table.non_empty()
}

fn codepoint_delay(delay: Option<MedianDelay>) -> TableCell {
    let Some(delay) = delay else { return unknown() };
    let [median, low, high] =
        [delay.median, delay.low, delay.high].map(|time| Quantity::nanoseconds(nanoseconds(time)));
    let text = format!("{} ({} to {})", median.display_text(), low.display_text(), high.display_text());
    TableCell::Qualified(median, text)
}

fn hops(document: &LoadDocument) -> Option<ReportTable> {
    let columns = ["Loaded, distance", "Address", "min", "median", "p95"];
    let mut table = ReportTable::new("loaded_hops", "Hops while loaded", &columns);
    for queue in &document.queues {
        for hop in &queue.hops {
            table.push_row(format!("{}, {}", direction_label(queue.direction), hop.distance), hop_cells(hop));
        }
    }
    table.non_empty()
}

fn hop_cells(hop: &PathHop) -> Vec<TableCell> {
    let silent = || TableCell::Unknown("no reply from this hop".to_owned());
    let rtt = |of: fn(&DurationDistribution) -> Duration| {
        hop.rtt.as_ref().map_or_else(silent, |rtt| TableCell::Value(Quantity::duration(of(rtt))))
    };
    let address = hop.address.clone().map_or_else(silent, TableCell::Text);
    vec![address, rtt(|rtt| rtt.min), rtt(|rtt| rtt.median), rtt(|rtt| rtt.p95)]
}

/// Name of a class's chart.
pub(crate) fn distribution_name(class: LatencyClass) -> String {
    format!("distribution_{}", class_name(class).to_lowercase().replace([' ', '-'], "_").replace(['(', ')'], ""))
}

/// One chart for each class: the cumulative distribution of its round-trip times in each phase.
pub(crate) fn distributions<'a>(document: &LoadDocument) -> Vec<Chart<'a>> {
    let mut charts: Vec<(LatencyClass, Vec<DistributionCurve>, Vec<String>)> = Vec::new();
    for (name, phase, class) in rows(document).into_iter().filter(|(_, _, class)| class.cdf_ns.len() > 1) {
        if charts.last().is_none_or(|(last, _, _)| *last != name) {
            charts.push((name, Vec::new(), Vec::new()));
        }
        let Some((_, curves, medians)) = charts.last_mut() else { continue };
        let phase = phase_name(phase.kind);
        let colour = curves.len();
        curves.push(DistributionCurve { name: phase.to_owned(), points: points(&class.cdf_ns), colour, dashed: false });
        let median = class.rtt.as_ref().map(|rtt| Quantity::duration(rtt.median).display_text());
        medians.push(format!("{phase} median {}", median.as_deref().unwrap_or("unknown")));
    }
    charts
        .into_iter()
        .map(|(class, curves, medians)| {
            let title = format!("Distribution of round-trip times, {}", class_name(class));
            Chart {
                name: distribution_name(class),
                summary: format!("{title}: {}.", medians.join("; ")),
                title,
                plot: ChartPlot::Distribution(DistributionPlot { unit: FigureUnit::Nanoseconds, curves }),
            }
        })
        .collect()
}

/// Points of a cumulative distribution: the first is the smallest sample, the last the largest.
fn points(times: &[u64]) -> Vec<(f64, f64)> {
    let steps = as_f64(times.len().saturating_sub(1) as u64);
    times.iter().enumerate().map(|(step, time)| (as_f64(*time), as_f64(step as u64) / steps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codepoint_has_its_median_and_interval() {
        let micros = Duration::from_micros;
        let delay = MedianDelay { median: micros(600), low: micros(500), high: micros(700), probes: 40 };
        let TableCell::Qualified(median, text) = codepoint_delay(Some(delay)) else { panic!("a value") };
        assert_eq!((median, text.as_str()), (Quantity::nanoseconds(600_000), "600 µs (500 µs to 700 µs)"));
        assert!(matches!(codepoint_delay(None), TableCell::Unknown(_)));
    }

    #[test]
    fn a_distribution_goes_from_none_to_all() {
        assert_eq!(points(&[10, 20, 40]), [(10.0, 0.0), (20.0, 0.5), (40.0, 1.0)]);
    }
}
