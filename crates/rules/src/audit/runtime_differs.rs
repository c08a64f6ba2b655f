//! Running values that differ from the settings files.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;

use super::AuditRule;
use super::settings_support::{host, host_with_files, own_file_line, quoted};

const ID: &str = "runtime-differs";
const CITATION: &str = "sysctl.d(5): files are read at boot; what is written later lasts until then";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A running value differs from what the files set.",
    explanation: "It was set by hand or by a process: tuned after a profile change, bpftune, a container \
    runtime's network plug-in, cloud-init, an interface script. At the next boot the files win, \
    unless that process runs again. Where no file sets it and the value is not the kernel's default, \
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
    let order = host.settings.order_at_boot();
    let mut findings = Vec::new();
    for (key, setting) in &host.settings.values {
        let Some(now) = setting.value.known() else { continue };
        match host.settings.decides(key, order) {
            Some(source) => {
                let later = source.value().unwrap_or_default();
                if !is_same_value(now, later) {
                    let text =
                        format!("{key} is {now}, but the next boot will set {later}: something else changed it since.");
                    let evidence = format!("{}: {key} = {later}", source.location());
                    let remedy = vec![
                        format!("sysctl -w {} (value of the file)", quoted(key, later)),
                        format!("or edit {}: {key} = {now} (running value)", source.edit_location()),
                    ];
                    findings.push(draft_finding(host, FindingSeverity::Warning, key, text, evidence, remedy));
                }
            }
            None => findings.extend(without_file(host, key, now)),
        }
    }
    findings
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
    let remedy = vec![own_file_line(key, now), format!("or sysctl -w {}", quoted(key, &default.value))];
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
