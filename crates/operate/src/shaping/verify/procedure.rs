//! Verification procedure: without the shaper, with it, without it again; the previous state is restored unless it
//! passes.

use std::time::Duration;

use linerate_documents::shape::VerificationOutcome;
use linerate_model::load::PhaseKind;
use linerate_shape::plan::IngressControl;
use linerate_shape::verify::{
    FindingKind, PathMeasurement, PlanDifferenceKind, ReadBackDifference, ShaperEvidence, ShaperRequirements,
    ShaperVerdict, verify,
};

use super::super::error::{ShapeError, ShapeErrorKind};
use super::super::shaped::ShaperControl;
use super::evidence;
use super::measurement::{HOLD, MeasurementPlan, MeasurementResult, PathMeasurer, StopReason};
use super::{MeasurementPart, SEED, VerificationResult, VerifyEvent, VerifyObserver, VerifyOutcome, VerifySettings};

/// Measures and judges. The shaper is active afterwards only if it has passed.
pub(super) fn prove(
    shaped: &mut dyn ShaperControl,
    settings: &VerifySettings,
    bench: &mut dyn PathMeasurer,
    events: VerifyObserver<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    let began = bench.now();
    let mut session = VerificationSession { settings, bench, events, outcome: VerifyOutcome::begun(settings) };
    let result = session.run(shaped);
    let VerificationSession { bench, events, mut outcome, .. } = session;
    outcome.duration = bench.now().since(began);
    concluded(shaped, result, outcome, events)
}

pub(super) fn judged(verdict: &ShaperVerdict, asked: ShaperRequirements) -> VerificationOutcome {
    let mut failures = verdict.findings.iter().map(|finding| finding.kind).filter(|kind| kind.fails());
    if verdict.pass && asked.is_uplift_asked && verdict.found(FindingKind::DelayAboveLimit) {
        VerificationOutcome::DelayAboveLimit
    } else if verdict.pass {
        VerificationOutcome::Passed
    } else if failures.all(|kind| kind == FindingKind::TooFewSamples) {
        VerificationOutcome::Inconclusive
    } else {
        VerificationOutcome::Failed
    }
}

/// Restores and reports the previous state unless the shaper has passed. Foreign changes meanwhile are left alone.
pub(super) fn concluded(
    shaped: &mut dyn ShaperControl,
    result: Result<(), StopReason>,
    mut outcome: VerifyOutcome,
    events: VerifyObserver<'_>,
) -> Result<VerifyOutcome, ShapeError> {
    if let Err(StopReason::Interrupted) = result {
        outcome.end = VerificationOutcome::Interrupted;
    }
    let stays = result.is_ok() && outcome.end.is_kept();
    let back = if stays || !shaped.is_up() { Ok(()) } else { take_down(shaped, events) };
    outcome.is_active = shaped.is_up();
    match (result, back) {
        (Err(StopReason::Failed(error)), Err(left)) => Err(ShapeError {
            text: format!("{}\nThe previous state could not be restored: {}", error.text, left.text),
            ..left
        }),
        (Err(StopReason::Failed(error)), Ok(())) => Err(error),
        // The judgement is still reported, with the note of a foreign change.
        (_, Err(left)) => {
            outcome.note(&left.text, events);
            Ok(outcome)
        }
        (_, Ok(())) => Ok(outcome),
    }
}

pub(super) fn take_down(
    shaped: &mut dyn ShaperControl,
    events: &mut dyn FnMut(&VerifyEvent<'_>),
) -> Result<(), ShapeError> {
    shaped.remove()?;
    events(&VerifyEvent::Removed);
    Ok(())
}

impl VerifyOutcome {
    /// Initial outcome: interrupted, until the end is reached.
    pub(super) fn begun(settings: &VerifySettings) -> Self {
        Self {
            target: settings.target.clone(),
            end: VerificationOutcome::Interrupted,
            is_active: false,
            result: None,
            abort_reason: None,
            search: None,
            families: Vec::new(),
            congestion_control: None,
            load_time: settings.time,
            duration: Duration::ZERO,
            notes: Vec::new(),
        }
    }

    /// Takes over the metadata of a measurement, each note once.
    pub(super) fn take(&mut self, measured: &MeasurementResult, events: &mut dyn FnMut(&VerifyEvent<'_>)) {
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

/// Error of a measurement that the verdict depends on.
pub(super) fn cannot_measure(settings: &VerifySettings, reason: &str) -> ShapeError {
    let host = &settings.target.host;
    ShapeError::impossible(format!("cannot measure the path to {host} without the shaper: {reason}")).with_advice(
        format!("The verification needs a linerate server beyond the link: run `linerate serve` on {host}."),
    )
}

struct VerificationSession<'a> {
    settings: &'a VerifySettings,
    bench: &'a mut dyn PathMeasurer,
    events: VerifyObserver<'a>,
    outcome: VerifyOutcome,
}

impl VerificationSession<'_> {
    fn run(&mut self, shaped: &mut dyn ShaperControl) -> Result<(), StopReason> {
        if shaped.is_up() {
            take_down(shaped, self.events)?;
        }
        let before = self.without(shaped, MeasurementPart::Without)?;
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
        let evidence = ShaperEvidence { before, after, before_again, set, predicted, differences, profile, seed: SEED };
        let verification = verify(&evidence);
        self.outcome.end = match &self.outcome.abort_reason {
            Some(_) => VerificationOutcome::Failed,
            None => judged(&verification, self.settings.profile),
        };
        self.outcome.result = Some(VerificationResult { evidence, verification });
        if self.outcome.end.is_kept() && !shaped.is_up() {
            self.set_up_again(shaped)?;
        }
        Ok(())
    }

    fn order(&self) -> MeasurementPlan {
        MeasurementPlan {
            loads: vec![PhaseKind::Down, PhaseKind::Up, PhaseKind::Both],
            idle: self.settings.idle,
            time: self.settings.time,
            other_family: true,
        }
    }

    fn measure(
        &mut self,
        shaped: &mut dyn ShaperControl,
        part: MeasurementPart,
    ) -> Result<MeasurementResult, StopReason> {
        (self.events)(&VerifyEvent::Measuring(part));
        let order = self.order();
        let measured = self.bench.measure(shaped, &order, self.events)?;
        self.outcome.take(&measured, self.events);
        Ok(measured)
    }

    /// Measures without the shaper, as the baseline.
    fn without(
        &mut self,
        shaped: &mut dyn ShaperControl,
        part: MeasurementPart,
    ) -> Result<PathMeasurement, StopReason> {
        let measured = self.measure(shaped, part)?;
        match measured.error {
            None => Ok(measured.measurement),
            Some(reason) => Err(StopReason::Failed(cannot_measure(self.settings, &reason))),
        }
    }

    /// Sets the shaper up and reads it back.
    fn set_up(&mut self, shaped: &mut dyn ShaperControl) -> Result<Vec<ReadBackDifference>, StopReason> {
        shaped.set_up()?;
        shaped.renew(HOLD)?;
        let mut differences = evidence::differences(shaped.plan(), &shaped.differences()?);
        let target =
            shaped.plan().intermediate.as_ref().filter(|_| shaped.plan().receiving == IngressControl::Redirected);
        if let Some(device) = target.filter(|device| self.bench.is_up(device) == Some(false)) {
            differences.push(evidence::redirect_target_down(device));
        }
        (self.events)(&VerifyEvent::ReadBack(&differences));
        Ok(differences)
    }

    /// Measures with the shaper. A path that fails then is a result, not an error.
    fn with(
        &mut self,
        shaped: &mut dyn ShaperControl,
        differences: &[ReadBackDifference],
    ) -> Result<PathMeasurement, StopReason> {
        if differences.iter().any(|one| one.kind == PlanDifferenceKind::RedirectTargetDown) {
            self.outcome.abort_reason = Some("received packets would be dropped, so it was not measured".to_owned());
            return Ok(PathMeasurement { phases: Vec::new() });
        }
        let measured = self.measure(shaped, MeasurementPart::With)?;
        self.outcome.abort_reason =
            measured.error.map(|reason| format!("the measurement with the shaper ended early: {reason}"));
        Ok(measured.measurement)
    }

    fn again(&mut self, shaped: &mut dyn ShaperControl) -> Result<Option<PathMeasurement>, StopReason> {
        let measured = self.measure(shaped, MeasurementPart::WithoutAgain)?;
        let Some(reason) = measured.error else { return Ok(Some(measured.measurement)) };
        self.outcome.note(&format!("The second measurement without the shaper failed: {reason}"), self.events);
        Ok(None)
    }

    /// Sets the verified shaper up again.
    fn set_up_again(&mut self, shaped: &mut dyn ShaperControl) -> Result<(), StopReason> {
        let differences = self.set_up(shaped)?;
        let Some(first) = differences.first() else { return Ok(()) };
        let text = format!("the shaper passed, but could not be set up again unchanged: {}", first.text);
        Err(StopReason::Failed(ShapeError { text, advice: None, kind: ShapeErrorKind::RolledBack }))
    }
}
