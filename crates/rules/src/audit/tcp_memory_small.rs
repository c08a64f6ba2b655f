//! `tcp_mem` is too small for the buffers of single connections.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;
use linerate_model::host::settings::numbers;
use linerate_units::ByteCount;

use super::AuditRule;
use super::settings_support::{SettingFindingDraft, evidence, finding, host};

const ID: &str = "tcp-memory-small";
const TOTAL: &str = "net.ipv4.tcp_mem";
const BUFFERS: [&str; 2] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
const CITATION: &str = "lab:300m-20ms-tcp-memory; docs/seeds.md (tcp_mem: the limit that the guide does not mention)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "tcp_mem is too small for the buffers that connections may have.",
    explanation: "A connection that uses what tcp_rmem or tcp_wmem allows, and exceeds the total of tcp_mem, does \
    not slow down gradually: the kernel drops its queued data, and the transfer stalls. Large buffers \
    need a matching total, and the total has to fit into the memory.\n\nThe remedy is smaller buffers, \
    unless tcp_mem itself is below the kernel's default.",
    citation: CITATION,
    keys: &[TOTAL, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"],
    check,
    fires: || host(&[(TOTAL, "768 1024 1536"), ("net.ipv4.tcp_rmem", "4096 131072 6291456")]),
    silent: || host(&[(TOTAL, "190000 255000 380000"), ("net.ipv4.tcp_rmem", "4096 131072 33554432")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let pressure = host.settings.numbers(TOTAL).filter(|numbers| numbers.len() == 3);
    let Some(pressure) = pressure.and_then(|pages| host.memory.pages(u64::try_from(pages[1]).ok()?)) else {
        return Vec::new();
    };
    BUFFERS.iter().filter_map(|key| buffer_finding(host, key, pressure)).collect()
}

fn buffer_finding(host: &HostFacts, key: &'static str, pressure: ByteCount) -> Option<AuditFinding> {
    let found = host.settings.numbers(key).filter(|numbers| numbers.len() == 3)?;
    let most = ByteCount::new(u64::try_from(found[2]).ok()?);
    if most.get() <= pressure.get() / 2 {
        return None;
    }
    let default = |key| host.kernel.version().and_then(|version| default_of(key, version, &host.memory));
    let usual = default(TOTAL).and_then(|default| Some((numbers(&default.value)?[1], default.value)));
    let small_total =
        usual.filter(|(usual, _)| host.settings.numbers(TOTAL).is_some_and(|now| now[1] < usual * 95 / 100));
    let (about, to) = if let Some((_, usual)) = small_total {
        (TOTAL, Some(usual))
    } else {
        // No less than the kernel's default.
        let floor = default(key).and_then(|default| Some(numbers(&default.value)?[2])).unwrap_or(0);
        let fits = i64::try_from(pressure.get() / 2).ok()?.max(floor);
        (key, Some(format!("{} {} {fits}", found[0], found[1])).filter(|_| fits < found[2]))
    };
    let draft = SettingFindingDraft {
        rule: ID,
        severity: FindingSeverity::Warning,
        text: format!(
            "One connection may take {most} ({key}), while all connections together come under pressure at \
             {pressure}: a fast one stalls. Measured in the lab: a total of 4 MiB stops a single transfer."
        ),
        to,
        group: ChangeGroup::Buffers,
        source: CITATION,
        risk: "a smaller buffer limits long paths; compute their need with `linerate calc bdp`",
    };
    let mut finding = finding(host, about, draft);
    finding.evidence = vec![evidence(host, TOTAL), evidence(host, key)];
    if finding.remedy.is_empty() {
        finding.remedy.push("lower the third number, or use a host with more memory".to_owned());
    }
    Some(finding)
}
