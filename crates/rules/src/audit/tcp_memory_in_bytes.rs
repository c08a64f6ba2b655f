//! `tcp_mem` values in bytes instead of pages.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;
use linerate_model::host::settings::numbers;

use super::AuditRule;
use super::settings_support::{
    SettingFindingDraft, all_lines, delete_line, finding, host, host_with_files, line_evidence,
};
use crate::advisable::in_bytes;

const CITATION: &str = "Documentation/networking/ip-sysctl.rst (tcp_mem: in pages); net/ipv4/tcp.c (tcp_init_mem)";

const ID: &str = "tcp-memory-in-bytes";
const KEYS: &[&str] = &["net.ipv4.tcp_mem", "net.ipv4.udp_mem"];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "tcp_mem or udp_mem was written in bytes; its unit is pages.",
    explanation: "tcp_rmem and tcp_wmem count bytes of one connection, tcp_mem counts pages (of 4096 bytes, mostly) \
                  of all connections together. Slides and guides copy the same three numbers into all of them: `4096 \
                  87380 16777216` then means that pressure begins at 341 MiB, and that the limit of 64 GiB is never \
                  reached.",
    citation: CITATION,
    keys: KEYS,
    check,
    fires: || host(&[("net.ipv4.tcp_mem", "4096 87380 16777216")]),
    silent: || {
        host_with_files(
            &[("net.ipv4.tcp_mem", "190000 255000 380000")],
            &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_mem = 190000 255000 380000\n")],
        )
    },
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    KEYS.iter().filter_map(|key| key_finding(host, key)).collect()
}

fn key_finding(host: &HostFacts, key: &'static str) -> Option<AuditFinding> {
    let lines: Vec<_> = all_lines(host)
        .into_iter()
        .filter(|line| {
            line.assignment.key == key && line.value().is_some_and(|value| describe_pages(host, value).is_some())
        })
        .collect();
    let running = host.settings.value(key).filter(|value| describe_pages(host, value).is_some());
    let value = running.or_else(|| lines.first().and_then(|line| line.value()))?;
    let default = host.kernel.version().and_then(|version| default_of(key, version, &host.memory));
    let draft = SettingFindingDraft {
        rule: ID,
        severity: FindingSeverity::Warning,
        text: format!("{key} = {value} is written in bytes, but counts pages: {}.", describe_pages(host, value)?),
        to: default.as_ref().map(|default| default.value.clone()),
        group: ChangeGroup::Buffers,
        source: CITATION,
        risk: "none known: the proposed numbers are what the kernel computes from this host's memory",
    };
    let mut finding = finding(host, key, draft);
    finding.evidence.extend(lines.iter().map(line_evidence));
    if finding.remedy.is_empty() {
        finding.remedy.extend(lines.iter().map(|line| delete_line(host, line)));
    }
    if finding.remedy.is_empty() {
        finding
            .remedy
            .push(format!("restart the host: no file sets {key}, and the kernel computes it from the memory"));
    }
    Some(finding)
}

/// Describes three such numbers as pages, if the result is implausible.
fn describe_pages(host: &HostFacts, value: &str) -> Option<String> {
    in_bytes(&host.memory, &numbers(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_in_a_file_that_is_not_in_effect() {
        let host = host_with_files(
            &[("net.ipv4.tcp_mem", "190000 255000 380000")],
            &[("/etc/sysctl.d/10-slides.conf", "net.ipv4.tcp_mem = 4096 87380 16777216\n")],
        );
        let found = check(&host);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].remedy.iter().any(|line| line.starts_with("edit /etc/sysctl.d/10-slides.conf:1")),
            "{found:?}"
        );
    }
}
