//! Result of a session: the server's own counts, and the browser's round trips, marked as such.

#[cfg(test)]
mod tests;

use core::time::Duration;

use linerate_analysis::latency_under_load::{LatencyGrade, LatencyUplift};
use linerate_analysis::statistics::SampleSummary;
use linerate_documents::run::{
    ChartPanel, FigureUnit, ImprovementDirection, PhaseSpan, RunDocument, RunFigure, SampleSeries,
};
use linerate_documents::web::{SCHEMA, WebDocument, WebGrade, WebPhase};
use linerate_model::diagnosis::{Cause, CauseLocation, Confidence, DiagnosisVerdict};
use linerate_model::direction::Direction;
use linerate_model::flow::FlowLimit;
use linerate_model::limit::LimitShares;
use linerate_model::load::PhaseKind;
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_model::summary::DurationDistribution;
use linerate_model::tcp_info::TcpInfo;
use linerate_report::sentence;
use linerate_rules::diagnosis;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, MonotonicTime, Port, Ratio};

use crate::claims::BrowserClaims;
use crate::sampling::{PhaseRecord, SessionRecord, known_sum};
use crate::session::WebSession;

/// Fewest round trips of a phase for a grade.
const MIN_ROUND_TRIPS: usize = 10;

/// Share of the time from which pauses for the rate of the server are the limit.
const MIN_PAUSED_SHARE: f64 = 0.2;

/// Facts of the server for a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerFacts {
    pub(crate) port: Port,
    pub(crate) rate_limit: Option<BitRate>,
}

/// Builds the run of a session.
pub(crate) fn run_of(
    session: &WebSession,
    record: &SessionRecord,
    claims: &BrowserClaims,
    facts: ServerFacts,
    now: MonotonicTime,
) -> RunDocument {
    let document = document(session, record, claims, facts, now);
    let verdict = sentence::web::sentence(&document);
    let (figures, series) = (figures(&document), series(record, claims));
    let span = |phase: &WebPhase| PhaseSpan {
        name: phase.kind.name().to_owned(),
        start_ns: phase.start_ns,
        end_ns: phase.end_ns,
    };
    let phases = document.phases.iter().map(span).collect();
    RunDocument { verdict, figures, series, phases, ..RunDocument::from(document) }
}

fn document(
    session: &WebSession,
    record: &SessionRecord,
    claims: &BrowserClaims,
    facts: ServerFacts,
    now: MonotonicTime,
) -> WebDocument {
    let ended = claims.error().or_else(|| session.ended());
    let mut document = WebDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: session.client.to_canonical().to_string(),
        port: facts.port.get(),
        started_at_unix_ns: nanoseconds(session.started_at.since_unix_epoch()),
        duration_ns: nanoseconds(now.since(session.started)),
        termination: ended.map_or(TestTermination::Complete, |message| TestTermination::Failed { message }),
        browser: session.browser.clone(),
        congestion_control: record.phases.iter().find_map(|phase| phase.congestion_control.clone()),
        rate_limit_bits_per_second: facts.rate_limit.map(BitRate::bits_per_second),
        phases: Vec::new(),
        grade: None,
        ungraded_because: None,
        unknown: Vec::new(),
        notes: vec![
            "Bytes, rates and connections are the server's own counts; round trips marked browser are what the browser \
             reports, and nothing verifies them."
                .to_owned(),
        ],
    };
    document.phases.extend(idle(record, claims, session));
    for phase in &record.phases {
        let (phase, unknown) = loaded(session, record, phase, claims);
        document.phases.push(phase);
        document.unknown.extend(unknown);
    }
    if let Some(limit) = facts.rate_limit {
        document.notes.push(format!(
            "The server limits all its traffic to {}: a rate near it may be that limit.",
            linerate_units::display::rate(limit)
        ));
    }
    grade(&mut document, claims);
    document
}

fn summary(times: &[(Duration, Duration)]) -> Option<SampleSummary<Duration>> {
    let times: Vec<Duration> = times.iter().map(|(_, time)| *time).collect();
    SampleSummary::of(&times)
}

fn empty(kind: PhaseKind) -> WebPhase {
    WebPhase {
        kind,
        start_ns: 0,
        end_ns: 0,
        connections: 0,
        goodput_bits_per_second: None,
        bytes: None,
        browser_rtt: None,
        browser_added_median_ns: None,
        browser_added_p95_ns: None,
        kernel_rtt: None,
        kernel_rtt_min_ns: None,
        congestion_window_bytes: None,
        retransmitted_segments: None,
        retransmitted_share: None,
        limits: None,
        verdicts: Vec::new(),
    }
}

fn idle(record: &SessionRecord, claims: &BrowserClaims, session: &WebSession) -> Option<WebPhase> {
    let times = claims.round_trips(PhaseKind::Idle);
    let summary = summary(&times)?;
    let first_load = record.phases.iter().map(|phase| phase.started.since(session.started)).min();
    let last = times.last().map(|(at, time)| *at + *time).unwrap_or_default();
    Some(WebPhase {
        end_ns: nanoseconds(first_load.map_or(last, |load| load.min(last))),
        browser_rtt: Some(DurationDistribution::from(&summary)),
        ..empty(PhaseKind::Idle)
    })
}

const fn kind_of(direction: Direction) -> PhaseKind {
    match direction {
        Direction::Down => PhaseKind::Down,
        Direction::Up => PhaseKind::Up,
    }
}

fn loaded(
    session: &WebSession,
    record: &SessionRecord,
    phase: &PhaseRecord,
    claims: &BrowserClaims,
) -> (WebPhase, Vec<UnknownValue>) {
    let kind = kind_of(phase.direction);
    let (rest, load) = (summary(&claims.round_trips(PhaseKind::Idle)), summary(&claims.round_trips(kind)));
    let uplift = rest.as_ref().zip(load.as_ref()).map(|(rest, load)| LatencyUplift::of(rest, load));
    let since = |at: MonotonicTime| nanoseconds(at.since(session.started));
    let sends = phase.direction == Direction::Down;
    let observation = phase.observation();
    let paused = phase.paused_share();
    let verdicts = if paused.get() >= MIN_PAUSED_SHARE {
        vec![rate_limit_verdict(paused)]
    } else if observation.connections.is_empty() {
        Vec::new()
    } else {
        let verdicts = diagnosis::diagnose(&observation).verdicts;
        verdicts.into_iter().map(|verdict| of_receiver(verdict, phase)).collect()
    };
    let mut round_trips = if sends { phase.round_trips() } else { Vec::new() };
    let totals: Vec<TcpInfo> = phase.ends().map(|(base, latest)| latest.totals_since(base)).collect();
    let sum = |of: fn(&TcpInfo) -> Option<u64>| known_sum(totals.iter().map(of)).filter(|_| sends);
    let sent = sum(|info| info.bytes_sent.map(linerate_units::ByteCount::get));
    let retransmitted = sum(|info| info.bytes_retransmitted.map(linerate_units::ByteCount::get));
    let shares: Vec<LimitShares> =
        phase.ends().filter_map(|(base, latest)| LimitShares::between(base, latest, phase.duration())).collect();
    let web = WebPhase {
        start_ns: since(phase.started),
        end_ns: since(phase.ended),
        connections: phase.connections(),
        goodput_bits_per_second: record.goodput(phase).map(BitRate::bits_per_second),
        bytes: Some(phase.bytes().get()),
        browser_rtt: load.as_ref().map(DurationDistribution::from),
        browser_added_median_ns: uplift.map(|uplift| uplift.median.as_nanos()),
        browser_added_p95_ns: uplift.map(|uplift| uplift.p95.as_nanos()),
        kernel_rtt: DurationDistribution::of(&mut round_trips),
        kernel_rtt_min_ns: totals.iter().filter_map(|info| info.min_rtt).min().map(nanoseconds),
        congestion_window_bytes: median_window(record, phase.direction).filter(|_| sends),
        retransmitted_segments: sum(|info| info.retransmits.map(linerate_units::SegmentCount::get)),
        retransmitted_share: retransmitted.zip(sent).and_then(|(part, all)| share(part, all)),
        limits: LimitShares::mean(&shares).filter(|_| sends),
        verdicts,
        ..empty(kind)
    };
    let unknown = unknown(&web, sends);
    (web, unknown)
}

/// Verdict of transfers that the rate of the server held back.
fn rate_limit_verdict(paused: Ratio) -> DiagnosisVerdict {
    let cause = Cause::ApplicationPacing;
    let share = linerate_units::display::percent(paused);
    DiagnosisVerdict {
        cause,
        confidence: Confidence::High,
        text: format!(
            "The server's limit for all its traffic (--server-bitrate-limit): it held back for {share} of the time."
        ),
        share: Some(paused),
        without: None,
        together_with: None,
        evidence: Vec::new(),
        advice: Vec::new(),
        tune: None,
    }
}

/// A verdict of unknown location with what the server knows as the receiver.
fn of_receiver(verdict: DiagnosisVerdict, phase: &PhaseRecord) -> DiagnosisVerdict {
    if phase.direction == Direction::Down || verdict.cause.location() != CauseLocation::Unknown {
        return verdict;
    }
    let text = match phase.receiver_limit() {
        Some(FlowLimit::OwnWindow { window }) => format!(
            "The server's receive window of {} is used up in every round trip: a larger net.ipv4.tcp_rmem on the server \
             lets this browser send faster.",
            linerate_units::display::size(window)
        ),
        Some(FlowLimit::SlowReader { .. }) => "The server reads too slowly: its processors are busy.".to_owned(),
        Some(FlowLimit::FarEnd) => {
            "The path or the browser's host is the limit: the server's window and its program are not.".to_owned()
        }
        _ => return verdict,
    };
    DiagnosisVerdict { text, advice: Vec::new(), ..verdict }
}

fn share(part: u64, all: u64) -> Option<f64> {
    let number = |bytes: u64| linerate_units::ByteCount::new(bytes).as_f64();
    (all > 0).then(|| number(part) / number(all))
}

/// Reasons of the figures that only a sender has.
fn unknown(phase: &WebPhase, sends: bool) -> Vec<UnknownValue> {
    let reason = |key: &str, reason: &str| UnknownValue {
        key: format!("phases.{}.{key}", phase.kind.name()),
        reason: reason.to_owned(),
    };
    let mut unknown = Vec::new();
    if phase.goodput_bits_per_second.is_none() {
        unknown.push(reason("goodput_bits_per_second", "the transfer was too short"));
    }
    if !sends {
        for key in ["kernel_rtt", "congestion_window_bytes", "retransmitted_segments", "retransmitted_share"] {
            unknown.push(reason(key, "only the sender knows it, which is the browser's host here"));
        }
    }
    unknown
}

fn median_window(record: &SessionRecord, direction: Direction) -> Option<u64> {
    let points = record.points_of(direction);
    let mut windows: Vec<u64> =
        points.iter().filter_map(|point| point.congestion_window.map(linerate_units::ByteCount::get)).collect();
    windows.sort_unstable();
    windows.get(windows.len() / 2).copied()
}

fn grade(document: &mut WebDocument, claims: &BrowserClaims) {
    if claims.round_trips(PhaseKind::Idle).len() < MIN_ROUND_TRIPS {
        document.ungraded_because = Some("the browser reported too few round trips of the idle path".to_owned());
        return;
    }
    let added = |kind: PhaseKind| {
        let enough = claims.round_trips(kind).len() >= MIN_ROUND_TRIPS;
        let nanos = document.phase(kind)?.browser_added_p95_ns.filter(|_| enough)?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
    };
    let (down, up) = (added(PhaseKind::Down), added(PhaseKind::Up));
    let Some(letter) = LatencyGrade::of_worst(down.into_iter().chain(up)) else {
        document.ungraded_because = Some("the browser reported too few round trips under load".to_owned());
        return;
    };
    let direction = if down >= up { Direction::Down } else { Direction::Up };
    let thresholds = LatencyGrade::TABLE.iter().filter_map(|(letter, below)| Some((*letter, nanoseconds((*below)?))));
    document.grade = Some(WebGrade {
        letter,
        added_ns: nanoseconds(down.max(up).unwrap_or_default()),
        direction,
        is_on_path: document.phase(kind_of(direction)).and_then(|phase| is_on_path(phase, down.max(up)?)),
        up: up.map(LatencyGrade::of),
        down: down.map(LatencyGrade::of),
        thresholds: thresholds.collect(),
    });
}

/// True when the loaded connections waited for a good part of the delay that was added.
fn is_on_path(phase: &WebPhase, added: Duration) -> Option<bool> {
    let waited = phase.kernel_rtt?.p95.saturating_sub(Duration::from_nanos(phase.kernel_rtt_min_ns?));
    Some(waited * 4 >= added)
}

fn figures(document: &WebDocument) -> Vec<RunFigure> {
    use FigureUnit::{BitsPerSecond, Nanoseconds, Share};
    use ImprovementDirection::{Higher, Lower};
    let figure = |name: &str, title: &str, unit, better, value: Option<f64>, count: Option<u64>, note: Option<&str>| {
        RunFigure { value, count, note: note.map(str::to_owned), ..RunFigure::new(name, title, unit, better) }
    };
    let browser = Some("as the browser reports it");
    let mut figures = Vec::new();
    let idle = document.phase(PhaseKind::Idle).and_then(|phase| phase.browser_rtt);
    for (kind, name) in [(PhaseKind::Down, "down"), (PhaseKind::Up, "up")] {
        let Some(phase) = document.phase(kind) else { continue };
        let count = phase.browser_rtt.map(|rtt| rtt.count);
        let goodput = phase.goodput_bits_per_second;
        let title = format!("Goodput {name}");
        let short = goodput.is_none().then_some("the transfer was too short");
        figures.push(figure(&format!("goodput_{name}"), &title, BitsPerSecond, Higher, goodput, None, short));
        let added = phase.browser_added_p95_ns.map(signed);
        let title = format!("Delay added by load {name}, 95th percentile");
        figures.push(figure(&format!("added_{name}_p95"), &title, Nanoseconds, Lower, added, count, browser));
        if kind == PhaseKind::Down {
            let share = phase.retransmitted_share;
            let note = share.is_none().then_some("the kernel does not report it");
            figures.push(figure("retransmitted_down", "Retransmitted down", Share, Lower, share, None, note));
        }
    }
    let (median, count) = (idle.map(|rtt| number(rtt.median)), idle.map(|rtt| rtt.count));
    figures.push(figure("rtt_idle_median", "Round trip idle, median", Nanoseconds, Lower, median, count, browser));
    figures
}

fn number(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a delay in nanoseconds is far below 2^53")]
const fn signed(nanoseconds: i64) -> f64 {
    nanoseconds as f64
}

fn series(record: &SessionRecord, claims: &BrowserClaims) -> Vec<SampleSeries> {
    let mut all = Vec::new();
    for direction in [Direction::Down, Direction::Up] {
        let points = record.points_of(direction);
        let mut push = |panel, unit, values: Vec<Option<f64>>| {
            if values.iter().any(Option::is_some) {
                let times_ns = points.iter().map(|point| nanoseconds(point.at)).collect();
                let name = "all connections".to_owned();
                all.push(SampleSeries {
                    panel,
                    name,
                    direction: Some(direction),
                    stream: None,
                    unit,
                    times_ns,
                    values,
                });
            }
        };
        let rates = (0..points.len()).map(|index| {
            // A longer base than one sample: a browser reads in bursts.
            let (before, now) = (points.get(index.checked_sub(4)?)?, points.get(index)?);
            let rate = (now.bytes - before.bytes).rate_over(now.at.saturating_sub(before.at));
            Some(rate.bits_per_second())
        });
        push(ChartPanel::Throughput, FigureUnit::BitsPerSecond, rates.collect());
        if direction == Direction::Down {
            let rtt = points.iter().map(|point| point.rtt.map(number)).collect();
            push(ChartPanel::Rtt, FigureUnit::Nanoseconds, rtt);
            let window = points.iter().map(|point| Some(point.congestion_window?.as_f64())).collect();
            push(ChartPanel::CongestionWindow, FigureUnit::Bytes, window);
        }
    }
    let kinds = [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up];
    let mut times: Vec<(Duration, Duration)> = kinds.iter().flat_map(|kind| claims.round_trips(*kind)).collect();
    times.sort_unstable();
    if !times.is_empty() {
        all.push(SampleSeries {
            panel: ChartPanel::Latency,
            name: "HTTP, by the browser".to_owned(),
            direction: None,
            stream: None,
            unit: FigureUnit::Nanoseconds,
            times_ns: times.iter().map(|(at, _)| nanoseconds(*at)).collect(),
            values: times.iter().map(|(_, time)| Some(number(*time))).collect(),
        });
    }
    all
}
