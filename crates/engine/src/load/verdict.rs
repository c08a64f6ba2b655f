//! Conclusions from the evidence: phases, grade, responsiveness, queue locations, foreign traffic.

use core::time::Duration;
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;

use linerate_analysis::latency_under_load::{
    ClassComparison, ClassUplift, HopUplift, LatencyClass, LatencyUplift, QueueLocation, Responsiveness,
    TrafficContamination,
};
use linerate_analysis::statistics::{SampleSummary, SignedDifference};
use linerate_model::load::{
    CrossTrafficFinding, LatencyGrade, LoadDocument, LoadGrade, LoadPhase, PhaseKind, PhaseResponsiveness,
    QueueFinding, QueueHost, ResponsivenessMethod,
};
use linerate_model::path::{PathHop, PeerKind, UnknownValue};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, MonotonicTime, Ratio, display};

use super::evidence::{CountingWindow, ForeignConnection, HopSamples, LoadEvidence, PhaseEvidence};
use super::summary::{self, IdleBaseline, round_trips};
use super::traffic::PhaseTraffic;
use super::{dual_queue, profiles};

/// Smallest growth of a one-way delay that counts as growth.
const MIN_DELAY_GROWTH: Duration = Duration::from_millis(5);

/// Completes the document.
pub(super) fn complete(
    document: &mut LoadDocument,
    evidence: &LoadEvidence,
    started: MonotonicTime,
    end: MonotonicTime,
) {
    document.phases = evidence
        .phases
        .iter()
        .enumerate()
        .map(|(index, phase)| {
            let next = evidence.phases.get(index + 1).map_or(end, |next| next.began);
            describe(evidence, phase, started, next)
        })
        .collect();
    document.contamination = contamination(evidence);
    document.responsiveness = responsiveness(evidence);
    document.queues =
        LOADED_DIRECTIONS.into_iter().filter_map(|direction| queue_location(evidence, direction)).collect();
    document.dual_queues =
        LOADED_DIRECTIONS.into_iter().filter_map(|direction| dual_queue::find(evidence, direction)).collect();
    document.profiles = profiles::results(evidence, started);
    grade(document, evidence);
    explain(document, evidence);
}

const LOADED_DIRECTIONS: [Direction; 2] = [Direction::Down, Direction::Up];

const fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

const fn kind_of(direction: Direction) -> PhaseKind {
    match direction {
        Direction::Up => PhaseKind::Up,
        Direction::Down => PhaseKind::Down,
    }
}

/// Idle baseline of a class.
pub(super) fn rest(evidence: &LoadEvidence, class: LatencyClass) -> IdleBaseline {
    let readings = evidence.idle().zip(evidence.class(class)).map(|(window, class)| class.within(window));
    IdleBaseline::of(&readings.unwrap_or_default())
}

fn describe(evidence: &LoadEvidence, phase: &PhaseEvidence, started: MonotonicTime, end: MonotonicTime) -> LoadPhase {
    let is_idle = phase.kind == PhaseKind::Idle;
    let classes = phase.window.into_iter().flat_map(|window| {
        let of = move |class| summary::class(class, window, &rest(evidence, class.class), is_idle);
        evidence.classes.iter().filter_map(of)
    });
    let since = |time: MonotonicTime| nanoseconds(time.since(started));
    let rate = |direction| phase.goodput(direction).map(BitRate::bits_per_second);
    LoadPhase {
        kind: phase.kind,
        start_ns: since(phase.began),
        stable_ns: phase.window.map(|window| since(window.from)),
        end_ns: since(phase.window.map_or(end, |window| window.to)),
        stable: phase.goodput_stable,
        goodput_up_bits_per_second: rate(Direction::Up),
        goodput_down_bits_per_second: rate(Direction::Down),
        retransmitted_segments: phase.retransmitted(),
        classes: classes.collect(),
    }
}

/// Label of a class.
const fn class_label(class: LatencyClass) -> &'static str {
    match class {
        LatencyClass::Icmp => "ICMP echoes",
        LatencyClass::UdpBestEffort => "UDP best effort",
        LatencyClass::UdpExpeditedForwarding => "UDP marked EF",
        LatencyClass::UdpEct0 => "UDP with ECT(0)",
        LatencyClass::UdpEct1 => "UDP with ECT(1)",
        LatencyClass::TcpApplication => "messages on the loaded connections",
        LatencyClass::TcpInfo => "the loaded connections themselves",
        LatencyClass::TcpHandshake => "new connections",
        LatencyClass::TlsHandshake => "TLS handshakes",
        LatencyClass::HttpRequest => "requests on new connections",
        LatencyClass::TlsRequest => "requests over TLS",
        LatencyClass::QuicRequest => "requests over QUIC",
    }
}

/// Delay that the load adds to each class in a phase.
fn uplifts(evidence: &LoadEvidence, window: CountingWindow) -> Vec<ClassUplift> {
    let uplift = |readings: &super::evidence::ClassSamples| {
        let class = Some(readings.class).filter(|class| class.is_compared())?;
        let loaded = SampleSummary::of(&round_trips(&readings.within(window)))?;
        let idle = rest(evidence, readings.class).summary?;
        Some(ClassUplift { class, uplift: LatencyUplift::of(&idle, &loaded) })
    };
    evidence.classes.iter().filter_map(uplift).collect()
}

fn phase_of(evidence: &LoadEvidence, kind: PhaseKind) -> Option<(&PhaseEvidence, CountingWindow)> {
    let phase = evidence.phases.iter().find(|phase| phase.kind == kind)?;
    Some((phase, phase.window?))
}

fn grade(document: &mut LoadDocument, evidence: &LoadEvidence) {
    let compared: Vec<(Direction, Vec<ClassUplift>)> = LOADED_DIRECTIONS
        .into_iter()
        .filter_map(|direction| {
            let (_, window) = phase_of(evidence, kind_of(direction))?;
            Some((direction, uplifts(evidence, window)))
        })
        .collect();
    let verdicts: Vec<(Direction, ClassComparison)> =
        compared.iter().filter_map(|(direction, classes)| Some((*direction, ClassComparison::of(classes)?))).collect();
    for (direction, comparison) in &verdicts {
        if let Some((class, flattering)) = comparison.flattering {
            document.notes.push(format!(
                "Loaded {}, {} alone would have given {}; {} give {}, which is what applications experience.",
                direction_name(*direction),
                class_label(class),
                flattering.letter(),
                class_label(comparison.worst.class),
                comparison.grade.letter(),
            ));
        }
    }
    if let Some(contamination) = document.contamination.as_ref().filter(|contamination| contamination.spoils) {
        document.ungraded_because = Some(format!("foreign traffic was on the path: {}", contamination.evidence));
        return;
    }
    let Some((direction, worst)) = verdicts.iter().max_by_key(|(_, comparison)| comparison.worst.uplift.graded())
    else {
        document.ungraded_because = Some(ungraded_reason(document, evidence, &compared));
        return;
    };
    let letter = |wanted| {
        let found = verdicts.iter().find(|(direction, _)| *direction == wanted);
        found.map(|(_, comparison)| comparison.grade)
    };
    let thresholds = LatencyGrade::TABLE.iter();
    document.grade = Some(LoadGrade {
        letter: worst.grade,
        added_ns: nanoseconds(worst.worst.uplift.graded()),
        class: worst.worst.class,
        direction: *direction,
        up: letter(Direction::Up),
        down: letter(Direction::Down),
        thresholds: thresholds.filter_map(|(grade, below)| Some((*grade, nanoseconds((*below)?)))).collect(),
    });
}

fn ungraded_reason(
    document: &LoadDocument,
    evidence: &LoadEvidence,
    compared: &[(Direction, Vec<ClassUplift>)],
) -> String {
    if evidence.idle().is_none() {
        return "the idle path was not measured, so that there is no baseline to compare with".to_owned();
    }
    if document.peer == PeerKind::Bare {
        return "the host has no measurement service to load the path with: start a linerate there \
                (`linerate serve`) or an iperf3 server"
            .to_owned();
    }
    if document.peer == PeerKind::Http {
        return "a grade needs probes over UDP, which an HTTP server does not answer".to_owned();
    }
    if compared.is_empty() {
        return "the measurement ended before a direction had been loaded alone".to_owned();
    }
    let others: Vec<String> = compared
        .iter()
        .filter_map(|(direction, classes)| {
            let worst = classes.iter().max_by_key(|class| class.uplift.graded())?;
            let added = worst.uplift.graded();
            Some(format!(
                "loaded {}, {} added {}, which would be {}",
                direction_name(*direction),
                class_label(worst.class),
                display::duration(added),
                LatencyGrade::of(added).letter()
            ))
        })
        .collect();
    let seen = if others.is_empty() { String::new() } else { format!(" ({})", others.join("; ")) };
    format!(
        "UDP probes were not answered, no idle connection is available as a baseline, and routers may prioritise \
         ICMP over other traffic{seen}"
    )
}

fn responsiveness(evidence: &LoadEvidence) -> Option<PhaseResponsiveness> {
    let of = |kind| {
        let (phase, window) = phase_of(evidence, kind)?;
        let foreign: Vec<_> = evidence
            .foreign
            .iter()
            .filter(|probe: &&ForeignConnection| window.contains(probe.sent))
            .filter_map(|probe| probe.times)
            .collect();
        let pings = evidence.class(LatencyClass::TcpApplication)?.within(window);
        let value = Responsiveness::of(&foreign, &round_trips(&pings)).round_trips_per_minute?;
        Some((value, phase.goodput_stable == Some(true), phase.latency_stable == Some(true)))
    };
    let [down, up, both] = [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both].map(of);
    let known: Vec<_> = [down, up, both].into_iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let confidence = match (known.iter().all(|(_, goodput, _)| *goodput), known.iter().all(|(_, _, latency)| *latency))
    {
        (true, true) => Confidence::High,
        (true, false) => Confidence::Medium,
        _ => Confidence::Low,
    };
    let value = |phase: Option<(f64, bool, bool)>| phase.map(|(value, ..)| value);
    Some(PhaseResponsiveness {
        method: ResponsivenessMethod::Draft09,
        down: value(down),
        up: value(up),
        both: value(both),
        confidence,
    })
}

/// Class that locates a queue: the one that counts, else any.
fn locating_class(evidence: &LoadEvidence, window: CountingWindow) -> Option<ClassUplift> {
    let classes = uplifts(evidence, window);
    let by = |wanted| classes.iter().copied().find(|entry| entry.class == wanted);
    // The same kind of packet as the hops' answers is preferred.
    by(LatencyClass::Icmp).or_else(|| by(LatencyClass::UdpBestEffort)).or_else(|| by(LatencyClass::TcpInfo))
}

fn queue_location(evidence: &LoadEvidence, direction: Direction) -> Option<QueueFinding> {
    let (phase, window) = phase_of(evidence, kind_of(direction))?;
    let whole = locating_class(evidence, window)?;
    let own = own_queue(phase, direction);
    let hops: Vec<(&HopSamples, HopUplift)> =
        evidence.hops.iter().map(|hop| (hop, hop_uplift(evidence, hop, window))).collect();
    let mut uplifts: Vec<HopUplift> = hops.iter().map(|(_, uplift)| *uplift).collect();
    // The far end is a hop, too: its added delay is the total.
    uplifts.extend(evidence.far_distance.map(|hop| HopUplift { hop, uplift: Some(whole.uplift.median) }));
    let place = QueueLocation::of(whole.uplift.median, own, &uplifts);
    let added = whole.uplift.median.allow_zero();
    Some(QueueFinding {
        direction,
        location: match place {
            QueueLocation::Nowhere => QueueHost::Nowhere,
            QueueLocation::ThisHost => QueueHost::ThisHost,
            QueueLocation::NextHop => QueueHost::NextHop,
            QueueLocation::Beyond(_) => QueueHost::Beyond,
            QueueLocation::Unknown => QueueHost::Unknown,
        },
        added_ns: Some(nanoseconds(added)),
        one_way_confirms: one_way_confirms(evidence, window, direction),
        evidence: reasons(place, (whole.class, added), own, &hops, evidence.far_distance),
        hops: hops.iter().filter(|(hop, _)| hop.address.is_some()).map(|(hop, _)| loaded_hop(hop, window)).collect(),
    })
}

/// Time that the backlog of this host needs to leave: only outgoing data waits here.
fn own_queue(phase: &PhaseEvidence, direction: Direction) -> Option<Duration> {
    let goodput = phase.goodput(direction).filter(|_| direction == Direction::Up)?;
    let sizes: Vec<ByteCount> = phase.backlog.iter().map(|(_, size)| *size).collect();
    SampleSummary::of(&sizes)?.median / goodput
}

fn hop_uplift(evidence: &LoadEvidence, hop: &HopSamples, window: CountingWindow) -> HopUplift {
    let within = |window: CountingWindow| {
        let inside: Vec<_> = hop.readings.iter().copied().filter(|reading| window.contains(reading.sent)).collect();
        SampleSummary::of(&round_trips(&inside))
    };
    let uplift =
        evidence.idle().and_then(|idle| Some(SignedDifference::between(within(idle)?.median, within(window)?.median)));
    HopUplift { hop: hop.distance, uplift }
}

fn loaded_hop(hop: &HopSamples, window: CountingWindow) -> PathHop {
    let inside: Vec<_> = hop.readings.iter().copied().filter(|reading| window.contains(reading.sent)).collect();
    PathHop {
        distance: hop.distance,
        address: hop.address.map(|address| address.to_string()),
        rtt: SampleSummary::of(&round_trips(&inside)).as_ref().map(Into::into),
        ..PathHop::default()
    }
}

/// True when the delay of the loaded direction grew, and of no other.
fn one_way_confirms(evidence: &LoadEvidence, window: CountingWindow, direction: Direction) -> Option<bool> {
    let rest = rest(evidence, LatencyClass::UdpBestEffort);
    let readings = evidence.class(LatencyClass::UdpBestEffort)?.within(window);
    let median = |delays: Vec<Duration>| SampleSummary::of(&delays).map(|summary| summary.median);
    let up = median(readings.iter().filter_map(|reading| rest.delay_up(reading)).collect())?;
    let down = median(readings.iter().filter_map(|reading| rest.delay_down(reading)).collect())?;
    let (loaded, other) = if direction == Direction::Up { (up, down) } else { (down, up) };
    Some(loaded >= MIN_DELAY_GROWTH && other < MIN_DELAY_GROWTH.max(loaded / 4))
}

fn reasons(
    place: QueueLocation,
    (class, added): (LatencyClass, Duration),
    own: Option<Duration>,
    hops: &[(&HopSamples, HopUplift)],
    far_distance: Option<u8>,
) -> String {
    let mut parts = vec![format!("{} took {} longer (median)", class_label(class), display::duration(added))];
    if let Some(own) = own {
        parts.push(format!("this host's own queue took {} to drain", display::duration(own)));
    }
    let answered = hops.iter().filter_map(|(hop, uplift)| {
        let grown = display::duration(uplift.uplift?.allow_zero());
        Some(format!("hop {} ({}) {grown} longer", hop.distance, hop.address?))
    });
    parts.extend(answered);
    if far_distance == Some(1) {
        parts.push("the far end is the next hop itself".to_owned());
    } else if place == QueueLocation::Unknown {
        parts.push("no hop before the far end answered while it was idle and while it was loaded".to_owned());
    }
    parts.join("; ")
}

fn contamination(evidence: &LoadEvidence) -> Option<CrossTrafficFinding> {
    let capacity = evidence.phases.iter().flat_map(|phase| LOADED_DIRECTIONS.map(|direction| phase.goodput(direction)));
    let capacity = capacity.flatten().max();
    let mut worst: Option<(TrafficContamination, String)> = None;
    for phase in &evidence.phases {
        let ends = [("this host", phase.near), ("the far host", phase.far)];
        let ends = ends.into_iter().filter_map(|(end, passed)| Some((end, passed?)));
        for (end, passed) in ends {
            let PhaseTraffic { sent, received } = passed;
            for (verb, traffic) in [("sent", sent), ("received", received)] {
                // Reference of the phase: its larger direction, as acknowledgements are few.
                let found = match (phase.kind, capacity) {
                    (PhaseKind::Idle, Some(capacity)) => TrafficContamination::when_idle(&traffic, capacity),
                    (PhaseKind::Idle, None) => continue,
                    _ => TrafficContamination::of(&traffic),
                };
                let text = format!(
                    "{end} {verb} {} of foreign traffic while it was {}",
                    display::rate(found.others),
                    if phase.kind == PhaseKind::Idle {
                        "idle".to_owned()
                    } else {
                        format!("loaded {}", phase.kind.name())
                    }
                );
                let share = |found: &TrafficContamination| {
                    let share = match phase.kind {
                        PhaseKind::Idle => capacity.and_then(|capacity| found.others / capacity),
                        _ => found.share,
                    };
                    (found.spoils, share.map_or(0.0, Ratio::get))
                };
                let more = worst.as_ref().is_none_or(|(known, _)| {
                    let (spoils, part) = share(&found);
                    let known_share = known.share.map_or(0.0, Ratio::get);
                    (spoils && !known.spoils) || (spoils == known.spoils && part > known_share)
                });
                if more {
                    let (_, part) = share(&found);
                    worst = Some((TrafficContamination { share: Ratio::new(part), ..found }, text));
                }
            }
        }
    }
    worst.map(|(found, evidence)| CrossTrafficFinding {
        spoils: found.spoils,
        share: found.share.map_or(0.0, Ratio::get),
        evidence: if found.others.is_zero() {
            "no foreign traffic was seen at either end".to_owned()
        } else {
            evidence
        },
    })
}

/// Adds a reason for every `null` that has none yet.
fn explain(document: &mut LoadDocument, evidence: &LoadEvidence) {
    let mut missing: Vec<(String, String)> = Vec::new();
    let peer = match document.peer {
        PeerKind::Linerate => "no probe of this kind was answered",
        PeerKind::Iperf3 | PeerKind::Stamp | PeerKind::StampSender => {
            "an iperf3 server does not answer these probes: start a linerate there (`linerate serve`)"
        }
        PeerKind::Bare => "the host has no measurement service: start a linerate there (`linerate serve`)",
        PeerKind::Http => "an HTTP server does not answer these probes",
    };
    let all = [
        ("icmp", LatencyClass::Icmp),
        ("udp_best_effort", LatencyClass::UdpBestEffort),
        ("udp_expedited_forwarding", LatencyClass::UdpExpeditedForwarding),
        ("tcp_application", LatencyClass::TcpApplication),
        ("tcp_info", LatencyClass::TcpInfo),
        ("tcp_handshake", LatencyClass::TcpHandshake),
    ];
    for (key, class) in all {
        let answered = evidence.class(class).is_some_and(|class| !round_trips(&class.readings).is_empty());
        if !answered {
            let reason = if class == LatencyClass::Icmp { "no ICMP echo was answered" } else { peer };
            missing.push((format!("classes.{key}"), reason.to_owned()));
        }
    }
    if document.responsiveness.is_none() {
        missing.push(("responsiveness".to_owned(), peer.to_owned()));
    }
    if document.contamination.is_none() {
        missing.push(("contamination".to_owned(), "the counters of the interface could not be read".to_owned()));
    }
    if document.congestion_control.is_none() {
        missing.push(("congestion_control".to_owned(), "no connection of the load reported it".to_owned()));
    }
    for queue in &document.queues {
        if queue.one_way_confirms.is_none() {
            missing.push((format!("queues.{}.one_way_confirms", direction_name(queue.direction)), peer.to_owned()));
        }
    }
    for (key, reason) in missing {
        if !document.unknown.iter().any(|unknown| unknown.key == key) {
            document.unknown.push(UnknownValue { key, reason });
        }
    }
}
