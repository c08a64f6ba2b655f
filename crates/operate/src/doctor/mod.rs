//! `linerate doctor HOST`: measure, explain, change, prove, report, as one guided run.

mod checkpoint;
mod document;

use std::path::PathBuf;
use std::time::Duration;

use linerate_change::ChangeStore;
use linerate_documents::doctor::{DoctorDocument, DoctorStage, DoctorStep};
use linerate_documents::run::RunDocument;
use linerate_engine::load::{self, LoadEvent, LoadTestOptions};
use linerate_engine::path::{self, PathEvent};
use linerate_engine::surroundings::LocalEnvironment;
use linerate_model::load::{LoadDocument, PhaseKind};
use linerate_model::parameters::TestDirection;
use linerate_model::path::PathDocument;
use linerate_model::report::Outcome;
use linerate_report::sentence;
use linerate_rules::tuning::TuningProposal;
use linerate_sys::clock;
use linerate_sys::signals::InterruptSignals;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, MonotonicTime, StreamCount};

use checkpoint::{DoctorCheckpoint, RunParameters};

use crate::diagnose::{RunStart, path_options};
use crate::tuning::session::{
    DiagnosedTransfer, MeasuredPairs, TrialConsent, TrialCost, TriedGroup, TuningEnd, TuningEvent, TuningFailure,
    TuningInterface, TuningOutcome, TuningSettings,
};
use crate::tuning::{CompletedTuning, HostOptions, carry_out, notes};

/// A loaded phase of the examination is shorter than that of `linerate load`: the trial's own transfers tell the rest.
const LOADED_PHASE: Duration = Duration::from_secs(6);
const IDLE_PHASE: Duration = Duration::from_secs(3);

/// Request for a guided run.
pub struct DoctorRequest {
    /// Far end.
    pub host: String,
    /// Options of the transfer, as iperf3 has them.
    pub transfer: Vec<String>,
    /// Ignores the checkpoint of an interrupted run.
    pub fresh: bool,
    /// Measures the delay under load.
    pub load: bool,
    /// Settings of the tuning; path and pairs come from the checkpoint.
    pub settings: TuningSettings,
    /// Access to the hosts.
    pub hosts: HostOptions,
}

/// Presenter of a guided run.
pub trait DoctorInterface: TuningInterface {
    /// Reports an event outside of the tuning.
    fn examined(&mut self, event: DoctorEvent<'_>);
    /// True when a question found no one to answer it.
    fn has_no_terminal(&self) -> bool;
}

/// Event of a guided run.
pub enum DoctorEvent<'a> {
    /// It begins.
    Begun {
        /// True when it continues an interrupted run.
        is_resumed: bool,
    },
    /// Event of measuring the path.
    Path(&'a PathEvent),
    /// Event of measuring the delay under load.
    Load(&'a LoadEvent),
    /// A measurement has ended.
    Measured,
    /// A step was taken.
    Step {
        /// Its name.
        name: DoctorStage,
        /// Its result.
        text: &'a str,
    },
    /// Something failed.
    Problem(&'a str),
}

/// End of a guided run.
pub enum DoctorEnd {
    /// The path could not be measured.
    NoPath,
    /// Interrupted before the tuning: another run goes on from here.
    Interrupted,
    /// The tuning could not begin.
    Failed(TuningFailure),
    /// All steps were taken.
    Done(Box<DoctorReport>),
}

/// Result of a guided run.
pub struct DoctorReport {
    done: CompletedTuning,
    document: DoctorDocument,
}

impl DoctorReport {
    /// Outcome of the tuning.
    pub fn outcome(&self) -> &TuningOutcome {
        &self.done.outcome
    }

    /// Its document.
    pub fn document(&self) -> &DoctorDocument {
        &self.document
    }

    /// The run as it is kept.
    pub fn run(&self, surroundings: LocalEnvironment, arguments: Vec<String>) -> RunDocument {
        document::run(&self.document, &self.done, surroundings, arguments)
    }
}

/// Goes through all steps.
pub fn run(
    request: DoctorRequest,
    begun: &RunStart,
    guide: &mut dyn DoctorInterface,
    stop: InterruptSignals,
) -> DoctorEnd {
    DoctorRun::new(request, begun, guide, stop).run()
}

/// State of a guided run.
struct DoctorRun<'a> {
    request: DoctorRequest,
    guide: &'a mut dyn DoctorInterface,
    stop: InterruptSignals,
    begun: &'a RunStart,
    checkpoint: DoctorCheckpoint,
    steps: Vec<DoctorStep>,
    notes: Vec<String>,
}

impl<'a> DoctorRun<'a> {
    fn new(
        request: DoctorRequest,
        begun: &'a RunStart,
        guide: &'a mut dyn DoctorInterface,
        stop: InterruptSignals,
    ) -> Self {
        let asked = RunParameters {
            host: request.host.clone(),
            // A server over ssh has another port in each run.
            port: if request.settings.target.address.is_some() { 0 } else { request.settings.target.port.get() },
            role: request.settings.goal,
            transfer: request.transfer.clone(),
        };
        let directory: Option<PathBuf> =
            ChangeStore::from_environment().ok().map(|store| store.state_directory().join("doctor"));
        let checkpoint = DoctorCheckpoint::open(directory.as_deref(), asked, begun.at, request.fresh);
        Self { request, guide, stop, begun, checkpoint, steps: Vec::new(), notes: Vec::new() }
    }

    fn run(mut self) -> DoctorEnd {
        self.guide.examined(DoctorEvent::Begun { is_resumed: self.checkpoint.is_resumed });
        if !self.measure_path() {
            return DoctorEnd::NoPath;
        }
        if self.request.load && !self.is_interrupted() {
            self.measure_load();
        }
        if self.is_interrupted() {
            return DoctorEnd::Interrupted;
        }
        let done = match self.tune() {
            Ok(done) => done,
            Err(failure) => return DoctorEnd::Failed(failure),
        };
        let after = self.load_after(&done);
        DoctorEnd::Done(Box::new(self.conclude(done, after)))
    }

    fn is_interrupted(&self) -> bool {
        self.stop.pending().is_some()
    }

    fn step(&mut self, name: DoctorStage, text: String, since: MonotonicTime, resumed: bool) {
        self.guide.examined(DoctorEvent::Step { name, text: &text });
        let duration_ns = nanoseconds(clock::monotonic_now().since(since));
        self.steps.push(DoctorStep { name, text, duration_ns, resumed });
    }

    /// Measures the path unless it is known; true when it is known afterwards.
    fn measure_path(&mut self) -> bool {
        let since = clock::monotonic_now();
        if let Some(path) = &self.checkpoint.content.path {
            let text = sentence::path::sentence(path);
            self.step(DoctorStage::Path, text, since, true);
            return true;
        }
        let options = path_options(self.request.settings.target.clone(), true);
        let guide = &mut *self.guide;
        let outcome = path::run(&options, Some(self.stop), &mut |event| guide.examined(DoctorEvent::Path(event)));
        self.guide.examined(DoctorEvent::Measured);
        if let Some(error) = &outcome.error {
            self.guide.examined(DoctorEvent::Problem(&error.to_string()));
        }
        if outcome.document.termination.outcome() != Outcome::Complete {
            return outcome.error.is_none();
        }
        let text = sentence::path::sentence(&outcome.document);
        self.checkpoint.content.path = Some(Box::new(outcome.document));
        self.checkpoint.save();
        self.step(DoctorStage::Path, text, since, false);
        true
    }

    fn measure_load(&mut self) {
        let since = clock::monotonic_now();
        if let Some(load) = &self.checkpoint.content.load {
            let text = sentence::load::sentence(load);
            return self.step(DoctorStage::Load, text, since, true);
        }
        if let Some(document) = self.load() {
            let text = sentence::load::sentence(&document);
            self.checkpoint.content.load = Some(Box::new(document));
            self.checkpoint.save();
            self.step(DoctorStage::Load, text, since, false);
        }
    }

    /// The delay while the transfer's own direction is loaded, by connections like those that people have.
    fn load(&mut self) -> Option<LoadDocument> {
        let transfer = &self.request.settings.transfer;
        let loaded = match transfer.direction {
            TestDirection::Reverse => PhaseKind::Down,
            TestDirection::Forward | TestDirection::Bidirectional => PhaseKind::Up,
        };
        let options = LoadTestOptions {
            congestion_control: transfer.congestion.clone(),
            connections: StreamCount::new(1),
            phases: vec![PhaseKind::Idle, loaded],
            idle_time: IDLE_PHASE,
            load_time: LOADED_PHASE,
            hops: false,
            capacity: self.capacity(loaded),
            ..LoadTestOptions::new(self.request.settings.target.clone())
        };
        let guide = &mut *self.guide;
        let outcome = load::run(&options, Some(self.stop), &mut |event| guide.examined(DoctorEvent::Load(event)));
        self.guide.examined(DoctorEvent::Measured);
        if let Some(error) = &outcome.error {
            self.notes.push(format!("The delay under load was not measured: {error}"));
        }
        (outcome.document.termination.outcome() == Outcome::Complete && outcome.error.is_none())
            .then_some(outcome.document)
    }

    /// Capacity of the measured path in the direction of this phase.
    fn capacity(&self, loaded: PhaseKind) -> Option<BitRate> {
        let path = self.checkpoint.content.path.as_deref()?;
        let direction = if loaded == PhaseKind::Down { &path.down } else { &path.up };
        direction.capacity.as_ref().map(|capacity| BitRate::from_bits_per_second(capacity.bits_per_second))
    }

    /// Diagnosis, plan, trial and proof.
    fn tune(&mut self) -> Result<CompletedTuning, TuningFailure> {
        self.go_on_with_what_is_left();
        let since = clock::monotonic_now();
        let mut guide =
            StepRecorder { guide: &mut *self.guide, checkpoint: &mut self.checkpoint, steps: Vec::new(), since };
        let done = carry_out(&self.request.hosts, &self.request.settings, &mut guide, self.stop)?;
        let steps = guide.steps;
        self.notes.extend(notes(&done, &self.request.hosts, self.guide.has_no_terminal()));
        self.steps.extend(steps);
        if done.outcome.ended != TuningEnd::BrokenOff {
            self.checkpoint.remove();
        }
        if let Some(failure) = &done.outcome.failure {
            self.guide.examined(DoctorEvent::Problem(&failure.text));
        }
        Ok(done)
    }

    /// Has the tuning begin with what was measured already.
    fn go_on_with_what_is_left(&mut self) {
        let content = &self.checkpoint.content;
        let pairs = |pairs: &checkpoint::GroupPairs| MeasuredPairs {
            changes: pairs.changes.clone(),
            pairs: pairs.pairs.clone(),
        };
        self.request.settings.path = content.path.as_deref().cloned();
        self.request.settings.measured = content.pairs.iter().map(pairs).collect();
    }

    fn load_after(&mut self, done: &CompletedTuning) -> Option<LoadDocument> {
        let measured = self.request.load && self.checkpoint.content.load.is_some();
        if done.outcome.ended != TuningEnd::Kept || !measured || self.is_interrupted() {
            return None;
        }
        let since = clock::monotonic_now();
        let document = self.load()?;
        self.step(DoctorStage::Load, sentence::load::sentence(&document), since, false);
        Some(document)
    }

    fn conclude(self, done: CompletedTuning, after: Option<LoadDocument>) -> DoctorReport {
        let Self { request, begun, checkpoint, steps, notes, .. } = self;
        let (path, load): (Option<Box<PathDocument>>, _) = (checkpoint.content.path, checkpoint.content.load);
        let told = document::DoctorResult { request: &request, begun, session: &done, path, load, after, steps, notes };
        let document = told.document();
        DoctorReport { done, document }
    }
}

/// Notes the steps, and keeps what is measured on the way, so that an interrupted run can go on.
struct StepRecorder<'a> {
    guide: &'a mut dyn DoctorInterface,
    checkpoint: &'a mut DoctorCheckpoint,
    steps: Vec<DoctorStep>,
    /// Start of the running step.
    since: MonotonicTime,
}

impl StepRecorder<'_> {
    fn step(&mut self, name: DoctorStage, text: String) {
        let now = clock::monotonic_now();
        let duration_ns = nanoseconds(now.since(self.since));
        self.since = now;
        self.steps.push(DoctorStep { name, text, duration_ns, resumed: false });
    }

    fn plan(&mut self, proposal: &TuningProposal) {
        let change = |one: &linerate_rules::tuning::ProposedHostChange| {
            format!("{} on the {} host", one.change.target, one.end.name())
        };
        let changes: Vec<String> = proposal.changes.iter().map(change).collect();
        let refused = proposal.refusals.first().filter(|_| changes.is_empty());
        self.step(DoctorStage::Plan, refused.map_or_else(|| changes.join(", "), |refusal| refusal.text.clone()));
    }
}

impl TuningInterface for StepRecorder<'_> {
    fn event(&mut self, event: TuningEvent<'_>) {
        match &event {
            TuningEvent::Pairs { changes, pairs } => {
                self.checkpoint.add_pairs(changes, pairs.to_vec());
            }
            TuningEvent::Diagnosed(seen) => {
                let is_first = self.steps.is_empty();
                if let Some(first) = seen.diagnosis.verdicts.first() {
                    self.step(
                        if is_first { DoctorStage::Diagnose } else { DoctorStage::Verify },
                        format!("{}: {}", first.cause.title(), first.text),
                    );
                }
            }
            TuningEvent::Proposed(proposal) => self.plan(proposal),
            TuningEvent::Judged(tried) => self.step(DoctorStage::Trial, tried.judgement.sentence.clone()),
            TuningEvent::Diagnosing(_)
            | TuningEvent::Trying { .. }
            | TuningEvent::Transfer(_)
            | TuningEvent::Measuring { .. }
            | TuningEvent::Note(_) => {}
        }
        self.guide.event(event);
    }

    fn consents(&mut self, seen: &DiagnosedTransfer, proposal: &TuningProposal, effort: &TrialCost) -> TrialConsent {
        self.guide.consents(seen, proposal, effort)
    }

    fn confirms(&mut self, trials: &[TriedGroup]) -> bool {
        self.guide.confirms(trials)
    }
}
