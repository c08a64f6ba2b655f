//! Measured evidence: samples of probes, of the load's connections and of interfaces, without any judgement.

use core::time::Duration;
use linerate_analysis::ippm::ClockRelation;
use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::direction::Direction;
use std::net::IpAddr;

use linerate_analysis::latency_under_load::ForeignProbe;
use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio, TypeOfService};

use super::profiles::ProfileEvidence;
use super::traffic::PhaseTraffic;
use crate::probe::messages::LoadSample;

/// Result of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeReading {
    /// Time of sending.
    pub(super) sent: MonotonicTime,
    pub(super) fate: ProbeFate,
    /// Far receive time minus local send time, each by its own clock, in nanoseconds.
    pub(super) up: Option<i64>,
    /// Local receive time minus far send time, likewise.
    pub(super) down: Option<i64>,
}

/// Fate of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeFate {
    /// Answered after this round trip.
    Answered(Duration),
    /// Lost, and in which direction, if the far end's count shows it.
    Lost(Option<Direction>),
}

impl ProbeReading {
    /// A round trip without one-way times.
    pub(super) const fn answered(sent: MonotonicTime, round_trip: Duration) -> Self {
        Self { sent, fate: ProbeFate::Answered(round_trip), up: None, down: None }
    }

    pub(super) const fn round_trip(&self) -> Option<Duration> {
        match self.fate {
            ProbeFate::Answered(time) => Some(time),
            ProbeFate::Lost(_) => None,
        }
    }
}

/// Time window in which a phase counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountingWindow {
    pub(super) from: MonotonicTime,
    pub(super) to: MonotonicTime,
}

impl CountingWindow {
    pub(super) fn contains(&self, time: MonotonicTime) -> bool {
        time >= self.from && time < self.to
    }

    pub(super) const fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// All probes of one class, in the order of sending.
#[derive(Clone, Debug)]
pub(super) struct ClassSamples {
    pub(super) class: LatencyClass,
    pub(super) readings: Vec<ProbeReading>,
    /// True when an unanswered probe is a lost one: on a TCP connection it is retransmitted, or cut off by the end.
    pub(super) counts_losses: bool,
}

impl ClassSamples {
    pub(super) fn within(&self, window: CountingWindow) -> Vec<ProbeReading> {
        self.readings.iter().copied().filter(|reading| window.contains(reading.sent)).collect()
    }
}

/// Number of all connections of a direction together.
pub(super) const ALL_CONNECTIONS: u32 = 0;

/// One connection of the load.
#[derive(Clone, Debug)]
pub(super) struct ConnectionEvidence {
    /// Number shown to users, from 1; [`ALL_CONNECTIONS`] for their sum.
    pub(super) number: u32,
    pub(super) direction: Direction,
    /// Start of the load: the zero of the times below.
    pub(super) started: MonotonicTime,
    /// Payload at the receiver (or, where that is unknown, at the sender) since the start, over time.
    pub(super) payload: Vec<(Duration, ByteCount)>,
    /// The sender's samples of `tcp_info`.
    pub(super) samples: Vec<LoadSample>,
}

impl ConnectionEvidence {
    /// Payload until `time`, interpolated; `None` before the first sample and after the last one.
    pub(super) fn payload_at(&self, time: MonotonicTime) -> Option<f64> {
        let since = time.since(self.started);
        let after = self.payload.partition_point(|(at, _)| *at < since);
        let (at, bytes) = *self.payload.get(after)?;
        if at == since {
            return Some(bytes.as_f64());
        }
        let (before, less) = *self.payload.get(after.checked_sub(1)?)?;
        let share = since.abs_diff(before).as_secs_f64() / at.abs_diff(before).as_secs_f64();
        Some(less.as_f64() + (bytes.as_f64() - less.as_f64()) * share)
    }

    /// Payload rate within the window, as far as it is known.
    pub(super) fn rate(&self, window: CountingWindow) -> Option<BitRate> {
        let (first, last) = (self.payload.first()?.0, self.payload.last()?.0);
        let from = window.from.max(self.started + first);
        let to = window.to.min(self.started + last);
        let time = to.since(from);
        // With less than half of the window known, the rate would be that of another time.
        if time.is_zero() || time * 2 < window.length() {
            return None;
        }
        let bytes = self.payload_at(to)? - self.payload_at(from)?;
        Some(ByteCount::from_f64(bytes).rate_over(time))
    }
}

/// A new connection made while the path was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForeignConnection {
    pub(super) sent: MonotonicTime,
    /// `None` when it was not established in time.
    pub(super) times: Option<ForeignProbe>,
}

/// Results of the probes of one hop.
#[derive(Clone, Debug, Default)]
pub(super) struct HopSamples {
    pub(super) distance: u8,
    pub(super) address: Option<IpAddr>,
    pub(super) readings: Vec<ProbeReading>,
}

/// One phase.
#[derive(Clone, Debug)]
pub(super) struct PhaseEvidence {
    pub(super) kind: PhaseKind,
    pub(super) began: MonotonicTime,
    /// Window in which its probes count; `None` when the phase was aborted before.
    pub(super) window: Option<CountingWindow>,
    /// True when the goodput was stable when counting began; `None` without a load.
    pub(super) goodput_stable: Option<bool>,
    /// The same for the round trips.
    pub(super) latency_stable: Option<bool>,
    pub(super) connections: Vec<ConnectionEvidence>,
    /// Traffic through this host's interface.
    pub(super) near: Option<PhaseTraffic>,
    /// Traffic through the far host's interface.
    pub(super) far: Option<PhaseTraffic>,
    /// Backlog of this host's own queue.
    pub(super) backlog: Vec<(MonotonicTime, ByteCount)>,
}

impl PhaseEvidence {
    pub(super) const fn new(kind: PhaseKind, began: MonotonicTime) -> Self {
        Self {
            kind,
            began,
            window: None,
            goodput_stable: None,
            latency_stable: None,
            connections: Vec::new(),
            near: None,
            far: None,
            backlog: Vec::new(),
        }
    }

    /// Goodput of a direction within the window.
    pub(super) fn goodput(&self, direction: Direction) -> Option<BitRate> {
        let window = self.window?;
        let connections = self.connections.iter().filter(|connection| connection.direction == direction);
        let rates: Vec<BitRate> = connections.filter_map(|connection| connection.rate(window)).collect();
        (!rates.is_empty()).then(|| rates.into_iter().sum())
    }

    /// Segments retransmitted within the window.
    pub(super) fn retransmitted(&self) -> Option<u64> {
        let window = self.window?;
        let of = |connection: &ConnectionEvidence| {
            let inside = |sample: &&LoadSample| window.contains(connection.started + sample.time);
            let mut counts = connection.samples.iter().filter(inside).filter_map(|sample| sample.retransmits);
            let first = counts.next()?;
            Some((counts.next_back().unwrap_or(first) - first).get())
        };
        let counts: Vec<u64> = self.connections.iter().filter_map(of).collect();
        (!counts.is_empty()).then(|| counts.into_iter().sum())
    }
}

/// Evidence of the whole measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadEvidence {
    pub(super) phases: Vec<PhaseEvidence>,
    pub(super) classes: Vec<ClassSamples>,
    pub(super) foreign: Vec<ForeignConnection>,
    pub(super) hops: Vec<HopSamples>,
    /// Distance of the far end, where it is among the nearest hops.
    pub(super) far_distance: Option<u8>,
    /// Codepoints with which ECT(1) arrived; `None` where it was not probed.
    pub(super) ect1: Option<Ect1Arrivals>,
    /// Traffic profiles, phase by phase.
    pub(super) profiles: Vec<ProfileEvidence>,
    /// Relation of the hosts' clocks; `None` without answered UDP probes.
    pub(super) clocks: Option<ClockRelation>,
}

/// Probes with ECT(1) and their answers by the codepoint on arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ect1Arrivals {
    /// Probes, as the far end reports.
    pub(super) up: CodepointArrivals,
    /// Answers.
    pub(super) down: CodepointArrivals,
}

impl Ect1Arrivals {
    pub(super) const fn of(self, direction: Direction) -> CodepointArrivals {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }
}

/// Packets sent with ECT(1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CodepointArrivals {
    /// Arrived with ECT(1).
    pub(super) unchanged: u64,
    /// Arrived marked: congestion experienced.
    pub(super) marked: u64,
    /// Arrived with another codepoint.
    pub(super) changed: u64,
}

impl CodepointArrivals {
    /// Counts a packet that was sent with ECT(1).
    pub(super) fn count(&mut self, arrived: TypeOfService) {
        match arrived.get() & 3 {
            1 => self.unchanged += 1,
            3 => self.marked += 1,
            _ => self.changed += 1,
        }
    }

    pub(super) const fn all(self) -> u64 {
        self.unchanged + self.marked + self.changed
    }

    /// Share that arrived with ECT(1), of those without a mark: a mark replaces ECT(0) as well. Where all are marked, none
    /// is known to be changed.
    pub(super) fn intact(self) -> Option<Ratio> {
        match self.unchanged + self.changed {
            0 => Ratio::new(1.0).filter(|_| self.marked > 0),
            unmarked => share(self.unchanged, unmarked),
        }
    }

    /// Share that arrived marked.
    pub(super) fn marked(self) -> Option<Ratio> {
        share(self.marked, self.all())
    }
}

impl LoadEvidence {
    pub(super) fn class(&self, name: LatencyClass) -> Option<&ClassSamples> {
        self.classes.iter().find(|class| class.class == name)
    }

    /// Window of the idle phase.
    pub(super) fn idle(&self) -> Option<CountingWindow> {
        self.phases.iter().find(|phase| phase.kind == PhaseKind::Idle)?.window
    }
}

fn share(part: u64, whole: u64) -> Option<Ratio> {
    Ratio::of(PacketCount::new(part).as_f64(), PacketCount::new(whole).as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn payload_between_samples_is_interpolated() {
        let payload = [(0, 0), (100, 1000), (200, 3000), (300, 4000)]
            .map(|(time, bytes)| (Duration::from_millis(time), ByteCount::new(bytes)));
        let connection = ConnectionEvidence {
            number: 1,
            direction: Direction::Down,
            started: at(1000),
            payload: payload.to_vec(),
            samples: Vec::new(),
        };
        assert_eq!(connection.payload_at(at(1150)), Some(2000.0));
        assert_eq!(connection.payload_at(at(1200)), Some(3000.0));
        assert_eq!(connection.payload_at(at(1301)), None);
        // 3000 bytes in 200 ms.
        let whole = connection.rate(CountingWindow { from: at(1050), to: at(1250) });
        assert_eq!(whole, Some(BitRate::from_bits_per_second(120_000.0)));
        // A window that extends beyond the last sample is judged by its known part, unless that is too small.
        assert_eq!(
            connection.rate(CountingWindow { from: at(1100), to: at(1400) }),
            Some(BitRate::from_bits_per_second(120_000.0))
        );
        assert_eq!(connection.rate(CountingWindow { from: at(1250), to: at(1400) }), None);
    }
}
