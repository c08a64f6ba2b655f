//! Hosts.

use std::collections::BTreeMap;

use linerate_documents::environment::{HostEnvironmentRecord, InterfaceEnvironment, OtherTraffic};
use linerate_documents::run::{LabPath, RunEnvironment};

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn near() -> HostEnvironmentRecord {
    let offloads =
        [("tcp-segmentation-offload", true), ("generic-receive-offload", true), ("large-receive-offload", false)];
    HostEnvironmentRecord {
        host_name: Some("desk".to_owned()),
        kernel: Some("6.12.117".to_owned()),
        architecture: Some("x86_64".to_owned()),
        processor: Some("Example Processor 9000".to_owned()),
        processors: Some(8),
        virtualisation: None,
        congestion_control: Some("cubic".to_owned()),
        congestion_controls: Some(vec!["reno".to_owned(), "cubic".to_owned(), "bbr".to_owned()]),
        clock_source: Some("tsc".to_owned()),
        clock_synchronised: Some(true),
        clock_error_bound_ns: Some(412_000),
        load_average: Some(0.42),
        interface: Some(InterfaceEnvironment {
            name: "eth0".to_owned(),
            mtu_bytes: Some(1500),
            driver: Some("igc".to_owned()),
            speed_bits_per_second: Some(1e9),
            offloads: offloads.iter().map(|&(name, on)| (name.to_owned(), on)).collect(),
            queueing_discipline: Some("fq_codel".to_owned()),
            transmit_queue_packets: Some(1000),
        }),
        sysctls: texts(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")]),
        other_traffic: Some(OtherTraffic { received_bits_per_second: 12_345.0, sent_bits_per_second: 6_789.0 }),
        unreadable: texts(&[("virtualisation", "/sys/hypervisor is not there")]),
    }
}

pub(super) fn both() -> RunEnvironment {
    let far = HostEnvironmentRecord {
        kernel: Some("6.1.0".to_owned()),
        congestion_control: Some("bbr".to_owned()),
        clock_source: Some("kvm-clock".to_owned()),
        ..HostEnvironmentRecord::default()
    };
    RunEnvironment { near: Some(near()), far: Some(far), lab: None }
}

pub(super) fn lab(name: &str) -> RunEnvironment {
    let description = "title = \"A line\"\n\n[down]\nrate = \"1 Mbit/s\"\n";
    let lab = LabPath { name: name.to_owned(), description: description.to_owned(), seed: 7 };
    RunEnvironment { near: Some(near()), far: None, lab: Some(lab) }
}
