//! Flat fact list of an interface.

use super::{NetworkLink, leaves, root};
use crate::fact::Fact;

impl NetworkLink {
    /// Lists every fact, as `interfaces.NAME.…`.
    #[must_use]
    pub fn listed(&self) -> Vec<(String, Fact<String>)> {
        let mut facts = self.kernel_facts();
        facts.extend(self.device_facts());
        facts.extend(self.queue_facts());
        facts.extend(self.placement_facts());
        facts.into_iter().map(|(name, fact)| (format!("interfaces.{}.{name}", self.name), fact)).collect()
    }

    fn kernel_facts(&self) -> Vec<(String, Fact<String>)> {
        let reported =
            |text: Option<String>| text.map_or_else(|| Fact::absent("the kernel does not report it"), Fact::Known);
        let none = |text: Option<String>, why: &str| text.map_or_else(|| Fact::absent(why), Fact::Known);
        let counters = self.counters.as_ref();
        let faults = counters.map(|counters| counters.receive_errors);
        let facts = [
            ("state", Fact::Known(format!("{:?}", self.state).to_lowercase())),
            ("kind", none(self.kind.clone(), "a device of its own, or the loopback device")),
            ("master", none(self.membership.master.clone(), "part of nothing")),
            ("lower", none(self.membership.lower.clone(), "it runs on no other interface of this namespace")),
            ("mtu_bytes", reported(self.mtu.map(|mtu| mtu.to_string()))),
            ("transmit_queue_packets", reported(self.transmit_queue.map(|length| length.to_string()))),
            ("segmentation_bytes", reported(self.segmentation_size.map(|size| size.get().to_string()))),
            ("coalescing_bytes", reported(self.coalescing_size.map(|size| size.get().to_string()))),
            ("received_packets", reported(counters.map(|counters| counters.traffic.received.packets.to_string()))),
            ("received_dropped", reported(counters.map(|counters| counters.traffic.received.dropped.to_string()))),
            ("sent_packets", reported(counters.map(|counters| counters.traffic.sent.packets.to_string()))),
            ("sent_dropped", reported(counters.map(|counters| counters.traffic.sent.dropped.to_string()))),
            ("received_missed", reported(faults.map(|faults| faults.missed.to_string()))),
            ("received_beyond_fifo", reported(faults.map(|faults| faults.fifo.to_string()))),
            ("received_damaged", reported(faults.map(|faults| faults.checksum.to_string()))),
        ];
        named(facts)
    }

    fn device_facts(&self) -> Vec<(String, Fact<String>)> {
        let of_rings = |of: fn(&super::DescriptorRings) -> u32| self.rings.clone().map(|rings| of(&rings).to_string());
        let of_channels = |of: fn(&super::DeviceChannels) -> u32| self.channels.clone().map(|all| of(&all).to_string());
        let microseconds = |of: fn(&super::InterruptCoalescing) -> core::time::Duration| {
            self.coalescing.clone().map(|coalescing| of(&coalescing).as_micros().to_string())
        };
        let mut facts = named([
            ("driver", self.driver.clone()),
            ("speed_bits_per_second", self.speed.clone().map(|speed| format!("{:.0}", speed.bits_per_second()))),
            (
                "highest_speed_bits_per_second",
                self.max_speed.clone().map(|speed| format!("{:.0}", speed.bits_per_second())),
            ),
            ("duplex", self.duplex.clone().map(|duplex| duplex.to_string())),
            ("receive_ring", of_rings(|rings| rings.current.receive)),
            ("receive_ring_most", of_rings(|rings| rings.most.receive)),
            ("transmit_ring", of_rings(|rings| rings.current.transmit)),
            ("transmit_ring_most", of_rings(|rings| rings.most.transmit)),
            ("combined_channels", of_channels(|channels| channels.combined)),
            ("combined_channels_most", of_channels(|channels| channels.most_combined)),
            ("receive_coalescing_microseconds", microseconds(|coalescing| coalescing.receive_delay)),
            ("transmit_coalescing_microseconds", microseconds(|coalescing| coalescing.transmit_delay)),
            (
                "receive_coalescing_adapts",
                self.coalescing.clone().map(|coalescing| coalescing.adapts_receive.to_string()),
            ),
            ("pause_heeded", self.pause.clone().map(|pause| pause.heeds.to_string())),
            ("pause_asked", self.pause.clone().map(|pause| pause.asks.to_string())),
            ("error_correction", self.error_correction.clone()),
        ]);
        match &self.offloads {
            Fact::Known(offloads) => facts.extend(offloads.iter().map(|(name, state)| {
                let state = format!(
                    "{}{}",
                    if state.active { "on" } else { "off" },
                    if state.changeable { "" } else { " [fixed]" }
                );
                (format!("offloads.{name}"), Fact::Known(state))
            })),
            Fact::Unknown(unread) => facts.push(("offloads".to_owned(), Fact::Unknown(unread.clone()))),
        }
        match &self.driver_counters {
            Fact::Known(counters) => facts.extend(
                counters
                    .iter()
                    .map(|(name, value)| (format!("driver_counters.{name}"), Fact::Known(value.to_string()))),
            ),
            Fact::Unknown(unread) => facts.push(("driver_counters".to_owned(), Fact::Unknown(unread.clone()))),
        }
        facts
    }

    fn queue_facts(&self) -> Vec<(String, Fact<String>)> {
        let tree = || self.queueing.clone();
        let kinds = tree().map(|tree| {
            let kinds: Vec<&str> = leaves(&tree).iter().map(|leaf| leaf.kind.as_str()).collect();
            kinds.join(" ")
        });
        let dropped = tree().map(|tree| {
            let all = leaves(&tree).into_iter().filter_map(|leaf| leaf.statistics);
            all.map(|statistics| statistics.dropped.get()).fold(0, u64::saturating_add).to_string()
        });
        let steered = self.receive_queues.clone().map(|queues| {
            let sets: Vec<String> =
                queues.iter().map(|queue| format!("rx-{}:{}", queue.number, queue.steered_to)).collect();
            sets.join(" ")
        });
        let flows = self
            .receive_queues
            .clone()
            .map(|queues| queues.iter().map(|queue| u64::from(queue.flows)).fold(0, u64::saturating_add).to_string());
        let senders = self.transmit_queues.clone().map(|queues| {
            let set =
                |queue: &super::TransmitQueue| Some(format!("tx-{}:{}", queue.number, queue.processors.as_ref()?));
            queues.iter().filter_map(set).collect::<Vec<_>>().join(" ")
        });
        named([
            ("queueing_root", tree().map(|tree| root(&tree).map_or_else(String::new, |root| root.kind.clone()))),
            ("queueing_leaves", kinds),
            ("queueing_dropped", dropped),
            ("receive_steering", steered),
            ("flow_steering_entries", flows),
            ("transmit_steering", senders),
            ("receive_threads", self.has_receive_threads.clone().map(|threads| threads.to_string())),
        ])
    }

    fn placement_facts(&self) -> Vec<(String, Fact<String>)> {
        let interrupts = self.interrupts.clone().map(|interrupts| {
            let one = |interrupt: &super::DeviceInterrupt| {
                let place = interrupt.goes_to().map_or_else(|| "?".to_owned(), ToString::to_string);
                format!("{}:{place}", interrupt.number)
            };
            interrupts.iter().map(one).collect::<Vec<_>>().join(" ")
        });
        let pci = self.pci.clone().map(|pci| {
            let transfers = |rate: linerate_units::BitRate| rate.bits_per_second() / 1e9;
            let (now, most) = (transfers(pci.lane_rate), transfers(pci.highest_lane_rate));
            format!("{now} GT/s x {} of {most} GT/s x {}", pci.lanes, pci.most_lanes)
        });
        named([
            ("interrupts", interrupts),
            ("memory_node", self.memory_node.clone().map(|node| node.to_string())),
            ("near_processors", self.near_processors.clone().map(|near| near.to_string())),
            ("pci", pci),
        ])
    }
}

fn named<const N: usize>(facts: [(&str, Fact<String>); N]) -> Vec<(String, Fact<String>)> {
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::OffloadState;
    use super::*;

    #[test]
    fn facts_have_names_of_their_own_and_unknown_ones_stay_unknown() {
        let offload = OffloadState { active: true, ..OffloadState::default() };
        let link = NetworkLink {
            name: "eth0".to_owned(),
            offloads: Fact::Known([("rx-gro".to_owned(), offload)].into()),
            ..NetworkLink::default()
        };
        let facts = link.listed();
        let find = |name: &str| facts.iter().find(|(found, _)| found == name).map(|(_, fact)| fact);
        assert_eq!(find("interfaces.eth0.offloads.rx-gro"), Some(&Fact::Known("on [fixed]".to_owned())));
        assert!(find("interfaces.eth0.receive_ring").is_some_and(|fact| fact.known().is_none()));
        let mut names: Vec<&String> = facts.iter().map(|(name, _)| name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
