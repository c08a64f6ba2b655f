//! Differences between the environments of two runs.

use linerate_units::CompactCollect;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::environment::{HostEnvironmentRecord, InterfaceEnvironment};
use crate::run::RunDocument;

/// Fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EnvironmentDifference {
    /// Key: `near.kernel`, `far.interface.offloads.tso`, `near.sysctls.net.ipv4.tcp_rmem`, `host`.
    pub key: String,
    /// Value in the first run; `None` when unknown.
    pub before: Option<String>,
    /// Value in the second run.
    pub after: Option<String>,
}

type FactMap = BTreeMap<String, String>;

/// Facts that differ, by name. Values that vary from moment to moment, such as the load average, are left out.
pub(super) fn differences(before: &RunDocument, after: &RunDocument) -> Vec<EnvironmentDifference> {
    let (was, is) = (facts(before), facts(after));
    let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect_compactly();
    keys.into_iter()
        .filter(|key| was.get(*key) != is.get(*key))
        .map(|key| EnvironmentDifference {
            key: key.clone(),
            before: was.get(key).cloned(),
            after: is.get(key).cloned(),
        })
        .collect()
}

impl RunDocument {
    /// Facts of both hosts that explain a difference between runs, by name.
    #[must_use]
    pub fn environment_facts(&self) -> FactMap {
        facts(self)
    }
}

fn facts(run: &RunDocument) -> FactMap {
    let mut facts = FactMap::new();
    facts.insert("host".to_owned(), run.host.clone());
    facts.insert("linerate_version".to_owned(), run.linerate_version.clone());
    if let Some(lab) = &run.environment.lab {
        facts.insert("lab.name".to_owned(), lab.name.clone());
        facts.insert("lab.description".to_owned(), lab.description.clone());
        facts.insert("lab.seed".to_owned(), lab.seed.to_string());
    }
    for (end, environment) in [("near", &run.environment.near), ("far", &run.environment.far)] {
        if let Some(environment) = environment {
            add_host(&mut facts, end, environment);
        }
    }
    facts
}

fn add_host(facts: &mut FactMap, end: &str, host: &HostEnvironmentRecord) {
    let texts = [
        ("host_name", &host.host_name),
        ("kernel", &host.kernel),
        ("architecture", &host.architecture),
        ("processor", &host.processor),
        ("virtualisation", &host.virtualisation),
        ("congestion_control", &host.congestion_control),
        ("clock_source", &host.clock_source),
    ];
    for (key, text) in texts {
        add(facts, format!("{end}.{key}"), text.as_ref());
    }
    add(facts, format!("{end}.processors"), host.processors);
    add(facts, format!("{end}.clock_synchronised"), host.clock_synchronised);
    for (key, value) in &host.sysctls {
        add(facts, format!("{end}.sysctls.{key}"), Some(value));
    }
    if let Some(interface) = &host.interface {
        add_interface(facts, &format!("{end}.interface"), interface);
    }
}

fn add_interface(facts: &mut FactMap, prefix: &str, interface: &InterfaceEnvironment) {
    add(facts, format!("{prefix}.name"), Some(&interface.name));
    add(facts, format!("{prefix}.mtu_bytes"), interface.mtu_bytes);
    add(facts, format!("{prefix}.driver"), interface.driver.as_ref());
    add(facts, format!("{prefix}.speed_bits_per_second"), interface.speed_bits_per_second);
    add(facts, format!("{prefix}.queueing_discipline"), interface.queueing_discipline.as_ref());
    add(facts, format!("{prefix}.transmit_queue_packets"), interface.transmit_queue_packets);
    for (key, on) in &interface.offloads {
        add(facts, format!("{prefix}.offloads.{key}"), Some(if *on { "on" } else { "off" }));
    }
}

fn add(facts: &mut FactMap, key: String, value: Option<impl ToString>) {
    if let Some(value) = value {
        facts.insert(key, value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_listed() {
        let host = |kernel: &str, tso: bool| HostEnvironmentRecord {
            kernel: Some(kernel.to_owned()),
            congestion_control: Some("cubic".to_owned()),
            load_average: Some(f64::from(u8::from(tso))),
            sysctls: [("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned())].into(),
            interface: Some(InterfaceEnvironment {
                offloads: [("tso".to_owned(), tso)].into(),
                ..InterfaceEnvironment::default()
            }),
            ..HostEnvironmentRecord::default()
        };
        let all = |environment: &HostEnvironmentRecord| {
            let mut facts = FactMap::new();
            add_host(&mut facts, "near", environment);
            facts
        };
        let (was, is) = (all(&host("6.12.1", true)), all(&host("6.13.0", false)));
        let different: Vec<&str> = was.keys().filter(|key| was.get(*key) != is.get(*key)).map(String::as_str).collect();
        assert_eq!(different, ["near.interface.offloads.tso", "near.kernel"]);
        assert!(was.contains_key("near.sysctls.net.ipv4.tcp_rmem"));
    }
}
