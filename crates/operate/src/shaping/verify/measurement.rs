//! One measurement against a linerate server, with sampling of the trees and renewals of the watchdog.

use linerate_model::address_family::AddressFamily;
use std::time::Duration;

use linerate_engine::load::{self, LoadTestOptions, LoadTestOutcome};
use linerate_engine::probe::ProbeTarget;
use linerate_model::load::PhaseKind;
use linerate_model::path::PeerKind;
use linerate_model::report::Outcome;
use linerate_shape::verify::PathMeasurement;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, interface, net};
use linerate_units::MonotonicTime;

use super::super::error::ShapeError;
use super::super::shaped::ShaperControl;
use super::tree_sampler::{SampledPhase, TreeSampler};
use super::{VerifyEvent, VerifyObserver, evidence};

/// Watchdog limit of the shaper during a measurement. The longest pause between renewals is the wait for a slowly
/// draining queue and the connection after it.
pub(super) const HOLD: Duration = Duration::from_secs(90);

/// Interval of watchdog renewals.
const RENEWAL: Duration = Duration::from_secs(3);

/// Maximum idle phase of the second pass, as the first one has measured it.
const SHORT_IDLE: Duration = Duration::from_secs(5);

/// Parameters of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MeasurementPlan {
    /// Phases after the idle phase.
    pub(super) loads: Vec<PhaseKind>,
    /// Duration of the idle phase.
    pub(super) idle: Duration,
    /// Measured time of each loaded phase.
    pub(super) time: Duration,
    /// True when the other IP version is measured, too, if the host has an address of it.
    pub(super) other_family: bool,
}

/// Result of a measurement.
#[derive(Clone, Debug)]
pub(super) struct MeasurementResult {
    pub(super) measurement: PathMeasurement,
    /// Reason of an early end.
    pub(super) error: Option<String>,
    /// IP versions, that of the load first.
    pub(super) families: Vec<AddressFamily>,
    pub(super) congestion_control: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Reason to stop.
#[derive(Debug)]
pub(super) enum StopReason {
    /// Interrupted by a signal.
    Interrupted,
    /// The remaining steps would be meaningless.
    Failed(ShapeError),
}

impl From<ShapeError> for StopReason {
    fn from(error: ShapeError) -> Self {
        Self::Failed(error)
    }
}

/// A measurement of the path.
pub(super) trait PathMeasurer {
    /// Measures with the current configuration.
    fn measure(
        &mut self,
        shaped: &mut dyn ShaperControl,
        order: &MeasurementPlan,
        events: VerifyObserver<'_>,
    ) -> Result<MeasurementResult, StopReason>;

    /// Returns true when an interface is up; `None` when unreadable.
    fn is_up(&self, device: &str) -> Option<bool>;

    /// Returns the current time.
    fn now(&self) -> MonotonicTime;
}

/// Load tests against a linerate server.
pub(super) struct LoadMeasurer {
    target: ProbeTarget,
    stop: Option<InterruptSignals>,
    /// State of the other IP version; `None` until the first measurement.
    other: Option<OtherFamilyState>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherFamilyState {
    /// The host has no address of it, or the first attempt failed.
    Unavailable,
    /// The host has an address; not tried yet.
    Untried(AddressFamily),
    /// It has worked.
    Works(AddressFamily),
}

impl LoadMeasurer {
    pub(super) const fn new(target: ProbeTarget, stop: Option<InterruptSignals>) -> Self {
        Self { target, stop, other: None }
    }

    fn options(&self, order: &MeasurementPlan, family: Option<AddressFamily>) -> LoadTestOptions {
        let family = family.or(self.target.family);
        let mut phases = vec![PhaseKind::Idle];
        phases.extend(&order.loads);
        LoadTestOptions {
            phases,
            idle_time: order.idle,
            load_time: order.time,
            // Neither is judged here, and both add load.
            foreign_probes: false,
            hops: false,
            ..LoadTestOptions::new(ProbeTarget { family, ..self.target.clone() })
        }
    }

    fn load(
        &self,
        shaped: &mut dyn ShaperControl,
        options: &LoadTestOptions,
        events: &mut dyn FnMut(&VerifyEvent<'_>),
    ) -> Result<(LoadTestOutcome, Vec<SampledPhase>, Option<String>), StopReason> {
        let mut watch = TreeSampler::new(shaped);
        let mut renewal = WatchdogRenewal::default();
        let outcome = load::run(options, self.stop, &mut |event| {
            watch.event(event);
            renewal.tick(shaped);
            events(&VerifyEvent::Load(event));
        });
        if outcome.document.termination.outcome() == Outcome::Interrupted {
            return Err(StopReason::Interrupted);
        }
        if let Some(error) = renewal.failure {
            return Err(StopReason::Failed(error));
        }
        let (sampled, unread) = watch.finish();
        Ok((outcome, sampled, unread))
    }

    /// Fixes the IP version of the first measurement for all further ones.
    fn settle(&mut self, outcome: &LoadTestOutcome) {
        let Some(peer) = outcome.readings.peer.filter(|_| self.other.is_none()) else { return };
        let (first, second) = if peer.is_ipv6() {
            (AddressFamily::Ipv6, AddressFamily::Ipv4)
        } else {
            (AddressFamily::Ipv4, AddressFamily::Ipv6)
        };
        // A local address or a fixed version leaves no other one.
        let is_free = self.target.family.is_none() && self.target.bind.is_none();
        let has_other =
            || net::resolve(self.target.address(), self.target.port, Some(second)).is_ok_and(|all| !all.is_empty());
        self.other = Some(if is_free && has_other() {
            OtherFamilyState::Untried(second)
        } else {
            OtherFamilyState::Unavailable
        });
        self.target.family = Some(first);
    }

    /// Runs the second pass and adds its probes to the phases of the first.
    fn second_pass(
        &mut self,
        shaped: &mut dyn ShaperControl,
        order: &MeasurementPlan,
        measured: &mut MeasurementResult,
        events: &mut dyn FnMut(&VerifyEvent<'_>),
    ) -> Result<(), StopReason> {
        let (Some(OtherFamilyState::Untried(family) | OtherFamilyState::Works(family)), Some(last)) =
            (self.other, order.loads.last())
        else {
            return Ok(());
        };
        events(&VerifyEvent::OtherFamily(family));
        let short = MeasurementPlan { loads: vec![*last], idle: order.idle.min(SHORT_IDLE), ..order.clone() };
        let (outcome, ..) = self.load(shaped, &self.options(&short, Some(family)), events)?;
        let name = evidence::family_title(family);
        match failure(&outcome) {
            None => {
                evidence::add_classes(&mut measured.measurement, &outcome.readings, family);
                measured.families.push(family);
                self.other = Some(OtherFamilyState::Works(family));
            }
            Some(reason) if self.other == Some(OtherFamilyState::Works(family)) => {
                measured.error = Some(format!("over {name}: {reason}"));
            }
            Some(reason) => {
                self.other = Some(OtherFamilyState::Unavailable);
                measured.notes.push(format!("{name} is skipped, as the measurement over it failed: {reason}"));
            }
        }
        Ok(())
    }
}

impl PathMeasurer for LoadMeasurer {
    fn measure(
        &mut self,
        shaped: &mut dyn ShaperControl,
        order: &MeasurementPlan,
        events: VerifyObserver<'_>,
    ) -> Result<MeasurementResult, StopReason> {
        let (outcome, sampled, unread) = self.load(shaped, &self.options(order, None), events)?;
        self.settle(&outcome);
        let family = match outcome.readings.peer {
            Some(peer) if peer.is_ipv6() => AddressFamily::Ipv6,
            _ => AddressFamily::Ipv4,
        };
        let mut measured = MeasurementResult {
            measurement: evidence::measurement(&outcome.readings, &sampled, family),
            error: failure(&outcome),
            families: vec![family],
            congestion_control: outcome.document.congestion_control.clone(),
            notes: outcome.document.notes.clone(),
        };
        if let Some(reason) = unread {
            measured.notes.push(format!("The shaper's own counters could not be read: {reason}"));
        }
        if order.other_family && measured.error.is_none() {
            self.second_pass(shaped, order, &mut measured, events)?;
        }
        Ok(measured)
    }

    fn is_up(&self, device: &str) -> Option<bool> {
        interface::is_up(device).ok()
    }

    fn now(&self) -> MonotonicTime {
        clock::monotonic_now()
    }
}

/// Reason of a measurement's early end; `None` when complete.
fn failure(outcome: &LoadTestOutcome) -> Option<String> {
    if let Some(error) = &outcome.error {
        return Some(error.to_string());
    }
    let host = &outcome.document.host;
    match (outcome.document.peer, outcome.document.termination.outcome()) {
        (PeerKind::Linerate, Outcome::Complete) => None,
        (PeerKind::Linerate, _) => Some(outcome.document.termination.message().unwrap_or("terminated").to_owned()),
        _ => Some(format!("no linerate answers at {host} port {}", outcome.document.port)),
    }
}

/// Renewals of the watchdog during a measurement, also of a removed shaper, whose trial goes on: on a slow line a measurement
/// takes longer than [`HOLD`].
#[derive(Default)]
pub(super) struct WatchdogRenewal {
    last: Option<MonotonicTime>,
    failure: Option<ShapeError>,
}

impl WatchdogRenewal {
    pub(super) fn tick(&mut self, shaped: &mut dyn ShaperControl) {
        let now = clock::monotonic_now();
        let is_due = self.last.is_none_or(|last| now.since(last) >= RENEWAL);
        if self.failure.is_some() || !is_due {
            return;
        }
        self.last = Some(now);
        self.failure = shaped.renew(HOLD).err();
    }
}
