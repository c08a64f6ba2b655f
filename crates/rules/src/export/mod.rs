//! A plan in the words of other tools, for whoever configures hosts by them.
//!
//! One file per form, listed in [`FORMATS`]. What a form cannot say stands in it as a comment with the reason, so that
//! nothing of a plan is lost without a word.

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

use linerate_model::change::{Change, Plan};

/// A form of plans.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Where it belongs, and how it is put into effect.
    pub use_it: &'static str,
    /// What says how it is written.
    pub source: &'static str,
    /// What comes before a comment.
    pub comment: &'static str,
    /// Whether it can say this; else why not.
    pub takes: fn(&Change) -> Result<(), &'static str>,
    /// Writes those changes that it takes, of which there is at least one.
    pub write: fn(&[&Change]) -> String,
}

/// All forms, by their names.
pub const FORMATS: &[Format] = &[
    ansible::FORMAT,
    docker::FORMAT,
    kubernetes::FORMAT,
    network_manager::FORMAT,
    nixos::FORMAT,
    sysctl_d::FORMAT,
    systemd_link::FORMAT,
    tuned::FORMAT,
];

/// What an export says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    /// Version of linerate.
    pub linerate_version: String,
    /// When it is written, in words.
    pub date: String,
    /// Where the evidence is; empty when there is none.
    pub evidence: String,
}

/// The form of this name.
#[must_use]
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

impl Format {
    /// The plan in this form.
    #[must_use]
    pub fn export(&self, plan: &Plan, heading: &Heading) -> String {
        let mut text = String::new();
        let mut note = |line: &str| {
            let _ = writeln!(text, "{} {}", self.comment, one_line(line));
        };
        note(&format!("Written by linerate {} on {}: {}.", heading.linerate_version, heading.date, self.title));
        if !heading.evidence.is_empty() {
            note(&format!("Evidence: {}.", heading.evidence));
        }
        note(self.use_it);
        let (taken, left): (Vec<&Change>, Vec<&Change>) =
            plan.changes.iter().partition(|change| (self.takes)(change).is_ok());
        for change in left {
            let reason = (self.takes)(change).err().unwrap_or_default();
            note(&format!("Not in here: {} = {} ({reason}).", change.target, change.to));
        }
        if !taken.is_empty() {
            text.push('\n');
            text.push_str(&(self.write)(&taken));
        }
        text
    }
}

/// Comments end with their line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why, as a comment's text.
fn reason(change: &Change) -> String {
    let text = one_line(&change.reason.text);
    if text.is_empty() { format!("rule {}", one_line(&change.reason.rule)) } else { text }
}

/// Between double quotes, as YAML and Nix have them; `$` has a meaning to Nix.
fn quoted(text: &str) -> String {
    let escaped = one_line(text).replace('\\', "\\\\").replace('"', "\\\"").replace("${", "\\${");
    format!("\"{escaped}\"")
}

/// Between single quotes, as shells have them.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', r"'\''"))
}

/// The changes of each interface, in the order of their first.
fn by_interface<'a>(changes: &[&'a Change]) -> Vec<(&'a str, Vec<&'a Change>)> {
    let mut groups: Vec<(&str, Vec<&Change>)> = Vec::new();
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

    use linerate_model::change::{DeviceAttribute, Group, LinkAttribute, Reason, TakesEffect, Target};
    use linerate_units::WallTime;

    use super::*;

    fn change(target: Target, to: &str) -> Change {
        let reason = Reason { text: "it is\nneeded".into(), ..Reason::default() };
        Change { target, from: None, to: to.into(), group: Group::Device, takes_effect: TakesEffect::Now, reason }
    }

    /// Each kind of target with a value that stands nowhere else.
    fn everything() -> Plan {
        let interface = || "eth7".to_owned();
        let setting = |key: &str, to: &str| change(Target::Setting { key: key.into() }, to);
        let mut changes = vec![
            setting("net.ipv4.tcp_rmem", "4096 131072 67108864"),
            setting("net.core.rmem_max", "67108865"),
            setting("net.ipv4.tcp_congestion_control", "bbr"),
            change(Target::Queueing { interface: interface() }, "qdisc replace dev eth7 root fq maxrate 285mbit"),
            change(Target::Route { destination: "default".into() }, "via 192.0.2.1 congctl htcp"),
            change(Target::File { path: "/sys/class/net/eth7/queues/rx-0/rps_cpus".into() }, "ff0f"),
            change(Target::File { path: "/proc/irq/44/smp_affinity_list".into() }, "3-9"),
            change(Target::Offload { interface: interface(), feature: "rx-gro".into() }, "on"),
            change(Target::Offload { interface: interface(), feature: "rx-odd-feature".into() }, "off"),
        ];
        for (number, attribute) in LinkAttribute::ALL.iter().enumerate() {
            let target = Target::Link { interface: interface(), attribute: *attribute };
            changes.push(change(target, &(7100 + number).to_string()));
        }
        for (number, attribute) in DeviceAttribute::ALL.iter().enumerate() {
            let target = Target::Device { interface: interface(), attribute: *attribute };
            let to = if number < 4 { (8200 + number).to_string() } else { "off".to_owned() };
            changes.push(change(target, &to));
        }
        Plan { made_at: WallTime::from_unix(Duration::ZERO), changes }
    }

    fn heading() -> Heading {
        Heading { linerate_version: "0.1.0".into(), date: "2026-11-22".into(), evidence: "runs 1 and 2".into() }
    }

    #[test]
    fn forms_are_listed_in_order_once_and_documented() {
        assert!(FORMATS.is_sorted_by(|one, other| one.name < other.name));
        for form in FORMATS {
            assert!(
                form.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'.'),
                "{}",
                form.name
            );
            assert!(!form.title.is_empty() && !form.use_it.is_empty() && !form.source.is_empty(), "{}", form.name);
            assert_eq!(format(form.name).expect("found by its name").title, form.title);
        }
        assert!(format("powerpoint").is_none());
    }

    #[test]
    fn nothing_of_a_plan_is_lost_without_a_word() {
        for form in FORMATS {
            let text = form.export(&everything(), &heading());
            let (comments, body): (Vec<&str>, Vec<&str>) =
                text.lines().partition(|line| line.starts_with(form.comment));
            for change in &everything().changes {
                let left_out = comments
                    .iter()
                    .any(|line| line.contains(&format!("Not in here: {} = {} (", change.target, change.to)));
                assert_eq!(left_out, (form.takes)(change).is_err(), "{}: {}", form.name, change.target);
                let value = if change.to.len() > 3 { change.to.as_str() } else { continue };
                let is_said = body.iter().any(|line| line.contains(value));
                assert!(is_said != left_out, "{}: {} in\n{text}", form.name, change.target);
            }
            assert!(
                everything().changes.iter().any(|change| (form.takes)(change).is_ok()),
                "{} says nothing",
                form.name
            );
            assert!(text.starts_with(&format!("{} Written by linerate 0.1.0 on 2026-11-22: ", form.comment)));
            assert!(text.contains("Evidence: runs 1 and 2.") && text.ends_with('\n'));
        }
    }

    #[test]
    fn an_empty_plan_is_a_heading() {
        let plan = Plan { changes: Vec::new(), ..everything() };
        for form in FORMATS {
            let text = form.export(&plan, &Heading::default());
            assert!(text.lines().all(|line| line.starts_with(form.comment)), "{text}");
        }
    }

    #[test]
    fn lines_that_are_known() {
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
                assert!(text.contains(line), "{line:?} is not in the form {name}:\n{text}");
            }
        }
    }

    #[test]
    fn values_cannot_break_out() {
        let setting = Target::Setting { key: "net.ipv4.tcp_congestion_control".into() };
        let plan = Plan { changes: vec![change(setting, "a'\"\n$(reboot)${x}\\")], ..everything() };
        for form in FORMATS {
            let text = form.export(&plan, &heading());
            assert!(text.lines().all(|line| !line.starts_with("$(reboot)")), "{}:\n{text}", form.name);
        }
        assert!(format("docker").expect("listed").export(&plan, &heading()).contains(r"a'\''"));
        assert!(format("nixos").expect("listed").export(&plan, &heading()).contains("\\\" $(reboot)\\${x}\\\\\""));
    }
}
