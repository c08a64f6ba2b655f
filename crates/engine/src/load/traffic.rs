//! Traffic through the interfaces at both ends, and the measurement's own share of it.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_analysis::latency_under_load::InterfaceTraffic;
use linerate_model::environment::InterfaceCounters;
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::interface::InterfaceWatch;
use linerate_sys::route::{self, RouteToAddress};
use linerate_sys::{clock, tcp_info};
use linerate_units::{ByteCount, MonotonicTime, Mss};

use crate::probe::ProbeSession;
use crate::probe::messages::InterfaceCounterSample;

/// Headers of a data segment: Ethernet 14 and a VLAN 4, IPv6 40, TCP 20 and time stamps 12.
const DATA_HEADERS: u64 = 90;

/// A pure acknowledgement: the same with three SACK blocks.
const ACKNOWLEDGEMENT_BYTES: u64 = 118;

/// Traffic through one interface during a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PhaseTraffic {
    pub(super) sent: InterfaceTraffic,
    pub(super) received: InterfaceTraffic,
}

/// Bytes on the link that belong to the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnBytes {
    pub(super) sent: ByteCount,
    pub(super) received: ByteCount,
}

impl OwnBytes {
    /// Traffic of a TCP socket with these totals: each direction's data with its headers, and an acknowledgement for
    /// each segment of the opposite direction.
    pub(super) fn of_tcp(sent: ByteCount, received: ByteCount, segment: Option<Mss>) -> Self {
        let segment = segment.map_or(536, |mss| u64::from(mss.get())).max(1);
        let segments = |payload: ByteCount| payload.get().div_ceil(segment);
        let direction = |payload: ByteCount, other: ByteCount| {
            payload + ByteCount::new(segments(payload) * DATA_HEADERS + segments(other) * ACKNOWLEDGEMENT_BYTES)
        };
        Self { sent: direction(sent, received), received: direction(received, sent) }
    }

    /// Traffic of a socket by the kernel's present figures.
    pub(super) fn of_socket(info: &TcpInfo) -> Self {
        let segment = info.send_mss.into_iter().chain(info.receive_mss).min();
        Self::of_tcp(info.bytes_sent.unwrap_or_default(), info.bytes_received.unwrap_or_default(), segment)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { sent: self.sent + other.sent, received: self.received + other.received }
    }

    /// The same in both directions.
    pub(super) fn both_ways(self, bytes: ByteCount) -> Self {
        self.and(Self { sent: bytes, received: bytes })
    }

    fn since(self, earlier: Self) -> Self {
        Self { sent: self.sent - earlier.sent, received: self.received - earlier.received }
    }
}

/// Reads the interfaces at both ends.
pub(super) struct TrafficMeter<'s> {
    session: Option<&'s ProbeSession>,
    watch: Option<InterfaceWatch>,
    route: Option<RouteToAddress>,
}

/// Counters at one moment.
pub(super) struct TrafficSnapshot {
    time: MonotonicTime,
    near: Option<InterfaceCounters>,
    far: Option<InterfaceCounterSample>,
    control: OwnBytes,
}

impl<'s> TrafficMeter<'s> {
    pub(super) fn new(session: Option<&'s ProbeSession>, peer: SocketAddr) -> Self {
        // On loopback both ends share the interface, which counts everything twice.
        let route = route::route_to(peer).ok().filter(|route| !route.is_local && route.interface != "lo");
        let watch = route.as_ref().and_then(|route| InterfaceWatch::new(route.index).ok());
        Self { session, watch, route }
    }

    /// Index of the interface towards the peer; `None` on loopback.
    pub(super) fn interface(&self) -> Option<u32> {
        self.route.as_ref().map(|route| route.index)
    }

    pub(super) fn read(&mut self) -> TrafficSnapshot {
        let near = self.watch.as_mut().and_then(|watch| watch.read().ok());
        let time = clock::monotonic_now();
        let session = self.session.filter(|_| near.is_some());
        let control = session.and_then(|session| tcp_info::read(session.control()).ok());
        let control = control.as_ref().map(OwnBytes::of_socket).unwrap_or_default();
        let far = session.and_then(|session| session.facts().ok()?.counters);
        TrafficSnapshot { time, near, far, control }
    }

    /// Traffic since `before`: near, and far. `own` is the load's, as this end counts it; `lost_down` the bytes the far
    /// end sent beyond those that arrived here.
    pub(super) fn since(
        &mut self,
        before: &TrafficSnapshot,
        own: OwnBytes,
        lost_down: ByteCount,
    ) -> (Option<PhaseTraffic>, Option<PhaseTraffic>) {
        let now = self.read();
        let own = own.and(now.control.since(before.control));
        let near = now.near.as_ref().zip(before.near.as_ref()).map(|(after, before_counters)| {
            let passed = after.since(before_counters);
            let time = now.time.since(before.time);
            let traffic = |counted, own| InterfaceTraffic { counted, own, time };
            PhaseTraffic {
                sent: traffic(passed.sent.bytes, own.sent),
                // Retransmitted data may have arrived twice.
                received: traffic(passed.received.bytes, own.received + lost_down),
            }
        });
        let far = now.far.zip(before.far).map(|(after, before)| far_traffic(&after, &before, own, lost_down));
        (near, far)
    }
}

/// Traffic at the far end, where up and down are swapped.
fn far_traffic(
    after: &InterfaceCounterSample,
    before: &InterfaceCounterSample,
    own: OwnBytes,
    lost_down: ByteCount,
) -> PhaseTraffic {
    let time: Duration = after.time.since_unix_epoch().saturating_sub(before.time.since_unix_epoch());
    PhaseTraffic {
        sent: InterfaceTraffic { counted: after.sent_bytes - before.sent_bytes, own: own.received + lost_down, time },
        received: InterfaceTraffic { counted: after.received_bytes - before.received_bytes, own: own.sent, time },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_traffic_has_headers_and_acknowledgements() {
        // 1000 segments of 1448 bytes up: 1538 bytes on the link at most, and as many acknowledgements back.
        let own = OwnBytes::of_tcp(ByteCount::new(1_448_000), ByteCount::ZERO, Some(Mss::new(1448)));
        assert_eq!(own.sent, ByteCount::new(1_448_000 + 1000 * DATA_HEADERS));
        assert_eq!(own.received, ByteCount::new(1000 * ACKNOWLEDGEMENT_BYTES));
        let both = own.both_ways(ByteCount::new(7));
        assert_eq!(both.since(own), OwnBytes { sent: ByteCount::new(7), received: ByteCount::new(7) });
    }
}
