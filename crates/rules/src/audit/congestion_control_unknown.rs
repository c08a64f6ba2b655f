//! Files that choose a congestion control which does not exist.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::nearest::nearest;
use super::settings_support::{about_lines, all_lines, delete_line, edit_line, host_with_files};
use crate::advisable::KERNEL_CONGESTION_CONTROLS;

const ID: &str = "congestion-control-unknown";
const KEY: &str = "net.ipv4.tcp_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
const CITATION: &str = "net/ipv4/Kconfig of the kernel; net.ipv4.tcp_available_congestion_control";
pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A file chooses a congestion control that the kernel does not have.",
    explanation: "The kernel refuses the line, and the default stays. Slides of 2010 recommend `tcp_hpc`, which is \
                  H-TCP misspelt: its module is tcp_htcp, its name htcp.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || {
        host_with_files(
            &[(AVAILABLE, "reno cubic"), (KEY, "cubic")],
            &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_congestion_control = tcp_hpc\n")],
        )
    },
    silent: || {
        host_with_files(
            &[(AVAILABLE, "reno cubic"), (KEY, "cubic")],
            &[("/etc/sysctl.d/a.conf", "net.ipv4.tcp_congestion_control = bbr\n")],
        )
    },
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(available) = host.settings.value(AVAILABLE) else { return Vec::new() };
    let names: Vec<&str> = available.split(' ').chain(KERNEL_CONGESTION_CONTROLS.iter().copied()).collect();
    let mut findings = Vec::new();
    for line in all_lines(host).iter().filter(|line| line.assignment.key == KEY) {
        let Some(name) = line.value().filter(|name| !names.contains(name)) else { continue };
        let plain = name.trim_start_matches("tcp_");
        // The misspelling of the slides is two letters away from another name, too.
        let meant = if plain == "hpc" { Some("htcp") } else { nearest(plain, names.iter().copied()) };
        let text = match meant {
            Some(meant) => {
                format!("unknown congestion control '{name}': the line has no effect (did you mean '{meant}'?).")
            }
            None => format!("unknown congestion control '{name}': the line has no effect."),
        };
        let mut finding = about_lines(ID, FindingSeverity::Warning, KEY, text, &[line]);
        finding.evidence.push(format!("{AVAILABLE} = {available}"));
        CITATION.clone_into(&mut finding.source);
        "another congestion control shares the path differently: measure it first".clone_into(&mut finding.risk);
        finding.remedy.push(match meant {
            Some(meant) => edit_line(host, line, KEY, meant),
            None => delete_line(host, line),
        });
        findings.push(finding);
    }
    findings
}
