//! Flat fact lists of processors, counters, routes and programs.

use std::collections::BTreeMap;

use super::applications::TransferApplications;
use super::counters::NetworkCounters;
use super::managers::SettingsManagers;
use super::processors::{HostProcessors, ProcessorSet};
use super::routes::RouteEntry;
use crate::fact::Fact;

type FactList = Vec<(String, Fact<String>)>;

impl HostProcessors {
    /// Lists every fact, as `processors.…`.
    #[must_use]
    pub fn listed(&self) -> FactList {
        let by_value = |fact: &Fact<BTreeMap<String, ProcessorSet>>| {
            let show = |all: BTreeMap<String, ProcessorSet>| {
                all.iter().map(|(value, set)| format!("{value}:{set}")).collect::<Vec<_>>().join(" ")
            };
            fact.clone().map(show)
        };
        let nodes = self
            .nodes
            .clone()
            .map(|nodes| nodes.iter().map(|(node, set)| format!("{node}:{set}")).collect::<Vec<_>>().join(" "));
        let pressure = |fact: &Fact<super::processors::PressureAverages>| {
            fact.clone().map(|pressure| format!("{:.4}", pressure.last_minute.get()))
        };
        let stolen = self
            .total_ticks
            .clone()
            .map(|ticks| ticks.stolen_share().map_or_else(String::new, |share| format!("{:.4}", share.get())));
        named([
            ("processors.online", self.online.clone().map(|set| set.to_string())),
            ("processors.isolated", self.isolated.clone().map(|set| set.to_string())),
            ("processors.governors", by_value(&self.governors)),
            ("processors.energy_preferences", by_value(&self.energy_preferences)),
            ("processors.nodes", nodes),
            ("processors.share_cores", self.share_cores.clone().map(|shared| shared.to_string())),
            ("processors.stolen_share", stolen),
            ("processors.pressure_last_minute", pressure(&self.processor_pressure)),
            ("memory.pressure_last_minute", pressure(&self.memory_pressure)),
            ("disks.pressure_last_minute", pressure(&self.disk_pressure)),
        ])
    }
}

impl NetworkCounters {
    /// Lists every counter that is not zero, as `counters.…`.
    #[must_use]
    pub fn listed(&self) -> FactList {
        let mut facts = Vec::new();
        match &self.protocol {
            Fact::Known(all) => facts.extend(numbers("counters", all.0.iter())),
            Fact::Unknown(unread) => facts.push(("counters".to_owned(), Fact::Unknown(unread.clone()))),
        }
        match &self.sockets {
            Fact::Known(all) => facts.extend(numbers("sockets", all.iter())),
            Fact::Unknown(unread) => facts.push(("sockets".to_owned(), Fact::Unknown(unread.clone()))),
        }
        match &self.softnet {
            Fact::Known(rows) => {
                for row in rows {
                    let name = |what: &str| format!("softnet.{}.{what}", row.processor);
                    facts.push((name("received"), Fact::Known(row.processed.to_string())));
                    facts.push((name("dropped"), Fact::Known(row.dropped.to_string())));
                    facts.push((name("squeezed"), Fact::Known(row.squeezed.to_string())));
                }
            }
            Fact::Unknown(unread) => facts.push(("softnet".to_owned(), Fact::Unknown(unread.clone()))),
        }
        let tracked = |of: fn(&super::counters::ConntrackUsage) -> u64| {
            self.tracked_connections.clone().map(|table| of(&table).to_string())
        };
        facts.push(("tracked_connections.count".to_owned(), tracked(|table| table.count)));
        facts.push(("tracked_connections.most".to_owned(), tracked(|table| table.most)));
        facts
    }
}

impl SettingsManagers {
    /// Lists the settings managers, as `managers.…`.
    #[must_use]
    pub fn listed(&self) -> FactList {
        let mut facts = named([
            ("managers.tuned_profile", self.tuned_profile.clone()),
            ("managers.bpftune", self.bpftune.clone().map(|runs| runs.to_string())),
            ("managers.irqbalance", self.irqbalance.clone().map(|runs| runs.to_string())),
            ("managers.first_process", self.first_process.clone()),
        ]);
        facts.extend(self.interfaces.iter().map(|(name, owner)| {
            (format!("interfaces.{name}.manager"), Fact::Known(format!("{} ({})", owner.manager, owner.evidence)))
        }));
        facts
    }
}

impl TransferApplications {
    /// Lists NFS mounts and running transfers, as `applications.…`.
    #[must_use]
    pub fn listed(&self) -> FactList {
        let mounts = self.nfs_mounts.clone().map(|mounts| mounts.len().to_string());
        let transfers = self.transfers.clone().map(|all| {
            all.iter()
                .map(|transfer| format!("{}:{}", transfer.program.name(), transfer.process))
                .collect::<Vec<_>>()
                .join(" ")
        });
        named([("applications.nfs_mounts", mounts), ("applications.transfers", transfers)])
    }
}

/// Lists routes with their attributes, as `routes.…`.
#[must_use]
pub(super) fn routes_listed(routes: &Fact<Vec<RouteEntry>>) -> FactList {
    match routes {
        Fact::Known(routes) => {
            let name = |place: usize, route: &RouteEntry| format!("routes.{place}.{}", route.destination);
            routes
                .iter()
                .enumerate()
                .map(|(place, route)| (name(place, route), Fact::Known(attributes(route))))
                .collect()
        }
        Fact::Unknown(unread) => vec![("routes".to_owned(), Fact::Unknown(unread.clone()))],
    }
}

fn attributes(route: &RouteEntry) -> String {
    let number = |name: &str, value: Option<u32>| value.map(|value| format!("{name} {value}"));
    let parts = [
        route.gateway.map(|gateway| format!("via {gateway}")),
        route.interface.as_ref().map(|interface| format!("dev {interface}")),
        number("metric", route.metric),
        route.mtu.map(|mtu| format!("mtu {mtu}")),
        route.congestion_control.as_ref().map(|name| format!("congctl {name}")),
        number("initcwnd", route.initial_window),
        number("initrwnd", route.initial_receive_window),
        number("cwnd", route.max_congestion_window),
        route.shortest_timeout.map(|time| format!("rto_min {}ms", time.as_millis())),
        route.acknowledges_at_once.map(|at_once| format!("quickack {}", u8::from(at_once))),
        (!route.features.is_empty()).then(|| format!("features {}", route.features.join(" "))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn numbers<'a>(
    group: &'a str,
    all: impl Iterator<Item = (&'a String, &'a u64)> + 'a,
) -> impl Iterator<Item = (String, Fact<String>)> + 'a {
    let counted = all.filter(|(_, value)| **value > 0);
    counted.map(move |(name, value)| (format!("{group}.{}", name.replace(' ', ".")), Fact::Known(value.to_string())))
}

fn named<const N: usize>(facts: [(&str, Fact<String>); N]) -> FactList {
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

#[cfg(test)]
mod tests {
    use linerate_units::Mtu;

    use super::*;

    #[test]
    fn routes_read_like_those_of_ip() {
        let route = RouteEntry {
            destination: "default".to_owned(),
            interface: Some("eth0".to_owned()),
            gateway: Some("192.0.2.1".parse().expect("valid")),
            mtu: Some(Mtu::new(1400)),
            initial_window: Some(20),
            features: vec!["ecn".to_owned()],
            ..RouteEntry::default()
        };
        let listed = routes_listed(&Fact::Known(vec![route]));
        let text = "via 192.0.2.1 dev eth0 mtu 1400 initcwnd 20 features ecn".to_owned();
        assert_eq!(listed, [("routes.0.default".to_owned(), Fact::Known(text))]);
    }

    #[test]
    fn unread_facts_are_listed_as_unknown() {
        let lists = [
            HostProcessors::default().listed(),
            NetworkCounters::default().listed(),
            SettingsManagers::default().listed(),
            TransferApplications::default().listed(),
            routes_listed(&Fact::default()),
        ];
        assert!(lists.iter().flatten().all(|(_, fact)| fact.known().is_none()));
        assert!(lists.iter().all(|list| !list.is_empty()));
    }
}
