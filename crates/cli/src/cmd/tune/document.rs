//! What is printed and kept of a tuning.

use linerate_change::Kept;
use linerate_model::change::Group;
use linerate_model::report::Termination;
use linerate_model::schema::change::ChangeDocument;
use linerate_model::schema::diagnose::DiagnoseDocument;
use linerate_model::schema::run::{Better, Figure, RunDocument, RunEnvironment, Unit};
use linerate_model::schema::{nanoseconds, tune};
use linerate_model::statistics::Quantity;
use linerate_rules::judge::{self, Effect, Judgement, Measurement, Pair};
use linerate_rules::tuning::{End, Proposal, Proposed};
use linerate_units::{BitRate, ByteCount, Ratio, display};

use super::course::{CourseOutcome, Ended, Failure, RoundDone, Seen, Tried};
use super::far::FarAddress;
use crate::cmd::diagnose::document::{Asked, Begun};
use crate::cmd::measurement::own_arguments;
use crate::surroundings::{OwnTraffic, Surroundings};

/// A change as text: the same change of the same host has the same.
pub(super) fn change_text(one: &Proposed) -> String {
    format!("{} {} = {}", one.end.name(), one.change.target, one.change.to)
}

/// A group's changes as text.
pub(super) fn changes_text(proposal: &Proposal, group: Group) -> String {
    let of_group: Vec<String> =
        proposal.changes.iter().filter(|one| one.change.group == group).map(change_text).collect();
    of_group.join("; ")
}

/// What a course is told as.
pub(crate) struct Told<'a> {
    /// What was asked for.
    pub(crate) asked: Asked<'a>,
    /// The role's name.
    pub(crate) role: &'a str,
    /// When it began.
    pub(crate) begun: &'a Begun,
    /// What came out.
    pub(crate) outcome: &'a CourseOutcome,
    /// What stays.
    pub(crate) kept: &'a [(End, Kept)],
    /// Where the far end was changed from.
    pub(crate) far: Option<&'a FarAddress>,
    /// What a reader should know.
    pub(crate) notes: Vec<String>,
}

impl Told<'_> {
    /// The document.
    pub(crate) fn document(&self) -> tune::TuneDocument {
        let outcome = self.outcome;
        let diagnosed = |seen: &Seen| Box::new(diagnosed(self.asked, seen));
        let changed = outcome.ended == Ended::Kept;
        tune::TuneDocument {
            schema: tune::SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.asked.host.to_owned(),
            port: self.asked.port.get(),
            started_at_unix_ns: nanoseconds(self.begun.at.since_unix_epoch()),
            duration_ns: nanoseconds(self.begun.lasted()),
            termination: (&termination(outcome)).into(),
            role: self.role.to_owned(),
            transfer: self.asked.transfer.to_vec(),
            outcome: result(outcome.ended),
            sentence: sentence(outcome),
            before: outcome.before.as_ref().map(diagnosed),
            rounds: outcome.rounds.iter().map(round).collect(),
            after: outcome.after.as_ref().filter(|_| changed).map(diagnosed),
            effects: if changed { overall(outcome) } else { Vec::new() },
            contributions: contributions(outcome),
            kept: self.kept.iter().map(|(end, kept)| kept_set(*end, kept, self.far)).collect(),
            unknown: Vec::new(),
            notes: self.notes.iter().chain(&outcome.left).cloned().collect(),
        }
    }
}

fn diagnosed(asked: Asked<'_>, seen: &Seen) -> DiagnoseDocument {
    seen.begun.document(asked, &seen.outcome, &seen.diagnosis)
}

/// How it ended.
pub(crate) fn termination(outcome: &CourseOutcome) -> Termination {
    match &outcome.failure {
        Some(Failure { signal: Some(signal), .. }) => Termination::Interrupted { signal: signal.describe() },
        Some(failure) => Termination::Failed { message: failure.text.clone() },
        None => Termination::Complete,
    }
}

const fn result(ended: Ended) -> tune::TuneOutcome {
    match ended {
        Ended::NothingToDo | Ended::NoWay => tune::TuneOutcome::NothingToChange,
        Ended::Planned => tune::TuneOutcome::Planned,
        Ended::Declined => tune::TuneOutcome::Declined,
        Ended::Kept => tune::TuneOutcome::Kept,
        Ended::RolledBack | Ended::NotConfirmed => tune::TuneOutcome::RolledBack,
        Ended::BrokenOff => tune::TuneOutcome::BrokenOff,
    }
}

/// What was found and done, in one sentence.
fn sentence(outcome: &CourseOutcome) -> String {
    let title = |seen: &Seen| seen.cause().map_or("what limits is not known", linerate_model::diagnosis::Cause::title);
    let found = outcome.before.as_ref().map_or("what limits is not known", title);
    let done = match outcome.ended {
        Ended::NothingToDo => "there is nothing to change on a host".to_owned(),
        Ended::NoWay => "that is on a host, but nothing can be changed there".to_owned(),
        Ended::Planned => "there is a plan against that, and nothing was touched".to_owned(),
        Ended::Declined => "nothing was touched, as you said no".to_owned(),
        Ended::RolledBack => "what was tried did not earn its keep, and was taken back".to_owned(),
        Ended::NotConfirmed => "what was tried helped, but was not confirmed, and was taken back".to_owned(),
        Ended::BrokenOff if !outcome.touched => "it was broken off before anything was touched".to_owned(),
        Ended::BrokenOff if !outcome.left.is_empty() => {
            "it was broken off, and not everything could be put back (see the notes)".to_owned()
        }
        Ended::BrokenOff => "it was broken off, and everything taken back".to_owned(),
        Ended::Kept => {
            let rate = |value: Option<f64>| Some(display::rate(BitRate::from_bits_per_second(value?)));
            let effects = overall(outcome);
            let goodput = effects.iter().find(|effect| effect.name == "goodput");
            let gain = goodput.and_then(|effect| Some((rate(effect.before)?, rate(effect.after)?)));
            let gain = gain.map_or_else(String::new, |(before, after)| format!("{before} became {after}"));
            format!("{gain}, and now: {}", last(outcome).map_or("what limits is not known", title))
        }
    };
    format!("{}: {done}.", capital(found))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn last(outcome: &CourseOutcome) -> Option<&Seen> {
    outcome.after.as_ref().or(outcome.before.as_ref())
}

/// A proposal with what was tried of it.
fn round(round: &RoundDone) -> tune::Round {
    tune::Round { trials: round.tried.iter().map(trial).collect(), ..planned(&round.proposal) }
}

/// A proposal of which nothing was tried.
pub(super) fn planned(proposal: &Proposal) -> tune::Round {
    let change = |one: &Proposed| tune::ProposedChange {
        end: one.end.name().to_owned(),
        change: ChangeDocument::from(&one.change),
        alternatives: one.alternatives.iter().map(ChangeDocument::from).collect(),
    };
    let refusal = |one: &linerate_rules::tuning::Refusal| tune::Refusal {
        rule: one.rule.map(str::to_owned),
        end: one.end.map(|end| end.name().to_owned()),
        text: one.text.clone(),
    };
    tune::Round {
        cause: proposal.cause.map(|cause| cause.name().to_owned()),
        changes: proposal.changes.iter().map(change).collect(),
        refusals: proposal.refusals.iter().map(refusal).collect(),
        lives_with_the_path: proposal.lives_with_the_path(),
        trials: Vec::new(),
    }
}

fn trial(tried: &Tried) -> tune::Trial {
    tune::Trial {
        group: tried.group.name().to_owned(),
        name: tried.changes.iter().map(change_text).collect::<Vec<_>>().join("; "),
        pairs: tried.pairs.iter().map(pair).collect(),
        decision: tried.judgement.decision.name().to_owned(),
        sentence: tried.judgement.sentence.clone(),
        effects: effects(&tried.judgement),
    }
}

/// A pair as documents have it.
pub(crate) fn pair(pair: &Pair) -> tune::Pair {
    tune::Pair { before: measured(&pair.before), after: measured(&pair.after), fault: pair.fault() }
}

/// The way back.
pub(crate) fn pair_of(pair: &tune::Pair) -> Pair {
    let of = |one: &tune::Measurement| Measurement {
        goodput: BitRate::from_bits_per_second(one.goodput_bits_per_second),
        round_trip_p95: one.round_trip_p95_ns.map(core::time::Duration::from_nanos),
        base_round_trip: one.base_round_trip_ns.map(core::time::Duration::from_nanos),
        retransmitted: one.retransmitted.and_then(Ratio::new),
        processor: one.processor.and_then(Ratio::new),
        disturbed: one.disturbed.clone(),
    };
    Pair { before: of(&pair.before), after: of(&pair.after) }
}

fn measured(one: &Measurement) -> tune::Measurement {
    tune::Measurement {
        goodput_bits_per_second: one.goodput.bits_per_second(),
        round_trip_p95_ns: one.round_trip_p95.map(nanoseconds),
        base_round_trip_ns: one.base_round_trip.map(nanoseconds),
        retransmitted: one.retransmitted.map(Ratio::get),
        processor: one.processor.map(Ratio::get),
        disturbed: one.disturbed.clone(),
    }
}

fn effects(judgement: &Judgement) -> Vec<tune::Effect> {
    let rate = judgement.goodput.as_ref().map(|effect| shown("goodput", "Goodput", Unit::BitsPerSecond, effect));
    let time = judgement
        .round_trip
        .as_ref()
        .map(|effect| shown("round_trip_p95", "Round trip under load (95 %)", Unit::Nanoseconds, effect));
    let again =
        judgement.retransmitted.as_ref().map(|effect| shown("retransmitted", "Sent again", Unit::Share, effect));
    let busy = judgement.processor.as_ref().map(|effect| shown("processor", "Busiest processor", Unit::Share, effect));
    [rate, time, again, busy].into_iter().flatten().collect()
}

fn shown<Q: Quantity>(name: &str, title: &str, unit: Unit, effect: &Effect<Q>) -> tune::Effect {
    let signed = |value: linerate_model::statistics::Signed<Q>| {
        let size = value.magnitude.number();
        if value.negative { -size } else { size }
    };
    tune::Effect {
        name: name.to_owned(),
        title: title.to_owned(),
        unit,
        before: Some(effect.before.number()),
        after: Some(effect.after.number()),
        difference: Some(signed(effect.difference)),
        low: effect.interval.map(|(low, _)| signed(low)),
        high: effect.interval.map(|(_, high)| signed(high)),
    }
}

/// From the first diagnosis to the last: with the intervals of the trial where there was only one that was kept.
fn overall(outcome: &CourseOutcome) -> Vec<tune::Effect> {
    let kept: Vec<&Tried> = outcome
        .rounds
        .iter()
        .flat_map(|round| &round.tried)
        .filter(|tried| tried.judgement.decision == judge::Decision::Keep)
        .collect();
    match kept.as_slice() {
        [one] => effects(&one.judgement),
        [first, .., latest] => {
            let (first, latest) = (effects(&first.judgement), effects(&latest.judgement));
            let join = |first: tune::Effect| {
                let after = latest.iter().find(|one| one.name == first.name)?.after;
                let difference = first.before.zip(after).map(|(before, after)| after - before);
                Some(tune::Effect { after, difference, low: None, high: None, ..first })
            };
            first.into_iter().filter_map(join).collect()
        }
        [] => Vec::new(),
    }
}

fn contributions(outcome: &CourseOutcome) -> Vec<tune::Contribution> {
    let tried = outcome.rounds.iter().flat_map(|round| &round.tried);
    let trials: Vec<(Group, Judgement)> = tried.map(|tried| (tried.group, tried.judgement.clone())).collect();
    let one = |one: judge::Contribution| tune::Contribution {
        group: one.group.name().to_owned(),
        decision: one.decision.name().to_owned(),
        before_bits_per_second: one.goodput.map(|effect| effect.before.bits_per_second()),
        after_bits_per_second: one.goodput.map(|effect| effect.after.bits_per_second()),
        part: one.part.map(Ratio::get),
    };
    judge::contributions(&trials).into_iter().map(one).collect()
}

/// What stays on a host, and how it is undone.
pub(super) fn kept_set(end: End, kept: &Kept, far: Option<&FarAddress>) -> tune::KeptSet {
    let names = |targets: &[linerate_model::change::Target]| targets.iter().map(ToString::to_string).collect();
    tune::KeptSet {
        end: end.name().to_owned(),
        id: kept.id.get(),
        undo: match (end, far) {
            (End::Near, _) | (End::Far, None) => format!("linerate rollback {}", kept.id),
            (End::Far, Some(address)) => address.undo(kept.id),
        },
        file: kept.file.as_ref().map(|file| file.display().to_string()),
        lasting: names(&kept.lasting),
        until_reboot: names(&kept.until_reboot),
        warnings: kept.warnings.clone(),
    }
}

/// The run as it is kept.
pub(crate) fn run(document: &tune::TuneDocument, outcome: &CourseOutcome, surroundings: Surroundings) -> RunDocument {
    let first = outcome.before.as_ref();
    let far = first.and_then(|seen| seen.outcome.path.as_ref()?.far.as_ref()).map(crate::surroundings::far);
    RunDocument {
        arguments: own_arguments(),
        verdict: document.sentence.clone(),
        figures: figures(&document.effects, first),
        environment: RunEnvironment { near: Some(surroundings.finish(traffic(outcome))), far, lab: None },
        ..RunDocument::from(document.clone())
    }
}

/// What the measurements moved; the directions are told apart by the first transfer's.
fn traffic(outcome: &CourseOutcome) -> OwnTraffic {
    let mut traffic = OwnTraffic::default();
    for seen in outcome.before.iter().chain(&outcome.after) {
        if let Some(path) = &seen.outcome.path {
            traffic.received += path.received;
            traffic.sent += path.sent;
        }
        let Some(observation) = &seen.outcome.observation else { continue };
        let moved: ByteCount = observation.received;
        if observation.asked.from_far { traffic.received += moved } else { traffic.sent += moved }
    }
    traffic
}

/// Where something is kept, what is now; else what was found.
pub(crate) fn figures(effects: &[tune::Effect], first: Option<&Seen>) -> Vec<Figure> {
    let better = |name: &str| if name == "goodput" { Better::Higher } else { Better::Lower };
    if effects.is_empty() {
        let goodput = first.map(|seen| seen.diagnosis.goodput.bits_per_second());
        let figure = Figure::new("goodput", "Goodput", Unit::BitsPerSecond, Better::Higher);
        return vec![Figure { value: goodput, ..figure }];
    }
    let one = |effect: &tune::Effect| {
        let before = Figure {
            value: effect.before,
            ..Figure::new(
                format!("{}_before", effect.name),
                format!("{} before", effect.title),
                effect.unit,
                better(&effect.name),
            )
        };
        let after = Figure {
            value: effect.after,
            ..Figure::new(effect.name.clone(), format!("{} now", effect.title), effect.unit, better(&effect.name))
        };
        [before, after]
    };
    effects.iter().flat_map(one).collect()
}
