//! What the rules about settings share: evidence with its place, the exact way to change a value, and made-up hosts.

use linerate_model::change::{Change, Group, Reason, TakesEffect, Target};
use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{Order, Setting, SettingsFile, Source, Writing};
use linerate_units::ByteCount;

/// Where a remedy is kept over a boot, as sysctl.d(5) recommends for administrators (60 to 90).
const OWN_FILE: &str = "/etc/sysctl.d/90-network.conf";

/// What a rule says about one setting.
pub(super) struct Saying {
    /// The rule.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, with the figures.
    pub text: String,
    /// What the value should be; `None` where that is for somebody to decide.
    pub to: Option<String>,
    /// Group of the change.
    pub group: Group,
    /// Who says so.
    pub source: &'static str,
    /// What may speak against it.
    pub risk: &'static str,
}

/// A finding about a setting, with its value, its places, the commands and the change.
pub(super) fn finding(host: &HostFacts, key: &str, saying: Saying) -> Finding {
    let change = saying.to.as_ref().and_then(|to| change(host, key, to, &saying));
    Finding {
        rule: saying.rule.to_owned(),
        severity: saying.severity,
        subject: key.to_owned(),
        evidence: vec![evidence(host, key)],
        remedy: saying.to.as_ref().map_or_else(Vec::new, |to| remedy(host, key, to)),
        source: saying.source.to_owned(),
        risk: saying.risk.to_owned(),
        text: saying.text,
        change,
    }
}

/// `net.ipv4.tcp_sack = 0 (/etc/sysctl.d/99-old.conf:12)`.
pub(super) fn evidence(host: &HostFacts, key: &str) -> String {
    let value = host.settings.value(key).unwrap_or("unknown");
    let origin = match host.settings.decides(key, host.settings.order_at_boot()) {
        Some(source) if source.value() == Some(value) => source.place(),
        Some(source) => format!("{} sets {}", source.place(), source.value().unwrap_or_default()),
        None => "no file sets it".to_owned(),
    };
    format!("{key} = {value} ({origin})")
}

/// Commands for now, and the edits that make them last.
pub(super) fn remedy(host: &HostFacts, key: &str, to: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if host.settings.value(key).is_some_and(|value| value != to) && !is_impossible(host, key) {
        lines.push(format!("sysctl -w {}", quoted(key, to)));
    }
    let mut places: Vec<String> = Vec::new();
    for source in lines_with_name(host, key) {
        if source.value() != Some(to) && !places.contains(&source.edit_place()) {
            places.push(source.edit_place());
        }
    }
    lines.extend(places.iter().map(|place| format!("edit {place}: {key} = {to}")));
    lines
}

/// `key=value`, quoted for a shell where that is needed.
pub(super) fn quoted(key: &str, value: &str) -> String {
    if value.contains(' ') { format!("{key}='{value}'") } else { format!("{key}={value}") }
}

/// Every line that has the setting's own name, in files that are read at all.
pub(super) fn lines_with_name(host: &HostFacts, key: &str) -> Vec<Source> {
    let mut lines = host.settings.sources(key, Order::Procps);
    lines.retain(|source| !source.assignment.is_pattern() && source.file.is_some() && source.value().is_some());
    lines
}

/// Every line of every file that is read, with the name of a setting in it.
pub(super) fn all_lines(host: &HostFacts) -> Vec<Source> {
    let mut lines = host.settings.all_sources(Order::Procps);
    lines.retain(|source| !source.assignment.is_pattern() && source.value().is_some());
    let mut seen = std::collections::BTreeSet::new();
    // The same file under two names is one file to edit.
    lines.retain(|source| seen.insert((source.edit_place(), source.assignment.key.clone())));
    lines
}

/// A line as evidence.
pub(super) fn line_evidence(source: &Source) -> String {
    format!("{}: {} = {}", source.place(), source.assignment.written, source.value().unwrap_or_default())
}

/// Where a setting that no file has is best written.
pub(super) fn own_file_line(key: &str, to: &str) -> String {
    format!("write {OWN_FILE}: {key} = {to}")
}

fn is_impossible(host: &HostFacts, key: &str) -> bool {
    host.settings.values.get(key).is_some_and(|setting| matches!(setting.writing, Writing::Impossible(_)))
}

fn change(host: &HostFacts, key: &str, to: &str, saying: &Saying) -> Option<Change> {
    let from = host.settings.value(key).filter(|value| *value != to)?;
    (!is_impossible(host, key)).then(|| Change {
        target: Target::Setting { key: key.to_owned() },
        from: Some(from.to_owned()),
        to: to.to_owned(),
        group: saying.group,
        takes_effect: TakesEffect::NewConnections,
        reason: Reason {
            rule: saying.rule.to_owned(),
            text: saying.text.clone(),
            arithmetic: None,
            evidence: vec![evidence(host, key)],
            risk: saying.risk.to_owned(),
        },
    })
}

/// A setting that has to have one of a few values.
pub(super) struct Expected {
    /// The setting.
    pub key: &'static str,
    /// Values that are right.
    pub right: fn(i64) -> bool,
    /// The value to set.
    pub to: &'static str,
    /// What follows from another value; `{}` stands for it.
    pub text: &'static str,
    /// The rest of what is said.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Group of the change.
    pub group: Group,
    /// Who says so.
    pub source: &'static str,
    /// What may speak against it.
    pub risk: &'static str,
}

/// A finding if the setting has another value now; or if it will have at the next boot.
pub(super) fn expect(host: &HostFacts, expected: &Expected) -> Vec<Finding> {
    let Some(now) = host.settings.number(expected.key) else { return Vec::new() };
    let boot = host.settings.decides(expected.key, host.settings.order_at_boot());
    let later = boot.as_ref().and_then(|source| source.value()?.parse::<i64>().ok());
    let wrong_later = later.filter(|value| !(expected.right)(*value));
    let say = |value: i64, prefix: &str| {
        let text = format!("{prefix}{}", expected.text.replace("{}", &value.to_string()));
        let saying = Saying {
            rule: expected.rule,
            severity: expected.severity,
            text,
            to: Some(expected.to.to_owned()),
            group: expected.group,
            source: expected.source,
            risk: expected.risk,
        };
        vec![finding(host, expected.key, saying)]
    };
    match (wrong_later, (expected.right)(now)) {
        (_, false) => say(now, ""),
        (Some(value), true) if host.privileges.files_apply_here() == Some(true) => {
            say(value, "From the next boot on: ")
        }
        _ => Vec::new(),
    }
}

/// Kernel 6.12 on 16 GiB, the first namespace of a host itself, with these values.
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
        let setting = Setting { value: Fact::Known((*value).to_owned()), writing: Writing::Possible };
        host.settings.values.insert((*key).to_owned(), setting);
    }
    host
}

/// [`host`] with files of settings.
pub(super) fn host_with_files(values: &[(&str, &str)], files: &[(&str, &str)]) -> HostFacts {
    let mut host = host(values);
    host.settings.files = files.iter().map(|(path, text)| SettingsFile::parsed(*path, text)).collect();
    host
}

/// Whether a line with this name and value switches off what must be on: it is deleted, not repaired.
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

/// A finding about lines of files, whose remedy is an editor's.
pub(super) fn about_lines(rule: &str, severity: Severity, subject: &str, text: String, lines: &[&Source]) -> Finding {
    Finding {
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
