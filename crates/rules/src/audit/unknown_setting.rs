//! Settings that the kernel does not have.

use std::collections::BTreeSet;

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::catalogue::{self, CATALOGUE};
use linerate_model::host::settings::SettingSource;

use super::AuditRule;
use super::nearest::nearest;
use super::settings_support::{all_lines, delete_line, edit_line, host_with_files, is_advisable, line_evidence};

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
    // In other namespaces the settings of the whole host are missing, too: there only misspelt separators are certain.
    let initial = host.privileges.initial_network_namespace.known() == Some(&true);
    let Some(names) = host.settings.names.known() else { return Vec::new() };
    let known = |key: &str| names.contains(key) || host.settings.value(key).is_some();
    let lines = all_lines(host).into_iter().filter(|line| line.file.is_some() && is_checked(&line.assignment.key));
    let lines = lines.filter(|line| initial || has_wrong_separators(&line.assignment.key, names));
    lines.filter(|line| !known(&line.assignment.key)).filter_map(|line| line_finding(host, &line)).collect()
}

/// True for a name with the letters of an existing one, but other dots or underscores.
fn has_wrong_separators(key: &str, names: &BTreeSet<String>) -> bool {
    let letters = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let own = letters(key);
    catalogue::find(key).is_none() && names.iter().any(|name| letters(name) == own)
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
    let finding = |severity, text, remedy| AuditFinding {
        notes: Vec::new(),
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
            .then(|| finding(FindingSeverity::Note, text, delete_line(host, line)));
    }
    if key == "net.ipv4.tcp_tw_recycle" {
        return None;
    }
    if REMOVED_SETTINGS.contains(&key.as_str()) {
        let text = format!("{key} was removed from the kernel: the line has no effect.");
        return Some(finding(FindingSeverity::Note, text, delete_line(host, line)));
    }
    let names = host.settings.names.known()?.iter().map(String::as_str).chain(CATALOGUE.iter().map(|knob| knob.key));
    Some(match nearest(key, names) {
        Some(meant) => finding(
            FindingSeverity::Warning,
            format!("{key} does not exist, so the line has no effect (did you mean {meant}?)."),
            if is_advisable(host, meant, line.value().unwrap_or_default()) {
                edit_line(host, line, meant, line.value().unwrap_or_default())
            } else {
                format!("{} (with the correct name the line would do harm)", delete_line(host, line))
            },
        ),
        None => finding(
            FindingSeverity::Warning,
            format!("{key} does not exist in this kernel ({release}), so the line has no effect."),
            delete_line(host, line),
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
            ("net.ipv4.rmem_max = 4194304", "net.core.rmem_max = 4194304"),
            ("net/ipv4/tcp-rmem = 4096 131072 8388608", "net.ipv4.tcp_rmem = 4096 131072 8388608"),
            ("tcp_rmem = 4096 131072 8388608", "net.ipv4.tcp_rmem = 4096 131072 8388608"),
            ("net.core.rmemmax = 4194304", "net.core.rmem_max = 4194304"),
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
    fn misspelt_separators_are_certain_in_every_namespace() {
        let text = "net.ipv4.tcp.sack = 0\nnet.core.netdev_max_backlogs = 1\n";
        let mut host = host_with_files(&[], &[("/etc/sysctl.d/a.conf", text)]);
        assert_eq!(check(&host).len(), 2);
        host.privileges.initial_network_namespace = linerate_model::fact::Fact::Known(false);
        let found = check(&host);
        assert_eq!((found.len(), found[0].subject.as_str()), (1, "net.ipv4.tcp.sack"));
    }

    #[test]
    fn removed_and_unknown_names() {
        assert_eq!(found("net.ipv4.tcp_abc = 1")[0].severity, FindingSeverity::Note);
        assert!(found("net.ipv4.quite_something_else = 1")[0].text.contains("does not exist in this kernel"));
        assert_eq!(found("net.ipv4.netfilter.x = 1\nnet.bridge.y = 1\nvm.swappiness = 1\n"), []);
    }
}
