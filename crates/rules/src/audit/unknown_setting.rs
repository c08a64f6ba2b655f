//! Settings that the kernel does not have.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::catalogue::{self, CATALOGUE};
use linerate_model::host::settings::SettingSource;

use super::AuditRule;
use super::nearest::nearest;
use super::settings_support::{all_lines, host_with_files, is_harmful, line_evidence};

const ID: &str = "unknown-setting";
const CITATION: &str = "the names below /proc/sys/net of the running kernel; sysctl.d(5)";

/// Names of removed settings.
const REMOVED_SETTINGS: &[&str] = &[
    "net.ipv4.tcp_abc",
    "net.ipv4.tcp_cookie_size",
    "net.ipv4.tcp_dma_copybreak",
    "net.ipv4.tcp_frto_response",
    "net.ipv4.tcp_max_ssthresh",
    "net.ipv4.tcp_thin_dupack",
    "net.ipv4.tcp_tw_recycle",
];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A file sets something that the kernel does not have.",
    explanation: "At boot a wrong name only causes one line in the journal: `net.ipv4.tcp.sack` of old slides \
    has a dot where the underscore belongs, `net.ipv4.rmem_max` is in net.core, and removed settings \
    stay in files for years.\n\nSettings of modules that are not loaded yet are not checked, nor \
    those of interfaces.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host_with_files(&[], &[("/etc/sysctl.d/10-slides.conf", "# 10G\nnet.ipv4.tcp.sack = 0\n")]),
    silent: || {
        host_with_files(
            &[],
            &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_sack = 1\nnet.ipv4.conf.all.rp_filter = 1\nkernel.panic = 5\n")],
        )
    },
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    // In other namespaces the settings of the whole host are missing, too.
    if host.privileges.initial_network_namespace.known() != Some(&true) {
        return Vec::new();
    }
    let Some(names) = host.settings.names.known() else { return Vec::new() };
    let known = |key: &str| names.contains(key) || host.settings.value(key).is_some();
    let lines = all_lines(host).into_iter().filter(|line| line.file.is_some() && is_checked(&line.assignment.key));
    lines.filter(|line| !known(&line.assignment.key)).filter_map(|line| line_finding(host, &line)).collect()
}

/// True for names whose kernel part is always loaded: `net.core`, `net.ipv4`, and names without that prefix.
fn is_checked(key: &str) -> bool {
    let components: Vec<&str> = key.split('.').collect();
    match components.as_slice() {
        ["net", "core", ..] => true,
        ["net", "ipv4", second, ..] => {
            !matches!(*second, "conf" | "neigh" | "netfilter" | "vs" | "route" | "xfrm4_gc_thresh")
        }
        [first, ..] => first.starts_with("tcp_") || matches!(*first, "ipv4" | "rmem_max" | "wmem_max"),
        [] => false,
    }
}

fn line_finding(host: &HostFacts, line: &SettingSource) -> Option<AuditFinding> {
    let key = &line.assignment.key;
    let place = line.edit_location();
    let finding = |severity, text, remedy| AuditFinding {
        rule: ID.to_owned(),
        severity,
        subject: key.clone(),
        text,
        evidence: vec![line_evidence(line)],
        source: CITATION.to_owned(),
        risk: "none known: the line has no effect now".to_owned(),
        remedy: vec![remedy],
        change: None,
    };
    let release = host.kernel.release.known().map_or("", String::as_str);
    if catalogue::find(key).is_some() && !REMOVED_SETTINGS.contains(&key.as_str()) {
        // Reported by the rule for dead settings, or belongs to another kernel version.
        let text = format!("{key} is unknown to this kernel ({release}): the line has no effect.");
        return (!super::dead_setting::is_dead(host, key))
            .then(|| finding(FindingSeverity::Note, text, format!("delete {place}")));
    }
    if key == "net.ipv4.tcp_tw_recycle" {
        return None;
    }
    if REMOVED_SETTINGS.contains(&key.as_str()) {
        let text = format!("{key} was removed from the kernel: the line has no effect.");
        return Some(finding(FindingSeverity::Note, text, format!("delete {place}")));
    }
    let names = host.settings.names.known()?.iter().map(String::as_str).chain(CATALOGUE.iter().map(|knob| knob.key));
    Some(match nearest(key, names) {
        Some(meant) => finding(
            FindingSeverity::Warning,
            format!("{key} does not exist, so the line has no effect (did you mean {meant}?)."),
            if is_harmful(meant, line.value().unwrap_or_default()) {
                format!("delete {place} (with the correct name the line would do harm)")
            } else {
                format!("edit {place}: {meant} = {}", line.value().unwrap_or_default())
            },
        ),
        None => finding(
            FindingSeverity::Warning,
            format!("{key} does not exist in this kernel ({release}), so the line has no effect."),
            format!("delete {place}"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<AuditFinding> {
        check(&host_with_files(&[], &[("/etc/sysctl.d/a.conf", text)]))
    }

    #[test]
    fn misspelt_names_are_corrected() {
        for (line, meant) in [
            ("net.ipv4.tcp.sack = 1", "net.ipv4.tcp_sack = 1"),
            ("net.ipv4.rmem_max = 5", "net.core.rmem_max = 5"),
            ("net/ipv4/tcp-rmem = 1 2 3", "net.ipv4.tcp_rmem = 1 2 3"),
            ("tcp_rmem = 1 2 3", "net.ipv4.tcp_rmem = 1 2 3"),
            ("net.core.rmemmax = 4", "net.core.rmem_max = 4"),
        ] {
            let found = found(line);
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!(found[0].remedy, [format!("edit /etc/sysctl.d/a.conf:1: {meant}")], "{line}");
        }
    }

    #[test]
    fn a_harmful_misspelt_line_is_not_corrected() {
        let found = found("net.ipv4.tcp.sack = 0");
        assert!(found[0].remedy[0].starts_with("delete /etc/sysctl.d/a.conf:1"), "{found:?}");
    }

    #[test]
    fn removed_and_unknown_names() {
        assert_eq!(found("net.ipv4.tcp_abc = 1")[0].severity, FindingSeverity::Note);
        assert!(found("net.ipv4.quite_something_else = 1")[0].text.contains("does not exist in this kernel"));
        assert_eq!(found("net.ipv4.netfilter.x = 1\nnet.bridge.y = 1\nvm.swappiness = 1\n"), []);
    }
}
