//! Shaper of an interface of this host.

use std::time::Duration;

use linerate_change::{
    ChangeId, ChangeStore, ChangeTrial, KeepOptions, RollbackGuard, RollbackMode, TargetReport, TrialOptions,
    roll_back, value_matches,
};
use linerate_model::change::{
    ChangeGroup, ChangePlan, ChangeReason, ChangeTarget, EffectTiming, HostChange, LinkAttribute,
};
use linerate_shape::back_ends::{DeviceProperties, PlanInputs};
use linerate_shape::capability::{ChosenBackEnd, KernelCapabilities, choose};
use linerate_shape::link::AccessLink;
use linerate_shape::plan::{AggregatedPackets, CodepointTable, PlanCommand, PlannedOffload, ShaperPlan, changes};
use linerate_shape::policy::TrafficPolicy;
use linerate_shape::read_back::{self, QueueingDifference, QueueingFault};
use linerate_shape::traffic_classes::TrafficClasses;
use linerate_shape::verify::PerDirection;
use linerate_sys::clock::realtime_now;
use linerate_sys::command_reader::TrafficControl;
use linerate_sys::host_access::{HostAccess, route_towards};
use linerate_sys::{features, iproute2};
use linerate_units::{BitRate, Mtu};

use super::error::{ShapeError, ShapeErrorKind};
use super::line::RecordedShaper;
use super::record::{self, ActiveShaper};
use super::shaped::ShaperControl;
use super::{standing, trials};

/// Watchdog limit of a shaper that is not yet measured or kept.
const TRIAL_LIMIT: Duration = Duration::from_secs(60);

/// A shaper of this host, planned or active.
pub struct Shaper<'a> {
    store: &'a ChangeStore,
    host: &'a dyn HostAccess,
    guard: RollbackGuard,
    recorded: RecordedShaper,
    policy: TrafficPolicy,
    facts: DeviceProperties,
    capabilities: KernelCapabilities,
    choice: ChosenBackEnd,
    line: AccessLink,
    /// Additional changes: the route's MTU.
    additional_changes: Vec<HostChange>,
    trial: Option<ChangeTrial<'a>>,
    /// Change set, once kept.
    kept: Option<ChangeId>,
    /// True when it was kept before: set up again, it is kept again.
    was_kept: bool,
    is_up: bool,
    /// `tc` process for frequent rate changes; starting a program each time costs a hundred times as much.
    traffic_control: Option<TrafficControl>,
}

impl<'a> Shaper<'a> {
    /// Chooses a back end; changes nothing.
    pub(crate) fn plan(
        (store, host, guard): (&'a ChangeStore, &'a dyn HostAccess, RollbackGuard),
        recorded: RecordedShaper,
        facts: DeviceProperties,
        capabilities: KernelCapabilities,
    ) -> Result<Self, ShapeError> {
        let line = recorded.line.link(facts.mtu);
        let refused = |reason: String| ShapeError::impossible(format!("cannot shape {}: {reason}", facts.name));
        let policy = recorded.line.policy().map_err(refused)?;
        let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &facts };
        let choice = choose(&inputs, recorded.line.back_end)
            .map_err(|refusal| refused(refusal.message()).with_advice(refusal.way_out))?;
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
            additional_changes: besides,
            trial: None,
            kept: None,
            was_kept: false,
            is_up: false,
            traffic_control: None,
        })
    }

    /// Opens the active shaper.
    pub(crate) fn open_active(
        host: (&'a ChangeStore, &'a dyn HostAccess, RollbackGuard),
        standing: &ActiveShaper,
    ) -> Result<Self, ShapeError> {
        let device = &standing.device;
        let Some(recorded) = &standing.recorded else {
            let text =
                format!("the arguments of the shaper of {device} (changes {}) are not recorded", standing.set.id);
            return Err(ShapeError::impossible(text).with_advice("`linerate shape DEV off` still removes it"));
        };
        let mut planned = recorded.clone();
        planned.line.back_end = standing.back_end.or(planned.line.back_end);
        let found = trials::capabilities(planned.line.back_end)?;
        let facts = DeviceProperties { intermediate: standing.intermediate.clone(), ..facts(device)? };
        let shaper = Self::plan(host, planned, facts, found)?;
        Ok(Self { recorded: recorded.clone(), is_up: true, kept: Some(standing.set.id), was_kept: true, ..shaper })
    }

    /// Chosen back end with its plan, and the rejected ones.
    pub const fn choice(&self) -> &ChosenBackEnd {
        &self.choice
    }

    /// Traffic classes with rates of their own.
    pub const fn traffic_classes(&self) -> &TrafficClasses {
        &self.policy.classes
    }

    /// Request that it was planned for, with the rates that are set now.
    pub const fn recorded(&self) -> &RecordedShaper {
        &self.recorded
    }

    /// Name of the interface.
    pub fn device(&self) -> &str {
        &self.facts.name
    }

    /// Sets the MTU of a route, and the MSS advertised to peers.
    pub(crate) fn add_route_mtu(&mut self, destination: &str, mtu: Mtu) -> Result<(), ShapeError> {
        let found = if let Ok(address) = destination.parse() {
            route_towards(address)?
        } else {
            let target = ChangeTarget::Route { destination: destination.to_owned() };
            self.host.read(&target)?.map(|attributes| (destination.to_owned(), attributes))
        };
        let Some((destination, attributes)) = found else {
            let text = format!("cannot set the MTU of the route to {destination}: the main table has no such route");
            return Err(ShapeError::impossible(text).with_advice("`ip route get ADDRESS` shows which one is used"));
        };
        self.additional_changes.push(route_change(destination, &attributes, mtu));
        Ok(())
    }

    /// Re-reads the interface, which may be a new one of the same name.
    pub(crate) fn refresh_device(&mut self) -> Result<(), ShapeError> {
        self.facts = facts(&self.facts.name)?;
        self.line.mtu = self.recorded.line.link(self.facts.mtu).mtu;
        self.replan()
    }

    /// Plans again for other rates or a new interface of the same name. An active shaper keeps its back end; otherwise
    /// other rates may select another one.
    fn replan(&mut self) -> Result<(), ShapeError> {
        let inputs = PlanInputs {
            line: &self.line,
            policy: &self.policy,
            capabilities: &self.capabilities,
            device: &self.facts,
        };
        let standing = self.is_up.then_some(self.choice.back_end.id);
        let wanted = standing.or(self.recorded.line.back_end);
        let choice = choose(&inputs, wanted).map_err(|refusal| ShapeError::impossible(refusal.to_string()))?;
        let rejected =
            if standing.is_some() { core::mem::take(&mut self.choice.rejected) } else { choice.rejected.clone() };
        self.choice = ChosenBackEnd { rejected, ..choice };
        Ok(())
    }

    /// Table of the plan as a change. A table of that name that exists already is refused.
    fn table_change(&self) -> Result<Option<HostChange>, ShapeError> {
        let Some(table) = &self.choice.plan.table else { return Ok(None) };
        let target = table_target(table);
        if self.host.read(&target)?.is_some() {
            let text = format!("the {target} exists already, and is not part of a shaper; nothing was touched");
            let advice = format!("`nft list table inet {0}` shows it, `{1}` deletes it", table.name(), table.removal());
            return Err(ShapeError::impossible(text).with_advice(advice));
        }
        Ok(Some(HostChange {
            target,
            from: None,
            to: table.input(),
            group: ChangeGroup::Queueing,
            takes_effect: EffectTiming::Now,
            reason: ChangeReason {
                rule: "shape".to_owned(),
                text: CodepointTable::REASON.to_owned(),
                ..ChangeReason::default()
            },
        }))
    }

    /// Changes for the journal: offloads first, as aggregated packets would pass the new queues as one.
    fn changes(&self) -> Result<ChangePlan, ShapeError> {
        let offloads = self.choice.plan.offloads.iter().filter_map(|offload| offload_change(self.host, offload));
        let commands = self.choice.plan.steps.iter().map(|step| step.part.command().to_string());
        let tree = HostChange {
            target: ChangeTarget::TrafficControl { interface: self.facts.name.clone() },
            from: None,
            to: commands.collect::<Vec<_>>().join("\n"),
            group: ChangeGroup::Queueing,
            takes_effect: EffectTiming::Now,
            reason: ChangeReason {
                rule: "shape".to_owned(),
                text: format!("{} shapes the link to its rates", self.choice.back_end.id),
                ..ChangeReason::default()
            },
        };
        let all = offloads.chain([tree]).chain(self.additional_changes.iter().cloned()).chain(self.table_change()?);
        Ok(ChangePlan { made_at: realtime_now(), changes: all.collect() })
    }

    fn begin(&mut self) -> Result<(), ShapeError> {
        let options = TrialOptions {
            purpose: format!("linerate shape {}", self.recorded.arguments().join(" ")),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            guard: self.guard.clone(),
            time_limit: TRIAL_LIMIT,
        };
        let trial = ChangeTrial::begin(self.store, self.host, &self.changes()?, &options)?;
        // Before the first change: a shaper that outlives its process and the watchdog is still known by its arguments.
        record::keep(self.store, trial.id(), &self.recorded, self.choice.back_end.id)?;
        self.trial = Some(trial);
        Ok(())
    }

    /// Keeps the shaper until reboot.
    pub(crate) fn keep(&mut self) -> Result<(), ShapeError> {
        let Some(trial) = self.trial.take() else { return Ok(()) };
        let id = trial.id();
        record::keep(self.store, id, &self.recorded, self.choice.back_end.id)?;
        let keep = KeepOptions { file: None, evidence: String::new(), warnings: Vec::new() };
        match trial.keep(&keep) {
            Ok(_) => {
                self.kept = Some(id);
                self.was_kept = true;
                Ok(())
            }
            Err(error) => {
                record::delete_record(self.store, id);
                Err(error.into())
            }
        }
    }

    /// Id of its change set; `None` before the setup.
    pub(crate) fn changes_id(&self) -> Option<ChangeId> {
        self.trial.as_ref().map(ChangeTrial::id).or(self.kept)
    }

    /// True when another process has confirmed it.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.trial.as_ref().is_some_and(ChangeTrial::is_confirmed)
    }

    /// Rolls everything back; returns a sentence for each target that could not be restored.
    pub(crate) fn roll_back(&mut self, reason: &str) -> Vec<String> {
        self.is_up = false;
        let report = match (self.trial.take(), self.kept.take()) {
            (Some(trial), _) => {
                let id = trial.id();
                let report = trial.roll_back(reason);
                if report.is_clean() {
                    record::delete_record(self.store, id);
                }
                report
            }
            (None, Some(id)) => match roll_back(self.store, self.host, id, RollbackMode::ForReal, reason) {
                Ok(report) => {
                    record::delete_record(self.store, id);
                    report
                }
                Err(error) => return vec![error.to_string()],
            },
            (None, None) => return Vec::new(),
        };
        unrestored_targets(&report.targets)
    }

    /// Records the new arguments of the active shaper.
    pub(crate) fn update_record(&mut self, id: ChangeId) -> Result<(), ShapeError> {
        (self.kept, self.was_kept) = (Some(id), true);
        record::keep(self.store, id, &self.recorded, self.choice.back_end.id)
    }

    /// Runs `tc` commands in the long-running process.
    fn change(&mut self, commands: &[PlanCommand]) -> Result<(), ShapeError> {
        if commands.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = commands.iter().map(|command| command.words.join(" ")).collect();
        let mut changer = match self.traffic_control.take() {
            Some(changer) => changer,
            None => TrafficControl::start()?,
        };
        changer.run(lines.iter().map(String::as_str), iproute2::TIME_LIMIT)?;
        // A failed process is not reused.
        self.traffic_control = Some(changer);
        Ok(())
    }

    /// Changes an active shaper with other arguments into this plan in place; `false` when impossible.
    pub(crate) fn change_in_place(&mut self, old: &ShaperPlan) -> Result<bool, ShapeError> {
        let Some(commands) = changes(old, &self.choice.plan) else { return Ok(false) };
        self.change(&commands)?;
        self.is_up = true;
        Ok(true)
    }
}

impl ShaperControl for Shaper<'_> {
    fn line(&self) -> &AccessLink {
        &self.line
    }

    fn plan(&self) -> &ShaperPlan {
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
            let plan = self.changes()?;
            if let Some(trial) = &mut self.trial {
                trial.extend(&plan)?;
            }
        }
        if let Some(trial) = &mut self.trial {
            trial.apply(|_| true)?;
        }
        self.is_up = true;
        if self.was_kept { self.keep() } else { Ok(()) }
    }

    fn remove(&mut self) -> Result<(), ShapeError> {
        if !self.is_up {
            return Ok(());
        }
        let left = match &mut self.trial {
            Some(trial) => unrestored_targets(&trial.roll_back_selected(|_| true)),
            None => self.roll_back("removed"),
        };
        self.is_up = false;
        if left.is_empty() {
            return Ok(());
        }
        Err(ShapeError::impossible(format!("cannot remove the shaper of {}: {}", self.facts.name, left.join("; ")))
            .with_advice("`linerate rollback --list` shows the recorded changes"))
    }

    fn set_rates(&mut self, rates: PerDirection<Option<BitRate>>) -> Result<(), ShapeError> {
        let old = self.choice.plan.clone();
        self.line.up = rates.up.or(self.line.up);
        self.line.down = rates.down.or(self.line.down);
        (self.recorded.line.up, self.recorded.line.down) = (self.line.up, self.line.down);
        self.replan()?;
        if !self.is_up {
            return Ok(());
        }
        let Some(commands) = changes(&old, &self.choice.plan) else {
            self.remove()?;
            return self.set_up();
        };
        self.change(&commands)
    }

    fn differences(&self) -> Result<Vec<QueueingDifference>, ShapeError> {
        let standing = standing::read(&self.choice.plan)?;
        let mut found = read_back::compare(&self.choice.plan, &standing);
        if let Some(table) = &self.choice.plan.table {
            let present = self.host.read(&table_target(table))?;
            if !present.is_some_and(|present| value_matches(&table_target(table), &table.input(), &present)) {
                let words = format!("the nftables table {} is missing or changed", table.name());
                found.push(QueueingDifference { device: table.device.clone(), fault: QueueingFault::Missing, words });
            }
        }
        Ok(found)
    }

    fn renew(&mut self, limit: Duration) -> Result<(), ShapeError> {
        match &mut self.trial {
            Some(trial) => Ok(trial.renew(limit)?),
            None => Ok(()),
        }
    }
}

fn table_target(table: &CodepointTable) -> ChangeTarget {
    ChangeTarget::FirewallTable { name: table.name() }
}

/// Targets that could not be restored, with the reason.
fn unrestored_targets(reports: &[TargetReport]) -> Vec<String> {
    let left = reports.iter().filter(|report| !report.result.is_restored());
    left.map(|report| format!("{}: {}", report.target, report.result.with_display_values(&report.target))).collect()
}

/// Change that keeps aggregated packets out; `None` when the host has it already.
fn offload_change(host: &dyn HostAccess, offload: &PlannedOffload) -> Option<HostChange> {
    let interface = offload.device.clone();
    let (target, to) = match offload.aggregates {
        AggregatedPackets::Sent => (ChangeTarget::Link { interface, attribute: LinkAttribute::SegmentCount }, "1"),
        AggregatedPackets::Received => (ChangeTarget::Offload { interface, feature: "rx-gro".to_owned() }, "off"),
    };
    let from = host.read(&target).ok().flatten().filter(|from| from != to)?;
    Some(HostChange {
        target,
        from: Some(from),
        to: to.to_owned(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        reason: ChangeReason { rule: "shape".to_owned(), text: offload.reason.clone(), ..ChangeReason::default() },
    })
}

fn route_change(destination: String, attributes: &str, mtu: Mtu) -> HostChange {
    let mut words: Vec<&str> = Vec::new();
    let mut rest = attributes.split_ascii_whitespace();
    while let Some(word) = rest.next() {
        if word == "mtu" || word == "advmss" {
            // `mtu lock 1400` has one more token.
            if rest.next() == Some("lock") {
                rest.next();
            }
        } else {
            words.push(word);
        }
    }
    // Size of the TCP and IP headers (RFC 9293 §3.7.1; 20 bytes more with IPv6).
    let headers = if destination.contains(':') { 60 } else { 40 };
    let to = format!("{} mtu {} advmss {}", words.join(" "), mtu.get(), mtu.get().saturating_sub(headers));
    HostChange {
        target: ChangeTarget::Route { destination },
        from: Some(attributes.to_owned()),
        to,
        group: ChangeGroup::Mtu,
        takes_effect: EffectTiming::NewConnections,
        reason: ChangeReason {
            rule: "shape".to_owned(),
            text: "on a slow link a large packet delays all others".to_owned(),
            ..ChangeReason::default()
        },
    }
}

/// Reads the properties of an interface.
pub(crate) fn facts(device: &str) -> Result<DeviceProperties, ShapeError> {
    let found = linerate_sys::interface::NetworkInterface::by_name(device).map_err(|error| {
        let kind = ShapeErrorKind::of(&error);
        let text = format!("cannot read the interface {device}: {error}");
        ShapeError { text, advice: Some("`ip link` lists the interfaces of this host".to_owned()), kind }
    })?;
    let usual = DeviceProperties::ethernet(device);
    Ok(DeviceProperties {
        mtu: found.mtu.unwrap_or(usual.mtu),
        header: found.link_header.unwrap_or(usual.header),
        transmit_queues: found.queues.map(|(sending, _)| sending),
        link_speed: features::link_speed(device).ok().flatten(),
        receives_aggregates: found.kind.as_deref() == Some("veth"),
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
