//! Helpers of the rules for settings: evidence with its location, the edits that change a value, and test hosts.

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, EffectTiming, HostChange};
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;
use linerate_model::host::settings::{
    FileOwner, KernelSetting, ReadOrder, SettingSource, SettingWritability, SettingsFile,
};
use linerate_units::ByteCount;

use crate::advisable::{ValueContext, refusal};

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

/// Returns a finding about a setting, with its value, its locations, the commands and the change. A value that linerate
/// never sets is replaced by the kernel's default, or by the deletion of the lines that have such values.
pub(super) fn finding(host: &HostFacts, key: &str, draft: SettingFindingDraft) -> AuditFinding {
    let to = draft.to.clone().filter(|to| is_advisable(host, key, to));
    let to = to.or_else(|| draft.to.as_ref().and_then(|_| default_value(host, key)));
    let change = to.as_ref().and_then(|to| change(host, key, to, &draft));
    AuditFinding {
        notes: Vec::new(),
        rule: draft.rule.to_owned(),
        severity: draft.severity,
        subject: key.to_owned(),
        evidence: vec![evidence(host, key)],
        remedy: to.as_ref().map_or_else(Vec::new, |to| remedy(host, key, to)),
        source: draft.source.to_owned(),
        risk: draft.risk.to_owned(),
        text: draft.text,
        change,
    }
}

/// Reason why linerate never sets this value ([`crate::advisable`]).
pub(super) fn refusal_of(host: &HostFacts, key: &str, value: &str) -> Option<String> {
    refusal(&ValueContext::from(host), key, value)
}

/// True when linerate may propose this value.
pub(super) fn is_advisable(host: &HostFacts, key: &str, value: &str) -> bool {
    refusal_of(host, key, value).is_none()
}

/// Kernel's default, where it is known and advisable.
pub(super) fn default_value(host: &HostFacts, key: &str) -> Option<String> {
    let default = default_of(key, host.kernel.version()?, &host.memory)?;
    Some(default.value).filter(|value| is_advisable(host, key, value))
}

/// `net.ipv4.tcp_sack = 0 (/etc/sysctl.d/99-old.conf:12)`.
pub(super) fn evidence(host: &HostFacts, key: &str) -> String {
    let value = host.settings.value(key).unwrap_or("unknown");
    let origin = match host.settings.decides_at_boot(key) {
        Some(source) if source.value() == Some(value) => source.location(),
        Some(source) => format!("{} sets {}", source.location(), source.value().unwrap_or_default()),
        None => "no file sets it".to_owned(),
    };
    format!("{key} = {value} ({origin})")
}

/// Returns the commands for the running system, and the file edits that make them persistent.
pub(super) fn remedy(host: &HostFacts, key: &str, to: &str) -> Vec<String> {
    let mut lines: Vec<String> = set_command(host, key, to).into_iter().collect();
    for source in lines_with_name(host, key).iter().filter(|source| source.value() != Some(to)) {
        let line = edit_line(host, source, key, to);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.extend(edit_without_name(host, key, to));
    lines
}

/// Returns the edit where a wildcard or the kernel command line sets another value at the next boot.
fn edit_without_name(host: &HostFacts, key: &str, to: &str) -> Option<String> {
    let source = host.settings.decides_at_boot(key).filter(|source| source.value() != Some(to))?;
    if source.file.is_none() {
        return Some(edit_line(host, &source, key, to));
    }
    let exact = || {
        let location = source.edit_location();
        format!("write {}: {key} = {to} (an exact name overrides the wildcard in {location})", override_file(&source))
    };
    source.assignment.is_pattern().then(exact)
}

/// Returns the command that sets the running value; `None` if it has this value, cannot be set, or is not advisable.
pub(super) fn set_command(host: &HostFacts, key: &str, to: &str) -> Option<String> {
    let differs = host.settings.value(key).is_some_and(|value| value != to);
    let may = differs && !is_impossible(host, key) && is_advisable(host, key, to);
    may.then(|| format!("sysctl -w {}", quoted(key, to)))
}

/// Returns the edit that gives a line this value, or removes it when the value is not advisable.
pub(super) fn edit_line(host: &HostFacts, source: &SettingSource, key: &str, to: &str) -> String {
    if !is_advisable(host, key, to) {
        return delete_line(host, source);
    }
    let location = source.edit_location();
    match source.owner() {
        FileOwner::Administrator => format!("edit {location}: {key} = {to}"),
        FileOwner::Package => {
            format!("write {}: {key} = {to} (overrides {location}, of a package)", override_file(source))
        }
        FileOwner::Runtime => runtime_file(source),
        FileOwner::CommandLine => format!("edit {location}: sysctl.{}", quoted(key, to)),
    }
}

/// Returns the edit that removes a line; one of a package is overridden with the kernel's default.
pub(super) fn delete_line(host: &HostFacts, source: &SettingSource) -> String {
    let location = source.edit_location();
    let key = &source.assignment.key;
    match source.owner() {
        FileOwner::Runtime => runtime_file(source),
        FileOwner::Package => default_value(host, key).map_or_else(
            || {
                let file = location.rsplit_once(':').map_or(location.as_str(), |(file, _)| file);
                let name = file.rsplit('/').next().unwrap_or_default();
                format!("copy {file} to /etc/sysctl.d/{name} without the line (replaces it, of a package)")
            },
            |usual| format!("write {}: {key} = {usual} (overrides {location}, of a package)", override_file(source)),
        ),
        FileOwner::Administrator | FileOwner::CommandLine => format!("delete {location}"),
    }
}

/// Files below `/run` disappear at the next boot, and the program that writes them writes them again.
fn runtime_file(source: &SettingSource) -> String {
    format!("configure the program that writes {} after each boot", source.edit_location())
}

/// Returns the file of the administrator that is read after the one of this line.
fn override_file(source: &SettingSource) -> String {
    let name = source.file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or_default();
    let usual = PERSISTENT_FILE.rsplit('/').next().unwrap_or_default();
    let names = [usual, "99-network.conf", "zz-network.conf"];
    match names.into_iter().find(|own| *own > name) {
        Some(own) => format!("/etc/sysctl.d/{own}"),
        None => format!("/etc/sysctl.d/z{name}"),
    }
}

/// Values of a setting to examine: the running one, and the one of the next boot if it differs; with the words for it.
pub(super) fn present_and_later(host: &HostFacts, key: &str) -> Vec<(String, &'static str)> {
    let now = host.settings.value(key).map(str::to_owned);
    let applies = host.privileges.files_apply_here() == Some(true);
    let boot = host.settings.decides_at_boot(key).filter(|_| applies).and_then(|source| source.assignment.value);
    let later = boot.filter(|later| Some(later) != now.as_ref());
    now.map(|now| (now, "")).into_iter().chain(later.map(|later| (later, "From the next boot on: "))).collect()
}

/// Formats `key=value`, quoted for a shell if needed.
pub(super) fn quoted(key: &str, value: &str) -> String {
    if value.contains(' ') { format!("{key}='{value}'") } else { format!("{key}={value}") }
}

/// Returns every line with the setting's own name, in files that are read now or at the next boot: one below `/run` may hide
/// a file until then.
pub(super) fn lines_with_name(host: &HostFacts, key: &str) -> Vec<SettingSource> {
    let mut lines = host.settings.sources(key, ReadOrder::Procps);
    let at_boot = host.settings.decides_at_boot(key).filter(|source| !lines.contains(source));
    lines.extend(at_boot);
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
pub(crate) struct ExpectedValue {
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
    let boot = host.settings.decides_at_boot(expected.key);
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
pub(crate) fn host(values: &[(&str, &str)]) -> HostFacts {
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

/// Returns a finding about lines of files, without remedy.
pub(super) fn about_lines(
    rule: &str,
    severity: FindingSeverity,
    subject: &str,
    text: String,
    lines: &[&SettingSource],
) -> AuditFinding {
    AuditFinding {
        notes: Vec::new(),
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
