//! The order of things: without the shaper, with it, without it again; and the old state is back unless it has passed.

use std::time::Duration;

use linerate_model::schema::load::PhaseKind;
use linerate_model::schema::shape::VerificationOutcome;
use linerate_shape::plan::Receiving;
use linerate_shape::verify::{Difference, DifferenceKind, Evidence, Measurement, verify};

use super::super::error::ShapeError;
use super::super::shaped::Shaped;
use super::bench::{Bench, HOLD, Measured, Order, Stopped};
use super::evidence;
use super::{Events, Part, Proof, SEED, VerifyEvent, VerifyOutcome, VerifySettings};
use crate::exit::Exit;

/// Measures and judges. The shaper stands afterwards when it has passed, and only then.
pub(super) fn prove(
    shaped: &mut dyn Shaped,
    settings: &VerifySettings,
    bench: &mut dyn Bench,
    events: Events<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    let began = bench.now();
    let mut course = Course { settings, bench, events, outcome: VerifyOutcome::begun(settings) };
    let result = course.run(shaped);
    let Course { bench, events, mut outcome, .. } = course;
    outcome.lasted = bench.now().since(began);
    concluded(shaped, result, outcome, events)
}

/// Has the old state back unless the shaper has passed, and says so. What somebody else has changed meanwhile is left alone.
pub(super) fn concluded(
    shaped: &mut dyn Shaped,
    result: Result<(), Stopped>,
    mut outcome: VerifyOutcome,
    events: Events<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    if let Err(Stopped::Interrupted) = result {
        outcome.ended = VerificationOutcome::Interrupted;
    }
    let stays = result.is_ok() && outcome.ended == VerificationOutcome::Passed;
    let back = if stays || !shaped.is_up() { Ok(()) } else { take_down(shaped, events) };
    outcome.stands = shaped.is_up();
    match (result, back) {
        (Err(Stopped::Failed(error)), Err(left)) => Err(ShapeError {
            text: format!("{}\nIts old state could not be put back either: {}", error.text, left.text),
            ..left
        }),
        (Err(Stopped::Failed(error)), Ok(())) => Err(error),
        // The judgement is told all the same: who reads it has to know that somebody else is at work there.
        (_, Err(left)) => {
            outcome.note(&left.text, events);
            Ok(outcome)
        }
        (_, Ok(())) => Ok(outcome),
    }
}

pub(super) fn take_down(shaped: &mut dyn Shaped, events: &mut dyn FnMut(&VerifyEvent<'_>)) -> Result<(), ShapeError> {
    shaped.take_down()?;
    events(&VerifyEvent::TakenDown);
    Ok(())
}

impl VerifyOutcome {
    /// Nothing is known yet: what was begun and came to no end was broken off.
    pub(super) fn begun(settings: &VerifySettings) -> Self {
        Self {
            target: settings.target.clone(),
            ended: VerificationOutcome::Interrupted,
            stands: false,
            proof: None,
            broke_off: None,
            search: None,
            families: Vec::new(),
            congestion_control: None,
            load_time: settings.time,
            lasted: Duration::ZERO,
            notes: Vec::new(),
        }
    }

    /// Keeps what a measurement tells beside its figures, each note once.
    pub(super) fn take(&mut self, measured: &Measured, events: &mut dyn FnMut(&VerifyEvent<'_>)) {
        for family in &measured.families {
            if !self.families.contains(family) {
                self.families.push(*family);
            }
        }
        self.congestion_control = measured.congestion_control.clone().or_else(|| self.congestion_control.take());
        for note in &measured.notes {
            self.note(note, events);
        }
    }

    pub(super) fn note(&mut self, text: &str, events: &mut dyn FnMut(&VerifyEvent<'_>)) {
        if !self.notes.iter().any(|known| known == text) {
            self.notes.push(text.to_owned());
            events(&VerifyEvent::Note(text));
        }
    }
}

/// The error of a measurement without which nothing can be said.
pub(super) fn cannot_measure(settings: &VerifySettings, reason: &str) -> ShapeError {
    let host = &settings.target.host;
    ShapeError::unable(format!("measuring the path to {host} without the shaper: {reason}"))
        .with_advice(format!("The proof needs a linerate on the other side of the line: `linerate serve` on {host}."))
}

struct Course<'a> {
    settings: &'a VerifySettings,
    bench: &'a mut dyn Bench,
    events: Events<'a>,
    outcome: VerifyOutcome,
}

impl Course<'_> {
    fn run(&mut self, shaped: &mut dyn Shaped) -> Result<(), Stopped> {
        if shaped.is_up() {
            take_down(shaped, self.events)?;
        }
        let before = self.without(shaped, Part::Without)?;
        let differences = self.set_up(shaped)?;
        let after = self.with(shaped, &differences)?;
        let set = evidence::set_rates(shaped.line(), shaped.plan());
        let predicted = evidence::predicted(shaped.plan());
        let before_again = if self.settings.quick {
            None
        } else {
            take_down(shaped, self.events)?;
            self.again(shaped)?
        };
        let profile = self.settings.profile;
        let evidence = Evidence { before, after, before_again, set, predicted, differences, profile, seed: SEED };
        let verification = verify(&evidence);
        let passed = verification.pass && self.outcome.broke_off.is_none();
        self.outcome.proof = Some(Proof { evidence, verification });
        self.outcome.ended = if passed { VerificationOutcome::Passed } else { VerificationOutcome::Failed };
        if passed && !shaped.is_up() {
            self.set_up_again(shaped)?;
        }
        Ok(())
    }

    fn order(&self) -> Order {
        Order {
            loads: vec![PhaseKind::Down, PhaseKind::Up, PhaseKind::Both],
            idle: self.settings.idle,
            time: self.settings.time,
            other_family: true,
        }
    }

    fn measure(&mut self, shaped: &mut dyn Shaped, part: Part) -> Result<Measured, Stopped> {
        (self.events)(&VerifyEvent::Measuring(part));
        let order = self.order();
        let measured = self.bench.measure(shaped, &order, self.events)?;
        self.outcome.take(&measured, self.events);
        Ok(measured)
    }

    /// Without this one there is nothing to compare with.
    fn without(&mut self, shaped: &mut dyn Shaped, part: Part) -> Result<Measurement, Stopped> {
        let measured = self.measure(shaped, part)?;
        match measured.error {
            None => Ok(measured.measurement),
            Some(reason) => Err(Stopped::Failed(cannot_measure(self.settings, &reason))),
        }
    }

    /// Sets it up, and reads back what stands.
    fn set_up(&mut self, shaped: &mut dyn Shaped) -> Result<Vec<Difference>, Stopped> {
        shaped.set_up()?;
        shaped.renew(HOLD)?;
        let mut differences = evidence::differences(shaped.plan(), &shaped.differences()?);
        let target = shaped.plan().intermediate.as_ref().filter(|_| shaped.plan().receiving == Receiving::Redirected);
        if let Some(device) = target.filter(|device| self.bench.is_up(device) == Some(false)) {
            differences.push(evidence::redirect_target_down(device));
        }
        (self.events)(&VerifyEvent::Standing(&differences));
        Ok(differences)
    }

    /// A path that cannot be measured any more with the shaper is a result, not an error.
    fn with(&mut self, shaped: &mut dyn Shaped, differences: &[Difference]) -> Result<Measurement, Stopped> {
        if differences.iter().any(|one| one.kind == DifferenceKind::RedirectTargetDown) {
            self.outcome.broke_off =
                Some("nothing that is received would arrive, so that it was not measured".to_owned());
            return Ok(Measurement { phases: Vec::new() });
        }
        let measured = self.measure(shaped, Part::With)?;
        self.outcome.broke_off = measured.error.map(|reason| format!("measuring with it broke off: {reason}"));
        Ok(measured.measurement)
    }

    fn again(&mut self, shaped: &mut dyn Shaped) -> Result<Option<Measurement>, Stopped> {
        let measured = self.measure(shaped, Part::WithoutAgain)?;
        let Some(reason) = measured.error else { return Ok(Some(measured.measurement)) };
        self.outcome.note(&format!("Without the shaper it could not be measured a second time: {reason}"), self.events);
        Ok(None)
    }

    /// What was proven is to be what stands.
    fn set_up_again(&mut self, shaped: &mut dyn Shaped) -> Result<(), Stopped> {
        let differences = self.set_up(shaped)?;
        let Some(first) = differences.first() else { return Ok(()) };
        let text = format!("the shaper passed, and then could not be set up as it had been: {}", first.words);
        Err(Stopped::Failed(ShapeError { text, advice: None, exit: Exit::RolledBack }))
    }
}
