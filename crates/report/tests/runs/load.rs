//! Latency under load.

use core::time::Duration;

use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult, SampleSeries,
};
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;
use linerate_model::load::{
    CrossTrafficFinding, LatencyGrade, LatencyPercentiles, LoadDocument, LoadGrade, LoadPhase, PhaseKind,
    PhaseResponsiveness, ProbeClass, QueueFinding, QueueHost,
};
use linerate_model::load::{LatencyClass, ResponsivenessMethod};
use linerate_model::path::{PeerKind, UnknownValue};
use linerate_model::summary::DurationDistribution;
use linerate_model::traffic_profile::{
    GameFigures, ProfileFigures, ProfilePackets, ProfilePhase, ProfileResult, TrafficProfile, VoiceDirection,
    VoiceFigures,
};
use linerate_units::serde::nanoseconds;

use super::{MILLISECOND, Noise, SECOND, STARTED, complete, figure, real, run, span, times, unknown_figure, whole};

const CLASSES: [LatencyClass; 6] = [
    LatencyClass::Icmp,
    LatencyClass::UdpBestEffort,
    LatencyClass::UdpExpeditedForwarding,
    LatencyClass::TcpApplication,
    LatencyClass::TcpInfo,
    LatencyClass::TcpHandshake,
];

const PHASES: [(PhaseKind, &str, f64); 4] = [
    (PhaseKind::Idle, "idle", 18.0),
    (PhaseKind::Down, "down", 430.0),
    (PhaseKind::Up, "up", 960.0),
    (PhaseKind::Both, "both", 1120.0),
];

/// Round trips that are 18 ms at rest and `full` with a full queue.
fn loaded(full: f64) -> DurationDistribution {
    if full < 20.0 { times(17.2, 18.1, 19.6, 22.0) } else { times(full * 0.5, full * 0.92, full * 1.04, full * 1.1) }
}

fn class(name: LatencyClass, kind: PhaseKind, full: f64) -> ProbeClass {
    let rtt = loaded(full);
    let uplift = |value: Duration| (kind != PhaseKind::Idle).then(|| nanoseconds(value).cast_signed() - 18_100_000);
    let step = |n: u64| nanoseconds(rtt.min + rtt.max.saturating_sub(rtt.min).mul_f64((real(n) / 50.0).powi(2)));
    ProbeClass {
        class: name,
        sent: Some(200),
        lost: Some(if kind == PhaseKind::Idle { 0 } else { 3 }),
        lost_up: Some(0),
        lost_down: None,
        rtt: Some(rtt),
        percentiles: Some(LatencyPercentiles {
            p5_ns: nanoseconds(rtt.min),
            p25_ns: nanoseconds(rtt.median) - 100,
            p75_ns: nanoseconds(rtt.median) + 100,
            p90_ns: nanoseconds(rtt.p95),
            p999_ns: None,
        }),
        cdf_ns: (0..=50).map(step).collect(),
        up: Some(times(0.0, full * 0.02, full * 0.03, full * 0.05)),
        down: (name == LatencyClass::UdpBestEffort).then(|| times(0.0, full * 0.9, full, full * 1.05)),
        uplift_median_ns: uplift(rtt.median),
        uplift_p95_ns: uplift(rtt.p95),
        ipdv_mean_ns: Some(400_000),
    }
}

/// `share` of the bloat of a link with a far too long queue.
pub(super) fn document(share: f64) -> LoadDocument {
    let phase = |index: usize| {
        let (kind, _, full) = PHASES[index];
        let full = if kind == PhaseKind::Idle { full } else { full * share };
        let start = index as u64 * 10 * SECOND;
        let rate = |loads: bool, rate: f64| loads.then_some(rate);
        LoadPhase {
            kind,
            start_ns: start,
            stable_ns: Some(start + 2 * SECOND),
            end_ns: start + 10 * SECOND,
            stable: Some(true),
            goodput_up_bits_per_second: rate(matches!(kind, PhaseKind::Up | PhaseKind::Both), 0.94e6),
            goodput_down_bits_per_second: rate(matches!(kind, PhaseKind::Down | PhaseKind::Both), 7.52e6),
            retransmitted_segments: (kind != PhaseKind::Idle).then_some(17),
            classes: CLASSES.iter().map(|&name| class(name, kind, full)).collect(),
        }
    };
    let milliseconds = [
        (LatencyGrade::APlus, 5),
        (LatencyGrade::A, 30),
        (LatencyGrade::B, 60),
        (LatencyGrade::C, 200),
        (LatencyGrade::D, 400),
    ];
    LoadDocument {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: "fra.example.net".to_owned(),
        port: 5201,
        peer: PeerKind::Linerate,
        started_at_unix_ns: STARTED,
        duration_ns: 40 * SECOND,
        termination: complete(),
        congestion_control: Some("cubic".to_owned()),
        connections: 4,
        phases: (0..4).map(phase).collect(),
        grade: Some(LoadGrade {
            letter: if share > 0.5 { LatencyGrade::F } else { LatencyGrade::B },
            added_ns: whole(942e6 * share),
            class: LatencyClass::UdpBestEffort,
            direction: Direction::Up,
            up: Some(if share > 0.5 { LatencyGrade::F } else { LatencyGrade::B }),
            down: Some(if share > 0.5 { LatencyGrade::F } else { LatencyGrade::A }),
            thresholds: milliseconds.map(|(letter, limit)| (letter, limit * MILLISECOND)).into(),
        }),
        ungraded_because: None,
        responsiveness: Some(PhaseResponsiveness {
            method: ResponsivenessMethod::Draft09,
            down: Some(131.0 / share),
            up: Some(61.0 / share),
            both: None,
            confidence: Confidence::Medium,
        }),
        http: None,
        queues: vec![QueueFinding {
            direction: Direction::Up,
            location: QueueHost::NextHop,
            added_ns: Some(whole(940e6 * share)),
            one_way_confirms: Some(true),
            evidence: "the delay to hop 1 grows as much as to the far end".to_owned(),
            hops: Vec::new(),
        }],
        dual_queues: Vec::new(),
        profiles: vec![voice(share), game(share)],
        contamination: Some(CrossTrafficFinding {
            spoils: false,
            share: 0.002,
            evidence: "12 kbit/s of other traffic passed through the interface".to_owned(),
        }),
        unknown: vec![UnknownValue {
            key: "responsiveness.both".to_owned(),
            reason: "the phase was too short for three stable intervals".to_owned(),
        }],
        notes: vec!["EF is treated as best effort on this path.".to_owned()],
    }
}

fn profile(
    profile: TrafficProfile,
    share: f64,
    letters: [LatencyGrade; 2],
    figures: impl Fn(f64) -> ProfileFigures,
) -> ProfileResult {
    let phase = |(kind, _, full): (PhaseKind, &str, f64)| {
        let full = if kind == PhaseKind::Idle { full } else { full * share };
        let letter = letters[usize::from(full > 200.0)];
        let packets = ProfilePackets {
            sent: 500,
            lost: 3,
            late: Some(2),
            delay: Some(loaded(full / 2.0)),
            delay_error_ns: Some(9 * MILLISECOND),
        };
        ProfilePhase {
            kind,
            start_ns: SECOND,
            end_ns: 11 * SECOND,
            letter: Some(letter),
            perception: profile.perception(letter).to_owned(),
            up: Some(packets),
            down: Some(ProfilePackets { delay: None, delay_error_ns: None, late: None, ..packets }),
            figures: Some(figures(full)),
        }
    };
    let phases: Vec<ProfilePhase> = PHASES.into_iter().map(phase).collect();
    ProfileResult { profile, letter: phases.iter().filter_map(|phase| phase.letter).max(), phases }
}

fn voice(share: f64) -> ProfileResult {
    profile(TrafficProfile::Voice, share, [LatencyGrade::A, LatencyGrade::F], |full| {
        let mos = if full > 200.0 { 1.43 } else { 4.38 };
        let heard = VoiceDirection { mos, playout_ns: whole(full * 5e5), missing_share: 0.01, burst_ratio: 1.2 };
        ProfileFigures::Voice(VoiceFigures {
            mos,
            r_factor: if full > 200.0 { 24.0 } else { 92.1 },
            mouth_to_ear_ns: Some(whole(full * 5e5)),
            up: Some(heard),
            down: Some(heard),
        })
    })
}

fn game(share: f64) -> ProfileResult {
    profile(TrafficProfile::Game, share, [LatencyGrade::B, LatencyGrade::F], |full| {
        ProfileFigures::Game(GameFigures {
            reaction: Some(loaded(full)),
            deadline_ns: 100 * MILLISECOND,
            missed_share: if full > 200.0 { 0.97 } else { 0.02 },
        })
    })
}

/// Probes of one class over all phases.
fn series(name: &str, share: f64, seed: u64) -> SampleSeries {
    let mut noise = Noise::new(seed);
    let times_ns: Vec<u64> = (0..800).map(|n| n * 50 * MILLISECOND).collect();
    let value = |&time: &u64| {
        let (_, _, full) = PHASES[usize::try_from(time / (10 * SECOND)).expect("small").min(3)];
        let full = if full < 20.0 { full } else { full * share };
        let ramp = (real(time % (10 * SECOND)) / 2e9).min(1.0);
        let (jitter, lost) = (noise.between(0.93, 1.05), noise.next());
        (lost > 0.004).then(|| ((18.0 + (full - 18.0) * ramp) * jitter * 1e6).round())
    };
    let values = times_ns.iter().map(value).collect();
    let name = name.to_owned();
    SampleSeries {
        panel: ChartPanel::Latency,
        name,
        direction: None,
        stream: None,
        unit: FigureUnit::Nanoseconds,
        times_ns,
        values,
    }
}

fn goodput(direction: Direction, rate: f64, phases: [usize; 2]) -> SampleSeries {
    let mut noise = Noise::new(77);
    let times_ns: Vec<u64> = (1..=400).map(|n| n * 100 * MILLISECOND).collect();
    let value = |&time: &u64| {
        let phase = usize::try_from((time - 1) / (10 * SECOND)).expect("small");
        let flows = if phases.contains(&phase) { rate } else { 0.0 };
        Some(flows * noise.between(0.9, 1.02))
    };
    let values = times_ns.iter().map(value).collect();
    let (name, unit) = ("load".to_owned(), FigureUnit::BitsPerSecond);
    SampleSeries {
        panel: ChartPanel::Throughput,
        name,
        direction: Some(direction),
        stream: None,
        unit,
        times_ns,
        values,
    }
}

/// A link with too long a queue, of which `1 / divisor` is left: 1 before, more after shaping.
pub(crate) fn load(divisor: u32) -> RunDocument {
    let share = 1.0 / f64::from(divisor);
    let document = document(share);
    let grade = document.grade.as_ref().map_or("?", |grade| grade.letter.letter());
    let verdict = format!(
        "Grade {grade}: a download or an upload adds up to {:.0} ms; the queue is at the next hop.",
        942.0 * share
    );
    let result = RunResult::Load(Box::new(document));
    let mut run = run(RunKind::Load, 40, &["load", "fra.example.net"], &verdict, result);
    run.figures = vec![
        figure("added_up", "Added delay up", FigureUnit::Nanoseconds, Some(942e6 * share), ImprovementDirection::Lower),
        figure(
            "added_down",
            "Added delay down",
            FigureUnit::Nanoseconds,
            Some(412e6 * share),
            ImprovementDirection::Lower,
        ),
        figure("rtt_idle_median", "Idle RTT", FigureUnit::Nanoseconds, Some(18.1e6), ImprovementDirection::Lower),
        figure("goodput_down", "Goodput down", FigureUnit::BitsPerSecond, Some(7.52e6), ImprovementDirection::Higher),
        figure("goodput_up", "Goodput up", FigureUnit::BitsPerSecond, Some(0.94e6), ImprovementDirection::Higher),
        figure(
            "rpm_up",
            "Responsiveness up",
            FigureUnit::RoundTripsPerMinute,
            Some(61.0 / share),
            ImprovementDirection::Higher,
        ),
    ];
    run.series = vec![
        goodput(Direction::Down, 7.52e6, [1, 3]),
        goodput(Direction::Up, 0.94e6, [2, 3]),
        series("UDP best effort", share, 1),
        series("UDP EF", share, 2),
        series("TCP in-band", share * 0.8, 3),
        series("ICMP echo", share, 4),
    ];
    run.phases = PHASES.iter().zip(0..).map(|((_, name, _), index)| span(name, index * 10, index * 10 + 10)).collect();
    run.environment = super::environment::lab("xs4all-line");
    run
}

/// The same with the goodput of each of four connections per direction, other ones in each phase, as in `linerate
/// load`.
pub(crate) fn load_of_connections() -> RunDocument {
    let mut run = load(1);
    run.series.retain(|series| series.panel != ChartPanel::Throughput);
    let phases = [(Direction::Down, 7.52e6, [1, 3]), (Direction::Up, 0.94e6, [2, 3])];
    for (direction, rate, phases) in phases {
        let whole = goodput(direction, rate, phases);
        for (phase, number) in phases.into_iter().flat_map(|phase| (1..=4).map(move |number| (phase, number))) {
            let of_phase = |time: u64| (time - 1) / (10 * SECOND) == phase as u64;
            let readings = whole.times_ns.iter().zip(&whole.values).filter(|(time, _)| of_phase(**time));
            let quarter = |(time, value): (&u64, &Option<f64>)| (*time, value.map(|value| value / 4.0));
            let (times_ns, values) = readings.map(quarter).unzip();
            let name = format!("connection {number}");
            run.series.push(SampleSeries { name, stream: Some(number), times_ns, values, ..whole.clone() });
        }
    }
    run
}

/// Too much other traffic, and a far end without linerate.
pub(crate) fn load_ungraded() -> RunDocument {
    let reason = "the far end is an iperf3 server, which reflects no probes";
    let mut document = document(1.0);
    document.peer = PeerKind::Iperf3;
    document.grade = None;
    document.ungraded_because = Some("38 % of the traffic of the interface was not this measurement's".to_owned());
    document.responsiveness = None;
    document.queues = vec![QueueFinding {
        direction: Direction::Down,
        location: QueueHost::Unknown,
        added_ns: None,
        one_way_confirms: None,
        evidence: "no hop answered while it was loaded".to_owned(),
        hops: Vec::new(),
    }];
    document.unknown = vec![UnknownValue { key: "queues".to_owned(), reason: reason.to_owned() }];
    for class in document.phases.iter_mut().flat_map(|phase| &mut phase.classes) {
        if class.class != LatencyClass::Icmp {
            *class = ProbeClass {
                class: class.class,
                sent: None,
                lost: None,
                lost_up: None,
                lost_down: None,
                rtt: None,
                percentiles: None,
                cdf_ns: Vec::new(),
                up: None,
                down: None,
                uplift_median_ns: None,
                uplift_p95_ns: None,
                ipdv_mean_ns: None,
            };
        }
    }
    let verdict = "Not graded: other traffic made up 38 % of the traffic of the interface.";
    let mut run = run(RunKind::Load, 40, &["load", "fra.example.net"], verdict, RunResult::Load(Box::new(document)));
    run.figures = vec![unknown_figure("added_up", "Added delay up", FigureUnit::Nanoseconds, reason)];
    run.environment = linerate_documents::run::RunEnvironment::default();
    run
}
