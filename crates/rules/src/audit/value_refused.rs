//! Lines whose value the kernel refuses, or takes for something else.

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::numbers;

use super::Rule;
use super::settings_support::{about_lines, all_lines, host_with_files};

const ID: &str = "value-refused";
const CITATION: &str = "net/ipv4/sysctl_net_ipv4.c and net/core/sysctl_net_core.c (proc_dointvec_minmax)";
const TRIPLES: &[&str] = &["net.ipv4.tcp_mem", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.udp_mem"];
const MOST: i64 = 2_147_483_647;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A file has a value that the kernel refuses or misunderstands.",
    explanation: "Buffers are signed numbers of 32 bits: 2 GiB (2147483648) is refused. A single number written to \
                  tcp_rmem replaces the first one, what is left under memory pressure, and not the most. And of the \
                  three, the later must not be smaller.",
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

fn check(host: &HostFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in all_lines(host).iter().filter(|line| RULE.keys.contains(&line.assignment.key.as_str())) {
        let (key, value) = (line.assignment.key.as_str(), line.value().unwrap_or_default());
        let Some((text, right)) = complaint(host, key, value) else { continue };
        let mut finding = about_lines(ID, Severity::Warning, key, text, &[line]);
        CITATION.clone_into(&mut finding.source);
        "none known: the line does not do what it says".clone_into(&mut finding.risk);
        finding.remedy.push(match right {
            Some(right) => format!("edit {}: {key} = {right}", line.edit_place()),
            None => format!("delete {}", line.edit_place()),
        });
        findings.push(finding);
    }
    findings
}

/// What is wrong, and the value that was meant where that is clear.
fn complaint(host: &HostFacts, key: &str, value: &str) -> Option<(String, Option<String>)> {
    let triple = TRIPLES.contains(&key);
    let in_pages = key.ends_with("_mem");
    let Some(found) = numbers(value).filter(|found| !found.is_empty()) else {
        return Some((
            format!("{key} = {value}: the kernel takes whole numbers without units and refuses this."),
            None,
        ));
    };
    if !in_pages && found.iter().any(|number| !(0..=MOST).contains(number)) {
        let capped = found.iter().map(|number| (*number).clamp(0, MOST).to_string()).collect::<Vec<_>>().join(" ");
        return Some((format!("{key} = {value}: the kernel refuses more than {MOST} (2 GiB less one)."), Some(capped)));
    }
    if triple && found.len() < 3 {
        let right = host.settings.numbers(key).filter(|now| now.len() == 3 && found.len() == 1 && found[0] >= now[1]);
        let right = right.map(|now| format!("{} {} {}", now[0].min(4096), now[1], found[0]));
        let text =
            format!("{key} = {value} has {} of three numbers: it sets the least buffer, not the most.", found.len());
        return Some((text, right));
    }
    (triple && !found.is_sorted()).then(|| {
        (format!("{key} = {value}: a later number is smaller than one before it, so the limits contradict."), None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedies(line: &str) -> Vec<String> {
        let host = host_with_files(&[("net.ipv4.tcp_rmem", "4096 131072 6291456")], &[("/etc/sysctl.d/a.conf", line)]);
        check(&host).into_iter().flat_map(|finding| finding.remedy).collect()
    }

    #[test]
    fn what_was_meant() {
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
