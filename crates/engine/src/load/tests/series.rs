//! Series of samples for charts.

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_documents::run::{ChartPanel, FigureUnit, SampleSeries};
use linerate_model::direction::Direction;
use linerate_units::{ByteCount, SegmentCount};

use super::super::evidence::{ClassSamples, LoadEvidence, ProbeReading};
use super::super::series;
use super::{DOWN, UP, at, class, connection, lost, milliseconds, phases, sample};

fn all(evidence: &LoadEvidence) -> Vec<SampleSeries> {
    series::of(evidence, at(0))
}

fn of_panel(evidence: &LoadEvidence, panel: ChartPanel) -> Vec<SampleSeries> {
    all(evidence).into_iter().filter(|series| series.panel == panel).collect()
}

fn times(series: &SampleSeries) -> Vec<u64> {
    series.times_ns.iter().map(|time| time / 1_000_000).collect()
}

#[test]
fn nothing_measured_is_nothing_shown() {
    assert!(all(&LoadEvidence::default()).is_empty());
    let unanswered = ClassSamples { class: LatencyClass::Icmp, readings: vec![lost(10, None); 5], counts_losses: true };
    assert!(all(&LoadEvidence { classes: vec![unanswered], ..phases() }).is_empty(), "no series of gaps alone");
}

#[test]
fn throughput_is_averaged_over_quarters_of_a_second() {
    let mut evidence = phases();
    let mut one = connection(3, Direction::Down, at(3000), 50_000);
    // After the first second at 500 kB/s, nothing moves.
    for (time, bytes) in &mut one.payload {
        if *time > milliseconds(1000) {
            *bytes = ByteCount::new(500_000);
        }
    }
    evidence.phases[1].connections = vec![one];
    let found = of_panel(&evidence, ChartPanel::Throughput);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].stream), ("connection 3", Some(3)));
    assert_eq!((found[0].direction, found[0].unit), (Some(Direction::Down), FigureUnit::BitsPerSecond));
    assert_eq!(times(&found[0]), [3250, 3500, 3750, 4000, 4250, 4500, 4750, 5000]);
    let expected: Vec<Option<f64>> = [4e6, 4e6, 4e6, 4e6, 0.0, 0.0, 0.0, 0.0].map(Some).to_vec();
    assert_eq!(found[0].values, expected);
    // Less than one averaging time is no series.
    evidence.phases[1].connections[0].payload.truncate(3);
    assert!(of_panel(&evidence, ChartPanel::Throughput).is_empty());
}

#[test]
fn lost_probes_are_gaps_and_undelivered_pings_are_not() {
    let readings = vec![
        ProbeReading::answered(at(100), milliseconds(7)),
        lost(200, None),
        ProbeReading::answered(at(300), milliseconds(9)),
    ];
    for (class, counts_losses, expected) in [
        (LatencyClass::UdpBestEffort, true, vec![Some(7e6), None, Some(9e6)]),
        (LatencyClass::TcpApplication, false, vec![Some(7e6), Some(9e6)]),
    ] {
        let classes = vec![ClassSamples { class, readings: readings.clone(), counts_losses }];
        let found = of_panel(&LoadEvidence { classes, ..phases() }, ChartPanel::Latency);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), &found[0].values), (class.title(), &expected));
        assert_eq!(found[0].times_ns.len(), expected.len());
    }
    let kernel = vec![ClassSamples { class: LatencyClass::TcpInfo, readings, counts_losses: false }];
    assert!(of_panel(&LoadEvidence { classes: kernel, ..phases() }, ChartPanel::Latency).is_empty());
}

#[test]
fn one_way_delays_are_above_the_smallest_of_the_idle_phase() {
    let mut udp = class(LatencyClass::UdpBestEffort, [20, 20, 20]);
    for reading in &mut udp.readings {
        let loaded = i64::from(UP.contains(reading.sent)) * 30_000_000;
        // The far clock is a second behind; the way back is not known for the first probe.
        reading.up = Some(-1_000_000_000 + loaded);
        reading.down = (reading.sent != at(0)).then_some(1_000_000_000 - loaded / 30);
    }
    let evidence = LoadEvidence { classes: vec![udp], ..phases() };
    let found = of_panel(&evidence, ChartPanel::OneWayDelay);
    assert_eq!(
        found.iter().map(|series| series.direction).collect::<Vec<_>>(),
        [Some(Direction::Up), Some(Direction::Down)]
    );
    let loaded = |series: &SampleSeries| -> Vec<Option<f64>> {
        let points = series.times_ns.iter().zip(&series.values);
        let mut values: Vec<_> = points.filter(|(time, _)| **time >= 6_000_000_000).map(|(_, value)| *value).collect();
        values.dedup();
        values
    };
    assert_eq!(loaded(&found[0]), [Some(30e6)]);
    assert_eq!(loaded(&found[1]), [Some(0.0)], "a drift below the smallest is no negative delay");
    assert_eq!(found[1].values.len() + 1, found[0].values.len(), "a probe without the time is left out");
    // Without an idle phase there is no smallest delay.
    let mut without = evidence;
    without.phases.remove(0);
    assert!(of_panel(&without, ChartPanel::OneWayDelay).is_empty());
}

#[test]
fn the_kernels_samples_are_a_tenth_of_a_second_apart() {
    let mut evidence = phases();
    let mut one = connection(1, Direction::Up, at(6000), 1000);
    one.samples = (0..20)
        .map(|step| {
            let mut sample = sample(step * 40);
            sample.rtt = Some(milliseconds(10 + step));
            sample.congestion_window = (step != 3).then(|| ByteCount::new(step * 1448));
            sample.retransmits = Some(SegmentCount::new(step * step));
            sample
        })
        .collect();
    evidence.phases[2].connections = vec![one];
    // Samples 0, 3, 6, … are 120 ms apart.
    let rtt = &of_panel(&evidence, ChartPanel::Rtt)[0];
    assert_eq!(times(rtt), [6000, 6120, 6240, 6360, 6480, 6600, 6720]);
    assert_eq!(rtt.values, [0, 3, 6, 9, 12, 15, 18].map(|step| Some(f64::from(10 + step) * 1e6)));
    let window = &of_panel(&evidence, ChartPanel::CongestionWindow)[0];
    assert_eq!(window.values[..3], [Some(0.0), None, Some(6.0 * 1448.0)], "an unknown value is a gap");
    let again = &of_panel(&evidence, ChartPanel::Retransmissions)[0];
    assert_eq!(times(again), [6120, 6240, 6360, 6480, 6600, 6720]);
    assert_eq!(again.values, [9, 27, 45, 63, 81, 99].map(|grown| Some(f64::from(grown))));
    assert!(of_panel(&evidence, ChartPanel::Queue).is_empty(), "the kernel did not report unsent bytes");
}

#[test]
fn the_own_queue_is_one_series_over_all_phases() {
    let mut evidence = phases();
    evidence.phases[1].backlog = vec![(DOWN.from, ByteCount::new(10))];
    evidence.phases[2].backlog = vec![(UP.from, ByteCount::new(20)), (at(6100), ByteCount::ZERO)];
    let found = of_panel(&evidence, ChartPanel::Queue);
    assert_eq!(found.len(), 1);
    assert_eq!((times(&found[0]), found[0].direction), (vec![3000, 6000, 6100], None));
    assert_eq!(found[0].values, [Some(10.0), Some(20.0), Some(0.0)]);
}

#[test]
fn series_come_in_the_order_of_the_charts() {
    let mut evidence = LoadEvidence { classes: vec![class(LatencyClass::Icmp, [1, 2, 3])], ..phases() };
    for (phase, number) in [(1, 1), (2, 2)] {
        let started = evidence.phases[phase].began;
        let mut one = connection(number, Direction::Up, started, 1000);
        let mut first = sample(0);
        first.rtt = Some(milliseconds(1));
        first.not_sent = Some(ByteCount::new(7));
        one.samples = vec![first];
        evidence.phases[phase].connections.push(one);
    }
    let names: Vec<(ChartPanel, String)> =
        all(&evidence).into_iter().map(|series| (series.panel, series.name)).collect();
    let of = |panel, name: &str| (panel, name.to_owned());
    assert_eq!(
        names,
        [
            of(ChartPanel::Throughput, "connection 1"),
            of(ChartPanel::Throughput, "connection 2"),
            of(ChartPanel::Latency, "ICMP echo"),
            of(ChartPanel::Rtt, "connection 1"),
            of(ChartPanel::Queue, "connection 1"),
            of(ChartPanel::Rtt, "connection 2"),
            of(ChartPanel::Queue, "connection 2"),
        ]
    );
}
