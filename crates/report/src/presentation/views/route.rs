//! Tables and chart of the hops of a path.

use linerate_documents::run::FigureUnit;
use linerate_model::path::PathDocument;
use linerate_model::route::{HopAddress, HopReplies, MplsLabel, PathHop, RouteReport};
use linerate_units::display;

use crate::presentation::{BarChart, BarGroup, Chart, ChartPlot, Quantity, ReportTable, TableCell};
use crate::sentence::route::remarks;

/// Reason for a hop without figures.
const NO_REPLY: &str = "no reply from this hop";

/// Meaning of the two columns that are confused most often.
const LOSS_NOTE: &str = "No reply: probes that the hop did not answer. Loss: what persists to the destination.";

/// Table of the hops; `None` without any.
pub(super) fn table(document: &PathDocument) -> Option<ReportTable> {
    const COLUMNS: [&str; 8] = ["Hop", "Address", "No reply", "Loss", "Median", "Best", "Worst", "Jitter"];
    let Some(route) = &document.route else { return old_table(document) };
    let mut table = ReportTable::new("hops", "Hops", &COLUMNS);
    for hop in &document.hops {
        table.push_row(hop.distance.to_string(), cells(hop));
    }
    table.note = Some(note(&document.hops, route));
    table.non_empty()
}

fn note(hops: &[PathHop], route: &RouteReport) -> String {
    let (rounds, flows) = (display::counted(route.rounds, "round"), display::counted(route.flows, "flow"));
    let mut parts = vec![format!("{rounds} of probes over {flows}. {LOSS_NOTE}")];
    parts.extend(remarks(hops, route));
    parts.join(" ")
}

fn cells(hop: &PathHop) -> Vec<TableCell> {
    let share = |value: Option<f64>| value.map_or(TableCell::Nothing, |share| TableCell::Value(Quantity::share(share)));
    let loss = match hop.replies {
        Some(HopReplies::Complete | HopReplies::Lossy) => share(hop.unanswered),
        _ => TableCell::Nothing,
    };
    let time = |value: Option<Quantity>| value.map_or(TableCell::Nothing, TableCell::Value);
    let rtt = hop.rtt.as_ref();
    let [median, best, worst] = [rtt.map(|rtt| rtt.median), rtt.map(|rtt| rtt.min), rtt.map(|rtt| rtt.max)]
        .map(|value| time(value.map(Quantity::duration)));
    vec![
        TableCell::Text(address(hop)),
        share(hop.unanswered),
        loss,
        median,
        best,
        worst,
        time(hop.jitter_ns.map(Quantity::nanoseconds)),
    ]
}

/// Addresses, each with its flows where there are several, its name, autonomous system and labels.
fn address(hop: &PathHop) -> String {
    if hop.addresses.is_empty() {
        return hop.address.clone().unwrap_or_else(|| "*".to_owned());
    }
    let has_branches = hop.addresses.len() > 1;
    let lines = hop.addresses.iter().flat_map(|one| address_lines(one, has_branches));
    lines.collect::<Vec<_>>().join("\n")
}

fn address_lines(one: &HopAddress, has_branches: bool) -> Vec<String> {
    let mut lines = vec![one.address.clone()];
    if has_branches {
        let flows: Vec<String> = one.flows.iter().map(u16::to_string).collect();
        lines.push(format!("  flows {}", flows.join(" ")));
    }
    lines.extend(one.name.iter().map(|name| format!("  {name}")));
    lines.extend(one.autonomous_system.iter().map(|system| {
        let holder = system.holder.as_deref().map_or_else(String::new, |holder| format!(" {holder}"));
        format!("  AS{}{holder}", system.number)
    }));
    let label = |label: &MplsLabel| format!("  MPLS {} TTL {}", label.label, label.time_to_live);
    lines.extend(one.mpls.iter().map(label));
    lines
}

/// Table of a document from before routes were measured.
fn old_table(document: &PathDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("hops", "Hops", &["Distance", "Address", "min", "median", "p95"]);
    for hop in &document.hops {
        let unknown = || TableCell::Unknown(NO_REPLY.to_owned());
        let address = hop.address.clone().map_or_else(unknown, TableCell::Text);
        let times =
            hop.rtt.map(|rtt| [rtt.min, rtt.median, rtt.p95].map(|time| TableCell::Value(Quantity::duration(time))));
        let times = times.unwrap_or_else(|| [unknown(), unknown(), unknown()]);
        table.push_row(hop.distance.to_string(), [address].into_iter().chain(times).collect());
    }
    table.non_empty()
}

/// Links at which the path MTU falls.
pub(super) fn mtu_table(document: &PathDocument) -> Option<ReportTable> {
    let mut table =
        ReportTable::new("mtu_drops", "Path MTU by hop", &["Behind hop", "Before", "From there", "Reported by"]);
    for drop in document.route.iter().flat_map(|route| &route.mtu_drops) {
        let unknown = || TableCell::Unknown("the size was not searched".to_owned());
        let reporter = drop.reporter.clone().unwrap_or_else(|| "no router: a black hole".to_owned());
        let to = drop.to_bytes.map_or_else(unknown, |bytes| TableCell::Value(Quantity::bytes(bytes)));
        let cells = vec![TableCell::Value(Quantity::bytes(drop.from_bytes)), to, TableCell::Text(reporter)];
        table.push_row(drop.after.to_string(), cells);
    }
    table.non_empty()
}

/// Round trips of the hops as bars; `None` for fewer than two.
pub(super) fn chart<'a>(document: &PathDocument) -> Option<Chart<'a>> {
    document.route.as_ref()?;
    let known: Vec<(&PathHop, _)> = document.hops.iter().filter_map(|hop| Some((hop, hop.rtt?))).collect();
    let row = |(hop, rtt): &(&PathHop, linerate_model::summary::DurationDistribution)| BarGroup {
        label: format!("{} {}", hop.distance, hop.address.as_deref().unwrap_or_default()),
        bars: vec![(Some(rtt.median.as_secs_f64() * 1e9), None), (Some(rtt.max.as_secs_f64() * 1e9), None)],
    };
    let text = |(hop, rtt): &(&PathHop, linerate_model::summary::DurationDistribution)| {
        format!("hop {} {}", hop.distance, Quantity::duration(rtt.median).display_text())
    };
    (known.len() > 1).then(|| Chart {
        name: "hops".to_owned(),
        title: "Round trip by hop".to_owned(),
        summary: format!("Median round trip: {}.", known.iter().map(text).collect::<Vec<_>>().join("; ")),
        plot: ChartPlot::Bars(BarChart {
            unit: FigureUnit::Nanoseconds,
            legend: vec!["median".to_owned(), "worst".to_owned()],
            rows: known.iter().map(row).collect(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::route::AutonomousSystem;

    use super::*;

    fn limited() -> PathHop {
        let one = |address: &str, flows: &[u16]| HopAddress {
            address: address.to_owned(),
            flows: flows.to_vec(),
            ..HopAddress::default()
        };
        PathHop {
            distance: 2,
            unanswered: Some(0.6),
            replies: Some(HopReplies::Limited),
            addresses: vec![one("192.0.2.1", &[1, 3]), one("192.0.2.2", &[2])],
            ..PathHop::default()
        }
    }

    #[test]
    fn a_limit_of_answers_has_no_loss() {
        let cells = cells(&limited());
        let texts: Vec<_> = cells.iter().map(|cell| cell.display_text().into_owned()).collect();
        assert_eq!(texts[..3], ["192.0.2.1\n  flows 1 3\n192.0.2.2\n  flows 2", "60.0 %", "–"]);
        let lossy = super::cells(&PathHop { replies: Some(HopReplies::Lossy), ..limited() });
        assert_eq!(lossy[2].display_text(), "60.0 %");
    }

    #[test]
    fn labels_follow_their_address() {
        let system = AutonomousSystem { number: 64_500, holder: Some("EXAMPLE".to_owned()) };
        let label = MplsLabel { label: 24_015, traffic_class: 0, time_to_live: 1 };
        let one = HopAddress {
            address: "192.0.2.1".to_owned(),
            name: Some("r1.example".to_owned()),
            autonomous_system: Some(system),
            mpls: vec![label],
            ..HopAddress::default()
        };
        let expected = ["192.0.2.1", "  r1.example", "  AS64500 EXAMPLE", "  MPLS 24015 TTL 1"];
        assert_eq!(address_lines(&one, false), expected);
    }
}
