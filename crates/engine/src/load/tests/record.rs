//! State of a measurement: events, notes, and how it ends.

use core::time::Duration;

use linerate_model::load::PhaseKind;
use linerate_units::{BitRate, ByteCount};

use crate::tests::support::endings;

use super::super::record::LoadRecord;
use super::super::{LoadEvent, LoadTestOptions, stage};
use super::options;

#[test]
fn the_expected_time_is_that_of_the_phases() {
    let seconds = Duration::from_secs;
    let defaults = options();
    let capacity = Some(BitRate::from_bits_per_second(2e6));
    let idle = LoadTestOptions { phases: vec![PhaseKind::Idle], capacity, ..options() };
    let none = LoadTestOptions { phases: Vec::new(), ..options() };
    let short_ramp =
        LoadTestOptions { ramp_limit: seconds(2), phases: vec![PhaseKind::Up, PhaseKind::Both], ..options() };
    for (options, usual, most) in [
        // 6 s, and three times 5 + 10 + 1 s, or 20 + 10 + 15 s.
        (defaults, 6 + 3 * 16, 6 + 3 * 45),
        (idle, 6, 6),
        (none, 0, 0),
        (short_ramp, 2 * (2 + 10 + 1), 2 * (2 + 10 + 15)),
    ] {
        assert_eq!(options.expected_time(), (seconds(usual), seconds(most)), "{:?}", options.phases);
        let mut events = Vec::new();
        let mut observer = |event: &LoadEvent| events.push(event.clone());
        LoadRecord::new(&options, None, &mut observer).announce();
        let capacity = options.capacity;
        assert_eq!(events, [LoadEvent::Announcement { usual: seconds(usual), most: seconds(most), capacity }]);
    }
}

#[test]
fn notes_and_phases_are_reported_once_and_in_order() {
    let options = options();
    let mut events = Vec::new();
    let mut observer = |event: &LoadEvent| events.push(event.clone());
    let mut record = LoadRecord::new(&options, None, &mut observer);
    assert!(record.current().is_none());
    record.phase(PhaseKind::Idle);
    record.note("one");
    record.note("one");
    record.phase(PhaseKind::Up);
    record.note("two");
    assert_eq!(record.current().map(|phase| phase.kind), Some(PhaseKind::Up));
    assert_eq!(record.document.notes, ["one", "two"]);
    let note = |text: &str| LoadEvent::Note(text.to_owned());
    assert_eq!(events, [LoadEvent::Phase(PhaseKind::Idle), note("one"), LoadEvent::Phase(PhaseKind::Up), note("two")]);
}

#[test]
fn each_ending_keeps_the_phases_so_far() {
    for (result, outcome, error) in endings() {
        let options = options();
        let mut ignore = |_: &LoadEvent| {};
        let mut record = LoadRecord::new(&options, None, &mut ignore);
        record.phase(PhaseKind::Idle);
        record.phase(PhaseKind::Down);
        record.sent += ByteCount::new(7);
        record.unknown("congestion_control", "first");
        record.unknown("congestion_control", "second");
        let finished = record.finish(result);
        assert_eq!((finished.document.termination.outcome(), &finished.error), (outcome, &error));
        assert_eq!(finished.document.termination.message(), error.map(|error| error.to_string()).as_deref());
        let names: Vec<&str> = finished.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["idle", "down"]);
        assert!(finished.phases.iter().all(|phase| phase.start_ns <= phase.end_ns));
        assert!(finished.phases[1].end_ns <= finished.document.duration_ns);
        assert!(finished.readings.phases.is_empty(), "none of them counted");
        assert_eq!(finished.sent, ByteCount::new(7));
        let reasons: Vec<&str> = finished
            .document
            .unknown
            .iter()
            .filter(|unknown| unknown.key == "congestion_control")
            .map(|unknown| unknown.reason.as_str())
            .collect();
        assert_eq!(reasons, ["first"]);
    }
}

#[test]
fn new_connections_are_estimated_generously() {
    let mut ignore = |_: &LoadEvent| {};
    let options = options();
    let record = LoadRecord::new(&options, None, &mut ignore);
    let estimate = |time| stage::foreign_traffic(&record, time);
    assert_eq!(estimate(Duration::ZERO), ByteCount::ZERO);
    let second = estimate(Duration::from_secs(1));
    assert!(second.get() >= 2000 && second.get().is_multiple_of(2000), "{second}");
    assert_eq!(estimate(Duration::from_secs(10)), second * 10);
    let mut ignore = |_: &LoadEvent| {};
    let options = LoadTestOptions { foreign_probes: false, ..options.clone() };
    let record = LoadRecord::new(&options, None, &mut ignore);
    assert_eq!(stage::foreign_traffic(&record, Duration::from_secs(10)), ByteCount::ZERO);
}
