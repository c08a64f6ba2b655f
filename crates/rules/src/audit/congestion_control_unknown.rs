//! Files that choose a congestion control which does not exist.

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::nearest::nearest;
use super::settings_support::{about_lines, all_lines, host_with_files};

const ID: &str = "congestion-control-unknown";
const KEY: &str = "net.ipv4.tcp_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
const CITATION: &str = "net/ipv4/Kconfig of the kernel; net.ipv4.tcp_available_congestion_control";
/// Those of the kernel's sources; which are there as modules is seen only when one is asked for.
const OF_THE_KERNEL: &[&str] = &[
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

pub(super) const RULE: Rule = Rule {
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

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some(available) = host.settings.value(AVAILABLE) else { return Vec::new() };
    let names: Vec<&str> = available.split(' ').chain(OF_THE_KERNEL.iter().copied()).collect();
    let mut findings = Vec::new();
    for line in all_lines(host).iter().filter(|line| line.assignment.key == KEY) {
        let Some(name) = line.value().filter(|name| !names.contains(name)) else { continue };
        let plain = name.trim_start_matches("tcp_");
        // The slides' own slip is two letters away from another name, too.
        let meant = if plain == "hpc" { Some("htcp") } else { nearest(plain, names.iter().copied()) };
        let text = match meant {
            Some(meant) => {
                format!("There is no congestion control {name}, so the line does nothing; {meant} was meant?")
            }
            None => format!("There is no congestion control {name}, so the line does nothing."),
        };
        let mut finding = about_lines(ID, Severity::Warning, KEY, text, &[line]);
        finding.evidence.push(format!("{AVAILABLE} = {available}"));
        CITATION.clone_into(&mut finding.source);
        "another congestion control shares its path differently: measure it first".clone_into(&mut finding.risk);
        finding.remedy.push(match meant {
            Some(meant) => format!("edit {}: {KEY} = {meant}", line.edit_place()),
            None => format!("delete {}", line.edit_place()),
        });
        findings.push(finding);
    }
    findings
}
