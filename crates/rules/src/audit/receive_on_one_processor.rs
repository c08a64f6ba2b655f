//! One processor receives for all, and others have nothing to do with it.

use linerate_model::change::{DeviceAttribute, Group, TakesEffect, Target};
use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Channels, Link, ReceiveQueue};
use linerate_model::host::processors::{ProcessorSet, ProcessorTicks};
use linerate_units::Ratio;

use super::Rule;
use super::link_support::{Edit, Saying, host_with, link, processors, working};

const ID: &str = "receive-on-one-processor";
const CITATION: &str = "kernel: Documentation/networking/scaling.rst (RSS, RPS)";
/// A mean since the boot at which there were times of full load.
const BUSY: f64 = 0.25;
/// By how much the others have less.
const UNEVEN: f64 = 4.0;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "One processor does nearly all the work of receiving.",
    explanation: "A device with one queue interrupts one processor, which takes every packet through the stack. Devices with several queues spread flows over them; for the others the kernel can do it (receive packet steering). It helps when that processor is at its limit while others are not, and costs some of their time otherwise: so it is advised only where the processors' times show it.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(40, 2),
    silent: || host(2, 2),
};

/// Two processors of which the first one spends this much percent on soft interrupts, the other this much.
fn host(first: u64, second: u64) -> HostFacts {
    let queue = ReceiveQueue::default();
    let mut host =
        host_with(vec![Link { receive_queues: Fact::Known(vec![queue]), queue_counts: Some((1, 1)), ..link("eth0") }]);
    let ticks =
        |soft| ProcessorTicks { soft_interrupts: soft * 1000, idle: (100 - soft) * 1000, ..ProcessorTicks::default() };
    host.processors.each = Fact::Known([(0, ticks(first)), (1, ticks(second))].into());
    host.processors.online = Fact::Known(processors("0-1"));
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some((busiest, share)) = overburdened(host) else { return Vec::new() };
    let Some(online) = host.processors.online.known() else { return Vec::new() };
    let is_alone = |link: &&Link| {
        let queues = link.receive_queues.known();
        let receives = |queues: &Vec<ReceiveQueue>| queues.len() == 1 && queues[0].steered_to.is_empty();
        link.is_hardware() && queues.is_some_and(receives) && interrupts(link, busiest)
    };
    working(host).filter(is_alone).map(|link| finding(link, busiest, share, online)).collect()
}

/// The processor with the most soft interrupts, where that is much, and much more than the others have.
fn overburdened(host: &HostFacts) -> Option<(u32, Ratio)> {
    let each = host.processors.each.known()?;
    let mut shares: Vec<(u32, Ratio)> =
        each.iter().filter_map(|(number, ticks)| Some((*number, ticks.interrupted()?))).collect();
    shares.sort_by(|(_, one), (_, other)| other.get().total_cmp(&one.get()));
    let (first, second) = (*shares.first()?, *shares.get(1)?);
    (first.1.get() >= BUSY && first.1.get() >= UNEVEN * second.1.get()).then_some(first)
}

/// Whether the link interrupts that processor, as far as is known.
fn interrupts(link: &Link, processor: u32) -> bool {
    let Some(interrupts) = link.interrupts.known().filter(|all| !all.is_empty()) else { return true };
    interrupts.iter().any(|interrupt| interrupt.goes_to().is_none_or(|set| set.0.contains(&processor)))
}

fn finding(link: &Link, busiest: u32, share: Ratio, online: &ProcessorSet) -> Finding {
    let name = &link.name;
    let near = link.near_processors.known().filter(|near| near.len() > 1).unwrap_or(online);
    let others: ProcessorSet = near.0.intersection(&online.0).copied().filter(|number| *number != busiest).collect();
    let more = link.channels.known().copied().filter(|channels| channels.most_combined > 1);
    let saying = Saying {
        rule: (ID, CITATION),
        severity: Severity::Advice,
        subject: name.clone(),
        text: format!(
            "Processor {busiest} spent {share} of its time since the boot on received packets, several times as much as any other; {name} has one queue."
        ),
        evidence: vec![
            format!("processor {busiest}: {share} of its time in interrupts"),
            format!("{name}: 1 receive queue, not steered"),
        ],
        remedy: vec![match more {
            Some(channels) => format!("ethtool -L {name} combined {}", wanted(channels, online)),
            None => format!("echo {} > /sys/class/net/{name}/queues/rx-0/rps_cpus", others.mask()),
        }],
        risk: "packets of one flow still go to one processor; passing them on takes some time of both",
    };
    let (target, from, to) = if let Some(channels) = more {
        let target = Target::Device { interface: name.clone(), attribute: DeviceAttribute::CombinedChannels };
        (target, channels.combined.to_string(), wanted(channels, online).to_string())
    } else {
        let path = format!("/sys/class/net/{name}/queues/rx-0/rps_cpus");
        (Target::File { path }, ProcessorSet::default().mask(), others.mask())
    };
    let takes_effect = if more.is_some() { TakesEffect::LinkBounce } else { TakesEffect::Now };
    saying.with_change(Edit { target, from, to, group: Group::Processors, takes_effect, arithmetic: None })
}

fn wanted(channels: Channels, online: &ProcessorSet) -> u32 {
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
        several.interfaces[0].channels = Fact::Known(Channels { combined: 1, most_combined: 8, ..Channels::default() });
        let found = check(&several);
        assert_eq!(found[0].remedy, ["ethtool -L eth0 combined 2"]);
    }

    #[test]
    fn work_that_is_spread_is_fine() {
        assert_eq!(check(&host(40, 30)), []);
        assert_eq!(check(&host(10, 0)), []);
    }
}
