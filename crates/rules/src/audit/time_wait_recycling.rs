//! `tcp_tw_recycle`.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Saying, about_lines, all_lines, finding, host, host_with_files};

const ID: &str = "time-wait-recycling";
const KEY: &str = "net.ipv4.tcp_tw_recycle";
const CITATION: &str = "commit 4396e46187ca (removed in 4.12); RFC 6191";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "tcp_tw_recycle is set.",
    explanation: "It forgot closed connections early by comparing timestamps per address, and so refused clients that \
                  share an address behind a translator. It was removed in 4.12. tcp_tw_reuse, which is for outgoing \
                  connections, is harmless.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_with_files(&[], &[("/etc/sysctl.conf", "net.ipv4.tcp_tw_recycle = 1\n")]),
    silent: || host(&[(KEY, "0")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    if host.settings.number(KEY).is_some_and(|value| value != 0) {
        let saying = Saying {
            rule: ID,
            severity: Severity::Critical,
            text: "Clients that share an address behind a translator are refused at random (tcp_tw_recycle = 1)."
                .to_owned(),
            to: Some("0".to_owned()),
            group: Group::Features,
            source: CITATION,
            risk: "more closed connections are remembered: some kilobytes",
        };
        return vec![finding(host, KEY, saying)];
    }
    let lines = all_lines(host);
    let lines = lines.iter().filter(|line| line.assignment.key == KEY && line.value() != Some("0"));
    let of_line = |line| {
        let text =
            format!("{KEY} was removed in 4.12, as it refused clients behind a translator: the line does nothing.");
        let mut finding = about_lines(ID, Severity::Note, KEY, text, &[line]);
        CITATION.clone_into(&mut finding.source);
        "none: nothing changes".clone_into(&mut finding.risk);
        finding.remedy.push(format!("delete {}", line.edit_place()));
        finding
    };
    lines.map(of_line).collect()
}
