//! Programs that manage this host's settings.

use linerate_units::CompactCollect;
use std::collections::BTreeMap;
use std::path::Path;

use linerate_model::fact::Fact;
use linerate_model::host::link::NetworkLink;
use linerate_model::host::managers::{InterfaceManager, InterfaceOwnership, SettingsManagers};

use super::reading::{file, names};
use super::running::RunningProcess;

pub(super) fn read(processes: &[RunningProcess], links: &[NetworkLink]) -> SettingsManagers {
    let runs = |name: &str| processes.iter().any(|process| process.name == name);
    let whole = if processes.iter().any(|process| process.number == 1) {
        Fact::Known(())
    } else {
        Fact::denied("the first process is not visible: other users' processes are hidden")
    };
    SettingsManagers {
        interfaces: interfaces(links),
        tuned_profile: match file("/etc/tuned/active_profile") {
            Fact::Known(profile) if runs("tuned") => Fact::Known(profile),
            _ => Fact::absent("tuned does not run"),
        },
        bpftune: whole.clone().map(|()| runs("bpftune")),
        irqbalance: whole.map(|()| runs("irqbalance")),
        first_process: file("/proc/1/comm"),
    }
}

/// The state files name interfaces by their numbers, which are those of the host's namespace: interfaces of another one
/// have no owner.
fn interfaces(links: &[NetworkLink]) -> BTreeMap<String, InterfaceOwnership> {
    let root = Path::new("/");
    let ifupdown = ifupdown_interfaces(root);
    let is_host = |link: &&NetworkLink| {
        let index = file(format!("/sys/class/net/{}/ifindex", link.name));
        !link.is_loopback && index.known().and_then(|index| index.parse().ok()) == Some(link.index)
    };
    let owned = |link: &NetworkLink| Some((link.name.clone(), owner(root, link, &ifupdown)?));
    links.iter().filter(is_host).filter_map(owned).collect_compactly()
}

fn owner(root: &Path, link: &NetworkLink, ifupdown: &BTreeMap<String, String>) -> Option<InterfaceOwnership> {
    let state = |path: String| {
        let text = file(root.join(&path));
        text.known().cloned().map(|text| (format!("/{path}"), text))
    };
    let index = link.index;
    if let Some((evidence, text)) = state(format!("run/systemd/netif/links/{index}"))
        && let Some(manager) = networkd_manager(&text)
    {
        return Some(InterfaceOwnership { manager, evidence });
    }
    if let Some((evidence, text)) = state(format!("run/NetworkManager/devices/{index}"))
        && value(&text, "managed").is_some_and(|managed| matches!(managed, "full" | "true"))
    {
        return Some(InterfaceOwnership { manager: InterfaceManager::NetworkManager, evidence });
    }
    let evidence = ifupdown.get(&link.name)?.clone();
    Some(InterfaceOwnership { manager: InterfaceManager::Ifupdown, evidence })
}

/// The manager in the state file of systemd-networkd: networkd or netplan, if it has set the interface up.
fn networkd_manager(state: &str) -> Option<InterfaceManager> {
    matches!(value(state, "ADMIN_STATE")?, "configured" | "configuring" | "degraded" | "failed").then_some(())?;
    let by_netplan = value(state, "NETWORK_FILE").is_some_and(|path| path.contains("netplan"));
    Some(if by_netplan { InterfaceManager::Netplan } else { InterfaceManager::Networkd })
}

fn value<'a>(state: &'a str, key: &str) -> Option<&'a str> {
    state.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim)
}

/// Interfaces that ifupdown has set up, or would, and the file that lists each.
fn ifupdown_interfaces(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut files = vec!["etc/network/interfaces".to_owned()];
    if let Some(names) = names(root.join("etc/network/interfaces.d")).known() {
        files.extend(names.iter().map(|name| format!("etc/network/interfaces.d/{name}")));
    }
    for path in files {
        let text = file(root.join(&path));
        let text = text.known().map(String::as_str).unwrap_or_default();
        found.extend(interfaces_in(text).map(|name| (name.to_owned(), format!("/{path}"))));
    }
    found
}

/// The names in lines of `iface NAME inet …` (interfaces(5)).
fn interfaces_in(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim_start().strip_prefix("iface ")?.split_ascii_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_networkd() {
        let state = "# private\nADMIN_STATE=configured\nOPER_STATE=routable\n\
                     NETWORK_FILE=/run/systemd/network/10-netplan-eth0.network\n";
        assert_eq!(networkd_manager(state), Some(InterfaceManager::Netplan));
        assert_eq!(networkd_manager(&state.replace("10-netplan", "10")), Some(InterfaceManager::Networkd));
        assert_eq!(networkd_manager(&state.replace("configured", "unmanaged")), None);
        assert_eq!(networkd_manager(""), None);
    }

    #[test]
    fn interfaces_of_ifupdown() {
        let text = "auto lo\niface lo inet loopback\n  iface eth0 inet static\n#iface eth1 inet dhcp\nifaces x\n";
        assert_eq!(interfaces_in(text).collect::<Vec<_>>(), ["lo", "eth0"]);
    }

    #[test]
    fn this_hosts_managers() {
        let managers = read(&super::super::running::processes(), &super::super::link::listed());
        assert!(managers.first_process.known().is_some_and(|name| !name.is_empty()));
        assert!(!managers.interfaces.contains_key("lo"));
    }
}
