//! Samples of a measurement, for callers that need more than the document's figures.

use core::time::Duration;
use linerate_model::direction::Direction;
use std::net::SocketAddr;

use linerate_analysis::latency_under_load::{InterfaceTraffic, LatencyClass};
use linerate_analysis::statistics::SampleSummary;
use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, MonotonicTime};

use super::evidence::{ClassSamples, CountingWindow, LoadEvidence, PhaseEvidence, ProbeReading};
use super::summary::IdleBaseline;
use super::verdict;

/// Samples of the counted phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadTestSamples {
    /// The far end; `None` where no server with probe sessions answered.
    pub peer: Option<SocketAddr>,
    /// The phases in the order in which they ran.
    pub phases: Vec<PhaseSamples>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSamples {
    /// Load of the phase.
    pub kind: PhaseKind,
    /// Start and end of the window that counted.
    pub counted: (MonotonicTime, MonotonicTime),
    /// Payload rate to the far end within the window; `None` without such a load.
    pub goodput_up: Option<BitRate>,
    /// The same, from the far end.
    pub goodput_down: Option<BitRate>,
    /// Traffic sent through this host's interface towards the far end in the whole phase, from before its connections
    /// were opened until its queue had drained; `None` on loopback, and for an aborted phase.
    pub sent: Option<InterfaceTraffic>,
    /// The same, received.
    pub received: Option<InterfaceTraffic>,
    /// Round trips of the probes sent within the window.
    pub classes: Vec<ClassRoundTrips>,
}

/// The answered probes of one class in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRoundTrips {
    /// Class of the probes. [`LatencyClass::TcpInfo`] are the kernel's round trips of the load's connections.
    pub class: LatencyClass,
    /// Arrival time of each answer, and the round trip.
    pub round_trips: Vec<(MonotonicTime, Duration)>,
    /// Delays to the far end above the minimum of the idle phase; `None` where it does not report them, and without
    /// idle phase.
    pub up: Option<SampleSummary<Duration>>,
    /// The same, from the far end.
    pub down: Option<SampleSummary<Duration>>,
}

/// Derives the samples from the evidence.
pub(super) fn of(evidence: &LoadEvidence, peer: Option<SocketAddr>) -> LoadTestSamples {
    let phases = evidence.phases.iter().filter_map(|phase| Some(phase_samples(evidence, phase, phase.window?)));
    LoadTestSamples { peer, phases: phases.collect() }
}

fn phase_samples(evidence: &LoadEvidence, phase: &PhaseEvidence, window: CountingWindow) -> PhaseSamples {
    PhaseSamples {
        kind: phase.kind,
        counted: (window.from, window.to),
        goodput_up: phase.goodput(Direction::Up),
        goodput_down: phase.goodput(Direction::Down),
        sent: phase.near.map(|passed| passed.sent),
        received: phase.near.map(|passed| passed.received),
        classes: evidence.classes.iter().filter_map(|class| class_of(evidence, class, window)).collect(),
    }
}

fn class_of(evidence: &LoadEvidence, readings: &ClassSamples, window: CountingWindow) -> Option<ClassRoundTrips> {
    let class = Some(readings.class).filter(|class| class.is_compared())?;
    let within = readings.within(window);
    let answer = |reading: &ProbeReading| reading.round_trip().map(|time| (reading.sent + time, time));
    let round_trips: Vec<_> = within.iter().filter_map(answer).collect();
    if round_trips.is_empty() {
        return None;
    }
    let rest = verdict::rest(evidence, readings.class);
    let one_way = |of: fn(&IdleBaseline, &ProbeReading) -> Option<Duration>| {
        let delays: Vec<Duration> = within.iter().filter_map(|reading| of(&rest, reading)).collect();
        SampleSummary::of(&delays)
    };
    Some(ClassRoundTrips {
        class,
        round_trips,
        up: one_way(IdleBaseline::delay_up),
        down: one_way(IdleBaseline::delay_down),
    })
}

#[cfg(test)]
mod tests {
    use linerate_units::ByteCount;

    use super::*;
    use crate::load::evidence::{ConnectionEvidence, ProbeFate};
    use crate::load::traffic::PhaseTraffic;

    const fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    fn probe(sent: u64, round_trip: u64, up: i64) -> ProbeReading {
        let fate = ProbeFate::Answered(Duration::from_millis(round_trip));
        // The far clock is an hour ahead.
        let hour = 3_600_000_000_000;
        let (up, down) = (Some(hour + up * 1_000_000), Some(5_000_000 - hour));
        ProbeReading { sent: at(sent), fate, up, down }
    }

    fn phase(kind: PhaseKind, from: u64, to: u64) -> PhaseEvidence {
        PhaseEvidence {
            window: Some(CountingWindow { from: at(from), to: at(to) }),
            ..PhaseEvidence::new(kind, at(from))
        }
    }

    #[test]
    fn samples_are_sorted_into_phases_and_classes() {
        let mut loaded = phase(PhaseKind::Up, 2000, 3000);
        let payload =
            [(0, 0), (1000, 125_000)].map(|(time, bytes)| (Duration::from_millis(time), ByteCount::new(bytes)));
        loaded.connections.push(ConnectionEvidence {
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
        loaded.near = Some(PhaseTraffic { sent: traffic(140_000), received: traffic(9000) });
        let readings = vec![
            probe(100, 20, 10),
            probe(200, 21, 11),
            probe(1500, 500, 300),
            probe(2100, 80, 70),
            ProbeReading { sent: at(2200), fate: ProbeFate::Lost(None), up: None, down: None },
            probe(2900, 90, 80),
        ];
        let class = |class, readings| ClassSamples { class, readings, counts_losses: true };
        let evidence = LoadEvidence {
            phases: vec![phase(PhaseKind::Idle, 0, 1000), loaded, PhaseEvidence::new(PhaseKind::Both, at(3000))],
            classes: vec![
                class(LatencyClass::UdpBestEffort, readings.clone()),
                class(LatencyClass::TcpHandshake, readings),
            ],
            ..LoadEvidence::default()
        };
        let found = of(&evidence, None);
        // The phase that never counted is left out, and so is a class that is not used for judgement.
        assert_eq!(found.phases.iter().map(|phase| phase.kind).collect::<Vec<_>>(), [PhaseKind::Idle, PhaseKind::Up]);
        let loaded = &found.phases[1];
        assert_eq!((loaded.goodput_up, loaded.goodput_down), (Some(BitRate::from_bits_per_second(1e6)), None));
        assert_eq!((loaded.sent, loaded.received), (Some(traffic(140_000)), Some(traffic(9000))));
        assert_eq!(loaded.classes.len(), 1);
        let class = &loaded.classes[0];
        assert_eq!(class.class, LatencyClass::UdpBestEffort);
        let expected = [(at(2180), Duration::from_millis(80)), (at(2990), Duration::from_millis(90))];
        assert_eq!(class.round_trips, expected);
        // Above the minimum of the idle phase, by whichever clock.
        assert_eq!(class.up.map(|up| (up.min, up.max)), Some((Duration::from_millis(60), Duration::from_millis(70))));
        assert_eq!(class.down.map(|down| down.max), Some(Duration::ZERO));
    }
}
