//! A direction of a link as lines for the device that sends in it, instead of for a wire between the hosts.

use core::time::Duration;

use linerate_analysis::formulas::SegmentFraming;

use super::netem;
use super::queue::{self, QueueContext};
use super::wire;
use crate::description::{LinkDirection, PathDescription};

/// Handle of the first stage of delays and losses, at the root.
const FIRST: &str = "1:";
/// Handle of the stage in which packets overtake.
const SECOND: &str = "2:";

/// Lines of `tc` that give what `device` sends the properties of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderLines {
    /// Set-up, in order.
    pub(crate) lines: Vec<String>,
    /// Changes of the rate: time after the set-up, and line.
    pub(crate) changes: Vec<(Duration, String)>,
    /// Time after which the changes begin again.
    pub(crate) period: Option<Duration>,
    /// Properties that a sending device cannot have.
    pub(crate) missing: Vec<&'static str>,
}

impl SenderLines {
    /// Lines for `device`, which sends in direction `direction` of the link `link`.
    pub(crate) fn of(path: &PathDescription, link: usize, direction: &LinkDirection, device: &str) -> Self {
        let mut sender = Self::default();
        sender.filters(path, direction, device);
        // Of two netem in one tree, none may duplicate (Linux 6.16).
        let mut wanted = direction.clone();
        if wanted.reorder.is_some() && wanted.duplicate.take().is_some() {
            sender.missing.push("duplicates, as packets overtake each other, too");
        }
        let mtu = path.links[link].mtu;
        let mut parent = format!("root handle {FIRST} {}", netem::size_table(direction.layer, mtu));
        let shaped = queue::is_needed(direction);
        if shaped {
            wanted.rate = None;
        }
        if let Some((stage, _)) = netem::stage(&wanted) {
            sender.lines.push(format!("qdisc replace dev {device} {parent}{stage}"));
            parent = format!("parent {FIRST}1 handle {SECOND} ");
        }
        if let Some(reorder) = wanted.reorder {
            sender.add(device, &parent, &netem::reorder_stage(reorder));
            parent = format!("parent {}1 handle 3: ", parent_handle(&parent));
        }
        if let Some(rate) = direction.counted_rate().filter(|_| shaped) {
            let largest = direction.layer.counted(mtu.byte_count());
            let place = QueueContext { direction, rate, round_trip: path.propagation(), mtu, largest };
            sender.add(device, &parent, &queue::shaper(place, rate));
            if let Some(inner) = queue::discipline(place) {
                let handle = parent_handle(&parent);
                sender.lines.push(format!("qdisc add dev {device} parent {handle}1 handle 100: {inner}"));
            }
            let change = |rate| format!("qdisc change dev {device} {parent}{}", queue::shaper(place, rate));
            let steps = direction.steps.iter();
            sender.changes = steps.map(|step| (step.at, change(direction.layer.counted_rate(step.rate)))).collect();
            sender.period = direction.steps_period.filter(|_| direction.steps.len() > 1);
        }
        sender
    }

    fn add(&mut self, device: &str, parent: &str, discipline: &str) {
        let verb = if parent.starts_with("root") { "replace" } else { "add" };
        self.lines.push(format!("qdisc {verb} dev {device} {parent}{discipline}"));
    }

    /// Filters in front of the queues. A device that sends counts the Ethernet header.
    fn filters(&mut self, path: &PathDescription, direction: &LinkDirection, device: &str) {
        let mut counted = direction.clone();
        if let Some(size) = &mut counted.drop_larger_than {
            *size += SegmentFraming::ETHERNET_HEADER;
        }
        let filters = wire::filters(path, &counted);
        if !filters.is_empty() {
            self.lines.push(format!("qdisc replace dev {device} clsact"));
        }
        self.lines.extend(filters.iter().map(|filter| format!("filter add dev {device} egress {filter}")));
    }
}

/// Handle that a place gives to its discipline.
fn parent_handle(place: &str) -> &str {
    place.split("handle ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or(FIRST)
}
