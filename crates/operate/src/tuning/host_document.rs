//! Description of a host on the agent protocol.

use std::collections::BTreeMap;

use linerate_model::host::kernel::KernelVersion;
use linerate_rules::tuning::{EgressInterface, RouteText, TuningHost};
use linerate_units::{ByteCount, StreamCount};
use serde::{Deserialize, Serialize};

/// [`TuningHost`], without measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostDocument {
    /// Kernel version: major and minor number.
    kernel: Option<(u32, u32)>,
    settings: BTreeMap<String, String>,
    unwritable: BTreeMap<String, String>,
    memory_bytes: Option<u64>,
    page_bytes: Option<u64>,
    sockets: Option<u64>,
    interface: Option<InterfaceDocument>,
    route: Option<RouteDocument>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceDocument {
    name: String,
    queueing: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteDocument {
    destination: String,
    attributes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
}

impl From<&TuningHost> for HostDocument {
    fn from(host: &TuningHost) -> Self {
        let interface = |interface: &EgressInterface| InterfaceDocument {
            name: interface.name.clone(),
            queueing: interface.queueing.clone(),
        };
        let route = |route: &RouteText| RouteDocument {
            destination: route.destination.clone(),
            attributes: route.attributes.clone(),
            peer: route.peer.clone(),
        };
        Self {
            kernel: host.kernel.map(|kernel| (kernel.major, kernel.minor)),
            settings: host.settings.clone(),
            unwritable: host.unwritable.clone(),
            memory_bytes: host.memory.map(ByteCount::get),
            page_bytes: host.page.map(ByteCount::get),
            sockets: host.sockets.map(StreamCount::get),
            interface: host.interface.as_ref().map(interface),
            route: host.route.as_ref().map(route),
            unreadable: host.unreadable.clone(),
        }
    }
}

impl From<HostDocument> for TuningHost {
    fn from(document: HostDocument) -> Self {
        Self {
            kernel: document.kernel.map(|(major, minor)| KernelVersion::new(major, minor)),
            settings: document.settings,
            unwritable: document.unwritable,
            memory: document.memory_bytes.map(ByteCount::new).filter(|memory| !memory.is_zero()),
            page: document.page_bytes.map(ByteCount::new).filter(|page| page.get().is_power_of_two()),
            sockets: document.sockets.map(StreamCount::new),
            receiving: None,
            interface: document.interface.map(|found| EgressInterface { name: found.name, queueing: found.queueing }),
            route: document.route.map(|found| RouteText {
                destination: found.destination,
                attributes: found.attributes,
                peer: found.peer,
            }),
            unreadable: document.unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_round_trips() {
        let host = TuningHost {
            kernel: Some(KernelVersion::new(6, 12)),
            settings: BTreeMap::from([("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned())]),
            unwritable: BTreeMap::from([("net.ipv4.tcp_mem".to_owned(), "of the whole host".to_owned())]),
            memory: Some(ByteCount::new(1 << 33)),
            page: Some(ByteCount::new(4096)),
            sockets: Some(StreamCount::new(7)),
            receiving: None,
            interface: Some(EgressInterface {
                name: "eth0".to_owned(),
                queueing: Some("# made by the kernel: fq".to_owned()),
            }),
            route: Some(RouteText {
                destination: "default".to_owned(),
                attributes: "via 192.0.2.1 dev eth0".to_owned(),
                peer: Some("198.51.100.7".to_owned()),
            }),
            unreadable: vec!["the queueing disciplines of eth1: no tc".to_owned()],
        };
        for host in [host, TuningHost::default()] {
            let text = serde_json::to_string(&HostDocument::from(&host)).expect("JSON");
            let read: HostDocument = serde_json::from_str(&text).expect("a host");
            assert_eq!(TuningHost::from(read), host);
        }
        // A page size of zero would divide by zero.
        let odd = HostDocument { page_bytes: Some(0), memory_bytes: Some(0), ..HostDocument::default() };
        assert_eq!(TuningHost::from(odd), TuningHost::default());
    }
}
