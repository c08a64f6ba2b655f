//! Tables and distributions of latency under load.

use linerate_model::schema::load::{ClassName, LoadDocument, Phase, PhaseKind, ProbeClass};
use linerate_model::schema::path::Hop;
use linerate_model::schema::run::Unit;
use linerate_model::schema::throughput::TimeDistribution;

use crate::presentation::quantity::real;
use crate::presentation::reasons::Reasons;
use crate::presentation::{
    Badge, Cell, Chart, Curve, Distribution, Plot, Presentation, Quantity, Table, Tone, direction,
};

const NO_PROBE: &str = "no probe of this class was answered in this phase";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &LoadDocument) {
    presentation.badge = document.grade.as_ref().map(|grade| badge(&grade.letter));
    presentation.charts.extend(distributions(document));
    presentation.tables.extend(tables(document));
    presentation.notes.extend(document.notes.iter().cloned());
    if let Some(others) = &document.contamination {
        let share = Quantity::share(others.share).shown();
        presentation.notes.push(format!("Traffic of others: up to {share} of what went through. {}", others.evidence));
    }
}

/// Those that have something to say, in order.
pub(super) fn tables(document: &LoadDocument) -> Vec<Table> {
    let reasons = Reasons::of(&document.unknown);
    let tables = [
        latency(document),
        goodput(document, reasons),
        grade(document),
        responsiveness(document, reasons),
        losses(document, reasons),
        one_way(document),
        queues(document, reasons),
        hops(document),
    ];
    tables.into_iter().flatten().collect()
}

fn badge(letter: &str) -> Badge {
    let tone = match letter.chars().next() {
        Some('A') => Tone::Good,
        Some('B' | 'C') => Tone::Fair,
        _ => Tone::Bad,
    };
    Badge { text: letter.to_owned(), meaning: "grade of latency under load".to_owned(), tone }
}

/// What a person reads for a phase.
pub(crate) const fn phase_name(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Idle => "idle",
        PhaseKind::Down => "down",
        PhaseKind::Up => "up",
        PhaseKind::Both => "both",
    }
}

/// What a person reads for a class.
pub(crate) const fn class_name(class: ClassName) -> &'static str {
    match class {
        ClassName::Icmp => "ICMP echo",
        ClassName::UdpBestEffort => "UDP best effort",
        ClassName::UdpExpeditedForwarding => "UDP EF",
        ClassName::TcpApplication => "TCP in-band",
        ClassName::TcpInfo => "TCP kernel",
        ClassName::TcpHandshake => "TCP handshake",
    }
}

/// Each class with each phase, classes first, so that the phases of one class stand below each other.
fn rows(document: &LoadDocument) -> Vec<(ClassName, &Phase, &ProbeClass)> {
    let mut classes: Vec<ClassName> = Vec::new();
    for class in document.phases.iter().flat_map(|phase| &phase.classes) {
        if !classes.contains(&class.class) {
            classes.push(class.class);
        }
    }
    let of = |wanted: ClassName| {
        let phases = document.phases.iter();
        phases.flat_map(move |phase| {
            phase.classes.iter().filter(move |class| class.class == wanted).map(move |class| (wanted, phase, class))
        })
    };
    classes.into_iter().flat_map(of).collect()
}

/// The table of the Linux Advanced Routing & Traffic Control HOWTO (§15.8): minimum, average and maximum while the line
/// is idle, loaded down, up, and both ways; with what it lacks: the median, percentiles and the uplift.
fn latency(document: &LoadDocument) -> Option<Table> {
    let columns = ["Probe, load", "min", "avg", "max", "median", "p95", "p99", "added, median", "added, p95"];
    let mut table = Table::new("latency", "Round-trip time while the path is loaded", &columns);
    for (name, phase, class) in rows(document) {
        let time = |of: fn(&TimeDistribution) -> u64| {
            class.rtt.as_ref().map_or_else(unknown, |rtt| Cell::Value(Quantity::nanoseconds(of(rtt))))
        };
        table.row(
            format!("{}, {}", class_name(name), phase_name(phase.kind)),
            vec![
                time(|rtt| rtt.min_ns),
                time(|rtt| rtt.mean_ns),
                time(|rtt| rtt.max_ns),
                time(|rtt| rtt.median_ns),
                time(|rtt| rtt.p95_ns),
                time(|rtt| rtt.p99_ns),
                added(phase.kind, class.uplift_median_ns),
                added(phase.kind, class.uplift_p95_ns),
            ],
        );
    }
    table.note = Some("Added: under load, minus the median of the idle phase, of the same class.".to_owned());
    table.filled()
}

fn unknown() -> Cell {
    Cell::Unknown(NO_PROBE.to_owned())
}

fn added(kind: PhaseKind, uplift: Option<i64>) -> Cell {
    match (kind, uplift.map(Quantity::signed_nanoseconds)) {
        (PhaseKind::Idle, _) => Cell::Nothing,
        (_, Some(uplift)) => Cell::Qualified(uplift, uplift.shown_with_sign()),
        (_, None) => unknown(),
    }
}

fn goodput(document: &LoadDocument, reasons: Reasons<'_>) -> Option<Table> {
    let columns = ["Load", "Goodput down", "Goodput up", "Retransmitted", "Stable"];
    let mut table = Table::new("goodput", "The load", &columns);
    for phase in document.phases.iter().filter(|phase| phase.kind != PhaseKind::Idle) {
        let name = phase_name(phase.kind);
        let key = |rest: &str| format!("phases.{name}.{rest}");
        let rate = |loads: bool, rest: &str, rate: Option<f64>| match rate {
            None if !loads => Cell::Nothing,
            rate => reasons.cell(&key(rest), rate.map(Quantity::bits_per_second)),
        };
        let stable = phase.stable.map(|stable| {
            let after = phase.stable_ns.map(|at| Quantity::nanoseconds(at.saturating_sub(phase.start_ns)).shown());
            match (stable, after) {
                (true, Some(after)) => format!("after {after}"),
                (true, None) => "yes".to_owned(),
                (false, _) => "no".to_owned(),
            }
        });
        let retransmitted = phase.retransmitted_segments.map(Quantity::segments);
        table.row(
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
    let noun = if document.connections == 1 { "connection" } else { "connections" };
    table.note = Some(format!("TCP, {} {noun} in each direction, {control}.", document.connections));
    table.filled()
}

fn grade(document: &LoadDocument) -> Option<Table> {
    let mut table = Table::new("grade", "Grade", &["Grade", "Value"]);
    let Some(grade) = &document.grade else {
        let reason = document.ungraded_because.clone()?;
        table.row("Grade", vec![Cell::Unknown(reason)]);
        return Some(table);
    };
    let delay = Quantity::nanoseconds(grade.added_ns);
    let decided = format!("{} by {} {}", delay.shown_with_sign(), class_name(grade.class), direction(grade.direction));
    table.row("Overall", vec![Cell::text(&grade.letter)]);
    table.row("Decided by", vec![Cell::Qualified(delay, decided)]);
    for (label, letter) in [("Loaded up", &grade.up), ("Loaded down", &grade.down)] {
        let reason = || Cell::Unknown("that phase gave no grade".to_owned());
        table.row(label, vec![letter.clone().map_or_else(reason, Cell::Text)]);
    }
    let below = |(letter, limit): &(String, u64)| format!("{letter} below {}", Quantity::nanoseconds(*limit).shown());
    let thresholds: Vec<String> = grade.thresholds.iter().map(below).collect();
    table.note = Some(format!("Delay that the load adds: {}; F is the rest.", thresholds.join(", ")));
    Some(table)
}

fn responsiveness(document: &LoadDocument, reasons: Reasons<'_>) -> Option<Table> {
    let responsiveness = document.responsiveness.as_ref()?;
    let mut table = Table::new("responsiveness", "Responsiveness", &["Load", "Round trips per minute"]);
    let loads = [("down", responsiveness.down), ("up", responsiveness.up), ("both", responsiveness.both)];
    for (name, value) in loads {
        let quantity = value.map(|value| Quantity::new(value, Unit::RoundTripsPerMinute));
        table.row(name, vec![reasons.cell(&format!("responsiveness.{name}"), quantity)]);
    }
    table.note = Some(format!("After {}; confidence {}.", responsiveness.method, responsiveness.confidence));
    Some(table)
}

fn losses(document: &LoadDocument, reasons: Reasons<'_>) -> Option<Table> {
    let mut table = Table::new("losses", "Lost probes", &["Probe, load", "Sent", "Lost", "on the way up", "down"]);
    for (name, phase, class) in rows(document).into_iter().filter(|(_, _, class)| class.sent.is_some()) {
        let key = |rest: &str| format!("phases.{}.{rest}", phase_name(phase.kind));
        let count = |rest: &str, count: Option<u64>| reasons.cell(&key(rest), count.map(Quantity::count));
        table.row(
            format!("{}, {}", class_name(name), phase_name(phase.kind)),
            vec![
                count("sent", class.sent),
                count("lost", class.lost),
                count("lost_up", class.lost_up),
                count("lost_down", class.lost_down),
            ],
        );
    }
    table.filled()
}

/// Which direction's delay grows.
fn one_way(document: &LoadDocument) -> Option<Table> {
    let columns = ["Probe, load", "up, median", "up, p95", "down, median", "down, p95"];
    let mut table = Table::new("one_way", "One-way delay above the smallest of the idle phase", &columns);
    let measured = |class: &ProbeClass| class.up.is_some() || class.down.is_some();
    for (name, phase, class) in rows(document).into_iter().filter(|(_, _, class)| measured(class)) {
        let time = |times: &Option<TimeDistribution>, of: fn(&TimeDistribution) -> u64| {
            times.as_ref().map_or_else(unknown, |times| Cell::Value(Quantity::nanoseconds(of(times))))
        };
        table.row(
            format!("{}, {}", class_name(name), phase_name(phase.kind)),
            vec![
                time(&class.up, |times| times.median_ns),
                time(&class.up, |times| times.p95_ns),
                time(&class.down, |times| times.median_ns),
                time(&class.down, |times| times.p95_ns),
            ],
        );
    }
    table.filled()
}

fn queues(document: &LoadDocument, reasons: Reasons<'_>) -> Option<Table> {
    let columns = ["Loaded", "Queue stands", "adds", "one-way delays agree", "because"];
    let mut table = Table::new("queues", "Where the queue stands", &columns);
    for queue in &document.queues {
        let name = direction(queue.direction);
        let place = match queue.place.as_str() {
            "this_host" => Cell::text("in this host"),
            "next_hop" => Cell::text("at the next hop"),
            "beyond" => Cell::text("beyond the next hop"),
            "unknown" => Cell::Unknown(queue.evidence.clone()),
            other => Cell::text(other),
        };
        let added = queue.added_ns.map(Quantity::nanoseconds);
        let confirms = queue.one_way_confirms.map(super::yes_or_no);
        table.row(
            name,
            vec![
                place,
                reasons.cell(&format!("queues.{name}.added_ns"), added),
                reasons.text(&format!("queues.{name}.one_way_confirms"), confirms),
                Cell::text(&queue.evidence),
            ],
        );
    }
    table.filled()
}

fn hops(document: &LoadDocument) -> Option<Table> {
    let columns = ["Loaded, distance", "Address", "min", "median", "p95"];
    let mut table = Table::new("loaded_hops", "Hops while loaded", &columns);
    for queue in &document.queues {
        for hop in &queue.hops {
            table.row(format!("{}, {}", direction(queue.direction), hop.distance), hop_cells(hop));
        }
    }
    table.filled()
}

fn hop_cells(hop: &Hop) -> Vec<Cell> {
    let silent = || Cell::Unknown("nobody answered from there".to_owned());
    let rtt = |of: fn(&TimeDistribution) -> u64| {
        hop.rtt.as_ref().map_or_else(silent, |rtt| Cell::Value(Quantity::nanoseconds(of(rtt))))
    };
    let address = hop.address.clone().map_or_else(silent, Cell::Text);
    vec![address, rtt(|rtt| rtt.min_ns), rtt(|rtt| rtt.median_ns), rtt(|rtt| rtt.p95_ns)]
}

/// The name of a class's chart.
pub(crate) fn distribution_name(class: ClassName) -> String {
    format!("distribution_{}", class_name(class).to_lowercase().replace([' ', '-'], "_"))
}

/// One chart for each class: the cumulative distribution of its round-trip times in each phase.
pub(crate) fn distributions<'a>(document: &LoadDocument) -> Vec<Chart<'a>> {
    let mut charts: Vec<(ClassName, Vec<Curve>, Vec<String>)> = Vec::new();
    for (name, phase, class) in rows(document).into_iter().filter(|(_, _, class)| class.cdf_ns.len() > 1) {
        if charts.last().is_none_or(|(last, _, _)| *last != name) {
            charts.push((name, Vec::new(), Vec::new()));
        }
        let Some((_, curves, said)) = charts.last_mut() else { continue };
        let phase = phase_name(phase.kind);
        let colour = curves.len();
        curves.push(Curve { name: phase.to_owned(), points: points(&class.cdf_ns), colour, dashed: false });
        let median = class.rtt.as_ref().map(|rtt| Quantity::nanoseconds(rtt.median_ns).shown());
        said.push(format!("{phase} median {}", median.as_deref().unwrap_or("unknown")));
    }
    charts
        .into_iter()
        .map(|(class, curves, said)| {
            let title = format!("Distribution of round-trip times, {}", class_name(class));
            Chart {
                name: distribution_name(class),
                summary: format!("{title}: {}.", said.join("; ")),
                title,
                plot: Plot::Distribution(Distribution { unit: Unit::Nanoseconds, curves }),
            }
        })
        .collect()
}

/// The first is the smallest reading, the last the largest.
fn points(times: &[u64]) -> Vec<(f64, f64)> {
    let steps = real(times.len().saturating_sub(1) as u64);
    times.iter().enumerate().map(|(step, time)| (real(*time), real(step as u64) / steps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_goes_from_none_to_all() {
        assert_eq!(points(&[10, 20, 40]), [(10.0, 0.0), (20.0, 0.5), (40.0, 1.0)]);
    }
}
