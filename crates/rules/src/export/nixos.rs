//! `NixOS` module.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, HostChange};

use super::text::{comment, nix_quoted, reason};
use super::{ExportedFile, HostChanges, PlanFormat, by_interface, sysfs, systemd_link};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "nixos",
    title: "a module for NixOS",
    use_it: "Among the imports of configuration.nix; `nixos-rebuild switch` applies the settings, a reboot the links.",
    source: "NixOS options boot.kernel.sysctl, systemd.network.links and systemd.tmpfiles.rules",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match (&change.target, systemd_link::key(change)) {
        (ChangeTarget::Setting { .. }, _) | (_, Some(_)) => Ok(()),
        _ if sysfs::line(change).is_some() => Ok(()),
        _ => Err("NixOS has no option for it"),
    }
}

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    hosts.iter().map(|host| host.file("linerate.nix", module(&host.changes))).collect()
}

fn module(changes: &[&HostChange]) -> String {
    let mut text = "{\n".to_owned();
    let settings: Vec<_> =
        changes.iter().filter(|change| matches!(change.target, ChangeTarget::Setting { .. })).collect();
    if !settings.is_empty() {
        text.push_str("  boot.kernel.sysctl = {\n");
        for change in settings {
            let (key, to) = (nix_quoted(&change.target.to_string()), nix_quoted(&change.to));
            let _ = writeln!(text, "{}    {key} = {to};", comment(4, &reason(change)));
        }
        text.push_str("  };\n");
    }
    for (interface, changes) in by_interface(changes) {
        let (name, interface) = (nix_quoted(&format!("10-linerate-{interface}")), nix_quoted(interface));
        let _ = writeln!(
            text,
            "  systemd.network.links.{name} = {{\n    matchConfig.OriginalName = {interface};\n    linkConfig = {{"
        );
        let own = changes.iter().filter_map(|change| systemd_link::key(change));
        for (key, value) in
            systemd_link::NAMING_POLICIES.map(|(key, value)| (key, value.to_owned())).into_iter().chain(own)
        {
            let _ = writeln!(text, "      {key} = {};", nix_quoted(&value));
        }
        text.push_str("    };\n  };\n");
    }
    let values = sysfs::lines(changes);
    if !values.is_empty() {
        text.push_str("  systemd.tmpfiles.rules = [\n");
        for value in values {
            let _ = writeln!(text, "    {}", nix_quoted(&value));
        }
        text.push_str("  ];\n");
    }
    text.push_str("}\n");
    text
}
