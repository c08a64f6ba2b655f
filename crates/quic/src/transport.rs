//! Settings of a connection: windows for long fat paths, and the path MTU that the route permits.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_model::quic::QuicCongestionControl;
use linerate_sys::route;
use linerate_units::{BitRate, ByteCount};
use linerate_wire::quic::QuicTransferOrder;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

/// Windows of a connection: 1.3 times those of 10 Gbit/s and 117 ms, 146 MB, since credit for more takes a part of a round trip.
pub(crate) const WINDOW: ByteCount = ByteCount::from_mebibytes(192);

/// Window of all streams before a transfer: payload that no request asked for is not read.
pub(crate) const FIRST_WINDOW: ByteCount = ByteCount::from_mebibytes(1);

/// Least window of a connection for one message.
const MIN_EXCHANGE_WINDOW: ByteCount = ByteCount::from_kibibytes(64);

/// Least window of a transfer: with less, the threads of both ends take turns on a busy host, and neither shows that it is.
const MIN_TRANSFER_WINDOW: ByteCount = ByteCount::from_mebibytes(16);

/// Rate for which the window of a transfer is, with a third more, since credit takes a part of a round trip. More than the path
/// needs only waits in the receiver's socket, and has left the caches of the processor when it is read.
const WINDOW_BITS_PER_SECOND: f64 = 1.3 * 10e9;

/// Silence after which a connection is gone.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Interval of the packets that keep an idle connection.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Largest UDP payload over IPv4 and over IPv6, which an endpoint is ready to receive.
pub(crate) const MAX_PAYLOAD: u16 = 65_487;

/// UDP payload that every path of QUIC carries (RFC 9000 section 14).
pub(crate) const MIN_PAYLOAD: u16 = 1200;

/// Headers of UDP and of IPv4 or IPv6.
const IPV4_HEADERS: u32 = 28;
const IPV6_HEADERS: u32 = 48;

/// Payload where the route to the peer is unknown: Ethernet's.
const USUAL_PAYLOAD: u16 = 1452;

/// Settings of a connection to `peer` with windows of that size.
pub(crate) fn transport(control: QuicCongestionControl, peer: SocketAddr, window: ByteCount) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let size = size_of(window);
    let mut discovery = MtuDiscoveryConfig::default();
    let largest = largest_payload(peer);
    discovery.upper_bound(largest);
    // On loopback no path is in between; a proxy that carries less is found as a black hole.
    let initial = if peer.ip().to_canonical().is_loopback() { largest } else { MIN_PAYLOAD };
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(u32::from(QuicTransferOrder::MAX_STREAMS)))
        .stream_receive_window(size)
        .receive_window(size_of(FIRST_WINDOW))
        .send_window(window.get())
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .keep_alive_interval(Some(KEEPALIVE_INTERVAL))
        .initial_mtu(initial)
        .mtu_discovery_config(Some(discovery))
        .congestion_controller_factory(factory(control, initial));
    Arc::new(transport)
}

/// Settings of a connection with messages of `message` bytes in this direction, at most `streams` of them at once.
pub(crate) fn exchange_transport(message: ByteCount, streams: u32) -> Arc<TransportConfig> {
    let window = size_of(exchange_window(message));
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(FIRST_WINDOW.get())
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .mtu_discovery_config(None);
    Arc::new(transport)
}

/// Receive window of such a connection.
pub(crate) fn exchange_window(message: ByteCount) -> ByteCount {
    message.clamp(MIN_EXCHANGE_WINDOW, FIRST_WINDOW)
}

/// Window of all streams of a transfer over a connection with that round trip.
pub(crate) fn transfer_window(rtt: Duration, most: ByteCount) -> VarInt {
    let in_flight = BitRate::from_bits_per_second(WINDOW_BITS_PER_SECOND) * rtt;
    size_of(in_flight.max(MIN_TRANSFER_WINDOW).min(most))
}

/// A window on the wire.
fn size_of(window: ByteCount) -> VarInt {
    VarInt::from_u64(window.get()).unwrap_or(VarInt::MAX)
}

/// Congestion controllers that begin with ten datagrams of that size (RFC 9002 section 7.2); with a window of less than two,
/// none would be sent.
fn factory(control: QuicCongestionControl, datagram: u16) -> Arc<dyn ControllerFactory + Send + Sync> {
    let window = 10 * u64::from(datagram);
    let (mut cubic, mut bbr, mut reno) = (CubicConfig::default(), BbrConfig::default(), NewRenoConfig::default());
    if datagram > MIN_PAYLOAD {
        cubic.initial_window(window);
        bbr.initial_window(window);
        reno.initial_window(window);
    }
    match control {
        QuicCongestionControl::Cubic => Arc::new(cubic),
        QuicCongestionControl::Bbr => Arc::new(bbr),
        QuicCongestionControl::NewReno => Arc::new(reno),
    }
}

/// Largest UDP payload of the route: the search for the path MTU (RFC 8899) ends there.
fn largest_payload(peer: SocketAddr) -> u16 {
    let headers = if peer.ip().to_canonical().is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS };
    let route = route::route_to(peer).ok().and_then(|route| route.mtu());
    let payload = route.map(|mtu| u16::try_from(mtu.get().saturating_sub(headers)).unwrap_or(MAX_PAYLOAD));
    payload.unwrap_or(USUAL_PAYLOAD).clamp(MIN_PAYLOAD, MAX_PAYLOAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_what_is_in_flight_at_10_gigabits() {
        let window = |microseconds| {
            transfer_window(Duration::from_micros(microseconds), ByteCount::from_mebibytes(64)).into_inner() >> 20
        };
        assert_eq!([50, 1_000, 20_000, 117_000].map(window), [16, 16, 30, 64]);
    }

    #[test]
    fn loopback_has_large_datagrams() {
        assert!(largest_payload(([127, 0, 0, 1], 0).into()) >= USUAL_PAYLOAD);
        assert!(largest_payload("[::ffff:127.0.0.1]:0".parse().expect("an address")) >= USUAL_PAYLOAD);
    }
}
