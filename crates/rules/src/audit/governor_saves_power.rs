//! The processors' clock rate is held down.

use std::collections::BTreeMap;

use linerate_model::change::{Group, TakesEffect, Target};
use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::processors::ProcessorSet;

use super::Rule;
use super::link_support::{Edit, Saying, host_with, link, processors, working};

const ID: &str = "governor-saves-power";
const CITATION: &str = "kernel: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst; docs/seeds-checklist.md";
/// Below, no processor of the last ten years is at its limit with one flow.
const FAST: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "The processors' clock rate is held down on a host with a fast link.",
    explanation: "One TCP connection is received by one processor, and above some 10 Gbit/s its clock rate is often the limit. With the drivers acpi-cpufreq or cppc_cpufreq the governor powersave means the lowest clock rate, always. With intel_pstate and amd-pstate it means that the processor chooses, by its energy preference: there only the preferences `power` and `balance_power` hold it down.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host("powersave", None),
    silent: || host("powersave", Some("performance")),
};

fn host(governor: &str, preference: Option<&str>) -> HostFacts {
    let mut host = host_with(vec![link("eth0")]);
    let of_all = |value: &str| [(value.to_owned(), processors("0-7"))].into();
    host.processors.governors = Fact::Known(of_all(governor));
    host.processors.energy_preferences =
        preference.map_or_else(|| Fact::absent("none"), |preference| Fact::Known(of_all(preference)));
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some((name, speed)) = working(host).find_map(|link| Some((&link.name, link.at_least_gigabits(FAST)?))) else {
        return Vec::new();
    };
    let held = match (host.processors.governors.known(), host.processors.energy_preferences.known()) {
        (Some(_), Some(preferences)) => by_preference(preferences),
        (Some(governors), None) => governors.get("powersave").map(|set| (set, lowest(set), Severity::Warning)),
        (None, _) => None,
    };
    let Some((set, say, severity)) = held else { return Vec::new() };
    let (what, setting, from, to) = say;
    let file = |number: u32| format!("/sys/devices/system/cpu/cpu{number}/cpufreq/{setting}");
    let saying = Saying {
        rule: (ID, CITATION),
        severity,
        subject: setting.to_owned(),
        text: format!("Processors {set} are told to {what}; {name} has a link at {speed}."),
        evidence: vec![format!("{setting} = {from} on processors {set}"), format!("{name}: {speed}")],
        remedy: vec![format!("echo {to} | tee /sys/devices/system/cpu/cpu*/cpufreq/{setting}")],
        risk: "more power and heat, also when nothing is sent",
    };
    let only = set.0.first().filter(|_| set.len() == 1);
    match only {
        Some(number) => vec![saying.with_change(Edit {
            target: Target::File { path: file(*number) },
            from: from.to_owned(),
            to: to.to_owned(),
            group: Group::Processors,
            takes_effect: TakesEffect::Now,
            arithmetic: None,
        })],
        None => vec![saying.finding()],
    }
}

/// What they are told, the setting that tells it, its value, and a better one.
type Told = (&'static str, &'static str, &'static str, &'static str);

fn lowest(_: &ProcessorSet) -> Told {
    ("run at their lowest clock rate", "scaling_governor", "powersave", "performance")
}

fn by_preference(preferences: &BTreeMap<String, ProcessorSet>) -> Option<(&ProcessorSet, Told, Severity)> {
    let held = ["power", "balance_power"].into_iter().find_map(|value| Some((value, preferences.get(value)?)));
    held.map(|(value, set)| {
        let told = ("save energy rather than time", "energy_performance_preference", value, "performance");
        (set, told, Severity::Advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_powersave_means_depends_on_the_driver() {
        assert_eq!(check(&host("powersave", None))[0].severity, Severity::Warning);
        assert_eq!(check(&host("powersave", Some("balance_performance"))), []);
        assert_eq!(check(&host("powersave", Some("power")))[0].severity, Severity::Advice);
        assert_eq!(check(&host("schedutil", None)), []);
        let mut slow = host("powersave", None);
        slow.interfaces[0].speed = Fact::absent("a virtual device");
        assert_eq!(check(&slow), []);
    }
}
