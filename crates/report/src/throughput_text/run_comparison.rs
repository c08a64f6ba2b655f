//! Sentences that compare the runs.

use linerate_documents::throughput::LoadedRtt;
use linerate_model::diagnosis;
use linerate_model::direction::Direction;
use linerate_model::tcp_info::TcpInfo;
use linerate_model::throughput::{ThroughputResult, ThroughputRun};
use linerate_units::{Port, Ratio, SegmentCount, StreamCount, display};

use super::style::TextStyle;
use super::verdict::LimitCause;
use crate::escape;

/// Minimum gain at which parallel streams are reported to carry more.
const MIN_PARALLEL_GAIN: f64 = 1.25;

/// Gain below which parallel streams are reported to carry less.
const MIN_EQUAL_GAIN: f64 = 0.9;

/// Minimum factor and increase of the round trip at which a queue is reported.
const MIN_QUEUE_FACTOR: u32 = 2;
const MIN_QUEUE_DELAY: core::time::Duration = core::time::Duration::from_millis(5);

/// The sentences below the runs, the most important one first.
pub(super) fn sentences(result: &ThroughputResult, style: TextStyle) -> Vec<String> {
    let mut sentences = parallel_gain(result, style);
    sentences.extend(queue(result, style));
    sentences.extend(overlap(result));
    sentences.extend(unknown(result));
    sentences
}

/// One run alone and one with several streams, in the same direction, both complete with a rate.
struct StreamComparison<'a> {
    flow: Direction,
    single: &'a ThroughputRun,
    streams: StreamCount,
    gain: Ratio,
}

fn pairs(result: &ThroughputResult) -> Vec<StreamComparison<'_>> {
    let one = StreamCount::new(1);
    let pair = |flow: Direction| {
        let mut runs = result.runs.iter().filter(|run| run.direction == flow);
        let single = runs.clone().find(|run| run.streams == one)?;
        let many = runs.find(|run| run.streams > one)?;
        let gain = (many.rate()?.rate / single.rate()?.rate)?;
        Some(StreamComparison { flow, single, streams: many.streams, gain })
    };
    [Direction::Up, Direction::Down].into_iter().filter_map(pair).collect()
}

fn direction(flow: Direction) -> &'static str {
    match flow {
        Direction::Up => "Up",
        Direction::Down => "Down",
    }
}

fn parallel_gain(result: &ThroughputResult, style: TextStyle) -> Vec<String> {
    let pairs = pairs(result);
    let same = |pair: &StreamComparison<'_>| (MIN_EQUAL_GAIN..MIN_PARALLEL_GAIN).contains(&pair.gain.get());
    if let [up, down] = &pairs[..]
        && same(up)
        && same(down)
        && up.streams == down.streams
    {
        return vec![format!(
            "Up and down, one stream carries as much as {}: parallel streams gain nothing.",
            up.streams
        )];
    }
    pairs.iter().map(|pair| gain_sentence(pair, style)).collect()
}

fn gain_sentence(pair: &StreamComparison<'_>, style: TextStyle) -> String {
    let (direction, streams, gain) = (direction(pair.flow), pair.streams, pair.gain.get());
    if gain >= MIN_PARALLEL_GAIN {
        let carry = format!("{direction}, {streams} streams carry {gain:.1} times as much as one");
        return match diagnosed(pair.single, style) {
            Some(cause) => format!("{carry}. Limit of a single connection: {cause}."),
            None => format!("{carry}: a single connection is limited by {}.", single_cause(pair.single, style)),
        };
    }
    if gain < MIN_EQUAL_GAIN {
        return format!(
            "{direction}, {streams} streams carry less than one ({gain:.2} times): they compete with each other."
        );
    }
    format!("{direction}, one stream carries as much as {streams}: parallel streams gain nothing.")
}

/// Diagnosed limit of a single connection, where it is known.
fn diagnosed(run: &ThroughputRun, style: TextStyle) -> Option<String> {
    let cause = named(run)?;
    let arithmetic =
        if cause == diagnosis::Cause::ReceiveWindow { window_arithmetic(run, style) } else { String::new() };
    Some(format!("{}{arithmetic}", cause.title()))
}

/// Cause that the diagnosis names; `None` where it is unknown.
fn named(run: &ThroughputRun) -> Option<diagnosis::Cause> {
    let cause = run.diagnosis.as_ref()?.main_verdict()?.cause;
    (cause.location() != diagnosis::CauseLocation::Unknown).then_some(cause)
}

/// `linerate diagnose` with the target and direction of the first diagnosed run.
pub(super) fn next_command(result: &ThroughputResult) -> Option<String> {
    let first = result.runs.iter().find(|run| run.diagnosis.is_some())?;
    // A server over ssh has another port in each run.
    let is_usual = result.port == Port::IPERF3 || result.host.starts_with("ssh:");
    let target = match (result.dialed_in, is_usual) {
        (true, true) => "--listen".to_owned(),
        (true, false) => format!("--listen={}", result.port),
        (false, true) => escape::line(&result.host).into_owned(),
        (false, false) => format!("{} -p {}", escape::line(&result.host), result.port),
    };
    let transfer = if first.direction == Direction::Down { " -- -R" } else { "" };
    Some(format!("linerate diagnose {target}{transfer}"))
}

/// Pointer to `linerate diagnose`, which adds the path's capacity and advice.
pub(super) fn diagnose_hint(result: &ThroughputResult) -> Option<String> {
    let diagnosed: Vec<&ThroughputRun> = result.runs.iter().filter(|run| run.diagnosis.is_some()).collect();
    let command = format!("`{}`", next_command(result)?);
    let adds = if diagnosed.iter().any(|run| named(run).is_some()) {
        "also measures the path, advises changes and names the next limit"
    } else {
        "measures the path capacity, and so whether the path is full"
    };
    Some(format!("{command} {adds}."))
}

/// Limit of a single connection, with its numbers where they are known.
fn single_cause(run: &ThroughputRun, style: TextStyle) -> String {
    let Some(limits) = run.limits() else { return "a factor known only to the server's kernel".to_owned() };
    match LimitCause::of(&limits) {
        LimitCause::SenderProcessor => "the sender's CPU".to_owned(),
        LimitCause::ReceiverProcessor => "the receiver's CPU".to_owned(),
        LimitCause::SendBuffer => "its send buffer".to_owned(),
        LimitCause::ReceiveWindow => format!("the receiver's window{}", window_arithmetic(run, style)),
        LimitCause::CongestionWindow => match run.retransmits() {
            Some(count) if count > SegmentCount::ZERO => "losses, which keep its congestion window small".to_owned(),
            _ => "its congestion window".to_owned(),
        },
        LimitCause::NothingToSend => "the sending application".to_owned(),
    }
}

/// ` (6.0 MiB in 117 ms is 430 Mbit/s)`: one window each round trip.
fn window_arithmetic(run: &ThroughputRun, style: TextStyle) -> String {
    let arithmetic = || {
        let info = sender_info(run)?;
        let (window, rtt) = (info.send_window?, info.rtt?);
        let rate = display::rate(window.rate_over(rtt));
        Some(format!(" ({} in {} is {rate})", display::size_binary(window), style.duration(rtt)))
    };
    arithmetic().unwrap_or_default()
}

/// Last `TCP_INFO` sample of the sending socket, of the first stream.
fn sender_info(run: &ThroughputRun) -> Option<&TcpInfo> {
    let tcp = run.report.streams.first()?.tcp.as_ref()?;
    match run.direction {
        Direction::Up => tcp.last_info.as_ref(),
        Direction::Down => tcp.far_info.as_ref(),
    }
}

/// Direction in which load adds most to the round trip, when the increase is large.
fn queue(result: &ThroughputResult, style: TextStyle) -> Option<String> {
    let idle = result.idle_rtt.as_ref()?.median;
    let loaded = |run: &ThroughputRun| run.loaded_rtt().map(|rtt: LoadedRtt| rtt.median);
    let worst = result.runs.iter().filter(|run| loaded(run).is_some()).max_by_key(|run| loaded(run))?;
    let under_load = loaded(worst)?;
    let added = under_load.saturating_sub(idle);
    if under_load < idle * MIN_QUEUE_FACTOR || added < MIN_QUEUE_DELAY {
        return None;
    }
    let queue = display::size_binary(worst.rate()?.rate * added);
    Some(format!(
        "A full {}load raises the round trip from {} to {}: about {queue} are queued on the path.",
        direction(worst.direction).to_lowercase(),
        style.duration(idle),
        style.duration(under_load)
    ))
}

fn overlap(result: &ThroughputResult) -> Option<String> {
    let most = result.runs.iter().filter_map(ThroughputRun::overlapping_tests).max()?;
    match most {
        0 => None,
        1 => Some("1 other test ran on the server meanwhile: the figures disturb each other.".to_owned()),
        _ => Some(format!("{most} other tests ran on the server meanwhile: the figures disturb each other.")),
    }
}

/// Figures that a stock server does not report.
fn unknown(result: &ThroughputResult) -> Option<String> {
    let down = || result.runs.iter().filter(|run| run.direction == Direction::Down && run.rate().is_some());
    let unlimited = down().any(|run| run.limits().is_none() && run.diagnosis.is_none());
    let untimed = down().any(|run| run.loaded_rtt().is_none());
    if result.peer_is_linerate || !(unlimited || untimed) {
        return None;
    }
    let what = match (unlimited, untimed) {
        (true, true) => "the limit and the round-trip time of downloads",
        (true, false) => "the limit of downloads",
        _ => "the round-trip time of downloads",
    };
    Some(format!("A stock iperf3 server does not report {what}; run `linerate serve` there."))
}
