//! Blocks of settings that are copied from guide to guide.

use linerate_units::CompactCollect;
use std::collections::BTreeSet;

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::SettingSource;

use super::AuditRule;
use super::settings_support::{
    about_lines, all_lines, default_value, delete_line, evidence, host, host_with_files, set_command,
};

const ID: &str = "copied-recipe";
const CITATION: &str = "Documentation/networking/device_drivers/ethernet/intel/ixgb.rst of older kernels; \
                        docs/seeds.md";

/// Known recipe, recognised by its values.
struct KnownRecipe {
    lines: &'static [RecipeLine],
    /// Number of matching lines that identify it.
    enough: usize,
    /// Origin of the recipe.
    origin: &'static str,
    /// Sources of the statements.
    citation: &'static str,
}

/// Line of a recipe.
struct RecipeLine {
    key: &'static str,
    value: &'static str,
    /// Effect of the line.
    effect: &'static str,
}

const fn line(key: &'static str, value: &'static str, effect: &'static str) -> RecipeLine {
    RecipeLine { key, value, effect }
}

const SMALL_CAP: &str = "it limits what programs may request to 512 KiB";
const NOT_TCP: &str = "TCP does not use it";
const SMALL_BUFFER: &str = "on the path of that guide it allows 999 Mbit/s of 10 Gbit/s, measured in the lab";
const FIXED_BUFFER: &str = "it gives each connection 10 MB from the start and ends auto-tuning below and above";

const RECIPES: &[KnownRecipe] = &[
    KnownRecipe {
        lines: &[
            line("net.core.netdev_max_backlog", "300000", "it queues up to 300000 packets, 3.6 s at 1 Gbit/s"),
            line("net.core.optmem_max", "524287", "it lets every socket hold 512 KiB of control data"),
            line("net.core.rmem_default", "524287", NOT_TCP),
            line("net.core.rmem_max", "524287", SMALL_CAP),
            line("net.core.wmem_default", "524287", NOT_TCP),
            line("net.core.wmem_max", "524287", SMALL_CAP),
            line("net.ipv4.tcp_mem", "10000000 10000000 10000000", "it counts pages: a limit of 38 GiB"),
            line("net.ipv4.tcp_rmem", "10000000 10000000 10000000", FIXED_BUFFER),
            line("net.ipv4.tcp_wmem", "10000000 10000000 10000000", FIXED_BUFFER),
        ],
        enough: 2,
        origin: "the recipe of Intel's ixgb driver (a PCI-X card of 2004), copied from guide to guide, which also \
                 switches SACK and timestamps off",
        citation: "Documentation/networking/device_drivers/ethernet/intel/ixgb.rst of older kernels; docs/seeds.md",
    },
    KnownRecipe {
        lines: &[
            line("net.ipv4.tcp_rmem", "4096 262144 21367520", SMALL_BUFFER),
            line("net.ipv4.tcp_wmem", "4096 24576 21367520", SMALL_BUFFER),
            line("net.ipv4.tcp_wmem", "4096 262144 21367520", SMALL_BUFFER),
        ],
        enough: 1,
        origin: "an example of a guide for 10 Gbit/s over 117 ms, in which the rate was divided by the time instead of \
                 multiplied: 1.25 GB/s x 0.117 s = 146 250 000 bytes, not 10 683 760",
        citation: "Red Hat Enterprise Linux, Tuning TCP connections for high throughput; docs/seeds.md (10 Gbit/s x \
                   117 ms)",
    },
];

/// Reason against a value that is part of a known recipe.
pub(crate) fn recipe_of(key: &str, value: &str) -> Option<String> {
    let recipe = RECIPES.iter().find(|recipe| recipe.line(key, value).is_some())?;
    Some(format!("it is part of {}; {}", recipe.origin, recipe.line(key, value)?.effect))
}

impl KnownRecipe {
    fn line(&self, key: &str, value: &str) -> Option<&RecipeLine> {
        self.lines.iter().find(|line| line.key == key && line.value == value)
    }
}

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
            &[("net.core.rmem_max", "212992"), ("net.core.netdev_max_backlog", "1000")],
            &[("/etc/sysctl.d/10.conf", "net.core.rmem_max = 524287\nnet.core.netdev_max_backlog = 300000\n")],
        )
    },
    silent: || host(&[("net.core.rmem_max", "524288"), ("net.core.netdev_max_backlog", "300000")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let lines = all_lines(host);
    RECIPES.iter().flat_map(|recipe| recipe_findings(host, &lines, recipe)).collect()
}

fn recipe_findings(host: &HostFacts, lines: &[SettingSource], recipe: &KnownRecipe) -> Vec<AuditFinding> {
    let is_part =
        |line: &&SettingSource| line.value().is_some_and(|value| recipe.line(&line.assignment.key, value).is_some());
    let written: Vec<&SettingSource> = lines.iter().filter(is_part).collect();
    let running = |line: &&RecipeLine| host.settings.value(line.key) == Some(line.value);
    let running: Vec<&RecipeLine> = recipe.lines.iter().filter(running).collect();
    if written.len().max(running.len()) < recipe.enough {
        return Vec::new();
    }
    let keys: BTreeSet<&str> = written
        .iter()
        .map(|line| line.assignment.key.as_str())
        .chain(running.iter().map(|line| line.key))
        .collect_compactly();
    keys.into_iter().filter_map(|key| key_finding(host, &written, key, recipe)).collect()
}

fn key_finding(host: &HostFacts, written: &[&SettingSource], key: &str, recipe: &KnownRecipe) -> Option<AuditFinding> {
    let written: Vec<&SettingSource> = written.iter().copied().filter(|line| line.assignment.key == key).collect();
    let now = host.settings.value(key)?;
    let is_running = recipe.line(key, now).is_some();
    let value = written.first().and_then(|line| line.value()).unwrap_or(now);
    let effect = recipe.line(key, value)?.effect;
    let text = format!("{key} = {value} is a line of {}; {effect}.", recipe.origin);
    let mut finding = about_lines(ID, FindingSeverity::Warning, key, text, &written);
    finding.evidence.extend(is_running.then(|| evidence(host, key)));
    recipe.citation.clone_into(&mut finding.source);
    "the kernel's own values apply again: measure before and after".clone_into(&mut finding.risk);
    let usual = default_value(host, key).filter(|_| is_running);
    finding.remedy.extend(usual.and_then(|usual| set_command(host, key, &usual)));
    finding.remedy.extend(written.iter().map(|line| delete_line(host, line)));
    if finding.remedy.is_empty() {
        finding.remedy.push(format!("find out what sets it: linerate audit --explain {key}"));
    }
    Some(finding)
}
