//! Helpers of the rules for settings: evidence with its location, the edits that change a value, and test hosts.

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{KernelSetting, ReadOrder, SettingSource, SettingWritability, SettingsFile};
use linerate_units::ByteCount;

/// File for persistent settings, as sysctl.d(5) recommends for administrators (60 to 90).
const PERSISTENT_FILE: &str = "/etc/sysctl.d/90-network.conf";

/// Finding of a rule about one setting.
pub(super) struct SettingFindingDraft {
    /// Identifier of the rule.
    pub rule: &'static str,
    /// Severity of the finding.
    pub severity: FindingSeverity,
    /// Description of the problem, with the figures.
    pub text: String,
    /// Recommended value; `None` where the administrator has to decide.
    pub to: Option<String>,
    /// Group of the change.
    pub group: ChangeGroup,
    /// Source of the rule.
    pub source: &'static str,
    /// Risk of the remedy.
    pub risk: &'static str,
}

/// Returns a finding about a setting, with its value, its locations, the commands and the change.
pub(super) fn finding(host: &HostFacts, key: &str, draft: SettingFindingDraft) -> AuditFinding {
    let change = draft.to.as_ref().and_then(|to| change(host, key, to, &draft));
    AuditFinding {
        rule: draft.rule.to_owned(),
        severity: draft.severity,
        subject: key.to_owned(),
        evidence: vec![evidence(host, key)],
        remedy: draft.to.as_ref().map_or_else(Vec::new, |to| remedy(host, key, to)),
        source: draft.source.to_owned(),
        risk: draft.risk.to_owned(),
        text: draft.text,
        change,
    }
}

/// `net.ipv4.tcp_sack = 0 (/etc/sysctl.d/99-old.conf:12)`.
pub(super) fn evidence(host: &HostFacts, key: &str) -> String {
    let value = host.settings.value(key).unwrap_or("unknown");
    let origin = match host.settings.decides(key, host.settings.order_at_boot()) {
        Some(source) if source.value() == Some(value) => source.location(),
        Some(source) => format!("{} sets {}", source.location(), source.value().unwrap_or_default()),
        None => "no file sets it".to_owned(),
    };
    format!("{key} = {value} ({origin})")
}

/// Returns the commands for the running system, and the file edits that make them persistent.
pub(super) fn remedy(host: &HostFacts, key: &str, to: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if host.settings.value(key).is_some_and(|value| value != to) && !is_impossible(host, key) {
        lines.push(format!("sysctl -w {}", quoted(key, to)));
    }
    let mut places: Vec<String> = Vec::new();
    for source in lines_with_name(host, key) {
        if source.value() != Some(to) && !places.contains(&source.edit_location()) {
            places.push(source.edit_location());
        }
    }
    lines.extend(places.iter().map(|place| format!("edit {place}: {key} = {to}")));
    lines
}

/// Formats `key=value`, quoted for a shell if needed.
pub(super) fn quoted(key: &str, value: &str) -> String {
    if value.contains(' ') { format!("{key}='{value}'") } else { format!("{key}={value}") }
}

/// Returns every line with the setting's own name, in files that are read.
pub(super) fn lines_with_name(host: &HostFacts, key: &str) -> Vec<SettingSource> {
    let mut lines = host.settings.sources(key, ReadOrder::Procps);
    lines.retain(|source| !source.assignment.is_pattern() && source.file.is_some() && source.value().is_some());
    lines
}

/// Returns every assignment of every file that is read.
pub(super) fn all_lines(host: &HostFacts) -> Vec<SettingSource> {
    let mut lines = host.settings.all_sources(ReadOrder::Procps);
    lines.retain(|source| !source.assignment.is_pattern() && source.value().is_some());
    let mut seen = std::collections::BTreeSet::new();
    // The same file under two names is one file to edit.
    lines.retain(|source| seen.insert((source.edit_location(), source.assignment.key.clone())));
    lines
}

/// Formats a line as evidence.
pub(super) fn line_evidence(source: &SettingSource) -> String {
    format!("{}: {} = {}", source.location(), source.assignment.written, source.value().unwrap_or_default())
}

/// Formats the line to write for a setting that no file has.
pub(super) fn own_file_line(key: &str, to: &str) -> String {
    format!("write {PERSISTENT_FILE}: {key} = {to}")
}

fn is_impossible(host: &HostFacts, key: &str) -> bool {
    host.settings
        .values
        .get(key)
        .is_some_and(|setting| matches!(setting.writability, SettingWritability::Impossible(_)))
}

fn change(host: &HostFacts, key: &str, to: &str, draft: &SettingFindingDraft) -> Option<HostChange> {
    let from = host.settings.value(key).filter(|value| *value != to)?;
    (!is_impossible(host, key)).then(|| HostChange {
        target: ChangeTarget::Setting { key: key.to_owned() },
        from: Some(from.to_owned()),
        to: to.to_owned(),
        group: draft.group,
        takes_effect: EffectTiming::NewConnections,
        reason: ChangeReason {
            rule: draft.rule.to_owned(),
            text: draft.text.clone(),
            arithmetic: None,
            evidence: vec![evidence(host, key)],
            risk: draft.risk.to_owned(),
        },
    })
}

/// Rule for a setting that must have one of a few values.
pub(super) struct ExpectedValue {
    /// Identifier of the rule.
    pub id: &'static str,
    /// Name of the setting.
    pub key: &'static str,
    /// Condition that the rule detects.
    pub title: &'static str,
    /// Reason why it matters.
    pub explanation: &'static str,
    /// Source of the rule.
    pub citation: &'static str,
    /// True for correct values.
    pub is_correct: fn(i64) -> bool,
    /// Recommended value.
    pub recommended: &'static str,
    /// Consequence of another value; `{}` is replaced by it.
    pub text: &'static str,
    /// Severity of the finding.
    pub severity: FindingSeverity,
    /// Group of the change.
    pub group: ChangeGroup,
    /// Risk of the remedy.
    pub risk: &'static str,
    /// Value with a finding, and value without, for the tests of the whole list.
    pub cases: (&'static str, &'static str),
}

/// Returns a finding if the setting has another value now, or will have at the next boot.
pub(super) fn expect(host: &HostFacts, expected: &ExpectedValue) -> Vec<AuditFinding> {
    let Some(now) = host.settings.number(expected.key) else { return Vec::new() };
    let boot = host.settings.decides(expected.key, host.settings.order_at_boot());
    let later = boot.as_ref().and_then(|source| source.value()?.parse::<i64>().ok());
    let wrong_later = later.filter(|value| !(expected.is_correct)(*value));
    let to_finding = |value: i64, prefix: &str| {
        let text = format!("{prefix}{}", expected.text.replace("{}", &value.to_string()));
        let draft = SettingFindingDraft {
            rule: expected.id,
            severity: expected.severity,
            text,
            to: Some(expected.recommended.to_owned()),
            group: expected.group,
            source: expected.citation,
            risk: expected.risk,
        };
        vec![finding(host, expected.key, draft)]
    };
    match (wrong_later, (expected.is_correct)(now)) {
        (_, false) => to_finding(now, ""),
        (Some(value), true) if host.privileges.files_apply_here() == Some(true) => {
            to_finding(value, "From the next boot on: ")
        }
        _ => Vec::new(),
    }
}

/// Returns a host with kernel 6.12, 16 GiB, the initial network namespace and these values.
pub(super) fn host(values: &[(&str, &str)]) -> HostFacts {
    let mut host = HostFacts::default();
    host.kernel.release = Fact::Known("6.12.38".to_owned());
    host.memory.total = Fact::Known(ByteCount::from_mebibytes(16 * 1024));
    host.memory.page_size = Fact::Known(ByteCount::new(4096));
    host.privileges.initial_network_namespace = Fact::Known(true);
    host.privileges.container = Fact::absent("no trace of one");
    host.settings.systemd = Fact::Known(true);
    let names = ["net.core.rmem_max", "net.ipv4.tcp_sack", "net.ipv4.tcp_rmem"].map(str::to_owned);
    host.settings.names = Fact::Known(names.into());
    for (key, value) in values {
        let setting =
            KernelSetting { value: Fact::Known((*value).to_owned()), writability: SettingWritability::Possible };
        host.settings.values.insert((*key).to_owned(), setting);
    }
    host
}

/// Returns [`host`] with settings files.
pub(super) fn host_with_files(values: &[(&str, &str)], files: &[(&str, &str)]) -> HostFacts {
    let mut host = host(values);
    host.settings.files = files.iter().map(|(path, text)| SettingsFile::parsed(*path, text)).collect();
    host
}

/// True when a line with this name and value switches off a required feature: it is deleted, not corrected.
pub(super) fn is_harmful(key: &str, value: &str) -> bool {
    let features = [
        "tcp_dsack",
        "tcp_frto",
        "tcp_moderate_rcvbuf",
        "tcp_recovery",
        "tcp_sack",
        "tcp_timestamps",
        "tcp_window_scaling",
    ];
    value.trim() == "0" && features.iter().any(|name| key.strip_prefix("net.ipv4.") == Some(*name))
}

/// Returns a finding about lines of files, without remedy.
pub(super) fn about_lines(
    rule: &str,
    severity: FindingSeverity,
    subject: &str,
    text: String,
    lines: &[&SettingSource],
) -> AuditFinding {
    AuditFinding {
        rule: rule.to_owned(),
        severity,
        subject: subject.to_owned(),
        text,
        evidence: lines.iter().map(|line| line_evidence(line)).collect(),
        source: String::new(),
        risk: String::new(),
        remedy: Vec::new(),
        change: None,
    }
}
