//! Verdict on a path in one sentence.

use linerate_model::header_mark::HeaderMark;
use linerate_model::path::{MarkFate, PathDirection, PathDocument, PeerKind};
use linerate_units::{BitRate, display};

use super::route;

/// Capacity and round trip, then the problems.
pub fn sentence(document: &PathDocument) -> String {
    if let Some(route) = document.route.as_ref().filter(|_| document.is_route_only()) {
        return route::sentence(&document.hops, route);
    }
    let mut parts = Vec::new();
    for (name, end) in [("up", &document.up), ("down", &document.down)] {
        push_problems(&mut parts, name, end);
    }
    // A few probes of each hop say less of losses than the probe packets do.
    parts.extend(document.route.iter().flat_map(route::mtu_drops));
    let carries = carries(document);
    let trouble = match parts.len() {
        0 if has_order(document) => "no losses, no reordering".to_owned(),
        0 => String::new(),
        _ => parts.join("; "),
    };
    match (carries.is_empty(), trouble.is_empty()) {
        (true, true) => "Nothing could be measured.".to_owned(),
        (false, true) => format!("{carries}."),
        (true, false) => format!("{}.", upper_first(&trouble)),
        (false, false) => format!("{carries}: {trouble}."),
    }
}

/// True when losses and order are known of what was sent.
fn has_order(document: &PathDocument) -> bool {
    let is_known = |end: &PathDirection| end.packets.as_ref().is_some_and(|packets| packets.reordering.is_some());
    match document.peer {
        PeerKind::Linerate => document.up.packets.is_some(),
        PeerKind::StampSender => is_known(&document.down),
        _ => document.is_stream_only() && is_known(&document.up) && is_known(&document.down),
    }
}

/// Rates at which a stream arrived, or was sent where that is unknown.
fn streamed(document: &PathDocument) -> Vec<String> {
    let shown = |rate: f64| display::rate(BitRate::from_bits_per_second(rate));
    let ends = [("up", "arrival unknown", &document.up), ("down", "none arrived", &document.down)];
    let part = |(name, none, end): (&str, &str, &PathDirection)| {
        let packets = end.packets.as_ref()?;
        let sent = packets.sent_bits_per_second;
        let arrived = packets.received_bits_per_second.map(|rate| format!("{} arrived {name}", shown(rate)));
        arrived.or_else(|| Some(format!("{} sent {name}, {none}", shown(sent?))))
    };
    ends.into_iter().filter_map(part).collect()
}

fn carries(document: &PathDocument) -> String {
    let rate = |end: &PathDirection| {
        let capacity = end.capacity.as_ref()?;
        let rate = display::rate(BitRate::from_bits_per_second(capacity.bits_per_second));
        Some(if capacity.at_least { format!("at least {rate}") } else { rate })
    };
    let mut parts = if document.is_stream_only() { streamed(document) } else { Vec::new() };
    parts.extend(rate(&document.up).map(|rate| format!("{rate} up")));
    parts.extend(rate(&document.down).map(|rate| format!("{rate} down")));
    let rtt = document.rtt.best.as_ref();
    let round_trip = rtt.map(|rtt| format!("round trip {}", display::duration(rtt.median)));
    parts.extend(round_trip);
    upper_first(&parts.join(", "))
}

fn upper_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn push_problems(parts: &mut Vec<String>, name: &str, end: &PathDirection) {
    if let Some(hole) = end.mtu.as_ref().and_then(|mtu| mtu.black_hole_bytes) {
        parts.push(format!("packets of {hole} B and more are dropped without an ICMP error {name}"));
    }
    if let Some(policer) = end.policer.as_ref().filter(|policer| policer.present) {
        let rate = policer.bits_per_second.map(|rate| display::rate(BitRate::from_bits_per_second(rate)));
        parts.push(format!("a policer limits the rate to {} {name}", rate.unwrap_or_else(|| "less".to_owned())));
    }
    let Some(packets) = &end.packets else { return };
    let share = |share: f64| format!("{} %", significant(share * 100.0));
    if let Some(loss) = packets.loss.filter(|loss| *loss > 0.0) {
        parts.push(format!("{} of packets lost {name}", share(loss)));
    }
    if let Some(duplication) = packets.duplication.filter(|duplication| *duplication > 0.0) {
        parts.push(format!("{} duplicated {name}", share(duplication)));
    }
    if let Some(reordering) = packets.reordering.filter(|reordering| *reordering > 0.0) {
        parts.push(format!("{} reordered {name}", share(reordering)));
    }
    parts.extend(end.marks.iter().flat_map(|marks| ecn_changes(&marks.ecn)).map(|change| format!("{change} {name}")));
}

/// Changes of ECN codepoints by the path; marks of congestion, which queues make, are none.
fn ecn_changes(marks: &[MarkFate]) -> Vec<String> {
    let arrived = marks.iter().filter(|mark| mark.sent > 0 && mark.arrived.is_some());
    if arrived.clone().count() > 1 && arrived.clone().all(|mark| mark.arrived == Some(0)) {
        return vec!["ECN marks are cleared".to_owned()];
    }
    let changed = |mark: &&MarkFate| mark.arrived != Some(mark.sent) && (mark.sent == 0 || mark.arrived != Some(CE));
    arrived
        .filter(changed)
        .filter_map(|mark| Some(format!("{} arrives as {}", mark.name, codepoint(mark.arrived?))))
        .collect()
}

/// Congestion experienced (RFC 3168 §5).
const CE: u8 = 3;

/// Name of an ECN codepoint.
pub(crate) fn codepoint(bits: u8) -> &'static str {
    HeaderMark::ALL.get(usize::from(bits & 3)).map_or("", |mark| mark.name())
}

/// Formats a value with two significant digits.
fn significant(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        format!("{value:.1}")
    } else if value >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_codepoints_are_named_and_marks_of_queues_are_none() {
        for (arrived, expected) in [
            ([Some(0), Some(1), Some(2), Some(3)], vec![]),
            ([Some(0), Some(3), Some(3), Some(3)], vec![]),
            ([Some(0), Some(0), Some(0), Some(0)], vec!["ECN marks are cleared"]),
            ([Some(0), Some(2), Some(2), Some(3)], vec!["ECT(1) arrives as ECT(0)"]),
            ([Some(0), Some(0), Some(2), Some(3)], vec!["ECT(1) arrives as Not-ECT"]),
            ([Some(0), Some(1), Some(1), Some(0)], vec!["ECT(0) arrives as ECT(1)", "CE arrives as Not-ECT"]),
            ([Some(0), None, Some(2), None], vec![]),
        ] {
            let fate = |(mark, arrived): (&HeaderMark, Option<u8>)| MarkFate {
                name: *mark,
                sent: mark.octet().get(),
                arrived,
            };
            let marks: Vec<MarkFate> = HeaderMark::ALL.iter().zip(arrived).map(fate).collect();
            assert_eq!(ecn_changes(&marks), expected, "{arrived:?}");
        }
    }
}
