//! Figures of latency under load, with their confidence intervals.

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_analysis::statistics::{BlockSample, BootstrapSettings, DEFAULT_BLOCK, SampleStatistic};
use linerate_documents::run::{ChartPanel, FigureUnit, ImprovementDirection, RunFigure, SampleSeries};
use linerate_model::direction::Direction;
use linerate_model::load::{LoadDocument, LoadPhase, PhaseKind, ProbeClass};
use linerate_model::traffic_profile::{ProfileFigures, ProfileResult, TrafficProfile};
use linerate_report::presentation::Quantity;
use linerate_report::sentence::load::{best_class, load_label};
use linerate_units::{MonotonicTime, Ratio};

/// Seed of the bootstrap; the same run gives the same intervals.
const BOOTSTRAP_SEED: u64 = 6349;

const PHASES: [PhaseKind; 4] = [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];

/// Computes all figures.
pub(super) fn all_figures(document: &LoadDocument, series: &[SampleSeries]) -> Vec<RunFigure> {
    let mut figures: Vec<RunFigure> = PHASES.into_iter().map(|kind| round_trip(document, series, kind)).collect();
    figures.extend(PHASES[1..].iter().map(|kind| added_delay(document, series, *kind)));
    for (kind, direction) in [(PhaseKind::Down, Direction::Down), (PhaseKind::Up, Direction::Up)] {
        figures.push(goodput(document, series, kind, direction));
    }
    figures.extend(requests(document, series));
    figures.extend(responsiveness(document));
    figures.extend(document.profiles.iter().map(profile));
    figures
}

fn class_in(phase: &LoadPhase, class: LatencyClass) -> Option<&ProbeClass> {
    phase.classes.iter().find(|found| found.class == class)
}

fn phase(document: &LoadDocument, kind: PhaseKind) -> Option<&LoadPhase> {
    document.phases.iter().find(|phase| phase.kind == kind && phase.stable_ns.is_some())
}

/// Round trips of a class in the stable part of a phase.
fn class_samples(series: &[SampleSeries], class: LatencyClass, phase: &LoadPhase) -> Vec<(MonotonicTime, f64)> {
    let is_it = |series: &&SampleSeries| match class {
        // The kernel's round trips are recorded per connection.
        LatencyClass::TcpInfo => series.panel == ChartPanel::Rtt,
        _ => series.panel == ChartPanel::Latency && series.name == class.title(),
    };
    series.iter().filter(is_it).flat_map(|series| within(series, phase)).collect()
}

fn within(series: &SampleSeries, phase: &LoadPhase) -> Vec<(MonotonicTime, f64)> {
    let window = phase.stable_ns.unwrap_or(phase.end_ns)..phase.end_ns;
    let points = series.times_ns.iter().zip(&series.values);
    points
        .filter(|(time, _)| window.contains(time))
        .filter_map(|(time, value)| Some((MonotonicTime::from_nanos(*time), (*value)?)))
        .collect()
}

/// Sets the value and interval of a statistic of correlated samples.
fn estimate(figure: &mut RunFigure, samples: &[(MonotonicTime, f64)], statistic: SampleStatistic) {
    let Some(estimate) =
        BlockSample::timed(samples, DEFAULT_BLOCK).estimate(statistic, &BootstrapSettings::with_seed(BOOTSTRAP_SEED))
    else {
        return;
    };
    figure.value = Some(estimate.value);
    figure.count = Some(samples.len() as u64);
    if let Some(interval) = estimate.interval {
        (figure.low, figure.high) = (Some(interval.low), Some(interval.high));
    }
}

fn missing(document: &LoadDocument) -> String {
    document.ungraded_because.clone().unwrap_or_else(|| "this phase was not measured".to_owned())
}

fn round_trip(document: &LoadDocument, series: &[SampleSeries], kind: PhaseKind) -> RunFigure {
    let (name, title) = (kind.name(), format!("Round trip {}", load_label(kind)));
    let mut figure =
        RunFigure::new(format!("rtt_{name}_median"), title, FigureUnit::Nanoseconds, ImprovementDirection::Lower);
    if let (Some(class), Some(phase)) = (best_class(document), phase(document, kind)) {
        estimate(&mut figure, &class_samples(series, class, phase), SampleStatistic::Median);
        figure.note = Some(format!("median, from {}", class.title()));
    }
    if figure.value.is_none() {
        figure.note = Some(missing(document));
    }
    figure
}

/// Round trips of requests, of those that were made.
fn requests(document: &LoadDocument, series: &[SampleSeries]) -> Vec<RunFigure> {
    let classes = [(LatencyClass::TlsRequest, "tls_request"), (LatencyClass::QuicRequest, "quic_request")];
    let of = |(class, key): (LatencyClass, &str), kind: PhaseKind| {
        let phase = phase(document, kind).filter(|phase| class_in(phase, class).is_some())?;
        let samples = class_samples(series, class, phase);
        let figure = |name: &str, statistic| {
            let (key, title) =
                (format!("{key}_{}_{name}", kind.name()), format!("{} {}, {name}", class.title(), load_label(kind)));
            let mut figure = RunFigure::new(key, title, FigureUnit::Nanoseconds, ImprovementDirection::Lower);
            estimate(&mut figure, &samples, statistic);
            figure.note = Some("responses on an open connection".to_owned());
            figure
        };
        let p95 = SampleStatistic::Percentile(Ratio::new(0.95)?);
        Some([figure("median", SampleStatistic::Median), figure("p95", p95)])
    };
    classes.into_iter().flat_map(|class| PHASES.into_iter().filter_map(move |kind| of(class, kind)).flatten()).collect()
}

/// Delay added by the load: the worse of the classes that applications experience.
fn added_delay(document: &LoadDocument, series: &[SampleSeries], kind: PhaseKind) -> RunFigure {
    let (name, title) = (kind.name(), format!("Added {}", load_label(kind)));
    let mut figure =
        RunFigure::new(format!("added_{name}_p95"), title, FigureUnit::Nanoseconds, ImprovementDirection::Lower);
    let idle = phase(document, PhaseKind::Idle);
    let worst = phase(document, kind).and_then(|phase| {
        let felt = [LatencyClass::UdpBestEffort, LatencyClass::TcpInfo];
        let of = |class| class_in(phase, class)?.uplift_p95_ns.map(|uplift| (uplift, class));
        let worst =
            felt.into_iter().filter_map(of).max_by_key(|(uplift, _)| *uplift).or_else(|| of(LatencyClass::Icmp))?;
        Some((phase, worst.1))
    });
    if let (Some((phase, class)), Some(idle)) = (worst, idle) {
        let baseline = class_in(idle, class).and_then(|class| class.rtt.as_ref()).map(|rtt| rtt.median);
        let baseline = baseline.unwrap_or_default().as_secs_f64() * 1e9;
        let above: Vec<(MonotonicTime, f64)> =
            class_samples(series, class, phase).into_iter().map(|(time, value)| (time, value - baseline)).collect();
        if let Some(share) = Ratio::new(0.95) {
            estimate(&mut figure, &above, SampleStatistic::Percentile(share));
        }
        figure.note = Some(format!("95th percentile less the idle median, from {}", class.title()));
    }
    if figure.value.is_none() {
        figure.note = Some(missing(document));
    }
    figure
}

fn goodput(document: &LoadDocument, series: &[SampleSeries], kind: PhaseKind, direction: Direction) -> RunFigure {
    let name = kind.name();
    let mut figure = RunFigure::new(
        format!("goodput_{name}"),
        format!("Goodput {name}"),
        FigureUnit::BitsPerSecond,
        ImprovementDirection::Higher,
    );
    let Some(phase) = phase(document, kind) else {
        figure.note = Some(missing(document));
        return figure;
    };
    let of =
        series.iter().filter(|series| series.panel == ChartPanel::Throughput && series.direction == Some(direction));
    // Samples of all connections in each block of time.
    let mut blocks = std::collections::BTreeMap::<u64, (f64, Vec<u64>)>::new();
    for series in of {
        for (time, value) in within(series, phase) {
            let block = blocks.entry(time.as_nanos() / 1_000_000_000).or_default();
            block.0 += value;
            block.1.push(time.as_nanos());
        }
    }
    // Over HTTP/2 the connections grow in number, and their sum is one series.
    let connections = if document.http.is_some() { 1 } else { document.connections };
    let connections = f64::from(u32::try_from(connections).unwrap_or(u32::MAX));
    let whole: Vec<(MonotonicTime, f64)> = blocks
        .into_iter()
        .filter_map(|(second, (sum, times))| {
            let count = f64::from(u32::try_from(times.len()).ok()?);
            Some((MonotonicTime::from_nanos(second * 1_000_000_000), sum / count * connections))
        })
        .collect();
    estimate(&mut figure, &whole, SampleStatistic::Mean);
    figure.value = match kind {
        PhaseKind::Up => phase.goodput_up_bits_per_second,
        _ => phase.goodput_down_bits_per_second,
    };
    if figure.value.is_none() {
        (figure.low, figure.high, figure.count) = (None, None, None);
        figure.note = Some("the rate of the connections is unknown".to_owned());
    }
    figure
}

/// Figure of a profile in its worst phase.
fn profile(result: &ProfileResult) -> RunFigure {
    let (name, title, unit, better) = match result.profile {
        TrafficProfile::Voice => ("voice_mos", "Voice, MOS", FigureUnit::One, ImprovementDirection::Higher),
        TrafficProfile::Game => {
            ("game_missed_share", "Game, reactions too late", FigureUnit::Share, ImprovementDirection::Lower)
        }
        TrafficProfile::VideoCall => {
            ("video_call_frozen_share", "Video call, frozen", FigureUnit::Share, ImprovementDirection::Lower)
        }
        TrafficProfile::Streaming => {
            ("streaming_stalled_share", "Streaming, stalled", FigureUnit::Share, ImprovementDirection::Lower)
        }
        TrafficProfile::Backup => {
            ("backup_added_p95", "Backup, adds", FigureUnit::Nanoseconds, ImprovementDirection::Lower)
        }
    };
    let mut figure = RunFigure::new(name, title, unit, better);
    let worst = result.worst();
    figure.value = worst.and_then(|phase| phase.figures.as_ref()).and_then(profile_value);
    figure.note = Some(match worst {
        Some(phase) => format!("{}, {}", load_label(phase.kind), phase.perception),
        None => result.phases.first().map_or_else(|| "not measured".to_owned(), |phase| phase.perception.clone()),
    });
    figure
}

fn profile_value(figures: &ProfileFigures) -> Option<f64> {
    Some(match figures {
        ProfileFigures::Voice(voice) => voice.mos,
        ProfileFigures::Game(game) => game.missed_share,
        ProfileFigures::VideoCall(video) => video.up.frozen_share.max(video.down.frozen_share),
        ProfileFigures::Streaming(stream) => stream.stalled_share,
        ProfileFigures::Backup(backup) => Quantity::signed_nanoseconds(backup.added_p95_ns?).value,
    })
}

fn responsiveness(document: &LoadDocument) -> [RunFigure; 3] {
    let known = document.responsiveness.as_ref();
    [
        ("down", known.and_then(|known| known.down)),
        ("up", known.and_then(|known| known.up)),
        ("both", known.and_then(|known| known.both)),
    ]
    .map(|(name, value)| {
        let title = format!("Responsiveness {name}");
        let mut figure =
            RunFigure::new(format!("rpm_{name}"), title, FigureUnit::RoundTripsPerMinute, ImprovementDirection::Higher);
        figure.value = value;
        let method = known
            .filter(|_| value.is_some())
            .map(|known| format!("{}, confidence {}", known.method.title(), known.confidence));
        figure.note =
            Some(method.unwrap_or_else(|| "no new connections or messages were measured in this phase".to_owned()));
        figure
    })
}
