//! What a measurement saw, reading by reading: for those who judge by more than the document's figures.

use core::time::Duration;
use std::net::SocketAddr;

use linerate_model::latency_under_load::{Class, InterfaceTraffic};
use linerate_model::schema::load::PhaseKind;
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::Summary;
use linerate_units::{BitRate, MonotonicTime};

use super::evidence::{ClassReadings, Evidence, PhaseEvidence, Reading, Window};
use super::summary::Rest;
use super::verdict;

/// Everything that was read in the phases that came to count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReadings {
    /// The far end; `None` where nobody with probe sessions answered.
    pub peer: Option<SocketAddr>,
    /// The phases in the order in which they ran.
    pub phases: Vec<PhaseReadings>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseReadings {
    /// What was loaded.
    pub kind: PhaseKind,
    /// From when to when it counted.
    pub counted: (MonotonicTime, MonotonicTime),
    /// What the connections to the far end carried as payload while it counted; `None` without such a load.
    pub goodput_up: Option<BitRate>,
    /// The same, from the far end.
    pub goodput_down: Option<BitRate>,
    /// What left through this host's interface towards the far end in the whole phase, from before its connections were
    /// opened until its queue had drained; `None` on loopback, and where the phase was broken off.
    pub sent: Option<InterfaceTraffic>,
    /// The same, received.
    pub received: Option<InterfaceTraffic>,
    /// What the probes saw that were sent while it counted.
    pub classes: Vec<ClassRoundTrips>,
}

/// The answered probes of one class in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRoundTrips {
    /// Which class. [`Class::TcpInBand`] are the kernel's round trips of the load's connections.
    pub class: Class,
    /// When each answer came, and the round trip.
    pub round_trips: Vec<(MonotonicTime, Duration)>,
    /// Delays to the far end above the least of the idle phase; `None` where it does not tell them, and without idle phase.
    pub up: Option<Summary<Duration>>,
    /// The same, from the far end.
    pub down: Option<Summary<Duration>>,
}

/// What follows from the evidence.
pub(super) fn of(evidence: &Evidence, peer: Option<SocketAddr>) -> LoadReadings {
    let phases = evidence.phases.iter().filter_map(|phase| Some(readings_of(evidence, phase, phase.window?)));
    LoadReadings { peer, phases: phases.collect() }
}

fn readings_of(evidence: &Evidence, phase: &PhaseEvidence, window: Window) -> PhaseReadings {
    PhaseReadings {
        kind: phase.kind,
        counted: (window.from, window.to),
        goodput_up: phase.goodput(Direction::Up),
        goodput_down: phase.goodput(Direction::Down),
        sent: phase.near.map(|passed| passed.sent),
        received: phase.near.map(|passed| passed.received),
        classes: evidence.classes.iter().filter_map(|class| class_of(evidence, class, window)).collect(),
    }
}

fn class_of(evidence: &Evidence, readings: &ClassReadings, window: Window) -> Option<ClassRoundTrips> {
    let class = verdict::model_class(readings.class)?;
    let within = readings.within(window);
    let answer = |reading: &Reading| reading.round_trip().map(|time| (reading.sent + time, time));
    let round_trips: Vec<_> = within.iter().filter_map(answer).collect();
    if round_trips.is_empty() {
        return None;
    }
    let rest = verdict::rest(evidence, readings.class);
    let one_way = |of: fn(&Rest, &Reading) -> Option<Duration>| {
        let delays: Vec<Duration> = within.iter().filter_map(|reading| of(&rest, reading)).collect();
        Summary::of(&delays)
    };
    Some(ClassRoundTrips { class, round_trips, up: one_way(Rest::delay_up), down: one_way(Rest::delay_down) })
}

#[cfg(test)]
mod tests {
    use linerate_model::schema::load::ClassName;
    use linerate_units::ByteCount;

    use super::*;
    use crate::load::evidence::{Connection, Fate};
    use crate::load::traffic::Passed;

    const fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    fn probe(sent: u64, round_trip: u64, up: i64) -> Reading {
        let fate = Fate::Answered(Duration::from_millis(round_trip));
        // The far clock is an hour ahead.
        let hour = 3_600_000_000_000;
        let (up, down) = (Some(hour + up * 1_000_000), Some(5_000_000 - hour));
        Reading { sent: at(sent), fate, up, down }
    }

    fn phase(kind: PhaseKind, from: u64, to: u64) -> PhaseEvidence {
        PhaseEvidence { window: Some(Window { from: at(from), to: at(to) }), ..PhaseEvidence::new(kind, at(from)) }
    }

    #[test]
    fn readings_are_sorted_into_phases_and_classes() {
        let mut loaded = phase(PhaseKind::Up, 2000, 3000);
        let payload =
            [(0, 0), (1000, 125_000)].map(|(time, bytes)| (Duration::from_millis(time), ByteCount::new(bytes)));
        loaded.connections.push(Connection {
            number: 1,
            direction: Direction::Up,
            started: at(2000),
            payload: payload.to_vec(),
            samples: Vec::new(),
        });
        let traffic = |counted| InterfaceTraffic {
            counted: ByteCount::new(counted),
            own: ByteCount::new(1),
            time: Duration::from_secs(2),
        };
        loaded.near = Some(Passed { sent: traffic(140_000), received: traffic(9000) });
        let readings = vec![
            probe(100, 20, 10),
            probe(200, 21, 11),
            probe(1500, 500, 300),
            probe(2100, 80, 70),
            Reading { sent: at(2200), fate: Fate::Lost(None), up: None, down: None },
            probe(2900, 90, 80),
        ];
        let class = |class, readings| ClassReadings { class, readings, counts_losses: true };
        let evidence = Evidence {
            phases: vec![phase(PhaseKind::Idle, 0, 1000), loaded, PhaseEvidence::new(PhaseKind::Both, at(3000))],
            classes: vec![class(ClassName::UdpBestEffort, readings.clone()), class(ClassName::TcpHandshake, readings)],
            ..Evidence::default()
        };
        let found = of(&evidence, None);
        // The phase that never counted is left out, and so is a class that nothing is judged by.
        assert_eq!(found.phases.iter().map(|phase| phase.kind).collect::<Vec<_>>(), [PhaseKind::Idle, PhaseKind::Up]);
        let loaded = &found.phases[1];
        assert_eq!((loaded.goodput_up, loaded.goodput_down), (Some(BitRate::from_bits_per_second(1e6)), None));
        assert_eq!((loaded.sent, loaded.received), (Some(traffic(140_000)), Some(traffic(9000))));
        assert_eq!(loaded.classes.len(), 1);
        let class = &loaded.classes[0];
        assert_eq!(class.class, Class::UdpBestEffort);
        let expected = [(at(2180), Duration::from_millis(80)), (at(2990), Duration::from_millis(90))];
        assert_eq!(class.round_trips, expected);
        // Above the least of the idle phase, by whichever clock.
        assert_eq!(class.up.map(|up| (up.min, up.max)), Some((Duration::from_millis(60), Duration::from_millis(70))));
        assert_eq!(class.down.map(|down| down.max), Some(Duration::ZERO));
    }
}
