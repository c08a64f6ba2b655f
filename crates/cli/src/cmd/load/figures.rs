//! The numbers that stand for latency under load, with their intervals.

use std::time::Duration;

use linerate_model::schema::load::{ClassName, LoadDocument, Phase, PhaseKind, ProbeClass};
use linerate_model::schema::run::{Better, Figure, Panel, Series, Unit};
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::{BLOCK, Bootstrap, Sample, Statistic};
use linerate_units::{MonotonicTime, Ratio};

use super::progress::while_loaded;

/// The same run gives the same intervals.
const SEED: u64 = 6349;

const PHASES: [PhaseKind; 4] = [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];

/// All of them.
pub(super) fn of(document: &LoadDocument, series: &[Series]) -> Vec<Figure> {
    let mut figures: Vec<Figure> = PHASES.into_iter().map(|kind| round_trip(document, series, kind)).collect();
    figures.extend(PHASES[1..].iter().map(|kind| added(document, series, *kind)));
    for (kind, direction) in [(PhaseKind::Down, Direction::Down), (PhaseKind::Up, Direction::Up)] {
        figures.push(goodput(document, series, kind, direction));
    }
    figures.extend(responsiveness(document));
    figures
}

/// The class that stands for the path: one that applications feel, else what there is.
pub(super) fn best_class(document: &LoadDocument) -> Option<ClassName> {
    [ClassName::UdpBestEffort, ClassName::TcpApplication, ClassName::Icmp]
        .into_iter()
        .find(|class| document.phases.iter().any(|phase| found(phase, *class).is_some_and(|found| found.rtt.is_some())))
}

fn found(phase: &Phase, class: ClassName) -> Option<&ProbeClass> {
    phase.classes.iter().find(|found| found.class == class)
}

fn phase(document: &LoadDocument, kind: PhaseKind) -> Option<&Phase> {
    document.phases.iter().find(|phase| phase.kind == kind && phase.stable_ns.is_some())
}

/// The round trips of a class while a phase counted.
fn readings(series: &[Series], class: ClassName, phase: &Phase) -> Vec<(MonotonicTime, f64)> {
    let is_it = |series: &&Series| match class {
        // The kernel's are kept for each connection.
        ClassName::TcpInfo => series.panel == Panel::Rtt,
        _ => series.panel == Panel::Latency && series.name == class.title(),
    };
    series.iter().filter(is_it).flat_map(|series| within(series, phase)).collect()
}

fn within(series: &Series, phase: &Phase) -> Vec<(MonotonicTime, f64)> {
    let window = phase.stable_ns.unwrap_or(phase.end_ns)..phase.end_ns;
    let points = series.times_ns.iter().zip(&series.values);
    points
        .filter(|(time, _)| window.contains(time))
        .filter_map(|(time, value)| Some((MonotonicTime::from_nanos(*time), (*value)?)))
        .collect()
}

/// Value and interval of a statistic of readings that follow each other closely.
fn estimate(figure: &mut Figure, readings: &[(MonotonicTime, f64)], statistic: Statistic) {
    let Some(estimate) = Sample::timed(readings, BLOCK).estimate(statistic, &Bootstrap::with_seed(SEED)) else {
        return;
    };
    figure.value = Some(estimate.value);
    figure.count = Some(readings.len() as u64);
    if let Some(interval) = estimate.interval {
        (figure.low, figure.high) = (Some(interval.low), Some(interval.high));
    }
}

fn missing(document: &LoadDocument) -> String {
    document.ungraded_because.clone().unwrap_or_else(|| "that phase was not measured".to_owned())
}

fn round_trip(document: &LoadDocument, series: &[Series], kind: PhaseKind) -> Figure {
    let (name, title) = (kind.name(), format!("Round trip {}", while_loaded(kind)));
    let mut figure = Figure::new(format!("rtt_{name}_median"), title, Unit::Nanoseconds, Better::Lower);
    if let (Some(class), Some(phase)) = (best_class(document), phase(document, kind)) {
        estimate(&mut figure, &readings(series, class, phase), Statistic::Median);
        figure.note = Some(format!("median, by {}", class.title()));
    }
    if figure.value.is_none() {
        figure.note = Some(missing(document));
    }
    figure
}

/// What the load adds: the worse of the classes that applications feel.
fn added(document: &LoadDocument, series: &[Series], kind: PhaseKind) -> Figure {
    let (name, title) = (kind.name(), format!("Added {}", while_loaded(kind)));
    let mut figure = Figure::new(format!("added_{name}_p95"), title, Unit::Nanoseconds, Better::Lower);
    let idle = phase(document, PhaseKind::Idle);
    let worst = phase(document, kind).and_then(|phase| {
        let felt = [ClassName::UdpBestEffort, ClassName::TcpInfo];
        let of = |class| found(phase, class)?.uplift_p95_ns.map(|uplift| (uplift, class));
        let worst =
            felt.into_iter().filter_map(of).max_by_key(|(uplift, _)| *uplift).or_else(|| of(ClassName::Icmp))?;
        Some((phase, worst.1))
    });
    if let (Some((phase, class)), Some(idle)) = (worst, idle) {
        let rest = found(idle, class).and_then(|class| class.rtt.as_ref()).map(|rtt| rtt.median_ns);
        let rest = Duration::from_nanos(rest.unwrap_or(0)).as_secs_f64() * 1e9;
        let above: Vec<(MonotonicTime, f64)> =
            readings(series, class, phase).into_iter().map(|(time, value)| (time, value - rest)).collect();
        if let Some(share) = Ratio::new(0.95) {
            estimate(&mut figure, &above, Statistic::Percentile(share));
        }
        figure.note = Some(format!("95th percentile less the idle median, by {}", class.title()));
    }
    if figure.value.is_none() {
        figure.note = Some(missing(document));
    }
    figure
}

fn goodput(document: &LoadDocument, series: &[Series], kind: PhaseKind, direction: Direction) -> Figure {
    let name = kind.name();
    let mut figure =
        Figure::new(format!("goodput_{name}"), format!("Goodput {name}"), Unit::BitsPerSecond, Better::Higher);
    let Some(phase) = phase(document, kind) else {
        figure.note = Some(missing(document));
        return figure;
    };
    let of = series.iter().filter(|series| series.panel == Panel::Throughput && series.direction == Some(direction));
    // The connections' readings in each block of time, together.
    let mut blocks = std::collections::BTreeMap::<u64, (f64, Vec<u64>)>::new();
    for series in of {
        for (time, value) in within(series, phase) {
            let block = blocks.entry(time.as_nanos() / 1_000_000_000).or_default();
            block.0 += value;
            block.1.push(time.as_nanos());
        }
    }
    let connections = f64::from(u32::try_from(document.connections).unwrap_or(u32::MAX));
    let whole: Vec<(MonotonicTime, f64)> = blocks
        .into_iter()
        .filter_map(|(second, (sum, times))| {
            let count = f64::from(u32::try_from(times.len()).ok()?);
            Some((MonotonicTime::from_nanos(second * 1_000_000_000), sum / count * connections))
        })
        .collect();
    estimate(&mut figure, &whole, Statistic::Mean);
    figure.value = match kind {
        PhaseKind::Up => phase.goodput_up_bits_per_second,
        _ => phase.goodput_down_bits_per_second,
    };
    if figure.value.is_none() {
        (figure.low, figure.high, figure.count) = (None, None, None);
        figure.note = Some("what the connections carried is not known".to_owned());
    }
    figure
}

fn responsiveness(document: &LoadDocument) -> [Figure; 3] {
    let known = document.responsiveness.as_ref();
    [
        ("down", known.and_then(|known| known.down)),
        ("up", known.and_then(|known| known.up)),
        ("both", known.and_then(|known| known.both)),
    ]
    .map(|(name, value)| {
        let title = format!("Responsiveness {name}");
        let mut figure = Figure::new(format!("rpm_{name}"), title, Unit::RoundTripsPerMinute, Better::Higher);
        figure.value = value;
        let method =
            known.filter(|_| value.is_some()).map(|known| format!("{}, confidence {}", known.method, known.confidence));
        figure.note =
            Some(method.unwrap_or_else(|| "no new connections or messages were measured in that phase".to_owned()));
        figure
    })
}
