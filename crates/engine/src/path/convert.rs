//! Conversions from measurements to the document.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_analysis::ippm::{PacketArrival, PacketStream};
use linerate_model::summary::DurationDistribution;
use linerate_units::serde::nanoseconds;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, WallTime};

use crate::probe::messages::PacketRecord;

/// Headers of IPv4 and UDP.
const HEADERS_V4: ByteCount = ByteCount::new(20 + 8);
/// Headers of IPv6 and UDP.
const HEADERS_V6: ByteCount = ByteCount::new(40 + 8);

/// Bytes of an IP packet in addition to its UDP payload.
pub(super) fn headers(peer: SocketAddr) -> ByteCount {
    if peer.is_ipv6() { HEADERS_V6 } else { HEADERS_V4 }
}

/// Civil time as a monotonic time: only differences are meaningful.
pub(super) fn to_monotonic(time: WallTime) -> MonotonicTime {
    MonotonicTime::from_nanos(nanoseconds(time.since_unix_epoch()))
}

/// Order statistics; `None` without samples.
pub(super) fn distribution(readings: &[Duration]) -> Option<DurationDistribution> {
    DurationDistribution::of(&mut readings.to_vec())
}

/// A recorded stream as input of the metrics.
pub(super) fn stream(sent: PacketCount, packets: &[PacketRecord]) -> PacketStream {
    let arrivals = packets.iter().map(|packet| PacketArrival {
        sequence: packet.sequence.into(),
        sent: to_monotonic(packet.sent),
        received: to_monotonic(packet.arrived),
        ttl: packet.time_to_live,
        type_of_service: packet.type_of_service,
    });
    PacketStream { sent, arrivals: arrivals.collect() }
}
