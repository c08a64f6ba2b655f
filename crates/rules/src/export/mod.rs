//! Export of a plan to the formats of other configuration tools.
//!
//! One file per format, listed in [`FORMATS`]. Changes that a format does not support appear as comments with the
//! reason, so that no change is lost silently.

mod ansible;
mod docker;
mod kubernetes;
mod namespaced;
mod network_manager;
mod nixos;
mod sysctl_d;
mod systemd_link;
mod tuned;

use core::fmt::Write;

use linerate_model::change::{ChangePlan, HostChange};

/// Export format for plans.
#[derive(Clone, Copy, Debug)]
pub struct PlanFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// Short description.
    pub title: &'static str,
    /// Location of the file, and the command that applies it.
    pub use_it: &'static str,
    /// Documentation of the format.
    pub source: &'static str,
    /// Prefix of comments.
    pub comment: &'static str,
    /// Checks if the format supports a change; returns the reason otherwise.
    pub takes: fn(&HostChange) -> Result<(), &'static str>,
    /// Writes the supported changes, of which there is at least one.
    pub write: fn(&[&HostChange]) -> String,
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

/// Metadata at the top of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportHeading {
    /// Version of linerate.
    pub linerate_version: String,
    /// Date of the export, as text.
    pub date: String,
    /// Reference to the evidence; empty without any.
    pub evidence: String,
}

/// Returns the format of this name.
#[must_use]
pub fn format(name: &str) -> Option<&'static PlanFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

impl PlanFormat {
    /// Formats the plan.
    #[must_use]
    pub fn export(&self, plan: &ChangePlan, heading: &ExportHeading) -> String {
        let mut text = String::new();
        let mut note = |line: &str| {
            let _ = writeln!(text, "{} {}", self.comment, one_line(line));
        };
        note(&format!("Written by linerate {} on {}: {}.", heading.linerate_version, heading.date, self.title));
        if !heading.evidence.is_empty() {
            note(&format!("Evidence: {}.", heading.evidence));
        }
        note(self.use_it);
        let (taken, left): (Vec<&HostChange>, Vec<&HostChange>) =
            plan.changes.iter().partition(|change| (self.takes)(change).is_ok());
        for change in left {
            let reason = (self.takes)(change).err().unwrap_or_default();
            note(&format!("Not included: {} = {} ({reason}).", change.target, change.to));
        }
        if !taken.is_empty() {
            text.push('\n');
            text.push_str(&(self.write)(&taken));
        }
        text
    }
}

/// Joins a text to one line, as comments end with their line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the reason of a change as comment text.
fn reason(change: &HostChange) -> String {
    let text = one_line(&change.reason.text);
    if text.is_empty() { format!("rule {}", one_line(&change.reason.rule)) } else { text }
}

/// Quotes with double quotes for YAML and Nix; `${` is escaped for Nix.
fn quoted(text: &str) -> String {
    let escaped = one_line(text).replace('\\', "\\\\").replace('"', "\\\"").replace("${", "\\${");
    format!("\"{escaped}\"")
}

/// Quotes with single quotes for shells.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', r"'\''"))
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

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_model::change::{
        ChangeGroup, ChangeReason, ChangeTarget, DeviceAttribute, EffectTiming, LinkAttribute,
    };
    use linerate_units::WallTime;

    use super::*;

    fn change(target: ChangeTarget, to: &str) -> HostChange {
        let reason = ChangeReason { text: "it is\nneeded".into(), ..ChangeReason::default() };
        HostChange {
            target,
            from: None,
            to: to.into(),
            group: ChangeGroup::Device,
            takes_effect: EffectTiming::Now,
            reason,
        }
    }

    /// Each kind of target with a unique value.
    fn everything() -> ChangePlan {
        let interface = || "eth7".to_owned();
        let setting = |key: &str, to: &str| change(ChangeTarget::Setting { key: key.into() }, to);
        let mut changes = vec![
            setting("net.ipv4.tcp_rmem", "4096 131072 67108864"),
            setting("net.core.rmem_max", "67108865"),
            setting("net.ipv4.tcp_congestion_control", "bbr"),
            change(ChangeTarget::Queueing { interface: interface() }, "qdisc replace dev eth7 root fq maxrate 285mbit"),
            change(ChangeTarget::Route { destination: "default".into() }, "via 192.0.2.1 congctl htcp"),
            change(ChangeTarget::File { path: "/sys/class/net/eth7/queues/rx-0/rps_cpus".into() }, "ff0f"),
            change(ChangeTarget::File { path: "/proc/irq/44/smp_affinity_list".into() }, "3-9"),
            change(ChangeTarget::Offload { interface: interface(), feature: "rx-gro".into() }, "on"),
            change(ChangeTarget::Offload { interface: interface(), feature: "rx-odd-feature".into() }, "off"),
        ];
        for (number, attribute) in LinkAttribute::ALL.iter().enumerate() {
            let target = ChangeTarget::Link { interface: interface(), attribute: *attribute };
            changes.push(change(target, &(7100 + number).to_string()));
        }
        for (number, attribute) in DeviceAttribute::ALL.iter().enumerate() {
            let target = ChangeTarget::Device { interface: interface(), attribute: *attribute };
            let to = if number < 4 { (8200 + number).to_string() } else { "off".to_owned() };
            changes.push(change(target, &to));
        }
        ChangePlan { made_at: WallTime::from_unix(Duration::ZERO), changes }
    }

    fn heading() -> ExportHeading {
        ExportHeading { linerate_version: "0.1.0".into(), date: "2026-11-22".into(), evidence: "runs 1 and 2".into() }
    }

    #[test]
    fn formats_are_listed_in_order_once_and_documented() {
        assert!(FORMATS.is_sorted_by(|one, other| one.name < other.name));
        for form in FORMATS {
            assert!(
                form.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'.'),
                "{}",
                form.name
            );
            assert!(!form.title.is_empty() && !form.use_it.is_empty() && !form.source.is_empty(), "{}", form.name);
            assert_eq!(format(form.name).expect("has this name").title, form.title);
        }
        assert!(format("powerpoint").is_none());
    }

    #[test]
    fn no_change_of_a_plan_is_lost_silently() {
        for form in FORMATS {
            let text = form.export(&everything(), &heading());
            let (comments, body): (Vec<&str>, Vec<&str>) =
                text.lines().partition(|line| line.starts_with(form.comment));
            for change in &everything().changes {
                let left_out = comments
                    .iter()
                    .any(|line| line.contains(&format!("Not included: {} = {} (", change.target, change.to)));
                assert_eq!(left_out, (form.takes)(change).is_err(), "{}: {}", form.name, change.target);
                let value = if change.to.len() > 3 { change.to.as_str() } else { continue };
                let is_included = body.iter().any(|line| line.contains(value));
                assert!(is_included != left_out, "{}: {} in\n{text}", form.name, change.target);
            }
            assert!(
                everything().changes.iter().any(|change| (form.takes)(change).is_ok()),
                "{} supports no change",
                form.name
            );
            assert!(text.starts_with(&format!("{} Written by linerate 0.1.0 on 2026-11-22: ", form.comment)));
            assert!(text.contains("Evidence: runs 1 and 2.") && text.ends_with('\n'));
        }
    }

    #[test]
    fn an_empty_plan_is_a_heading() {
        let plan = ChangePlan { changes: Vec::new(), ..everything() };
        for form in FORMATS {
            let text = form.export(&plan, &ExportHeading::default());
            assert!(text.lines().all(|line| line.starts_with(form.comment)), "{text}");
        }
    }

    #[test]
    fn known_lines_of_each_format() {
        let expected: [(&str, &[&str]); 8] = [
            ("sysctl.d", &["net.ipv4.tcp_rmem = 4096 131072 67108864", "# it is needed"]),
            (
                "ansible",
                &["  - name: net.ipv4.tcp_rmem", "    value: \"4096 131072 67108864\"", "kernel_settings_sysfs:"],
            ),
            ("docker", &["--sysctl 'net.ipv4.tcp_rmem=4096 131072 67108864'"]),
            ("kubernetes", &["    - name: net.ipv4.tcp_rmem", "      value: \"4096 131072 67108864\""]),
            ("nixos", &["  \"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\";", "    MTUBytes = \"7100\";"]),
            ("systemd-link", &["MTUBytes=7100", "RxBufferSize=8200", "GenericReceiveOffload=yes", "OriginalName=eth7"]),
            ("tuned", &["[sysctl]", "ring=rx 8200 tx 8201", "features=rx-gro on rx-odd-feature off", "mtu=7100"]),
            ("network-manager", &["802-3-ethernet.mtu 7100", "ethtool.ring-rx 8200", "ethtool.feature-gro on"]),
        ];
        for (name, lines) in expected {
            let text = format(name).expect("listed").export(&everything(), &heading());
            for line in lines {
                assert!(text.contains(line), "{line:?} is not in the format {name}:\n{text}");
            }
        }
    }

    #[test]
    fn values_cannot_break_out() {
        let setting = ChangeTarget::Setting { key: "net.ipv4.tcp_congestion_control".into() };
        let plan = ChangePlan { changes: vec![change(setting, "a'\"\n$(reboot)${x}\\")], ..everything() };
        for form in FORMATS {
            let text = form.export(&plan, &heading());
            assert!(text.lines().all(|line| !line.starts_with("$(reboot)")), "{}:\n{text}", form.name);
        }
        assert!(format("docker").expect("listed").export(&plan, &heading()).contains(r"a'\''"));
        assert!(format("nixos").expect("listed").export(&plan, &heading()).contains("\\\" $(reboot)\\${x}\\\\\""));
    }
}
