//! A long fat path whose receive window is too small, and its tuning: 10 Gbit/s at 117 ms.

use linerate_model::direction::Direction;
use std::collections::BTreeMap;
use std::time::Duration;

use linerate_documents::diagnose::DiagnoseDocument;
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult};
use linerate_documents::tune::{
    EffectFigure, GroupContribution, GroupTrial, HostEnd, KeptSet, MeasuredEffect, MeasurementPair, ProposedChange,
    RefusedChange, TransferMeasurement, TrialDecision, TuneDocument, TuneOutcome, TuneRound, TuningGoal,
};
use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_model::diagnosis::{
    BoundKind, Cause, Confidence, DiagnosisVerdict, SenderState, StateShare, ThroughputBound, TuneScope,
};
use linerate_model::path::UnknownValue;
use linerate_model::report::TestTermination;
use linerate_units::{BitRate, Ratio};

use super::{Noise, SECOND, STARTED, complete, figure, run, unknown_figure, whole};

const HOST: &str = "lab:rhel-10g-117ms";

fn diagnosed(cause: Cause, text: &str, goodput: f64) -> DiagnoseDocument {
    let bound = |kind, rate: f64, arithmetic: &str| ThroughputBound {
        kind,
        rate: BitRate::from_bits_per_second(rate),
        arithmetic: arithmetic.to_owned(),
    };
    DiagnoseDocument {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: HOST.to_owned(),
        port: 5201,
        started_at_unix_ns: STARTED,
        duration_ns: 12 * SECOND,
        termination: complete(),
        direction: Direction::Up,
        transfer: Vec::new(),
        verdicts: vec![DiagnosisVerdict {
            cause,
            confidence: Confidence::High,
            text: text.to_owned(),
            share: None,
            without: None,
            together_with: None,
            evidence: vec![
                "time that the window was the limit: 98.6 %".to_owned(),
                "largest window that the receiver announced: 3.14 MB".to_owned(),
                "bandwidth-delay product: 146 MB".to_owned(),
            ],
            advice: vec!["Raise the third number of net.ipv4.tcp_rmem on the receiver.".to_owned()],
            tune: Some(TuneScope { far: true, work_around: false }),
        }],
        states: vec![StateShare { state: SenderState::ReceiveWindow, share: Ratio::new(0.986).expect("a ratio") }],
        goodput_bits_per_second: Some(goodput),
        bounds: vec![bound(BoundKind::ReceiveWindow, 215e6, "3.14 MB x 8 / 117 ms")],
        next: Some(bound(BoundKind::SendBuffer, 287e6, "4.19 MB x 8 / 117 ms")),
        contradictions: Vec::new(),
        figures: BTreeMap::new(),
        path: Some(super::path::document()),
        observation: None,
        kernel_events: Vec::new(),
        unknown: Vec::new(),
        notes: Vec::new(),
    }
}

fn change(end: HostEnd, key: &str, from: &str, to: &str, text: &str, arithmetic: &str) -> ProposedChange {
    ProposedChange {
        end,
        change: HostChange {
            target: ChangeTarget::Setting { key: key.to_owned() },
            from: Some(from.to_owned()),
            to: to.to_owned(),
            group: ChangeGroup::Buffers,
            takes_effect: if key.ends_with("tcp_mem") { EffectTiming::Now } else { EffectTiming::NewConnections },
            reason: ChangeReason {
                rule: "tune-receive-buffer".to_owned(),
                text: text.to_owned(),
                arithmetic: Some(arithmetic.to_owned()),
                evidence: vec!["the path carries 10.0 Gbit/s".to_owned(), "smallest round trip: 117 ms".to_owned()],
                risk: "A connection may hold that much memory of the kernel.".to_owned(),
            },
        },
        alternatives: Vec::new(),
    }
}

fn changes() -> Vec<ProposedChange> {
    vec![
        change(
            HostEnd::Far,
            "net.ipv4.tcp_rmem",
            "4096 131072 6291456",
            "4096 131072 402653184",
            "The receive buffer may grow to 6.29 MB only, which allows about 215 Mbit/s.",
            "1.25 x 10.0 Gbit/s x 117 ms / 8 / 0.50 = 366 MB, rounded up to 402653184",
        ),
        change(
            HostEnd::Far,
            "net.ipv4.tcp_mem",
            "379008 505344 758016",
            "1048576 1572864 2097152",
            "All TCP buffers of the host together may hold 3.10 GB, of which one connection would take 13 %.",
            "4 x 403 MB / 4096 = 393216 pages, and not below the present value",
        ),
        change(
            HostEnd::Near,
            "net.ipv4.tcp_wmem",
            "4096 16384 4194304",
            "4096 16384 268435456",
            "The send buffer may grow to 4.19 MB only, which allows about 287 Mbit/s.",
            "1.25 x 10.0 Gbit/s x 117 ms / 8 / 0.70 = 261 MB, rounded up to 268435456",
        ),
    ]
}

fn pair(before: TransferMeasurement, after: TransferMeasurement) -> MeasurementPair {
    MeasurementPair { before, after, changed_first: false, fault: None }
}

fn pairs() -> Vec<MeasurementPair> {
    let mut noise = Noise::new(117);
    let mut one = |rate: f64, loaded: f64| TransferMeasurement {
        goodput: BitRate::from_bits_per_second((rate * noise.between(0.99, 1.01)).round()),
        round_trip_p95: Some(Duration::from_nanos(whole(loaded * 1e6 * noise.between(0.999, 1.001)))),
        base_round_trip: Some(Duration::from_millis(117)),
        retransmitted: Some(Ratio::ZERO),
        processor: Ratio::new(noise.between(0.2, 0.6)),
        disturbed: None,
    };
    let mut pairs: Vec<MeasurementPair> = (0..5).map(|_| pair(one(267e6, 117.2), one(9.41e9, 118.4))).collect();
    pairs[2].after.goodput = BitRate::from_bits_per_second(6.2e9);
    pairs[2].after.disturbed = Some("other traffic of 2.90 Gbit/s".to_owned());
    pairs[2].fault = Some("with the changes, other traffic of 2.90 Gbit/s disturbed it".to_owned());
    pairs
}

fn effect(name: EffectFigure, values: [f64; 2], interval: Option<[f64; 2]>) -> MeasuredEffect {
    let [before, after] = values;
    MeasuredEffect {
        name,
        unit: name.unit(),
        before: Some(before),
        after: Some(after),
        difference: Some(after - before),
        low: interval.map(|[low, _]| low),
        high: interval.map(|[_, high]| high),
    }
}

pub(super) fn effects() -> Vec<MeasuredEffect> {
    vec![
        effect(EffectFigure::Goodput, [267e6, 9.41e9], Some([9.08e9, 9.18e9])),
        effect(EffectFigure::RoundTripP95, [117.2e6, 118.4e6], Some([-0.2e6, 1.9e6])),
        effect(EffectFigure::Retransmitted, [0.0, 0.0], Some([0.0, 0.0])),
        effect(EffectFigure::Processor, [0.041, 0.583], Some([0.51, 0.56])),
    ]
}

fn trial() -> GroupTrial {
    GroupTrial {
        group: ChangeGroup::Buffers,
        name: "far net.ipv4.tcp_rmem = 4096 131072 402653184; far net.ipv4.tcp_mem = 1048576 1572864 2097152; near \
               net.ipv4.tcp_wmem = 4096 16384 268435456"
            .to_owned(),
        pairs: pairs(),
        decision: TrialDecision::Keep,
        sentence: "Keep: the goodput is higher by more than 5 %, and nothing is worse; goodput 267 Mbit/s -> 9.41 \
                   Gbit/s (+3424 %) (4 pairs)."
            .to_owned(),
        effects: effects(),
    }
}

fn kept(end: HostEnd, id: u64, lasting: &[&str]) -> KeptSet {
    KeptSet {
        end,
        id,
        undo: format!("{}linerate rollback {id}", if end == HostEnd::Far { "ssh far " } else { "" }),
        file: Some("/etc/sysctl.d/90-linerate.conf".to_owned()),
        persistent: lasting.iter().map(|&one| one.to_owned()).collect(),
        until_reboot: Vec::new(),
        warnings: Vec::new(),
    }
}

fn refusal(end: Option<HostEnd>, rule: Option<&str>, text: &str) -> RefusedChange {
    RefusedChange { rule: rule.map(str::to_owned), end, text: text.to_owned() }
}

pub(super) fn document() -> TuneDocument {
    let limit = "For 98.6 % of the time the sender waited for the receive window: 3.14 MB allow 215 Mbit/s at 117 ms.";
    let now = "The goodput is 99 % of the path capacity: nothing is wrong.";
    TuneDocument {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: HOST.to_owned(),
        port: 5201,
        started_at_unix_ns: STARTED,
        duration_ns: 214 * SECOND,
        termination: complete(),
        role: TuningGoal::WanBulk,
        transfer: Vec::new(),
        seed: Some(20_261_124),
        outcome: TuneOutcome::Kept,
        sentence: "The receive window limited: 267 Mbit/s became 9.41 Gbit/s; now the link's rate limits.".to_owned(),
        before: Some(Box::new(diagnosed(Cause::ReceiveWindow, limit, 267e6))),
        rounds: vec![TuneRound {
            cause: Some(Cause::ReceiveWindow),
            changes: changes(),
            refusals: vec![
                refusal(
                    Some(HostEnd::Near),
                    Some("tune-congestion-control"),
                    "cubic stays: nothing was lost, so another algorithm would not send more.",
                ),
                refusal(None, None, "net.core.rmem_max stays: this transfer does not set its buffers itself."),
            ],
            lives_with_the_path: false,
            trials: vec![trial()],
        }],
        after: Some(Box::new(diagnosed(Cause::LinkRate, now, 9.41e9))),
        effects: effects(),
        contributions: vec![GroupContribution {
            group: ChangeGroup::Buffers,
            decision: TrialDecision::Keep,
            before: Some(BitRate::from_bits_per_second(267e6)),
            after: Some(BitRate::from_bits_per_second(9.41e9)),
            part: Ratio::new(1.0),
        }],
        kept: vec![
            kept(HostEnd::Near, 7, &["net.ipv4.tcp_wmem = 4096 16384 268435456"]),
            kept(
                HostEnd::Far,
                3,
                &["net.ipv4.tcp_rmem = 4096 131072 402653184", "net.ipv4.tcp_mem = 1048576 1572864 2097152"],
            ),
        ],
        unknown: Vec::new(),
        notes: vec!["The metrics cache was flushed before each transfer.".to_owned()],
    }
}

pub(super) fn of(document: TuneDocument, arguments: &[&str]) -> RunDocument {
    let verdict = document.sentence.clone();
    let (seconds, host, termination) =
        (document.duration_ns / SECOND, document.host.clone(), document.termination.clone());
    let mut run = run(RunKind::Tune, seconds, arguments, &verdict, RunResult::Tune(Box::new(document)));
    run.host = host;
    run.termination = termination;
    run.figures = vec![unknown_figure("goodput", "Goodput", FigureUnit::BitsPerSecond, "nothing was measured")];
    run
}

/// The changes were kept.
pub(crate) fn tune() -> RunDocument {
    let mut run = of(document(), &["tune", HOST, "--yes"]);
    run.figures =
        vec![figure("goodput", "Goodput", FigureUnit::BitsPerSecond, Some(9.41e9), ImprovementDirection::Higher)];
    run
}

/// A plan from given figures: no far end, nothing measured.
pub(crate) fn tune_planned() -> RunDocument {
    let mut document = document();
    document.host = String::new();
    document.port = 0;
    document.outcome = TuneOutcome::Planned;
    document.sentence = "The plan is for 10.0 Gbit/s at 117 ms as given, and nothing was touched.".into();
    (document.before, document.after) = (None, None);
    document.effects.clear();
    document.contributions.clear();
    document.kept.clear();
    let round = &mut document.rounds[0];
    round.cause = None;
    round.trials.clear();
    round.changes.retain(|one| one.end == HostEnd::Near);
    round.lives_with_the_path = true;
    let mut other = round.clone();
    other.cause = Some(Cause::Loss);
    let text = "qdisc replace dev eth0 root fq_codel limit 10240\nqdisc change dev eth0 root fq_codel target 5ms";
    other.changes[0].change.target = ChangeTarget::Queueing { interface: "eth0".to_owned() };
    other.changes[0].change.from = None;
    other.changes[0].change.to = text.into();
    other.changes[0].alternatives = vec![round.changes[0].change.clone()];
    document.rounds.push(other);
    of(document, &["tune", "--rate", "10G", "--rtt", "117ms"])
}

/// Aborted in the first trial: hardly anything is known.
pub(crate) fn tune_broken_off() -> RunDocument {
    let mut document = document();
    let message = "the far end is gone: connection reset by peer".to_owned();
    document.termination = TestTermination::Failed { message };
    document.outcome = TuneOutcome::Aborted;
    document.sentence = "Receive window limits: it was aborted, and everything rolled back.".into();
    (document.before, document.after) = (None, None);
    document.unknown =
        vec![UnknownValue { key: "before".to_owned(), reason: "the measurement before was not recorded".to_owned() }];
    let trial = &mut document.rounds[0].trials[0];
    trial.decision = TrialDecision::Unclear;
    trial.sentence = "Unclear, so leave it as it was: no pair is whole (0 pairs).".into();
    trial.pairs.truncate(1);
    trial.pairs[0].fault = Some("the far end is gone".to_owned());
    trial.effects.clear();
    document.effects =
        vec![MeasuredEffect { after: None, difference: None, low: None, high: None, ..effects().remove(0) }];
    document.contributions[0].decision = TrialDecision::Unclear;
    document.contributions[0].after = None;
    document.contributions[0].part = None;
    document.kept = vec![KeptSet {
        file: None,
        persistent: Vec::new(),
        until_reboot: vec!["net.ipv4.tcp_mem = 1048576 1572864 2097152".to_owned()],
        warnings: vec!["/etc/sysctl.d/99-local.conf sets net.ipv4.tcp_mem, too, and comes later.".to_owned()],
        ..kept(HostEnd::Far, 3, &[])
    }];
    of(document, &["tune", HOST])
}
