//! Profile for tuned.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, DeviceAttribute, HostChange, LinkAttribute};

use super::text::one_line;
use super::{ExportedFile, HostChanges, PlanFormat, by_interface, sysfs};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "tuned",
    title: "a profile for tuned",
    use_it: "As /etc/tuned/profiles/linerate/tuned.conf (before tuned 2.23: /etc/tuned/linerate/tuned.conf); \
    `tuned-adm profile linerate` applies it. With include= in [main] it extends another profile.",
    source: "tuned.conf(5), tuned-profiles(7), the plugins net, sysctl and sysfs",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match &change.target {
        _ if change.to.contains("${") => Err("tuned would evaluate its value"),
        ChangeTarget::Setting { .. }
        | ChangeTarget::Offload { .. }
        | ChangeTarget::Device { .. }
        | ChangeTarget::Link { attribute: LinkAttribute::Mtu | LinkAttribute::TransmitQueueLength, .. } => Ok(()),
        ChangeTarget::File { .. } if sysfs::line(change).is_some() => Ok(()),
        _ => Err("tuned has no plugin for it except scripts"),
    }
}

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    let location = "etc/tuned/profiles/linerate/tuned.conf";
    hosts.iter().map(|host| host.file(location, profile(&host.changes))).collect()
}

fn profile(changes: &[&HostChange]) -> String {
    let mut text = "[main]\nsummary=Network settings proposed by linerate for this host\n".to_owned();
    for (section, is_file) in [("sysctl", false), ("sysfs", true)] {
        let of_section = |change: &&&HostChange| match &change.target {
            ChangeTarget::Setting { .. } => !is_file,
            ChangeTarget::File { .. } => is_file,
            _ => false,
        };
        let lines: Vec<_> = changes.iter().filter(of_section).collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "\n[{section}]");
        }
        for change in lines {
            let _ = writeln!(text, "{}={}", one_line(&change.target.to_string()), one_line(&change.to));
        }
    }
    for (interface, changes) in by_interface(changes) {
        let _ = writeln!(text, "\n[net_{interface}]\ntype=net\ndevices={interface}");
        for (option, values) in options(&changes) {
            let _ = writeln!(text, "{option}={}", values.join(" "));
        }
    }
    text
}

/// Returns the options of the plugin `net` with their values; several changes may belong to one option.
fn options(changes: &[&HostChange]) -> Vec<(&'static str, Vec<String>)> {
    let mut options: Vec<(&'static str, Vec<String>)> = Vec::new();
    for change in changes {
        let to = one_line(&change.to);
        let (option, value) = match &change.target {
            ChangeTarget::Link { attribute: LinkAttribute::Mtu, .. } => ("mtu", to),
            ChangeTarget::Link { .. } => ("txqueuelen", to),
            ChangeTarget::Offload { feature, .. } => ("features", format!("{feature} {to}")),
            ChangeTarget::Device { attribute, .. } => device_option(*attribute, &to),
            _ => continue,
        };
        match options.iter_mut().find(|(name, _)| *name == option) {
            Some((_, values)) => values.push(value),
            None => options.push((option, vec![value])),
        }
    }
    options
}

fn device_option(attribute: DeviceAttribute, to: &str) -> (&'static str, String) {
    let (letter, parameter) = attribute.ethtool();
    let option = match letter {
        'G' => "ring",
        'L' => "channels",
        'C' => "coalesce",
        _ => "pause",
    };
    (option, format!("{parameter} {to}"))
}
