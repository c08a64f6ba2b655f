//! Receiver of a stream, which sends nothing: for paths on which packets travel in one direction only.
//!
//! Only packets from the addresses of the given host count, and of these one stream: that of the first packet. The
//! sender's time stamps give the variation of the delay; the number of packets that it sent is known up to the last one
//! that arrived, unless the user gives it.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

use linerate_analysis::ippm::{PacketArrival, PacketStream};
use linerate_model::direction::Direction;
use linerate_model::path::{PacketMetrics, PeerKind};
use linerate_sys::data::probe_socket::{DatagramArrival, ProbeOptions, ProbeSocket};
use linerate_sys::net::{self, UdpOptions};
use linerate_sys::{clock, options};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount};
use linerate_wire::stamp::{SenderPacket, SessionIdentifier};

use super::{BlindStream, rate_between, span};
use crate::path::convert::{self, to_monotonic};
use crate::path::idle::stream_metrics;
use crate::path::record::PathRecord;
use crate::path::{PathEvent, PathPhase};
use crate::phases::AbortReason;
use crate::probe::ProbeError;

/// Longest wait until a signal is noticed.
const LOOK: Duration = Duration::from_millis(200);

/// Shortest silence that ends a stream,
const MIN_SILENCE: Duration = Duration::from_secs(2);
/// or this number of its mean intervals, if longer.
const SILENT_INTERVALS: u32 = 20;

/// Receive buffer: what arrives while the thread is not running.
const RECEIVE_BUFFER: ByteCount = ByteCount::from_mebibytes(32);

/// A stream while it is received.
pub(super) struct Reception {
    /// Source and session of the stream: those of its first packet.
    stream: (SocketAddr, SessionIdentifier),
    /// Number of packets that the user expects.
    expected: Option<PacketCount>,
    first_sequence: u64,
    arrivals: Vec<PacketArrival>,
    size: ByteCount,
    highest: u64,
    pub(super) dropped: PacketCount,
    /// True when more arrived than are kept.
    full: bool,
}

/// Measures one stream of the host with these addresses.
pub(super) fn measure(
    record: &mut PathRecord<'_>,
    senders: &[IpAddr],
    expected: Option<PacketCount>,
) -> Result<(), AbortReason> {
    let socket = open(record)?;
    record.phase(PathPhase::Waiting, Duration::ZERO);
    let mut reception = None;
    let ended = receive(record, &socket, senders, expected, &mut reception);
    if let Some(reception) = reception {
        record.document.peer = PeerKind::StampSender;
        record.document.address = Some(reception.stream.0.ip().to_string());
        reception.describe(record);
    }
    ended
}

fn open(record: &PathRecord<'_>) -> Result<ProbeSocket, AbortReason> {
    let target = &record.options.target;
    let options = UdpOptions {
        address: target.bind,
        port: Some(record.options.stamp_port),
        family: target.family,
        device: target.device.clone(),
        ..UdpOptions::default()
    };
    let socket = net::bind_udp(&options).map_err(ProbeError::from)?;
    // Best effort: without privilege the kernel grants less, and counts what it drops.
    let _ = options::force_receive_buffer(&socket, RECEIVE_BUFFER);
    Ok(ProbeSocket::new(socket, ProbeOptions::default()).map_err(ProbeError::from)?)
}

fn receive(
    record: &mut PathRecord<'_>,
    socket: &ProbeSocket,
    senders: &[IpAddr],
    expected: Option<PacketCount>,
    reception: &mut Option<Reception>,
) -> Result<(), AbortReason> {
    let mut buffer = [0; 128];
    let (mut told, mut before) = (clock::monotonic_now(), 0);
    let mut last = told;
    loop {
        record.check()?;
        let arrival = socket.receive(&mut buffer, Some(LOOK));
        let arrival = arrival.map_err(|cause| ProbeError::io("receiving the stream", &cause))?;
        let now = clock::monotonic_now();
        if let Some(arrival) = arrival.filter(|arrival| senders.contains(&arrival.source.ip()))
            && let Ok(packet) = SenderPacket::decode(&buffer[..arrival.filled])
        {
            if reception.is_none() {
                record.phase(PathPhase::Stream, Duration::ZERO);
                (told, before) = (now, 0);
            }
            let stream = reception.get_or_insert_with(|| Reception::new(&packet, &arrival, expected));
            if stream.take(&packet, &arrival) {
                last = now;
            }
        }
        let Some(stream) = reception else { continue };
        if stream.is_complete() || now.since(last) > stream.silence() || record.is_phase_ended() {
            return Ok(());
        }
        if now.since(told) >= LOOK {
            let arrived = PacketCount::new((stream.arrivals.len() - before) as u64) * stream.size;
            record.tell(&PathEvent::Rate(
                Direction::Down,
                BitRate::from_bits_per_second(arrived.as_f64() * 8.0 / now.since(told).as_secs_f64()),
            ));
            (told, before) = (now, stream.arrivals.len());
        }
    }
}

impl Reception {
    pub(super) fn new(packet: &SenderPacket, arrival: &DatagramArrival, expected: Option<PacketCount>) -> Self {
        Self {
            stream: (arrival.source, packet.session),
            expected,
            first_sequence: packet.sequence.into(),
            arrivals: Vec::new(),
            size: arrival.size + convert::headers(arrival.source),
            highest: packet.sequence.into(),
            dropped: PacketCount::ZERO,
            full: false,
        }
    }

    /// Records a packet of the stream; false for one that is not part of it.
    pub(super) fn take(&mut self, packet: &SenderPacket, arrival: &DatagramArrival) -> bool {
        self.dropped = arrival.dropped.unwrap_or(self.dropped);
        let sequence = u64::from(packet.sequence);
        let is_near = sequence.abs_diff(self.first_sequence) < BlindStream::MOST.get();
        if (arrival.source, packet.session) != self.stream || !is_near {
            return false;
        }
        // The lead-in of a linerate has no time, and is not part of its stream.
        let Some(sent) = packet.timestamp.to_wall(packet.error_estimate.format()) else { return false };
        if sent.since_unix_epoch() < super::sender::LEAD_IN_TIME * 2 {
            return true;
        }
        if self.arrivals.len() >= BlindStream::MOST.to_usize() {
            self.full = true;
            return true;
        }
        self.highest = self.highest.max(sequence);
        self.arrivals.push(PacketArrival {
            sequence,
            sent: to_monotonic(sent),
            received: to_monotonic(arrival.arrived.wall),
            ttl: arrival.hop_limit,
            type_of_service: arrival.type_of_service,
        });
        true
    }

    /// True when as many packets arrived as are expected, or as are kept.
    fn is_complete(&self) -> bool {
        self.full || self.expected.is_some_and(|expected| self.arrivals.len() >= expected.to_usize())
    }

    /// Silence that ends the stream.
    fn silence(&self) -> Duration {
        let Some((first, last)) = self.times() else { return MIN_SILENCE };
        let between = u32::try_from(self.arrivals.len()).unwrap_or(u32::MAX).saturating_sub(1).max(1);
        (last.since(first) / between * SILENT_INTERVALS).max(MIN_SILENCE)
    }

    fn times(&self) -> Option<(MonotonicTime, MonotonicTime)> {
        span(self.arrivals.iter().map(|arrival| arrival.received))
    }

    /// The stream, numbered from 0: from the sender's first packet where its number of packets is known, else from the
    /// first that arrived.
    pub(super) fn stream(&self) -> PacketStream {
        let least = self.arrivals.iter().map(|arrival| arrival.sequence).min().unwrap_or_default();
        let (base, sent) = match self.expected {
            Some(expected) if expected.get() > self.highest => (0, expected),
            _ => (least, PacketCount::new(self.highest - least + 1)),
        };
        let shift = |arrival: &PacketArrival| PacketArrival { sequence: arrival.sequence - base, ..*arrival };
        PacketStream { sent, arrivals: self.arrivals.iter().map(shift).collect() }
    }

    fn describe(&self, record: &mut PathRecord<'_>) {
        let stream = self.stream();
        let metrics = stream_metrics(&stream, None, Direction::Down, None);
        let received = metrics.received.map(PacketCount::new).unwrap_or_default();
        let interval = span(stream.arrivals.iter().map(|arrival| arrival.sent));
        let sent_rate = rate_between(stream.sent, self.size, interval);
        record.document.down.packets = Some(PacketMetrics {
            packet_bytes: self.size.get(),
            interval_ns: sent_rate
                .map_or(0, |rate| nanoseconds(Duration::from_secs_f64(self.size.as_f64() * 8.0 / rate))),
            sent_bits_per_second: sent_rate,
            received_bits_per_second: rate_between(received, self.size, self.times()),
            ..metrics
        });
        record.count_traffic(Direction::Down, PacketCount::new(self.arrivals.len() as u64) * self.size);
        self.add_notes(record, &stream);
    }

    fn add_notes(&self, record: &mut PathRecord<'_>, stream: &PacketStream) {
        match self.expected {
            Some(expected) if expected.get() <= self.highest => record.note(format!(
                "Packet {} arrived although --count expects {}: that number is ignored.",
                self.highest + 1,
                expected.get()
            )),
            Some(_) => {}
            None => {
                let before = self.highest + 1 - stream.sent.get();
                let start = match before {
                    0 => String::new(),
                    _ => {
                        format!(" {before} packets before the first one were lost, or sent before this host received.")
                    }
                };
                record.note(format!(
                    "Losses after the last packet that arrived are unknown; --count with the number sent includes \
                     them.{start}"
                ));
            }
        }
        if self.full {
            record.note("The stream is longer than 1,000,000 packets: only these were measured.");
        }
        if !self.dropped.is_zero() {
            record.note(format!(
                "The receiving host itself dropped {} packets: its losses are not the path's.",
                self.dropped.get()
            ));
        }
    }
}
