//! Setting a shaper up: plan, show, apply, prove, keep.

use std::cell::RefCell;
use std::io;

use linerate_change::{ChangeId, Guard, Mode, Store, recover, roll_back};
use linerate_model::change::Target;
use linerate_model::schema::shaper::ShaperOutcome;
use linerate_shape::back_ends::DeviceFacts;
use linerate_shape::capability::Capabilities;
use linerate_shape::script::script;
use linerate_shape::verify::Both;
use linerate_sys::host_access::{Host, RealHost};
use linerate_sys::net::{self, Family};
use linerate_sys::process::own_program;
use linerate_sys::signals::Interrupts;
use linerate_sys::{terminal, traffic_control};
use linerate_units::BitRate;

use super::arguments::{HowArguments, ShapeArguments};
use super::asking;
use super::autorate;
use super::document::{self, Became};
use super::error::ShapeError;
use super::follow::{Followed, follow};
use super::line::Recorded;
use super::record::{self, Standing};
use super::shaped::Shaped;
use super::shaper::{Shaper, facts};
use super::verify::{self, VerifyOutcome, VerifyProgress};
use super::{plan_text, trials};
use crate::cmd::measurement::print_json;
use crate::cmd::rollback;
use crate::console;
use crate::exit::Exit;

/// Where a line begins of which nobody says how fast it is: rates are found from here on (`autorate::Bounds::base`).
const FIRST: f64 = 2e6;

/// Does it.
pub(crate) fn run(arguments: &ShapeArguments, device: &str) -> Result<Exit, ShapeError> {
    let how = &arguments.how;
    let recorded = asked_for(arguments, device)?;
    if how.script {
        if recorded.line.route_mtu.is_some() {
            return Err(ShapeError::unable("printing a script: the route's MTU is no part of it")
                .with_advice("leave --route-mtu out, and use `ip route change … mtu BYTES` on that host"));
        }
        return print_script(recorded);
    }
    let stop = Interrupts::install()?;
    let (store, host) = (Store::from_environment()?, RealHost);
    let guard = Guard::Program(own_program()?);
    let found = match trials::capabilities(recorded.line.back_end.as_deref()) {
        // A plan is something to look at for whoever may not carry it out, too.
        Err(error) if how.dry_run => {
            console::note(&format!("{}; this is the plan for a kernel that has everything", error.text));
            Capabilities::everything()
        }
        tried => tried?,
    };
    let mut shaper = Shaper::plan((&store, &host, guard), recorded, facts(device)?, found)?;
    add_route_mtu(&mut shaper, arguments)?;
    if how.dry_run {
        show(&shaper, how, Became::only(ShaperOutcome::Planned), None);
        return Ok(Exit::Success);
    }
    for report in recover(&store, &host)? {
        console::note(&rollback::text_of(&store, &report, Mode::ForReal));
    }
    let course = Course { store: &store, host: &host, arguments, how, stop };
    if let Some(standing) = record::of_device(&store, &host, device)? {
        return course.replace(shaper, &standing);
    }
    course.mind_foreign(device)?;
    course.set_up(shaper, None)
}

/// The line of the command line, with rates to begin with where they are to be found.
fn asked_for(arguments: &ShapeArguments, device: &str) -> Result<Recorded, ShapeError> {
    let mut recorded = Recorded { device: device.to_owned(), line: arguments.line.clone() };
    recorded.line.variable |= arguments.autorate.autorate;
    if recorded.line.up.is_some() || recorded.line.down.is_some() {
        return Ok(recorded);
    }
    if !arguments.autorate.autorate && !arguments.verify.find_rate {
        return Err(ShapeError::unable(format!("shaping {device}: neither direction has a rate"))
            .with_advice("give --up, --down or both; --verify HOST --find-rate finds them, --autorate follows them"));
    }
    let first = Some(BitRate::from_bits_per_second(FIRST));
    (recorded.line.up, recorded.line.down) = (first, first);
    Ok(recorded)
}

/// For a host without linerate: nothing is asked of this one, so that it need not be the one that is shaped.
fn print_script(recorded: Recorded) -> Result<Exit, ShapeError> {
    let facts = facts(&recorded.device).unwrap_or_else(|_| DeviceFacts::ethernet(&recorded.device));
    let found = if recorded.line.back_end.is_none() { trials::capabilities(None).ok() } else { None };
    // Where a back end is named, the user says what the other host has.
    let capabilities = found.unwrap_or_else(Capabilities::everything);
    let (store, host) = (Store::from_environment()?, RealHost);
    let shaper = Shaper::plan((&store, &host, Guard::Nobody), recorded, facts, capabilities)?;
    console::data(&script(shaper.plan(), shaper.line()));
    Ok(Exit::Success)
}

/// The route to the host that it is proven with, else the default one.
fn add_route_mtu(shaper: &mut Shaper<'_>, arguments: &ShapeArguments) -> Result<(), ShapeError> {
    let Some(mtu) = arguments.line.route_mtu else { return Ok(()) };
    let target = arguments.verify.settings().map(|settings| settings.target);
    let found = target.map(|target| net::resolve(&target.host, target.port, Family::Any)).transpose()?;
    match found.iter().flatten().next() {
        Some(address) => shaper.add_route_mtu(&address.ip().to_string(), mtu),
        None => shaper.add_route_mtu("default", mtu),
    }
}

/// Prints what was planned and what has become of it.
fn show(shaper: &Shaper<'_>, how: &HowArguments, became: Became, proof: Option<&VerifyOutcome>) {
    let outcome = became.outcome;
    let document = document::of(shaper.recorded(), shaper.choice(), shaper.line(), became);
    if how.json {
        print_json(&document);
        return;
    }
    let style = console::data_style();
    console::data(&plan_text::plan(&document, shaper.plan(), shaper.line(), style));
    if outcome == ShaperOutcome::Planned {
        console::data(&plan_text::commands(&document, style));
    }
    if let Some(proof) = proof {
        console::data(&format!("\n{}", verify::text(proof, style)));
    }
}

/// What the steps have in common.
struct Course<'a> {
    store: &'a Store,
    host: &'a RealHost,
    arguments: &'a ShapeArguments,
    how: &'a HowArguments,
    stop: Interrupts,
}

impl<'a> Course<'a> {
    fn say(&self, text: &str) {
        if !self.how.quiet {
            console::note(text);
        }
    }

    /// What somebody else has set is replaced only when a person says so; it is recorded, and comes back with `off`.
    fn mind_foreign(&self, device: &str) -> Result<(), ShapeError> {
        let target = Target::TrafficControl { interface: device.to_owned() };
        let found = self.host.read(&target)?.unwrap_or_default();
        if traffic_control::is_kernels_own(&found) || self.how.replace {
            return Ok(());
        }
        let what = traffic_control::summary(&found);
        let text = format!("somebody else has set the queueing of {device}: {what}");
        if terminal::is_terminal(&io::stdin()) {
            console::note(&text);
            let question = "Replace it? It is recorded, and comes back with `off`. [y/N] ";
            if asking::answers(question, self.stop)? {
                return Ok(());
            }
        }
        let advice = "--replace replaces it; it is recorded first, and `linerate shape DEV off` brings it back";
        Err(ShapeError::unable(format!("{text}; nothing was touched")).with_advice(advice))
    }

    /// One of linerate's stands already: the same stays, other rates are set in place, all else is set up anew.
    fn replace(&self, mut shaper: Shaper<'a>, standing: &Standing) -> Result<Exit, ShapeError> {
        let id = standing.set.id;
        let host = (self.store, self.host as &dyn Host, Guard::Nobody);
        let old = Shaper::of_standing(host, shaper.device(), standing).ok();
        // The route's MTU is a change of its own beside the tree.
        let route_mtu = standing.recorded.as_ref().and_then(|recorded| recorded.line.route_mtu);
        let wants_more = route_mtu != self.arguments.line.route_mtu
            || self.how.confirm_within.is_some()
            || self.arguments.verify.verify.is_some();
        if let Some(old) = old.filter(|_| !wants_more) {
            let is_same = old.plan() == shaper.plan();
            if old.differences().is_ok_and(|found| found.is_empty()) && shaper.take_over(old.plan())? {
                shaper.record_again(id)?;
                let outcome = if is_same { ShaperOutcome::Unchanged } else { ShaperOutcome::Changed };
                self.tell_standing(&shaper, outcome, id);
                return self.go_on(shaper);
            }
        }
        let report = roll_back(self.store, self.host, id, Mode::ForReal, "replaced by another shaper")?;
        if !report.is_clean() {
            console::note(&rollback::text_of(self.store, &report, Mode::ForReal));
            let text = format!("the shaper that stands on {} could not be taken down", shaper.device());
            return Err(ShapeError::unable(text));
        }
        record::forget(self.store, id);
        self.mind_foreign(shaper.device())?;
        self.set_up(shaper, standing.recorded.clone())
    }

    fn tell_standing(&self, shaper: &Shaper<'_>, outcome: ShaperOutcome, id: ChangeId) {
        if self.how.json {
            show(shaper, self.how, Became { changes: Some(id.get()), ..Became::only(outcome) }, None);
        } else if outcome == ShaperOutcome::Unchanged {
            self.say(&format!("{} is shaped so already", shaper.device()));
        } else {
            self.say(&format!("{}: {}, changed in place", shaper.device(), plan_text::rates(shaper.line())));
        }
    }

    /// Sets it up, with its proof if one is asked for; what stood `before` comes back when it does not stay.
    fn set_up(&self, mut shaper: Shaper<'a>, before: Option<Recorded>) -> Result<Exit, ShapeError> {
        let tried = self.try_it(&mut shaper);
        let (proof, ending) = match tried {
            Ok((proof, None)) => (proof, None),
            Ok((proof, Some(ending))) => (proof, Some(Ok(ending))),
            Err(error) => (None, Some(Err(error))),
        };
        let Some(ending) = ending else {
            self.keep(&mut shaper, proof.as_ref())?;
            return self.go_on(shaper);
        };
        let left = shaper.roll_back("it does not stay");
        for one in &left {
            console::note(one);
        }
        if let Some(recorded) = before {
            self.bring_back(recorded);
        }
        let exit = ending?;
        // What is left alone stands.
        let outcome = if left.is_empty() { ShaperOutcome::TakenBack } else { ShaperOutcome::SetUp };
        show(&shaper, self.how, became(outcome, None, proof.as_ref()), proof.as_ref());
        if !left.is_empty() {
            return Ok(Exit::Missed);
        }
        self.say("taken back");
        Ok(exit)
    }

    /// It stands afterwards, unless there is a way in which the command ends.
    fn try_it(&self, shaper: &mut Shaper<'_>) -> Result<(Option<VerifyOutcome>, Option<Exit>), ShapeError> {
        let proof = self.prove(shaper)?;
        if let Some(proof) = &proof
            && !proof.stands
        {
            let exit = proof.exit();
            return Ok((Some(proof.clone()), Some(exit)));
        }
        if proof.is_none() {
            shaper.set_up()?;
            read_back(shaper)?;
        }
        if let Some(within) = self.how.confirm_within
            && !asking::is_confirmed(shaper, within, self.stop)?
        {
            self.say("not confirmed");
            return Ok((proof, Some(Exit::RolledBack)));
        }
        Ok((proof, None))
    }

    fn prove(&self, shaper: &mut Shaper<'_>) -> Result<Option<VerifyOutcome>, ShapeError> {
        let Some(settings) = self.arguments.verify.settings() else { return Ok(None) };
        let mut progress = VerifyProgress::new(self.how.quiet || self.how.json);
        let events = &mut |event: &verify::VerifyEvent<'_>| progress.event(event);
        let given = Both { up: self.arguments.line.up, down: self.arguments.line.down };
        let outcome = if self.arguments.verify.find_rate {
            verify::run_find_rate(shaper, given, &settings, Some(self.stop), events)
        } else {
            verify::run(shaper, &settings, Some(self.stop), events)
        };
        progress.finish();
        outcome.map(Some)
    }

    /// The shaper that was there before.
    fn bring_back(&self, recorded: Recorded) {
        let device = recorded.device.clone();
        let again = || -> Result<(), ShapeError> {
            let guard = Guard::Program(own_program()?);
            let facts = facts(&recorded.device)?;
            let found = trials::capabilities(recorded.line.back_end.as_deref())?;
            let mtu = recorded.line.route_mtu;
            let mut old = Shaper::plan((self.store, self.host, guard), recorded, facts, found)?;
            if let Some(mtu) = mtu {
                old.add_route_mtu("default", mtu)?;
            }
            old.set_up()?;
            old.keep()
        };
        match again() {
            Ok(()) => self.say(&format!("the shaper that stood on {device} before is back")),
            Err(error) => {
                console::note(&format!("the shaper that stood on {device} before is not back: {}", error.text));
            }
        }
    }

    fn keep(&self, shaper: &mut Shaper<'_>, proof: Option<&VerifyOutcome>) -> Result<(), ShapeError> {
        let device = shaper.device().to_owned();
        shaper.keep()?;
        show(shaper, self.how, became(ShaperOutcome::SetUp, shaper.changes_id(), proof), proof);
        self.say(&format!("it stands until the next boot; `linerate shape {device} off` brings back what was there"));
        Ok(())
    }

    /// What is asked for besides: to follow the line, or the interface.
    fn go_on(&self, mut shaper: Shaper<'_>) -> Result<Exit, ShapeError> {
        if self.arguments.autorate.autorate {
            let given = Both { up: self.arguments.line.up, down: self.arguments.line.down };
            let settings = self.arguments.autorate.settings(given, self.how.verbose);
            let done = autorate::run(&mut shaper, &settings, self.stop);
            if let Some(id) = shaper.changes_id().filter(|_| shaper.is_up()) {
                shaper.record_again(id)?;
            }
            return done;
        }
        if self.how.follow { self.follow(shaper) } else { Ok(Exit::Success) }
    }

    fn follow(&self, shaper: Shaper<'_>) -> Result<Exit, ShapeError> {
        let device = shaper.device().to_owned();
        let others: Vec<String> = shaper.plan().intermediate.clone().into_iter().collect();
        let shaper = RefCell::new(shaper);
        let is_as_planned = || -> Result<bool, ShapeError> { Ok(shaper.borrow().differences()?.is_empty()) };
        let again = || -> Result<bool, ShapeError> {
            let mut shaper = shaper.borrow_mut();
            // What others have put there since is theirs, and what comes back when this one goes.
            shaper.roll_back("set up again");
            shaper.look_again()?;
            shaper.set_up()?;
            shaper.keep()?;
            Ok(shaper.differences()?.is_empty())
        };
        let (mut is_as_planned, mut reapply) = (is_as_planned, again);
        let mut followed =
            Followed { device: &device, others: &others, is_as_planned: &mut is_as_planned, reapply: &mut reapply };
        follow(&mut followed, self.stop)
    }
}

/// What stands is what was planned.
fn read_back(shaper: &Shaper<'_>) -> Result<(), ShapeError> {
    let differences: Vec<String> = shaper.differences()?.iter().map(ToString::to_string).collect();
    if differences.is_empty() {
        return Ok(());
    }
    let text = format!("what stands on {} is not what was planned: {}", shaper.device(), differences.join("; "));
    Err(ShapeError { text: format!("{text}; it is taken back"), advice: None, exit: Exit::RolledBack })
}

fn became(outcome: ShaperOutcome, id: Option<ChangeId>, proof: Option<&VerifyOutcome>) -> Became {
    let verification = proof.map(|proof| Box::new(proof.document()));
    Became { changes: id.map(ChangeId::get), verification, ..Became::only(outcome) }
}
