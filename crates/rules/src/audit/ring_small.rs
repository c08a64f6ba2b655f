//! Packets were lost for want of descriptors, and the ring is not at its largest.

use linerate_model::change::{DeviceAttribute, Group, TakesEffect, Target};
use linerate_model::fact::Fact;
use linerate_model::finding::Finding;
use linerate_model::host::HostFacts;
use linerate_model::host::link::{Link, RingSizes, Rings};
use linerate_units::PacketCount;

use super::Rule;
use super::link_support::{
    Edit, Saying, by_share, driver_counters, host_with, link_that_received, part_of, received, working,
};

const ID: &str = "ring-small";
const CITATION: &str = "kernel: Documentation/networking/statistics.rst (rx_missed_errors, rx_fifo_errors); drivers' \
    documentation";
/// A millionth of the packets costs CUBIC nothing at 10 Gbit/s over 10 ms.
const HARMLESS: f64 = 1e-6;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Packets were lost because the receive ring was full, and it could be larger.",
    explanation: "The ring holds what has arrived until the processor takes it. When a burst is longer than the \
        ring, or the processor comes late, packets are lost inside this host and TCP takes that for congestion. A \
        larger ring helps against bursts, not against a processor that is too slow.\n\nWithout such losses a larger \
        ring brings nothing, and spreads the packets over more of the cache. So the advice stands on the counters \
        alone.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with(vec![link_with(512, 50)]),
    silent: || host_with(vec![link_with(4096, 50), link_with(512, 0)]),
};

fn link_with(ring: u32, missed: u64) -> Link {
    let mut link = link_that_received(1_000_000);
    if let Some(counters) = &mut link.counters {
        counters.faults.missed = PacketCount::new(missed);
    }
    let most = RingSizes { receive: 4096, transmit: 4096 };
    link.rings = Fact::Known(Rings { current: RingSizes { receive: ring, transmit: 256 }, most });
    link
}

/// What drivers call packets for which no descriptor was free.
fn is_want_of_room(name: &str) -> bool {
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

fn check(host: &HostFacts) -> Vec<Finding> {
    working(host).filter_map(look).collect()
}

fn look(link: &Link) -> Option<Finding> {
    let rings = link.rings.known().filter(|rings| rings.current.receive < rings.most.receive)?;
    let counted = link.counters.map_or(0, |counters| counters.faults.no_room().get());
    let (by_driver, mut evidence) = driver_counters(link, is_want_of_room);
    // The driver's counters and the kernel's may count the same packets.
    let lost = counted.max(by_driver);
    (lost > 0).then_some(())?;
    let whole = received(link).map_or(0, PacketCount::get).saturating_add(lost);
    let to = rings.current.receive.saturating_mul(2).min(rings.most.receive);
    let name = &link.name;
    evidence.insert(0, format!("{name}: receive ring {} of at most {}", rings.current.receive, rings.most.receive));
    evidence.insert(1, format!("{name}: {counted} packets missed, beyond the device's memory or over its speed"));
    let saying = Saying {
        rule: (ID, CITATION),
        severity: by_share(lost, whole, HARMLESS),
        subject: name.clone(),
        text: format!(
            "{name} had no room for {} packets; its receive ring has {} descriptors and could have {}.",
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
    Some(saying.with_change(Edit {
        target: Target::Device { interface: name.clone(), attribute: DeviceAttribute::ReceiveRing },
        from: rings.current.receive.to_string(),
        to: to.to_string(),
        group: Group::Device,
        takes_effect: TakesEffect::LinkBounce,
        arithmetic: Some(format!("min(2 x {}, {}) = {to} descriptors", rings.current.receive, rings.most.receive)),
    }))
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::Severity;

    use super::*;

    #[test]
    fn the_ring_is_doubled_to_its_largest_and_a_handful_is_a_note() {
        let found = check(&host_with(vec![link_with(3000, 50)]));
        assert_eq!(found[0].change.as_ref().map(|change| change.to.as_str()), Some("4096"));
        assert_eq!(found[0].severity, Severity::Warning);
        let mut quiet = link_with(512, 1);
        if let Some(counters) = &mut quiet.counters {
            counters.passed.received.packets = PacketCount::new(10_000_000_000);
        }
        assert_eq!(check(&host_with(vec![quiet]))[0].severity, Severity::Note);
    }

    #[test]
    fn a_drivers_own_counter_is_enough() {
        let mut link = link_with(512, 0);
        link.driver_counters =
            Fact::Known([("rx3_out_of_buffer".to_owned(), 9), ("rx_out_of_buffer".to_owned(), 9)].into());
        assert_eq!(check(&host_with(vec![link])).len(), 1);
    }
}
