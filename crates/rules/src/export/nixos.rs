//! `NixOS` module.

use core::fmt::Write;

use linerate_model::change::{ChangeTarget, HostChange};

use super::{PlanFormat, by_interface, quoted, reason, systemd_link};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "nixos",
    title: "a module for NixOS",
    use_it: "Among the imports of configuration.nix; `nixos-rebuild switch` applies the settings, a reboot the links.",
    source: "NixOS options boot.kernel.sysctl and systemd.network.links",
    comment: "#",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match (&change.target, systemd_link::key(change)) {
        (ChangeTarget::Setting { .. }, _) | (_, Some(_)) => Ok(()),
        _ => Err("NixOS has no option for it"),
    }
}

fn write(changes: &[&HostChange]) -> String {
    let mut text = "{\n".to_owned();
    let settings: Vec<_> =
        changes.iter().filter(|change| matches!(change.target, ChangeTarget::Setting { .. })).collect();
    if !settings.is_empty() {
        text.push_str("  boot.kernel.sysctl = {\n");
        for change in settings {
            let (key, to) = (quoted(&change.target.to_string()), quoted(&change.to));
            let _ = writeln!(text, "    # {}\n    {key} = {to};", reason(change));
        }
        text.push_str("  };\n");
    }
    for (interface, changes) in by_interface(changes) {
        let (name, interface) = (quoted(&format!("10-linerate-{interface}")), quoted(interface));
        let _ = writeln!(
            text,
            "  systemd.network.links.{name} = {{\n    matchConfig.OriginalName = {interface};\n    linkConfig = {{"
        );
        let own = changes.iter().filter_map(|change| systemd_link::key(change));
        for (key, value) in
            systemd_link::NAMING_POLICIES.map(|(key, value)| (key, value.to_owned())).into_iter().chain(own)
        {
            let _ = writeln!(text, "      {key} = {};", quoted(&value));
        }
        text.push_str("    };\n  };\n");
    }
    text.push_str("}\n");
    text
}
