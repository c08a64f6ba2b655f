//! A device interrupts processors at another node of memory.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Interrupt, Link};
use linerate_model::host::processors::ProcessorSet;

use super::Rule;
use super::link_support::{Saying, exceeds, host_with, link, part_of, processors, working};

const ID: &str = "interrupts-far";
const CITATION: &str = "kernel: Documentation/networking/scaling.rst, Documentation/core-api/irq/irq-affinity.rst; docs/seeds-checklist.md";
/// Half of what came.
const MUCH: f64 = 0.5;
/// From here on the way between the nodes is felt.
const FAST: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A device interrupts processors that are far from it.",
    explanation: "On a machine with several nodes of memory, a processor of another node reaches the device and what it wrote only across the link between the nodes. Descriptors and headers then come from far memory for each packet. Interrupts belong to the processors that /sys/class/net/…/device/local_cpulist lists, and the program that reads onto the same node, best on other cores.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host("4"),
    silent: || host("1"),
};

fn host(goes_to: &str) -> HostFacts {
    let interrupt = Interrupt {
        number: 33,
        name: "eth0-TxRx-0".to_owned(),
        effective: ProcessorSet::parse_list(goes_to),
        count: 1_000_000,
        ..Interrupt::default()
    };
    let mut host = host_with(vec![Link {
        near_processors: Fact::Known(processors("0-3")),
        interrupts: Fact::Known(vec![interrupt]),
        ..link("eth0")
    }]);
    host.processors.nodes = Fact::Known([(0, processors("0-3")), (1, processors("4-7"))].into());
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let several = host.processors.nodes.known().is_some_and(|nodes| nodes.len() > 1);
    if !several {
        return Vec::new();
    }
    let balanced = host.managers.irqbalance.known() == Some(&true);
    working(host).filter_map(|link| look(link, balanced)).collect()
}

fn look(link: &Link, balanced: bool) -> Option<Finding> {
    let (near, interrupts) = (link.near_processors.known()?, link.interrupts.known()?);
    let is_far =
        |interrupt: &&Interrupt| interrupt.goes_to().is_some_and(|set| !set.is_empty() && set.0.is_disjoint(&near.0));
    let far: Vec<&Interrupt> = interrupts.iter().filter(is_far).collect();
    let sum = |count: u64, interrupt: &Interrupt| count.saturating_add(interrupt.count);
    let (there, all) = (far.iter().copied().fold(0, sum), interrupts.iter().fold(0, sum));
    exceeds(there, all, MUCH).then_some(())?;
    let name = &link.name;
    let shown = |interrupt: &&Interrupt| {
        let place = interrupt.goes_to().map(ToString::to_string).unwrap_or_default();
        format!("interrupt {} ({}): processor {place}, {} times", interrupt.number, interrupt.name, interrupt.count)
    };
    let mut evidence = vec![format!("{name}: near are processors {near}")];
    evidence.extend(far.iter().take(4).map(shown));
    let mut remedy: Vec<String> = far
        .iter()
        .take(4)
        .map(|interrupt| format!("echo {near} > /proc/irq/{}/smp_affinity_list", interrupt.number))
        .collect();
    remedy.extend(balanced.then(|| "irqbalance --banirq=N for each of them, or it moves them again".to_owned()));
    let saying = Saying {
        rule: (ID, CITATION),
        severity: if link.at_least_gigabits(FAST).is_some() { Severity::Advice } else { Severity::Note },
        subject: name.clone(),
        text: format!(
            "{} interrupts of {name} go to processors at another node of memory than its own.",
            part_of(there, all)
        ),
        evidence,
        remedy,
        risk: "other devices of the same node may need the same processors",
    };
    Some(saying.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_is_never_far_and_irqbalance_is_told() {
        let mut one = host("4");
        one.processors.nodes = Fact::Known([(0, processors("0-7"))].into());
        assert_eq!(check(&one), []);
        let mut balanced = host("4");
        balanced.managers.irqbalance = Fact::Known(true);
        assert_eq!(check(&balanced)[0].remedy.len(), 2);
    }
}
