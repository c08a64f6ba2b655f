//! What follows from what was seen: phases, grade, responsiveness, where queues stand, traffic of others.

use core::time::Duration;

use linerate_model::latency_under_load::{self as model, Class, ClassUplift, Comparison, DRAFT, HopUplift, Uplift};
use linerate_model::schema::load::{
    ClassName, Contamination, Grade, LoadDocument, Phase, PhaseKind, QueuePlace, Responsiveness,
};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::path::{Hop, Peer, Unknown};
use linerate_model::schema::throughput::Direction;
use linerate_model::statistics::{Signed, Summary};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Ratio, display};

use super::evidence::{Evidence, Foreign, HopReadings, PhaseEvidence, Window};
use super::summary::{self, Rest, round_trips};
use super::traffic::Passed;

/// One-way delays that grow by less have not grown.
const GROWN: Duration = Duration::from_millis(5);

/// Fills in the document.
pub(super) fn complete(document: &mut LoadDocument, evidence: &Evidence, started: MonotonicTime, end: MonotonicTime) {
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
    document.queues = LOADED.into_iter().filter_map(|direction| queue_place(evidence, direction)).collect();
    grade(document, evidence);
    explain(document, evidence);
}

const LOADED: [Direction; 2] = [Direction::Down, Direction::Up];

const fn word(direction: Direction) -> &'static str {
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

/// What the idle phase says of a class.
pub(super) fn rest(evidence: &Evidence, class: ClassName) -> Rest {
    let readings = evidence.idle().zip(evidence.class(class)).map(|(window, class)| class.within(window));
    Rest::of(&readings.unwrap_or_default())
}

fn describe(evidence: &Evidence, phase: &PhaseEvidence, started: MonotonicTime, end: MonotonicTime) -> Phase {
    let is_idle = phase.kind == PhaseKind::Idle;
    let classes = phase.window.into_iter().flat_map(|window| {
        let of = move |class| summary::class(class, window, &rest(evidence, class.class), is_idle);
        evidence.classes.iter().filter_map(of)
    });
    let since = |time: MonotonicTime| nanoseconds(time.since(started));
    let rate = |direction| phase.goodput(direction).map(BitRate::bits_per_second);
    Phase {
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

/// The classes that the model compares. The loaded connections are judged by the kernel's round trips: messages on them
/// also wait for lost segments that are sent again, and in the sender's own buffer, which no queue of the path is to be
/// blamed for.
pub(super) const fn model_class(class: ClassName) -> Option<Class> {
    match class {
        ClassName::Icmp => Some(Class::Icmp),
        ClassName::UdpBestEffort => Some(Class::UdpBestEffort),
        ClassName::UdpExpeditedForwarding => Some(Class::UdpExpedited),
        ClassName::TcpInfo => Some(Class::TcpInBand),
        ClassName::TcpApplication | ClassName::TcpHandshake => None,
    }
}

const fn class_name(class: Class) -> ClassName {
    match class {
        Class::Icmp => ClassName::Icmp,
        Class::UdpBestEffort => ClassName::UdpBestEffort,
        Class::UdpExpedited => ClassName::UdpExpeditedForwarding,
        Class::TcpInBand => ClassName::TcpInfo,
    }
}

/// A class as a person reads it.
const fn class_words(class: Class) -> &'static str {
    match class {
        Class::Icmp => "ICMP echoes",
        Class::UdpBestEffort => "UDP best effort",
        Class::UdpExpedited => "UDP marked EF",
        Class::TcpInBand => "the loaded connections themselves",
    }
}

/// What the load adds to each class in a phase.
fn uplifts(evidence: &Evidence, window: Window) -> Vec<ClassUplift> {
    let uplift = |readings: &super::evidence::ClassReadings| {
        let class = model_class(readings.class)?;
        let loaded = Summary::of(&round_trips(&readings.within(window)))?;
        let idle = rest(evidence, readings.class).summary?;
        Some(ClassUplift { class, uplift: Uplift::of(&idle, &loaded) })
    };
    evidence.classes.iter().filter_map(uplift).collect()
}

fn phase_of(evidence: &Evidence, kind: PhaseKind) -> Option<(&PhaseEvidence, Window)> {
    let phase = evidence.phases.iter().find(|phase| phase.kind == kind)?;
    Some((phase, phase.window?))
}

fn grade(document: &mut LoadDocument, evidence: &Evidence) {
    let compared: Vec<(Direction, Vec<ClassUplift>)> = LOADED
        .into_iter()
        .filter_map(|direction| {
            let (_, window) = phase_of(evidence, kind_of(direction))?;
            Some((direction, uplifts(evidence, window)))
        })
        .collect();
    let verdicts: Vec<(Direction, Comparison)> =
        compared.iter().filter_map(|(direction, classes)| Some((*direction, Comparison::of(classes)?))).collect();
    for (direction, comparison) in &verdicts {
        if let Some((class, flattering)) = comparison.flattering {
            document.notes.push(format!(
                "Loaded {}, {} alone would have given {}; {} give {}, and that is what applications feel.",
                word(*direction),
                class_words(class),
                flattering.letter(),
                class_words(comparison.worst.class),
                comparison.grade.letter(),
            ));
        }
    }
    if let Some(contamination) = document.contamination.as_ref().filter(|contamination| contamination.spoils) {
        document.ungraded_because = Some(format!("traffic of others was on the path: {}", contamination.evidence));
        return;
    }
    let Some((direction, worst)) = verdicts.iter().max_by_key(|(_, comparison)| comparison.worst.uplift.graded())
    else {
        document.ungraded_because = Some(why_ungraded(document, evidence, &compared));
        return;
    };
    let letter = |wanted| {
        let found = verdicts.iter().find(|(direction, _)| *direction == wanted);
        found.map(|(_, comparison)| comparison.grade.letter().to_owned())
    };
    let thresholds = model::Grade::TABLE.iter();
    document.grade = Some(Grade {
        letter: worst.grade.letter().to_owned(),
        added_ns: nanoseconds(worst.worst.uplift.graded()),
        class: class_name(worst.worst.class),
        direction: *direction,
        up: letter(Direction::Up),
        down: letter(Direction::Down),
        thresholds: thresholds
            .filter_map(|(grade, below)| Some((grade.letter().to_owned(), nanoseconds((*below)?))))
            .collect(),
    });
}

fn why_ungraded(document: &LoadDocument, evidence: &Evidence, compared: &[(Direction, Vec<ClassUplift>)]) -> String {
    if evidence.idle().is_none() {
        return "the idle path was not measured, so that there is nothing to compare with".to_owned();
    }
    if document.peer == Peer::Bare {
        return "the host has no measurement service, so that nothing can load the path: it needs a linerate \
                (`linerate serve`) or an iperf3 server"
            .to_owned();
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
                word(*direction),
                class_words(worst.class),
                display::duration(added),
                model::Grade::of(added).letter()
            ))
        })
        .collect();
    let seen = if others.is_empty() { String::new() } else { format!(" ({})", others.join("; ")) };
    format!(
        "UDP probes did not come back, no connection was at rest to compare the loaded ones with, and ICMP may be put ahead \
         of what people use the path for{seen}"
    )
}

fn responsiveness(evidence: &Evidence) -> Option<Responsiveness> {
    let of = |kind| {
        let (phase, window) = phase_of(evidence, kind)?;
        let foreign: Vec<_> = evidence
            .foreign
            .iter()
            .filter(|probe: &&Foreign| window.contains(probe.sent))
            .filter_map(|probe| probe.times)
            .collect();
        let pings = evidence.class(ClassName::TcpApplication)?.within(window);
        let value = model::Responsiveness::of(&foreign, &round_trips(&pings)).round_trips_per_minute?;
        Some((value, phase.goodput_stable == Some(true), phase.latency_stable == Some(true)))
    };
    let [down, up, both] = [PhaseKind::Down, PhaseKind::Up, PhaseKind::Both].map(of);
    let known: Vec<_> = [down, up, both].into_iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let confidence = match (known.iter().all(|(_, goodput, _)| *goodput), known.iter().all(|(_, _, latency)| *latency))
    {
        (true, true) => "high",
        (true, false) => "medium",
        _ => "low",
    };
    let value = |phase: Option<(f64, bool, bool)>| phase.map(|(value, ..)| value);
    Some(Responsiveness {
        method: format!("{DRAFT}, over TCP without TLS"),
        down: value(down),
        up: value(up),
        both: value(both),
        confidence: confidence.to_owned(),
    })
}

/// The class by which a queue is placed: the one that counts, else any.
fn placing_class(evidence: &Evidence, window: Window) -> Option<ClassUplift> {
    let classes = uplifts(evidence, window);
    let by = |wanted| classes.iter().copied().find(|entry| entry.class == wanted);
    // The same kind of packet as the hops answer comes first.
    by(Class::Icmp).or_else(|| by(Class::UdpBestEffort)).or_else(|| by(Class::TcpInBand))
}

fn queue_place(evidence: &Evidence, direction: Direction) -> Option<QueuePlace> {
    let (phase, window) = phase_of(evidence, kind_of(direction))?;
    let whole = placing_class(evidence, window)?;
    let own = own_queue(phase, direction);
    let hops: Vec<(&HopReadings, HopUplift)> =
        evidence.hops.iter().map(|hop| (hop, hop_uplift(evidence, hop, window))).collect();
    let mut uplifts: Vec<HopUplift> = hops.iter().map(|(_, uplift)| *uplift).collect();
    // The far end is a hop, too: what it takes longer is the whole.
    uplifts.extend(evidence.far_distance.map(|hop| HopUplift { hop, uplift: Some(whole.uplift.median) }));
    let place = model::QueuePlace::of(whole.uplift.median, own, &uplifts);
    let added = whole.uplift.median.or_zero();
    Some(QueuePlace {
        direction,
        place: match place {
            model::QueuePlace::Nowhere => "nowhere",
            model::QueuePlace::ThisHost => "this_host",
            model::QueuePlace::NextHop => "next_hop",
            model::QueuePlace::Beyond(_) => "beyond",
            model::QueuePlace::Unknown => "unknown",
        }
        .to_owned(),
        added_ns: Some(nanoseconds(added)),
        one_way_confirms: one_way_confirms(evidence, window, direction),
        evidence: reasons(place, (whole.class, added), own, &hops, evidence.far_distance),
        hops: hops.iter().filter(|(hop, _)| hop.address.is_some()).map(|(hop, _)| loaded_hop(hop, window)).collect(),
    })
}

/// How long what waits in this host takes to leave: only data that leaves waits here.
fn own_queue(phase: &PhaseEvidence, direction: Direction) -> Option<Duration> {
    let goodput = phase.goodput(direction).filter(|_| direction == Direction::Up)?;
    let sizes: Vec<ByteCount> = phase.backlog.iter().map(|(_, size)| *size).collect();
    Summary::of(&sizes)?.median / goodput
}

fn hop_uplift(evidence: &Evidence, hop: &HopReadings, window: Window) -> HopUplift {
    let within = |window: Window| {
        let inside: Vec<_> = hop.readings.iter().copied().filter(|reading| window.contains(reading.sent)).collect();
        Summary::of(&round_trips(&inside))
    };
    let uplift = evidence.idle().and_then(|idle| Some(Signed::between(within(idle)?.median, within(window)?.median)));
    HopUplift { hop: hop.distance, uplift }
}

fn loaded_hop(hop: &HopReadings, window: Window) -> Hop {
    let inside: Vec<_> = hop.readings.iter().copied().filter(|reading| window.contains(reading.sent)).collect();
    Hop {
        distance: hop.distance,
        address: hop.address.map(|address| address.to_string()),
        rtt: Summary::of(&round_trips(&inside)).as_ref().map(Into::into),
    }
}

/// Whether the loaded direction's delay grew, and it alone.
fn one_way_confirms(evidence: &Evidence, window: Window, direction: Direction) -> Option<bool> {
    let rest = rest(evidence, ClassName::UdpBestEffort);
    let readings = evidence.class(ClassName::UdpBestEffort)?.within(window);
    let median = |delays: Vec<Duration>| Summary::of(&delays).map(|summary| summary.median);
    let up = median(readings.iter().filter_map(|reading| rest.delay_up(reading)).collect())?;
    let down = median(readings.iter().filter_map(|reading| rest.delay_down(reading)).collect())?;
    let (loaded, other) = if direction == Direction::Up { (up, down) } else { (down, up) };
    Some(loaded >= GROWN && other < GROWN.max(loaded / 4))
}

fn reasons(
    place: model::QueuePlace,
    (class, added): (Class, Duration),
    own: Option<Duration>,
    hops: &[(&HopReadings, HopUplift)],
    far_distance: Option<u8>,
) -> String {
    let mut words = vec![format!("{} took {} longer (median)", class_words(class), display::duration(added))];
    if let Some(own) = own {
        words.push(format!("what waited in this host's own queue took {} to leave", display::duration(own)));
    }
    let answered = hops.iter().filter_map(|(hop, uplift)| {
        let grown = display::duration(uplift.uplift?.or_zero());
        Some(format!("hop {} ({}) {grown} longer", hop.distance, hop.address?))
    });
    words.extend(answered);
    if far_distance == Some(1) {
        words.push("the far end is the next hop itself".to_owned());
    } else if place == model::QueuePlace::Unknown {
        words.push("no hop before the far end answered while it was idle and while it was loaded".to_owned());
    }
    words.join("; ")
}

fn contamination(evidence: &Evidence) -> Option<Contamination> {
    let capacity = evidence.phases.iter().flat_map(|phase| LOADED.map(|direction| phase.goodput(direction)));
    let capacity = capacity.flatten().max();
    let mut worst: Option<(model::Contamination, String)> = None;
    for phase in &evidence.phases {
        let ends = [("this host", phase.near), ("the far host", phase.far)];
        let ends = ends.into_iter().filter_map(|(end, passed)| Some((end, passed?)));
        for (end, passed) in ends {
            let Passed { sent, received } = passed;
            for (verb, traffic) in [("sent", sent), ("received", received)] {
                // What the phase is to be set beside: its larger direction, as acknowledgements are few.
                let found = match (phase.kind, capacity) {
                    (PhaseKind::Idle, Some(capacity)) => model::Contamination::at_rest(&traffic, capacity),
                    (PhaseKind::Idle, None) => continue,
                    _ => model::Contamination::of(&traffic),
                };
                let text = format!(
                    "{end} {verb} {} that are not this measurement's while it was {}",
                    display::rate(found.others),
                    if phase.kind == PhaseKind::Idle {
                        "idle".to_owned()
                    } else {
                        format!("loaded {}", phase.kind.name())
                    }
                );
                let share = |found: &model::Contamination| {
                    let share = match phase.kind {
                        PhaseKind::Idle => capacity.and_then(|capacity| found.others / capacity),
                        _ => found.share,
                    };
                    (found.spoilt, share.map_or(0.0, Ratio::get))
                };
                let more = worst.as_ref().is_none_or(|(known, _)| {
                    let (spoilt, part) = share(&found);
                    let known_share = known.share.map_or(0.0, Ratio::get);
                    (spoilt && !known.spoilt) || (spoilt == known.spoilt && part > known_share)
                });
                if more {
                    let (_, part) = share(&found);
                    worst = Some((model::Contamination { share: Ratio::new(part), ..found }, text));
                }
            }
        }
    }
    worst.map(|(found, evidence)| Contamination {
        spoils: found.spoilt,
        share: found.share.map_or(0.0, Ratio::get),
        evidence: if found.others.is_zero() {
            "no traffic of others was seen at either end".to_owned()
        } else {
            evidence
        },
    })
}

/// A reason for all that is `null` and has none yet.
fn explain(document: &mut LoadDocument, evidence: &Evidence) {
    let mut missing: Vec<(String, String)> = Vec::new();
    let peer = match document.peer {
        Peer::Linerate => "no probe of this kind came back",
        Peer::Iperf3 | Peer::Stamp => "an iperf3 server does not answer them: it needs a linerate (`linerate serve`)",
        Peer::Bare => "the host has no measurement service: it needs a linerate (`linerate serve`)",
    };
    let all = [
        ("icmp", ClassName::Icmp),
        ("udp_best_effort", ClassName::UdpBestEffort),
        ("udp_expedited_forwarding", ClassName::UdpExpeditedForwarding),
        ("tcp_application", ClassName::TcpApplication),
        ("tcp_info", ClassName::TcpInfo),
        ("tcp_handshake", ClassName::TcpHandshake),
    ];
    for (key, class) in all {
        let answered = evidence.class(class).is_some_and(|class| !round_trips(&class.readings).is_empty());
        if !answered {
            let reason = if class == ClassName::Icmp { "no ICMP echo was answered" } else { peer };
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
        missing.push(("congestion_control".to_owned(), "no connection of the load told it".to_owned()));
    }
    for queue in &document.queues {
        if queue.one_way_confirms.is_none() {
            missing.push((format!("queues.{}.one_way_confirms", word(queue.direction)), peer.to_owned()));
        }
    }
    for (key, reason) in missing {
        if !document.unknown.iter().any(|unknown| unknown.key == key) {
            document.unknown.push(Unknown { key, reason });
        }
    }
}
