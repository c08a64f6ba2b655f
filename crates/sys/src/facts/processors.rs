//! The processors of this host: `/sys/devices/system/cpu`, `/proc/stat`, `/proc/pressure`.

use linerate_units::CompactCollect;
use std::collections::BTreeMap;

use linerate_model::fact::Fact;
use linerate_model::host::processors::{HostProcessors, PressureAverages, ProcessorSet, ProcessorTicks};

use super::reading::{entry_numbers, file, names, parsed};

const DIRECTORY: &str = "/sys/devices/system/cpu";

pub(super) fn read() -> HostProcessors {
    let ticks = ticks();
    let pressure = |name: &str| parsed(format!("/proc/pressure/{name}"), PressureAverages::parse);
    HostProcessors {
        online: parsed(format!("{DIRECTORY}/online"), ProcessorSet::parse_list),
        isolated: parsed(format!("{DIRECTORY}/isolated"), ProcessorSet::parse_list),
        governors: by_policy("scaling_governor"),
        energy_preferences: by_policy("energy_performance_preference"),
        nodes: nodes(),
        share_cores: parsed(format!("{DIRECTORY}/smt/active"), |text| Some(text == "1")),
        total_ticks: match ticks.clone() {
            Fact::Known(ticks) => ticks
                .get(&None)
                .map_or_else(|| Fact::failed("/proc/stat has no total of all processors"), |all| Fact::Known(*all)),
            Fact::Unknown(unread) => Fact::Unknown(unread),
        },
        ticks_by_processor: ticks.map(each),
        processor_pressure: pressure("cpu"),
        memory_pressure: pressure("memory"),
        disk_pressure: pressure("io"),
    }
}

/// Ticks of all processors together and of each, since boot.
pub(super) fn ticks() -> Fact<BTreeMap<Option<u32>, ProcessorTicks>> {
    parsed("/proc/stat", |text| Some(ProcessorTicks::parse_all(text)).filter(|all| !all.is_empty()))
}

/// Ticks by processor, without the total.
pub(super) fn each(ticks: BTreeMap<Option<u32>, ProcessorTicks>) -> BTreeMap<u32, ProcessorTicks> {
    ticks.into_iter().filter_map(|(number, ticks)| Some((number?, ticks))).collect_compactly()
}

/// A setting of the processors that share a clock rate, by its value.
fn by_policy(setting: &str) -> Fact<BTreeMap<String, ProcessorSet>> {
    let directory = format!("{DIRECTORY}/cpufreq");
    let policies = match names(&directory) {
        Fact::Known(names) => entry_numbers(&names, "policy"),
        Fact::Unknown(unread) => return Fact::Unknown(unread),
    };
    let mut found: BTreeMap<String, ProcessorSet> = BTreeMap::new();
    let mut reason = Fact::absent(format!("{directory} is empty: a hypervisor or the firmware chooses the clock rate"));
    for policy in policies {
        let policy = format!("{directory}/policy{policy}");
        match file(format!("{policy}/{setting}")) {
            Fact::Known(value) => {
                let affected = file(format!("{policy}/affected_cpus"));
                let numbers = affected.known().map(String::as_str).unwrap_or_default().split_ascii_whitespace();
                found.entry(value).or_default().0.extend(numbers.filter_map(|number| number.parse::<u32>().ok()));
            }
            unknown @ Fact::Unknown(_) => reason = unknown.map(|_| BTreeMap::new()),
        }
    }
    if found.is_empty() { reason } else { Fact::Known(found) }
}

fn nodes() -> Fact<BTreeMap<u32, ProcessorSet>> {
    const NODES: &str = "/sys/devices/system/node";
    names(NODES).map(|names| {
        let processors = |node| {
            let list = file(format!("{NODES}/node{node}/cpulist"));
            list.known().and_then(|list| ProcessorSet::parse_list(list)).map(|processors| (node, processors))
        };
        entry_numbers(&names, "node").into_iter().filter_map(processors).collect_compactly()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_hosts_processors() {
        let processors = read();
        let online = processors.online.known().expect("every kernel lists them");
        assert_eq!(Some(online.len()), crate::host::online_processors());
        let each = processors.ticks_by_processor.known().expect("procfs");
        assert!(online.0.iter().all(|number| each.contains_key(number)), "{each:?}");
        assert!(processors.total_ticks.known().is_some_and(|all| all.total() > 0));
        assert!(processors.governors.known().is_none_or(|governors| !governors.is_empty()));
        if let Some(nodes) = processors.nodes.known() {
            assert!(nodes.values().all(|near| near.is_within(online) || near.is_empty()), "{nodes:?}");
        }
    }
}
