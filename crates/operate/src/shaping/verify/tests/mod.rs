//! The procedure with a simulated link and shaper: order of steps, findings, and final state.

mod fake;
mod loopback;

use core::time::Duration;
use linerate_analysis::latency_under_load::LatencyGrade;
use linerate_documents::shape::{ShapeVerification, VerificationOutcome};
use linerate_model::address_family::AddressFamily;
use linerate_model::diagnosis::Confidence;
use linerate_model::direction::Direction;
use linerate_shape::verify::rate_search::RateSearchResult;
use linerate_shape::verify::{DelayOrigin, FindingKind, PerDirection, ShaperFinding, ShaperRequirements};

use crate::shaping::error::ShapeError;

use self::fake::{FakeMeasurer, FakeShaper, QueueingFault, megabits, settings};
use super::find_rate::find;
use super::procedure::{judged, prove};
use super::{MeasurementPart, VerificationResult, VerifyEvent, VerifyOutcome};

fn proven(shaped: &mut FakeShaper, bench: &mut FakeMeasurer, quick: bool) -> Result<VerifyOutcome, ShapeError> {
    prove(shaped, &settings(quick), bench, &mut |_| {})
}

fn with(fault: QueueingFault) -> (VerifyOutcome, FakeShaper) {
    let differs = fault == QueueingFault::ReadBack;
    let mut shaped = FakeShaper { differs, ..FakeShaper::new(9.5, 47.5) };
    let outcome = proven(&mut shaped, &mut FakeMeasurer::new(fault), false).expect("completed");
    (outcome, shaped)
}

fn proof(outcome: &VerifyOutcome) -> &VerificationResult {
    outcome.result.as_ref().expect("judged")
}

/// The sentence of the document, which is read again as it was written.
fn can_be_told(outcome: &VerifyOutcome) -> (String, ShapeVerification) {
    let document = outcome.document();
    let written = serde_json::to_string(&document).expect("JSON");
    assert_eq!(serde_json::from_str::<ShapeVerification>(&written).expect("the same shape"), document);
    (document.sentence.clone(), document)
}

/// Checks that it did not pass and that the previous state is restored.
fn fails_by(fault: QueueingFault, kind: FindingKind) -> VerifyOutcome {
    let (outcome, shaped) = with(fault);
    let judged = &proof(&outcome).verification;
    assert!(judged.found(kind), "{fault:?}: {:#?}", judged.findings);
    assert_eq!(
        (outcome.end, outcome.is_active, shaped.stands),
        (VerificationOutcome::Failed, false, false),
        "{fault:?}"
    );
    let (text, document) = can_be_told(&outcome);
    assert!(text.contains("The previous configuration is restored."), "{text}");
    assert!(document.findings.iter().any(|finding| finding.kind == kind && finding.fails == kind.fails()));
    outcome
}

#[test]
fn a_working_shaper_is_active_afterwards() {
    let (outcome, shaped) = with(QueueingFault::None);
    let judged = &proof(&outcome).verification;
    assert!(judged.pass && judged.findings.is_empty(), "{:#?}", judged.findings);
    assert_eq!(judged.confidence, Confidence::High);
    assert_eq!((outcome.end, outcome.is_active, shaped.stands), (VerificationOutcome::Passed, true, true));
    assert_eq!(&*outcome.families, &[AddressFamily::Ipv4, AddressFamily::Ipv6][..]);
    let done = "set_up renew take_down set_up renew";
    assert_eq!(shaped.log.join(" "), done);
    let (text, document) = can_be_told(&outcome);
    assert!(text.starts_with("The shaper works: load added up to 3"), "{text}");
    // Three loads, four classes, two families; two directions alone and both together.
    assert_eq!((document.delays.len(), document.rates.len(), document.phases.len()), (24, 4, 4));
    assert_eq!((document.drift, document.measured_again, document.is_active), (Some(false), true, true));
    let down = &document.phases[1].down;
    assert!(down.tree_bytes == down.interface_bytes && down.tree_bytes.is_some(), "{down:?}");
    assert_eq!(document.delays[2].grade_with, Some(LatencyGrade::APlus));
}

#[test]
fn a_limit_that_is_missed_is_not_passed() {
    let mut shaped = FakeShaper::new(9.5, 47.5);
    let mut settings = settings(true);
    settings.profile.largest_uplift = Duration::from_nanos(1);
    let mut outcome_when_asked = |is_asked| {
        settings.profile.is_uplift_asked = is_asked;
        let outcome = prove(&mut shaped, &settings, &mut FakeMeasurer::new(QueueingFault::None), &mut |_| {});
        outcome.expect("completed")
    };
    let asked = outcome_when_asked(true);
    assert_eq!((asked.end, asked.is_active), (VerificationOutcome::DelayAboveLimit, true));
    assert!(can_be_told(&asked).0.starts_with("The shaper works, but misses --max-added. "));
    assert_eq!(outcome_when_asked(false).end, VerificationOutcome::Passed);
}

#[test]
fn few_samples_blame_no_shaper() {
    let (mut outcome, _) = with(QueueingFault::None);
    let finding = |kind, words: &str| ShaperFinding { kind, direction: None, figures: vec![], words: words.into() };
    let few = finding(FindingKind::TooFewSamples, "Too few seconds were measured.");
    let other = finding(FindingKind::NoRedirect, "Nothing is redirected.");
    let verdict = &mut outcome.result.as_mut().expect("measured").verification;
    (verdict.pass, verdict.findings) = (false, vec![few.clone()]);
    assert_eq!(judged(verdict, ShaperRequirements::default()), VerificationOutcome::Inconclusive);
    verdict.findings.push(other);
    assert_eq!(judged(verdict, ShaperRequirements::default()), VerificationOutcome::Failed);
    verdict.findings = vec![few];
    outcome.end = VerificationOutcome::Inconclusive;
    assert!(can_be_told(&outcome).0.starts_with("The measurement does not suffice for a verdict. Too few seconds"));
}

#[test]
fn quick_measures_without_it_only_once() {
    let mut shaped = FakeShaper::new(9.5, 47.5);
    let mut bench = FakeMeasurer::new(QueueingFault::None);
    let outcome = proven(&mut shaped, &mut bench, true).expect("completed");
    assert_eq!((bench.measured, outcome.end), (2, VerificationOutcome::Passed));
    assert_eq!(shaped.log.join(" "), "set_up renew");
    assert!(shaped.stands);
    assert_eq!(proof(&outcome).verification.confidence, Confidence::Medium);
    let (_, document) = can_be_told(&outcome);
    assert!(document.drift.is_none() && !document.measured_again, "{document:?}");
}

#[test]
fn an_active_shaper_is_removed_first() {
    let mut shaped = FakeShaper { stands: true, ..FakeShaper::new(9.5, 47.5) };
    let mut parts = Vec::new();
    let outcome =
        prove(&mut shaped, &settings(true), &mut FakeMeasurer::new(QueueingFault::None), &mut |event| match event {
            VerifyEvent::Measuring(part) => parts.push(format!("{part:?}")),
            VerifyEvent::Removed => parts.push("down".to_owned()),
            VerifyEvent::ReadBack(differences) => parts.push(format!("up {}", differences.len())),
            _ => {}
        });
    assert!(outcome.is_ok_and(|outcome| outcome.is_active));
    assert_eq!(parts, ["down", "Without", "up 0", "With"]);
    assert_eq!(format!("{:?}", MeasurementPart::With), "With");
}

/// Each silent failure of a shaper, from its measurements.
#[test]
fn silent_failures_are_detected() {
    let outcome = fails_by(QueueingFault::NoRedirect, FindingKind::NoRedirect);
    assert!(!proof(&outcome).verification.found(FindingKind::WrongInterface));
    fails_by(QueueingFault::Bypassed, FindingKind::Bypassed);
    let outcome = fails_by(QueueingFault::WrongInterface, FindingKind::WrongInterface);
    // Where load passes by the trees, the delay that is left says nothing of the rate.
    let (_, document) = can_be_told(&outcome);
    assert!(document.attribution.is_none(), "{document:?}");
    fails_by(QueueingFault::Swapped, FindingKind::RatesSwapped);
    fails_by(QueueingFault::Ipv6, FindingKind::Ipv6Unshaped);
    let outcome = fails_by(QueueingFault::OnlyPrioritised, FindingKind::OnlyPrioritisedBetter);
    assert_eq!(proof(&outcome).verification.attribution.location, DelayOrigin::OwnLeaf);
    assert!(can_be_told(&outcome).1.attribution.is_some());
    fails_by(QueueingFault::Contaminated, FindingKind::Contaminated);
    let outcome = fails_by(QueueingFault::Drift, FindingKind::Drift);
    assert_eq!(outcome.document().drift, Some(true));
    fails_by(QueueingFault::ReadBack, FindingKind::TreeDiffers);
}

#[test]
fn a_rate_above_the_capacity_is_detected() {
    let mut shaped = FakeShaper::new(9.5, 60.0);
    let outcome = proven(&mut shaped, &mut FakeMeasurer::new(QueueingFault::None), false).expect("completed");
    let judged = &proof(&outcome).verification;
    let above: Vec<_> = judged.findings.iter().filter(|one| one.kind == FindingKind::RateAboveCapacity).collect();
    assert_eq!(above.len(), 1, "{:#?}", judged.findings);
    assert_eq!(above[0].direction, Some(Direction::Down));
    assert_eq!((judged.attribution.location, shaped.stands), (DelayOrigin::Upstream, false));
}

#[test]
fn a_redirect_to_a_device_that_is_down_is_not_tried() {
    let outcome = fails_by(QueueingFault::TargetDown, FindingKind::RedirectTargetDown);
    assert!(outcome.abort_reason.is_some() && proof(&outcome).evidence.after.phases.is_empty());
    let mut bench = FakeMeasurer::new(QueueingFault::TargetDown);
    proven(&mut FakeShaper::new(9.5, 47.5), &mut bench, true).expect("completed");
    assert_eq!(bench.measured, 1, "only without it");
}

#[test]
fn a_path_that_is_cut_off_is_a_result() {
    let (outcome, shaped) = with(QueueingFault::Dead);
    assert_eq!((outcome.end, shaped.stands), (VerificationOutcome::Failed, false));
    let (text, document) = can_be_told(&outcome);
    assert!(text.starts_with("The shaper cuts the path off"), "{text}");
    assert!(document.abort_reason.is_some_and(|reason| reason.contains("gone")));
}

#[test]
fn an_interrupt_restores_the_previous_state() {
    for at in 1..=3 {
        let mut shaped = FakeShaper::new(9.5, 47.5);
        let mut bench = FakeMeasurer { interrupted_at: Some(at), ..FakeMeasurer::new(QueueingFault::None) };
        let outcome = proven(&mut shaped, &mut bench, false).expect("no error");
        assert_eq!((outcome.end, shaped.stands, bench.measured), (VerificationOutcome::Interrupted, false, at), "{at}");
        let (text, _) = can_be_told(&outcome);
        assert_eq!(text, "The verification was interrupted. The previous configuration is restored.");
    }
}

#[test]
fn without_a_server_nothing_is_changed() {
    let mut shaped = FakeShaper::new(9.5, 47.5);
    let error = proven(&mut shaped, &mut FakeMeasurer::new(QueueingFault::NoServer), false).expect_err("no server");
    assert!(error.text.contains("far") && error.advice.is_some_and(|way| way.contains("linerate serve")));
    assert!(shaped.log.is_empty(), "{:?}", shaped.log);
}

#[test]
fn a_failed_second_setup_does_not_pass() {
    for (fails_at, word) in [(1, "set up"), (2, "set up")] {
        let mut shaped = FakeShaper { fails_at: Some(fails_at), ..FakeShaper::new(9.5, 47.5) };
        let error = proven(&mut shaped, &mut FakeMeasurer::new(QueueingFault::None), false).expect_err("refused");
        assert!(error.text.contains(word) && !shaped.stands, "{error:?}");
    }
}

#[test]
fn the_highest_rates_are_found_and_verified() {
    let mut shaped = FakeShaper::new(1.0, 1.0);
    let mut bench = FakeMeasurer::new(QueueingFault::None);
    let mut steps = 0;
    let outcome = find(&mut shaped, PerDirection::default(), &settings(true), &mut bench, &mut |event| {
        steps += usize::from(matches!(event, VerifyEvent::Trial(_)));
    });
    let outcome = outcome.expect("found");
    assert_eq!((outcome.end, shaped.stands), (VerificationOutcome::Passed, true));
    let searched = outcome.search.as_ref().expect("a search");
    assert!(searched.measured && searched.steps.len() == steps && (2..=12).contains(&steps), "{steps}");
    for (found, capacity, set) in
        [(searched.found.up, 10.0, shaped.line.up), (searched.found.down, 50.0, shaped.line.down)]
    {
        let Some(RateSearchResult::Highest { rate, .. }) = found else { panic!("{found:?}") };
        // The fake link carries 99 % of its rate; the search resolves a percent and a half.
        assert!(rate <= megabits(capacity * 0.99) && rate >= megabits(capacity * 0.96), "{rate:?} of {capacity}");
        assert_eq!(set, Some(rate), "verified with the found rates");
    }
    // Without a shaper, the trials, and the verification.
    assert_eq!(bench.measured, 1 + u32::try_from(steps).expect("few") + 2);
    let (text, document) = can_be_told(&outcome);
    assert!(text.contains("The highest rates that pass"), "{text}");
    let search = document.search.expect("a search");
    assert!(search.steps.iter().all(|step| step.one_way && step.good_up.is_some()));
    assert!(search.up.is_some_and(|found| found.good && found.share.is_some_and(|share| share > 0.96)));
}

#[test]
fn a_direction_without_a_given_rate_is_left_alone() {
    let mut shaped = FakeShaper::new(9.0, 9.0);
    shaped.line.up = None;
    let mut bench = FakeMeasurer::new(QueueingFault::None);
    let given = PerDirection { up: None, down: Some(megabits(60.0)) };
    let outcome = find(&mut shaped, given, &settings(true), &mut bench, &mut |_| {}).expect("found");
    let searched = outcome.search.as_ref().expect("a search");
    assert!(!searched.measured && searched.found.up.is_none() && searched.capacity == given, "{searched:?}");
    let Some(RateSearchResult::Highest { rate, .. }) = searched.found.down else { panic!("{searched:?}") };
    // 49.5 of 60 are 82.5 %.
    assert!(rate <= megabits(49.5) && rate >= megabits(49.5 - 60.0 * 0.015), "{rate:?}");
    assert!(searched.steps.iter().all(|step| step.rates.up.is_none() && step.good.up.is_none()));
    assert_eq!((shaped.line.up, shaped.line.down), (None, Some(rate)));
    can_be_told(&outcome);
}

#[test]
fn without_a_passing_rate_the_previous_state_is_restored() {
    let mut shaped = FakeShaper::new(1.0, 1.0);
    // At any rate, received packets bypass the shaper.
    let mut bench = FakeMeasurer::new(QueueingFault::Bypassed);
    let outcome =
        find(&mut shaped, PerDirection::default(), &settings(false), &mut bench, &mut |_| {}).expect("an answer");
    assert_eq!((outcome.end, shaped.stands, outcome.is_active), (VerificationOutcome::NoRate, false, false));
    assert!(outcome.result.is_none());
    let (text, document) = can_be_told(&outcome);
    assert!(text.starts_with("No rate passed: at "), "{text}");
    assert!(document.search.and_then(|search| search.down).is_some_and(|down| !down.good && down.share.is_none()));
}

#[test]
fn a_search_that_is_interrupted_leaves_nothing() {
    for at in [1, 2, 4] {
        let mut shaped = FakeShaper::new(1.0, 1.0);
        let mut bench = FakeMeasurer { interrupted_at: Some(at), ..FakeMeasurer::new(QueueingFault::None) };
        let outcome =
            find(&mut shaped, PerDirection::default(), &settings(true), &mut bench, &mut |_| {}).expect("no error");
        assert_eq!((outcome.end, shaped.stands), (VerificationOutcome::Interrupted, false), "{at}");
        can_be_told(&outcome);
    }
}

/// On a slow link one packet takes longer than the requested delay.
#[test]
fn on_a_slow_link_the_search_relaxes_the_limit() {
    let mut shaped = FakeShaper::new(0.1, 0.1);
    let mut bench =
        FakeMeasurer { capacity: PerDirection { up: 0.25, down: 1.0 }, ..FakeMeasurer::new(QueueingFault::None) };
    let outcome =
        find(&mut shaped, PerDirection::default(), &settings(true), &mut bench, &mut |_| {}).expect("an answer");
    let searched = outcome.search.expect("a search");
    // Two full packets of 1514 bytes at a quarter of a megabit are 97 ms.
    assert!(searched.largest.as_millis() >= 97, "{:?}", searched.largest);
    assert!(outcome.notes.iter().any(|note| note.contains("serialisation delay")), "{:?}", outcome.notes);
}
