//! Test `latency`: one-way delays between this host and a STAMP reflector (RFC 8762).

use std::net::SocketAddr;

use linerate_fleet::pscheduler::{
    DEFAULT_PACKETS, SpecValues, bucket_width, latency_result, packet_interval, packet_timeout,
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
use super::latency_answers::{StampAnswer, StampAnswers};

/// Size of the packets: without options (RFC 8762 §4.2.1).
const SIZE: ByteCount = ByteCount::new(44);

/// Measures the delays to the reflector, or from it (`reverse`).
pub(super) fn delays(spec: &SpecValues) -> Result<Value, String> {
    let port = spec.ctrl_port.and_then(Port::new).unwrap_or(Port::STAMP);
    let endpoints = endpoints::find(spec, port)?;
    let options = UdpOptions { address: endpoints.local, ..UdpOptions::default() };
    let open = || ProbeSocket::new(net::connect_udp(&options, endpoints.remote)?, ProbeOptions::default());
    let socket = open().map_err(|cause| cause.to_string())?;
    let mut sender = StampSender { socket, is_reverse: spec.reverse, answers: StampAnswers::default(), refused: None };
    let count = spec.packet_count.unwrap_or(DEFAULT_PACKETS);
    let mut next = monotonic_now();
    for number in 0..count {
        sender.send(number);
        next = next + packet_interval(spec);
        sender.receive(next, |_| false);
    }
    sender.receive(monotonic_now() + packet_timeout(spec), StampAnswers::is_complete);
    if sender.answers.is_empty() {
        let reason = sender.refused.unwrap_or_else(|| "no packet was answered".to_owned());
        return Err(unanswered(endpoints.remote, &reason));
    }
    let clock_error = environment::clock_state().ok().and_then(ClockState::error_bound);
    Ok(latency_result(&sender.answers.samples(clock_error), bucket_width(spec)))
}

fn unanswered(remote: SocketAddr, reason: &str) -> String {
    format!(
        "no STAMP reflector at {} (UDP port {}): {reason}; start `linerate serve` there, or name its port as \"ctrl-port\"",
        remote.ip(),
        remote.port()
    )
}

struct StampSender {
    socket: ProbeSocket,
    is_reverse: bool,
    answers: StampAnswers,
    refused: Option<String>,
}

impl StampSender {
    fn send(&mut self, number: u32) {
        self.answers.add_packet();
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

    /// Takes answers until a time, or until there are enough.
    fn receive(&mut self, until: MonotonicTime, is_enough: impl Fn(&StampAnswers) -> bool) {
        let mut buffer = [0; 2048];
        while !is_enough(&self.answers) {
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
            let answer = StampAnswer {
                delay: from.zip(to).map(|(from, to)| seconds_between(from, to)),
                hop_limit: if self.is_reverse { arrival.hop_limit } else { Some(packet.sender_ttl) },
                error: packet.error_estimate.bound().filter(|_| packet.error_estimate.is_synchronized()),
            };
            self.answers.take(packet.sender_sequence, answer);
        }
    }
}

fn seconds_between(from: WallTime, to: WallTime) -> f64 {
    let [from, to] = [from, to].map(WallTime::since_unix_epoch);
    to.checked_sub(from).map_or_else(|| -from.saturating_sub(to).as_secs_f64(), |later| later.as_secs_f64())
}
