//! Statements about a route: its loss, the links at which the path MTU falls, routes of equal cost, changes.

use linerate_documents::civil_time;
use linerate_model::route::{HopReplies, MtuDrop, PathHop, RouteReport};
use linerate_units::{Ratio, display};

/// Problems of the path, most important first.
#[must_use]
pub fn problems(route: &RouteReport) -> Vec<String> {
    let mut parts: Vec<String> = loss(route).into_iter().collect();
    parts.extend(mtu_drops(route));
    parts
}

/// Links at which the path MTU falls.
pub(super) fn mtu_drops(route: &RouteReport) -> impl Iterator<Item = String> {
    route.mtu_drops.iter().map(mtu_drop)
}

/// Loss to the destination and back, and the hop from which on it persists; `None` without loss.
fn loss(route: &RouteReport) -> Option<String> {
    let share = route.loss.filter(|loss| *loss > 0.0)?;
    let from = route.loss_from.map_or_else(String::new, |hop| format!(" from hop {hop} on"));
    Some(format!("{} of probes lost{from}", percent(share)))
}

fn mtu_drop(drop: &MtuDrop) -> String {
    let hop = if drop.after == 0 { "at this host".to_owned() } else { format!("after hop {}", drop.after) };
    match (&drop.reporter, drop.to_bytes) {
        (Some(_), Some(bytes)) => format!("the path MTU falls from {} to {bytes} B {hop}", drop.from_bytes),
        (Some(_), None) => format!("packets of {} B are too large {hop}", drop.from_bytes),
        (None, _) => format!("packets of {} B vanish {hop} without an ICMP error", drop.from_bytes),
    }
}

/// Facts about hops that are no problems of the path.
#[must_use]
pub fn remarks(hops: &[PathHop], route: &RouteReport) -> Vec<String> {
    let of = |wanted: HopReplies| {
        let with = hops.iter().filter(|hop| hop.replies == Some(wanted)).map(|hop| hop.distance.to_string());
        with.collect::<Vec<_>>()
    };
    let mut remarks = Vec::new();
    let limited = of(HopReplies::Limited);
    if let [first, ..] = &limited[..] {
        let answers = if limited.len() == 1 {
            format!("Hop {first} answers")
        } else {
            format!("Hops {} answer", limited.join(", "))
        };
        remarks.push(format!(
            "{answers} only some probes, and later hops lose less: a limit of ICMP errors, not loss of the path."
        ));
    }
    let undecided = of(HopReplies::Undecided);
    if !undecided.is_empty() {
        let all = undecided.join(", ");
        remarks.push(format!(
            "Hop {all}: no later hop shows whether it limits ICMP errors or the path loses packets there."
        ));
    }
    let branches = hops.iter().filter(|hop| hop.addresses.len() > 1);
    remarks.extend(branches.map(|hop| {
        format!("Hop {} has {} addresses: routes of equal cost, chosen by flow.", hop.distance, hop.addresses.len())
    }));
    remarks.extend(route.changes.iter().map(|change| {
        let time = civil_time::of_unix_ns(change.at_unix_ns);
        let (hop, flow) = (change.distance, change.flow);
        format!("Hop {hop} changed from {} to {} at {time} (flow {flow}).", change.before, change.after)
    }));
    remarks
}

/// Result of a measurement of hops alone.
#[must_use]
pub fn sentence(hops: &[PathHop], route: &RouteReport) -> String {
    let end = hops.last();
    let reached = if route.is_reached { "" } else { " without the destination" };
    let mut parts = vec![format!("{}{reached}", display::counted(hops.len(), "hop"))];
    let rtt = end.filter(|_| route.is_reached).and_then(|end| end.rtt.as_ref());
    parts.extend(rtt.map(|rtt| format!("round trip {}", display::duration(rtt.median))));
    let mut problems = problems(route);
    if route.loss == Some(0.0) {
        problems.insert(0, "no loss".to_owned());
    }
    let head = parts.join(", ");
    if problems.is_empty() { format!("{head}.") } else { format!("{head}: {}.", problems.join("; ")) }
}

/// A share, as the tables have it.
fn percent(share: f64) -> String {
    Ratio::new(share).map(display::percent).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(distance: u8, replies: HopReplies) -> PathHop {
        PathHop { distance, replies: Some(replies), ..PathHop::default() }
    }

    #[test]
    fn a_limit_is_no_loss() {
        let route = RouteReport { is_reached: true, loss: Some(0.0), ..RouteReport::default() };
        let hops = [hop(1, HopReplies::Complete), hop(2, HopReplies::Limited), hop(3, HopReplies::Complete)];
        assert_eq!(sentence(&hops, &route), "3 hops: no loss.");
        let expected =
            "Hop 2 answers only some probes, and later hops lose less: a limit of ICMP errors, not loss of the path.";
        assert_eq!(remarks(&hops, &route), [expected]);
    }

    #[test]
    fn loss_and_mtu_name_their_hop() {
        let reported =
            MtuDrop { after: 2, from_bytes: 1500, to_bytes: Some(1400), reporter: Some("192.0.2.1".to_owned()) };
        let silent = MtuDrop { reporter: None, ..reported.clone() };
        let route = RouteReport {
            loss: Some(0.1),
            loss_from: Some(3),
            mtu_drops: vec![reported, silent],
            ..RouteReport::default()
        };
        let expected = [
            "10.0 % of probes lost from hop 3 on",
            "the path MTU falls from 1500 to 1400 B after hop 2",
            "packets of 1500 B vanish after hop 2 without an ICMP error",
        ];
        assert_eq!(problems(&route), expected);
    }
}
