//! Test `latency`: one-way delays between this host and a STAMP reflector (RFC 8762).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use linerate_fleet::pscheduler::{
    DEFAULT_PACKETS, LatencySamples, SpecValues, latency_result, packet_interval, packet_timeout,
};
use linerate_model::environment::ClockState;
use linerate_sys::clock::monotonic_now;
use linerate_sys::data::probe_socket::{OutgoingDatagram, ProbeOptions, ProbeSocket};
use linerate_sys::environment;
use linerate_sys::net::{self, UdpOptions};
use linerate_units::{ByteCount, MonotonicTime, Port, WallTime};
use linerate_wire::stamp::{
    ErrorEstimate, ReflectorPacket, SenderPacket, SessionIdentifier, StampTimestamp, TimestampFormat,
};
use serde_json::Value;

use super::endpoints;

/// Size of the packets: without options (RFC 8762 §4.2.1).
const SIZE: ByteCount = ByteCount::new(44);

/// Width of the histogram's buckets in seconds.
const DEFAULT_BUCKET: f64 = 0.001;

/// Measures the delays to the reflector, or from it (`reverse`).
pub(super) fn delays(spec: &SpecValues) -> Result<Value, String> {
    let port = spec.ctrl_port.and_then(Port::new).unwrap_or(Port::STAMP);
    let endpoints = endpoints::find(spec, port)?;
    let options = UdpOptions { address: endpoints.local, ..UdpOptions::default() };
    let open = || ProbeSocket::new(net::connect_udp(&options, endpoints.remote)?, ProbeOptions::default());
    let socket = open().map_err(|cause| cause.to_string())?;
    let mut sender = StampSender { socket, is_reverse: spec.reverse, answers: Vec::new(), refused: None };
    let count = spec.packet_count.unwrap_or(DEFAULT_PACKETS);
    let mut next = monotonic_now();
    for number in 0..count {
        sender.send(number);
        next = next + packet_interval(spec);
        sender.receive(next, None);
    }
    sender.receive(monotonic_now() + packet_timeout(spec), Some(count as usize));
    if sender.answers.is_empty() {
        let reason = sender.refused.unwrap_or_else(|| "no packet was answered".to_owned());
        return Err(unanswered(endpoints.remote, &reason));
    }
    Ok(latency_result(&sender.samples(count), spec.bucket_width.unwrap_or(DEFAULT_BUCKET)))
}

fn unanswered(remote: SocketAddr, reason: &str) -> String {
    format!(
        "no STAMP reflector at {} (UDP port {}): {reason}; start `linerate serve` there, or name its port as \"ctrl-port\"",
        remote.ip(),
        remote.port()
    )
}

/// An answer.
struct StampAnswer {
    number: u32,
    /// One-way delay in seconds; negative when the clocks differ by more than it.
    delay: Option<f64>,
    hop_limit: Option<u8>,
    /// Bound of the reflector's clock error.
    error: Option<Duration>,
}

struct StampSender {
    socket: ProbeSocket,
    is_reverse: bool,
    answers: Vec<StampAnswer>,
    refused: Option<String>,
}

impl StampSender {
    fn send(&mut self, number: u32) {
        let packet = SenderPacket {
            sequence: number,
            timestamp: StampTimestamp::from_wall(self.socket.clocks().now().wall, TimestampFormat::Ntp),
            error_estimate: ErrorEstimate::unknown(TimestampFormat::Ntp),
            session: SessionIdentifier::new(1),
        };
        if let Err(cause) = self.socket.send(&packet.encode(SIZE), &OutgoingDatagram::default()) {
            self.refused = Some(cause.to_string());
        }
    }

    /// Takes answers until a time, or until there are this many.
    fn receive(&mut self, until: MonotonicTime, enough: Option<usize>) {
        let mut buffer = [0; 2048];
        while enough.is_none_or(|enough| self.answers.len() < enough) {
            let left = until.since(monotonic_now());
            if left.is_zero() {
                return;
            }
            let arrival = match self.socket.receive(&mut buffer, Some(left)) {
                Ok(Some(arrival)) => arrival,
                Ok(None) => return,
                Err(cause) => {
                    self.refused = Some(cause.to_string());
                    continue;
                }
            };
            let Ok(packet) = ReflectorPacket::decode(&buffer[..arrival.filled]) else { continue };
            let format = packet.error_estimate.format();
            let [sent, reflected] =
                [packet.sender_timestamp.to_wall(TimestampFormat::Ntp), packet.timestamp.to_wall(format)];
            let received = packet.received_at.to_wall(format);
            let (from, to) = if self.is_reverse { (reflected, Some(arrival.arrived.wall)) } else { (sent, received) };
            self.answers.push(StampAnswer {
                number: packet.sender_sequence,
                delay: from.zip(to).map(|(from, to)| seconds_between(from, to)),
                hop_limit: if self.is_reverse { arrival.hop_limit } else { Some(packet.sender_ttl) },
                error: packet.error_estimate.bound().filter(|_| packet.error_estimate.is_synchronized()),
            });
        }
    }

    fn samples(&self, sent: u32) -> LatencySamples {
        let mut samples = LatencySamples { sent: u64::from(sent), ..LatencySamples::default() };
        let (mut seen, mut hop_limits) = (BTreeSet::new(), BTreeMap::<u8, u64>::new());
        for answer in &self.answers {
            if !seen.insert(answer.number) {
                samples.duplicates += 1;
                continue;
            }
            samples.reordered += u64::from(seen.last().is_some_and(|last| *last > answer.number));
            samples.delays_seconds.extend(answer.delay);
            if let Some(hops) = answer.hop_limit {
                *hop_limits.entry(hops).or_default() += 1;
            }
        }
        samples.hop_limits = hop_limits.into_iter().collect();
        let own = environment::clock_state().ok().and_then(ClockState::error_bound);
        let reflectors: Option<Vec<Duration>> = self.answers.iter().map(|answer| answer.error).collect();
        let reflectors = reflectors.and_then(|errors| errors.into_iter().max());
        samples.clock_error = own.zip(reflectors).map(|(own, reflectors)| own + reflectors);
        samples
    }
}

fn seconds_between(from: WallTime, to: WallTime) -> f64 {
    let [from, to] = [from, to].map(WallTime::since_unix_epoch);
    to.checked_sub(from).map_or_else(|| -from.saturating_sub(to).as_secs_f64(), |later| later.as_secs_f64())
}
