//! Files for distributions exist, and the service is confined.

use super::{Invariant, InvariantViolation};
use crate::repository::Repository;

pub(super) const INVARIANT: Invariant =
    Invariant { name: "packaging", statement: "licences and a hardened systemd unit exist", check };

const UNIT: &str = "packaging/linerate.service";
const FILES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "packaging/README.md", UNIT];

/// Settings that the unit must have.
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

fn check(repository: &Repository) -> Vec<InvariantViolation> {
    let mut violations: Vec<InvariantViolation> = FILES
        .iter()
        .filter(|path| repository.text(path).is_none())
        .map(|path| InvariantViolation::new(path, 1, "is missing"))
        .collect();
    if let Some(unit) = repository.text(UNIT) {
        for setting in SETTINGS {
            if !unit.lines().any(|line| line.starts_with(setting)) {
                violations.push(InvariantViolation::new(UNIT, 1, format!("lacks {setting}")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::NO_VIOLATIONS;

    fn check_unit(unit: &str) -> Vec<InvariantViolation> {
        check(&Repository::from_files(&[
            ("LICENSE-APACHE", ""),
            ("LICENSE-MIT", ""),
            ("packaging/README.md", ""),
            ("packaging/linerate.service", unit),
        ]))
    }

    #[test]
    fn a_confined_unit_passes() {
        assert_eq!(check_unit(&SETTINGS.join("\n")), NO_VIOLATIONS);
    }

    #[test]
    fn a_removed_setting_is_reported() {
        let violations = check_unit(&SETTINGS.join("\n").replace("ProtectSystem=strict", "# ProtectSystem=strict"));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].message.contains("ProtectSystem"));
    }

    #[test]
    fn missing_files_are_reported() {
        assert_eq!(check(&Repository::from_files(&[])).len(), FILES.len());
    }
}
