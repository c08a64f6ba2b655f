//! Power management holds the processors' clock rate down.

use std::collections::BTreeMap;

use linerate_model::change::{ChangeGroup, ChangeTarget, EffectTiming};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::processors::ProcessorSet;
use linerate_units::BitRate;

use super::AuditRule;
use super::link_support::{FindingChange, FindingDraft, host_with, link, processors, working};

const ID: &str = "governor-saves-power";
const CITATION: &str = "kernel: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst; docs/seeds-checklist.md";
/// Link speed below which one flow does not saturate any processor of the last ten years.
const MIN_LINK_SPEED: BitRate = BitRate::from_bits_per_second(10e9);

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "The processors' clock rate is held down on a host with a fast link.",
    explanation: "One TCP connection is received by one processor, and above some 10 Gbit/s its clock rate is often \
        the limit. With the drivers acpi-cpufreq or cppc_cpufreq the governor powersave means the lowest clock rate, \
        always. With intel_pstate and amd-pstate it means that the processor chooses, by its energy preference: there \
        only the preferences `power` and `balance_power` hold it down.",
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

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some((name, speed)) =
        working(host).find_map(|link| Some((&link.name, link.speed_of_at_least(MIN_LINK_SPEED)?)))
    else {
        return Vec::new();
    };
    let held = match (host.processors.governors.known(), host.processors.energy_preferences.known()) {
        (Some(_), Some(preferences)) => by_preference(preferences),
        (Some(governors), None) => {
            governors.get("powersave").map(|set| (set, lowest_clock(set), FindingSeverity::Warning))
        }
        (None, _) => None,
    };
    let Some((set, restriction, severity)) = held else { return Vec::new() };
    let (what, setting, from, to) = restriction;
    let file = |number: u32| format!("/sys/devices/system/cpu/cpu{number}/cpufreq/{setting}");
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity,
        subject: setting.to_owned(),
        text: format!("Processors {set} are set to {what}; {name} has a link at {speed}."),
        evidence: vec![format!("{setting} = {from} on processors {set}"), format!("{name}: {speed}")],
        remedy: vec![format!("echo {to} | tee /sys/devices/system/cpu/cpu*/cpufreq/{setting}")],
        risk: "more power and heat, also when idle",
    };
    let only = set.0.first().filter(|_| set.len() == 1);
    match only {
        Some(number) => vec![draft.with_change(FindingChange {
            target: ChangeTarget::File { path: file(*number) },
            from: from.to_owned(),
            to: to.to_owned(),
            group: ChangeGroup::Processors,
            takes_effect: EffectTiming::Now,
            arithmetic: None,
        })],
        None => vec![draft.finding()],
    }
}

/// Effect of the setting, its name, its value, and a better value.
type ClockRestriction = (&'static str, &'static str, &'static str, &'static str);

fn lowest_clock(_: &ProcessorSet) -> ClockRestriction {
    ("run at their lowest clock rate", "scaling_governor", "powersave", "performance")
}

fn by_preference(
    preferences: &BTreeMap<String, ProcessorSet>,
) -> Option<(&ProcessorSet, ClockRestriction, FindingSeverity)> {
    let held = ["power", "balance_power"].into_iter().find_map(|value| Some((value, preferences.get(value)?)));
    held.map(|(value, set)| {
        let restriction = ("save energy rather than time", "energy_performance_preference", value, "performance");
        (set, restriction, FindingSeverity::Advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_powersave_means_depends_on_the_driver() {
        assert_eq!(check(&host("powersave", None))[0].severity, FindingSeverity::Warning);
        assert_eq!(check(&host("powersave", Some("balance_performance"))), []);
        assert_eq!(check(&host("powersave", Some("power")))[0].severity, FindingSeverity::Advice);
        assert_eq!(check(&host("schedutil", None)), []);
        let mut slow = host("powersave", None);
        slow.interfaces[0].speed = Fact::absent("a virtual device");
        assert_eq!(check(&slow), []);
    }
}
