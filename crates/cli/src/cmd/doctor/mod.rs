//! `linerate doctor HOST`: measure, explain, change, prove, report, as one guided run.

mod arguments;
mod checkpoint;
mod document;

use std::path::PathBuf;
use std::time::Duration;

use linerate_change::Store;
use linerate_engine::load::{self, LoadTestOptions};
use linerate_engine::path;
use linerate_model::parameters::{Direction, TestParameters};
use linerate_model::schema::doctor::Step;
use linerate_model::schema::load::{LoadDocument, PhaseKind};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::throughput::Outcome;
use linerate_rules::tuning::Proposal;
use linerate_sys::clock;
use linerate_sys::signals::Interrupts;
use linerate_units::{MonotonicTime, StreamCount};

pub(crate) use arguments::DoctorArguments;

use checkpoint::{Asked, Checkpoint};

use crate::cmd::diagnose;
use crate::cmd::diagnose::document::Begun;
use crate::cmd::measurement::interrupts;
use crate::cmd::tune::course::{
    Compare, Consent, CourseEvent, Effort, Ended, Guide, MeasuredPairs, Seen, Settings, Tried,
};
use crate::cmd::tune::guide::{AtTerminal, say};
use crate::cmd::tune::{self, Done};
use crate::cmd::{load as load_command, path as path_command};
use crate::console;
use crate::exit::Exit;
use crate::keep::{Page, keep_with_page, shown_host};

/// A loaded phase of the examination is shorter than that of `linerate load`: the trial's own transfers tell the rest.
const LOADED: Duration = Duration::from_secs(6);
const IDLE: Duration = Duration::from_secs(3);

/// Goes through all steps.
pub(crate) fn run(arguments: &DoctorArguments) -> Exit {
    let parameters = match diagnose::parameters(&arguments.transfer, "doctor") {
        Ok(parameters) => parameters,
        Err(exit) => return exit,
    };
    match interrupts() {
        Ok(stop) => Visit::new(arguments, parameters, stop).run(),
        Err(exit) => exit,
    }
}

/// A run that is under way.
struct Visit<'a> {
    arguments: &'a DoctorArguments,
    parameters: TestParameters,
    stop: Interrupts,
    begun: Begun,
    surroundings: crate::surroundings::Surroundings,
    checkpoint: Checkpoint,
    steps: Vec<Step>,
    notes: Vec<String>,
}

impl<'a> Visit<'a> {
    fn new(arguments: &'a DoctorArguments, parameters: TestParameters, stop: Interrupts) -> Self {
        let begun = Begun::now();
        let asked = Asked {
            host: arguments.host.clone(),
            port: arguments.common.port.get(),
            role: arguments.how.role.name().to_owned(),
            transfer: arguments.transfer.clone(),
        };
        let directory: Option<PathBuf> =
            Store::from_environment().ok().map(|store| store.state_directory().join("doctor"));
        let checkpoint = Checkpoint::open(directory.as_deref(), asked, begun.at, arguments.fresh);
        let surroundings = arguments.common.surroundings(&arguments.host);
        Self { arguments, parameters, stop, begun, surroundings, checkpoint, steps: Vec::new(), notes: Vec::new() }
    }

    fn run(mut self) -> Exit {
        self.announce();
        if !self.examine_path() {
            return Exit::Unable;
        }
        if !self.arguments.no_load && !self.is_interrupted() {
            self.examine_load();
        }
        if self.is_interrupted() {
            console::note("broken off; the same command goes on from here");
            return Exit::Partial;
        }
        let done = match self.treat() {
            Ok(done) => done,
            Err(failure) => return tune::failed(&failure),
        };
        let after = self.load_after(&done);
        self.conclude(&done, after)
    }

    /// What will be done, and what it takes.
    fn announce(&self) {
        if self.arguments.common.quiet {
            return;
        }
        let load = if self.arguments.no_load { "" } else { " the delay under load (about 20 s)," };
        let text = format!(
            "Examining the path to {}: the path itself (about 25 s),{load} and a transfer ({} s). Nothing is changed \
             before you are asked.",
            shown_host(&self.arguments.host),
            self.parameters.end.time_limit().unwrap_or_default().as_secs()
        );
        say(&text, 0);
        if self.checkpoint.is_resumed {
            say("Going on where an earlier run was interrupted (--fresh begins anew).", 0);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.stop.pending().is_some()
    }

    fn step(&mut self, name: &str, text: String, since: MonotonicTime, resumed: bool) {
        if !self.arguments.common.quiet {
            say(&format!("{name}: {text}"), 0);
        }
        let duration_ns = nanoseconds(clock::monotonic_now().since(since));
        self.steps.push(Step { name: name.to_owned(), text, duration_ns, resumed });
    }

    /// Whether the path is known now.
    fn examine_path(&mut self) -> bool {
        let since = clock::monotonic_now();
        if let Some(path) = &self.checkpoint.content.path {
            let text = path_command::sentence(path);
            self.step("path", text, since, true);
            return true;
        }
        let target = self.arguments.common.target(&self.arguments.host);
        let mut progress = path_command::Progress::new(self.arguments.common.quiet, "");
        let options = diagnose::path_options(target, true);
        let outcome = path::run(&options, Some(self.stop), &mut |event| progress.event(event));
        progress.finish();
        if let Some(error) = &outcome.error {
            console::error(&error.to_string(), None);
        }
        if outcome.document.termination.outcome != Outcome::Complete {
            return outcome.error.is_none();
        }
        let text = path_command::sentence(&outcome.document);
        self.checkpoint.content.path = Some(Box::new(outcome.document));
        self.checkpoint.save();
        self.step("path", text, since, false);
        true
    }

    fn examine_load(&mut self) {
        let since = clock::monotonic_now();
        if let Some(load) = &self.checkpoint.content.load {
            let text = load_command::sentence(load);
            return self.step("load", text, since, true);
        }
        if let Some(document) = self.load() {
            let text = load_command::sentence(&document);
            self.checkpoint.content.load = Some(Box::new(document));
            self.checkpoint.save();
            self.step("load", text, since, false);
        }
    }

    /// The delay while the transfer's own direction is loaded, by connections like those that people have.
    fn load(&mut self) -> Option<LoadDocument> {
        let target = self.arguments.common.target(&self.arguments.host);
        let loaded = match self.parameters.direction {
            Direction::Reverse => PhaseKind::Down,
            Direction::Forward | Direction::Bidirectional => PhaseKind::Up,
        };
        let options = LoadTestOptions {
            congestion_control: self.parameters.congestion.clone(),
            connections: StreamCount::new(1),
            phases: vec![PhaseKind::Idle, loaded],
            idle_time: IDLE,
            load_time: LOADED,
            hops: false,
            ..LoadTestOptions::new(target)
        };
        let mut progress = load_command::Progress::new(self.arguments.common.quiet);
        let stop = self.stop;
        let outcome = load::run(&options, Some(stop), &mut |event| progress.event(event));
        progress.finish();
        if let Some(error) = &outcome.error {
            self.notes.push(format!("The delay under load was not measured: {error}"));
        }
        (outcome.document.termination.outcome == Outcome::Complete && outcome.error.is_none())
            .then_some(outcome.document)
    }

    /// Diagnosis, plan, trial and proof.
    fn treat(&mut self) -> Result<Done, tune::course::Failure> {
        let (how, common) = (&self.arguments.how, &self.arguments.common);
        let settings = self.settings();
        let total = settings.transfer.end.time_limit();
        let terminal = AtTerminal::new(common.quiet, how.yes, how.confirm_within, total, self.stop);
        let since = clock::monotonic_now();
        let mut guide = Recording { terminal, checkpoint: &mut self.checkpoint, steps: Vec::new(), since };
        let done = tune::carry_out(how, &settings, &mut guide, self.stop)?;
        let Recording { terminal, steps, .. } = guide;
        self.notes.extend(tune::notes(&done, how, terminal.nobody_to_ask));
        self.steps.extend(steps);
        if done.outcome.ended != Ended::BrokenOff {
            self.checkpoint.remove();
        }
        if let Some(failure) = &done.outcome.failure {
            console::error(&failure.text, None);
        }
        Ok(done)
    }

    fn settings(&self) -> Settings {
        let (how, common) = (&self.arguments.how, &self.arguments.common);
        let content = &self.checkpoint.content;
        let pairs = |pairs: &checkpoint::Pairs| MeasuredPairs {
            changes: pairs.changes.clone(),
            pairs: pairs.pairs.iter().map(tune::document::pair_of).collect(),
        };
        Settings {
            path: content.path.as_deref().cloned(),
            measured: content.pairs.iter().map(pairs).collect(),
            compare: if self.arguments.compare_guide { Compare::Measure } else { Compare::Predict },
            ..tune::settings(how, common, &self.arguments.host, self.parameters.clone(), &self.begun)
        }
    }

    fn load_after(&mut self, done: &Done) -> Option<LoadDocument> {
        let measured = !self.arguments.no_load && self.checkpoint.content.load.is_some();
        if done.outcome.ended != Ended::Kept || !measured || self.is_interrupted() {
            return None;
        }
        let since = clock::monotonic_now();
        let document = self.load()?;
        self.step("load", load_command::sentence(&document), since, false);
        Some(document)
    }

    fn conclude(self, done: &Done, after: Option<LoadDocument>) -> Exit {
        let Self { arguments, begun, surroundings, checkpoint, steps, notes, .. } = self;
        let (how, common) = (&arguments.how, &arguments.common);
        let (path, load) = (checkpoint.content.path, checkpoint.content.load);
        let told = document::Told { arguments, begun: &begun, done, path, load, after, steps, notes };
        let document = told.document();
        let run = document::run(&document, done, surroundings);
        common.show(&document, &run);
        let named = arguments.html.clone().map(Page::Named);
        let page = named.or_else(|| (!arguments.no_html).then_some(Page::Usual));
        keep_with_page(&run, common.quiet || common.json, page.as_ref());
        tune::exit_of(&done.outcome, how)
    }
}

/// Notes the steps, and keeps what is measured on the way, so that an interrupted run can go on.
struct Recording<'a> {
    terminal: AtTerminal,
    checkpoint: &'a mut Checkpoint,
    steps: Vec<Step>,
    /// When the step that is under way began.
    since: MonotonicTime,
}

impl Recording<'_> {
    fn step(&mut self, name: &str, text: String) {
        let now = clock::monotonic_now();
        let duration_ns = nanoseconds(now.since(self.since));
        self.since = now;
        self.steps.push(Step { name: name.to_owned(), text, duration_ns, resumed: false });
    }

    fn plan(&mut self, proposal: &Proposal) {
        let change =
            |one: &linerate_rules::tuning::Proposed| format!("{} on the {} host", one.change.target, one.end.name());
        let changes: Vec<String> = proposal.changes.iter().map(change).collect();
        let refused = proposal.refusals.first().filter(|_| changes.is_empty());
        self.step("plan", refused.map_or_else(|| changes.join(", "), |refusal| refusal.text.clone()));
    }
}

impl Guide for Recording<'_> {
    fn event(&mut self, event: CourseEvent<'_>) {
        match &event {
            CourseEvent::Pairs { changes, pairs } => {
                self.checkpoint.add_pairs(changes, pairs.iter().map(tune::document::pair).collect());
            }
            CourseEvent::Diagnosed(seen) => {
                let is_first = self.steps.is_empty();
                if let Some(first) = seen.diagnosis.verdicts.first() {
                    self.step(
                        if is_first { "diagnose" } else { "proof" },
                        format!("{}: {}", first.cause.title(), first.text),
                    );
                }
            }
            CourseEvent::Proposed(proposal) => self.plan(proposal),
            CourseEvent::Judged(tried) => self.step("trial", tried.judgement.sentence.clone()),
            CourseEvent::Diagnosing(_)
            | CourseEvent::Trying { .. }
            | CourseEvent::Transfer(_)
            | CourseEvent::Measured { .. }
            | CourseEvent::Note(_) => {}
        }
        self.terminal.event(event);
    }

    fn consents(&mut self, seen: &Seen, proposal: &Proposal, effort: &Effort) -> Consent {
        self.terminal.consents(seen, proposal, effort)
    }

    fn confirms(&mut self, trials: &[Tried]) -> bool {
        self.terminal.confirms(trials)
    }
}
