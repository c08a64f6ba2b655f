//! The device could steer flows by itself, and the processor does.

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Link, ReceiveQueue};
use linerate_units::BitRate;

use super::Rule;
use super::link_support::{Edit, Saying, and_setting, host_with, link_with_offload, working};

const ID: &str = "accelerated-flow-steering-off";
const CITATION: &str = "kernel: Documentation/networking/scaling.rst (\"should be enabled whenever one wants to use RFS and the NIC supports hardware acceleration\"); docs/seeds-checklist.md";
const KEY: &str = "net.core.rps_sock_flow_entries";
const FEATURE: &str = "rx-ntuple-filter";
/// Below, passing packets between processors is no burden.
const FAST: f64 = 40.0;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Flow steering is on, and the device could do it, but does not.",
    explanation: "With receive flow steering the kernel passes each packet to the processor of the program that reads it. A device with filters of its own can interrupt that processor right away (accelerated RFS). At 40 Gbit/s and more the passing on is a good part of the work.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || and_setting(host_with(vec![steered(1e11, false)]), KEY, "32768"),
    silent: || and_setting(host_with(vec![steered(1e11, true), steered(1e10, false)]), KEY, "32768"),
};

fn steered(speed: f64, filters: bool) -> Link {
    Link {
        speed: Fact::Known(BitRate::from_bits_per_second(speed)),
        receive_queues: Fact::Known(vec![ReceiveQueue { flows: 4096, ..ReceiveQueue::default() }]),
        ..link_with_offload(FEATURE, filters)
    }
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let entries = host.settings.number(KEY).filter(|entries| *entries > 0);
    let look = |link: &Link| {
        let queues = link.receive_queues.known()?;
        queues.iter().any(|queue| queue.flows > 0).then_some(())?;
        let speed = link.at_least_gigabits(FAST)?;
        link.offload(FEATURE).filter(|state| state.could_be_on())?;
        let name = &link.name;
        let saying = Saying {
            rule: (ID, CITATION),
            severity: Severity::Advice,
            subject: name.clone(),
            text: format!(
                "{name} at {speed} has flow steering by the processor, and filters that could do it are off."
            ),
            evidence: vec![
                format!("{name}: {FEATURE}: off"),
                format!("{KEY} = {}", entries?),
                format!("{name}: {speed}"),
            ],
            remedy: vec![format!("ethtool -K {name} ntuple on")],
            risk: "filters of the device are few: with very many flows it falls back to the processor",
        };
        Some(saying.with_change(Edit {
            target: Target::Offload { interface: name.clone(), feature: FEATURE.to_owned() },
            from: "off".to_owned(),
            to: "on".to_owned(),
            group: Group::Device,
            takes_effect: TakesEffect::Now,
            arithmetic: None,
        }))
    };
    working(host).filter_map(look).collect()
}
