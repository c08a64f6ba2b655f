use core::time::Duration;

use linerate_analysis::statistics::SeededRandom;
use linerate_model::change::ChangeGroup;
use linerate_units::{BitRate, Ratio};
use proptest::prelude::*;

use super::*;
use crate::tuning::TuningGoal;

fn design() -> TrialDesign {
    TrialDesign::new(PairBudget::default(), 1)
}

fn bulk() -> TuningObjective {
    TuningGoal::WanBulk.objective()
}

fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

fn measured(rate: f64, milliseconds: f64, again: f64) -> TransferMeasurement {
    TransferMeasurement {
        goodput: megabits(rate),
        round_trip_p95: Some(Duration::from_secs_f64(milliseconds / 1e3)),
        base_round_trip: Some(Duration::from_millis(20)),
        retransmitted: Ratio::new(again),
        processor: Ratio::new(0.2),
        disturbed: None,
    }
}

fn pair(before: TransferMeasurement, after: TransferMeasurement) -> MeasurementPair {
    MeasurementPair::new(before, after, false)
}

fn same(count: usize, before: &TransferMeasurement, after: &TransferMeasurement) -> Vec<MeasurementPair> {
    vec![pair(before.clone(), after.clone()); count]
}

/// Pairs of rates that spread by a share, the second with a gain.
fn noisy(seed: u64, count: usize, spread: f64, gain: f64) -> Vec<MeasurementPair> {
    let mut random = SeededRandom::new(seed);
    let mut one = |rate: f64| measured((rate * (1.0 + spread * random.normal())).max(0.01), 24.5, 1e-4);
    (0..count).map(|_| pair(one(100.0), one(100.0 * gain))).collect()
}

/// The pairs that a trial would measure: one after the other, until no more are needed.
fn series(seed: u64, spread: f64, gain: f64) -> TrialJudgement {
    let all = noisy(seed, PairBudget::default().most, spread, gain);
    let count = (1..=all.len()).find(|count| !more_pairs_needed(&bulk(), &design(), &all[..*count]));
    judge(&bulk(), &design(), &all[..count.expect("the budget ends it")])
}

#[test]
fn equal_arms_are_kept_less_than_once_in_twenty_times() {
    for spread in [0.02, 0.1, 0.25] {
        let at_once = (0..1000)
            .filter(|seed| judge(&bulk(), &design(), &noisy(*seed, 5, spread, 1.0)).decision == TrialDecision::Keep);
        let one_by_one = (0..1000).filter(|seed| series(*seed, spread, 1.0).decision == TrialDecision::Keep);
        let (at_once, one_by_one) = (at_once.count(), one_by_one.count());
        assert!(at_once <= 50 && one_by_one <= 50, "{at_once} and {one_by_one} of 1000 at a spread of {spread}");
    }
}

#[test]
fn three_times_as_much_is_always_kept() {
    // With a spread of 10 % the least of five of the larger arm is far above the largest of the smaller.
    for seed in 0..300 {
        assert_eq!(series(seed, 0.1, 3.0).decision, TrialDecision::Keep, "{seed}");
    }
}

#[test]
fn a_gain_above_the_noise_is_found_in_most_trials() {
    let kept = (0..200).filter(|seed| series(*seed, 0.02, 1.15).decision == TrialDecision::Keep).count();
    assert!(kept >= 190, "{kept} of 200");
}

/// Two runs of the same transfer: 23.1 and 29.3 Mbit/s at a random loss of 0.1 %, 2 % apart on a clean path.
#[test]
fn the_noise_of_equal_runs_is_no_gain() {
    let lossy = [pair(measured(23.1, 20.5, 1.5e-3), measured(29.3, 20.5, 1.5e-3))];
    let judgement = judge(&bulk(), &design(), &lossy);
    assert_eq!(judgement.decision, TrialDecision::Unclear);
    assert!(
        judgement
            .goodput
            .is_some_and(|effect| effect.relative_difference().is_some_and(|share| share.magnitude.get() > 0.25))
    );
    // The same noise in both directions, pair by pair.
    let mixed: Vec<MeasurementPair> =
        [(23.1, 29.3), (29.3, 23.1), (23.1, 29.3), (26.0, 25.0), (29.3, 23.1), (24.0, 28.0)]
            .map(|(before, after)| pair(measured(before, 20.5, 1.5e-3), measured(after, 20.5, 1.5e-3)))
            .into();
    assert_ne!(judge(&bulk(), &design(), &mixed).decision, TrialDecision::Keep);
    // On a clean path 2 % more is real, and too little.
    let clean: Vec<MeasurementPair> = [1.0, 1.01, 0.995, 1.005, 1.0]
        .map(|by| pair(measured(280.0, 41.0, 0.0), measured(285.6 * by, 41.0, 0.0)))
        .into();
    assert_eq!(judge(&bulk(), &design(), &clean).decision, TrialDecision::RollBack);
    assert!(!more_pairs_needed(&bulk(), &design(), &clean));
}

/// Reno at a random loss against BBR: without the change between 78 and 260 Mbit/s, with it what the path carries
/// (lab:transatlantic-1g-59ms-reno).
#[test]
fn printed_figures_stay_within_those_measured() {
    let befores = [218.4, 84.0, 77.5, 248.3, 212.7, 120.0, 259.0, 187.0];
    let afters = [858.2, 856.8, 881.1, 864.9, 879.4, 870.0, 866.0, 873.0];
    let pairs: Vec<MeasurementPair> = befores
        .into_iter()
        .zip(afters)
        .map(|(before, after)| pair(measured(before, 59.3, 0.1), measured(after, 60.0, 1e-3)))
        .collect();
    let judgement = judge(&bulk(), &design(), &pairs);
    assert_eq!(judgement.decision, TrialDecision::Keep, "{}", judgement.reason);
    let goodput = judgement.goodput.expect("pairs");
    let rates = [goodput.before, goodput.after].map(|rate| rate.bits_per_second() / 1e6);
    assert!((77.5..=259.0).contains(&rates[0]) && (856.8..=881.1).contains(&rates[1]), "{rates:?}");
    let (low, high) = goodput.interval.expect("eight pairs");
    assert!(low.number() > 0.0 && high.number() < 881.1e6, "{low:?} to {high:?}");
    let again = judgement.retransmitted.expect("shares");
    assert!((again.after.get() - 1e-3).abs() < 1e-9 && (again.before.get() - 0.1).abs() < 1e-9, "{again:?}");
}

proptest! {
    #[test]
    fn a_steady_side_is_printed_as_its_median(seed in 0_u64..1000, spread in 0.05..0.4_f64, faster in any::<bool>()) {
        let mut random = SeededRandom::new(seed);
        let mut one = |rate: f64, spread: f64| measured((rate * (spread * random.normal()).exp()).max(0.01), 24.5, 1e-4);
        let pairs: Vec<MeasurementPair> = (0..8)
            .map(|_| if faster { pair(one(100.0, spread), one(300.0, 1e-3)) } else { pair(one(300.0, 1e-3), one(100.0, spread)) })
            .collect();
        let goodput = judge(&bulk(), &design(), &pairs).goodput.expect("pairs");
        let steady = if faster { goodput.after } else { goodput.before };
        prop_assert!((steady.bits_per_second() / 300e6 - 1.0).abs() < 0.01);
        let (low, high) = goodput.interval.expect("eight pairs");
        prop_assert!(low <= goodput.difference && goodput.difference <= high);
        let sum = goodput.before.bits_per_second() + goodput.difference.number();
        prop_assert!((sum / goodput.after.bits_per_second() - 1.0).abs() < 1e-9);
    }
}

/// Without the change 2 Mbit/s arrive, and each lost segment is a large share (lab:tcp-memory-and-rare-loss).
#[test]
fn fewer_retransmissions_are_no_uncertainty_about_harm() {
    let after = measured(285.0, 30.0, 3.5e-4);
    let shares = [0.0, 0.1675, 0.0, 0.0, 0.0, 0.0578, 0.0, 0.2157];
    let pairs: Vec<MeasurementPair> = shares.map(|share| pair(measured(2.3, 20.1, share), after.clone())).into();
    let judgement = judge(&bulk(), &design(), &pairs);
    assert!(judgement.fills_the_path, "{}", judgement.reason);
    let more: Vec<MeasurementPair> =
        shares.map(|share| pair(measured(2.3, 20.1, share), measured(285.0, 20.1, 0.3))).into();
    assert_ne!(judge(&bulk(), &design(), &more).decision, TrialDecision::Keep);
}

/// After the last pair the estimate decides: a round trip that is probably too long is a queue, too.
#[test]
fn a_queue_in_most_of_the_last_pairs_fills_the_path() {
    let without = measured(13.0, 89.7, 6e-4);
    let with = |number: usize| measured(17.8, if number.is_multiple_of(4) { 95.6 } else { 117.6 }, 1.2e-3);
    let pairs: Vec<MeasurementPair> = (0..20).map(|number| pair(without.clone(), with(number))).collect();
    let judgement = judge(&bulk(), &design(), &pairs);
    assert!(!more_pairs_needed(&bulk(), &design(), &pairs));
    assert!(judgement.decision == TrialDecision::Unclear && judgement.fills_the_path, "{}", judgement.sentence);
    let with_queue = bulk().with_queue().expect("a bulk goal");
    assert_eq!(judge(&with_queue, &design(), &pairs).decision, TrialDecision::Keep);
}

/// SACK alone: 99 % of the path, with its queue. The limit of bulk goals grows with the gain, up to twice the time.
#[test]
fn a_queue_is_allowed_only_for_a_larger_gain_of_a_bulk_goal() {
    let judged = |objective: TuningObjective, rate: f64, milliseconds: f64| {
        judge(&objective, &design(), &same(8, &measured(100.0, 20.0, 0.0), &measured(rate, milliseconds, 0.0)))
    };
    let with_queue = bulk().with_queue().expect("a bulk goal");
    let strict = judged(bulk(), 290.0, 30.0);
    assert!(strict.decision == TrialDecision::RollBack && strict.fills_the_path, "{}", strict.sentence);
    for (rate, milliseconds, decision) in [
        (290.0, 30.0, TrialDecision::Keep),
        (290.0, 38.0, TrialDecision::Keep),
        // More than twice as long.
        (290.0, 45.0, TrialDecision::RollBack),
        // The round trip grows more than goodput.
        (130.0, 30.0, TrialDecision::RollBack),
        // Within the strict limit.
        (120.0, 24.0, TrialDecision::Keep),
    ] {
        let judgement = judged(with_queue, rate, milliseconds);
        assert_eq!(judgement.decision, decision, "{rate} {milliseconds}: {}", judgement.sentence);
    }
    let kept = judged(with_queue, 290.0, 30.0).sentence;
    assert!(
        kept.contains("round trip under load 20.0 ms -> 30.0 ms (+50 %)") && kept.contains("up to 100 %"),
        "{kept}"
    );
    assert!(TuningGoal::Web.objective().with_queue().is_none());
}

#[test]
fn the_windows_of_the_reference_table() {
    // Rows 1 and 4: 375 kB and two products; the round trip grows by a fifth, and by less than 5 ms.
    let judgement = judge(&bulk(), &design(), &same(5, &measured(89.0, 20.4, 0.0), &measured(278.0, 24.5, 0.0)));
    assert_eq!(judgement.decision, TrialDecision::Keep, "{}", judgement.sentence);
    assert_eq!(
        judgement.sentence,
        "Keep: goodput gains, and no other figure gets worse than the goal allows; goodput 89.0 Mbit/s -> 278 Mbit/s (+212 %), round trip \
        under load 20.4 ms -> 24.5 ms (+20 %), retransmitted 0 % -> 0 % (5 pairs)."
    );
    let rows: Vec<&str> = judgement.table.iter().map(|row| row.what).collect();
    assert_eq!(rows, ["goodput", "round trip under load (95 %)", "retransmitted", "busiest processor"]);
    assert_eq!(
        (judgement.table[0].difference.as_str(), judgement.table[1].difference.as_str()),
        ("+189 Mbit/s", "+4.10 ms")
    );
    // Rows 4 and 6: 1.4 % more goodput for 68 % more round trip.
    let judgement = judge(&bulk(), &design(), &same(5, &measured(278.0, 24.5, 0.0), &measured(282.0, 41.2, 0.0)));
    assert_eq!(judgement.decision, TrialDecision::RollBack);
    assert!(judgement.reason.contains("20 % and 5 ms longer"), "{}", judgement.reason);
}

#[test]
fn a_policer_is_paced_for_and_not_run_into() {
    // Row 21: CUBIC, then BBR, then paced CUBIC.
    let cubic = measured(80.0, 20.45, 0.0029);
    let bbr = judge(&bulk(), &design(), &same(6, &cubic, &measured(95.6, 20.5, 0.07)));
    assert_eq!((bbr.decision, bbr.reason.as_str()), (TrialDecision::RollBack, "retransmissions more than double"));
    let paced = judge(&bulk(), &design(), &same(8, &cubic, &measured(94.1, 20.45, 0.0005)));
    assert_eq!(paced.decision, TrialDecision::Keep);
    // Row 17: BBR on a path that loses 0.1 % repairs more, and ten times as much arrives.
    let lossy = judge(&bulk(), &design(), &same(6, &measured(24.0, 20.5, 0.0015), &measured(280.0, 23.0, 0.005)));
    assert_eq!(lossy.decision, TrialDecision::Keep);
}

#[test]
fn a_black_hole_is_left() {
    // Row 22: nothing, then 209 Mbit/s. Nothing was acknowledged, so there is no round trip to compare with but the
    // least.
    let nothing =
        TransferMeasurement { round_trip_p95: None, retransmitted: Ratio::new(1.0), ..measured(0.0, 0.0, 0.0) };
    let judgement = judge(&bulk(), &design(), &same(5, &nothing, &measured(209.0, 21.0, 1e-3)));
    assert_eq!(judgement.decision, TrialDecision::Keep, "{}", judgement.sentence);
}

#[test]
fn unknown_figures_do_not_count_as_good() {
    let blind = |field: fn(&mut TransferMeasurement)| {
        let mut after = measured(278.0, 24.5, 0.0);
        field(&mut after);
        judge(&bulk(), &design(), &same(6, &measured(89.0, 20.4, 0.0), &after)).decision
    };
    assert_eq!(blind(|_| ()), TrialDecision::Keep);
    assert_eq!(blind(|after| after.round_trip_p95 = None), TrialDecision::Unclear);
    assert_eq!(blind(|after| after.retransmitted = None), TrialDecision::Unclear);
    assert_eq!(blind(|after| after.processor = None), TrialDecision::Keep);
    assert_eq!(judge(&bulk(), &design(), &[]).decision, TrialDecision::Unclear);
}

#[test]
fn pairs_of_a_path_that_changed_do_not_count() {
    let (before, after) = (measured(89.0, 20.4, 0.0), measured(278.0, 24.5, 0.0));
    let later = |base| TransferMeasurement { base_round_trip: Some(base), ..after.clone() };
    let mut pairs = same(6, &before, &after);
    pairs[2] = pair(before.clone(), later(Duration::from_millis(23)));
    let disturbed = TransferMeasurement { disturbed: Some("another test ran".to_owned()), ..before.clone() };
    pairs[4] = pair(disturbed, after.clone());
    let judgement = judge(&bulk(), &design(), &pairs);
    assert_eq!((judgement.decision, judgement.counted), (TrialDecision::Unclear, 4));
    let which: Vec<usize> = judgement.discarded.iter().map(|discarded| discarded.pair).collect();
    assert_eq!(which, [2, 4]);
    assert!(judgement.discarded[0].reason.contains("20.0 ms to 23.0 ms"), "{:?}", judgement.discarded);
    assert!(more_pairs_needed(&bulk(), &design(), &pairs));
    // 9 % is within the drift, and so is a jump of some microseconds in a data centre.
    pairs[2] = pair(before, later(Duration::from_micros(21_800)));
    assert_eq!(judge(&bulk(), &design(), &pairs).decision, TrialDecision::Keep);
    let near = |micros| TransferMeasurement {
        base_round_trip: Some(Duration::from_micros(micros)),
        ..measured(1.0, 0.2, 0.0)
    };
    assert_eq!(pair(near(60), near(90)).fault, None);
}

#[test]
fn a_goal_of_short_round_trips_is_the_mirror() {
    let objective = TuningGoal::LowLatency.objective();
    let decide = |before: TransferMeasurement, after: TransferMeasurement| {
        judge(&objective, &design(), &same(6, &before, &after)).decision
    };
    assert_eq!(decide(measured(282.0, 41.2, 0.0), measured(278.0, 24.5, 0.0)), TrialDecision::Keep);
    assert_eq!(
        decide(measured(282.0, 41.2, 0.0), measured(176.0, 20.4, 0.0)),
        TrialDecision::RollBack,
        "goodput gets worse"
    );
    assert_eq!(decide(measured(89.0, 20.4, 0.0), measured(278.0, 24.5, 0.0)), TrialDecision::RollBack, "not shorter");
}

#[test]
fn the_best_of_two_claims_no_more_for_being_chosen() {
    let trial = |seed| noisy(seed, 20, 0.1, 1.2);
    let (pairs, others) = (trial(3), trial(4));
    let [alone, other] = [&pairs, &others].map(|pairs| judge(&bulk(), &design(), pairs));
    assert_eq!([alone.decision, other.decision], [TrialDecision::Keep; 2]);
    let best = judge_best(&bulk(), &design(), &pairs, &other);
    let gain = |judgement: &TrialJudgement| judgement.goodput.map(|effect| effect.after).unwrap_or_default();
    assert!(gain(&best) < gain(&alone), "{} {}", best.sentence, alone.sentence);
    assert!(gain(&best) > megabits(100.0) && best.decision == TrialDecision::Keep, "{}", best.sentence);
}

#[test]
fn groups_share_what_was_gained() {
    let trial =
        |before, after| judge(&bulk(), &design(), &same(8, &measured(before, 20.0, 0.0), &measured(after, 20.0, 0.0)));
    let all = contributions(&[
        (ChangeGroup::Buffers, trial(100.0, 250.0)),
        (ChangeGroup::CongestionControl, trial(250.0, 251.0)),
        (ChangeGroup::Pacing, trial(250.0, 300.0)),
    ]);
    let parts: Vec<Option<f64>> = all.iter().map(|one| one.part.map(Ratio::get)).collect();
    assert!(parts[0].is_some_and(|part| (part - 0.75).abs() < 1e-9), "{parts:?}");
    assert!(parts[2].is_some_and(|part| (part - 0.25).abs() < 1e-9) && parts[1].is_none(), "{parts:?}");
    assert_eq!(all[1].decision, TrialDecision::RollBack);
}

proptest! {
    #[test]
    fn a_real_gain_is_kept_whatever_the_rate(
        rate in 1.0_f64..100_000.0, gain in 3.0_f64..100.0, count in 5_usize..12, seed in any::<u64>()
    ) {
        let mut random = SeededRandom::new(seed);
        let mut one = |rate: f64| measured(rate * (0.9 + 0.2 * random.unit()), 20.0, 0.0);
        let pairs: Vec<MeasurementPair> = (0..count).map(|_| pair(one(rate), one(rate * gain))).collect();
        prop_assert_eq!(judge(&bulk(), &design(), &pairs).decision, TrialDecision::Keep);
        prop_assert!(!more_pairs_needed(&bulk(), &design(), &pairs) || !TrialDesign::is_look(count));
    }

    #[test]
    fn a_loss_of_goodput_is_never_kept(
        factor in 0.0_f64..1.0, spread in 0.0_f64..0.3, count in 1_usize..12, seed in any::<u64>()
    ) {
        let mut pairs = noisy(seed, count, spread, 1.0);
        for pair in &mut pairs {
            pair.after.goodput = pair.before.goodput * factor;
        }
        for goal in TuningGoal::ALL {
            let judgement = judge(&goal.objective(), &design(), &pairs);
            prop_assert!(judgement.decision != TrialDecision::Keep, "{}", judgement.sentence);
        }
    }

    #[test]
    fn the_budget_ends_every_series(spread in 0.0_f64..3.0, gain in 0.1_f64..10.0, seed in any::<u64>()) {
        let pairs = noisy(seed, PairBudget::default().most, spread, gain);
        prop_assert!(!more_pairs_needed(&bulk(), &design(), &pairs));
        prop_assert!(more_pairs_needed(&bulk(), &design(), &pairs[..MIN_PAIRS - 1]));
    }

    #[test]
    fn the_same_seed_gives_the_same_result(seed in any::<u64>(), spread in 0.0_f64..1.0) {
        let pairs = noisy(seed, 8, spread, 1.2);
        prop_assert_eq!(judge(&bulk(), &design(), &pairs), judge(&bulk(), &design(), &pairs));
    }
}
