//! A device interrupts processors on another NUMA node.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{DeviceInterrupt, NetworkLink};
use linerate_model::host::processors::ProcessorSet;
use linerate_units::BitRate;

use super::AuditRule;
use super::link_support::{FindingDraft, exceeds, host_with, link, part_of, processors, working};

const ID: &str = "interrupts-far";
const CITATION: &str = "kernel: Documentation/networking/scaling.rst, Documentation/core-api/irq/irq-affinity.rst; \
    docs/seeds-checklist.md";
/// Share of the interrupts from which the rule fires.
const MIN_REMOTE_SHARE: f64 = 0.5;
/// Link speed from which the link between the NUMA nodes costs throughput.
const MIN_LINK_SPEED: BitRate = BitRate::from_bits_per_second(10e9);

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A device interrupts processors on another NUMA node.",
    explanation: "On a machine with several NUMA nodes, a processor of another node reaches the device and its DMA \
        memory only across the link between the nodes. Descriptors and headers then come from remote memory for each \
        packet. Interrupts belong on the processors that /sys/class/net/…/device/local_cpulist lists, and the \
        receiving program on the same node, preferably on other cores.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host("4"),
    silent: || host("1"),
};

fn host(goes_to: &str) -> HostFacts {
    let interrupt = DeviceInterrupt {
        number: 33,
        name: "eth0-TxRx-0".to_owned(),
        effective: ProcessorSet::parse_list(goes_to),
        count: 1_000_000,
        ..DeviceInterrupt::default()
    };
    let mut host = host_with(vec![NetworkLink {
        near_processors: Fact::Known(processors("0-3")),
        interrupts: Fact::Known(vec![interrupt]),
        ..link("eth0")
    }]);
    host.processors.nodes = Fact::Known([(0, processors("0-3")), (1, processors("4-7"))].into());
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let several = host.processors.nodes.known().is_some_and(|nodes| nodes.len() > 1);
    if !several {
        return Vec::new();
    }
    let balanced = host.managers.irqbalance.known() == Some(&true);
    working(host).filter_map(|link| check_link(link, balanced)).collect()
}

fn check_link(link: &NetworkLink, balanced: bool) -> Option<AuditFinding> {
    let (near, interrupts) = (link.near_processors.known()?, link.interrupts.known()?);
    let is_far = |interrupt: &&DeviceInterrupt| {
        interrupt.goes_to().is_some_and(|set| !set.is_empty() && set.0.is_disjoint(&near.0))
    };
    let far: Vec<&DeviceInterrupt> = interrupts.iter().filter(is_far).collect();
    let sum = |count: u64, interrupt: &DeviceInterrupt| count.saturating_add(interrupt.count);
    let (there, all) = (far.iter().copied().fold(0, sum), interrupts.iter().fold(0, sum));
    exceeds(there, all, MIN_REMOTE_SHARE).then_some(())?;
    let name = &link.name;
    let shown = |interrupt: &&DeviceInterrupt| {
        let place = interrupt.goes_to().map(ToString::to_string).unwrap_or_default();
        format!("interrupt {} ({}): processor {place}, {} times", interrupt.number, interrupt.name, interrupt.count)
    };
    let mut evidence = vec![format!("{name}: local processors {near}")];
    evidence.extend(far.iter().take(4).map(shown));
    let mut remedy: Vec<String> = far
        .iter()
        .take(4)
        .map(|interrupt| format!("echo {near} > /proc/irq/{}/smp_affinity_list", interrupt.number))
        .collect();
    remedy
        .extend(balanced.then(|| "irqbalance --banirq=N for each of them, or irqbalance moves them again".to_owned()));
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: if link.speed_of_at_least(MIN_LINK_SPEED).is_some() {
            FindingSeverity::Advice
        } else {
            FindingSeverity::Note
        },
        subject: name.clone(),
        text: format!("{} interrupts of {name} go to processors on another NUMA node.", part_of(there, all)),
        evidence,
        remedy,
        risk: "other devices of the same node may need the same processors",
    };
    Some(draft.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_is_never_far_and_irqbalance_gets_a_remedy() {
        let mut one = host("4");
        one.processors.nodes = Fact::Known([(0, processors("0-7"))].into());
        assert_eq!(check(&one), []);
        let mut balanced = host("4");
        balanced.managers.irqbalance = Fact::Known(true);
        assert_eq!(check(&balanced)[0].remedy.len(), 2);
    }
}
