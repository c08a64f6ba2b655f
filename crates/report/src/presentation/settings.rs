//! Settings in effect: those that a tuning kept, with the commands that undo them, else those of this host.

use linerate_documents::environment::HostEnvironmentRecord;
use linerate_documents::run::{RunDocument, RunResult};
use linerate_documents::tune::{KeptSet, TuneDocument};

use super::{NamedFact, Quantity, SettingsInEffect};

/// Settings in effect during `run`, or after it where it changed some.
pub(super) fn in_effect(run: &RunDocument) -> SettingsInEffect {
    let kept = tuning(run).map(|tune| tune.kept.as_slice()).unwrap_or_default();
    if kept.is_empty() {
        let settings = run.environment.near.as_ref().map(of_host).unwrap_or_default();
        return SettingsInEffect { settings, undo: Vec::new() };
    }
    let mut undo: Vec<String> = Vec::new();
    // Hosts of the lab are gone with their settings.
    for set in kept.iter().filter(|_| !run.host.starts_with("lab:")) {
        if !undo.contains(&set.undo) {
            undo.push(set.undo.clone());
        }
    }
    SettingsInEffect { settings: kept.iter().flat_map(of_set).collect(), undo }
}

fn tuning(run: &RunDocument) -> Option<&TuneDocument> {
    match &run.result {
        RunResult::Tune(document) => Some(document),
        RunResult::Doctor(document) => document.tune.as_deref(),
        _ => None,
    }
}

fn of_set(set: &KeptSet) -> Vec<NamedFact> {
    let fact = |text: &String, lifetime: &str| NamedFact::new(&format!("{} host, {lifetime}", set.end.name()), text);
    let persistent = set.persistent.iter().map(|text| fact(text, "persistent"));
    persistent.chain(set.until_reboot.iter().map(|text| fact(text, "until reboot"))).collect()
}

/// Settings that decide how this host sends and receives.
fn of_host(host: &HostEnvironmentRecord) -> Vec<NamedFact> {
    let mut facts = Vec::new();
    let mut push = |name: &str, text: Option<String>| facts.extend(text.map(|text| NamedFact::new(name, text)));
    push("Congestion control", host.congestion_control.clone());
    if let Some(interface) = &host.interface {
        let discipline = interface.queueing_discipline.as_ref();
        push("Queueing discipline", discipline.map(|discipline| format!("{discipline} on {}", interface.name)));
        push("MTU", interface.mtu_bytes.map(|mtu| Quantity::bytes(mtu).display_text()));
    }
    for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        push(key, host.sysctls.get(key).cloned());
    }
    facts
}
