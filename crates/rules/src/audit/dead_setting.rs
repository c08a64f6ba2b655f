//! Settings that no longer have an effect.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::kernel::KernelVersion;

use super::AuditRule;
use super::settings_support::{all_lines, delete_line, host_with_files, line_evidence};

const ID: &str = "dead-setting";
const CITATION: &str = "Documentation/networking/ip-sysctl.rst (legacy options); commit dfa2f0483360 for \
                        tcp_adv_win_scale";

struct DeadSetting {
    key: &'static str,
    since: KernelVersion,
    instead: &'static str,
}

const fn dead(key: &'static str, major: u32, minor: u32, instead: &'static str) -> DeadSetting {
    DeadSetting { key, since: KernelVersion::new(major, minor), instead }
}

const DEAD_SETTINGS: &[DeadSetting] = &[
    dead("net.ipv4.ipfrag_low_thresh", 4, 17, "fragments are dropped above ipfrag_high_thresh alone"),
    dead("net.ipv4.route.max_size", 3, 6, "IPv4 has no route cache any more"),
    dead(
        "net.ipv4.tcp_adv_win_scale",
        6,
        6,
        "each connection measures how much of its buffer is payload; raise the third number of tcp_rmem instead",
    ),
    dead("net.ipv4.tcp_fack", 4, 15, "RACK replaces it"),
    dead("net.ipv4.tcp_low_latency", 4, 14, "the queue that it switched off was removed"),
    dead("net.ipv4.udp_wmem_min", 2, 6, "the kernel does not read it"),
];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A file sets something that has no effect in this kernel.",
    explanation: "The kernel keeps some names so that old scripts do not fail. Such a line is harmless, but \
    misleading.",
    citation: CITATION,
    keys: &[
        "net.ipv4.ipfrag_low_thresh",
        "net.ipv4.route.max_size",
        "net.ipv4.tcp_adv_win_scale",
        "net.ipv4.tcp_fack",
        "net.ipv4.tcp_low_latency",
        "net.ipv4.udp_wmem_min",
    ],
    check,
    fires: || host_with_files(&[], &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_low_latency = 1\n")]),
    silent: || host_with_files(&[], &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_sack = 1\n")]),
};

/// Reason why a setting has no effect in a kernel; `None` if it has one, or the version is unknown.
pub(crate) fn dead_setting_reason(version: Option<KernelVersion>, key: &str) -> Option<String> {
    let dead =
        DEAD_SETTINGS.iter().find(|dead| dead.key == key && version.is_some_and(|version| version >= dead.since))?;
    Some(format!("it has no effect since {}: {}", dead.since, dead.instead))
}

/// True when a setting has no effect in this host's kernel.
pub(super) fn is_dead(host: &HostFacts, key: &str) -> bool {
    let version = host.kernel.version();
    DEAD_SETTINGS.iter().any(|dead| dead.key == key && version.is_some_and(|version| version >= dead.since))
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(version) = host.kernel.version() else { return Vec::new() };
    let mut findings = Vec::new();
    for line in all_lines(host) {
        let dead = DEAD_SETTINGS.iter().find(|dead| dead.key == line.assignment.key && version >= dead.since);
        let Some(dead) = dead else { continue };
        findings.push(AuditFinding {
            notes: Vec::new(),
            rule: ID.to_owned(),
            severity: FindingSeverity::Note,
            subject: dead.key.to_owned(),
            text: format!("{} has no effect since {}: {}.", dead.key, dead.since, dead.instead),
            evidence: vec![line_evidence(&line)],
            source: CITATION.to_owned(),
            risk: "none: nothing changes".to_owned(),
            remedy: vec![delete_line(host, &line)],
            change: None,
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::Fact;

    use super::*;

    #[test]
    fn the_version_decides() {
        let mut host = host_with_files(&[], &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_adv_win_scale = 2\n")]);
        assert_eq!(check(&host).len(), 1);
        host.kernel.release = Fact::Known("6.1.0-18-amd64".to_owned());
        assert_eq!(check(&host), []);
        assert!(DEAD_SETTINGS.is_sorted_by_key(|dead| dead.key));
        assert!(DEAD_SETTINGS.iter().map(|dead| dead.key).eq(RULE.keys.iter().copied()));
    }
}
