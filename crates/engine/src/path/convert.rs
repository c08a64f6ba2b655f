//! From what is measured to what is written down.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::ippm::{Arrival, Stream};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::throughput::TimeDistribution;
use linerate_model::summary::Distribution;
use linerate_units::{ByteCount, MonotonicTime, PacketCount, WallTime};

use crate::probe::messages::PacketRecord;

/// Headers of IPv4 and UDP.
const HEADERS_V4: ByteCount = ByteCount::new(20 + 8);
/// Headers of IPv6 and UDP.
const HEADERS_V6: ByteCount = ByteCount::new(40 + 8);

/// Bytes of an IP packet beside its UDP payload.
pub(super) fn headers(peer: SocketAddr) -> ByteCount {
    if peer.is_ipv6() { HEADERS_V6 } else { HEADERS_V4 }
}

/// Civil time as a point on a line: only differences count.
pub(super) fn on_line(time: WallTime) -> MonotonicTime {
    MonotonicTime::from_nanos(nanoseconds(time.since_unix_epoch()))
}

/// Order statistics; `None` of no readings.
pub(super) fn distribution(readings: &[Duration]) -> Option<TimeDistribution> {
    Distribution::of(&mut readings.to_vec()).as_ref().map(TimeDistribution::from)
}

/// A recorded stream as the metrics want it.
pub(super) fn stream(sent: PacketCount, packets: &[PacketRecord]) -> Stream {
    let arrivals = packets.iter().map(|packet| Arrival {
        sequence: packet.sequence.into(),
        sent: on_line(packet.sent),
        received: on_line(packet.arrived),
        ttl: packet.time_to_live,
        type_of_service: packet.type_of_service,
    });
    Stream { sent, arrivals: arrivals.collect() }
}
