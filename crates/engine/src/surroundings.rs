//! Environment of a measurement, before and after.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_documents::environment::{HostEnvironmentRecord, InterfaceEnvironment, OtherTraffic};
use linerate_model::address_family::AddressFamily;
use linerate_model::environment::InterfaceCounters;
use linerate_sys::net::{self};
use linerate_sys::{clock, environment};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port};
use linerate_wire::probe::FarFacts;

/// State of this host when a measurement began.
#[derive(Debug)]
pub struct LocalEnvironment {
    remote: Option<SocketAddr>,
    host: linerate_model::environment::HostEnvironment,
    read_at: MonotonicTime,
}

/// Upper bound of a measurement's own traffic on the interface: payload with all headers and acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnTraffic {
    /// Bytes received.
    pub received: ByteCount,
    /// Bytes sent.
    pub sent: ByteCount,
}

impl OwnTraffic {
    /// Bound for TCP connections with this payload per direction, in segments of this size or larger, each with headers
    /// of at most 100 bytes (Ethernet 14 and VLAN 4, IPv6 40, TCP 20 with 20 of options) and acknowledged by one
    /// packet. Includes a few kilobytes for an iperf3 control connection.
    pub fn of_tcp(received: ByteCount, sent: ByteCount, segment: ByteCount) -> Self {
        const HEADERS: u64 = 100;
        const CONTROL: ByteCount = ByteCount::from_kibibytes(64);
        let headers = |payload: ByteCount| ByteCount::new(payload.get().div_ceil(segment.get().max(1)) * HEADERS);
        let around = headers(received) + headers(sent) + CONTROL;
        Self { received: received + around, sent: sent + around }
    }
}

impl LocalEnvironment {
    /// Reads this host, and its interface to `host`, if known.
    pub fn read(host: &str, port: Port, family: Option<AddressFamily>) -> Self {
        let remote = net::resolve(host, port, family).ok().and_then(|found| found.into_iter().next());
        Self { remote, host: environment::read(remote), read_at: clock::monotonic_now() }
    }

    /// Environment for the record, after the measurement.
    pub fn finish(self, own: OwnTraffic) -> HostEnvironmentRecord {
        let mut document = HostEnvironmentRecord::from(&self.host);
        document.other_traffic = self.other_traffic(own);
        document
    }

    /// Traffic of the interface that cannot be the measurement's. On loopback both hosts count.
    fn other_traffic(&self, own: OwnTraffic) -> Option<OtherTraffic> {
        let before = self.host.interface.as_ref().filter(|interface| interface.name != "lo")?;
        let after = environment::read(self.remote).interface.filter(|after| after.name == before.name)?;
        let passed: InterfaceCounters = after.counters?.since(&before.counters?);
        let elapsed: Duration = clock::monotonic_now().since(self.read_at);
        let other = |all: ByteCount, own: ByteCount| (all - own).rate_over(elapsed);
        let rate = BitRate::bits_per_second;
        Some(OtherTraffic {
            received_bits_per_second: rate(other(passed.received.bytes, own.received)),
            sent_bits_per_second: rate(other(passed.sent.bytes, own.sent)),
        })
    }
}

/// Environment that the far host reports.
pub fn far(facts: &FarFacts) -> HostEnvironmentRecord {
    let interface = facts.interface.as_ref().map(|name| InterfaceEnvironment {
        name: name.clone(),
        mtu_bytes: facts.mtu.map(|mtu| mtu.get().into()),
        queueing_discipline: facts.queueing_discipline.clone(),
        ..InterfaceEnvironment::default()
    });
    let bound = facts.clock_error_bound.map(|bound| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX));
    HostEnvironmentRecord {
        kernel: facts.kernel.clone(),
        architecture: facts.architecture.clone(),
        processors: facts.processors.map(u64::from),
        congestion_control: facts.default_congestion_control.clone(),
        congestion_controls: Some(facts.congestion_controls.clone()).filter(|names| !names.is_empty()),
        clock_source: facts.clock_source.clone(),
        clock_synchronised: facts.clock_synchronised,
        clock_error_bound_ns: bound,
        interface,
        ..HostEnvironmentRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::tcp_info::TcpInfo;
    use linerate_units::{Mtu, PacketCount};

    use super::*;

    #[test]
    fn own_traffic_has_headers_and_acknowledgements_in_both_directions() {
        let bytes = ByteCount::new;
        for (received, sent, segment, around) in [
            (0, 0, 1448, 0),
            (1448, 0, 1448, 1),
            (1449, 0, 1448, 2),
            (14_480, 2896, 1448, 12),
            // A segment of zero bytes is counted as one of a byte.
            (5, 0, 0, 5),
        ] {
            let found = OwnTraffic::of_tcp(bytes(received), bytes(sent), bytes(segment));
            let extra = around * 100 + (64 << 10);
            assert_eq!((found.received, found.sent), (bytes(received + extra), bytes(sent + extra)));
        }
    }

    #[test]
    fn the_far_environment_is_what_the_far_end_reports() {
        let facts = FarFacts {
            kernel: Some("6.12".to_owned()),
            processors: Some(8),
            congestion_controls: vec!["reno".to_owned(), "cubic".to_owned()],
            default_congestion_control: Some("cubic".to_owned()),
            clock_error_bound: Some(Duration::from_micros(30)),
            interface: Some("eth0".to_owned()),
            mtu: Some(Mtu::new(1500)),
            queueing_discipline: Some("fq".to_owned()),
            control: Some(TcpInfo::default()),
            other_sessions: Some(PacketCount::new(1)),
            ..FarFacts::default()
        };
        let found = far(&facts);
        assert_eq!((found.kernel.as_deref(), found.processors), (Some("6.12"), Some(8)));
        assert_eq!(found.congestion_controls.as_deref(), Some(&["reno".to_owned(), "cubic".to_owned()][..]));
        assert_eq!(found.clock_error_bound_ns, Some(30_000));
        let interface = found.interface.expect("named");
        assert_eq!((interface.name.as_str(), interface.mtu_bytes), ("eth0", Some(1500)));
        assert_eq!(interface.queueing_discipline.as_deref(), Some("fq"));
    }

    #[test]
    fn what_the_far_end_does_not_report_is_unknown() {
        let found = far(&FarFacts { clock_error_bound: Some(Duration::MAX), ..FarFacts::default() });
        assert!(found.interface.is_none() && found.congestion_controls.is_none() && found.processors.is_none());
        assert_eq!(found.clock_error_bound_ns, Some(u64::MAX), "beyond the range, the largest");
    }
}
