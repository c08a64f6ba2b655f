//! Document and history record of a tuning session.

use linerate_analysis::statistics::StatisticalQuantity;
use linerate_change::KeptChanges;
use linerate_documents::diagnose::DiagnoseDocument;
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunEnvironment, RunFigure};
use linerate_documents::tune::EffectFigure;
use linerate_documents::{nanoseconds, tune};
use linerate_engine::surroundings::{LocalEnvironment, OwnTraffic};
use linerate_model::change::{ChangeGroup, ChangeTarget};
use linerate_model::diagnosis::{Cause, CauseLocation};
use linerate_model::report::TestTermination;
use linerate_rules::judge::{self, EffectEstimate, GroupContribution, TrialJudgement};
use linerate_rules::tuning::{HostEnd, ProposedHostChange, TuningGoal, TuningProposal};
use linerate_units::{BitRate, ByteCount, Ratio, display};

use serde::{Deserialize, Serialize};

use super::session::{DiagnosedTransfer, TriedGroup, TuningEnd, TuningFailure, TuningOutcome, TuningRound};
use crate::diagnose::{RunStart, TransferRequest};
use crate::far::FarAddress;

/// Identity of a proposed change: the value, the target and the host, whatever its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeIdentity {
    end: HostEnd,
    target: ChangeTarget,
    to: String,
}

impl From<&ProposedHostChange> for ChangeIdentity {
    fn from(one: &ProposedHostChange) -> Self {
        Self { end: one.end, target: one.change.target.clone(), to: one.change.to.clone() }
    }
}

impl ChangeIdentity {
    /// Identities of a group's changes.
    pub(super) fn of_group(proposal: &TuningProposal, group: ChangeGroup) -> Vec<Self> {
        proposal.changes.iter().filter(|one| one.change.group == group).map(Self::from).collect()
    }
}

/// Text of a change.
fn change_text(one: &ProposedHostChange) -> String {
    format!("{} {} = {}", one.end.name(), one.change.target, one.change.to)
}

/// Contents of a tuning document.
pub struct TuningResult<'a> {
    /// Request.
    pub request: TransferRequest<'a>,
    /// Role of the hosts.
    pub role: TuningGoal,
    /// Seed of the order of measurements within pairs.
    pub seed: u64,
    /// Start.
    pub begun: &'a RunStart,
    /// Outcome.
    pub outcome: &'a TuningOutcome,
    /// Kept changes.
    pub kept: &'a [(HostEnd, KeptChanges)],
    /// Access to the far host.
    pub far: Option<&'a FarAddress>,
    /// Notes shown below the tables.
    pub notes: Vec<String>,
}

impl TuningResult<'_> {
    /// Builds the document.
    pub fn document(&self) -> tune::TuneDocument {
        let outcome = self.outcome;
        let diagnosed = |seen: &DiagnosedTransfer| Box::new(diagnosed(self.request, seen));
        let changed = outcome.ended == TuningEnd::Kept;
        tune::TuneDocument {
            schema: tune::SCHEMA,
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.request.host.to_owned(),
            port: self.request.port.get(),
            started_at_unix_ns: nanoseconds(self.begun.at.since_unix_epoch()),
            duration_ns: nanoseconds(self.begun.lasted()),
            termination: termination(outcome),
            role: self.role,
            transfer: self.request.transfer.to_vec(),
            seed: Some(self.seed),
            outcome: result(outcome.ended),
            sentence: sentence(outcome),
            before: outcome.before.as_ref().map(diagnosed),
            rounds: outcome.rounds.iter().map(round).collect(),
            after: outcome.after.as_ref().filter(|_| changed).map(diagnosed),
            effects: if changed { overall_effects(outcome) } else { Vec::new() },
            contributions: contributions(outcome),
            kept: self.kept.iter().map(|(end, kept)| kept_set(*end, kept, self.far)).collect(),
            unknown: Vec::new(),
            notes: self.notes.iter().chain(&outcome.notes).chain(&outcome.left).cloned().collect(),
        }
    }
}

fn diagnosed(asked: TransferRequest<'_>, seen: &DiagnosedTransfer) -> DiagnoseDocument {
    seen.begun.document(asked, &seen.outcome, &seen.diagnosis)
}

/// Termination of a session.
pub fn termination(outcome: &TuningOutcome) -> TestTermination {
    match &outcome.failure {
        Some(TuningFailure { signal: Some(signal), .. }) => {
            TestTermination::Interrupted { signal: Some(signal.describe()) }
        }
        Some(failure) => TestTermination::Failed { message: failure.text.clone() },
        None => TestTermination::Complete,
    }
}

const fn result(ended: TuningEnd) -> tune::TuneOutcome {
    match ended {
        TuningEnd::NothingToDo | TuningEnd::NoWay => tune::TuneOutcome::NothingToChange,
        TuningEnd::Planned => tune::TuneOutcome::Planned,
        TuningEnd::Declined => tune::TuneOutcome::Declined,
        TuningEnd::Kept => tune::TuneOutcome::Kept,
        TuningEnd::RolledBack | TuningEnd::NotConfirmed => tune::TuneOutcome::RolledBack,
        TuningEnd::BrokenOff => tune::TuneOutcome::Aborted,
    }
}

/// Summary sentence.
fn sentence(outcome: &TuningOutcome) -> String {
    let title = |seen: &DiagnosedTransfer| seen.cause().map_or("unknown limit", Cause::title);
    let found = outcome.before.as_ref().map_or("unknown limit", title);
    let done = match outcome.ended {
        TuningEnd::NothingToDo => match outcome.before.as_ref().and_then(DiagnosedTransfer::cause).map(Cause::location)
        {
            Some(CauseLocation::Network) => "the cause is on the path, and no host setting was changed".to_owned(),
            Some(CauseLocation::Application) => "the cause is in a program, and no host setting was changed".to_owned(),
            _ => "no host setting needs a change".to_owned(),
        },
        TuningEnd::NoWay => "the limit is on a host, but cannot be changed there".to_owned(),
        TuningEnd::Planned => "a plan exists, and nothing was changed".to_owned(),
        TuningEnd::Declined => "nothing was changed, as you declined".to_owned(),
        TuningEnd::RolledBack => "the measurements did not confirm the changes, which were rolled back".to_owned(),
        TuningEnd::NotConfirmed => "the changes helped, but were not confirmed and were rolled back".to_owned(),
        TuningEnd::BrokenOff if !outcome.touched => "interrupted before any change".to_owned(),
        TuningEnd::BrokenOff if !outcome.left.is_empty() => {
            "interrupted, and not everything could be restored (see the notes)".to_owned()
        }
        TuningEnd::BrokenOff => "interrupted, and everything was rolled back".to_owned(),
        TuningEnd::Kept => {
            let rate = |value: Option<f64>| Some(display::rate(BitRate::from_bits_per_second(value?)));
            let effects = overall_effects(outcome);
            let goodput = effects.iter().find(|effect| effect.name == EffectFigure::Goodput);
            let gain = goodput.and_then(|effect| Some((rate(effect.before)?, rate(effect.after)?)));
            let gain =
                gain.map_or_else(String::new, |(before, after)| format!("goodput {before} before, {after} after"));
            format!("{gain}; limit now: {}", last_diagnosis(outcome).map_or("unknown", title))
        }
    };
    format!("{}: {done}.", capitalised(found))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn last_diagnosis(outcome: &TuningOutcome) -> Option<&DiagnosedTransfer> {
    outcome.after.as_ref().or(outcome.before.as_ref())
}

/// Converts a round: proposal and trials.
fn round(round: &TuningRound) -> tune::TuneRound {
    tune::TuneRound { trials: round.tried.iter().map(trial).collect(), ..planned(&round.proposal) }
}

/// Converts a proposal without trials.
pub(super) fn planned(proposal: &TuningProposal) -> tune::TuneRound {
    let change = |one: &ProposedHostChange| tune::ProposedChange {
        end: one.end,
        change: one.change.clone(),
        alternatives: one.alternatives.clone(),
    };
    let refusal = |one: &linerate_rules::tuning::TuningRefusal| tune::RefusedChange {
        rule: one.rule.map(str::to_owned),
        end: one.end,
        text: one.text.clone(),
    };
    tune::TuneRound {
        cause: proposal.cause,
        changes: proposal.changes.iter().map(change).collect(),
        refusals: proposal.refusals.iter().map(refusal).collect(),
        lives_with_the_path: proposal.lives_with_the_path(),
        trials: Vec::new(),
    }
}

fn trial(tried: &TriedGroup) -> tune::GroupTrial {
    tune::GroupTrial {
        group: tried.group,
        name: tried.changes.iter().map(change_text).collect::<Vec<_>>().join("; "),
        pairs: tried.pairs.clone(),
        decision: tried.judgement.decision,
        sentence: tried.judgement.sentence.clone(),
        effects: effects(&tried.judgement),
    }
}

fn effects(judgement: &TrialJudgement) -> Vec<tune::MeasuredEffect> {
    let goodput = judgement.goodput.as_ref().map(|effect| effect_document(EffectFigure::Goodput, effect));
    let round_trip = judgement.round_trip.as_ref().map(|effect| effect_document(EffectFigure::RoundTripP95, effect));
    let share =
        |figure, effect: &Option<EffectEstimate<Ratio>>| effect.as_ref().map(|effect| effect_document(figure, effect));
    let retransmitted = share(EffectFigure::Retransmitted, &judgement.retransmitted);
    let processor = share(EffectFigure::Processor, &judgement.processor);
    [goodput, round_trip, retransmitted, processor].into_iter().flatten().collect()
}

fn effect_document<Q: StatisticalQuantity>(name: EffectFigure, effect: &EffectEstimate<Q>) -> tune::MeasuredEffect {
    let signed = |value: linerate_analysis::statistics::SignedDifference<Q>| {
        let size = value.magnitude.number();
        if value.negative { -size } else { size }
    };
    tune::MeasuredEffect {
        name,
        unit: name.unit(),
        before: Some(effect.before.number()),
        after: Some(effect.after.number()),
        difference: Some(signed(effect.difference)),
        low: effect.interval.map(|(low, _)| signed(low)),
        high: effect.interval.map(|(_, high)| signed(high)),
    }
}

/// Effects from the first diagnosis to the last, with the trial's intervals where only one was kept.
fn overall_effects(outcome: &TuningOutcome) -> Vec<tune::MeasuredEffect> {
    let kept: Vec<&TriedGroup> = outcome
        .rounds
        .iter()
        .flat_map(|round| &round.tried)
        .filter(|tried| tried.judgement.decision == judge::TrialDecision::Keep)
        .collect();
    match kept.as_slice() {
        [one] => effects(&one.judgement),
        [first, .., latest] => {
            let (first, latest) = (effects(&first.judgement), effects(&latest.judgement));
            let join = |first: tune::MeasuredEffect| {
                let after = latest.iter().find(|one| one.name == first.name)?.after;
                let difference = first.before.zip(after).map(|(before, after)| after - before);
                Some(tune::MeasuredEffect { after, difference, low: None, high: None, ..first })
            };
            first.into_iter().filter_map(join).collect()
        }
        [] => Vec::new(),
    }
}

fn contributions(outcome: &TuningOutcome) -> Vec<GroupContribution> {
    let tried = outcome.rounds.iter().flat_map(|round| &round.tried);
    let trials: Vec<(ChangeGroup, TrialJudgement)> =
        tried.map(|tried| (tried.group, tried.judgement.clone())).collect();
    judge::contributions(&trials)
}

/// Kept changes of a host, and the command that rolls them back.
pub fn kept_set(end: HostEnd, kept: &KeptChanges, far: Option<&FarAddress>) -> tune::KeptSet {
    let names = |targets: &[ChangeTarget]| targets.iter().map(ToString::to_string).collect();
    tune::KeptSet {
        end,
        id: kept.id.get(),
        undo: match (end, far) {
            (HostEnd::Near, _) | (HostEnd::Far, None) => format!("linerate rollback {}", kept.id),
            (HostEnd::Far, Some(address)) => address.rollback_command(kept.id),
        },
        file: kept.file.as_ref().map(|file| file.display().to_string()),
        persistent: names(&kept.lasting),
        until_reboot: names(&kept.until_reboot),
        warnings: kept.warnings.clone(),
    }
}

/// Record of the run in the history.
pub fn run(
    document: &tune::TuneDocument,
    outcome: &TuningOutcome,
    surroundings: LocalEnvironment,
    arguments: Vec<String>,
) -> RunDocument {
    let first = outcome.before.as_ref();
    let far = first.and_then(|seen| seen.outcome.path.as_ref()?.far.as_ref()).map(linerate_engine::surroundings::far);
    RunDocument {
        arguments,
        verdict: document.sentence.clone(),
        figures: figures(&document.effects, first),
        environment: RunEnvironment { near: Some(surroundings.finish(traffic(outcome))), far, lab: None },
        ..RunDocument::from(document.clone())
    }
}

/// Traffic of the measurements, by direction as in the first transfer.
fn traffic(outcome: &TuningOutcome) -> OwnTraffic {
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

/// Figures after kept changes, else of the diagnosis.
pub fn figures(effects: &[tune::MeasuredEffect], first: Option<&DiagnosedTransfer>) -> Vec<RunFigure> {
    if effects.is_empty() {
        let goodput = first.map(|seen| seen.diagnosis.goodput.bits_per_second());
        let figure = RunFigure::new("goodput", "Goodput", FigureUnit::BitsPerSecond, ImprovementDirection::Higher);
        return vec![RunFigure { value: goodput, ..figure }];
    }
    let one = |effect: &tune::MeasuredEffect| {
        let (name, title) = (effect.name.name(), effect.name.title());
        let figure = |name: String, title: String, value| RunFigure {
            value,
            ..RunFigure::new(name, title, effect.unit, effect.name.better())
        };
        let before = figure(format!("{name}_before"), format!("{title} before"), effect.before);
        let after = figure(name.to_owned(), format!("{title} now"), effect.after);
        [before, after]
    };
    effects.iter().flat_map(one).collect()
}
