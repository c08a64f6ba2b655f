//! One processor does nearly all receive work.

use linerate_model::change::{ChangeGroup, ChangeTarget, DeviceAttribute, EffectTiming};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{DeviceChannels, NetworkLink, ReceiveQueue};
use linerate_model::host::processors::{ProcessorSet, ProcessorTicks};
use linerate_units::{CompactSort, Ratio};

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, host_with, link, processors, working};

const ID: &str = "receive-on-one-processor";
const CITATION: &str = "kernel: Documentation/networking/scaling.rst (RSS, RPS)";
/// Mean load since boot that implies times of full load.
const MIN_LOAD: f64 = 0.25;
/// Least ratio to the load of the next processor.
const MIN_LOAD_RATIO: f64 = 4.0;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "One processor does nearly all receive work.",
    explanation: "A device with one queue interrupts one processor, which takes every packet through the stack. \
        Devices with several queues spread flows over them; for other devices the kernel can do it (receive packet \
        steering). It helps when that processor is at its limit while others are not, and costs processor time \
        otherwise: it is advised only where the processor loads show it.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(40, 2),
    silent: || host(2, 2),
};

/// Returns a host with two processors that spend these percentages on soft interrupts.
fn host(first: u64, second: u64) -> HostFacts {
    let queue = ReceiveQueue::default();
    let mut host = host_with(vec![NetworkLink {
        receive_queues: Fact::Known(vec![queue]),
        queue_counts: Some((1, 1)),
        ..link("eth0")
    }]);
    let ticks =
        |soft| ProcessorTicks { soft_interrupts: soft * 1000, idle: (100 - soft) * 1000, ..ProcessorTicks::default() };
    host.processors.ticks_by_processor = Fact::Known([(0, ticks(first)), (1, ticks(second))].into());
    host.processors.online = Fact::Known(processors("0-1"));
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some((busiest, share)) = busiest_processor(host) else { return Vec::new() };
    let Some(online) = host.processors.online.known() else { return Vec::new() };
    let is_alone = |link: &&NetworkLink| {
        let queues = link.receive_queues.known();
        let receives = |queues: &Vec<ReceiveQueue>| queues.len() == 1 && queues[0].steered_to.is_empty();
        link.is_hardware() && queues.is_some_and(receives) && interrupts(link, busiest)
    };
    working(host).filter(is_alone).map(|link| finding(link, busiest, share, online)).collect()
}

/// Returns the processor with the most soft interrupts, if its load is high and far above the others'.
fn busiest_processor(host: &HostFacts) -> Option<(u32, Ratio)> {
    let each = host.processors.ticks_by_processor.known()?;
    let mut shares: Vec<(u32, Ratio)> =
        each.iter().filter_map(|(number, ticks)| Some((*number, ticks.interrupted()?))).collect();
    shares.sort_compactly_by(|(_, one), (_, other)| other.get().total_cmp(&one.get()));
    let (first, second) = (*shares.first()?, *shares.get(1)?);
    (first.1.get() >= MIN_LOAD && first.1.get() >= MIN_LOAD_RATIO * second.1.get()).then_some(first)
}

/// True when the link interrupts that processor, or its interrupts are unknown.
fn interrupts(link: &NetworkLink, processor: u32) -> bool {
    let Some(interrupts) = link.interrupts.known().filter(|all| !all.is_empty()) else { return true };
    interrupts.iter().any(|interrupt| interrupt.goes_to().is_none_or(|set| set.0.contains(&processor)))
}

fn finding(link: &NetworkLink, busiest: u32, share: Ratio, online: &ProcessorSet) -> AuditFinding {
    let name = &link.name;
    let near = link.near_processors.known().filter(|near| near.len() > 1).unwrap_or(online);
    let others: ProcessorSet = near.0.intersection(&online.0).copied().filter(|number| *number != busiest).collect();
    let more = link.channels.known().copied().filter(|channels| channels.most_combined > 1);
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Advice,
        subject: name.clone(),
        text: format!(
            "Processor {busiest} spent {share} of its time since boot on received packets, several times as much as \
                any other; {name} has one queue."
        ),
        evidence: vec![
            format!("processor {busiest}: {share} of its time in interrupts"),
            format!("{name}: 1 receive queue, not steered"),
        ],
        remedy: vec![match more {
            Some(channels) => format!("ethtool -L {name} combined {}", wanted_channels(channels, online)),
            None => format!("echo {} > /sys/class/net/{name}/queues/rx-0/rps_cpus", others.mask()),
        }],
        risk: "packets of one flow still go to one processor; passing them on costs time on both",
    };
    let (target, from, to) = if let Some(channels) = more {
        let target = ChangeTarget::Device { interface: name.clone(), attribute: DeviceAttribute::CombinedChannels };
        (target, channels.combined.to_string(), wanted_channels(channels, online).to_string())
    } else {
        let path = format!("/sys/class/net/{name}/queues/rx-0/rps_cpus");
        (ChangeTarget::File { path }, ProcessorSet::default().mask(), others.mask())
    };
    let takes_effect = if more.is_some() { EffectTiming::LinkBounce } else { EffectTiming::Now };
    draft.with_change(FindingChange {
        target,
        from,
        to,
        group: ChangeGroup::Processors,
        takes_effect,
        arithmetic: None,
    })
}

fn wanted_channels(channels: DeviceChannels, online: &ProcessorSet) -> u32 {
    u32::try_from(online.len()).unwrap_or(u32::MAX).min(channels.most_combined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_the_device_come_first() {
        let found = check(&host(40, 2));
        let change = found[0].change.clone().expect("one");
        assert_eq!((change.to.as_str(), change.from.as_deref()), ("00000002", Some("00000000")));
        let mut several = host(40, 2);
        several.interfaces[0].channels =
            Fact::Known(DeviceChannels { combined: 1, most_combined: 8, ..DeviceChannels::default() });
        let found = check(&several);
        assert_eq!(found[0].remedy, ["ethtool -L eth0 combined 2"]);
    }

    #[test]
    fn work_that_is_spread_is_fine() {
        assert_eq!(check(&host(40, 30)), []);
        assert_eq!(check(&host(10, 0)), []);
    }
}
