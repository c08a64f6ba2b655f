//! Capacity of the path as far as a transfer does not refute it.

use linerate_model::diagnosis::TransferObservation;
use linerate_model::path::PathDirection;
use linerate_units::{BitRate, ByteCount, Mss};

use super::full_path::FULL;

/// Share of a measured capacity above which the transfer refutes it.
const MAX_CAPACITY_SHARE: f64 = 1.05;
/// Bytes on the interface for each payload byte, with headers and acknowledgements, and those of the hosts themselves.
const MAX_HEADER_SHARE: f64 = 1.1;
const OWN_BYTES: f64 = 100e3;
/// Least share of the capacity at the lower end of its interval: a wider interval says too little.
const MIN_LOW_SHARE: f64 = 0.9;

/// Returns the capacity of the IP layer.
pub(super) fn capacity_of(direction: &PathDirection) -> Option<BitRate> {
    direction.capacity.as_ref().map(|capacity| BitRate::from_bits_per_second(capacity.bits_per_second))
}

/// Returns the payload part of the capacity, and of one that the transfer refutes: it cannot carry more than the path.
/// A lower bound that the transfer reaches is no capacity either, nor is one that it exceeds within its interval: there the
/// transfer only shows which part of the interval is true.
pub(super) fn known_capacity(
    observation: &TransferObservation,
    segment: Option<Mss>,
    steady: BitRate,
) -> (Option<BitRate>, Option<BitRate>) {
    let Some(capacity) = payload_capacity(observation, segment) else { return (None, None) };
    let measured = observation.path.as_ref().and_then(|path| path.with_data.capacity.as_ref());
    let share = steady.bits_per_second() / capacity.bits_per_second().max(1.0);
    // The second half may also deliver data that waited behind a loss in the first.
    let whole = observation.goodput().bits_per_second() / capacity.bits_per_second().max(1.0);
    // Where the search met traffic that does not yield, the path may carry more. It also takes a queue that drops early, or a
    // tiny buffer, for such traffic: where the receiver met none, and the transfer reached no more, there is none.
    let is_shared = measured.is_some_and(|capacity| capacity.shared == Some(true));
    let is_open = is_shared && (share > MAX_CAPACITY_SHARE || !received_alone(observation));
    match is_open || measured.is_some_and(|capacity| capacity.at_least) {
        true if share >= FULL => (None, None),
        false if share.min(whole) > MAX_CAPACITY_SHARE * high_share(observation) => (None, Some(capacity)),
        false if share.min(whole) > MAX_CAPACITY_SHARE => (None, None),
        _ => (Some(capacity), None),
    }
}

/// True when the receiver's interface is known to have received nothing else, headers apart.
fn received_alone(observation: &TransferObservation) -> bool {
    let last = observation.connections.iter().filter_map(|connection| connection.sender.last());
    let sent: Option<f64> = last.map(|moment| Some(moment.socket.info.bytes_sent?.as_f64())).sum();
    let host = observation.receiver.as_ref();
    let arrived = host.and_then(|host| host.interface_bytes).map(|(received, _)| ByteCount::new(received).as_f64());
    sent.zip(arrived).is_some_and(|(sent, arrived)| arrived <= sent * MAX_HEADER_SHARE + OWN_BYTES)
}

/// Upper end of the capacity's interval as a multiple of the capacity.
pub(super) fn high_share(observation: &TransferObservation) -> f64 {
    let measured = observation.path.as_ref().and_then(|path| path.with_data.capacity.as_ref());
    let high = measured.and_then(|capacity| Some(capacity.high_bits_per_second? / capacity.bits_per_second.max(1.0)));
    high.unwrap_or(1.0).max(1.0)
}

/// Lower end of the capacity's interval as a share of the capacity.
pub(super) fn low_share(observation: &TransferObservation) -> f64 {
    let measured = observation.path.as_ref().and_then(|path| path.with_data.capacity.as_ref());
    let low = measured.and_then(|capacity| Some(capacity.low_bits_per_second? / capacity.bits_per_second.max(1.0)));
    low.unwrap_or(1.0).clamp(MIN_LOW_SHARE, 1.0)
}

/// Returns the payload part of the IP layer's capacity for segments of this size.
fn payload_capacity(observation: &TransferObservation, segment: Option<Mss>) -> Option<BitRate> {
    let whole = capacity_of(&observation.path.as_ref()?.with_data)?;
    let bytes = f64::from(segment.map_or(1448, Mss::get));
    let info = observation.connections.first().and_then(|connection| connection.sender.last());
    let stamps = info.and_then(|moment| moment.socket.info.timestamps) != Some(false);
    // Headers of IPv4 and TCP; timestamps take 12 bytes.
    Some(whole * (bytes / (bytes + if stamps { 52.0 } else { 40.0 })))
}
