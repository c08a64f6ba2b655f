//! Setting a shaper up: plan, show, apply, prove, keep.

use std::cell::RefCell;
use std::time::Duration;

use linerate_change::{ChangeId, ChangeStore, RollbackGuard, RollbackMode, RollbackReport, recover, roll_back};
use linerate_documents::shape::VerificationOutcome;
use linerate_documents::shaper::ShaperOutcome;
use linerate_model::change::ChangeTarget;
use linerate_shape::back_ends::DeviceProperties;
use linerate_shape::capability::KernelCapabilities;
use linerate_shape::script;
use linerate_shape::verify::PerDirection;
use linerate_sys::address_translation::translates_sources;
use linerate_sys::host_access::{HostAccess, RealHost};
use linerate_sys::net::{self};
use linerate_sys::process::own_program;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, traffic_control};
use linerate_units::BitRate;

use super::autorate::settings::AutorateSettings;
use super::autorate::{self, AutorateEvent};
use super::document::SetupOutcome;
use super::error::{ShapeError, ShapeErrorKind};
use super::follow::{FollowedShaper, follow};
use super::line::RecordedShaper;
use super::record::{self, ActiveShaper};
use super::shaped::ShaperControl;
use super::shaper::{Shaper, facts};
use super::trials;
use super::verify::{self, VerifyEvent, VerifyOutcome, VerifySettings};

/// Start of a line whose rates are not given: they are found from here on (`autorate::Bounds::base`).
const START_RATE: f64 = 2e6;

/// A shaper that waits for confirmation is rolled back this much later by the watchdog than by its own process.
const TIMER_SLACK: Duration = Duration::from_secs(10);

/// Time between two looks for the confirmation by another process.
const LOOK: Duration = Duration::from_millis(200);

/// Request to set a shaper up.
#[derive(Clone, Debug)]
pub struct SetUpRequest {
    /// Interface and line, as asked for.
    pub recorded: RecordedShaper,
    /// Verification; `None` without one.
    pub verify: Option<VerifySettings>,
    /// Searches for the highest rates during the verification.
    pub find_rate: bool,
    /// Rates that follow the line afterwards.
    pub autorate: Option<AutorateSettings>,
    /// Sets it up again when something has removed it.
    pub follow: bool,
    /// Replaces foreign queueing without asking.
    pub replace: bool,
    /// Time within which it has to be confirmed.
    pub confirm_within: Option<Duration>,
    /// Ends with the plan.
    pub dry_run: bool,
}

impl SetUpRequest {
    /// Rates as asked for.
    fn given(&self) -> PerDirection<Option<BitRate>> {
        PerDirection { up: self.recorded.line.up, down: self.recorded.line.down }
    }
}

/// Presenter of a shaper that is set up: reports events and asks.
pub trait ShapeInterface {
    /// Reports an event.
    fn event(&mut self, event: ShapeEvent<'_>);
    /// Asks whether to replace this foreign queueing; `false` also where there is no one to ask.
    fn replaces(&mut self, found: &str) -> Result<bool, ShapeError>;
    /// Waits for this long at most for an answer to [`ShapeEvent::Unconfirmed`].
    fn answer(&mut self, time: Duration) -> Result<ConfirmationAnswer, ShapeError>;
}

/// Answer to the question whether the shaper is to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmationAnswer {
    /// None yet.
    Nothing,
    /// A signal came.
    Ending,
    /// Yes, or no.
    Given(bool),
}

/// Event of setting a shaper up.
pub enum ShapeEvent<'a> {
    /// Something that a person has to know.
    Note(&'a str),
    /// Progress.
    Step(&'a str),
    /// Changes of an interrupted run, or of the shaper before, were rolled back.
    RolledBack {
        /// Store that records them.
        store: &'a ChangeStore,
        /// Result of the rollback.
        report: &'a RollbackReport,
    },
    /// The shaper waits to be confirmed.
    Unconfirmed {
        /// Its interface.
        device: &'a str,
        /// Time until it is rolled back.
        within: Duration,
    },
    /// Event of the verification.
    Verify(&'a VerifyEvent<'a>),
    /// The verification, or the search for rates, has ended.
    Verified,
    /// Event of following the line.
    Autorate(&'a AutorateEvent<'a>),
    /// Outcome for this shaper.
    Concluded {
        /// The shaper.
        shaper: &'a Shaper<'a>,
        /// Result.
        became: SetupOutcome,
        /// The verification, if there was one.
        proof: Option<&'a VerifyOutcome>,
    },
}

/// End of the procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeEnd {
    /// All of it was done.
    Done,
    /// The rollback is incomplete: a part was left alone.
    LeftAlone,
    /// The verification did not pass: the shaper was rolled back unless [`VerificationOutcome::is_kept`].
    NotVerified(VerificationOutcome),
    /// It was not confirmed, and was rolled back.
    NotConfirmed,
}

/// Does it.
pub fn set_up(
    request: &SetUpRequest,
    stop: InterruptSignals,
    guide: &mut dyn ShapeInterface,
) -> Result<ShapeEnd, ShapeError> {
    let recorded = requested_shaper(request)?;
    let device = recorded.device.clone();
    let (store, host) = (ChangeStore::from_environment()?, RealHost);
    let guard = RollbackGuard::Program(own_program()?);
    let found = match trials::capabilities(recorded.line.back_end) {
        // A plan is something to look at for whoever may not carry it out, too.
        Err(error) if request.dry_run => {
            let text = format!("{}; this is the plan for a kernel that has everything", error.text);
            guide.event(ShapeEvent::Note(&text));
            KernelCapabilities::all_features()
        }
        tried => tried?,
    };
    let (recorded, mut facts) = with_address_translation(recorded, facts(&device)?);
    facts.intermediate = intermediate_name((&store, &host), &facts)?;
    let mut shaper = Shaper::plan((&store, &host, guard), recorded, facts, found)?;
    add_route_mtu(&mut shaper, request)?;
    if request.dry_run {
        let became = SetupOutcome::without_figures(ShaperOutcome::Planned);
        guide.event(ShapeEvent::Concluded { shaper: &shaper, became, proof: None });
        return Ok(ShapeEnd::Done);
    }
    for report in recover(&store, &host)? {
        guide.event(ShapeEvent::RolledBack { store: &store, report: &report });
    }
    // One that cannot be read may be the shaper of this interface.
    store.check_readable()?;
    let mut session = ShapingSession { store: &store, host: &host, request, guide, stop };
    if let Some(standing) = record::of_device(&store, &host, &device)? {
        return session.replace(shaper, &standing);
    }
    session.check_foreign(&device)?;
    session.set_up(shaper, None)
}

/// Name of the intermediate device: that of the active shaper, which stays when the interface is renamed. Refused when
/// another shaper has it from an earlier name of its interface.
fn intermediate_name((store, host): (&ChangeStore, &RealHost), facts: &DeviceProperties) -> Result<String, ShapeError> {
    let all = record::all(store, host)?;
    if let Some(own) = all.iter().find(|shaper| shaper.device == facts.name) {
        return Ok(own.intermediate.clone());
    }
    if let Some(other) = all.iter().find(|shaper| shaper.intermediate == facts.intermediate) {
        let (device, name) = (&other.device, &facts.name);
        let text = format!("cannot shape {name}: {device} was {name} before, and uses {}", other.intermediate);
        let advice = format!("run `linerate shape {device} off`, then shape {device} again under its present name");
        return Err(ShapeError::impossible(text).with_advice(advice));
    }
    Ok(facts.intermediate.clone())
}

/// Adds what the host does with addresses. What was found is recorded, so that the same is set up at boot, when the rules
/// may come later.
fn with_address_translation(
    mut recorded: RecordedShaper,
    mut facts: DeviceProperties,
) -> (RecordedShaper, DeviceProperties) {
    if recorded.line.nat.is_none() && !recorded.line.per_flow {
        facts.translates_addresses = translates_sources(&recorded.device);
        recorded.line.nat = facts.translates_addresses.known().copied().filter(|translates| *translates);
    }
    (recorded, facts)
}

/// A shell script that sets it up on a host without linerate.
pub fn script(request: &SetUpRequest) -> Result<String, ShapeError> {
    let recorded = requested_shaper(request)?;
    if recorded.line.route_mtu.is_some() {
        return Err(ShapeError::impossible("printing a script: the route's MTU is no part of it")
            .with_advice("leave --route-mtu out, and use `ip route change … mtu BYTES` on that host"));
    }
    print_script(recorded)
}

/// The line of the command line, with rates to begin with where they are to be found.
fn requested_shaper(request: &SetUpRequest) -> Result<RecordedShaper, ShapeError> {
    let mut recorded = request.recorded.clone();
    recorded.line.variable |= request.autorate.is_some();
    if recorded.line.up.is_some() || recorded.line.down.is_some() {
        recorded.check()?;
        return Ok(recorded);
    }
    if request.autorate.is_none() && !request.find_rate {
        return Err(ShapeError::impossible(format!("shaping {}: neither direction has a rate", recorded.device))
            .with_advice("give --up, --down or both; --verify HOST --find-rate finds them, --autorate follows them"));
    }
    let first = Some(BitRate::from_bits_per_second(START_RATE));
    (recorded.line.up, recorded.line.down) = (first, first);
    recorded.check()?;
    Ok(recorded)
}

/// For a host without linerate: nothing is asked of this one, so that it need not be the one that is shaped.
fn print_script(recorded: RecordedShaper) -> Result<String, ShapeError> {
    let facts = facts(&recorded.device).unwrap_or_else(|_| DeviceProperties::ethernet(&recorded.device));
    let found = if recorded.line.back_end.is_none() { trials::capabilities(None).ok() } else { None };
    // Where a back end is named, the user says what the other host has.
    let capabilities = found.unwrap_or_else(KernelCapabilities::all_features);
    let (store, host) = (ChangeStore::from_environment()?, RealHost);
    let shaper = Shaper::plan((&store, &host, RollbackGuard::Unguarded), recorded, facts, capabilities)?;
    Ok(script::script(shaper.plan(), shaper.line()))
}

/// The route to the host that it is proven with, else the default one.
fn add_route_mtu(shaper: &mut Shaper<'_>, request: &SetUpRequest) -> Result<(), ShapeError> {
    let Some(mtu) = request.recorded.line.route_mtu else { return Ok(()) };
    let target = request.verify.as_ref().map(|settings| &settings.target);
    let found = target.map(|target| net::resolve(target.address(), target.port, None)).transpose()?;
    match found.iter().flatten().next() {
        Some(address) => shaper.add_route_mtu(&address.ip().to_string(), mtu),
        None => shaper.add_route_mtu("default", mtu),
    }
}

/// State that the steps share.
struct ShapingSession<'a> {
    store: &'a ChangeStore,
    host: &'a RealHost,
    request: &'a SetUpRequest,
    guide: &'a mut dyn ShapeInterface,
    stop: InterruptSignals,
}

impl<'a> ShapingSession<'a> {
    fn report(&mut self, text: &str) {
        self.guide.event(ShapeEvent::Step(text));
    }

    fn show(&mut self, shaper: &Shaper<'_>, became: SetupOutcome, proof: Option<&VerifyOutcome>) {
        self.guide.event(ShapeEvent::Concluded { shaper, became, proof });
    }

    /// Asks before foreign queueing is replaced; it is recorded, and restored with `off`.
    fn check_foreign(&mut self, device: &str) -> Result<(), ShapeError> {
        let target = ChangeTarget::TrafficControl { interface: device.to_owned() };
        let found = self.host.read(&target)?.unwrap_or_default();
        if traffic_control::is_kernel_default(&found) || self.request.replace {
            return Ok(());
        }
        let what = traffic_control::summary(&found);
        let text = format!("{device} has a qdisc that linerate did not install: {what}");
        if self.guide.replaces(&text)? {
            return Ok(());
        }
        let advice = "--replace replaces it; it is recorded first, and `linerate shape DEV off` brings it back";
        Err(ShapeError::impossible(format!("{text}; nothing was touched")).with_advice(advice))
    }

    /// One of linerate's stands already: the same stays, other rates are set in place, all else is set up anew.
    fn replace(&mut self, mut shaper: Shaper<'a>, standing: &ActiveShaper) -> Result<ShapeEnd, ShapeError> {
        let id = standing.set.id;
        let host = (self.store, self.host as &dyn HostAccess, RollbackGuard::Unguarded);
        let old = Shaper::open_active(host, standing).ok();
        // The route's MTU is a change of its own beside the tree.
        let route_mtu = standing.recorded.as_ref().and_then(|recorded| recorded.line.route_mtu);
        let wants_more = route_mtu != self.request.recorded.line.route_mtu
            || self.request.confirm_within.is_some()
            || self.request.verify.is_some();
        if let Some(old) = old.filter(|_| !wants_more) {
            let is_same = old.plan() == shaper.plan();
            if old.differences().is_ok_and(|found| found.is_empty()) && shaper.change_in_place(old.plan())? {
                shaper.update_record(id)?;
                let outcome = if is_same { ShaperOutcome::Unchanged } else { ShaperOutcome::Changed };
                let became = SetupOutcome { changes: Some(id.get()), ..SetupOutcome::without_figures(outcome) };
                self.show(&shaper, became, None);
                return self.continue_session(shaper);
            }
        }
        let report = roll_back(self.store, self.host, id, RollbackMode::ForReal, "replaced by another shaper")?;
        if !report.is_clean() {
            self.guide.event(ShapeEvent::RolledBack { store: self.store, report: &report });
            let text = format!("the active shaper of {} could not be removed", shaper.device());
            return Err(ShapeError::impossible(text));
        }
        record::delete_record(self.store, id);
        // A renamed interface has an intermediate device of its present name from now on.
        shaper.refresh_device()?;
        self.check_foreign(shaper.device())?;
        self.set_up(shaper, standing.recorded.clone())
    }

    /// Sets it up, with its proof if one is asked for; what stood `before` comes back when it does not stay.
    fn set_up(&mut self, mut shaper: Shaper<'a>, before: Option<RecordedShaper>) -> Result<ShapeEnd, ShapeError> {
        let tried = self.apply_and_verify(&mut shaper);
        let (proof, ending) = match tried {
            Ok((proof, None)) => (proof, None),
            Ok((proof, Some(ending))) => (proof, Some(Ok(ending))),
            Err(error) => (None, Some(Err(error))),
        };
        let Some(ending) = ending else {
            self.keep(&mut shaper, proof.as_ref())?;
            let end = self.continue_session(shaper)?;
            let missed = proof.map(|proof| proof.end).filter(|proven| *proven != VerificationOutcome::Passed);
            return Ok(missed.filter(|_| end == ShapeEnd::Done).map_or(end, ShapeEnd::NotVerified));
        };
        let left = shaper.roll_back("it does not stay");
        for one in &left {
            self.guide.event(ShapeEvent::Note(one));
        }
        if let Some(recorded) = before {
            self.restore_previous(recorded);
        }
        let end = ending?;
        // What is left alone stands.
        let outcome = if left.is_empty() { ShaperOutcome::RolledBack } else { ShaperOutcome::SetUp };
        self.show(&shaper, became(outcome, None, proof.as_ref()), proof.as_ref());
        if !left.is_empty() {
            return Ok(ShapeEnd::LeftAlone);
        }
        self.report("rolled back");
        Ok(end)
    }

    /// It stands afterwards, unless there is a way in which the command ends.
    fn apply_and_verify(
        &mut self,
        shaper: &mut Shaper<'_>,
    ) -> Result<(Option<VerifyOutcome>, Option<ShapeEnd>), ShapeError> {
        let proof = self.prove(shaper)?;
        if let Some(proof) = &proof
            && !proof.is_active
        {
            let end = ShapeEnd::NotVerified(proof.end);
            return Ok((Some(proof.clone()), Some(end)));
        }
        if proof.is_none() {
            shaper.set_up()?;
            verify_read_back(shaper)?;
        }
        if let Some(within) = self.request.confirm_within
            && !self.is_confirmed(shaper, within)?
        {
            self.report("not confirmed");
            return Ok((proof, Some(ShapeEnd::NotConfirmed)));
        }
        Ok((proof, None))
    }

    /// True when someone confirms within this time that the link works: here, or with `shape DEV confirm` elsewhere.
    fn is_confirmed(&mut self, shaper: &mut Shaper<'_>, within: Duration) -> Result<bool, ShapeError> {
        shaper.renew(within + TIMER_SLACK)?;
        self.guide.event(ShapeEvent::Unconfirmed { device: shaper.device(), within });
        let deadline = clock::monotonic_now() + within;
        while clock::monotonic_now() < deadline {
            if shaper.is_confirmed() {
                return Ok(true);
            }
            match self.guide.answer(LOOK.min(deadline - clock::monotonic_now()))? {
                ConfirmationAnswer::Nothing => {}
                ConfirmationAnswer::Ending => return Ok(false),
                ConfirmationAnswer::Given(answer) => return Ok(answer),
            }
        }
        Ok(shaper.is_confirmed())
    }

    fn prove(&mut self, shaper: &mut Shaper<'_>) -> Result<Option<VerifyOutcome>, ShapeError> {
        let Some(settings) = &self.request.verify else { return Ok(None) };
        let guide = &mut *self.guide;
        let events = &mut |event: &VerifyEvent<'_>| guide.event(ShapeEvent::Verify(event));
        let outcome = if self.request.find_rate {
            verify::run_find_rate(shaper, self.request.given(), settings, Some(self.stop), events)
        } else {
            verify::run(shaper, settings, Some(self.stop), events)
        };
        self.guide.event(ShapeEvent::Verified);
        outcome.map(Some)
    }

    /// The shaper that was there before.
    fn restore_previous(&mut self, recorded: RecordedShaper) {
        let device = recorded.device.clone();
        let again = || -> Result<(), ShapeError> {
            let guard = RollbackGuard::Program(own_program()?);
            let facts = facts(&recorded.device)?;
            let found = trials::capabilities(recorded.line.back_end)?;
            let mtu = recorded.line.route_mtu;
            let mut old = Shaper::plan((self.store, self.host, guard), recorded, facts, found)?;
            if let Some(mtu) = mtu {
                old.add_route_mtu("default", mtu)?;
            }
            old.set_up()?;
            old.keep()
        };
        match again() {
            Ok(()) => self.report(&format!("the previous shaper of {device} is restored")),
            Err(error) => {
                let text = format!("the previous shaper of {device} could not be restored: {}", error.text);
                self.guide.event(ShapeEvent::Note(&text));
            }
        }
    }

    fn keep(&mut self, shaper: &mut Shaper<'_>, proof: Option<&VerifyOutcome>) -> Result<(), ShapeError> {
        let device = shaper.device().to_owned();
        shaper.keep()?;
        self.show(shaper, became(ShaperOutcome::SetUp, shaper.changes_id(), proof), proof);
        self.report(&format!("active until reboot; `linerate shape {device} off` restores the previous configuration"));
        Ok(())
    }

    /// Follows the link or the interface when the request asks for it.
    fn continue_session(&mut self, mut shaper: Shaper<'_>) -> Result<ShapeEnd, ShapeError> {
        if let Some(settings) = &self.request.autorate {
            let guide = &mut *self.guide;
            let events = &mut |event: &AutorateEvent<'_>| guide.event(ShapeEvent::Autorate(event));
            let done = autorate::run(&mut shaper, settings, self.stop, events);
            if let Some(id) = shaper.changes_id().filter(|_| shaper.is_up()) {
                shaper.update_record(id)?;
            }
            return done.map(|()| ShapeEnd::Done);
        }
        if self.request.follow {
            self.follow(shaper)?;
        }
        Ok(ShapeEnd::Done)
    }

    fn follow(&mut self, shaper: Shaper<'_>) -> Result<(), ShapeError> {
        let device = shaper.device().to_owned();
        let others: Vec<String> = shaper.plan().intermediate.clone().into_iter().collect();
        let shaper = RefCell::new(shaper);
        let is_as_planned = || -> Result<bool, ShapeError> { Ok(shaper.borrow().differences()?.is_empty()) };
        let again = || -> Result<bool, ShapeError> {
            let mut shaper = shaper.borrow_mut();
            // What others have put there since is theirs, and what comes back when this one goes.
            shaper.roll_back("set up again");
            shaper.refresh_device()?;
            shaper.set_up()?;
            shaper.keep()?;
            Ok(shaper.differences()?.is_empty())
        };
        let (mut is_as_planned, mut reapply) = (is_as_planned, again);
        let guide = &mut *self.guide;
        let mut note = |text: &str| guide.event(ShapeEvent::Note(text));
        let mut followed = FollowedShaper {
            device: &device,
            others: &others,
            is_as_planned: &mut is_as_planned,
            reapply: &mut reapply,
            note: &mut note,
        };
        follow(&mut followed, self.stop)
    }
}

/// Verifies that the active shaper is the planned one.
fn verify_read_back(shaper: &Shaper<'_>) -> Result<(), ShapeError> {
    let differences: Vec<String> = shaper.differences()?.iter().map(ToString::to_string).collect();
    if differences.is_empty() {
        return Ok(());
    }
    let text = format!("the configuration of {} differs from the plan: {}", shaper.device(), differences.join("; "));
    Err(ShapeError { text: format!("{text}; it is rolled back"), advice: None, kind: ShapeErrorKind::RolledBack })
}

fn became(outcome: ShaperOutcome, id: Option<ChangeId>, proof: Option<&VerifyOutcome>) -> SetupOutcome {
    let verification = proof.map(|proof| Box::new(proof.document()));
    SetupOutcome { changes: id.map(ChangeId::get), verification, ..SetupOutcome::without_figures(outcome) }
}
