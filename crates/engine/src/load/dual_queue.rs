//! Dual queue of the bottleneck in each loaded direction, from probes of three ECN codepoints.

use core::time::Duration;

use linerate_analysis::latency_under_load::{self as model, CodepointDelays, LatencyClass, MedianDelay};
use linerate_model::direction::Direction;
use linerate_model::load::{DualQueueFinding, PhaseKind};
use linerate_units::{Ratio, display};

use super::evidence::{CodepointArrivals, CountingWindow, LoadEvidence};
use super::summary::IdleBaseline;
use super::verdict;

/// The finding in a loaded direction; `None` without such a phase, and where the codepoints were not probed.
pub(super) fn find(evidence: &LoadEvidence, direction: Direction) -> Option<DualQueueFinding> {
    let arrivals = evidence.ect1?.of(direction);
    let window = window(evidence, direction)?;
    let of = |class| delays(evidence, class, window, direction);
    let delays = CodepointDelays {
        not_ect: of(LatencyClass::UdpBestEffort),
        ect0: of(LatencyClass::UdpEct0),
        ect1: of(LatencyClass::UdpEct1),
        ect1_intact: arrivals.intact(),
    };
    let finding = model::DualQueue::of(&delays);
    let median = |samples: &[Duration]| MedianDelay::of(samples);
    let all = [&delays.not_ect, &delays.ect0, &delays.ect1].map(|samples| median(samples));
    Some(DualQueueFinding {
        direction,
        finding,
        evidence: sentence(finding, all, arrivals),
        not_ect: all[0],
        ect0: all[1],
        ect1: all[2],
        ect1_intact: arrivals.intact().map(Ratio::get),
        ect1_marked: arrivals.marked().map(Ratio::get),
    })
}

/// The phase that loads this direction alone, else the one that loads both.
fn window(evidence: &LoadEvidence, direction: Direction) -> Option<CountingWindow> {
    let alone = match direction {
        Direction::Up => PhaseKind::Up,
        Direction::Down => PhaseKind::Down,
    };
    let of = |kind| evidence.phases.iter().find(|phase| phase.kind == kind)?.window;
    of(alone).or_else(|| of(PhaseKind::Both))
}

/// One-way delays above the smallest of the idle path.
fn delays(evidence: &LoadEvidence, class: LatencyClass, window: CountingWindow, direction: Direction) -> Vec<Duration> {
    let rest = verdict::rest(evidence, class);
    let delay = match direction {
        Direction::Up => IdleBaseline::delay_up,
        Direction::Down => IdleBaseline::delay_down,
    };
    let readings = evidence.class(class).map(|samples| samples.within(window)).unwrap_or_default();
    readings.iter().filter_map(|reading| delay(&rest, reading)).collect()
}

fn sentence(finding: model::DualQueue, all: [Option<MedianDelay>; 3], arrivals: CodepointArrivals) -> String {
    use model::DualQueue;
    let text = |delay: Option<MedianDelay>| {
        delay.map_or_else(|| "unknown".to_owned(), |delay| display::duration(delay.median))
    };
    let [not_ect, ect0, ect1] = all.map(text);
    match finding {
        DualQueue::Found => format!("dual queue: ECT(1) waits {ect1}, ECT(0) {ect0}, packets without ECN {not_ect}"),
        DualQueue::NotFound => {
            format!("no dual queue: ECT(1) waits {ect1}, ECT(0) {ect0}, packets without ECN {not_ect}")
        }
        DualQueue::TooFewProbes => {
            "cannot say: fewer than 20 probes of a codepoint were answered; measure longer (--time)".to_owned()
        }
        DualQueue::Ect1Changed if arrivals == CodepointArrivals::default() => {
            "cannot say: the far end does not report the codepoint on arrival".to_owned()
        }
        DualQueue::Ect1Changed => format!(
            "cannot say: {} of {} probes with ECT(1) arrive without it, so that the bottleneck may not have seen it; \
             `linerate path` shows what becomes of it",
            arrivals.changed,
            arrivals.all()
        ),
        DualQueue::NoQueue => format!(
            "cannot say: packets without ECN wait {not_ect}, so that there is no long queue to avoid (a queue for each \
             flow, or a load that does not fill the path)"
        ),
        DualQueue::Ambiguous => format!(
            "cannot say: ECT(1) waits {ect1}, ECT(0) {ect0}, packets without ECN {not_ect}, which is too close; measure \
             longer (--time)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::{ClassSamples, Ect1Arrivals, PhaseEvidence, ProbeFate, ProbeReading};
    use super::*;
    use linerate_units::MonotonicTime;

    const fn at(milliseconds: u64) -> MonotonicTime {
        MonotonicTime::from_nanos(milliseconds * 1_000_000)
    }

    fn phase(kind: PhaseKind, from: u64) -> PhaseEvidence {
        let window = Some(CountingWindow { from: at(from), to: at(from + 2000) });
        PhaseEvidence { window, ..PhaseEvidence::new(kind, at(from)) }
    }

    /// Forty probes in each of the phases idle and up; in the latter they wait so long on the way up.
    fn class(class: LatencyClass, wait: i64) -> ClassSamples {
        let probe = |sent: u64, up: i64| ProbeReading {
            sent: at(sent),
            fate: ProbeFate::Answered(Duration::from_millis(50)),
            up: Some(7_000_000_000 + up),
            down: Some(-6_900_000_000),
        };
        let idle = (0..40).map(|number| probe(number * 50, 0));
        let loaded = (0..40).map(|number| probe(3000 + number * 50, wait * 1_000_000));
        ClassSamples { class, readings: idle.chain(loaded).collect(), counts_losses: true }
    }

    fn evidence(waits: [i64; 3], ect1: Option<Ect1Arrivals>) -> LoadEvidence {
        let classes = [LatencyClass::UdpBestEffort, LatencyClass::UdpEct0, LatencyClass::UdpEct1];
        LoadEvidence {
            phases: vec![phase(PhaseKind::Idle, 0), phase(PhaseKind::Up, 3000)],
            classes: classes.into_iter().zip(waits).map(|(name, wait)| class(name, wait)).collect(),
            ect1,
            ..LoadEvidence::default()
        }
    }

    fn arrivals(unchanged: u64, marked: u64, changed: u64) -> Ect1Arrivals {
        let both = CodepointArrivals { unchanged, marked, changed };
        Ect1Arrivals { up: both, down: both }
    }

    #[test]
    fn the_delay_of_the_loaded_direction_decides() {
        let found = find(&evidence([15, 14, 1], Some(arrivals(70, 10, 0))), Direction::Up).expect("a phase up");
        assert_eq!(found.finding, model::DualQueue::Found);
        assert_eq!(found.evidence, "dual queue: ECT(1) waits 1.00 ms, ECT(0) 14.0 ms, packets without ECN 15.0 ms");
        assert_eq!(found.ect1.map(|delay| (delay.median, delay.probes)), Some((Duration::from_millis(1), 40)));
        assert_eq!((found.ect1_intact, found.ect1_marked), (Some(1.0), Some(0.125)));
        let none = find(&evidence([15, 15, 15], Some(arrivals(80, 0, 0))), Direction::Up).expect("a phase up");
        assert_eq!(none.finding, model::DualQueue::NotFound);
        assert!(none.evidence.starts_with("no dual queue: ECT(1) waits 15.0 ms"), "{}", none.evidence);
        assert_eq!(find(&evidence([15, 14, 1], Some(arrivals(80, 0, 0))), Direction::Down), None, "not loaded");
        assert_eq!(find(&evidence([15, 14, 1], None), Direction::Up), None, "not probed");
    }

    #[test]
    fn reasons_name_what_is_missing() {
        let reason = |waits, ect1| find(&evidence(waits, Some(ect1)), Direction::Up).expect("a phase up").evidence;
        assert!(reason([15, 15, 1], arrivals(0, 0, 80)).contains("80 of 80 probes with ECT(1) arrive without it"));
        assert!(reason([15, 15, 1], arrivals(0, 0, 0)).contains("does not report the codepoint"));
        assert!(reason([0, 0, 0], arrivals(80, 0, 0)).contains("a queue for each flow"));
    }
}
