//! Where a measurement is made, before and after.

use core::time::Duration;
use std::net::IpAddr;

use linerate_model::environment::InterfaceCounters;
use linerate_model::schema::environment::{Environment, Interface, OtherTraffic};
use linerate_sys::net::{self, Family};
use linerate_sys::{clock, environment};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port};
use linerate_wire::probe::FarFacts;

/// This host as it was when a measurement began.
#[derive(Debug)]
pub(crate) struct Surroundings {
    remote: Option<IpAddr>,
    host: linerate_model::environment::Environment,
    read_at: MonotonicTime,
}

/// What a measurement itself put on the interface, at most: payload with all headers and acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnTraffic {
    /// Received.
    pub(crate) received: ByteCount,
    /// Sent.
    pub(crate) sent: ByteCount,
}

impl OwnTraffic {
    /// Of TCP connections: this much payload each way, in segments of this size or larger, each with headers of at most
    /// 100 bytes (Ethernet 14 and VLAN 4, IPv6 40, TCP 20 with 20 of options) and acknowledged by one packet. With an
    /// iperf3 control connection: a few kilobytes more.
    pub(crate) fn of_tcp(received: ByteCount, sent: ByteCount, segment: ByteCount) -> Self {
        const HEADERS: u64 = 100;
        const CONTROL: ByteCount = ByteCount::from_kibibytes(64);
        let headers = |payload: ByteCount| ByteCount::new(payload.get().div_ceil(segment.get().max(1)) * HEADERS);
        let around = headers(received) + headers(sent) + CONTROL;
        Self { received: received + around, sent: sent + around }
    }
}

impl Surroundings {
    /// Reads this host, and its interface to `host`, where that can be found.
    pub(crate) fn read(host: &str, port: Port, family: Family) -> Self {
        let remote = net::resolve(host, port, family).ok().and_then(|found| Some(net::canonical(*found.first()?).ip()));
        Self { remote, host: environment::read(remote), read_at: clock::monotonic_now() }
    }

    /// What is kept of it, once the measurement is over.
    pub(crate) fn finish(self, own: OwnTraffic) -> Environment {
        let mut kept = Environment::from(&self.host);
        kept.other_traffic = self.other_traffic(own);
        kept
    }

    /// What went through the interface and cannot have been the measurement's. On loopback both ends count.
    fn other_traffic(&self, own: OwnTraffic) -> Option<OtherTraffic> {
        let before = self.host.interface.as_ref().filter(|interface| interface.name != "lo")?;
        let after = environment::read(self.remote).interface.filter(|after| after.name == before.name)?;
        let passed: InterfaceCounters = after.counters?.since(&before.counters?);
        let elapsed: Duration = clock::monotonic_now().since(self.read_at);
        let rest = |all: ByteCount, own: ByteCount| (all - own).rate_over(elapsed);
        let rate = BitRate::bits_per_second;
        Some(OtherTraffic {
            received_bits_per_second: rate(rest(passed.received.bytes, own.received)),
            sent_bits_per_second: rate(rest(passed.sent.bytes, own.sent)),
        })
    }
}

/// What the far end tells of its host.
pub(crate) fn far(facts: &FarFacts) -> Environment {
    let interface = facts.interface.as_ref().map(|name| Interface {
        name: name.clone(),
        mtu_bytes: facts.mtu.map(|mtu| mtu.get().into()),
        queueing_discipline: facts.queueing_discipline.clone(),
        ..Interface::default()
    });
    let bound = facts.clock_error_bound.map(|bound| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX));
    Environment {
        kernel: facts.kernel.clone(),
        architecture: facts.architecture.clone(),
        processors: facts.processors.map(u64::from),
        congestion_control: facts.default_congestion_control.clone(),
        congestion_controls: Some(facts.congestion_controls.clone()).filter(|names| !names.is_empty()),
        clock_source: facts.clock_source.clone(),
        clock_synchronised: facts.clock_synchronised,
        clock_error_bound_ns: bound,
        interface,
        ..Environment::default()
    }
}
