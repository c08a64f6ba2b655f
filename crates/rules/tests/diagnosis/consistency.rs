//! No figure of a diagnosis refutes another one.

use linerate_model::diagnosis::{BoundKind, Cause, TransferDiagnosis, TransferObservation};
use linerate_rules::diagnosis::diagnose;
use linerate_units::SegmentCount;

use super::{cases, changed, hosts::host_cases, senders};

fn all() -> impl Iterator<Item = (Cause, TransferObservation, TransferDiagnosis)> {
    cases().into_iter().chain(host_cases()).map(|(cause, observation)| {
        let diagnosis = diagnose(&observation);
        (cause, observation, diagnosis)
    })
}

#[test]
fn the_next_limit_is_not_below_what_is_expected_without_the_first() {
    for (cause, _, diagnosis) in all() {
        let expected = diagnosis.verdicts[0].without.map(|without| without.expected);
        let next = diagnosis.next.as_ref().map(|next| next.rate);
        assert!(next.zip(expected).is_none_or(|(next, expected)| next >= expected * 0.95), "{cause}: {diagnosis:#?}");
    }
}

#[test]
fn nothing_is_known_behind_a_limit_through_which_the_path_was_measured() {
    let behind = [Cause::SenderQueue, Cause::LinkNegotiation, Cause::Policer];
    let mut seen = 0;
    for (cause, _, diagnosis) in all().filter(|(cause, ..)| behind.contains(cause)) {
        seen += 1;
        assert_eq!(diagnosis.next, None, "{cause}");
    }
    assert!(seen >= behind.len(), "{seen}");
}

#[test]
fn no_estimate_exceeds_the_path() {
    for (cause, observation, diagnosis) in all() {
        let Some(path) = diagnosis.bounds.iter().find(|bound| bound.kind == BoundKind::Path) else { continue };
        let measured = observation.path.as_ref().and_then(|path| path.with_data.capacity.as_ref());
        let high = measured.and_then(|one| Some(one.high_bits_per_second? / one.bits_per_second)).unwrap_or(1.0);
        let frees_path =
            [Cause::CrossTraffic, Cause::Policer, Cause::SenderQueue, Cause::LinkNegotiation, Cause::EcnMarking];
        for verdict in diagnosis.verdicts.iter().filter(|one| !frees_path.contains(&one.cause)) {
            let Some(without) = verdict.without else { continue };
            let most = path.rate.bits_per_second() * high * 1.001;
            let within = without.high.bits_per_second() <= most.max(without.expected.bits_per_second());
            assert!(within && without.low <= without.expected, "{cause}, {}: {without:?}", verdict.cause);
        }
    }
}

#[test]
fn of_a_transfer_that_carries_nothing_no_loss_rate_is_told() {
    let lost = |observation: TransferObservation| {
        changed(observation, |o| senders(o, |info| info.retransmits = Some(SegmentCount::new(4))))
    };
    let stopped = [Cause::BlackHole, Cause::PathDead];
    let mut seen = 0;
    for (cause, observation) in cases().into_iter().filter(|(cause, _)| stopped.contains(cause)) {
        let verdicts = diagnose(&lost(observation)).verdicts;
        if verdicts[0].cause == cause {
            seen += 1;
            let rates = [Cause::Loss, Cause::BurstyLoss, Cause::Policer, Cause::ReceiveWindow, Cause::SendBuffer];
            assert!(verdicts.iter().all(|one| !rates.contains(&one.cause)), "{cause}: {verdicts:#?}");
        }
    }
    assert!(seen > 0);
}
