//! Verdict on latency under load in one sentence.

use linerate_model::direction::Direction;
use linerate_model::load::{LatencyClass, LatencyGrade};
use linerate_model::traffic_profile::ProfileResult;
use std::time::Duration;

use linerate_model::load::{DualQueue, DualQueueFinding, LoadDocument, LoadPhase, MedianDelay, PhaseKind};
use linerate_units::display;

/// Grade and its basis, then the round trips.
pub fn sentence(document: &LoadDocument) -> String {
    let times =
        format!("{}{}{}{}", profiles(document), round_trips(document), requests(document), dual_queues(document));
    if document.http.is_some() {
        return over_http(document, &times);
    }
    match (&document.grade, &document.ungraded_because) {
        (Some(grade), _) => {
            let direction = match grade.direction {
                Direction::Up => "up",
                Direction::Down => "down",
            };
            format!(
                "Grade {}: a load {direction} adds {} (95th percentile, {}){times}.",
                grade.letter,
                display::duration(Duration::from_nanos(grade.added_ns)),
                words(grade.class)
            )
        }
        (None, Some(reason)) => format!("No grade, as {reason}{times}."),
        (None, None) => "Nothing could be measured.".to_owned(),
    }
}

/// Round trips per minute of a test over HTTP/2, which has no grade.
fn over_http(document: &LoadDocument, times: &str) -> String {
    let Some(found) = &document.responsiveness else { return format!("No loaded phase was measured{times}.") };
    let loads = [(PhaseKind::Down, found.down), (PhaseKind::Up, found.up), (PhaseKind::Both, found.both)];
    let known = loads.into_iter().filter_map(|(kind, value)| Some(format!("{:.0} {}", value?, load_label(kind))));
    let known: Vec<String> = known.collect();
    format!("{} round trips per minute, confidence {}{times}.", known.join(", "), found.confidence)
}

/// Most profiles whose phases fit into the sentence.
const MAX_PROFILES_WITH_PHASE: usize = 2;

/// Letters of the traffic profiles, with the phase in which they were lowest where they are few.
fn profiles(document: &LoadDocument) -> String {
    if document.profiles.len() > MAX_PROFILES_WITH_PHASE {
        let one = |result: &ProfileResult| {
            let letter = result.letter.map_or_else(|| "unknown".to_owned(), |letter| letter.to_string());
            let score = result.lowest_score().map(|score| format!(" (MOS {score:.2})")).unwrap_or_default();
            format!("{} {letter}{score}", result.profile.name())
        };
        return format!("; {}", document.profiles.iter().map(one).collect::<Vec<_>>().join(", "));
    }
    let one = |result: &ProfileResult| {
        let name = result.profile.name();
        let Some((letter, worst)) = result.letter.zip(result.worst()) else { return format!("; {name} unknown") };
        let score = result.lowest_score().map(|score| format!("MOS {score:.2} ")).unwrap_or_default();
        let place = if letter <= LatencyGrade::A && score.is_empty() {
            String::new()
        } else {
            format!(" ({score}{})", load_label(worst.kind))
        };
        format!("; {name} {letter}{place}")
    };
    document.profiles.iter().map(one).collect()
}

/// Class of probes that applications resemble most, among those with round trips.
pub fn best_class(document: &LoadDocument) -> Option<LatencyClass> {
    [LatencyClass::UdpBestEffort, LatencyClass::TcpApplication, LatencyClass::Icmp].into_iter().find(|class| {
        let mut found = document.phases.iter().flat_map(|phase| &phase.classes);
        found.any(|found| found.class == *class && found.rtt.is_some())
    })
}

/// Title of a phase.
pub const fn load_label(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Idle => "idle",
        PhaseKind::Down => "loaded down",
        PhaseKind::Up => "loaded up",
        PhaseKind::Both => "loaded in both directions",
    }
}

/// Medians of the best class in all phases; the largest of those under load where requests or several profiles follow.
fn round_trips(document: &LoadDocument) -> String {
    let has_requests = REQUESTS.into_iter().any(|class| medians(document, class).is_some());
    let is_short = has_requests || document.profiles.len() > MAX_PROFILES_WITH_PHASE;
    let medians = best_class(document)
        .and_then(|class| if is_short { idle_and_loaded(document, class) } else { medians(document, class) });
    medians.map(|medians| format!("; round trip {medians}")).unwrap_or_default()
}

/// Medians of one class in all phases; `None` where it has none.
fn medians(document: &LoadDocument, class: LatencyClass) -> Option<String> {
    let of = |phase: &LoadPhase| {
        let found = phase.classes.iter().find(|entry| entry.class == class)?;
        let median = found.rtt.as_ref()?.median;
        Some(format!("{} {}", display::duration(median), load_label(phase.kind)))
    };
    let medians: Vec<String> = document.phases.iter().filter_map(of).collect();
    (!medians.is_empty()).then(|| medians.join(", "))
}

/// Median of one class without load, and the largest under load; `None` where it has none.
fn idle_and_loaded(document: &LoadDocument, class: LatencyClass) -> Option<String> {
    let median =
        |phase: &LoadPhase| Some(phase.classes.iter().find(|entry| entry.class == class)?.rtt.as_ref()?.median);
    let is_idle = |phase: &&LoadPhase| phase.kind == PhaseKind::Idle;
    let idle = document.phases.iter().find(is_idle).and_then(median);
    let loaded = document.phases.iter().filter(|phase| !is_idle(phase)).filter_map(median).max();
    let idle = idle.map(|idle| format!("{} idle", display::duration(idle)));
    let loaded = loaded.map(|loaded| format!("up to {} loaded", display::duration(loaded)));
    let parts: Vec<String> = [idle, loaded].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Classes of requests on connections of their own.
const REQUESTS: [LatencyClass; 2] = [LatencyClass::TlsRequest, LatencyClass::QuicRequest];

/// Medians of requests, where they were made.
fn requests(document: &LoadDocument) -> String {
    let one = |class| Some(format!("; {} {}", words(class), idle_and_loaded(document, class)?));
    REQUESTS.into_iter().filter_map(one).collect()
}

/// Findings about dual queues, where they were looked for.
fn dual_queues(document: &LoadDocument) -> String {
    let one = |found: &DualQueueFinding| {
        let direction = match found.direction {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        let finding = match found.finding {
            DualQueue::Found => "dual queue",
            DualQueue::NotFound => "no dual queue",
            unknown => {
                let reason = no_finding(unknown, found.ect1_intact.is_some());
                return format!("; unknown whether there is a dual queue {direction}: {reason}");
            }
        };
        let text = |delay: &Option<MedianDelay>| {
            let delay = delay.as_ref().map(|delay| display::duration(delay.median));
            delay.unwrap_or_else(|| "unknown".to_owned())
        };
        format!("; {finding} {direction}: ECT(1) waits {}, ECT(0) {}", text(&found.ect1), text(&found.ect0))
    };
    document.dual_queues.iter().map(one).collect()
}

/// Reason why nothing is known about a dual queue; the evidence of the finding has its figures.
const fn no_finding(finding: DualQueue, has_arrivals: bool) -> &'static str {
    match finding {
        DualQueue::TooFewProbes => "too few probes were answered",
        DualQueue::Ect1Changed if has_arrivals => "the path rewrites ECT(1)",
        DualQueue::Ect1Changed => "the far end does not report codepoints",
        DualQueue::NoQueue => "the load builds no long queue",
        _ => "the delays are too close",
    }
}

const fn words(class: LatencyClass) -> &'static str {
    match class {
        LatencyClass::Icmp => "ICMP echo",
        LatencyClass::UdpBestEffort => "UDP best effort",
        LatencyClass::UdpExpeditedForwarding => "UDP marked EF",
        LatencyClass::UdpEct0 => "UDP with ECT(0)",
        LatencyClass::UdpEct1 => "UDP with ECT(1)",
        LatencyClass::TcpApplication => "messages on the loaded connections",
        LatencyClass::TcpInfo => "round trips of the loaded connections",
        LatencyClass::TcpHandshake => "TCP handshakes",
        LatencyClass::TlsHandshake => "TLS handshakes",
        LatencyClass::HttpRequest => "requests on new connections",
        LatencyClass::TlsRequest => "requests over TLS",
        LatencyClass::QuicRequest => "requests over QUIC",
    }
}
