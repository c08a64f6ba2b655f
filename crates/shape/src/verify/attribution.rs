use core::time::Duration;
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;
use serde::{Deserialize, Serialize};

use linerate_analysis::latency_under_load::LatencyClass;
use linerate_model::load::PhaseKind;
use linerate_units::display;

use super::counter_checks::{DIRECTIONS, loaded};
use super::delay_checks::{FAMILIES, realised};
use super::evidence::{ShaperEvidence, loading_phase};

/// Origin of the remaining delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelayOrigin {
    /// Own queue: a leaf that several flows share, or that is too long.
    OwnLeaf,
    /// Queue behind our shaper.
    Upstream,
    /// Processor.
    Processor,
    /// Burst too small for the rate, or packet loss on the path.
    Burst,
    /// No remaining delay.
    None,
    /// Not determined by the measurements.
    Unknown,
}

/// Origin of the remaining delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayAttribution {
    /// Location; `none` without a remaining delay.
    pub location: DelayOrigin,
    /// Affected direction; `null` for none.
    pub direction: Option<Direction>,
    /// Confidence.
    // High where the backlog of our leaves agrees, low where it contradicts.
    pub confidence: Confidence,
    /// Evidence.
    pub text: String,
}

/// Median delay above idle that needs an explanation.
const MIN_RISE: Duration = Duration::from_millis(10);
/// Share of the others' delay from which prioritised traffic is in the same queue.
const MIN_SHARED_QUEUE_SHARE: f64 = 0.5;
/// Share of the set rate below which the shaper misses its rate.
const MIN_CARRIED_SHARE: f64 = 0.9;
/// Share above which a processor is saturated.
const SATURATED_PROCESSOR: f64 = 0.85;

/// Median delays above idle of one loaded direction: prioritised and best effort.
#[derive(Clone, Copy)]
struct DelayRise {
    first: Option<Duration>,
    others: Duration,
    /// Backlog of our leaves, as a time at the set rate.
    own: Option<Duration>,
}

impl DelayAttribution {
    /// Attributes the delay of the direction where best effort is latest.
    pub(super) fn of(evidence: &ShaperEvidence) -> Self {
        let rises = DIRECTIONS.into_iter().filter_map(|direction| Some((direction, rise(evidence, direction)?)));
        let worst = rises.filter(|(_, rise)| rise.others > MIN_RISE).max_by_key(|(_, rise)| rise.others);
        match worst {
            Some((direction, rise)) => of_delay(direction, rise),
            None => DIRECTIONS.into_iter().find_map(|direction| of_rate(evidence, direction)).unwrap_or_else(no_delay),
        }
    }
}

fn rise(evidence: &ShaperEvidence, direction: Direction) -> Option<DelayRise> {
    let after = &evidence.after;
    let kind = if after.phase(loading_phase(direction)).is_some() { loading_phase(direction) } else { PhaseKind::Both };
    let median = |class| {
        let uplifts = FAMILIES.into_iter().filter_map(|family| after.uplift(kind, class, family));
        uplifts.map(|uplift| uplift.median.allow_zero()).max()
    };
    let backlog = after.phase(kind).and_then(|phase| phase.tree.of(direction).and_then(|tree| tree.largest_backlog));
    let own = backlog.zip(*evidence.set.of(direction)).and_then(|(backlog, set)| set.time_to_send(backlog));
    Some(DelayRise {
        first: median(LatencyClass::Icmp).max(median(LatencyClass::UdpExpeditedForwarding)),
        others: median(LatencyClass::UdpBestEffort)?,
        own,
    })
}

fn of_delay(direction: Direction, rise: DelayRise) -> DelayAttribution {
    let others = display::duration(rise.others);
    let explains = rise.own.map(|own| own >= rise.others.mul_f64(MIN_SHARED_QUEUE_SHARE));
    let agrees = |expected: bool| match explains {
        Some(explains) if explains == expected => Confidence::High,
        Some(_) => Confidence::Low,
        None => Confidence::Medium,
    };
    let (location, confidence, text) = match (rise.first, explains) {
        (Some(first), _) if first >= rise.others.mul_f64(MIN_SHARED_QUEUE_SHARE) => {
            let first = display::duration(first);
            let text = format!(
                "Prioritised probes ({first}) and best effort ({others}) are both late: the queue is behind our \
                                 shaper. Lower the rate."
            );
            (DelayOrigin::Upstream, agrees(false), text)
        }
        (Some(first), _) => {
            let first = display::duration(first);
            let text = format!(
                "Best effort is late ({others}) and prioritised probes are not ({first}): the queue is in a leaf of \
                                 our own."
            );
            (DelayOrigin::OwnLeaf, agrees(true), text)
        }
        (None, Some(true)) => (
            DelayOrigin::OwnLeaf,
            Confidence::Medium,
            format!("Best effort is late ({others}), and our leaves account for the delay."),
        ),
        (None, Some(false)) => (
            DelayOrigin::Upstream,
            Confidence::Medium,
            format!("Best effort is late ({others}), and our leaves account for less."),
        ),
        (None, None) => {
            let text =
                format!("Best effort is late ({others}); neither prioritised probes nor our leaves were measured.");
            (DelayOrigin::Unknown, Confidence::Low, text)
        }
    };
    DelayAttribution { location, direction: Some(direction), confidence, text }
}

/// Attributes a carried rate below the set one without delay, where the path has more capacity.
fn of_rate(evidence: &ShaperEvidence, direction: Direction) -> Option<DelayAttribution> {
    let set = (*evidence.set.of(direction))?;
    let share = realised(&evidence.after, direction, set).filter(|share| share.get() < MIN_CARRIED_SHARE)?;
    let could = realised(&evidence.before, direction, set).is_some_and(|share| share.get() >= MIN_CARRIED_SHARE);
    if !could {
        return None;
    }
    let processor = loaded(&evidence.after, direction).and_then(|phase| phase.processor);
    let share = display::percent(share);
    let (location, text) = match processor {
        Some(busy) if busy.get() > SATURATED_PROCESSOR => (
            DelayOrigin::Processor,
            format!("No delay, but only {share} of the rate is carried, and a processor was saturated."),
        ),
        _ => (
            DelayOrigin::Burst,
            format!("No delay, but only {share} of the rate is carried: the burst is too small, or packets are lost."),
        ),
    };
    let confidence = if processor.is_some() { Confidence::Medium } else { Confidence::Low };
    Some(DelayAttribution { location, direction: Some(direction), confidence, text })
}

fn no_delay() -> DelayAttribution {
    let text = "Load adds no relevant delay, and the rates are carried.".to_owned();
    DelayAttribution { location: DelayOrigin::None, direction: None, confidence: Confidence::Medium, text }
}
