//! A profile of tuned.

use core::fmt::Write;

use linerate_model::change::{Change, DeviceAttribute, LinkAttribute, Target};

use super::{Format, by_interface, one_line};

pub(super) const FORMAT: Format = Format {
    name: "tuned",
    title: "a profile for tuned",
    use_it: "As /etc/tuned/profiles/linerate/tuned.conf (before tuned 2.23: /etc/tuned/linerate/tuned.conf); `tuned-adm profile \
             linerate` puts it into effect. With include= in [main] it goes on top of another profile.",
    source: "tuned.conf(5), tuned-profiles(7), the plugins net, sysctl and sysfs",
    comment: "#",
    takes,
    write,
};

fn takes(change: &Change) -> Result<(), &'static str> {
    match &change.target {
        Target::Setting { .. }
        | Target::Offload { .. }
        | Target::Device { .. }
        | Target::Link { attribute: LinkAttribute::Mtu | LinkAttribute::TransmitQueueLength, .. } => Ok(()),
        Target::File { path } if path.starts_with("/sys/") => Ok(()),
        _ => Err("tuned has no plugin for it but scripts"),
    }
}

fn write(changes: &[&Change]) -> String {
    let mut text = "[main]\nsummary=What linerate found to be worth it on this host\n".to_owned();
    for (section, is_file) in [("sysctl", false), ("sysfs", true)] {
        let of_section = |change: &&&Change| match &change.target {
            Target::Setting { .. } => !is_file,
            Target::File { .. } => is_file,
            _ => false,
        };
        let lines: Vec<_> = changes.iter().filter(of_section).collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "\n[{section}]");
        }
        for change in lines {
            let _ = writeln!(text, "{}={}", change.target, one_line(&change.to));
        }
    }
    for (interface, changes) in by_interface(changes) {
        let _ = writeln!(text, "\n[net_{interface}]\ntype=net\ndevices={interface}");
        for (option, words) in options(&changes) {
            let _ = writeln!(text, "{option}={}", words.join(" "));
        }
    }
    text
}

/// The options of the plugin `net` with their words; several changes may belong to one.
fn options(changes: &[&Change]) -> Vec<(&'static str, Vec<String>)> {
    let mut options: Vec<(&'static str, Vec<String>)> = Vec::new();
    for change in changes {
        let to = one_line(&change.to);
        let (option, word) = match &change.target {
            Target::Link { attribute: LinkAttribute::Mtu, .. } => ("mtu", to),
            Target::Link { .. } => ("txqueuelen", to),
            Target::Offload { feature, .. } => ("features", format!("{feature} {to}")),
            Target::Device { attribute, .. } => device(*attribute, &to),
            _ => continue,
        };
        match options.iter_mut().find(|(name, _)| *name == option) {
            Some((_, words)) => words.push(word),
            None => options.push((option, vec![word])),
        }
    }
    options
}

fn device(attribute: DeviceAttribute, to: &str) -> (&'static str, String) {
    let (letter, word) = attribute.ethtool();
    let option = match letter {
        'G' => "ring",
        'L' => "channels",
        'C' => "coalesce",
        _ => "pause",
    };
    (option, format!("{word} {to}"))
}
