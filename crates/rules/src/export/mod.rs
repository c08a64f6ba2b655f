//! Export of plans to the formats of other configuration tools.
//!
//! One file per format, listed in [`FORMATS`]. Changes that a format cannot express are returned with the reason, and
//! appear as comments in every file, so that no change is lost silently.

mod ansible;
mod docker;
mod kubernetes;
mod namespaced;
mod network_manager;
mod nixos;
mod sysctl_d;
mod sysfs;
mod systemd_link;
#[cfg(test)]
mod tests;
mod text;
mod tuned;

use core::fmt;

use linerate_model::change::{ChangePlan, ChangeTarget, HostChange};

use text::{comment, file_name, one_line, unique_names};

use crate::advisable::{ValueContext, refusal};

/// Export format for plans. Comments begin with `#` in all of them.
#[derive(Clone, Copy, Debug)]
pub struct PlanFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// Short description.
    pub title: &'static str,
    /// Location of the files, and the command that applies them.
    pub use_it: &'static str,
    /// Documentation of the format.
    pub source: &'static str,
    /// Checks if the format supports a change; returns the reason otherwise.
    pub takes: fn(&HostChange) -> Result<(), &'static str>,
    /// Writes the supported changes of hosts that have at least one.
    write: fn(&[HostChanges<'_>]) -> Vec<ExportedFile>,
}

/// All formats, sorted by name.
pub const FORMATS: &[PlanFormat] = &[
    ansible::FORMAT,
    docker::FORMAT,
    kubernetes::FORMAT,
    network_manager::FORMAT,
    nixos::FORMAT,
    sysctl_d::FORMAT,
    systemd_link::FORMAT,
    tuned::FORMAT,
];

/// Name of the file that lists the omitted changes when the format supports none.
const OMITTED_FILE: &str = "not-included.txt";

/// Plan of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPlan {
    /// Name of the host.
    pub host: String,
    /// Its changes.
    pub plan: ChangePlan,
}

/// Metadata at the top of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportHeading {
    /// Version of linerate.
    pub linerate_version: String,
    /// Date of the plan, as text.
    pub date: String,
    /// Reference to the evidence; empty without any.
    pub evidence: String,
}

/// Complete file for one host, or for several where the format has one file for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Names of the hosts.
    pub hosts: String,
    /// Relative name, below a directory of the host's name where the file is for one host.
    pub name: String,
    /// Contents.
    pub text: String,
}

/// Change that a format cannot express.
#[derive(Clone, Debug, PartialEq)]
pub struct OmittedChange {
    /// Name of the host.
    pub host: String,
    /// Change.
    pub change: HostChange,
    /// Reason.
    pub reason: &'static str,
}

impl fmt::Display for OmittedChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, to) = (one_line(&self.change.target.to_string()), one_line(&self.change.to));
        write!(formatter, "{}: {target} = {to} ({})", one_line(&self.host), self.reason)
    }
}

/// Files of an export, and the changes that are not in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// Files, sorted by host. Without supported changes, one that lists the omitted ones; none for an empty plan.
    pub files: Vec<ExportedFile>,
    /// Changes that the format cannot express.
    pub omitted: Vec<OmittedChange>,
}

/// Supported changes of a host, at least one, with unique targets.
struct HostChanges<'a> {
    host: &'a str,
    /// Unique directory of its files.
    directory: String,
    changes: Vec<&'a HostChange>,
}

impl HostChanges<'_> {
    /// Creates a file of this host, at its location below the root directory.
    fn file(&self, location: &str, text: String) -> ExportedFile {
        ExportedFile { hosts: self.host.to_owned(), name: format!("{}/{location}", self.directory), text }
    }
}

/// Returns the format of this name.
#[must_use]
pub fn format(name: &str) -> Option<&'static PlanFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Returns the names of the formats that express all of these changes.
#[must_use]
pub fn complete_formats(plans: &[HostPlan]) -> Vec<&'static str> {
    let is_complete = |format: &&PlanFormat| {
        plans.iter().flat_map(|host| &host.plan.changes).all(|change| format.supports(change).is_ok())
    };
    FORMATS.iter().filter(is_complete).map(|format| format.name).collect()
}

impl PlanFormat {
    /// Formats the plans. Plans of the same host are merged.
    #[must_use]
    pub fn export(&self, plans: &[HostPlan], heading: &ExportHeading) -> Export {
        let (mut supported, mut omitted) = (Vec::new(), Vec::new());
        let hosts = effective_changes(plans);
        let directories = unique_names(hosts.iter().map(|(host, _)| file_name(host)), usize::MAX);
        for ((host, changes), directory) in hosts.into_iter().zip(directories) {
            let (taken, left): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| self.supports(change).is_ok());
            omitted.extend(left.into_iter().map(|change| OmittedChange {
                host: host.to_owned(),
                change: change.clone(),
                reason: self.supports(change).err().unwrap_or_default(),
            }));
            if !taken.is_empty() {
                supported.push(HostChanges { host, directory, changes: taken });
            }
        }
        let mut files = if supported.is_empty() { Vec::new() } else { (self.write)(&supported) };
        if let (true, Some(first)) = (files.is_empty(), omitted.first()) {
            files.push(ExportedFile { hosts: first.host.clone(), name: OMITTED_FILE.to_owned(), text: String::new() });
        }
        for file in &mut files {
            file.text = with_heading(&self.comments(&file.hosts, heading, &omitted), &file.text);
        }
        Export { files, omitted }
    }

    /// Checks that linerate may set the value ([`crate::advisable`]), that no name is a pattern or an option anywhere, and
    /// that the format can express the change.
    fn supports(&self, change: &HostChange) -> Result<(), &'static str> {
        match &change.target {
            _ if !has_plain_names(&change.target) => {
                Err("its name has characters that have a meaning in configuration files")
            }
            ChangeTarget::Setting { key } if refusal(&ValueContext::default(), key, &change.to).is_some() => {
                Err("linerate never sets this value")
            }
            _ => (self.takes)(change),
        }
    }

    /// Returns the comments at the top of a file.
    fn comments(&self, hosts: &str, heading: &ExportHeading, omitted: &[OmittedChange]) -> String {
        let ExportHeading { linerate_version, date, evidence } = heading;
        let mut text =
            comment(0, &format!("Written by linerate {linerate_version} for {hosts}, {date}: {}.", self.title));
        if !evidence.is_empty() {
            text.push_str(&comment(0, &format!("Evidence: {evidence}.")));
        }
        text.push_str(&comment(0, self.use_it));
        for change in omitted {
            text.push_str(&comment(0, &format!("Not included: {change}.")));
        }
        text
    }
}

/// Checks the names of a target: several formats take `*`, `?`, `[`, `!`, `-` at the start, `=` or `#` for something else,
/// and the kernel allows them in the name of an interface.
fn has_plain_names(target: &ChangeTarget) -> bool {
    let is_plain = |name: &str, more: &str| {
        name.starts_with(|first: char| first.is_alphanumeric() || first == '_')
            && name.chars().all(|letter| letter.is_alphanumeric() || "._-".contains(letter) || more.contains(letter))
    };
    let own = match target {
        ChangeTarget::Setting { key } => Some((key.as_str(), "/")),
        ChangeTarget::Offload { feature, .. } => Some((feature.as_str(), "")),
        _ => None,
    };
    let names = target.interface().map(|interface| (interface, "")).into_iter().chain(own);
    names.into_iter().all(|(name, more)| is_plain(name, more))
}

/// Returns the changes of each host; of two for the same target the later one.
fn effective_changes(plans: &[HostPlan]) -> Vec<(&str, Vec<&HostChange>)> {
    let mut hosts: Vec<(&str, Vec<&HostChange>)> = Vec::new();
    for HostPlan { host, plan } in plans {
        let position = hosts.iter().position(|(name, _)| name == host).unwrap_or_else(|| {
            hosts.push((host, Vec::new()));
            hosts.len() - 1
        });
        let changes = &mut hosts[position].1;
        for change in &plan.changes {
            changes.retain(|earlier| earlier.target != change.target);
            changes.push(change);
        }
    }
    hosts
}

/// Inserts comments at the top, below the interpreter of a script.
fn with_heading(comments: &str, text: &str) -> String {
    match text.split_once('\n') {
        _ if text.is_empty() => comments.to_owned(),
        Some((interpreter, rest)) if interpreter.starts_with("#!") => format!("{interpreter}\n{comments}\n{rest}"),
        _ if text.starts_with("---\n") => format!("{comments}{text}"),
        _ => format!("{comments}\n{text}"),
    }
}

/// Groups the changes by interface, in order of first appearance.
fn by_interface<'a>(changes: &[&'a HostChange]) -> Vec<(&'a str, Vec<&'a HostChange>)> {
    let mut groups: Vec<(&str, Vec<&HostChange>)> = Vec::new();
    for change in changes {
        let Some(interface) = change.target.interface() else { continue };
        match groups.iter_mut().find(|(name, _)| *name == interface) {
            Some((_, group)) => group.push(change),
            None => groups.push((interface, vec![change])),
        }
    }
    groups
}
