//! The course with a line and a shaper that are made up: what is done in which order, what is found, and what is left.

mod fake;
mod loopback;

use linerate_model::schema::shape::{ShapeVerification, VerificationOutcome};
use linerate_report::throughput_text::Style;
use linerate_shape::verify::margin::Found;
use linerate_shape::verify::{Both, Confidence, Family, Kind, Place};

use self::fake::{FakeBench, FakeShaped, Fault, megabits, settings};
use super::course::prove;
use super::find_rate::find;
use super::{Part, Proof, VerifyEvent, VerifyOutcome, text};
use crate::cmd::shape::error::ShapeError;
use crate::exit::Exit;

fn proven(shaped: &mut FakeShaped, bench: &mut FakeBench, quick: bool) -> Result<VerifyOutcome, ShapeError> {
    prove(shaped, &settings(quick), bench, &mut |_| {})
}

fn with(fault: Fault) -> (VerifyOutcome, FakeShaped) {
    let differs = fault == Fault::ReadBack;
    let mut shaped = FakeShaped { differs, ..FakeShaped::new(9.5, 47.5) };
    let outcome = proven(&mut shaped, &mut FakeBench::new(fault), false).expect("it comes to an end");
    (outcome, shaped)
}

fn proof(outcome: &VerifyOutcome) -> &Proof {
    outcome.proof.as_ref().expect("judged")
}

/// No line is wider than a terminal, and the document is read again as it was written.
fn can_be_told(outcome: &VerifyOutcome) -> (String, ShapeVerification) {
    let text = text(outcome, Style::plain());
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{line:?} of\n{text}");
    }
    let document = outcome.document();
    let written = serde_json::to_string(&document).expect("JSON");
    assert_eq!(serde_json::from_str::<ShapeVerification>(&written).expect("the same shape"), document);
    (text, document)
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// It did not pass, and what was there before is back.
fn fails_by(fault: Fault, kind: Kind) -> VerifyOutcome {
    let (outcome, shaped) = with(fault);
    let judged = &proof(&outcome).verification;
    assert!(judged.found(kind), "{fault:?}: {:#?}", judged.findings);
    assert_eq!(
        (outcome.ended, outcome.stands, shaped.stands),
        (VerificationOutcome::Failed, false, false),
        "{fault:?}"
    );
    assert_eq!(outcome.exit(), Exit::RolledBack);
    let (text, document) = can_be_told(&outcome);
    assert!(in_one_line(&text).contains("What was there before is back."), "{text}");
    assert!(document.findings.iter().any(|finding| finding.kind == kind.name() && finding.fails == kind.fails()));
    outcome
}

#[test]
fn a_shaper_that_works_stands_afterwards() {
    let (outcome, shaped) = with(Fault::None);
    let judged = &proof(&outcome).verification;
    assert!(judged.pass && judged.findings.is_empty(), "{:#?}", judged.findings);
    assert_eq!(judged.confidence, Confidence::High);
    assert_eq!((outcome.ended, outcome.stands, shaped.stands), (VerificationOutcome::Passed, true, true));
    assert_eq!((outcome.exit(), &*outcome.families), (Exit::Success, &[Family::Four, Family::Six][..]));
    let done = "set_up renew take_down set_up renew";
    assert_eq!(shaped.log.join(" "), done);
    let (text, document) = can_be_told(&outcome);
    assert!(text.starts_with("The shaper works: load added up to 3"), "{text}");
    assert!(text.contains("UDP best effort (IPv6)") && text.contains("rate set"), "{text}");
    // Three loads, four classes, two families; two directions alone and both together.
    assert_eq!((document.delays.len(), document.rates.len(), document.phases.len()), (24, 4, 4));
    assert_eq!((document.drift, document.measured_again, document.stands), (Some(false), true, true));
    let down = &document.phases[1].down;
    assert!(down.tree_bytes == down.interface_bytes && down.tree_bytes.is_some(), "{down:?}");
    assert_eq!(document.delays[2].grade_with.as_deref(), Some("A+"));
}

#[test]
fn quick_measures_without_it_only_once() {
    let mut shaped = FakeShaped::new(9.5, 47.5);
    let mut bench = FakeBench::new(Fault::None);
    let outcome = proven(&mut shaped, &mut bench, true).expect("it comes to an end");
    assert_eq!((bench.measured, outcome.ended), (2, VerificationOutcome::Passed));
    assert_eq!(shaped.log.join(" "), "set_up renew");
    assert!(shaped.stands);
    assert_eq!(proof(&outcome).verification.confidence, Confidence::Medium);
    let (text, document) = can_be_told(&outcome);
    assert!(text.contains("once each") && document.drift.is_none() && !document.measured_again, "{text}");
}

#[test]
fn one_that_stands_already_is_taken_down_first() {
    let mut shaped = FakeShaped { stands: true, ..FakeShaped::new(9.5, 47.5) };
    let mut parts = Vec::new();
    let outcome = prove(&mut shaped, &settings(true), &mut FakeBench::new(Fault::None), &mut |event| match event {
        VerifyEvent::Measuring(part) => parts.push(format!("{part:?}")),
        VerifyEvent::TakenDown => parts.push("down".to_owned()),
        VerifyEvent::Standing(differences) => parts.push(format!("up {}", differences.len())),
        _ => {}
    });
    assert!(outcome.is_ok_and(|outcome| outcome.stands));
    assert_eq!(parts, ["down", "Without", "up 0", "With"]);
    assert_eq!(format!("{:?}", Part::With), "With");
}

/// Each way in which a shaper silently does nothing, from what a measurement reads.
#[test]
fn what_silently_does_nothing_is_found_out() {
    let outcome = fails_by(Fault::NoRedirect, Kind::NoRedirect);
    assert!(!proof(&outcome).verification.found(Kind::WrongInterface));
    fails_by(Fault::Bypassed, Kind::Bypassed);
    let outcome = fails_by(Fault::WrongInterface, Kind::WrongInterface);
    // Where load passes by the trees, the delay that is left says nothing of the rate.
    let (text, document) = can_be_told(&outcome);
    assert!(!text.contains("What is left") && document.attribution.is_none(), "{text}");
    fails_by(Fault::Swapped, Kind::RatesSwapped);
    fails_by(Fault::Ipv6, Kind::Ipv6Unshaped);
    let outcome = fails_by(Fault::OnlyPrioritised, Kind::OnlyPrioritisedBetter);
    assert_eq!(proof(&outcome).verification.attribution.place, Place::OwnLeaf);
    let (text, _) = can_be_told(&outcome);
    assert!(text.contains("What is left: "), "{text}");
    fails_by(Fault::Contaminated, Kind::Contaminated);
    let outcome = fails_by(Fault::Drift, Kind::Drift);
    assert_eq!(outcome.document().drift, Some(true));
    fails_by(Fault::ReadBack, Kind::TreeDiffers);
}

#[test]
fn a_rate_above_the_line_is_found_out() {
    let mut shaped = FakeShaped::new(9.5, 60.0);
    let outcome = proven(&mut shaped, &mut FakeBench::new(Fault::None), false).expect("it comes to an end");
    let judged = &proof(&outcome).verification;
    let above: Vec<_> = judged.findings.iter().filter(|one| one.kind == Kind::AboveTheLine).collect();
    assert_eq!(above.len(), 1, "{:#?}", judged.findings);
    assert_eq!(above[0].direction, Some(linerate_model::throughput::Flow::Down));
    assert_eq!((judged.attribution.place, shaped.stands), (Place::Upstream, false));
}

#[test]
fn a_redirect_to_a_device_that_is_down_is_not_tried() {
    let outcome = fails_by(Fault::TargetDown, Kind::RedirectTargetDown);
    assert!(outcome.broke_off.is_some() && proof(&outcome).evidence.after.phases.is_empty());
    let mut bench = FakeBench::new(Fault::TargetDown);
    proven(&mut FakeShaped::new(9.5, 47.5), &mut bench, true).expect("it comes to an end");
    assert_eq!(bench.measured, 1, "only without it");
}

#[test]
fn a_path_that_is_cut_off_is_a_result() {
    let (outcome, shaped) = with(Fault::Dead);
    assert_eq!((outcome.ended, shaped.stands), (VerificationOutcome::Failed, false));
    let (text, document) = can_be_told(&outcome);
    assert!(text.starts_with("The shaper cuts the path off"), "{text}");
    assert!(document.broke_off.is_some_and(|reason| reason.contains("gone")));
}

#[test]
fn whenever_it_is_interrupted_the_old_state_is_back() {
    for at in 1..=3 {
        let mut shaped = FakeShaped::new(9.5, 47.5);
        let mut bench = FakeBench { interrupted_at: Some(at), ..FakeBench::new(Fault::None) };
        let outcome = proven(&mut shaped, &mut bench, false).expect("no error");
        assert_eq!(
            (outcome.ended, shaped.stands, bench.measured),
            (VerificationOutcome::Interrupted, false, at),
            "{at}"
        );
        assert_eq!(outcome.exit(), Exit::Partial);
        let (text, _) = can_be_told(&outcome);
        assert_eq!(in_one_line(&text), "The proof was interrupted. What was there before is back.");
    }
}

#[test]
fn without_a_server_nothing_is_touched() {
    let mut shaped = FakeShaped::new(9.5, 47.5);
    let error = proven(&mut shaped, &mut FakeBench::new(Fault::NoServer), false).expect_err("nobody there");
    assert!(error.text.contains("far") && error.advice.is_some_and(|way| way.contains("linerate serve")));
    assert!(shaped.log.is_empty(), "{:?}", shaped.log);
}

#[test]
fn what_cannot_be_set_up_again_does_not_pass() {
    for (fails_at, word) in [(1, "set up"), (2, "set up")] {
        let mut shaped = FakeShaped { fails_at: Some(fails_at), ..FakeShaped::new(9.5, 47.5) };
        let error = proven(&mut shaped, &mut FakeBench::new(Fault::None), false).expect_err("refused");
        assert!(error.text.contains(word) && !shaped.stands, "{error:?}");
    }
}

#[test]
fn the_highest_rates_are_found_and_proven() {
    let mut shaped = FakeShaped::new(1.0, 1.0);
    let mut bench = FakeBench::new(Fault::None);
    let mut steps = 0;
    let outcome = find(&mut shaped, Both::default(), &settings(true), &mut bench, &mut |event| {
        steps += usize::from(matches!(event, VerifyEvent::Step(_)));
    });
    let outcome = outcome.expect("found");
    assert_eq!((outcome.ended, shaped.stands), (VerificationOutcome::Passed, true));
    let searched = outcome.search.as_ref().expect("a search");
    assert!(searched.measured && searched.steps.len() == steps && (2..=12).contains(&steps), "{steps}");
    for (found, capacity, set) in
        [(searched.found.up, 10.0, shaped.line.up), (searched.found.down, 50.0, shaped.line.down)]
    {
        let Some(Found::Highest { rate, .. }) = found else { panic!("{found:?}") };
        // The line of the fake takes 99 % of its rate; the search goes down to a percent and a half.
        assert!(rate <= megabits(capacity * 0.99) && rate >= megabits(capacity * 0.96), "{rate:?} of {capacity}");
        assert_eq!(set, Some(rate), "proven with what was found");
    }
    // Without a shaper, the trials, and the proof.
    assert_eq!(bench.measured, 1 + u32::try_from(steps).expect("few") + 2);
    let (text, document) = can_be_told(&outcome);
    assert!(
        text.contains("Rates that were tried, below 9.9") && text.contains("The highest rates that pass"),
        "{text}"
    );
    let search = document.search.expect("a search");
    assert!(search.steps.iter().all(|step| step.one_way && step.good_up.is_some()));
    assert!(search.up.is_some_and(|found| found.good && found.share.is_some_and(|share| share > 0.96)));
}

#[test]
fn a_direction_without_a_given_rate_is_left_alone() {
    let mut shaped = FakeShaped::new(9.0, 9.0);
    shaped.line.up = None;
    let mut bench = FakeBench::new(Fault::None);
    let given = Both { up: None, down: Some(megabits(60.0)) };
    let outcome = find(&mut shaped, given, &settings(true), &mut bench, &mut |_| {}).expect("found");
    let searched = outcome.search.as_ref().expect("a search");
    assert!(!searched.measured && searched.found.up.is_none() && searched.capacity == given, "{searched:?}");
    let Some(Found::Highest { rate, .. }) = searched.found.down else { panic!("{searched:?}") };
    // 49.5 of 60 are 82.5 %.
    assert!(rate <= megabits(49.5) && rate >= megabits(49.5 - 60.0 * 0.015), "{rate:?}");
    assert!(searched.steps.iter().all(|step| step.rates.up.is_none() && step.good.up.is_none()));
    assert_eq!((shaped.line.up, shaped.line.down), (None, Some(rate)));
    can_be_told(&outcome);
}

#[test]
fn where_nothing_is_good_enough_the_old_state_is_back() {
    let mut shaped = FakeShaped::new(1.0, 1.0);
    // Whatever the rate is, received packets pass by the shaper.
    let mut bench = FakeBench::new(Fault::Bypassed);
    let outcome = find(&mut shaped, Both::default(), &settings(false), &mut bench, &mut |_| {}).expect("an answer");
    assert_eq!((outcome.ended, shaped.stands, outcome.stands), (VerificationOutcome::NoRate, false, false));
    assert_eq!((outcome.exit(), outcome.proof.is_none()), (Exit::RolledBack, true));
    let (text, document) = can_be_told(&outcome);
    assert!(text.starts_with("No rate was good enough: at "), "{text}");
    assert!(document.search.and_then(|search| search.down).is_some_and(|down| !down.good && down.share.is_none()));
}

#[test]
fn a_search_that_is_interrupted_leaves_nothing() {
    for at in [1, 2, 4] {
        let mut shaped = FakeShaped::new(1.0, 1.0);
        let mut bench = FakeBench { interrupted_at: Some(at), ..FakeBench::new(Fault::None) };
        let outcome = find(&mut shaped, Both::default(), &settings(true), &mut bench, &mut |_| {}).expect("no error");
        assert_eq!((outcome.ended, shaped.stands), (VerificationOutcome::Interrupted, false), "{at}");
        can_be_told(&outcome);
    }
}

/// On a slow line one packet takes longer than the delay that is asked.
#[test]
fn on_a_slow_line_the_search_asks_for_what_is_possible() {
    let mut shaped = FakeShaped::new(0.1, 0.1);
    let mut bench = FakeBench { capacity: Both { up: 0.25, down: 1.0 }, ..FakeBench::new(Fault::None) };
    let outcome = find(&mut shaped, Both::default(), &settings(true), &mut bench, &mut |_| {}).expect("an answer");
    let searched = outcome.search.expect("a search");
    // Two full packets of 1514 bytes at a quarter of a megabit are 97 ms.
    assert!(searched.largest.as_millis() >= 97, "{:?}", searched.largest);
    assert!(outcome.notes.iter().any(|note| note.contains("own packets")), "{:?}", outcome.notes);
}
