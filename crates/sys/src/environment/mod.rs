//! Facts about this host that may explain a measurement, read without changing anything.
//!
//! Everything is of the calling thread's network namespace. Facts that a kernel lacks are omitted; facts that cannot be
//! read are noted with the reason ([`HostEnvironment::unreadable`]).

mod clock;
mod interface;
mod link;
mod machine;
mod settings;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::environment::{HostEnvironment, ProtocolCounters};
use linerate_model::host::counters::SoftnetRow;
use linerate_units::ByteCount;

pub use clock::clock_state;
pub use link::link_towards;

use crate::error::{Error, Result, describe_os_error};
use crate::host;

/// Reads everything. With `remote`, the interface on the route there is described, too; its queueing discipline's
/// settings come from `tc`, if that is installed.
#[must_use]
pub fn read(remote: Option<SocketAddr>) -> HostEnvironment {
    let mut notes = UnreadableNotes::default();
    let settings = settings::read(&mut notes);
    let available = notes.file("available congestion controls", "/proc/sys/net/ipv4/tcp_available_congestion_control");
    HostEnvironment {
        host_name: notes.file("host name", "/proc/sys/kernel/hostname"),
        kernel: Some(host::kernel_release()).filter(|release| !release.is_empty()),
        architecture: Some(host::architecture()).filter(|name| !name.is_empty()),
        machine: machine::machine(&mut notes),
        load: machine::load(&mut notes),
        clock: clock::read(&mut notes),
        congestion_control: notes.file("congestion control", "/proc/sys/net/ipv4/tcp_congestion_control"),
        congestion_controls: available.map(|names| names.split_ascii_whitespace().map(str::to_owned).collect()),
        interface: remote.and_then(|remote| interface::towards(remote, &mut notes)),
        settings,
        unreadable: notes.0,
    }
}

/// The settings of [`read`] alone.
#[must_use]
pub fn settings() -> BTreeMap<String, String> {
    settings::read(&mut UnreadableNotes::default())
}

/// True where the kernel lets receive buffers grow (`net.ipv4.tcp_moderate_rcvbuf`); `None` where it does not tell.
#[must_use]
pub fn moderates_receive_buffers() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_moderate_rcvbuf").ok()?;
    text.trim().parse::<u8>().ok().map(|value| value != 0)
}

/// Memory of this machine, as the kernel counts it (`MemTotal`); `None` where it is not reported.
#[must_use]
pub fn memory() -> Option<ByteCount> {
    machine::memory_total(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// The kernel's counters of IP, ICMP, UDP and TCP, in the calling thread's network namespace. The difference of two
/// samples ([`ProtocolCounters::since`]) covers all connections of the namespace.
pub fn protocol_counters() -> Result<ProtocolCounters> {
    counters_in("/proc/thread-self/net")
}

/// As [`protocol_counters`], in the network namespace of the process. For threads that may be killed at any time: a
/// read of a thread's own directory of `/proc`, followed by the kill of its process, kept a 6.12 kernel without
/// preemption busy for ever (`proc_flush_pid`).
pub fn process_protocol_counters() -> Result<ProtocolCounters> {
    counters_in("/proc/self/net")
}

/// Packets that each processor received and dropped (`/proc/net/softnet_stat`), likewise; `None` where the file is
/// missing.
#[must_use]
pub fn process_softnet() -> Option<Vec<SoftnetRow>> {
    let text = std::fs::read_to_string("/proc/self/net/softnet_stat").ok()?;
    Some(SoftnetRow::parse_all(&text)).filter(|rows| !rows.is_empty())
}

fn counters_in(directory: &str) -> Result<ProtocolCounters> {
    let mut text = String::new();
    for name in ["snmp", "netstat", "snmp6"] {
        let path = format!("{directory}/{name}");
        match std::fs::read_to_string(&path) {
            Ok(list) => text.push_str(&list),
            // A kernel without IPv6.
            Err(_) if name == "snmp6" => {}
            Err(cause) => return Err(Error::system(format!("reading {path}"), cause)),
        }
    }
    Ok(ProtocolCounters::parse(&text))
}

/// Unreadable facts, with the reasons.
#[derive(Debug, Default)]
struct UnreadableNotes(BTreeMap<String, String>);

impl UnreadableNotes {
    /// Returns the value, or notes the reason why there is none.
    fn keep<T>(&mut self, fact: &str, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.0.insert(fact.to_owned(), error.to_string())).ok()
    }

    /// Contents of a file of one line, with one blank between words; nothing is noted when there is no such file.
    fn file(&mut self, fact: &str, path: &str) -> Option<String> {
        let text = self.text(fact, path)?;
        let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        Some(line).filter(|line| !line.is_empty())
    }

    /// Contents of a file; nothing is noted when there is no such file.
    fn text(&mut self, fact: &str, path: &str) -> Option<String> {
        match std::fs::read(path) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
            Err(cause) => {
                self.0.insert(fact.to_owned(), format!("reading {path}: {}", describe_os_error(&cause)));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn this_host_is_described() {
        let host = read(Some("127.0.0.1:7".parse().expect("valid")));
        assert!(host.kernel.is_some_and(|release| host::system_information().contains(&release)));
        assert_eq!(host.architecture.as_deref(), Some(std::env::consts::ARCH));
        let controls = host.congestion_controls.expect("every kernel with TCP has them");
        assert!(controls.iter().any(|name| name == "reno"), "{controls:?}");
        assert!(host.congestion_control.is_some_and(|name| controls.contains(&name)));
        assert_eq!(host.settings.get("net.ipv4.tcp_rmem").map(|value| value.split(' ').count()), Some(3));
        assert!(host.machine.processors >= Some(1) && host.load.uptime.is_some());
        let interface = host.interface.expect("loopback leads to this host");
        assert_eq!((interface.name.as_str(), interface.speed), ("lo", None));
        assert!(interface.queueing.is_none_or(|queue| queue.kind != "noqueue" || queue.statistics.is_none()));
        assert!(interface.counters.is_some() && interface.offloads.contains_key("tx-tcp-segmentation"));
        assert_eq!(read(None).interface, None);
    }

    #[test]
    fn an_address_without_a_route_is_noted() {
        // Documentation addresses are in no host's own networks, but there may be a default route.
        let host = read(Some("[::ffff:0.0.0.1]:7".parse().expect("valid")));
        assert!(host.interface.is_some() || host.unreadable.contains_key("interface"), "{:?}", host.unreadable);
    }

    #[test]
    fn tcp_connections_are_counted() {
        let before = protocol_counters().expect("procfs");
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let grown = protocol_counters().expect("procfs").since(&before);
        assert!(grown.get("TcpActiveOpens") >= Some(1) && grown.get("TcpPassiveOpens") >= Some(1), "{grown:?}");
        assert!(before.get("UdpRcvbufErrors").is_some() && before.get("TcpExtTCPTimeouts").is_some());
        drop(client);
    }

    #[test]
    fn missing_facts_are_omitted_and_refused_ones_noted() {
        let mut notes = UnreadableNotes::default();
        assert_eq!(notes.file("a fact", "/proc/no/such/file"), None);
        assert!(notes.0.is_empty());
        assert_eq!(notes.file("a fact", "/proc"), None);
        assert!(notes.0.get("a fact").is_some_and(|why| why.contains("/proc")), "{notes:?}");
    }
}
