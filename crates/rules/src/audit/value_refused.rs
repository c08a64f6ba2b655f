//! Lines whose value the kernel refuses or misinterprets.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::numbers;

use super::AuditRule;
use super::settings_support::{about_lines, all_lines, delete_line, edit_line, host_with_files};
use crate::advisable::{MAX_BUFFER_BYTES, TRIPLES};

const ID: &str = "value-refused";
const CITATION: &str = "net/ipv4/sysctl_net_ipv4.c and net/core/sysctl_net_core.c (proc_dointvec_minmax)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A file has a value that the kernel refuses or misinterprets.",
    explanation: "Buffer sizes are signed 32-bit numbers: 2 GiB (2147483648) is refused. A single number written to \
    tcp_rmem replaces the first one, the minimum under memory pressure, and not the maximum. The three \
    numbers must not decrease.",
    citation: CITATION,
    keys: &[
        "net.core.rmem_default",
        "net.core.rmem_max",
        "net.core.wmem_default",
        "net.core.wmem_max",
        "net.ipv4.tcp_limit_output_bytes",
        "net.ipv4.tcp_mem",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.udp_mem",
    ],
    check,
    fires: || host_with_files(&[], &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_rmem = 16777216\n")]),
    silent: || host_with_files(&[], &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_rmem = 4096 131072 2147483647\n")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let mut findings = Vec::new();
    for line in all_lines(host).iter().filter(|line| RULE.keys.contains(&line.assignment.key.as_str())) {
        let (key, value) = (line.assignment.key.as_str(), line.value().unwrap_or_default());
        let Some((text, right)) = describe_error(host, key, value) else { continue };
        let mut finding = about_lines(ID, FindingSeverity::Warning, key, text, &[line]);
        CITATION.clone_into(&mut finding.source);
        "none known: the line does not have the intended effect".clone_into(&mut finding.risk);
        finding.remedy.push(match right {
            Some(right) => edit_line(host, line, key, &right),
            None => delete_line(host, line),
        });
        findings.push(finding);
    }
    findings
}

/// Describes the error, with the intended value where that is clear.
fn describe_error(host: &HostFacts, key: &str, value: &str) -> Option<(String, Option<String>)> {
    let triple = TRIPLES.contains(&key);
    let in_pages = key.ends_with("_mem");
    let Some(found) = numbers(value).filter(|found| !found.is_empty()) else {
        return Some((
            format!("{key} = {value}: the kernel takes whole numbers without units and refuses this."),
            None,
        ));
    };
    if !in_pages && found.iter().any(|number| !(0..=MAX_BUFFER_BYTES).contains(number)) {
        let capped =
            found.iter().map(|number| (*number).clamp(0, MAX_BUFFER_BYTES).to_string()).collect::<Vec<_>>().join(" ");
        return Some((
            format!("{key} = {value}: the kernel refuses more than {MAX_BUFFER_BYTES} (2 GiB less one)."),
            Some(capped),
        ));
    }
    if triple && found.len() < 3 {
        let right = host.settings.numbers(key).filter(|now| now.len() == 3 && found.len() == 1 && found[0] >= now[1]);
        let right = right.map(|now| format!("{} {} {}", now[0].min(4096), now[1], found[0]));
        let text =
            format!("{key} = {value} has {} of three numbers: it sets the minimum, not the maximum.", found.len());
        return Some((text, right));
    }
    (triple && !found.is_sorted())
        .then(|| (format!("{key} = {value}: the numbers decrease, so the limits contradict each other."), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedies(line: &str) -> Vec<String> {
        let host = host_with_files(&[("net.ipv4.tcp_rmem", "4096 131072 6291456")], &[("/etc/sysctl.d/a.conf", line)]);
        check(&host).into_iter().flat_map(|finding| finding.remedy).collect()
    }

    #[test]
    fn values_are_corrected() {
        assert_eq!(
            remedies("net.ipv4.tcp_rmem = 16777216"),
            ["edit /etc/sysctl.d/a.conf:1: net.ipv4.tcp_rmem = 4096 131072 16777216"]
        );
        assert_eq!(
            remedies("net.core.rmem_max = 2147483648"),
            ["edit /etc/sysctl.d/a.conf:1: net.core.rmem_max = 2147483647"]
        );
        assert_eq!(remedies("net.core.rmem_max = 16M"), ["delete /etc/sysctl.d/a.conf:1"]);
        assert_eq!(remedies("net.ipv4.tcp_wmem = 4096 16777216 4194304").len(), 1);
        assert_eq!(remedies("net.ipv4.tcp_mem = 190000 255000 3800000000"), Vec::<String>::new());
    }
}
