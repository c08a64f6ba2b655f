//! One measurement against a linerate server, while the trees are watched and the watchdog is told that all goes well.

use std::time::Duration;

use linerate_engine::load::{self, LoadTestOptions, LoadTestOutcome};
use linerate_engine::probe::Target;
use linerate_model::schema::load::PhaseKind;
use linerate_model::schema::path::Peer;
use linerate_model::schema::throughput::Outcome;
use linerate_shape::verify::{Family, Measurement};
use linerate_sys::signals::Interrupts;
use linerate_sys::{clock, interface, net};
use linerate_units::MonotonicTime;

use super::super::error::ShapeError;
use super::super::shaped::Shaped;
use super::trees::{Sampled, TreeWatch};
use super::{Events, VerifyEvent, evidence};

/// Without a sign of life for this long, the watchdog takes the shaper back. The longest silence of a measurement that goes
/// well is the wait for a queue that drains slowly, and the connection after it.
pub(super) const HOLD: Duration = Duration::from_secs(90);

/// A sign of life is given so often.
const RENEWAL: Duration = Duration::from_secs(3);

/// The second pass probes the path at rest for this long at most: it is known from the first one.
const SHORT_IDLE: Duration = Duration::from_secs(5);

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// The path at rest, and what is loaded after it.
    pub(super) loads: Vec<PhaseKind>,
    /// How long the path at rest is probed.
    pub(super) idle: Duration,
    /// How long each load counts.
    pub(super) time: Duration,
    /// Whether to measure over the other version of the Internet Protocol, too, where the host has an address of it.
    pub(super) other_family: bool,
}

/// What was measured.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) measurement: Measurement,
    /// Why it came to no end.
    pub(super) error: Option<String>,
    /// That of the load first.
    pub(super) families: Vec<Family>,
    pub(super) congestion_control: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Why it goes no further.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The user has had enough.
    Interrupted,
    /// The rest would make no sense.
    Failed(ShapeError),
}

impl From<ShapeError> for Stopped {
    fn from(error: ShapeError) -> Self {
        Self::Failed(error)
    }
}

/// What measures the path.
pub(super) trait Bench {
    /// Measures with what stands now.
    fn measure(&mut self, shaped: &mut dyn Shaped, order: &Order, events: Events<'_>) -> Result<Measured, Stopped>;

    /// Whether an interface is set up; `None` when that cannot be read.
    fn is_up(&self, device: &str) -> Option<bool>;

    /// What time it is.
    fn now(&self) -> MonotonicTime;
}

/// Loads against a linerate server.
pub(super) struct Loads {
    target: Target,
    stop: Option<Interrupts>,
    /// The other version of the Internet Protocol: `None` until the first measurement, and whether it has worked.
    other: Option<Other>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    /// The host has no address of it, or it did not work at first.
    Unavailable,
    /// The host has an address, and nobody has tried yet.
    Untried(Family),
    /// It has worked.
    Works(Family),
}

impl Loads {
    pub(super) const fn new(target: Target, stop: Option<Interrupts>) -> Self {
        Self { target, stop, other: None }
    }

    fn options(&self, order: &Order, family: Option<Family>) -> LoadTestOptions {
        let family = family.map_or(self.target.family, address_family);
        let mut phases = vec![PhaseKind::Idle];
        phases.extend(&order.loads);
        LoadTestOptions {
            phases,
            idle_time: order.idle,
            load_time: order.time,
            // Neither is judged here, and both are load.
            foreign_probes: false,
            hops: false,
            ..LoadTestOptions::new(Target { family, ..self.target.clone() })
        }
    }

    fn load(
        &self,
        shaped: &mut dyn Shaped,
        options: &LoadTestOptions,
        events: &mut dyn FnMut(&VerifyEvent<'_>),
    ) -> Result<(LoadTestOutcome, Vec<Sampled>, Option<String>), Stopped> {
        let mut watch = TreeWatch::new(shaped);
        let mut renewal = Renewal { last: None, failure: None };
        let outcome = load::run(options, self.stop, &mut |event| {
            watch.event(event);
            renewal.tick(shaped);
            events(&VerifyEvent::Load(event));
        });
        if outcome.document.termination.outcome == Outcome::Interrupted {
            return Err(Stopped::Interrupted);
        }
        if let Some(error) = renewal.failure {
            return Err(Stopped::Failed(error));
        }
        let (sampled, unread) = watch.finish();
        Ok((outcome, sampled, unread))
    }

    /// From now on over the same version as the first time, so that all measurements are alike.
    fn settle(&mut self, outcome: &LoadTestOutcome) {
        let Some(peer) = outcome.readings.peer.filter(|_| self.other.is_none()) else { return };
        let (first, second) = if peer.is_ipv6() { (Family::Six, Family::Four) } else { (Family::Four, Family::Six) };
        // With an address of this host's, or one version, as the user wants it, there is no other one.
        let is_free = self.target.family == net::Family::Any && self.target.bind.is_none();
        let has_other = || {
            net::resolve(&self.target.host, self.target.port, address_family(second)).is_ok_and(|all| !all.is_empty())
        };
        self.other = Some(if is_free && has_other() { Other::Untried(second) } else { Other::Unavailable });
        self.target.family = address_family(first);
    }

    /// The second pass, which adds what its probes saw to the phases of the first.
    fn second_pass(
        &mut self,
        shaped: &mut dyn Shaped,
        order: &Order,
        measured: &mut Measured,
        events: &mut dyn FnMut(&VerifyEvent<'_>),
    ) -> Result<(), Stopped> {
        let (Some(Other::Untried(family) | Other::Works(family)), Some(last)) = (self.other, order.loads.last()) else {
            return Ok(());
        };
        events(&VerifyEvent::OtherFamily(family));
        let short = Order { loads: vec![*last], idle: order.idle.min(SHORT_IDLE), ..order.clone() };
        let (outcome, ..) = self.load(shaped, &self.options(&short, Some(family)), events)?;
        let name = evidence::family_title(family);
        match failure(&outcome) {
            None => {
                evidence::add_classes(&mut measured.measurement, &outcome.readings, family);
                measured.families.push(family);
                self.other = Some(Other::Works(family));
            }
            Some(reason) if self.other == Some(Other::Works(family)) => {
                measured.error = Some(format!("over {name}: {reason}"));
            }
            Some(reason) => {
                self.other = Some(Other::Unavailable);
                measured
                    .notes
                    .push(format!("{name} was left out, as the server could not be measured over it: {reason}"));
            }
        }
        Ok(())
    }
}

impl Bench for Loads {
    fn measure(&mut self, shaped: &mut dyn Shaped, order: &Order, events: Events<'_>) -> Result<Measured, Stopped> {
        let (outcome, sampled, unread) = self.load(shaped, &self.options(order, None), events)?;
        self.settle(&outcome);
        let family = match outcome.readings.peer {
            Some(peer) if peer.is_ipv6() => Family::Six,
            _ => Family::Four,
        };
        let mut measured = Measured {
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

/// Why a measurement came to no end; `None` when it did.
fn failure(outcome: &LoadTestOutcome) -> Option<String> {
    if let Some(error) = &outcome.error {
        return Some(error.to_string());
    }
    let host = &outcome.document.host;
    match (outcome.document.peer, outcome.document.termination.outcome) {
        (Peer::Linerate, Outcome::Complete) => None,
        (Peer::Linerate, _) => {
            Some(outcome.document.termination.message.clone().unwrap_or_else(|| "it was ended".into()))
        }
        _ => Some(format!("no linerate answers at {host} port {}", outcome.document.port)),
    }
}

const fn address_family(family: Family) -> net::Family {
    match family {
        Family::Four => net::Family::Ipv4,
        Family::Six => net::Family::Ipv6,
    }
}

/// Signs of life for the watchdog.
struct Renewal {
    last: Option<MonotonicTime>,
    failure: Option<ShapeError>,
}

impl Renewal {
    fn tick(&mut self, shaped: &mut dyn Shaped) {
        let now = clock::monotonic_now();
        let is_due = self.last.is_none_or(|last| now.since(last) >= RENEWAL);
        if self.failure.is_some() || !is_due || !shaped.is_up() {
            return;
        }
        self.last = Some(now);
        self.failure = shaped.renew(HOLD).err();
    }
}
