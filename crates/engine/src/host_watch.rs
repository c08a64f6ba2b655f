//! Host evidence of a test: settings, and the growth of the counters.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_model::environment::{InterfaceCounters, ProtocolCounters};
use linerate_model::far::{HostEvidence, ReceivingEvidence};
use linerate_sys::interface::InterfaceWatch;
use linerate_sys::{environment, host, route};
use linerate_units::{ByteCount, Ratio};

/// Counters at the start of the test.
pub(crate) struct HostWatch {
    protocol: Option<ProtocolCounters>,
    interface: Option<(InterfaceWatch, InterfaceCounters)>,
    receiving: Option<ReceivingEvidence>,
}

impl HostWatch {
    /// Reads the counters of this host and of its interface towards `remote`.
    pub(crate) fn start(remote: IpAddr) -> Self {
        let index = route::route_to(remote).ok().map(|route| route.index);
        let interface = index.and_then(|index| {
            let mut watch = InterfaceWatch::new(index).ok()?;
            let counters = watch.read().ok()?;
            Some((watch, counters))
        });
        let protocol = environment::process_protocol_counters().ok();
        Self { protocol, interface, receiving: receiving() }
    }

    /// Evidence since the start.
    pub(crate) fn finish(mut self, busy: Option<Ratio>) -> HostEvidence {
        HostEvidence {
            kernel: Some(host::kernel_release()),
            settings: environment::settings(),
            counters: self.grown(),
            interface_bytes: self.interface_bytes(),
            busy: busy.map(Ratio::get),
            memory_bytes: environment::memory().map(ByteCount::get),
            receiving: receiving().zip(self.receiving).and_then(|(now, before)| now.since(before)),
        }
    }

    fn grown(&self) -> BTreeMap<String, u64> {
        let now = environment::process_protocol_counters().ok();
        self.protocol.as_ref().zip(now).map(|(before, now)| now.since(before).0).unwrap_or_default()
    }

    fn interface_bytes(&mut self) -> Option<(u64, u64)> {
        let (watch, before) = self.interface.as_mut()?;
        let now = watch.read().ok()?;
        let grown = now.since(before);
        Some((grown.received.bytes.get(), grown.sent.bytes.get()))
    }
}

fn receiving() -> Option<ReceivingEvidence> {
    environment::process_softnet().map(|rows| ReceivingEvidence::of(&rows))
}
