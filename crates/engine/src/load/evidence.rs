//! What was seen: readings of probes, of the load's connections, and of interfaces, without any judgement.

use core::time::Duration;
use std::net::IpAddr;

use linerate_model::latency_under_load::ForeignProbe;
use linerate_model::schema::load::{ClassName, PhaseKind};
use linerate_model::schema::throughput::Direction;
use linerate_units::{BitRate, ByteCount, MonotonicTime};

use super::traffic::Passed;
use crate::probe::messages::LoadSample;

/// What became of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// When it was sent.
    pub(super) sent: MonotonicTime,
    pub(super) fate: Fate,
    /// Received there minus sent here, each by its own clock, in nanoseconds.
    pub(super) up: Option<i64>,
    /// Received here minus sent there.
    pub(super) down: Option<i64>,
}

/// Whether a probe came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// After this long.
    Answered(Duration),
    /// Not, and where it was lost, if the far end's counting tells.
    Lost(Option<Direction>),
}

impl Reading {
    /// A round trip without more.
    pub(super) const fn answered(sent: MonotonicTime, round_trip: Duration) -> Self {
        Self { sent, fate: Fate::Answered(round_trip), up: None, down: None }
    }

    pub(super) const fn round_trip(&self) -> Option<Duration> {
        match self.fate {
            Fate::Answered(time) => Some(time),
            Fate::Lost(_) => None,
        }
    }
}

/// From when to when a phase counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: MonotonicTime,
    pub(super) to: MonotonicTime,
}

impl Window {
    pub(super) fn contains(&self, time: MonotonicTime) -> bool {
        time >= self.from && time < self.to
    }

    pub(super) const fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// All probes of one class, in the order of sending.
#[derive(Clone, Debug)]
pub(super) struct ClassReadings {
    pub(super) class: ClassName,
    pub(super) readings: Vec<Reading>,
    /// Whether a probe without an answer is a lost one: on a TCP connection it is sent again, or cut off by the end.
    pub(super) counts_losses: bool,
}

impl ClassReadings {
    pub(super) fn within(&self, window: Window) -> Vec<Reading> {
        self.readings.iter().copied().filter(|reading| window.contains(reading.sent)).collect()
    }
}

/// One connection of the load.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Its number, from 1, for people.
    pub(super) number: u32,
    pub(super) direction: Direction,
    /// When the load began: the zero of the times below.
    pub(super) started: MonotonicTime,
    /// Payload at the receiver (or, where that is not known, at the sender) since the start, over time.
    pub(super) payload: Vec<(Duration, ByteCount)>,
    /// The sender's readings of `tcp_info`.
    pub(super) samples: Vec<LoadSample>,
}

impl Connection {
    /// Payload until `time`, between two readings in proportion; `None` before the first and behind the last one.
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

    /// Payload per second within the window, as far as it is known.
    pub(super) fn rate(&self, window: Window) -> Option<BitRate> {
        let (first, last) = (self.payload.first()?.0, self.payload.last()?.0);
        let from = window.from.max(self.started + first);
        let to = window.to.min(self.started + last);
        let time = to.since(from);
        // Of less than half of the window it would be somebody else's rate.
        if time.is_zero() || time * 2 < window.length() {
            return None;
        }
        let bytes = self.payload_at(to)? - self.payload_at(from)?;
        Some(ByteCount::from_f64(bytes).rate_over(time))
    }
}

/// A new connection that was made while the path was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) sent: MonotonicTime,
    /// `None` when it did not come about in time.
    pub(super) times: Option<ForeignProbe>,
}

/// What the hops on the way answered.
#[derive(Clone, Debug, Default)]
pub(super) struct HopReadings {
    pub(super) distance: u8,
    pub(super) address: Option<IpAddr>,
    pub(super) readings: Vec<Reading>,
}

/// One phase.
#[derive(Clone, Debug)]
pub(super) struct PhaseEvidence {
    pub(super) kind: PhaseKind,
    pub(super) began: MonotonicTime,
    /// When its probes count; `None` when it was broken off before.
    pub(super) window: Option<Window>,
    /// Whether the goodput stood still when counting began; `None` without a load.
    pub(super) goodput_stable: Option<bool>,
    /// The same of the round trips.
    pub(super) latency_stable: Option<bool>,
    pub(super) connections: Vec<Connection>,
    /// What went through this host's interface.
    pub(super) near: Option<Passed>,
    /// What went through the far host's interface.
    pub(super) far: Option<Passed>,
    /// What waited in this host's own queue.
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

    /// Goodput of a direction while it counted.
    pub(super) fn goodput(&self, direction: Direction) -> Option<BitRate> {
        let window = self.window?;
        let connections = self.connections.iter().filter(|connection| connection.direction == direction);
        let rates: Vec<BitRate> = connections.filter_map(|connection| connection.rate(window)).collect();
        (!rates.is_empty()).then(|| rates.into_iter().sum())
    }

    /// Segments sent again while it counted.
    pub(super) fn retransmitted(&self) -> Option<u64> {
        let window = self.window?;
        let of = |connection: &Connection| {
            let inside = |sample: &&LoadSample| window.contains(connection.started + sample.time);
            let mut counts = connection.samples.iter().filter(inside).filter_map(|sample| sample.retransmits);
            let first = counts.next()?;
            Some((counts.next_back().unwrap_or(first) - first).get())
        };
        let counts: Vec<u64> = self.connections.iter().filter_map(of).collect();
        (!counts.is_empty()).then(|| counts.into_iter().sum())
    }
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub(super) phases: Vec<PhaseEvidence>,
    pub(super) classes: Vec<ClassReadings>,
    pub(super) foreign: Vec<Foreign>,
    pub(super) hops: Vec<HopReadings>,
    /// The distance of the far end, where it is among the nearest hops.
    pub(super) far_distance: Option<u8>,
}

impl Evidence {
    pub(super) fn class(&self, name: ClassName) -> Option<&ClassReadings> {
        self.classes.iter().find(|class| class.class == name)
    }

    /// The window of the idle phase.
    pub(super) fn idle(&self) -> Option<Window> {
        self.phases.iter().find(|phase| phase.kind == PhaseKind::Idle)?.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn payload_between_readings_is_in_proportion() {
        let payload = [(0, 0), (100, 1000), (200, 3000), (300, 4000)]
            .map(|(time, bytes)| (Duration::from_millis(time), ByteCount::new(bytes)));
        let connection = Connection {
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
        let whole = connection.rate(Window { from: at(1050), to: at(1250) });
        assert_eq!(whole, Some(BitRate::from_bits_per_second(120_000.0)));
        // What reaches beyond the last reading is judged by what is known, unless that is too little.
        assert_eq!(
            connection.rate(Window { from: at(1100), to: at(1400) }),
            Some(BitRate::from_bits_per_second(120_000.0))
        );
        assert_eq!(connection.rate(Window { from: at(1250), to: at(1400) }), None);
    }
}
