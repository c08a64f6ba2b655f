//! The text of verifications that are made up: an access link of 10 Mbit/s up and 50 Mbit/s down.

use linerate_model::address_family::AddressFamily;
use linerate_model::direction::Direction;
use std::time::Duration;

use linerate_analysis::latency_under_load::{InterfaceTraffic, LatencyClass};
use linerate_documents::shape::VerificationOutcome;
use linerate_engine::probe::ProbeTarget;
use linerate_model::load::PhaseKind;
use linerate_operate::shaping::verify::{RateSearchRecord, RateTrial, VerificationResult, VerifyOutcome};
use linerate_report::throughput_text::{TerminalWidth, TextStyle};
use linerate_shape::verify::rate_search::{RateSearchResult, TrialUplift};
use linerate_shape::verify::{
    ClassDelays, PathMeasurement, PerDirection, PhaseMeasurement, PlanDifferenceKind, ReadBackDifference,
    ShaperEvidence, ShaperRequirements, verify,
};
use linerate_units::{BitRate, ByteCount, MonotonicTime, Port, Ratio};

use super::{summary, text};

const SECONDS: u64 = 25;

fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

fn is_loaded(kind: PhaseKind, flow: Direction) -> bool {
    kind == PhaseKind::Both || kind == if flow == Direction::Up { PhaseKind::Up } else { PhaseKind::Down }
}

/// Round trips of 20 ms and a little jitter; with load, this much more.
fn class(class: LatencyClass, family: AddressFamily, kind: PhaseKind, added: Duration) -> ClassDelays {
    let added = if kind == PhaseKind::Idle { Duration::ZERO } else { added };
    let round_trip = |number: u64| Duration::from_micros(20_000 + number * 37 % 900) + added;
    let at = |number: u64| MonotonicTime::from_nanos(number * 50_000_000);
    let round_trips = (0..SECONDS * 20).map(|number| (at(number), round_trip(number))).collect();
    ClassDelays { class, family, round_trips, one_way: None }
}

fn phase(kind: PhaseKind, added: Duration) -> PhaseMeasurement {
    let time = Duration::from_secs(SECONDS);
    let each = |flow| {
        let carried = if flow == Direction::Up { 9.0 } else { 45.0 };
        is_loaded(kind, flow).then(|| megabits(carried))
    };
    let traffic = |flow| {
        let own: ByteCount = each(flow).unwrap_or(megabits(0.05)) * time;
        Some(InterfaceTraffic { counted: own, own, time })
    };
    let classes = [AddressFamily::Ipv4, AddressFamily::Ipv6].into_iter().flat_map(|family| {
        [LatencyClass::Icmp, LatencyClass::UdpBestEffort, LatencyClass::UdpExpeditedForwarding]
            .map(|one| class(one, family, kind, added))
    });
    PhaseMeasurement {
        kind,
        classes: classes.collect(),
        goodput: PerDirection { up: each(Direction::Up), down: each(Direction::Down) },
        traffic: PerDirection { up: traffic(Direction::Up), down: traffic(Direction::Down) },
        tree: PerDirection::default(),
        processor: Ratio::new(0.3),
    }
}

fn measurement(added: Duration) -> PathMeasurement {
    let kinds = [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];
    PathMeasurement { phases: kinds.into_iter().map(|kind| phase(kind, added)).collect() }
}

/// A verification in which load adds this with the shaper, and what is active differs so from the plan.
fn outcome_with(added: Duration, before_again: bool, differences: Vec<ReadBackDifference>) -> VerifyOutcome {
    let deep = Duration::from_millis(300);
    let evidence = ShaperEvidence {
        before: measurement(deep),
        after: measurement(added),
        before_again: before_again.then(|| measurement(deep)),
        set: PerDirection { up: Some(megabits(9.5)), down: Some(megabits(47.5)) },
        predicted: PerDirection::default(),
        differences,
        profile: ShaperRequirements::default(),
        seed: 1,
    };
    let verification = verify(&evidence);
    let ended = if verification.pass { VerificationOutcome::Passed } else { VerificationOutcome::Failed };
    VerifyOutcome {
        target: ProbeTarget::new("far", Port::IPERF3),
        end: ended,
        is_active: verification.pass,
        result: Some(VerificationResult { evidence, verification }),
        abort_reason: None,
        search: None,
        families: vec![AddressFamily::Ipv4, AddressFamily::Ipv6],
        congestion_control: Some("cubic".to_owned()),
        load_time: Duration::from_secs(SECONDS),
        duration: Duration::from_secs(270),
        notes: vec![
            "a note that is long enough to be broken into several lines of the terminal, as it has to be".into(),
        ],
    }
}

fn outcome(added: Duration, before_again: bool) -> VerifyOutcome {
    outcome_with(added, before_again, Vec::new())
}

/// The text, no line of which is wider than a terminal.
fn told(outcome: &VerifyOutcome) -> String {
    let text = text(outcome, TextStyle::plain());
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{line:?} of\n{text}");
    }
    text
}

#[test]
fn delays_rates_and_confidence_are_shown() {
    let text = told(&outcome(Duration::from_millis(3), true));
    assert!(text.starts_with("The shaper "), "{text}");
    for part in ["UDP best effort (IPv6)", "rate set", "Confidence: ", "and without again", "Note: "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(told(&outcome(Duration::from_millis(3), false)).contains("once each"));
}

#[test]
fn the_summary_fits_and_has_the_deciding_figures() {
    for width in [60, 80] {
        let style = TextStyle { width: TerminalWidth::new(width), ..TextStyle::plain() };
        for outcome in [outcome(Duration::from_millis(1), true), outcome(Duration::from_millis(90), true)] {
            let text = summary(&outcome, 10, style);
            assert!(text.lines().count() <= 10, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            assert!(text.contains("  loaded up ") && text.contains("Goodput down "), "{text}");
        }
    }
}

#[test]
fn findings_say_whether_they_fail() {
    let text = told(&outcome(Duration::from_millis(280), false));
    assert!(text.contains("Noted: ") && text.contains("after 280 ms]") && text.contains("Remaining delay: "), "{text}");
    let text = "class 1:10 has 5 Mbit/s instead of 9 Mbit/s".to_owned();
    let difference = ReadBackDifference { kind: PlanDifferenceKind::OtherRate, direction: Direction::Up, text };
    let text = told(&outcome_with(Duration::from_millis(3), false, vec![difference]));
    assert!(text.contains("Fails: ") && text.contains("The previous configuration is restored."), "{text}");
}

#[test]
fn a_search_is_shown_step_by_step() {
    let rates = PerDirection { up: Some(megabits(9.0)), down: Some(megabits(45.0)) };
    let found = |rate| Some(RateSearchResult::Highest { rate, share: Ratio::new(0.9).expect("a share") });
    let search = RateSearchRecord {
        capacity: PerDirection { up: Some(megabits(10.0)), down: Some(megabits(50.0)) },
        measured: true,
        largest: Duration::from_millis(30),
        steps: vec![RateTrial {
            number: 1,
            rates,
            added: TrialUplift::RoundTrip(Duration::from_millis(4)),
            goodput: rates,
            good: PerDirection { up: Some(true), down: Some(false) },
        }],
        found: PerDirection { up: found(megabits(9.0)), down: found(megabits(45.0)) },
    };
    let text = told(&VerifyOutcome { search: Some(search), ..outcome(Duration::from_millis(3), true) });
    assert!(text.contains("Trials, below 10"), "{text}");
    assert!(text.contains("   1. up ") && text.contains("too late"), "{text}");
}
