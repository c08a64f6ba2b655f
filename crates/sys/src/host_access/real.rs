//! This machine.

use linerate_units::CompactCollect;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use linerate_model::change::{ChangeTarget, InterfaceIdentity};

use super::explain::refused;
use super::{HostAccess, HostIdentity, InterfaceLocation, device, firewall_table, identity, interface, link, queueing};
use super::{route, setting};
use crate::error::{Error, Result};
use crate::traffic_control;
use crate::whole_file::{self, FileMode};

/// The machine that this runs on, in the network namespace of the thread that asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealHost;

impl HostAccess for RealHost {
    fn read(&self, target: &ChangeTarget) -> Result<Option<String>> {
        let failed = |cause| refused("reading", target, None, cause);
        match target {
            ChangeTarget::Setting { key } => setting::read(&setting::path_of(key)?).map_err(failed),
            ChangeTarget::Link { interface, attribute } => link::read(interface, *attribute).map_err(failed),
            ChangeTarget::Offload { interface, feature } => {
                device::read_offload(interface, feature).map_err(|error| explained(error, "reading", target))
            }
            ChangeTarget::Device { interface, attribute } => device::read(interface, *attribute).map_err(failed),
            ChangeTarget::Queueing { interface } => {
                queueing::read(interface).map_err(|error| explained(error, "reading", target))
            }
            ChangeTarget::TrafficControl { interface } => {
                traffic_control::read(interface).map(Some).map_err(|error| explained(error, "reading", target))
            }
            ChangeTarget::FirewallTable { name } => firewall_table::read(name),
            ChangeTarget::Route { destination } => route::read(destination),
            ChangeTarget::File { path } => setting::read(file(path)?).map_err(failed),
        }
    }

    fn write(&self, target: &ChangeTarget, value: Option<&str>) -> Result<()> {
        let failed = |cause| refused("setting", target, value, cause);
        let needed = || {
            let reason = "it always has a value";
            value.ok_or_else(|| Error::refused(format!("removing {target}"), reason))
        };
        match target {
            ChangeTarget::Setting { key } => setting::write(&setting::path_of(key)?, needed()?).map_err(failed),
            ChangeTarget::Link { interface, attribute } => {
                link::write(interface, *attribute, needed()?).map_err(failed)
            }
            ChangeTarget::Offload { interface, feature } => {
                device::write_offload(interface, feature, needed()?).map_err(failed)
            }
            ChangeTarget::Device { interface, attribute } => {
                device::write(interface, *attribute, needed()?).map_err(failed)
            }
            ChangeTarget::Queueing { interface } => {
                queueing::write(interface, value).map_err(|error| explained(error, "setting", target))
            }
            ChangeTarget::TrafficControl { interface } => {
                traffic_control::write(interface, value).map_err(|error| explained(error, "setting", target))
            }
            ChangeTarget::FirewallTable { name } => firewall_table::write(name, value),
            ChangeTarget::Route { destination } => route::write(destination, value),
            ChangeTarget::File { path } => setting::write(file(path)?, needed()?).map_err(failed),
        }
    }

    fn check_restorable(&self, target: &ChangeTarget, value: &str) -> Result<()> {
        match target {
            ChangeTarget::TrafficControl { interface } => traffic_control::check_restorable(interface, value),
            _ => Ok(()),
        }
    }

    fn read_file(&self, path: &Path) -> Result<Option<String>> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Error::system(format!("reading {}", path.display()), cause)),
        }
    }

    fn replace_file(&self, path: &Path, contents: Option<&str>) -> Result<()> {
        match contents {
            Some(contents) => whole_file::replace(path, contents, FileMode::Plain),
            None => whole_file::remove(path),
        }
    }

    fn identity(&self) -> Result<HostIdentity> {
        identity::identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        identity::namespace_file(namespace)
    }

    fn interface_identity(&self, name: &str) -> Result<Option<InterfaceIdentity>> {
        interface::identity_of(name)
    }

    fn modules(&self) -> BTreeSet<String> {
        let list = fs::read_to_string("/proc/modules").unwrap_or_default();
        list.lines().filter_map(|line| line.split_ascii_whitespace().next()).map(str::to_owned).collect_compactly()
    }

    fn locate_interface(&self, interface: &InterfaceIdentity) -> Result<InterfaceLocation> {
        interface::locate(interface)
    }
}

/// Adds the explanation for this target to an error with its own text, if it is the kernel's.
fn explained(error: Error, operation: &str, target: &ChangeTarget) -> Error {
    match error.errno() {
        Some(errno) => refused(operation, target, None, io::Error::from_raw_os_error(errno)),
        None => error,
    }
}

/// Files that hold one value are in these two directories; others must not be overwritten here.
fn file(path: &str) -> Result<&Path> {
    let place = Path::new(path);
    let is_plain = place.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    if is_plain && (path.starts_with("/sys/") || path.starts_with("/proc/")) {
        return Ok(place);
    }
    Err(Error::refused(format!("looking for {path:?}"), "only files of /sys and /proc hold one value"))
}

#[cfg(test)]
mod tests {
    use linerate_model::change::LinkAttribute;

    use super::*;
    use crate::host_access::is_gone;

    #[test]
    fn reading_needs_no_privilege() {
        let read = |key: &str| RealHost.read(&ChangeTarget::Setting { key: key.into() }).expect("an answer");
        assert!(read("net.ipv4.tcp_rmem").is_some_and(|value| value.split(' ').count() == 3));
        assert_eq!(read("net.ipv4.no_such_setting"), None);
        let gone = ChangeTarget::Link { interface: "no-such-dev".into(), attribute: LinkAttribute::Mtu };
        assert!(is_gone(&RealHost.read(&gone).expect_err("not there")));
        let gone = ChangeTarget::Queueing { interface: "no-such-dev".into() };
        assert!(is_gone(&RealHost.read(&gone).expect_err("not there")));
        for path in ["/etc/passwd", "/sys/../etc/passwd", "sys/x"] {
            assert!(RealHost.read(&ChangeTarget::File { path: path.into() }).is_err(), "{path}");
        }
        let setting = ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".into() };
        assert!(RealHost.write(&setting, None).expect_err("always there").to_string().contains("always has a value"));
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let directory = std::env::temp_dir().join(format!("linerate-replace-{}", std::process::id()));
        let path = directory.join("90-linerate.conf");
        assert_eq!(RealHost.read_file(&path).expect("no error"), None);
        for contents in ["first", "second, which is longer", ""] {
            RealHost.replace_file(&path, Some(contents)).expect("written");
            assert_eq!(RealHost.read_file(&path).expect("read").as_deref(), Some(contents));
            assert_eq!(fs::read_dir(&directory).expect("there").count(), 1, "nothing else is left");
        }
        RealHost.replace_file(&path, None).expect("removed");
        RealHost.replace_file(&path, None).expect("nothing left to do");
        fs::remove_dir(&directory).expect("empty");
    }

    #[test]
    #[ignore = "needs root: settings and devices of a network namespace"]
    fn written_values_can_be_read() {
        let chain = crate::test_network::NamespaceChain::new(1400);
        let within = || {
            for (target, value) in [
                (ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".into() }, "4096 100000 7000000"),
                (ChangeTarget::Link { interface: "near0".into(), attribute: LinkAttribute::Mtu }, "1432"),
                (ChangeTarget::Link { interface: "near0".into(), attribute: LinkAttribute::TransmitQueueLength }, "77"),
                (ChangeTarget::Link { interface: "near0".into(), attribute: LinkAttribute::SegmentCount }, "1"),
                (ChangeTarget::Link { interface: "near0".into(), attribute: LinkAttribute::SegmentationSize }, "30000"),
                (ChangeTarget::Offload { interface: "near0".into(), feature: "tx-tcp-segmentation".into() }, "off"),
            ] {
                let before = RealHost.read(&target).expect("read").expect("there");
                assert_ne!(before, value);
                RealHost.write(&target, Some(value)).expect("written");
                assert_eq!(RealHost.read(&target).expect("read").as_deref(), Some(value));
                RealHost.write(&target, Some(&before)).expect("restored");
                assert_eq!(RealHost.read(&target).expect("read"), Some(before));
            }
            let wrong = ChangeTarget::Setting { key: "net.ipv4.tcp_congestion_control".into() };
            let error = RealHost.write(&wrong, Some("no-such")).expect_err("unknown").to_string();
            assert!(error.contains("no such congestion control"), "{error}");
            let absent = ChangeTarget::Setting { key: "net.core.netdev_max_backlog".into() };
            assert_eq!(RealHost.read(&absent).expect("an answer"), None);
            let error = RealHost.write(&absent, Some("1")).expect_err("not here").to_string();
            assert!(error.contains("belongs to the whole host"), "{error}");
        };
        chain.near.within(within).expect("entered");
    }
}
