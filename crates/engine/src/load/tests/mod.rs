//! Conclusions from made-up evidence: phases, grade, responsiveness, queue locations, foreign traffic, charts.

mod contamination;
mod evidence;
mod grade;
mod profiles;
mod queues;
mod record;
mod series;

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr};

use linerate_analysis::latency_under_load::ForeignProbe;
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use linerate_model::load::{LoadDocument, PhaseKind};
use linerate_model::path::PeerKind;
use linerate_units::{ByteCount, MonotonicTime, Port};

use crate::probe::ProbeTarget;
use crate::probe::messages::LoadSample;

use super::evidence::{
    ClassSamples, ConnectionEvidence, CountingWindow, ForeignConnection, HopSamples, LoadEvidence, PhaseEvidence,
    ProbeFate, ProbeReading,
};
use super::record::LoadRecord;
use super::{LoadTestOptions, verdict};

const IDLE: CountingWindow = window(0, 2000);
const DOWN: CountingWindow = window(3000, 5000);
const UP: CountingWindow = window(6000, 8000);
const BOTH: CountingWindow = window(9000, 11_000);

/// Time between two probes.
const STEP: usize = 50;

const fn at(milliseconds: u64) -> MonotonicTime {
    MonotonicTime::from_nanos(1_000_000_000 + milliseconds * 1_000_000)
}

const fn window(from: u64, to: u64) -> CountingWindow {
    CountingWindow { from: at(from), to: at(to) }
}

const fn milliseconds(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn options() -> LoadTestOptions {
    LoadTestOptions::new(ProbeTarget::new("192.0.2.1", Port::IPERF3))
}

/// A document before the verdict.
fn document(peer: PeerKind) -> LoadDocument {
    let options = options();
    let mut ignore = |_: &super::LoadEvent| {};
    LoadDocument { peer, ..LoadRecord::new(&options, None, &mut ignore).document }
}

/// The document after the verdict about this evidence.
fn judged(evidence: &LoadEvidence, peer: PeerKind) -> LoadDocument {
    let mut document = document(peer);
    verdict::complete(&mut document, evidence, at(0), at(12_000));
    document
}

fn phase(kind: PhaseKind, window: CountingWindow) -> PhaseEvidence {
    let mut phase = PhaseEvidence::new(kind, window.from);
    phase.window = Some(window);
    if kind != PhaseKind::Idle {
        (phase.goodput_stable, phase.latency_stable) = (Some(true), Some(true));
    }
    phase
}

/// The three phases with one direction at most, without connections.
fn phases() -> LoadEvidence {
    let phases = vec![phase(PhaseKind::Idle, IDLE), phase(PhaseKind::Down, DOWN), phase(PhaseKind::Up, UP)];
    LoadEvidence { phases, ..LoadEvidence::default() }
}

/// Answered probes in the three phases, with one round trip in each.
fn readings([idle, down, up]: [u64; 3]) -> Vec<ProbeReading> {
    let of = |window: CountingWindow, time: u64| {
        let from = (window.from.as_nanos() - at(0).as_nanos()) / 1_000_000;
        (from..from + 2000).step_by(STEP).map(move |sent| ProbeReading::answered(at(sent), milliseconds(time)))
    };
    of(IDLE, idle).chain(of(DOWN, down)).chain(of(UP, up)).collect()
}

/// A class with one round trip in each phase.
fn class(class: LatencyClass, times: [u64; 3]) -> ClassSamples {
    ClassSamples { class, readings: readings(times), counts_losses: class != LatencyClass::TcpInfo }
}

fn hop(distance: u8, times: Option<[u64; 3]>) -> HopSamples {
    HopSamples {
        distance,
        address: times.map(|_| IpAddr::V4(Ipv4Addr::new(192, 0, 2, distance))),
        readings: times.map(readings).unwrap_or_default(),
    }
}

/// A connection that moves this many bytes each 100 ms of two seconds.
fn connection(number: u32, direction: Direction, started: MonotonicTime, each: u64) -> ConnectionEvidence {
    let payload = (0..=20).map(|step| (milliseconds(step * 100), ByteCount::new(step * each)));
    ConnectionEvidence { number, direction, started, payload: payload.collect(), samples: Vec::new() }
}

fn sample(time: u64) -> LoadSample {
    LoadSample {
        time: milliseconds(time),
        rtt: None,
        congestion_window: None,
        bytes_acknowledged: None,
        retransmits: None,
        delivery_rate: None,
        not_sent: None,
        busy: None,
        receive_window_limited: None,
        send_buffer_limited: None,
    }
}

fn foreign(sent: u64, tcp: u64, request: u64) -> ForeignConnection {
    let times = Some(ForeignProbe { tcp: milliseconds(tcp), tls: None, request: milliseconds(request) });
    ForeignConnection { sent: at(sent), times }
}

fn lost(sent: u64, direction: Option<Direction>) -> ProbeReading {
    ProbeReading { sent: at(sent), fate: ProbeFate::Lost(direction), up: None, down: None }
}
