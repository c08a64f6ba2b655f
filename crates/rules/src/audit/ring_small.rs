//! Packets were lost at a full receive ring that is not at its maximum size.

use linerate_model::change::{ChangeGroup, ChangeTarget, DeviceAttribute, EffectTiming};
use linerate_model::fact::Fact;
use linerate_model::finding::AuditFinding;
use linerate_model::host::HostFacts;
use linerate_model::host::link::{DescriptorRings, NetworkLink, RingSizes};
use linerate_units::PacketCount;

use super::AuditRule;
use super::link_support::{
    FindingChange, FindingDraft, by_share, driver_counters, host_with, link_that_received, part_of, received, working,
};

const ID: &str = "ring-small";
const CITATION: &str = "kernel: Documentation/networking/statistics.rst (rx_missed_errors, rx_fifo_errors); drivers' \
    documentation";
/// Loss ratio that costs CUBIC nothing at 10 Gbit/s over 10 ms.
const MAX_HARMLESS_LOSS_RATIO: f64 = 1e-6;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Packets were lost because the receive ring was full, and the device supports a larger one.",
    explanation: "The ring holds received packets until the processor takes them. When a burst is longer than the \
    ring, or the processor is late, packets are lost inside this host and TCP takes that for congestion. A \
    larger ring helps against bursts, not against a processor that is too slow.\n\nWithout such losses a larger \
    ring gains nothing, and spreads the packets over more of the cache. The advice is based on the counters \
    alone.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with(512, 50)]),
    silent: || host_with(vec![link_with(4096, 50), link_with(512, 0)]),
};

fn link_with(ring: u32, missed: u64) -> NetworkLink {
    let mut link = link_that_received(1_000_000);
    if let Some(counters) = &mut link.counters {
        counters.receive_errors.missed = PacketCount::new(missed);
    }
    let most = RingSizes { receive: 4096, transmit: 4096 };
    link.rings = Fact::Known(DescriptorRings { current: RingSizes { receive: ring, transmit: 256 }, most });
    link
}

/// True for driver counters of packets for which no descriptor was free.
fn is_descriptor_shortage(name: &str) -> bool {
    [
        "rx_no_buffer_count",
        "rx_out_of_buffer",
        "rx_discards_phy",
        "rx_missed_errors",
        "rx_no_dma_resources",
        "rx_dropped.nic",
        "rx_buf_exhaust",
    ]
    .iter()
    .any(|counter| name.ends_with(counter))
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    working(host).filter_map(check_link).collect()
}

fn check_link(link: &NetworkLink) -> Option<AuditFinding> {
    let rings = link.rings.known().filter(|rings| rings.current.receive < rings.most.receive)?;
    let counted = link.counters.map_or(0, |counters| counters.receive_errors.missing_buffers().get());
    let (by_driver, mut evidence) = driver_counters(link, is_descriptor_shortage);
    // The driver's counters and the kernel's may count the same packets.
    let lost = counted.max(by_driver);
    (lost > 0).then_some(())?;
    let whole = received(link).map_or(0, PacketCount::get).saturating_add(lost);
    let to = rings.current.receive.saturating_mul(2).min(rings.most.receive);
    let name = &link.name;
    evidence.insert(0, format!("{name}: receive ring {} of at most {}", rings.current.receive, rings.most.receive));
    evidence
        .insert(1, format!("{name}: {counted} packets missed: no descriptor, device memory full, or device too slow"));
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: by_share(lost, whole, MAX_HARMLESS_LOSS_RATIO),
        subject: name.clone(),
        text: format!(
            "{name} lost {} packets for lack of descriptors; its receive ring has {} and supports {}.",
            part_of(lost, whole),
            rings.current.receive,
            rings.most.receive
        ),
        evidence,
        remedy: vec![
            format!("ethtool -G {name} rx {to}"),
            format!(
                "ip -s -s link show {name} (do the counters still \
            grow under load?)"
            ),
        ],
        risk: "most drivers take the link down for a moment; larger rings use memory and cache",
    };
    Some(draft.with_change(FindingChange {
        target: ChangeTarget::Device { interface: name.clone(), attribute: DeviceAttribute::ReceiveRing },
        from: rings.current.receive.to_string(),
        to: to.to_string(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::LinkBounce,
        arithmetic: Some(format!("min(2 x {}, {}) = {to} descriptors", rings.current.receive, rings.most.receive)),
    }))
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::FindingSeverity;

    use super::*;

    #[test]
    fn the_ring_is_doubled_up_to_its_maximum_and_few_losses_are_a_note() {
        let found = check(&host_with(vec![link_with(3000, 50)]));
        assert_eq!(found[0].change.as_ref().map(|change| change.to.as_str()), Some("4096"));
        assert_eq!(found[0].severity, FindingSeverity::Warning);
        let mut quiet = link_with(512, 1);
        if let Some(counters) = &mut quiet.counters {
            counters.traffic.received.packets = PacketCount::new(10_000_000_000);
        }
        assert_eq!(check(&host_with(vec![quiet]))[0].severity, FindingSeverity::Note);
    }

    #[test]
    fn a_drivers_own_counter_is_enough() {
        let mut link = link_with(512, 0);
        link.driver_counters =
            Fact::Known([("rx3_out_of_buffer".to_owned(), 9), ("rx_out_of_buffer".to_owned(), 9)].into());
        assert_eq!(check(&host_with(vec![link])).len(), 1);
    }
}
