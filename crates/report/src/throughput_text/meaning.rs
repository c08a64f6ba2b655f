//! What the runs say when they are laid side by side.

use linerate_model::diagnosis;
use linerate_model::schema::throughput::LoadedRtt;
use linerate_model::tcp_info::TcpInfo;
use linerate_model::throughput::{Flow, ThroughputResult, ThroughputRun};
use linerate_units::{Port, Ratio, SegmentCount, StreamCount, display};

use super::style::Style;
use super::verdict::Cause;
use crate::escape;

/// From this gain on, parallel streams are said to carry more.
const GAIN: f64 = 1.25;

/// Below this one they are said to carry less.
const LOSS: f64 = 0.9;

/// A queue is mentioned when the round trip grows by this factor and by this time.
const QUEUE_FACTOR: u32 = 2;
const QUEUE_DELAY: core::time::Duration = core::time::Duration::from_millis(5);

/// The sentences below the runs, the most important one first.
pub(super) fn sentences(result: &ThroughputResult, style: Style) -> Vec<String> {
    let mut sentences = parallel_gain(result, style);
    sentences.extend(queue(result, style));
    sentences.extend(overlap(result));
    sentences.extend(unknown(result));
    sentences.extend(further(result));
    sentences
}

/// One run alone and one with several streams, in the same direction, both complete with a rate.
struct Pair<'a> {
    flow: Flow,
    single: &'a ThroughputRun,
    streams: StreamCount,
    gain: Ratio,
}

fn pairs(result: &ThroughputResult) -> Vec<Pair<'_>> {
    let one = StreamCount::new(1);
    let pair = |flow: Flow| {
        let mut runs = result.runs.iter().filter(|run| run.flow == flow);
        let single = runs.clone().find(|run| run.streams == one)?;
        let many = runs.find(|run| run.streams > one)?;
        let gain = (many.rate()?.rate / single.rate()?.rate)?;
        Some(Pair { flow, single, streams: many.streams, gain })
    };
    [Flow::Up, Flow::Down].into_iter().filter_map(pair).collect()
}

fn direction(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "Up",
        Flow::Down => "Down",
    }
}

fn parallel_gain(result: &ThroughputResult, style: Style) -> Vec<String> {
    let pairs = pairs(result);
    let same = |pair: &Pair<'_>| (LOSS..GAIN).contains(&pair.gain.get());
    if let [up, down] = &pairs[..]
        && same(up)
        && same(down)
        && up.streams == down.streams
    {
        return vec![format!("Both ways, one stream carries what {} do: parallel streams gain nothing.", up.streams)];
    }
    pairs.iter().map(|pair| gain_sentence(pair, style)).collect()
}

fn gain_sentence(pair: &Pair<'_>, style: Style) -> String {
    let (direction, streams, gain) = (direction(pair.flow), pair.streams, pair.gain.get());
    if gain >= GAIN {
        let carry = format!("{direction}, {streams} streams carry {gain:.1} times what one does");
        return match diagnosed(pair.single, style) {
            Some(cause) => format!("{carry}. What limits a single connection: {cause}."),
            None => format!("{carry}: a single connection is held back by {}.", single_cause(pair.single, style)),
        };
    }
    if gain < LOSS {
        return format!(
            "{direction}, {streams} streams carry less than one ({gain:.2} times): they hinder each other."
        );
    }
    format!("{direction}, one stream carries what {streams} do: parallel streams gain nothing.")
}

/// What the diagnosis says of a single connection, where it comes to an end.
fn diagnosed(run: &ThroughputRun, style: Style) -> Option<String> {
    let cause = named(run)?;
    let arithmetic =
        if cause == diagnosis::Cause::ReceiveWindow { window_arithmetic(run, style) } else { String::new() };
    Some(format!("{}{arithmetic}", cause.title()))
}

/// The cause that the diagnosis names; `None` where it could not be told.
fn named(run: &ThroughputRun) -> Option<diagnosis::Cause> {
    let cause = run.diagnosis.as_ref()?.first()?.cause;
    (cause.place() != diagnosis::Place::Unknown).then_some(cause)
}

/// What `linerate diagnose` adds: the path's capacity, and with it what to set.
fn further(result: &ThroughputResult) -> Option<String> {
    let diagnosed: Vec<&ThroughputRun> = result.runs.iter().filter(|run| run.diagnosis.is_some()).collect();
    let first = diagnosed.first()?;
    let port = if result.port == Port::IPERF3 { String::new() } else { format!(" -p {}", result.port) };
    let transfer = if first.flow == Flow::Down { " -- -R" } else { "" };
    let command = format!("`linerate diagnose {}{port}{transfer}`", escape::line(&result.host));
    let adds = if diagnosed.iter().any(|run| named(run).is_some()) {
        "measures the path as well, and says what to change and what would come next"
    } else {
        "measures what the path carries, and so whether it is full"
    };
    Some(format!("{command} {adds}."))
}

/// What holds a single connection back, with the numbers behind it where they are known.
fn single_cause(run: &ThroughputRun, style: Style) -> String {
    let Some(limits) = run.limits() else { return "something that only the server's kernel knows".to_owned() };
    match Cause::of(&limits) {
        Cause::SenderProcessor => "the sender's CPU".to_owned(),
        Cause::ReceiverProcessor => "the receiver's CPU".to_owned(),
        Cause::SendBuffer => "its send buffer".to_owned(),
        Cause::ReceiveWindow => format!("the receiver's window{}", window_arithmetic(run, style)),
        Cause::CongestionWindow => match run.retransmits() {
            Some(count) if count > SegmentCount::ZERO => "losses, which keep its congestion window small".to_owned(),
            _ => "its congestion window".to_owned(),
        },
        Cause::NothingToSend => "the sending application".to_owned(),
    }
}

/// ` (6.0 MiB in 117 ms is 430 Mbit/s)`: one window each round trip.
fn window_arithmetic(run: &ThroughputRun, style: Style) -> String {
    let arithmetic = || {
        let info = sender_info(run)?;
        let (window, rtt) = (info.send_window?, info.rtt?);
        let rate = display::rate(window.rate_over(rtt));
        Some(format!(" ({} in {} is {rate})", display::size_binary(window), style.duration(rtt)))
    };
    arithmetic().unwrap_or_default()
}

/// The sending socket's last reading, of the first stream.
fn sender_info(run: &ThroughputRun) -> Option<&TcpInfo> {
    let tcp = run.report.streams.first()?.tcp.as_ref()?;
    match run.flow {
        Flow::Up => tcp.last_info.as_ref(),
        Flow::Down => tcp.far_info.as_ref(),
    }
}

/// The direction in which load adds most to the round trip, when that is much.
fn queue(result: &ThroughputResult, style: Style) -> Option<String> {
    let idle = result.idle_rtt.as_ref()?.median;
    let loaded = |run: &ThroughputRun| run.loaded_rtt().map(|rtt: LoadedRtt| rtt.median);
    let worst = result.runs.iter().filter(|run| loaded(run).is_some()).max_by_key(|run| loaded(run))?;
    let under_load = loaded(worst)?;
    let added = under_load.saturating_sub(idle);
    if under_load < idle * QUEUE_FACTOR || added < QUEUE_DELAY {
        return None;
    }
    let queue = display::size_binary(worst.rate()?.rate * added);
    Some(format!(
        "A full {}load raises the round trip from {} to {}: about {queue} wait in a queue on the way.",
        direction(worst.flow).to_lowercase(),
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

/// What a stock server could not tell.
fn unknown(result: &ThroughputResult) -> Option<String> {
    let down = || result.runs.iter().filter(|run| run.flow == Flow::Down && run.rate().is_some());
    let unlimited = down().any(|run| run.limits().is_none() && run.diagnosis.is_none());
    let untimed = down().any(|run| run.loaded_rtt().is_none());
    if result.peer_is_linerate || !(unlimited || untimed) {
        return None;
    }
    let what = match (unlimited, untimed) {
        (true, true) => "what limits downloads, nor their round-trip time",
        (true, false) => "what limits downloads",
        _ => "the round-trip time of downloads",
    };
    Some(format!("The server is a stock iperf3 and cannot tell {what}; `linerate serve` there can."))
}
