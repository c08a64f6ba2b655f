//! The near host, changed by this process.

use core::time::Duration;
use linerate_units::CompactCollect;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::path::Path;

use linerate_change::{
    ApplyOutcome, ChangeStore, ChangeTrial, KeepOptions, KeptChanges, RestoreOutcome, RollbackGuard, RollbackReport,
    TargetReport, TrialOptions, drop_in, recover,
};
use linerate_model::change::{ChangeGroup, ChangePlan, ChangeTarget};
use linerate_rules::tuning::{EgressInterface, RouteText, TuningHost};
use linerate_sys::host_access::{self, route_towards};
use linerate_sys::interface::interface_of;
use linerate_sys::route::route_to;
use linerate_sys::{command, facts, iproute2};

use super::tuned_host::{ConnectionAddresses, TunedHost, TunedHostError};

/// This host. Dropping it rolls back everything that is not kept.
pub(crate) struct NearHost<'a> {
    store: &'a ChangeStore,
    host: &'a dyn host_access::HostAccess,
    guard: RollbackGuard,
    trial: Option<ChangeTrial<'a>>,
    /// Targets of each group's latest plan.
    planned: BTreeMap<ChangeGroup, Vec<ChangeTarget>>,
}

impl<'a> NearHost<'a> {
    /// Opens this host. `guard`: watchdog that rolls changes back if this process cannot.
    pub(crate) fn new(store: &'a ChangeStore, host: &'a dyn host_access::HostAccess, guard: RollbackGuard) -> Self {
        Self { store, host, guard, trial: None, planned: BTreeMap::new() }
    }

    /// Records a group's latest plan, which replaces earlier ones.
    fn record_plan(&mut self, plan: &ChangePlan) {
        let groups: BTreeSet<ChangeGroup> = plan.changes.iter().map(|change| change.group).collect_compactly();
        for group in groups {
            let targets = plan.changes.iter().filter(|change| change.group == group);
            self.planned.insert(group, targets.map(|change| change.target.clone()).collect());
        }
    }

    fn trial(&mut self) -> Result<&mut ChangeTrial<'a>, TunedHostError> {
        self.trial.as_mut().ok_or_else(|| TunedHostError::new("no changes are being tried there"))
    }
}

impl TunedHost for NearHost<'_> {
    fn describe(&mut self, connection: Option<ConnectionAddresses>) -> Result<TuningHost, TunedHostError> {
        let mut host = TuningHost::from_facts(&facts::read_files_below(Path::new("/")));
        if let Some(connection) = connection {
            let interface = interface_towards(connection);
            host.route = route(connection.peer, interface.as_deref(), &mut host.unreadable);
            host.interface = interface.map(|name| with_queueing(self.host, name, &mut host.unreadable));
        }
        Ok(host)
    }

    fn begin(&mut self, plan: &ChangePlan, purpose: &str, limit: Duration) -> Result<Vec<String>, TunedHostError> {
        if self.trial.is_some() {
            return Err(TunedHostError::new("changes are being tried there already"));
        }
        let recovered = recover(self.store, self.host)?;
        let options = TrialOptions {
            purpose: purpose.to_owned(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            guard: self.guard.clone(),
            time_limit: limit,
        };
        self.trial = Some(ChangeTrial::begin(self.store, self.host, plan, &options)?);
        self.planned.clear();
        self.record_plan(plan);
        Ok(recovered.iter().flat_map(leftover_changes).collect())
    }

    fn extend(&mut self, plan: &ChangePlan) -> Result<(), TunedHostError> {
        self.trial()?.extend(plan)?;
        self.record_plan(plan);
        Ok(())
    }

    fn apply(&mut self, group: ChangeGroup) -> Result<Vec<ApplyOutcome>, TunedHostError> {
        // Other targets of an earlier plan for the group are not tried.
        let planned = self.planned.get(&group).cloned().unwrap_or_default();
        Ok(self.trial()?.apply(|change| change.group == group && planned.contains(&change.target))?)
    }

    fn roll_back_group(&mut self, group: ChangeGroup) -> Result<Vec<String>, TunedHostError> {
        // Kept changes of an earlier plan for the group stay in effect.
        let planned = self.planned.get(&group).cloned().unwrap_or_default();
        let reports =
            self.trial()?.roll_back_selected(|change| change.group == group && planned.contains(&change.target));
        Ok(unrestored_targets(&reports))
    }

    fn renew(&mut self, limit: Duration) -> Result<(), TunedHostError> {
        Ok(self.trial()?.renew(limit)?)
    }

    fn forget_metrics(&mut self, peer: IpAddr) -> Result<(), TunedHostError> {
        iproute2::version("ip")?;
        let address = peer.to_canonical().to_string();
        let arguments = ["tcp_metrics", "delete", &address];
        let output = command::run("ip", &arguments, None, iproute2::TIME_LIMIT)?;
        let complaint = output.stderr_text();
        // No cached metrics (ESRCH).
        if output.status.success() || complaint.contains("No such process") {
            return Ok(());
        }
        let line = command::command_line("ip", &arguments);
        let text = format!("`{line}` failed ({}): {complaint}", output.status);
        Err(TunedHostError::with_privilege(text, complaint.contains("not permitted")))
    }

    fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    fn keep(&mut self, keep: &KeepOptions) -> Result<KeptChanges, TunedHostError> {
        self.trial()?;
        let Some(trial) = self.trial.take() else { return Err(TunedHostError::new("there are no changes to keep")) };
        let mut keep = keep.clone();
        if keep.file.as_deref() == Some(Path::new(drop_in::DEFAULT_FILE))
            && let Some(reason) = no_file_reason()
        {
            keep.file = None;
            keep.warnings.push(reason.to_owned());
        }
        Ok(trial.keep(&keep)?)
    }

    fn roll_back(&mut self, reason: &str) -> Result<Vec<String>, TunedHostError> {
        let Some(trial) = self.trial.take() else { return Ok(Vec::new()) };
        let report = trial.roll_back(reason);
        let file = report.file.iter().filter(|file| !file.is_back);
        let file = file.map(|file| format!("{}: {}", file.path.display(), file.message));
        Ok(unrestored_targets(&report.targets).into_iter().chain(file).chain(report.notes.iter().cloned()).collect())
    }
}

/// Reason to write no file to `/etc`, which is read for process 1 at boot; `None` when this is process 1's network
/// namespace.
fn no_file_reason() -> Option<&'static str> {
    let namespace = |file: &Path| fs::read_link(file).ok();
    match (namespace(Path::new("/proc/1/ns/net")), namespace(&linerate_sys::namespace::own_file())) {
        (Some(first), Some(own)) if first == own => None,
        (Some(_), Some(_)) => Some(
            "these are settings of a network namespace, for which no file is read at boot: they last as long as it \
             exists",
        ),
        _ => Some(
            "cannot determine whether these settings are read at boot (/proc/1/ns/net is not readable): they are not \
             saved to a file, and are active until reboot",
        ),
    }
}

/// Name of the interface that the packets of a connection leave by. Link-local addresses are the same on every link, but the
/// own one is on the connection's.
fn interface_towards(connection: ConnectionAddresses) -> Option<String> {
    let peer = match (connection.own, connection.peer) {
        (IpAddr::V6(own), IpAddr::V6(peer)) if peer.is_unicast_link_local() => {
            SocketAddrV6::new(peer, 0, 0, interface_of(own)?).into()
        }
        (_, peer) => SocketAddr::new(peer, 0),
    };
    route_to(peer).ok().map(|route| route.interface)
}

/// The route to a peer; `None` where it is none of the main table, or of another interface than the connection's.
fn route(peer: IpAddr, interface: Option<&str>, unreadable: &mut Vec<String>) -> Option<RouteText> {
    let found = route_towards(peer).unwrap_or_else(|error| {
        unreadable.push(format!("the route to {peer}: {error}"));
        None
    });
    let (destination, attributes) = found.filter(|(_, attributes)| leads_by(attributes, interface))?;
    Some(RouteText { destination, attributes, peer: Some(peer.to_canonical().to_string()) })
}

/// True when one of a route's next hops is on this interface, or none names one.
fn leads_by(attributes: &str, interface: Option<&str>) -> bool {
    let words: Vec<&str> = attributes.split_ascii_whitespace().collect();
    let mut devices = words.windows(2).filter(|pair| pair[0] == "dev").map(|pair| pair[1]).peekable();
    devices.peek().is_none() || interface.is_none_or(|interface| devices.any(|device| device == interface))
}

fn with_queueing(host: &dyn host_access::HostAccess, name: String, unreadable: &mut Vec<String>) -> EgressInterface {
    let queueing = host.read(&ChangeTarget::Queueing { interface: name.clone() }).unwrap_or_else(|error| {
        unreadable.push(format!("the queueing disciplines of {name}: {error}"));
        None
    });
    EgressInterface { name, queueing }
}

/// Targets that could not be restored, with the reason.
fn unrestored_targets(reports: &[TargetReport]) -> Vec<String> {
    let left = reports.iter().filter(|report| !report.result.is_restored());
    left.map(|report| format!("{}: {}", report.target, report.result.with_display_values(&report.target))).collect()
}

/// Changes left by an interrupted trial, with their result.
fn leftover_changes(report: &RollbackReport) -> Vec<String> {
    let done = report
        .targets
        .iter()
        .filter(|target| !matches!(target.result, RestoreOutcome::NeverWritten | RestoreOutcome::AlreadyBack));
    done.map(|target| {
        format!(
            "left by interrupted changes {}: {}: {}",
            report.id,
            target.target,
            target.result.with_display_values(&target.target)
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_of_the_interfaces_of_its_next_hops() {
        let one = "dev eth0 proto kernel metric 256 pref medium";
        let two = "proto static nexthop via 192.0.2.1 dev eth0 weight 1 nexthop via 198.51.100.1 dev eth1 weight 1";
        assert!(leads_by(one, Some("eth0")) && !leads_by(one, Some("eth1")));
        assert!(leads_by(two, Some("eth1")) && !leads_by(two, Some("eth2")));
        assert!(leads_by("via 192.0.2.1", Some("eth0")) && leads_by(one, None));
    }

    #[test]
    fn a_loopback_peer_is_behind_the_loopback_device() {
        let connection = |address: &str| {
            let own = address.parse().expect("valid");
            ConnectionAddresses { own, peer: own }
        };
        assert_eq!(interface_towards(connection("127.0.0.1")).as_deref(), Some("lo"));
        assert_eq!(interface_towards(connection("fe80::ffff:1")), None, "no interface has this address");
    }
}
