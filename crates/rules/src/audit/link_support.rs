//! What the rules about devices, counters and programs share: findings, changes, and made-up hosts.

use linerate_model::change::{Change, Group, Reason, TakesEffect, Target};
use linerate_model::environment::QueueStatistics;
use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::counters::ProtocolCounters;
use linerate_model::host::link::{Discipline, Link, LinkCounters, LinkState, Offload};
use linerate_model::host::processors::ProcessorSet;
use linerate_model::host::settings::{Setting, Writing};
use linerate_units::{BitRate, Mtu, PacketCount, Ratio};

/// What a rule says about something that is no setting.
#[derive(Debug)]
pub(super) struct Saying {
    /// The rule and its source.
    pub rule: (&'static str, &'static str),
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub subject: String,
    /// What is wrong, with the figures.
    pub text: String,
    /// What was read.
    pub evidence: Vec<String>,
    /// Commands.
    pub remedy: Vec<String>,
    /// What may speak against it.
    pub risk: &'static str,
}

impl Saying {
    /// A finding whose remedy is somebody's hands.
    pub(super) fn finding(self) -> Finding {
        Finding {
            rule: self.rule.0.to_owned(),
            severity: self.severity,
            subject: self.subject,
            text: self.text,
            evidence: self.evidence,
            source: self.rule.1.to_owned(),
            risk: self.risk.to_owned(),
            remedy: self.remedy,
            change: None,
        }
    }

    /// A finding with a change that linerate itself can make.
    pub(super) fn with_change(self, edit: Edit) -> Finding {
        let reason = Reason {
            rule: self.rule.0.to_owned(),
            text: self.text.clone(),
            arithmetic: edit.arithmetic,
            evidence: self.evidence.clone(),
            risk: self.risk.to_owned(),
        };
        let change = Change {
            target: edit.target,
            from: Some(edit.from),
            to: edit.to,
            group: edit.group,
            takes_effect: edit.takes_effect,
            reason,
        };
        Finding { change: Some(change), ..self.finding() }
    }
}

/// The change of a finding.
#[derive(Debug)]
pub(super) struct Edit {
    /// Where.
    pub target: Target,
    /// What stands there.
    pub from: String,
    /// What is to stand there.
    pub to: String,
    /// Its group.
    pub group: Group,
    /// When it takes effect.
    pub takes_effect: TakesEffect,
    /// The formula with its inputs, if something was computed.
    pub arithmetic: Option<String>,
}

/// Interfaces that packets can pass through: switched on, and not known to be without a link. The loopback device is left
/// out.
pub(super) fn working(host: &HostFacts) -> impl Iterator<Item = &Link> {
    host.interfaces.iter().filter(|link| {
        let is_down = matches!(link.state, LinkState::Down | LinkState::NotPresent | LinkState::LowerLayerDown);
        link.is_up && !link.is_loopback && !is_down
    })
}

/// The packets that an interface received; `None` when nobody counted.
pub(super) fn received(link: &Link) -> Option<PacketCount> {
    link.counters.map(|counters| counters.passed.received.packets)
}

/// A part of a whole as words: `12 of 3000 (0.4 %)`.
pub(super) fn part_of(part: u64, whole: u64) -> String {
    share(part, whole).map_or_else(|| part.to_string(), |share| format!("{part} of {whole} ({share})"))
}

/// The share that a count has of another; `None` of none. Counts that overlap only in part may give more than all.
pub(super) fn share(part: u64, whole: u64) -> Option<Ratio> {
    PacketCount::new(part).share_of(PacketCount::new(whole))
}

/// Whether a count is more than this share of another. Of nothing, every count is.
pub(super) fn exceeds(part: u64, whole: u64, limit: f64) -> bool {
    part > 0 && share(part, whole).is_none_or(|share| share.get() >= limit)
}

/// How grave a counter is that has grown since the boot: a handful is worth a note, more than this share a warning.
pub(super) fn by_share(part: u64, whole: u64, limit: f64) -> Severity {
    if exceeds(part, whole, limit) { Severity::Warning } else { Severity::Note }
}

/// A counter of the protocols; 0 where this kernel does not have it, as a counter that nobody keeps shows nothing.
pub(super) fn counter(host: &HostFacts, name: &str) -> u64 {
    host.counters.protocol.known().and_then(|all| all.get(name)).unwrap_or(0)
}

/// Counters as evidence: `TcpExtTCPRcvCollapsed = 7 so far`, which is since the boot or since the namespace was made.
pub(super) fn counted(name: &str, value: u64) -> String {
    format!("{name} = {value} so far")
}

/// Counters of a driver whose names contain one of these parts, as sum and as evidence, the largest first.
pub(super) fn driver_counters(link: &Link, is_meant: impl Fn(&str) -> bool) -> (u64, Vec<String>) {
    let all = link.driver_counters.known().into_iter().flatten();
    let mut found: Vec<(&String, u64)> =
        all.filter(|(name, value)| **value > 0 && is_meant(name)).map(|(name, value)| (name, *value)).collect();
    found.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    let sum = found.iter().fold(0_u64, |sum, (_, value)| sum.saturating_add(*value));
    // Some drivers have a set for each of a hundred queues.
    let shown = found.iter().take(4).map(|(name, value)| format!("{}: {name} = {value}", link.name));
    (sum, shown.collect())
}

/// The most established connections that are seen now (`/proc/net/sockstat`: `TCP inuse`).
pub(super) fn connections(host: &HostFacts) -> Option<u64> {
    host.counters.sockets.known()?.get("TCP inuse").copied()
}

/// An interface at 10 Gbit/s that works.
pub(super) fn link(name: &str) -> Link {
    Link {
        name: name.to_owned(),
        index: 2,
        is_up: true,
        state: LinkState::Up,
        mtu: Some(Mtu::new(1500)),
        speed: Fact::Known(BitRate::from_bits_per_second(1e10)),
        counters: Some(LinkCounters::default()),
        ..Link::default()
    }
}

/// The same with these packets received.
pub(super) fn link_that_received(packets: u64) -> Link {
    let mut counters = LinkCounters::default();
    counters.passed.received.packets = PacketCount::new(packets);
    Link { counters: Some(counters), ..link("eth0") }
}

/// A link with one offload in this state.
pub(super) fn link_with_offload(name: &str, active: bool) -> Link {
    let offload = Offload { active, wanted: active, changeable: true };
    Link { offloads: Fact::Known([(name.to_owned(), offload)].into()), ..link("eth0") }
}

/// A link whose root is a discipline of this kind, made by the kernel.
pub(super) fn link_with_queueing(kind: &str, dropped: u64) -> Link {
    let statistics = QueueStatistics {
        packets: PacketCount::new(1_000_000),
        dropped: PacketCount::new(dropped),
        ..QueueStatistics::default()
    };
    let root = Discipline {
        kind: kind.to_owned(),
        handle: "0:".to_owned(),
        statistics: Some(statistics),
        ..Discipline::default()
    };
    Link { queueing: Fact::Known(vec![root]), ..link("eth0") }
}

/// A host with these interfaces, of which nothing else is known.
pub(super) fn host_with(interfaces: Vec<Link>) -> HostFacts {
    HostFacts { interfaces, ..HostFacts::default() }
}

/// A host of which only counters of the protocols are known.
pub(super) fn host_that_counted(counters: &[(&str, u64)]) -> HostFacts {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let mut host = HostFacts::default();
    host.counters.protocol = Fact::Known(ProtocolCounters(counters));
    host
}

/// The host with a setting more.
pub(super) fn and_setting(mut host: HostFacts, key: &str, value: &str) -> HostFacts {
    let setting = Setting { value: Fact::Known(value.to_owned()), writing: Writing::Possible };
    host.settings.values.insert(key.to_owned(), setting);
    host
}

/// A list of processors; empty if it is no list.
pub(super) fn processors(list: &str) -> ProcessorSet {
    ProcessorSet::parse_list(list).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_counts() {
        assert_eq!((part_of(12, 3000), part_of(3, 0)), ("12 of 3000 (0.4 %)".to_owned(), "3".to_owned()));
        assert!(exceeds(1, 1000, 1e-3) && !exceeds(1, 1001, 1e-3) && !exceeds(0, 0, 1e-3) && exceeds(1, 0, 1e-3));
        assert_eq!((by_share(1, 10, 0.1), by_share(1, 11, 0.1)), (Severity::Warning, Severity::Note));
    }

    #[test]
    fn links_without_carrier_do_not_work() {
        let down = Link { state: LinkState::Down, ..link("eth1") };
        let off = Link { is_up: false, ..link("eth2") };
        let host = host_with(vec![link("eth0"), down, off]);
        assert_eq!(working(&host).map(|link| link.name.as_str()).collect::<Vec<_>>(), ["eth0"]);
    }

    #[test]
    fn counters_of_drivers_are_summed_and_the_largest_shown() {
        let names = ["rx0_drops", "rx1_drops", "rx2_drops", "rx3_drops", "rx4_drops", "tx_pause"];
        let all = names.iter().zip(1..).map(|(name, value)| ((*name).to_owned(), value)).collect();
        let link = Link { driver_counters: Fact::Known(all), ..link("eth0") };
        let (sum, shown) = driver_counters(&link, |name| name.contains("drops"));
        assert_eq!((sum, shown.len(), shown[0].as_str()), (15, 4, "eth0: rx4_drops = 5"));
    }
}
