use core::time::Duration;

use linerate_model::latency_under_load::Class;
use linerate_model::schema::load::PhaseKind;
use linerate_model::throughput::Flow;
use linerate_units::display;

use super::carried::{DIRECTIONS, loaded};
use super::delays::{FAMILIES, realised};
use super::evidence::{Evidence, own_phase};
use super::judge::Confidence;

/// Where what is left comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A queue of our own: a leaf that several flows share, or that is too long.
    OwnLeaf,
    /// A queue behind our shaper.
    Upstream,
    /// The processor.
    Processor,
    /// The shaper's burst is too small for its rate, or the path loses packets.
    Burst,
    /// There is nothing left to explain.
    None,
    /// There is, and what was measured does not tell.
    Unknown,
}

/// Where what is left comes from, and on what that rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// Where.
    pub place: Place,
    /// In which direction; `None` when there is nothing.
    pub direction: Option<Flow>,
    /// How much rests on it: high where the backlog of our leaves agrees, low where it contradicts.
    pub confidence: Confidence,
    /// What was seen.
    pub words: String,
}

/// A median delay above rest from which there is something to explain.
const RISE: Duration = Duration::from_millis(10);
/// What is put first waits this share of the others' delay, or more, when both meet the same queue.
const TOGETHER: f64 = 0.5;
/// Carried of what is set, below which the shaper does not do its rate.
const SHORT: f64 = 0.9;
/// Above this share a processor is full.
const FULL: f64 = 0.85;

/// Of one direction while it is loaded: the median delay above rest of what is put first and of best effort.
#[derive(Clone, Copy)]
struct Rise {
    first: Option<Duration>,
    others: Duration,
    /// What waited in our leaves, as a time at the rate that is set.
    own: Option<Duration>,
}

impl Attribution {
    /// The attribution, in the direction where best effort is latest.
    pub(super) fn of(evidence: &Evidence) -> Self {
        let rises = DIRECTIONS.into_iter().filter_map(|direction| Some((direction, rise(evidence, direction)?)));
        let worst = rises.filter(|(_, rise)| rise.others > RISE).max_by_key(|(_, rise)| rise.others);
        match worst {
            Some((direction, rise)) => of_delay(direction, rise),
            None => DIRECTIONS.into_iter().find_map(|direction| of_rate(evidence, direction)).unwrap_or_else(nothing),
        }
    }
}

fn rise(evidence: &Evidence, direction: Flow) -> Option<Rise> {
    let after = &evidence.after;
    let kind = if after.phase(own_phase(direction)).is_some() { own_phase(direction) } else { PhaseKind::Both };
    let median = |class| {
        let uplifts = FAMILIES.into_iter().filter_map(|family| after.uplift(kind, class, family));
        uplifts.map(|uplift| uplift.median.or_zero()).max()
    };
    let backlog = after.phase(kind).and_then(|phase| phase.tree.of(direction).and_then(|tree| tree.largest_backlog));
    let own = backlog.zip(*evidence.set.of(direction)).and_then(|(backlog, set)| set.time_to_send(backlog));
    Some(Rise {
        first: median(Class::Icmp).max(median(Class::UdpExpedited)),
        others: median(Class::UdpBestEffort)?,
        own,
    })
}

fn of_delay(direction: Flow, rise: Rise) -> Attribution {
    let others = display::duration(rise.others);
    let explains = rise.own.map(|own| own >= rise.others.mul_f64(TOGETHER));
    let agrees = |expected: bool| match explains {
        Some(explains) if explains == expected => Confidence::High,
        Some(_) => Confidence::Low,
        None => Confidence::Medium,
    };
    let (place, confidence, words) = match (rise.first, explains) {
        (Some(first), _) if first >= rise.others.mul_f64(TOGETHER) => {
            let first = display::duration(first);
            let words = format!(
                "Prioritised probes ({first}) and best effort ({others}) are late together: the queue stands \
                                 behind our shaper. Lower the rate."
            );
            (Place::Upstream, agrees(false), words)
        }
        (Some(first), _) => {
            let first = display::duration(first);
            let words = format!(
                "Best effort is late ({others}) and prioritised probes are not ({first}): they wait in a leaf \
                                 of our own."
            );
            (Place::OwnLeaf, agrees(true), words)
        }
        (None, Some(true)) => (
            Place::OwnLeaf,
            Confidence::Medium,
            format!("Best effort is late ({others}), and our leaves held as much."),
        ),
        (None, Some(false)) => {
            (Place::Upstream, Confidence::Medium, format!("Best effort is late ({others}), and our leaves held less."))
        }
        (None, None) => {
            let words =
                format!("Best effort is late ({others}); neither prioritised probes nor our leaves were measured.");
            (Place::Unknown, Confidence::Low, words)
        }
    };
    Attribution { place, direction: Some(direction), confidence, words }
}

/// Nothing is late, but less is carried than is set, and the path could do more.
fn of_rate(evidence: &Evidence, direction: Flow) -> Option<Attribution> {
    let set = (*evidence.set.of(direction))?;
    let share = realised(&evidence.after, direction, set).filter(|share| share.get() < SHORT)?;
    let could = realised(&evidence.before, direction, set).is_some_and(|share| share.get() >= SHORT);
    if !could {
        return None;
    }
    let processor = loaded(&evidence.after, direction).and_then(|phase| phase.processor);
    let share = display::percent(share);
    let (place, words) = match processor {
        Some(busy) if busy.get() > FULL => {
            (Place::Processor, format!("Nothing is late, {share} of the rate are carried, and a processor was full."))
        }
        _ => (
            Place::Burst,
            format!("Nothing is late, and {share} of the rate are carried: the burst is small, or packets are lost."),
        ),
    };
    let confidence = if processor.is_some() { Confidence::Medium } else { Confidence::Low };
    Some(Attribution { place, direction: Some(direction), confidence, words })
}

fn nothing() -> Attribution {
    let words = "Load adds no delay worth a word, and the rates are carried.".to_owned();
    Attribution { place: Place::None, direction: None, confidence: Confidence::Medium, words }
}
