//! Helpers of the rules for devices, counters and programs: findings, changes, and test hosts.

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_model::environment::QueueStatistics;
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::counters::ProtocolCounters;
use linerate_model::host::link::{LinkCounters, LinkState, NetworkLink, OffloadState, QdiscNode};
use linerate_model::host::processors::ProcessorSet;
use linerate_model::host::settings::{KernelSetting, SettingWritability};
use linerate_units::{BitRate, CompactSort, Mtu, PacketCount, Ratio};

/// Finding of a rule about a device, counter or program.
#[derive(Debug)]
pub(super) struct FindingDraft {
    /// Identifier of the rule, and its source.
    pub rule: (&'static str, &'static str),
    /// Severity of the finding.
    pub severity: FindingSeverity,
    /// Device, setting or program concerned.
    pub subject: String,
    /// Description of the problem, with the figures.
    pub text: String,
    /// Observed values.
    pub evidence: Vec<String>,
    /// Commands that fix it.
    pub remedy: Vec<String>,
    /// Risk of the remedy.
    pub risk: &'static str,
}

impl FindingDraft {
    /// Returns a finding with a manual remedy only.
    pub(super) fn finding(self) -> AuditFinding {
        AuditFinding {
            notes: Vec::new(),
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

    /// Returns a finding with a change that linerate itself can make.
    pub(super) fn with_change(self, edit: FindingChange) -> AuditFinding {
        let reason = ChangeReason {
            rule: self.rule.0.to_owned(),
            text: self.text.clone(),
            arithmetic: edit.arithmetic,
            evidence: self.evidence.clone(),
            risk: self.risk.to_owned(),
        };
        let change = HostChange {
            target: edit.target,
            from: Some(edit.from),
            to: edit.to,
            group: edit.group,
            takes_effect: edit.takes_effect,
            reason,
        };
        AuditFinding { change: Some(change), ..self.finding() }
    }
}

/// Change of a finding.
#[derive(Debug)]
pub(super) struct FindingChange {
    /// Setting, file or device attribute to change.
    pub target: ChangeTarget,
    /// Current value.
    pub from: String,
    /// New value.
    pub to: String,
    /// Group of the change.
    pub group: ChangeGroup,
    /// Time at which it takes effect.
    pub takes_effect: EffectTiming,
    /// Formula with its inputs, if the value was computed.
    pub arithmetic: Option<String>,
}

/// Returns the interfaces that can carry packets: up, and not known to be without a link. Loopback is left out.
pub(super) fn working(host: &HostFacts) -> impl Iterator<Item = &NetworkLink> {
    host.interfaces.iter().filter(|link| {
        let is_down = matches!(link.state, LinkState::Down | LinkState::NotPresent | LinkState::LowerLayerDown);
        link.is_up && !link.is_loopback && !is_down
    })
}

/// Packets that an interface received; `None` without counters.
pub(super) fn received(link: &NetworkLink) -> Option<PacketCount> {
    link.counters.map(|counters| counters.traffic.received.packets)
}

/// Formats a part of a whole: `12 of 3000 (0.4 %)`.
pub(super) fn part_of(part: u64, whole: u64) -> String {
    share(part, whole).map_or_else(|| part.to_string(), |share| format!("{part} of {whole} ({share})"))
}

/// Ratio of two counts; `None` when the whole is zero. Counts that overlap only in part may exceed 1.
pub(super) fn share(part: u64, whole: u64) -> Option<Ratio> {
    PacketCount::new(part).share_of(PacketCount::new(whole))
}

/// True when a count is at least this share of another, or the other one is zero.
pub(super) fn exceeds(part: u64, whole: u64, limit: f64) -> bool {
    part > 0 && share(part, whole).is_none_or(|share| share.get() >= limit)
}

/// Severity of a counter that has grown since boot: a note, or from this share on a warning.
pub(super) fn by_share(part: u64, whole: u64, limit: f64) -> FindingSeverity {
    if exceeds(part, whole, limit) { FindingSeverity::Warning } else { FindingSeverity::Note }
}

/// Value of a protocol counter; 0 where this kernel does not have it.
pub(super) fn counter(host: &HostFacts, name: &str) -> u64 {
    host.counters.protocol.known().and_then(|all| all.get(name)).unwrap_or(0)
}

/// Formats a counter as evidence: `TcpExtTCPRcvCollapsed = 7 so far` (since boot, or since the namespace exists).
pub(super) fn counted(name: &str, value: u64) -> String {
    format!("{name} = {value} so far")
}

/// Sum of the driver counters whose names match, and the largest of them as evidence.
pub(super) fn driver_counters(link: &NetworkLink, is_meant: impl Fn(&str) -> bool) -> (u64, Vec<String>) {
    let all = link.driver_counters.known().into_iter().flatten();
    let mut found: Vec<(&String, u64)> =
        all.filter(|(name, value)| **value > 0 && is_meant(name)).map(|(name, value)| (name, *value)).collect();
    found.sort_compactly_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    let sum = found.iter().fold(0_u64, |sum, (_, value)| sum.saturating_add(*value));
    // Some drivers have a set for each of a hundred queues.
    let shown = found.iter().take(4).map(|(name, value)| format!("{}: {name} = {value}", link.name));
    (sum, shown.collect())
}

/// Number of TCP sockets in use (`/proc/net/sockstat`: `TCP inuse`).
pub(super) fn connections(host: &HostFacts) -> Option<u64> {
    host.counters.sockets.known()?.get("TCP inuse").copied()
}

/// Returns an interface at 10 Gbit/s that is up.
pub(super) fn link(name: &str) -> NetworkLink {
    NetworkLink {
        name: name.to_owned(),
        index: 2,
        is_up: true,
        state: LinkState::Up,
        mtu: Some(Mtu::new(1500)),
        speed: Fact::Known(BitRate::from_bits_per_second(1e10)),
        counters: Some(LinkCounters::default()),
        ..NetworkLink::default()
    }
}

/// Returns the same interface with these packets received.
pub(super) fn link_that_received(packets: u64) -> NetworkLink {
    let mut counters = LinkCounters::default();
    counters.traffic.received.packets = PacketCount::new(packets);
    NetworkLink { counters: Some(counters), ..link("eth0") }
}

/// Returns a link with one offload in this state.
pub(super) fn link_with_offload(name: &str, active: bool) -> NetworkLink {
    let offload = OffloadState { active, wanted: active, changeable: true };
    NetworkLink { offloads: Fact::Known([(name.to_owned(), offload)].into()), ..link("eth0") }
}

/// Returns a link with a root qdisc of this kind, created by the kernel.
pub(super) fn link_with_queueing(kind: &str, dropped: u64) -> NetworkLink {
    let statistics = QueueStatistics {
        packets: PacketCount::new(1_000_000),
        dropped: PacketCount::new(dropped),
        ..QueueStatistics::default()
    };
    let root = QdiscNode {
        kind: kind.to_owned(),
        handle: "0:".to_owned(),
        statistics: Some(statistics),
        ..QdiscNode::default()
    };
    NetworkLink { queueing: Fact::Known(vec![root]), ..link("eth0") }
}

/// Returns a host with these interfaces and no other facts.
pub(super) fn host_with(interfaces: Vec<NetworkLink>) -> HostFacts {
    HostFacts { interfaces, ..HostFacts::default() }
}

/// Returns a host with protocol counters and no other facts.
pub(super) fn host_that_counted(counters: &[(&str, u64)]) -> HostFacts {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let mut host = HostFacts::default();
    host.counters.protocol = Fact::Known(ProtocolCounters(counters));
    host
}

/// Adds a setting to the host.
pub(super) fn and_setting(mut host: HostFacts, key: &str, value: &str) -> HostFacts {
    let setting = KernelSetting { value: Fact::Known(value.to_owned()), writability: SettingWritability::Possible };
    host.settings.values.insert(key.to_owned(), setting);
    host
}

/// Parses a list of processors; empty if it is malformed.
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
        assert_eq!((by_share(1, 10, 0.1), by_share(1, 11, 0.1)), (FindingSeverity::Warning, FindingSeverity::Note));
    }

    #[test]
    fn links_without_carrier_do_not_work() {
        let down = NetworkLink { state: LinkState::Down, ..link("eth1") };
        let off = NetworkLink { is_up: false, ..link("eth2") };
        let host = host_with(vec![link("eth0"), down, off]);
        assert_eq!(working(&host).map(|link| link.name.as_str()).collect::<Vec<_>>(), ["eth0"]);
    }

    #[test]
    fn counters_of_drivers_are_summed_and_the_largest_shown() {
        let names = ["rx0_drops", "rx1_drops", "rx2_drops", "rx3_drops", "rx4_drops", "tx_pause"];
        let all = names.iter().zip(1..).map(|(name, value)| ((*name).to_owned(), value)).collect();
        let link = NetworkLink { driver_counters: Fact::Known(all), ..link("eth0") };
        let (sum, shown) = driver_counters(&link, |name| name.contains("drops"));
        assert_eq!((sum, shown.len(), shown[0].as_str()), (15, 4, "eth0: rx4_drops = 5"));
    }
}
