//! `linerate audit --explain KEY`: explanation of one setting.

use std::fmt::Write as _;

use linerate_documents::audit::{
    DefaultDocument, ExplanationDocument, FileLocation, LocatedFinding, SCHEMA, WriteAccess, setting_locations,
};
use linerate_model::fact::Fact;
use linerate_model::finding::AuditFinding;
use linerate_model::host::HostFacts;
use linerate_model::host::catalogue::{self, SettingScope};
use linerate_model::host::defaults::{KernelDefault, default_of};
use linerate_model::host::settings::{ReadOrder, SettingSource, SettingWritability, numbers, syntax};
use linerate_report::throughput_text::TextStyle;
use linerate_rules::audit::{self, AuditRule, RULES};

use super::VERSION;
use super::text::{ascii, bold, push, push_finding};
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Known facts about a setting.
struct SettingExplanation<'a> {
    host: &'a HostFacts,
    key: String,
    default: Option<KernelDefault>,
    at_boot: Option<SettingSource>,
    by_hand: Option<SettingSource>,
    rules: Vec<&'static AuditRule>,
    findings: Vec<AuditFinding>,
}

/// Prints the explanation, if the setting exists here or in the catalogue.
pub(super) fn run(host: &HostFacts, written: &str, json: bool) -> ExitStatus {
    let Some(key) = known_name(host, written) else {
        let nearest = audit::nearest_name(host, &syntax::normalised_name(written));
        let advice = nearest.map(|name| format!("there is no setting {written}; did you mean {name}?"));
        console::error(&format!("there is no setting {written} here: `sysctl -a` lists them"), advice.as_deref());
        return ExitStatus::Unable;
    };
    let explained = SettingExplanation {
        host,
        default: host.kernel.version().and_then(|version| default_of(&key, version, &host.memory)),
        at_boot: host.settings.decides_at_boot(&key),
        by_hand: host.settings.decides(&key, ReadOrder::Procps),
        rules: RULES.iter().filter(|rule| rule.keys.contains(&key.as_str())).collect(),
        findings: audit::audit(host).into_iter().filter(|finding| finding.subject == key).collect(),
        key,
    };
    if json {
        print_json(DocumentKind::AuditExplanation, &explained.document());
    } else {
        console::data(&explained.text(console::data_style()));
    }
    ExitStatus::Success
}

/// Full name of the setting, from dots or slashes, or from its last component where that is unambiguous.
fn known_name(host: &HostFacts, written: &str) -> Option<String> {
    let name = syntax::normalised_name(written.trim().trim_start_matches("/proc/sys/"));
    let exists = |name: &str| {
        catalogue::find(name).is_some()
            || host.settings.names.known().is_some_and(|names| names.contains(name))
            || host.settings.values.contains_key(name)
    };
    if exists(&name) {
        return Some(name);
    }
    ["net.ipv4", "net.core", "net.ipv6"].into_iter().map(|space| format!("{space}.{name}")).find(|name| exists(name))
}

impl SettingExplanation<'_> {
    fn document(&self) -> ExplanationDocument {
        let (writable, why) = self.writable();
        ExplanationDocument {
            schema: SCHEMA,
            linerate_version: VERSION.to_owned(),
            key: self.key.clone(),
            description: catalogue::find(&self.key).map(|knob| knob.description.to_owned()),
            present_value: self.current_value(),
            kernel_default: self.default.as_ref().map(|default| DefaultDocument {
                value: default.value.clone(),
                exact: default.exact,
                reason: default.reason.clone(),
            }),
            writable,
            not_writable_because: why,
            at_boot: self.at_boot.as_ref().map(FileLocation::from),
            by_sysctl_system: self.by_hand.as_ref().map(FileLocation::from),
            lines_at_boot: setting_locations(self.host, &self.key, self.host.settings.order_at_boot()),
            lines_by_sysctl_system: setting_locations(self.host, &self.key, ReadOrder::Procps),
            rules: self.rules.iter().map(|rule| rule.id.to_owned()).collect(),
            findings: self.findings.iter().map(|finding| LocatedFinding::new(self.host, finding)).collect(),
        }
    }

    fn current_value(&self) -> Fact<String> {
        match self.host.settings.values.get(&self.key) {
            Some(setting) => setting.value.clone(),
            None => Fact::absent("it was not read: no rule uses it, and no file sets it"),
        }
    }

    fn writable(&self) -> (WriteAccess, Option<String>) {
        match self.host.settings.values.get(&self.key).map(|setting| &setting.writability) {
            Some(SettingWritability::Possible) => (WriteAccess::Yes, None),
            Some(SettingWritability::NeedsPrivilege) => (WriteAccess::NeedsPrivilege, None),
            Some(SettingWritability::Impossible(why)) => (WriteAccess::No, Some(why.clone())),
            Some(SettingWritability::Unknown) | None => (WriteAccess::Unknown, None),
        }
    }

    fn text(&self, style: TextStyle) -> String {
        let mut text = format!("{}\n", bold(&self.key, style));
        if let Some(knob) = catalogue::find(&self.key) {
            push(&mut text, "  ", "  ", knob.description, style);
        }
        text.push('\n');
        let rows = [
            ("now", self.current_value_text()),
            ("default", self.default_text()),
            ("at boot", self.decided(self.at_boot.as_ref())),
            ("later", format!("after `sysctl --system`: {}", self.decided(self.by_hand.as_ref()))),
            ("writable", self.writable_text()),
            ("scope", self.scope_text()),
        ];
        let files_apply = self.host.privileges.files_apply_here() != Some(false);
        for (label, value) in rows.into_iter().filter(|(label, _)| files_apply || *label != "later") {
            push(&mut text, &format!("  {label:9}"), &" ".repeat(11), &value, style);
        }
        self.push_lines(&mut text, style);
        self.push_rules(&mut text, style);
        text
    }

    fn current_value_text(&self) -> String {
        let now = self.current_value();
        let value = match &now {
            Fact::Known(value) => value,
            Fact::Unknown(why) => return format!("not known: {why}"),
        };
        let Some(default) = &self.default else { return value.clone() };
        format!("{value} ({})", compare_with_default(value, default))
    }

    fn default_text(&self) -> String {
        let version =
            self.host.kernel.version().map_or_else(|| "this kernel".to_owned(), |found| format!("kernel {found}"));
        match &self.default {
            Some(default) => {
                let about = if default.exact { "" } else { "about " };
                format!("{about}{} in {version} on this host: {}", default.value, default.reason)
            }
            None => format!("not known for {version}"),
        }
    }

    fn decided(&self, source: Option<&SettingSource>) -> String {
        if self.host.privileges.files_apply_here() == Some(false) {
            return "files do not apply here: this is a container or a separate network namespace".to_owned();
        }
        match source {
            Some(source) => format!("{} ({})", source.value().unwrap_or_default(), source.location()),
            None => "the kernel's default: no line sets it".to_owned(),
        }
    }

    fn writable_text(&self) -> String {
        match self.writable() {
            (WriteAccess::Yes, _) => "yes".to_owned(),
            (WriteAccess::NeedsPrivilege, _) => "as root".to_owned(),
            (WriteAccess::No, why) => format!("no: {}", why.unwrap_or_default()),
            (WriteAccess::Unknown, _) => "not known: it does not exist".to_owned(),
        }
    }

    fn scope_text(&self) -> String {
        match catalogue::find(&self.key).map(|knob| knob.scope) {
            Some(SettingScope::OfNamespace) => "one value in each network namespace",
            Some(SettingScope::ReadOnlyInOthers) => {
                "one value for the host; other network namespaces show it read-only"
            }
            Some(SettingScope::OfHost) => "one value for the host; other network namespaces do not show it",
            None => "not known",
        }
        .to_owned()
    }

    /// Pushes every line in boot order, in procps' order where that differs, and lines of files that are not read.
    fn push_lines(&self, text: &mut String, style: TextStyle) {
        let settings = &self.host.settings;
        let boot = settings.sources(&self.key, settings.order_at_boot());
        let by_hand = settings.sources(&self.key, ReadOrder::Procps);
        push_sources(text, "Lines that set it, in the order of the boot", &boot, self.at_boot.as_ref(), style);
        if by_hand != boot {
            push_sources(text, "In the order of `sysctl --system`", &by_hand, self.by_hand.as_ref(), style);
        }
        let hidden = settings.files.iter().filter_map(|file| Some((file, settings.hidden_by(file)?)));
        for (file, by) in hidden {
            for source in file.sources().filter(|source| source.assignment.concerns(&self.key)) {
                let value = source.value().unwrap_or_default();
                let line = format!("not read: {} sets {value}; {} replaces its file", source.location(), by.path);
                push(text, "  ", "    ", &line, style);
            }
        }
    }

    fn push_rules(&self, text: &mut String, style: TextStyle) {
        if self.rules.is_empty() && self.findings.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n{}", bold("Rules", style));
        for rule in &self.rules {
            let found = self.findings.iter().any(|finding| {
                finding.rule == rule.id || finding.notes.iter().any(|note| note.starts_with(&format!("{}: ", rule.id)))
            });
            let line =
                format!("{}: {}. It looks for: {}", rule.id, if found { "FOUND" } else { "nothing" }, rule.title);
            push(text, "  ", "    ", &line, style);
        }
        if !self.findings.is_empty() {
            text.push('\n');
        }
        for finding in &self.findings {
            push_finding(text, finding, style);
        }
    }
}

fn push_sources(
    text: &mut String,
    title: &str,
    sources: &[SettingSource],
    decides: Option<&SettingSource>,
    style: TextStyle,
) {
    let _ = writeln!(text, "\n{}", bold(title, style));
    if sources.is_empty() {
        text.push_str("  none\n");
    }
    for source in sources {
        let value = source.value().unwrap_or("(excluded from wildcards)");
        let mark = if Some(source) == decides { " <- decides" } else { "" };
        let pattern =
            if source.assignment.is_pattern() { format!(" ({})", source.assignment.key) } else { String::new() };
        let link = source.leads_to.as_ref().map_or_else(String::new, |target| format!(" -> {target}"));
        let entry = format!("{}{link}{pattern}: {value}{mark}", source.location());
        push(text, "  ", "    ", &ascii(&entry, style), style);
    }
}

/// Ratio of a value to the kernel's default, computed from its last number, which is the limit.
#[expect(clippy::cast_precision_loss, reason = "both are far below 2^52, and a figure of two digits is shown")]
fn compare_with_default(value: &str, default: &KernelDefault) -> String {
    if value == default.value {
        return "the kernel's default".to_owned();
    }
    let last = |text: &str| numbers(text).and_then(|found| found.last().copied()).filter(|number| *number > 0);
    match (last(value), last(&default.value)) {
        (Some(now), Some(usual)) if now == usual => "not quite the kernel's default".to_owned(),
        (Some(now), Some(usual)) => {
            let times = now as f64 / usual as f64;
            match times {
                times if !default.exact && (0.95..1.05).contains(&times) => "the kernel's default".to_owned(),
                times if times >= 1.0 => format!("{times:.2} times the kernel's default"),
                times => format!("{:.0} % of the kernel's default", times * 100.0),
            }
        }
        _ => format!("the kernel's default is {}", default.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_limits() {
        let default = |value: &str, exact| KernelDefault { value: value.to_owned(), exact, reason: String::new() };
        for (value, of, exact, expected) in [
            ("4096 131072 6291456", "4096 131072 6291456", true, "the kernel's default"),
            ("4096 131072 12582912", "4096 131072 6291456", true, "2.00 times the kernel's default"),
            ("4096 87380 6291456", "4096 131072 6291456", true, "not quite the kernel's default"),
            ("212992", "4194304", true, "5 % of the kernel's default"),
            ("100 200 300", "101 202 303", false, "the kernel's default"),
            ("bbr", "cubic", true, "the kernel's default is cubic"),
        ] {
            assert_eq!(compare_with_default(value, &default(of, exact)), expected);
        }
    }
}
