//! Sentences on figures that are worse than usual.

use linerate_documents::civil_time;
use linerate_documents::fleet_report::UnusualFigure;
use linerate_documents::run::EnvironmentDifference;
use linerate_model::direction::Direction;

use crate::presentation::Quantity;

/// Largest number of changes that are listed with a figure.
const MAX_CHANGES: usize = 8;

/// Sending and receiving host of a figure's direction; the hosts as they are for one of both.
pub(super) fn ends(unusual: &UnusualFigure) -> [&str; 2] {
    let [source, destination] = [unusual.source.as_str(), unusual.destination.as_str()];
    if unusual.direction == Some(Direction::Down) { [destination, source] } else { [source, destination] }
}

/// Sentence such as `a → b: goodput 400 Mbit/s since 2026-11-26 14:00 (5 results); usually 940 Mbit/s (30 results at any hour)`.
pub(super) fn sentence(unusual: &UnusualFigure) -> String {
    let [from, to] = ends(unusual);
    let arrow = if unusual.direction.is_some() { "→" } else { "↔" };
    let [value, usual] = [unusual.value, unusual.usual].map(|value| Quantity::new(value, unusual.unit).display_text());
    let since = civil_time::of_unix_ns(unusual.since_unix_ns);
    let since = since.get(..16).unwrap_or(&since).replace('T', " ");
    format!(
        "{from} {arrow} {to}: {} {value} since {since} UTC ({} results); usually {usual} ({} results {})",
        unusual.title,
        unusual.count,
        unusual.usual_count,
        unusual.usual_basis.title()
    )
}

/// Changes around the time at which it began; an empty list has a sentence, too.
pub(super) fn changes(unusual: &UnusualFigure) -> String {
    if unusual.changes.is_empty() {
        return "No known fact changed around that time.".to_owned();
    }
    let shown: Vec<String> = unusual.changes.iter().take(MAX_CHANGES).map(change).collect();
    let more = unusual.changes.len().saturating_sub(MAX_CHANGES);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("Changed around that time: {}{more}.", shown.join("; "))
}

fn change(change: &EnvironmentDifference) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    format!("{} {} → {}", title(&change.key), value(&change.before), value(&change.after))
}

/// Name of a fact for people; its key for settings, which have their own names.
fn title(key: &str) -> String {
    let (end, fact) = match key.split_once('.') {
        Some(("near", fact)) => (" of the source", fact),
        Some(("far", fact)) => (" of the destination", fact),
        _ => ("", key),
    };
    let name = match fact {
        "linerate_version" => "linerate",
        "route" => "route",
        "mtu_up_bytes" => "path MTU",
        "mtu_down_bytes" => "path MTU back",
        "kernel" => "kernel",
        "congestion_control" => "congestion control",
        "other_traffic" => "traffic of others at the interface",
        "interface.mtu_bytes" => "MTU of the interface",
        "interface.name" => "interface",
        "interface.queueing_discipline" => "queueing discipline",
        other => other.strip_prefix("sysctls.").unwrap_or(other),
    };
    format!("{name}{end}")
}
