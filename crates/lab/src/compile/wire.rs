//! The wire: for each direction of each link, filters where packets arrive, then one stage after the other.
//!
//! A stage is a device with queueing disciplines; packets that leave it appear at the device's peer, from where a
//! filter redirects them to the next. Between hosts, only unicast packets pass: multicast to all neighbours would be
//! counted, delayed and lost like other packets, and change the measurement.

use core::time::Duration;

use linerate_units::{ByteCount, CompactSort, PacketCount};

use super::address::{self, LinkEnd};
use super::queue::{self, QueueContext};
use super::{has_offloads, netem, seed};
use crate::description::{LinkDirection, LinkLayer, LossModel, PathDescription, count_factors};
use crate::plan::{DevicePair, DevicePairEnd, NamespacePlan, NetemSeed, PlanChange, SysctlSetting, WIRE};

/// The largest super-packet, with its segments' headers.
const SUPER_PACKET: ByteCount = ByteCount::new(69_986);

/// Namespace of the wire, all pairs of devices, and later changes in chronological order.
pub(super) fn wire(path: &PathDescription) -> (NamespacePlan, Vec<DevicePair>, Vec<PlanChange>) {
    let mut wire = WireBuilder {
        path,
        ip: vec!["link set dev lo up".to_owned()],
        tc: Vec::new(),
        seeds: Vec::new(),
        pairs: Vec::new(),
        changes: Vec::new(),
    };
    for link in path.link_indices() {
        wire.link(link);
    }
    let sysctls = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
    let namespace = NamespacePlan {
        name: WIRE.to_owned(),
        sysctls: sysctls.map(|key| SysctlSetting { key: key.to_owned(), value: "1".to_owned() }).into(),
        without_offloads: Vec::new(),
        ip: wire.ip,
        tc: wire.tc,
        seeds: wire.seeds,
        server: None,
    };
    wire.changes.sort_compactly_by_key(|change| change.at_milliseconds);
    (namespace, wire.pairs, wire.changes)
}

/// Parts collected so far.
struct WireBuilder<'a> {
    path: &'a PathDescription,
    ip: Vec<String>,
    tc: Vec<String>,
    seeds: Vec<NetemSeed>,
    pairs: Vec<DevicePair>,
    changes: Vec<PlanChange>,
}

/// The hardware addresses of a link's devices, after the hosts' 1 and 2.
const WIRE_NEAR: u8 = 0x0a;
const WIRE_FAR: u8 = 0x0b;

impl WireBuilder<'_> {
    fn link(&mut self, link: usize) {
        for (end, number) in [(LinkEnd::Near, WIRE_NEAR), (LinkEnd::Far, WIRE_FAR)] {
            let device = self.device(link, end_device(link, end), number);
            self.pairs.push(DevicePair { a: address::host_end(self.path, link, end), b: device });
        }
        // Both ends first: a filter can only name an existing device, with its hook for filters.
        for end in [LinkEnd::Near, LinkEnd::Far] {
            self.tc.push(format!("qdisc add dev {} clsact", end_device(link, end)));
        }
        self.direction(link, LinkEnd::Near);
        self.direction(link, LinkEnd::Far);
    }

    /// A device of the wire, up and with the link's MTU.
    fn device(&mut self, link: usize, name: String, number: u8) -> DevicePairEnd {
        let mtu = self.path.link(link).mtu;
        self.ip.push(format!("link set dev {name} mtu {mtu}"));
        self.ip.push(format!("link set dev {name} up"));
        DevicePairEnd { namespace: WIRE.to_owned(), device: name, mac: address::mac(link, number) }
    }

    /// Adds everything that packets pass that arrive at the end `from`.
    fn direction(&mut self, link: usize, from: LinkEnd) {
        let path = self.path;
        let direction = match from {
            LinkEnd::Near => &path.link(link).forward,
            LinkEnd::Far => &path.link(link).backward,
        };
        let mut at = end_device(link, from);
        self.filters(&at, direction);
        if let Some(rate) = direction.counted_rate().filter(|_| queue::is_needed(direction)) {
            let stage = self.stage(link, from, "queue", &mut at);
            let mtu = path.link(link).mtu;
            let largest = self.largest_packet(link, direction);
            let place = QueueContext { direction, rate, round_trip: path.propagation(), mtu, largest };
            self.tc.extend(queue::lines(&stage, place));
            let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let period = direction.steps_period.filter(|_| direction.steps.len() > 1);
            self.changes.extend(direction.steps.iter().map(|step| PlanChange {
                namespace: WIRE.to_owned(),
                at_milliseconds: milliseconds(step.at),
                repeat_milliseconds: period.map(milliseconds),
                tc: queue::rate_change(&stage, place, direction.layer.counted_rate(step.rate)),
            }));
        }
        let last = end_device(link, from.other());
        if let Some(reorder) = direction.reorder {
            if let Some((words, is_random)) = netem::stage(direction) {
                let stage = self.stage(link, from, "delay", &mut at);
                self.netem((link, from), &stage, &words, (direction.layer, is_random.then_some(0)));
            }
            self.netem((link, from), &last, &netem::reorder_stage(reorder), (LinkLayer::VIRTUAL_ETHERNET, Some(1)));
        } else if let Some((words, is_random)) = netem::stage(direction) {
            self.netem((link, from), &last, &words, (direction.layer, is_random.then_some(0)));
        }
        self.redirect(&at, &last);
    }

    /// Adds a stage: packets at `at` go to its device, whose name is returned, and come out at its peer, which `at`
    /// becomes.
    fn stage(&mut self, link: usize, from: LinkEnd, kind: &str, at: &mut String) -> String {
        let direction = format!("{}{}", from.letter(), from.other().letter());
        let name = format!("l{link}-{direction}-{kind}");
        let peer = format!("l{link}-{direction}-after-{}", &kind[..1]);
        let number = match (from, kind) {
            (LinkEnd::Near, "queue") => 0x10,
            (LinkEnd::Near, _) => 0x12,
            (LinkEnd::Far, "queue") => 0x20,
            (LinkEnd::Far, _) => 0x22,
        };
        let a = self.device(link, name.clone(), number);
        let b = self.device(link, peer.clone(), number + 1);
        self.pairs.push(DevicePair { a, b });
        self.redirect(at, &name);
        self.tc.push(format!("qdisc add dev {peer} clsact"));
        *at = peer;
        name
    }

    fn redirect(&mut self, from: &str, to: &str) {
        self.tc.push(format!(
            "filter add dev {from} ingress prio 9 protocol all matchall action mirred egress redirect dev {to}"
        ));
    }

    /// A `netem` at the root of `device` that counts packets as `layer` does, with a seed for its stage when it is random.
    fn netem(
        &mut self,
        (link, from): (usize, LinkEnd),
        device: &str,
        words: &str,
        (layer, random_stage): (LinkLayer, Option<u8>),
    ) {
        let sizes = netem::size_table(layer, self.path.link(link).mtu);
        self.tc.push(format!("qdisc add dev {device} root handle 1: {sizes}{words}"));
        if let Some(stage) = random_stage {
            let seed = seed::stage_seed(self.path.seed, link, from, stage);
            self.seeds.push(NetemSeed { device: device.to_owned(), handle: "1:".to_owned(), seed });
        }
    }

    /// Adds the filters before any queue.
    fn filters(&mut self, device: &str, direction: &LinkDirection) {
        // What a host sends to all its neighbours stays away.
        let multicast = "prio 1 protocol ipv6 u32 match u32 0xff000000 0xff000000 at 24 action drop";
        let first = self.path.has_ipv6().then(|| multicast.to_owned());
        for filter in first.into_iter().chain(filters(self.path, direction)) {
            self.tc.push(format!("filter add dev {device} ingress {filter}"));
        }
    }

    /// Largest packet that may pass this link, as its layer counts it.
    fn largest_packet(&self, link: usize, direction: &LinkDirection) -> ByteCount {
        let with_offloads = (0..self.path.hosts.len()).any(|host| has_offloads(self.path, host));
        let size = if with_offloads { SUPER_PACKET } else { self.path.link(link).mtu.byte_count() };
        direction.layer.counted(size)
    }
}

/// Filters of a direction before any queue, in this order: each passes the packets that it does not drop.
pub(super) fn filters(path: &PathDescription, direction: &LinkDirection) -> Vec<String> {
    let mut filters = Vec::new();
    if let Some(policer) = direction.policer {
        let (rate, burst) = (netem::bits(policer.rate), policer.burst.get());
        filters.push(format!(
            "prio 2 protocol all matchall action police rate {rate} burst {burst} mtu 65535 conform-exceed drop/continue"
        ));
    }
    if let Some(size) = direction.drop_larger_than {
        filters.push(format!("prio 3 protocol all basic match meta(pkt_len gt {}) action drop", size.get()));
    }
    if let Some(LossModel::Every(count)) = direction.loss {
        filters.push(format!("prio 4 protocol all matchall {}", every(count)));
    }
    if direction.bleach_ecn {
        let ipv4 =
            "prio 5 protocol ip matchall action pedit ex munge ip tos set 0 retain 0x3 pipe action csum ip continue";
        filters.push(ipv4.to_owned());
        if path.has_ipv6() {
            let ipv6 =
                "prio 6 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0 retain 0x3 continue";
            filters.push(ipv6.to_owned());
        }
    }
    if direction.rewrite_ect1 {
        let ipv4 = "prio 7 protocol ip u32 match ip tos 0x1 0x3 action pedit ex munge ip tos set 2 retain 0x3 pipe \
                    action csum ip continue";
        filters.push(ipv4.to_owned());
        if path.has_ipv6() {
            let ipv6 = "prio 8 protocol ipv6 u32 match ip6 priority 0x1 0x3 action pedit ex munge ip6 traffic_class \
                        set 2 retain 0x3 continue";
            filters.push(ipv6.to_owned());
        }
    }
    filters
}

/// The actions that drop each packet whose number is a multiple of `count`. `tc` counts to 10000: for more, one counter
/// counts what another has counted.
fn every(count: PacketCount) -> String {
    match count_factors(count.get()) {
        Some((_, 1)) | None => format!("action gact continue random determ drop {count}"),
        Some((first, second)) => {
            format!("action gact continue random determ pipe {first} action gact continue random determ drop {second}")
        }
    }
}

/// The wire's device at an end of a link.
fn end_device(link: usize, end: LinkEnd) -> String {
    format!("l{link}{}", end.letter())
}
