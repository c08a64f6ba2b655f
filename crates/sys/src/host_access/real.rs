//! This machine.

use std::fs;
use std::io;
use std::path::Path;

use linerate_model::change::Target;

use super::explain::refused;
use super::{Host, Identity, device, identity, link, queueing, route, setting};
use crate::error::{Error, Result};
use crate::traffic_control;
use crate::whole_file::{self, Mode};

/// The machine that this runs on, in the network namespace of the thread that asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealHost;

impl Host for RealHost {
    fn read(&self, target: &Target) -> Result<Option<String>> {
        let failed = |cause| refused("reading", target, None, cause);
        match target {
            Target::Setting { key } => setting::read(&setting::path_of(key)?).map_err(failed),
            Target::Link { interface, attribute } => link::read(interface, *attribute).map_err(failed),
            Target::Offload { interface, feature } => {
                device::read_offload(interface, feature).map_err(|error| explained(error, "reading", target))
            }
            Target::Device { interface, attribute } => device::read(interface, *attribute).map_err(failed),
            Target::Queueing { interface } => {
                queueing::read(interface).map_err(|error| explained(error, "reading", target))
            }
            Target::TrafficControl { interface } => {
                traffic_control::read(interface).map(Some).map_err(|error| explained(error, "reading", target))
            }
            Target::Route { destination } => route::read(destination),
            Target::File { path } => setting::read(file(path)?).map_err(failed),
        }
    }

    fn write(&self, target: &Target, value: Option<&str>) -> Result<()> {
        let failed = |cause| refused("setting", target, value, cause);
        let needed = || {
            let reason = "there is nothing to take away: it always has a value";
            value.ok_or_else(|| Error::refused(format!("taking away {target}"), reason))
        };
        match target {
            Target::Setting { key } => setting::write(&setting::path_of(key)?, needed()?).map_err(failed),
            Target::Link { interface, attribute } => link::write(interface, *attribute, needed()?).map_err(failed),
            Target::Offload { interface, feature } => {
                device::write_offload(interface, feature, needed()?).map_err(failed)
            }
            Target::Device { interface, attribute } => device::write(interface, *attribute, needed()?).map_err(failed),
            Target::Queueing { interface } => {
                queueing::write(interface, value).map_err(|error| explained(error, "setting", target))
            }
            Target::TrafficControl { interface } => {
                traffic_control::write(interface, value).map_err(|error| explained(error, "setting", target))
            }
            Target::Route { destination } => route::write(destination, value),
            Target::File { path } => setting::write(file(path)?, needed()?).map_err(failed),
        }
    }

    fn check_restorable(&self, target: &Target, value: &str) -> Result<()> {
        match target {
            Target::TrafficControl { interface } => traffic_control::check_restorable(interface, value),
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
            Some(contents) => whole_file::replace(path, contents, Mode::Plain),
            None => whole_file::remove(path),
        }
    }

    fn identity(&self) -> Result<Identity> {
        identity::identity()
    }

    fn way_into_namespace(&self, namespace: u64) -> Option<String> {
        identity::way_into(namespace)
    }
}

/// An error that already has its words, with the explanation for this target if it is the kernel's.
fn explained(error: Error, operation: &str, target: &Target) -> Error {
    match error.errno() {
        Some(errno) => refused(operation, target, None, io::Error::from_raw_os_error(errno)),
        None => error,
    }
}

/// Files that hold one value are in these two places; others are nobody's to overwrite here.
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
    fn reading_needs_no_rights() {
        let read = |key: &str| RealHost.read(&Target::Setting { key: key.into() }).expect("an answer");
        assert!(read("net.ipv4.tcp_rmem").is_some_and(|value| value.split(' ').count() == 3));
        assert_eq!(read("net.ipv4.no_such_setting"), None);
        let gone = Target::Link { interface: "no-such-dev".into(), attribute: LinkAttribute::Mtu };
        assert!(is_gone(&RealHost.read(&gone).expect_err("not there")));
        let gone = Target::Queueing { interface: "no-such-dev".into() };
        assert!(is_gone(&RealHost.read(&gone).expect_err("not there")));
        for path in ["/etc/passwd", "/sys/../etc/passwd", "sys/x"] {
            assert!(RealHost.read(&Target::File { path: path.into() }).is_err(), "{path}");
        }
        let setting = Target::Setting { key: "net.ipv4.tcp_rmem".into() };
        assert!(RealHost.write(&setting, None).expect_err("always there").to_string().contains("nothing to take away"));
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
    fn what_is_written_can_be_read() {
        let chain = crate::test_network::Chain::new(1400);
        let within = || {
            for (target, value) in [
                (Target::Setting { key: "net.ipv4.tcp_rmem".into() }, "4096 100000 7000000"),
                (Target::Link { interface: "near0".into(), attribute: LinkAttribute::Mtu }, "1432"),
                (Target::Link { interface: "near0".into(), attribute: LinkAttribute::TransmitQueueLength }, "77"),
                (Target::Link { interface: "near0".into(), attribute: LinkAttribute::SegmentationSize }, "30000"),
                (Target::Offload { interface: "near0".into(), feature: "tx-tcp-segmentation".into() }, "off"),
            ] {
                let before = RealHost.read(&target).expect("read").expect("there");
                assert_ne!(before, value);
                RealHost.write(&target, Some(value)).expect("written");
                assert_eq!(RealHost.read(&target).expect("read").as_deref(), Some(value));
                RealHost.write(&target, Some(&before)).expect("put back");
                assert_eq!(RealHost.read(&target).expect("read"), Some(before));
            }
            let wrong = Target::Setting { key: "net.ipv4.tcp_congestion_control".into() };
            let error = RealHost.write(&wrong, Some("no-such")).expect_err("unknown").to_string();
            assert!(error.contains("no such congestion control"), "{error}");
            let absent = Target::Setting { key: "net.core.netdev_max_backlog".into() };
            assert_eq!(RealHost.read(&absent).expect("an answer"), None);
            let error = RealHost.write(&absent, Some("1")).expect_err("not here").to_string();
            assert!(error.contains("belongs to the whole host"), "{error}");
        };
        chain.near.within(within).expect("entered");
    }
}
