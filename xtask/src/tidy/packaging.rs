//! What a distribution needs is there, and the service is confined.

use super::repository::Repository;
use super::{Invariant, Violation};

pub(super) const INVARIANT: Invariant =
    Invariant { name: "packaging", statement: "licences and a hardened systemd unit are there", check };

const UNIT: &str = "packaging/linerate.service";
const FILES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "packaging/README.md", UNIT];

/// Settings that the unit must have, whatever else it has.
const SETTINGS: [&str; 16] = [
    "DynamicUser=yes",
    "CapabilityBoundingSet=",
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateDevices=yes",
    "PrivateTmp=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectControlGroups=yes",
    "RestrictNamespaces=yes",
    "MemoryDenyWriteExecute=yes",
    "SystemCallFilter=@system-service",
    "RestrictAddressFamilies=",
    "MemoryMax=",
    "LimitNOFILE=",
];

fn check(repository: &Repository) -> Vec<Violation> {
    let mut violations: Vec<Violation> = FILES
        .iter()
        .filter(|path| repository.text(path).is_none())
        .map(|path| Violation::new(path, 1, "is missing"))
        .collect();
    if let Some(unit) = repository.text(UNIT) {
        for setting in SETTINGS {
            if !unit.lines().any(|line| line.starts_with(setting)) {
                violations.push(Violation::new(UNIT, 1, format!("lacks {setting}")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NONE;

    fn check_unit(unit: &str) -> Vec<Violation> {
        check(&Repository::of(&[
            ("LICENSE-APACHE", ""),
            ("LICENSE-MIT", ""),
            ("packaging/README.md", ""),
            ("packaging/linerate.service", unit),
        ]))
    }

    #[test]
    fn a_confined_unit_passes() {
        assert_eq!(check_unit(&SETTINGS.join("\n")), NONE);
    }

    #[test]
    fn a_setting_taken_out_is_named() {
        let violations = check_unit(&SETTINGS.join("\n").replace("ProtectSystem=strict", "# ProtectSystem=strict"));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("ProtectSystem"));
    }

    #[test]
    fn missing_files_are_named() {
        assert_eq!(check(&Repository::of(&[])).len(), FILES.len());
    }
}
