//! Less memory for all connections than one connection may take.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::default_of;
use linerate_model::host::settings::numbers;
use linerate_units::ByteCount;

use super::Rule;
use super::settings_support::{Saying, evidence, finding, host};

const ID: &str = "tcp-memory-small";
const TOTAL: &str = "net.ipv4.tcp_mem";
const BUFFERS: [&str; 2] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
const CITATION: &str = "lab:300m-20ms-tcp-memory; docs/seeds.md (tcp_mem: the limit that the guide does not mention)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "tcp_mem is too small for the buffers that connections may have.",
    explanation: "A connection that wants what tcp_rmem or tcp_wmem allows, and comes upon the total of tcp_mem, does \
                  not slow down gently: the kernel drops what it has queued, and the transfer stalls. Large buffers \
                  need a total to match, and the total has to fit into the memory.\n\nThe way out is smaller buffers, \
                  unless tcp_mem itself is below what the kernel computes.",
    citation: CITATION,
    keys: &[TOTAL, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"],
    check,
    fires: || host(&[(TOTAL, "768 1024 1536"), ("net.ipv4.tcp_rmem", "4096 131072 6291456")]),
    silent: || host(&[(TOTAL, "190000 255000 380000"), ("net.ipv4.tcp_rmem", "4096 131072 33554432")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let pressure = host.settings.numbers(TOTAL).filter(|numbers| numbers.len() == 3);
    let Some(pressure) = pressure.and_then(|pages| host.memory.pages(u64::try_from(pages[1]).ok()?)) else {
        return Vec::new();
    };
    BUFFERS.iter().filter_map(|key| of_buffer(host, key, pressure)).collect()
}

fn of_buffer(host: &HostFacts, key: &'static str, pressure: ByteCount) -> Option<Finding> {
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
        // No less than the kernel's own.
        let floor = default(key).and_then(|default| Some(numbers(&default.value)?[2])).unwrap_or(0);
        let fits = i64::try_from(pressure.get() / 2).ok()?.max(floor);
        (key, Some(format!("{} {} {fits}", found[0], found[1])).filter(|_| fits < found[2]))
    };
    let saying = Saying {
        rule: ID,
        severity: Severity::Warning,
        text: format!(
            "One connection may take {most} ({key}), while all connections together come under pressure at \
             {pressure}: a fast one stalls. Measured in the lab: a total of 4 MiB stops a single transfer."
        ),
        to,
        group: Group::Buffers,
        source: CITATION,
        risk: "a smaller buffer limits long paths; check with `linerate calc bdp` what yours need",
    };
    let mut finding = finding(host, about, saying);
    finding.evidence = vec![evidence(host, TOTAL), evidence(host, key)];
    if finding.remedy.is_empty() {
        finding.remedy.push("lower the third number, or use a host with more memory".to_owned());
    }
    Some(finding)
}
