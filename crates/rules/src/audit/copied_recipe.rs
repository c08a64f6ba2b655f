//! Blocks of settings that are copied from guide to guide.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::SettingSource;

use super::AuditRule;
use super::settings_support::{about_lines, all_lines, evidence, host, host_with_files};

const ID: &str = "copied-recipe";
const CITATION: &str = "Documentation/networking/device_drivers/ethernet/intel/ixgb.rst of older kernels; \
                        docs/seeds.md";

/// Known recipe, recognised by its values.
struct KnownRecipe {
    lines: &'static [(&'static str, &'static str)],
    /// Number of matching lines that identify it.
    enough: usize,
    text: &'static str,
}

const RECIPES: &[KnownRecipe] = &[
    KnownRecipe {
        lines: &[
            ("net.core.netdev_max_backlog", "300000"),
            ("net.core.optmem_max", "524287"),
            ("net.core.rmem_default", "524287"),
            ("net.core.rmem_max", "524287"),
            ("net.core.wmem_default", "524287"),
            ("net.core.wmem_max", "524287"),
            ("net.ipv4.tcp_mem", "10000000 10000000 10000000"),
            ("net.ipv4.tcp_rmem", "10000000 10000000 10000000"),
            ("net.ipv4.tcp_wmem", "10000000 10000000 10000000"),
        ],
        enough: 2,
        text: "These lines are the recipe of Intel's ixgb driver (a PCI-X card of 2004), copied from guide to guide. \
               It switches SACK and timestamps off (26 to 44 times slower where a queue overflows), limits what \
               programs may request to 512 KiB, and queues up to 300000 packets.",
    },
    KnownRecipe {
        lines: &[
            ("net.ipv4.tcp_rmem", "4096 262144 21367520"),
            ("net.ipv4.tcp_wmem", "4096 24576 21367520"),
            ("net.ipv4.tcp_wmem", "4096 262144 21367520"),
        ],
        enough: 1,
        text: "These are the example numbers of a guide for 10 Gbit/s over 117 ms, in which the rate was divided by \
               the time instead of multiplied: 1.25 GB/s x 0.117 s = 146 250 000 bytes, not 10 683 760. On the path \
               of that guide they allow 999 Mbit/s of 10 Gbit/s, measured in the lab.",
    },
];

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Settings were copied from a known recipe that does not fit.",
    explanation: "A value that was right for one card, one kernel or one path of 2004 is copied without its \
    reason. The buffers that a path needs follow from its rate and its round trip: linerate calc bdp \
    computes them.",
    citation: CITATION,
    keys: &[
        "net.core.netdev_max_backlog",
        "net.core.optmem_max",
        "net.core.rmem_default",
        "net.core.rmem_max",
        "net.core.wmem_default",
        "net.core.wmem_max",
        "net.ipv4.tcp_mem",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ],
    check,
    fires: || {
        host_with_files(
            &[],
            &[("/etc/sysctl.d/10.conf", "net.core.rmem_max = 524287\nnet.core.netdev_max_backlog = 300000\n")],
        )
    },
    silent: || host(&[("net.core.rmem_max", "524288"), ("net.core.netdev_max_backlog", "300000")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let lines = all_lines(host);
    RECIPES.iter().filter_map(|recipe| recipe_finding(host, &lines, recipe)).collect()
}

fn recipe_finding(host: &HostFacts, lines: &[SettingSource], recipe: &KnownRecipe) -> Option<AuditFinding> {
    let is_part = |key: &str, value: &str| recipe.lines.contains(&(key, value));
    let written: Vec<&SettingSource> =
        lines.iter().filter(|line| is_part(&line.assignment.key, line.value().unwrap_or_default())).collect();
    let running = recipe.lines.iter().filter(|(key, value)| host.settings.value(key) == Some(value));
    let running: Vec<&str> = running.map(|(key, _)| *key).collect();
    if written.len().max(running.len()) < recipe.enough {
        return None;
    }
    let subject = written.first().map_or_else(|| running[0].to_owned(), |line| line.assignment.key.clone());
    let mut finding = about_lines(ID, FindingSeverity::Warning, &subject, recipe.text.to_owned(), &written);
    finding.evidence.extend(running.iter().map(|key| evidence(host, key)));
    CITATION.clone_into(&mut finding.source);
    "the kernel's own values apply again: measure before and after".clone_into(&mut finding.risk);
    finding.remedy =
        written.iter().map(|line| format!("delete {} ({})", line.edit_location(), line.assignment.key)).collect();
    if finding.remedy.is_empty() {
        let keys = running.iter().map(|key| format!("find the file that sets it: linerate audit --explain {key}"));
        finding.remedy.extend(keys);
    }
    Some(finding)
}
