//! Flow steering runs in software although the device supports it (accelerated RFS).

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::link::{NetworkLink, ReceiveQueue};
use linerate_units::BitRate;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, and_setting, host_with, link_with_offload, working};

const ID: &str = "accelerated-flow-steering-off";
const CITATION: &str = "kernel: Documentation/networking/scaling.rst (\"should be enabled whenever one wants to use \
    RFS and the NIC supports hardware acceleration\"); docs/seeds-checklist.md";
const KEY: &str = "net.core.rps_sock_flow_entries";
const FEATURE: &str = "rx-ntuple-filter";
/// Link speed below which passing packets between processors costs little.
const MIN_LINK_SPEED: BitRate = BitRate::from_bits_per_second(40e9);

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Receive flow steering (RFS) is on, but the device's own flow steering is off.",
    explanation: "With receive flow steering the kernel passes each packet to the processor of the program that reads \
        it. A device with hardware filters can interrupt that processor directly (accelerated RFS). At 40 Gbit/s and \
        more, passing packets on is a large part of the work.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || and_setting(host_with(vec![steered(1e11, false)]), KEY, "32768"),
    silent: || and_setting(host_with(vec![steered(1e11, true), steered(1e10, false)]), KEY, "32768"),
};

fn steered(speed: f64, filters: bool) -> NetworkLink {
    NetworkLink {
        speed: Fact::Known(BitRate::from_bits_per_second(speed)),
        receive_queues: Fact::Known(vec![ReceiveQueue { flows: 4096, ..ReceiveQueue::default() }]),
        ..link_with_offload(FEATURE, filters)
    }
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let entries = host.settings.number(KEY).filter(|entries| *entries > 0);
    let look = |link: &NetworkLink| {
        let queues = link.receive_queues.known()?;
        queues.iter().any(|queue| queue.flows > 0).then_some(())?;
        let speed = link.speed_of_at_least(MIN_LINK_SPEED)?;
        link.offload(FEATURE).filter(|state| state.could_be_on())?;
        let name = &link.name;
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: FindingSeverity::Advice,
            subject: name.clone(),
            text: format!("{name} ({speed}) steers flows in software; its hardware filters are off."),
            evidence: vec![
                format!("{name}: {FEATURE}: off"),
                format!("{KEY} = {}", entries?),
                format!("{name}: {speed}"),
            ],
            remedy: vec![format!("ethtool -K {name} ntuple on")],
            risk: "the device has few filters: with very many flows it falls back to the processor",
        };
        Some(draft.with_change(FindingChange {
            target: ChangeTarget::Offload { interface: name.clone(), feature: FEATURE.to_owned() },
            from: "off".to_owned(),
            to: "on".to_owned(),
            group: ChangeGroup::Device,
            takes_effect: EffectTiming::Now,
            arithmetic: None,
        }))
    };
    working(host).filter_map(look).collect()
}
