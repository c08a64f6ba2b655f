//! Running values that differ from the settings files.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;
use linerate_model::host::settings::SettingSource;

use super::AuditRule;
use super::settings_support::{
    default_value, delete_line, edit_line, host, host_with_files, is_advisable, own_file_line, refusal_of, set_command,
};

const ID: &str = "runtime-differs";
const CITATION: &str = "sysctl.d(5): files are read at boot; what is written later lasts until then";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A running value differs from what the files set.",
    explanation: "Either a file was written after the last boot and is not loaded yet, or the value was set by hand or by a process: tuned after a profile change, bpftune, a container \
    runtime's network plug-in, cloud-init, an interface script. At the next boot the files win, \
    unless that process runs again; files below /run are gone then. Where no file sets it and the value is not the kernel's default, \
    it is lost at the next boot.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || {
        host_with_files(
            &[("net.ipv4.tcp_rmem", "4096 131072 6291456")],
            &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_rmem = 4096 131072 33554432\n")],
        )
    },
    silent: || host(&[("net.ipv4.tcp_sack", "1")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    if host.privileges.files_apply_here() != Some(true) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (key, setting) in &host.settings.values {
        let Some(now) = setting.value.known() else { continue };
        match host.settings.decides_at_boot(key) {
            Some(source) => findings.extend(with_file(host, key, now, &source)),
            None => findings.extend(without_file(host, key, now)),
        }
    }
    findings
}

/// Returns a finding for a running value that differs from the one of the next boot.
fn with_file(host: &HostFacts, key: &str, now: &str, source: &SettingSource) -> Option<AuditFinding> {
    let later = source.value().filter(|later| !is_same_value(now, later))?;
    let evidence = format!("{}: {key} = {later}", source.location());
    let changed = file_changed_since_boot(host, source);
    if let Some(reason) = refusal_of(host, key, later) {
        let text = format!(
            "{key} is {now}, but the next boot will set {later} ({}). linerate never sets that: {reason}.",
            state_of_file(changed)
        );
        let remedy = vec![edit_or_delete(host, source, key, now)];
        return Some(draft_finding(host, FindingSeverity::Warning, key, text, evidence, remedy));
    }
    let severity = if changed == Some(true) { FindingSeverity::Advice } else { FindingSeverity::Warning };
    let text = format!("{key} is {now}, but the next boot will set {later}: {}.", state_of_file(changed));
    let mut remedy: Vec<String> = Vec::new();
    remedy.extend(set_command(host, key, later).map(|command| format!("{command} (value of the file)")));
    if is_advisable(host, key, now) {
        remedy.push(format!("or {} (running value)", edit_line(host, source, key, now)));
    }
    if remedy.is_empty() {
        remedy.push(format!("linerate audit --explain {key} (it cannot be set from here)"));
    }
    Some(draft_finding(host, severity, key, text, evidence, remedy))
}

/// Edits a line to the running value where that is advisable, else removes it.
fn edit_or_delete(host: &HostFacts, source: &SettingSource, key: &str, now: &str) -> String {
    let usual = default_value(host, key).is_some_and(|usual| is_same_value(&usual, now));
    if usual { delete_line(host, source) } else { edit_line(host, source, key, now) }
}

fn file_changed_since_boot(host: &HostFacts, source: &SettingSource) -> Option<bool> {
    let path = source.file.as_deref()?;
    let file = host.settings.files.iter().find(|file| file.path == path)?;
    file.changed_since_boot.known().copied()
}

fn state_of_file(changed: Option<bool>) -> &'static str {
    match changed {
        Some(true) => "the file was written after the last boot and is not loaded yet",
        Some(false) => "something else changed it since the boot",
        None => "either the file is not loaded yet, or something else changed the value",
    }
}

/// Returns a finding for a value that neither a file nor the kernel sets.
fn without_file(host: &HostFacts, key: &str, now: &str) -> Option<AuditFinding> {
    // An enterprise kernel of this version may have the default of a later one.
    let version = host.kernel.version().filter(|_| !host.kernel.carries_changes_back())?;
    let default = default_of(key, version, &host.memory).filter(|default| default.exact)?;
    if is_same_value(now, &default.value) {
        return None;
    }
    let text = format!(
        "{key} is {now}; no file sets it, and the kernel's default is {}: the distribution's kernel, a process or \
        an administrator set it, and a value set by hand is lost at the next boot.",
        default.value
    );
    let mut remedy: Vec<String> = Vec::new();
    remedy.extend(is_advisable(host, key, now).then(|| own_file_line(key, now)));
    let or = if remedy.is_empty() { "" } else { "or " };
    remedy.extend(set_command(host, key, &default.value).map(|command| format!("{or}{command}")));
    if remedy.is_empty() {
        remedy.push(format!("linerate audit --explain {key}"));
    }
    Some(draft_finding(host, FindingSeverity::Note, key, text, format!("{key} = {now} (no file sets it)"), remedy))
}

fn is_same_value(one: &str, other: &str) -> bool {
    let numbers = linerate_model::host::settings::numbers;
    one == other || numbers(one).is_some_and(|one| numbers(other) == Some(one))
}

fn draft_finding(
    host: &HostFacts,
    severity: FindingSeverity,
    key: &str,
    text: String,
    evidence: String,
    remedy: Vec<String>,
) -> AuditFinding {
    let mut evidence = vec![evidence];
    if let Some(profile) = host.managers.tuned_profile.known() {
        evidence.push(format!("tuned is active with the profile {profile}"));
    }
    if host.managers.bpftune.known() == Some(&true) {
        evidence.push("bpftune is running".to_owned());
    }
    AuditFinding {
        notes: Vec::new(),
        rule: ID.to_owned(),
        severity,
        subject: key.to_owned(),
        text,
        evidence,
        source: CITATION.to_owned(),
        risk: "the process that set it may set it again".to_owned(),
        remedy,
        change: None,
    }
}
