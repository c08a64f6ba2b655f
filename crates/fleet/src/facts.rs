//! Facts around a test that explain a change: settings, kernel, version, route, path MTU, competing traffic.

use std::collections::BTreeMap;

use linerate_documents::environment::OtherTraffic;
use linerate_documents::fleet_result::FleetResult;
use linerate_documents::run::EnvironmentDifference;
use linerate_units::{BitRate, display};

/// Change of the competing traffic that is noted: to twice of it, and by this much, in bit/s.
const MIN_TRAFFIC_CHANGE: f64 = 1e6;

/// Figures that are facts of the path: largest packets.
const PATH_FIGURES: [&str; 2] = ["mtu_up", "mtu_down"];

/// Known facts around tests between two hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestFacts {
    facts: BTreeMap<String, String>,
    /// Rates of the traffic of others, in bit/s.
    traffic: BTreeMap<&'static str, f64>,
}

impl TestFacts {
    /// Facts of some results: each from the first result that has it.
    #[must_use]
    pub fn first_of<'a>(results: &(impl Iterator<Item = &'a FleetResult> + Clone)) -> Self {
        let mut facts = Self::default();
        if let Some(result) = results.clone().find(|result| result.host.is_some()) {
            facts.add_host(result);
        }
        if let Some(result) = results.clone().find(|result| result.run.is_some()) {
            facts.add_run(result);
        }
        if let Some(result) = results.clone().find(|result| !result.route.is_empty()) {
            facts.facts.insert("route".to_owned(), result.route.join(" "));
        }
        for name in PATH_FIGURES {
            if let Some(value) = results.clone().find_map(|result| result.figure(name)) {
                facts.facts.insert(format!("{name}_bytes"), format!("{value:.0}"));
            }
        }
        facts
    }

    /// Facts of one result.
    #[must_use]
    pub fn of(result: &FleetResult) -> Self {
        Self::first_of(&core::iter::once(result))
    }

    fn add_host(&mut self, result: &FleetResult) {
        let Some(host) = &result.host else { return };
        self.facts.insert("linerate_version".to_owned(), host.linerate_version.clone());
        let facts = [
            ("near.kernel", host.kernel.clone()),
            ("near.congestion_control", host.congestion_control.clone()),
            ("near.interface.name", host.interface.clone()),
            ("near.interface.mtu_bytes", host.interface_mtu_bytes.map(|bytes| bytes.to_string())),
            ("near.interface.queueing_discipline", host.queueing_discipline.clone()),
        ];
        self.facts.extend(facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }

    fn add_run(&mut self, result: &FleetResult) {
        let Some(run) = &result.run else { return };
        self.facts.extend(run.environment_facts());
        let arguments = run.arguments.join(" ");
        if !arguments.is_empty() {
            self.facts.insert(format!("{}.arguments", result.task), arguments);
        }
        let ends = [("near.other_traffic", &run.environment.near), ("far.other_traffic", &run.environment.far)];
        for (key, host) in ends {
            if let Some(traffic) = host.as_ref().and_then(|host| host.other_traffic) {
                self.traffic.insert(key, sum(traffic));
            }
        }
    }

    /// Facts that both have and that differ.
    #[must_use]
    pub fn changes_to(&self, later: &Self) -> Vec<EnvironmentDifference> {
        let facts = self.facts.iter().filter_map(|(key, before)| {
            let after = later.facts.get(key).filter(|after| *after != before)?;
            Some(difference(key, before.clone(), after.clone()))
        });
        let rate = |value: f64| display::rate(BitRate::from_bits_per_second(value));
        let traffic = self.traffic.iter().filter_map(|(key, before)| {
            let after = later.traffic.get(key).filter(|after| is_other_traffic(*before, **after))?;
            Some(difference(key, rate(*before), rate(*after)))
        });
        // What fills the path explains most, and comes first.
        traffic.chain(facts).collect()
    }

    /// Replaces facts by those of a later result.
    pub fn update(&mut self, later: Self) {
        self.facts.extend(later.facts);
        self.traffic.extend(later.traffic);
    }
}

fn sum(traffic: OtherTraffic) -> f64 {
    traffic.received_bits_per_second + traffic.sent_bits_per_second
}

fn is_other_traffic(before: f64, after: f64) -> bool {
    let (less, more) = (before.min(after), before.max(after));
    more >= 2.0 * less && more - less >= MIN_TRAFFIC_CHANGE
}

fn difference(key: &str, before: String, after: String) -> EnvironmentDifference {
    EnvironmentDifference { key: key.to_owned(), before: Some(before), after: Some(after) }
}
