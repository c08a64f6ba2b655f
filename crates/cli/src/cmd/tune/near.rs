//! A host that this process changes itself.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use linerate_change::{
    Back, Guard, Keep, Kept, Options, Outcome, Report, Store, TargetReport, Trial, drop_in, recover,
};
use linerate_model::change::{Group, Plan, Target};
use linerate_rules::tuning::{Host, Interface, RouteText};
use linerate_sys::host_access::{self, route_towards};
use linerate_sys::route::route_to;
use linerate_sys::{command, facts};

use super::party::{Party, PartyError};

/// `ip` has done its work in milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// This host. Dropping it takes back everything that is not kept.
pub(crate) struct Near<'a> {
    store: &'a Store,
    host: &'a dyn host_access::Host,
    guard: Guard,
    trial: Option<Trial<'a>>,
    /// The targets of each group's latest plan.
    planned: BTreeMap<Group, Vec<Target>>,
}

impl<'a> Near<'a> {
    /// This host, with who takes changes back if this process cannot.
    pub(crate) fn new(store: &'a Store, host: &'a dyn host_access::Host, guard: Guard) -> Self {
        Self { store, host, guard, trial: None, planned: BTreeMap::new() }
    }

    /// The latest plan of a group takes the place of earlier ones.
    fn note(&mut self, plan: &Plan) {
        let groups: BTreeSet<Group> = plan.changes.iter().map(|change| change.group).collect();
        for group in groups {
            let targets = plan.changes.iter().filter(|change| change.group == group);
            self.planned.insert(group, targets.map(|change| change.target.clone()).collect());
        }
    }

    fn trial(&mut self) -> Result<&mut Trial<'a>, PartyError> {
        self.trial.as_mut().ok_or_else(|| PartyError::new("no changes are being tried there"))
    }
}

impl Party for Near<'_> {
    fn host(&mut self, peer: Option<IpAddr>) -> Result<Host, PartyError> {
        let mut host = Host::of_facts(&facts::read_files_below(Path::new("/")));
        if let Some(peer) = peer {
            host.interface = interface_towards(self.host, peer);
            let route = route_towards(peer).ok().flatten();
            host.route = route.map(|(destination, attributes)| RouteText { destination, attributes });
        }
        Ok(host)
    }

    fn begin(&mut self, plan: &Plan, purpose: &str, limit: Duration) -> Result<Vec<String>, PartyError> {
        if self.trial.is_some() {
            return Err(PartyError::new("changes are being tried there already"));
        }
        let recovered = recover(self.store, self.host)?;
        let options = Options {
            purpose: purpose.to_owned(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            guard: self.guard.clone(),
            time_limit: limit,
        };
        self.trial = Some(Trial::begin(self.store, self.host, plan, &options)?);
        self.planned.clear();
        self.note(plan);
        Ok(recovered.iter().flat_map(what_was_left).collect())
    }

    fn extend(&mut self, plan: &Plan) -> Result<(), PartyError> {
        self.trial()?.extend(plan)?;
        self.note(plan);
        Ok(())
    }

    fn apply(&mut self, group: Group) -> Result<Vec<Outcome>, PartyError> {
        // What an earlier plan had for the group besides is not tried with this one.
        let planned = self.planned.get(&group).cloned().unwrap_or_default();
        Ok(self.trial()?.apply(|change| change.group == group && planned.contains(&change.target))?)
    }

    fn take_back(&mut self, group: Group) -> Result<Vec<String>, PartyError> {
        let reports = self.trial()?.take_back(|change| change.group == group);
        Ok(not_back(&reports))
    }

    fn renew(&mut self, limit: Duration) -> Result<(), PartyError> {
        Ok(self.trial()?.renew(limit)?)
    }

    fn forget_metrics(&mut self, peer: IpAddr) -> Result<(), PartyError> {
        let address = peer.to_canonical().to_string();
        let arguments = ["tcp_metrics", "delete", &address];
        let output = command::run("ip", &arguments, None, PATIENCE)?;
        let complaint = output.stderr_text();
        // Nothing is remembered of it (ESRCH).
        if output.status.success() || complaint.contains("No such process") {
            return Ok(());
        }
        let line = command::command_line("ip", &arguments);
        let text = format!("`{line}` failed ({}): {complaint}", output.status);
        Err(PartyError::with_privilege(text, complaint.contains("not permitted")))
    }

    fn has_begun(&self) -> bool {
        self.trial.is_some()
    }

    fn keep(&mut self, keep: &Keep) -> Result<Kept, PartyError> {
        self.trial()?;
        let Some(trial) = self.trial.take() else { return Err(PartyError::new("nothing is there to be kept")) };
        let mut keep = keep.clone();
        if keep.file.as_deref() == Some(Path::new(drop_in::PATH))
            && let Some(reason) = why_no_file()
        {
            keep.file = None;
            keep.warnings.push(reason.to_owned());
        }
        Ok(trial.keep(&keep)?)
    }

    fn roll_back(&mut self, reason: &str) -> Result<Vec<String>, PartyError> {
        let Some(trial) = self.trial.take() else { return Ok(Vec::new()) };
        let report = trial.roll_back(reason);
        let file = report.file.iter().filter(|file| !file.is_back);
        let file = file.map(|file| format!("{}: {}", file.path.display(), file.message));
        Ok(not_back(&report.targets).into_iter().chain(file).chain(report.notes.iter().cloned()).collect())
    }
}

/// Why nothing is written into linerate's file in `/etc`, which is read for process 1 at boot; `None` where the settings
/// of the network are that one's.
fn why_no_file() -> Option<&'static str> {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    match (namespace("1"), namespace("thread-self")) {
        (Some(first), Some(own)) if first == own => None,
        (Some(_), Some(_)) => Some(
            "these are settings of a network namespace, for which nothing is read at boot: they hold as long as it is \
             there",
        ),
        _ => Some(
            "whether these are the settings that are read at boot cannot be told (/proc/1/ns/net is not readable): they \
             are in no file, and hold until the next boot",
        ),
    }
}

fn interface_towards(host: &dyn host_access::Host, peer: IpAddr) -> Option<Interface> {
    let name = route_to(peer).ok()?.interface;
    let queueing = host.read(&Target::Queueing { interface: name.clone() }).ok().flatten();
    Some(Interface { name, queueing })
}

/// What could not be put back, with the reason.
fn not_back(reports: &[TargetReport]) -> Vec<String> {
    let left = reports.iter().filter(|report| !report.result.is_back());
    left.map(|report| format!("{}: {}", report.target, report.result.shown(&report.target))).collect()
}

/// What an interrupted trial had left, and what became of it.
fn what_was_left(report: &Report) -> Vec<String> {
    let done = report.targets.iter().filter(|target| !matches!(target.result, Back::NeverWritten | Back::AlreadyBack));
    done.map(|target| {
        format!("left by interrupted changes {}: {}: {}", report.id, target.target, target.result.shown(&target.target))
    })
    .collect()
}
