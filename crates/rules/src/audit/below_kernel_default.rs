//! Values below the running kernel's default.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::defaults::{KernelDefault, default_of};
use linerate_model::host::settings::numbers;

use super::AuditRule;
use super::settings_support::{SettingFindingDraft, finding, host, host_with_files, present_and_later};
use crate::advisable::{in_bytes, is_below};

const ID: &str = "below-kernel-default";
const KEYS: &[&str] = &[
    "net.core.optmem_max",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];
const CITATION: &str = "net/ipv4/tcp.c, net/ipv4/tcp_ipv4.c and include/net/sock.h of the kernel; commits \
                        572be9bf9d0d, 9ea3bfa61b09, a6d4f25888b8";
pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A buffer or limit is below this kernel's default.",
    explanation: "Most recipes were written for kernels with small defaults. Those grew: in 6.16 the most that a \
                  receive buffer may take went from 6 to 32 MiB and tcp_limit_output_bytes from 1 to 4 MiB, in 6.18 \
                  rmem_max and wmem_max from 208 KiB to 4 MiB. A line that raised a value in 2015 lowers it \
                  today.\n\nA distribution may have defaults of its own; and a host that serves very many connections \
                  may want less on purpose.",
    citation: CITATION,
    keys: KEYS,
    check,
    fires: || {
        host_with_files(
            &[("net.ipv4.tcp_rmem", "4096 87380 4194304")],
            &[("/etc/sysctl.d/99-old.conf", "net.ipv4.tcp_rmem = 4096 87380 4194304\n")],
        )
    },
    silent: || host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_mem", "190000 255000 380000")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(version) = host.kernel.version() else { return Vec::new() };
    let of_key = |key: &&'static str| below(host, key, &default_of(key, version, &host.memory)?);
    KEYS.iter().filter_map(of_key).collect()
}

fn below(host: &HostFacts, key: &'static str, default: &KernelDefault) -> Option<AuditFinding> {
    let standard = numbers(&default.value)?;
    let too_small = |value: &str| {
        // Numbers of another unit are the subject of `tcp-memory-in-bytes`.
        numbers(value).is_some_and(|found| {
            let is_size = !key.ends_with("_mem") || in_bytes(&host.memory, &found).is_none();
            is_size && is_below(&found, &standard, default.exact)
        })
    };
    host.settings.numbers(key)?;
    let (value, prefix) = present_and_later(host, key).into_iter().find(|(value, _)| too_small(value))?;
    let when = if prefix.is_empty() { "is" } else { "will be at the next boot" };
    let about = if default.exact { "" } else { "about " };
    let release = host.kernel.version()?;
    let draft = SettingFindingDraft {
        rule: ID,
        severity: FindingSeverity::Warning,
        text: format!(
            "{key} {when} {value}; the default of kernel {release} is {about}{} ({}).",
            default.value, default.reason
        ),
        to: Some(larger_values(&numbers(&value)?, &standard)),
        group: ChangeGroup::Buffers,
        source: CITATION,
        risk: "more memory for connections that use it; a smaller value may have been chosen to keep queues short",
    };
    Some(finding(host, key, draft))
}

/// Larger of both values, number by number.
fn larger_values(found: &[i64], standard: &[i64]) -> String {
    let larger = found.iter().zip(standard).map(|(found, standard)| found.max(standard).to_string());
    larger.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::Fact;

    use super::*;

    #[test]
    fn the_same_line_raises_and_lowers() {
        let mut host = host(&[("net.ipv4.tcp_rmem", "4096 131072 16777216")]);
        assert_eq!(check(&host), []);
        host.kernel.release = Fact::Known("6.18.1".to_owned());
        let found = check(&host);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("33554432"), "{}", found[0].text);
        assert_eq!(found[0].remedy, ["sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"]);
    }

    #[test]
    fn a_file_that_lowers_it_at_the_next_boot() {
        let host = host_with_files(
            &[("net.core.rmem_max", "212992")],
            &[("/etc/sysctl.d/50.conf", "# x\nnet.core.rmem_max = 131071\n")],
        );
        let found = check(&host);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].remedy, ["edit /etc/sysctl.d/50.conf:2: net.core.rmem_max = 212992"]);
    }
}
