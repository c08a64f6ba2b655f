//! Interfaces in targets and values: their names may change while a change is in effect.

use linerate_units::CompactCollect;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ChangeTarget;

/// An interface, by more than its name: the name may change, and another interface may get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceIdentity {
    /// Name.
    pub name: String,
    /// Number (index), unique within a network namespace.
    pub index: u32,
    /// Link-layer address; empty where there is none.
    pub address: Vec<u8>,
}

/// Tokens before the name of an interface, in the values of routes, queueing disciplines and traffic control.
const NAME_TOKENS: [&str; 3] = ["dev", "towards", "name"];

/// First line of a record of traffic control, before the name.
const RECORD_HEADING: &str = "traffic control of";

/// Position of the interface in `net.ipv4.conf.eth0.rp_filter`, and in `/sys/class/net/eth0/queues`.
const SETTING_POSITION: usize = 3;
const FILE_DIRECTORY: &str = "net";

impl ChangeTarget {
    /// Names of the interfaces that the target, or the values of a route, belong to.
    pub fn interfaces<'a>(&self, values: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
        match self {
            Self::Setting { key } => setting_parts(key).1.into_iter().collect_compactly(),
            Self::File { path } => file_interface(path).map(str::to_owned).into_iter().collect_compactly(),
            Self::Route { .. } => values.into_iter().flat_map(route_devices).map(str::to_owned).collect_compactly(),
            _ => self.interface().map(str::to_owned).into_iter().collect_compactly(),
        }
    }

    /// The target after the interface `old` was renamed to `new`.
    #[must_use]
    pub fn with_renamed(&self, old: &str, new: &str) -> Self {
        let mut target = self.clone();
        match &mut target {
            Self::Link { interface, .. }
            | Self::Offload { interface, .. }
            | Self::Device { interface, .. }
            | Self::Queueing { interface }
            | Self::TrafficControl { interface }
                if interface == old =>
            {
                new.clone_into(interface);
            }
            Self::Setting { key } if setting_parts(key).1.as_deref() == Some(old) => *key = renamed_setting(key, new),
            Self::File { path } if file_interface(path) == Some(old) => {
                *path = path.replacen(&format!("/{FILE_DIRECTORY}/{old}/"), &format!("/{FILE_DIRECTORY}/{new}/"), 1);
            }
            _ => {}
        }
        target
    }

    /// A value of this target after the interface `old` was renamed to `new`. Intermediate devices keep their names.
    #[must_use]
    pub fn value_with_renamed(&self, value: &str, old: &str, new: &str) -> String {
        match self {
            Self::Queueing { .. } | Self::TrafficControl { .. } | Self::Route { .. } => {
                value.split('\n').map(|line| renamed_in_line(line, old, new)).collect::<Vec<_>>().join("\n")
            }
            _ => value.to_owned(),
        }
    }
}

fn route_devices(value: &str) -> impl Iterator<Item = &str> {
    let tokens = value.split_ascii_whitespace();
    tokens.clone().zip(tokens.skip(1)).filter(|(token, _)| *token == "dev").map(|(_, name)| name)
}

fn renamed_in_line(line: &str, old: &str, new: &str) -> String {
    let heading = line.strip_prefix(RECORD_HEADING).and_then(|rest| rest.strip_prefix(' '));
    if let Some(rest) = heading.and_then(|rest| rest.strip_prefix(old))
        && (rest.is_empty() || rest.starts_with(' '))
    {
        return format!("{RECORD_HEADING} {new}{rest}");
    }
    let mut before = "";
    let renamed = line.split(' ').map(|token| {
        let is_name = token == old && NAME_TOKENS.contains(&before);
        before = token;
        if is_name { new } else { token }
    });
    renamed.collect::<Vec<_>>().join(" ")
}

/// Separator of a key, and the interface in it (`sysctl.d(5)`: dots and slashes may change places).
fn setting_parts(key: &str) -> (char, Option<String>) {
    let has_slashes = key.find('/').is_some_and(|slash| key.find('.').is_none_or(|dot| slash < dot));
    let separator = if has_slashes { '/' } else { '.' };
    let parts: Vec<&str> = key.split(separator).collect();
    let interface = match parts[..] {
        ["net", "ipv4" | "ipv6", "conf" | "neigh", name, _, ..] if !["all", "default"].contains(&name) => {
            Some(if has_slashes { name.to_owned() } else { name.replace('/', ".") })
        }
        _ => None,
    };
    (separator, interface)
}

fn renamed_setting(key: &str, new: &str) -> String {
    let (separator, _) = setting_parts(key);
    let new = if separator == '.' { new.replace('.', "/") } else { new.to_owned() };
    let mut parts: Vec<&str> = key.split(separator).collect();
    parts[SETTING_POSITION] = &new;
    parts.join(&separator.to_string())
}

/// Interface of a file in `/sys/class/net/…/` or `/sys/devices/…/net/…/`.
fn file_interface(path: &str) -> Option<&str> {
    let mut parts = path.strip_prefix("/sys/")?.split('/').skip_while(|part| *part != FILE_DIRECTORY).skip(1);
    let name = parts.next()?;
    parts.next().map(|_| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str) -> ChangeTarget {
        ChangeTarget::Setting { key: key.into() }
    }

    fn names(target: &ChangeTarget, values: &[&str]) -> Vec<String> {
        target.interfaces(values.iter().copied()).into_iter().collect()
    }

    #[test]
    fn interfaces_of_targets() {
        for (key, name, renamed) in [
            ("net.ipv4.conf.eth0/100.rp_filter", Some("eth0.100"), "net.ipv4.conf.wan/7.rp_filter"),
            ("net/ipv6/conf/eth0.100/mtu", Some("eth0.100"), "net/ipv6/conf/wan.7/mtu"),
            ("net.ipv4.conf.all.rp_filter", None, "net.ipv4.conf.all.rp_filter"),
            ("net.ipv4.tcp_rmem", None, "net.ipv4.tcp_rmem"),
        ] {
            assert_eq!(names(&setting(key), &[]).first().map(String::as_str), name, "{key}");
            assert_eq!(setting(key).with_renamed("eth0.100", "wan.7"), setting(renamed));
        }
        let file = |path: &str| ChangeTarget::File { path: path.into() };
        let mask = file("/sys/class/net/eth0/queues/rx-0/rps_cpus");
        assert_eq!(names(&mask, &[]), ["eth0"]);
        assert_eq!(mask.with_renamed("eth0", "wan"), file("/sys/class/net/wan/queues/rx-0/rps_cpus"));
        assert_eq!(mask.with_renamed("eth", "wan"), mask);
        assert!(names(&file("/proc/irq/9/smp_affinity_list"), &[]).is_empty());
        let queueing = ChangeTarget::Queueing { interface: "eth0".into() };
        assert_eq!(names(&queueing, &[]), ["eth0"]);
        assert_eq!(queueing.with_renamed("eth0", "wan"), ChangeTarget::Queueing { interface: "wan".into() });
    }

    #[test]
    fn values_follow_a_rename() {
        let route = ChangeTarget::Route { destination: "default".into() };
        let several = "nexthop via 192.0.2.1 dev eth0 weight 1 nexthop via 192.0.2.9 dev eth1 weight 1";
        assert_eq!(names(&route, &[several, "dev eth2"]), ["eth0", "eth1", "eth2"]);
        assert_eq!(route.value_with_renamed("via 192.0.2.1 dev eth0 x", "eth0", "wan"), "via 192.0.2.1 dev wan x");
        let tree = ChangeTarget::TrafficControl { interface: "eth0".into() };
        let record = "traffic control of eth0 txqueuelen 0\n\
                      link dev ifb4eth0 kind ifb index 7\n\
                      qdisc dev eth0 parent root handle 1: kind eth0 options 01\n\
                      filter dev eth1 parent 1: options 02 towards ifb4eth0 towards eth0";
        assert_eq!(
            tree.value_with_renamed(record, "eth0", "wan"),
            "traffic control of wan txqueuelen 0\n\
             link dev ifb4eth0 kind ifb index 7\n\
             qdisc dev wan parent root handle 1: kind eth0 options 01\n\
             filter dev eth1 parent 1: options 02 towards ifb4eth0 towards wan"
        );
        assert_eq!(tree.value_with_renamed("traffic control of eth01", "eth0", "wan"), "traffic control of eth01");
        let setting = setting("net.ipv4.tcp_rmem");
        assert_eq!(setting.value_with_renamed("dev eth0", "eth0", "wan"), "dev eth0");
    }
}
