//! The shaper of an interface of this host.

use std::time::Duration;

use linerate_change::{ChangeId, Guard, Keep, Mode, Options, Store, TargetReport, Trial, roll_back};
use linerate_model::change::{Change, Group, Plan as ChangePlan, Reason, TakesEffect, Target};
use linerate_shape::back_ends::{DeviceFacts, Inputs};
use linerate_shape::capability::{Capabilities, Choice, choose};
use linerate_shape::link::Line;
use linerate_shape::plan::{Command, Offload, Plan, changes};
use linerate_shape::policy::Policy;
use linerate_shape::read_back::{self, Difference};
use linerate_shape::verify::Both;
use linerate_sys::clock::realtime_now;
use linerate_sys::command_reader::TrafficControl;
use linerate_sys::host_access::{Host, route_towards};
use linerate_units::{BitRate, Mtu};

use super::error::ShapeError;
use super::line::Recorded;
use super::record::{self, Standing};
use super::shaped::Shaped;
use super::{standing, trials};
use crate::exit::Exit;

/// Until it is measured or kept, a shaper whose process has gone is taken back after this time.
const TRIAL: Duration = Duration::from_secs(60);

/// `tc` has done its work in milliseconds; with hundreds of classes it takes a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// A shaper of this host, planned or standing.
pub(crate) struct Shaper<'a> {
    store: &'a Store,
    host: &'a dyn Host,
    guard: Guard,
    recorded: Recorded,
    policy: Policy,
    facts: DeviceFacts,
    capabilities: Capabilities,
    choice: Choice,
    line: Line,
    /// Further changes that go with it: the route's MTU.
    besides: Vec<Change>,
    trial: Option<Trial<'a>>,
    /// Its changes, once it was kept.
    kept: Option<ChangeId>,
    /// Whether it was kept before: set up again, it is to stay as well.
    stays: bool,
    is_up: bool,
    /// For rates that change again and again: starting a program each time would cost a hundred times as much.
    changer: Option<TrafficControl>,
}

impl<'a> Shaper<'a> {
    /// Chooses how to shape; changes nothing.
    pub(crate) fn plan(
        (store, host, guard): (&'a Store, &'a dyn Host, Guard),
        recorded: Recorded,
        facts: DeviceFacts,
        capabilities: Capabilities,
    ) -> Result<Self, ShapeError> {
        let (line, policy) = (recorded.line.line(facts.mtu), recorded.line.policy());
        let inputs = Inputs { line: &line, policy: &policy, capabilities: &capabilities, device: &facts };
        let choice = choose(&inputs, recorded.line.back_end.as_deref())
            .map_err(|refusal| ShapeError::unable(format!("shaping {}: {refusal}", facts.name)))?;
        let besides = Vec::new();
        Ok(Self {
            store,
            host,
            guard,
            recorded,
            policy,
            facts,
            capabilities,
            choice,
            line,
            besides,
            trial: None,
            kept: None,
            stays: false,
            is_up: false,
            changer: None,
        })
    }

    /// The one that stands on this host.
    pub(crate) fn of_standing(
        host: (&'a Store, &'a dyn Host, Guard),
        device: &str,
        standing: &Standing,
    ) -> Result<Self, ShapeError> {
        let Some(recorded) = &standing.recorded else {
            let text =
                format!("how the shaper of {device} was asked for (changes {}) is not on record", standing.set.id);
            return Err(ShapeError::unable(text).with_advice("`linerate shape DEV off` takes it down all the same"));
        };
        let mut planned = recorded.clone();
        planned.line.back_end = standing.back_end.clone().or(planned.line.back_end);
        let found = trials::capabilities(planned.line.back_end.as_deref())?;
        let shaper = Self::plan(host, planned, facts(device)?, found)?;
        Ok(Self { recorded: recorded.clone(), is_up: true, kept: Some(standing.set.id), stays: true, ..shaper })
    }

    pub(crate) const fn choice(&self) -> &Choice {
        &self.choice
    }

    pub(crate) const fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    pub(crate) fn device(&self) -> &str {
        &self.facts.name
    }

    /// Packets towards this address are to be no larger than `mtu`, and peers are told.
    pub(crate) fn add_route_mtu(&mut self, destination: &str, mtu: Mtu) -> Result<(), ShapeError> {
        let found = if let Ok(address) = destination.parse() {
            route_towards(address)?
        } else {
            let target = Target::Route { destination: destination.to_owned() };
            self.host.read(&target)?.map(|attributes| (destination.to_owned(), attributes))
        };
        let Some((destination, attributes)) = found else {
            let text =
                format!("setting the MTU of the route towards {destination}: there is no such route in the main table");
            return Err(ShapeError::unable(text).with_advice("`ip route get ADDRESS` shows which one is used"));
        };
        self.besides.push(route_change(destination, &attributes, mtu));
        Ok(())
    }

    /// Looks at the interface again, which may be another one of the same name by now.
    pub(crate) fn look_again(&mut self) -> Result<(), ShapeError> {
        self.facts = facts(&self.facts.name)?;
        self.line.mtu = self.recorded.line.line(self.facts.mtu).mtu;
        self.replan()
    }

    /// For other rates, or another interface of the same name. What stands keeps its back end; before that, another rate may
    /// be one for another back end.
    fn replan(&mut self) -> Result<(), ShapeError> {
        let inputs =
            Inputs { line: &self.line, policy: &self.policy, capabilities: &self.capabilities, device: &self.facts };
        let standing = self.is_up.then_some(self.choice.back_end.id);
        let wanted = standing.or(self.recorded.line.back_end.as_deref());
        let choice = choose(&inputs, wanted).map_err(|refusal| ShapeError::unable(refusal.to_string()))?;
        let rejected =
            if standing.is_some() { core::mem::take(&mut self.choice.rejected) } else { choice.rejected.clone() };
        self.choice = Choice { rejected, ..choice };
        Ok(())
    }

    /// The changes of the journal: offloads first, as aggregated packets would pass the new queues as one.
    fn changes(&self) -> ChangePlan {
        let offloads = self.choice.plan.offloads.iter().flat_map(|offload| offload_changes(self.host, offload));
        let commands = self.choice.plan.steps.iter().map(|step| step.part.command().to_string());
        let tree = Change {
            target: Target::TrafficControl { interface: self.facts.name.clone() },
            from: None,
            to: commands.collect::<Vec<_>>().join("\n"),
            group: Group::Queueing,
            takes_effect: TakesEffect::Now,
            reason: Reason {
                rule: "shape".to_owned(),
                text: format!("{} holds the line to its rates", self.choice.back_end.id),
                ..Reason::default()
            },
        };
        let all = offloads.chain([tree]).chain(self.besides.iter().cloned());
        ChangePlan { made_at: realtime_now(), changes: all.collect() }
    }

    fn begin(&mut self) -> Result<(), ShapeError> {
        let options = Options {
            purpose: format!("linerate shape {}", self.recorded.words().join(" ")),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            guard: self.guard.clone(),
            time_limit: TRIAL,
        };
        let trial = Trial::begin(self.store, self.host, &self.changes(), &options)?;
        self.trial = Some(trial);
        Ok(())
    }

    /// Keeps it until the next boot.
    pub(crate) fn keep(&mut self) -> Result<(), ShapeError> {
        let Some(trial) = self.trial.take() else { return Ok(()) };
        let id = trial.id();
        record::keep(self.store, id, &self.recorded, self.choice.back_end.id)?;
        let keep = Keep { file: None, evidence: String::new(), warnings: Vec::new() };
        match trial.keep(&keep) {
            Ok(_) => {
                self.kept = Some(id);
                self.stays = true;
                Ok(())
            }
            Err(error) => {
                record::forget(self.store, id);
                Err(error.into())
            }
        }
    }

    /// The number of its changes; `None` before it is set up.
    pub(crate) fn changes_id(&self) -> Option<ChangeId> {
        self.trial.as_ref().map(Trial::id).or(self.kept)
    }

    /// Whether somebody has confirmed it from another process.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.trial.as_ref().is_some_and(Trial::is_confirmed)
    }

    /// Takes everything back; what could not be put back, as sentences.
    pub(crate) fn roll_back(&mut self, reason: &str) -> Vec<String> {
        self.is_up = false;
        let report = match (self.trial.take(), self.kept.take()) {
            (Some(trial), _) => trial.roll_back(reason),
            (None, Some(id)) => match roll_back(self.store, self.host, id, Mode::ForReal, reason) {
                Ok(report) => {
                    record::forget(self.store, id);
                    report
                }
                Err(error) => return vec![error.to_string()],
            },
            (None, None) => return Vec::new(),
        };
        not_back(&report.targets)
    }

    /// Records that what stands is asked for in other words now.
    pub(crate) fn record_again(&mut self, id: ChangeId) -> Result<(), ShapeError> {
        (self.kept, self.stays) = (Some(id), true);
        record::keep(self.store, id, &self.recorded, self.choice.back_end.id)
    }

    /// Carries out commands of `tc`, in the process that is kept for that.
    fn change(&mut self, commands: &[Command]) -> Result<(), ShapeError> {
        if commands.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = commands.iter().map(|command| command.words.join(" ")).collect();
        let mut changer = match self.changer.take() {
            Some(changer) => changer,
            None => TrafficControl::start()?,
        };
        changer.run(lines.iter().map(String::as_str), PATIENCE)?;
        // One that failed is of no more use.
        self.changer = Some(changer);
        Ok(())
    }

    /// Turns what stands for other words into this plan without taking queues down; `false` when that cannot be done.
    pub(crate) fn take_over(&mut self, old: &Plan) -> Result<bool, ShapeError> {
        let Some(commands) = changes(old, &self.choice.plan) else { return Ok(false) };
        self.change(&commands)?;
        self.is_up = true;
        Ok(true)
    }
}

impl Shaped for Shaper<'_> {
    fn line(&self) -> &Line {
        &self.line
    }

    fn plan(&self) -> &Plan {
        &self.choice.plan
    }

    fn is_up(&self) -> bool {
        self.is_up
    }

    fn set_up(&mut self) -> Result<(), ShapeError> {
        if self.is_up {
            return Ok(());
        }
        if self.trial.is_none() {
            self.begin()?;
        } else {
            let plan = self.changes();
            if let Some(trial) = &mut self.trial {
                trial.extend(&plan)?;
            }
        }
        if let Some(trial) = &mut self.trial {
            trial.apply(|_| true)?;
        }
        self.is_up = true;
        if self.stays { self.keep() } else { Ok(()) }
    }

    fn take_down(&mut self) -> Result<(), ShapeError> {
        if !self.is_up {
            return Ok(());
        }
        let left = match &mut self.trial {
            Some(trial) => not_back(&trial.take_back(|_| true)),
            None => self.roll_back("taken down"),
        };
        self.is_up = false;
        if left.is_empty() {
            return Ok(());
        }
        Err(ShapeError::unable(format!("taking the shaper of {} down: {}", self.facts.name, left.join("; ")))
            .with_advice("`linerate rollback --list` shows what is recorded"))
    }

    fn set_rates(&mut self, rates: Both<Option<BitRate>>) -> Result<(), ShapeError> {
        let old = self.choice.plan.clone();
        self.line.up = rates.up.or(self.line.up);
        self.line.down = rates.down.or(self.line.down);
        (self.recorded.line.up, self.recorded.line.down) = (self.line.up, self.line.down);
        self.replan()?;
        if !self.is_up {
            return Ok(());
        }
        let Some(commands) = changes(&old, &self.choice.plan) else {
            self.take_down()?;
            return self.set_up();
        };
        self.change(&commands)
    }

    fn differences(&self) -> Result<Vec<Difference>, ShapeError> {
        let standing = standing::read(&self.choice.plan)?;
        Ok(read_back::compare(&self.choice.plan, &standing))
    }

    fn renew(&mut self, limit: Duration) -> Result<(), ShapeError> {
        match &mut self.trial {
            Some(trial) => Ok(trial.renew(limit)?),
            None => Ok(()),
        }
    }
}

/// What could not be put back, with the reason.
fn not_back(reports: &[TargetReport]) -> Vec<String> {
    let left = reports.iter().filter(|report| !report.result.is_back());
    left.map(|report| format!("{}: {}", report.target, report.result.shown(&report.target))).collect()
}

/// The kernel's own features behind `ethtool`'s short names, as far as the device has them and they are on.
fn offload_changes(host: &dyn Host, offload: &Offload) -> Vec<Change> {
    // With `tx-tcp-segmentation` the kernel switches off what builds on it (`netdev_fix_features`): those first, and back
    // they come last.
    let features: &[&str] = match offload.feature {
        "tso" => {
            &["tx-tcp-mangleid-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp6-segmentation", "tx-tcp-segmentation"]
        }
        "gso" => &["tx-generic-segmentation"],
        "gro" => &["rx-gro"],
        other => &[other],
    };
    let target = |feature: &&str| Target::Offload { interface: offload.device.clone(), feature: (*feature).to_owned() };
    let is_on = |target: &Target| matches!(host.read(target), Ok(Some(value)) if value == "on");
    let targets = features.iter().map(target).filter(is_on);
    let change = |target| Change {
        target,
        from: Some("on".to_owned()),
        to: "off".to_owned(),
        group: Group::Device,
        takes_effect: TakesEffect::Now,
        reason: Reason { rule: "shape".to_owned(), text: offload.reason.clone(), ..Reason::default() },
    };
    targets.map(change).collect()
}

fn route_change(destination: String, attributes: &str, mtu: Mtu) -> Change {
    let mut words: Vec<&str> = Vec::new();
    let mut rest = attributes.split_ascii_whitespace();
    while let Some(word) = rest.next() {
        if word == "mtu" || word == "advmss" {
            // `mtu lock 1400` has a word more.
            if rest.next() == Some("lock") {
                rest.next();
            }
        } else {
            words.push(word);
        }
    }
    // What TCP's and IP's headers take (RFC 9293 §3.7.1; 20 bytes more with IPv6).
    let headers = if destination.contains(':') { 60 } else { 40 };
    let to = format!("{} mtu {} advmss {}", words.join(" "), mtu.get(), mtu.get().saturating_sub(headers));
    Change {
        target: Target::Route { destination },
        from: Some(attributes.to_owned()),
        to,
        group: Group::Mtu,
        takes_effect: TakesEffect::NewConnections,
        reason: Reason {
            rule: "shape".to_owned(),
            text: "on a slow line a large packet is what others wait for".to_owned(),
            ..Reason::default()
        },
    }
}

/// What is known of an interface.
pub(crate) fn facts(device: &str) -> Result<DeviceFacts, ShapeError> {
    let found = linerate_sys::interface::Interface::by_name(device).map_err(|error| {
        let exit = Exit::of(&error);
        let text = format!("looking at the interface {device}: {error}");
        ShapeError { text, advice: Some("`ip link` lists the interfaces of this host".to_owned()), exit }
    })?;
    let usual = DeviceFacts::ethernet(device);
    Ok(DeviceFacts {
        mtu: found.mtu.unwrap_or(usual.mtu),
        header: found.link_header.unwrap_or(usual.header),
        transmit_queues: found.queues.map(|(sending, _)| sending),
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routes_mtu_takes_the_place_of_another() {
        let change = route_change(
            "default".into(),
            "via 192.0.2.1 dev eth0 mtu lock 1400 advmss 1360 proto dhcp",
            Mtu::new(576),
        );
        assert_eq!(change.to, "via 192.0.2.1 dev eth0 proto dhcp mtu 576 advmss 536");
        let change = route_change("2001:db8::/32".into(), "dev eth0", Mtu::new(1280));
        assert_eq!(change.to, "dev eth0 mtu 1280 advmss 1220");
    }
}
