//! A tuned profile sets smaller buffers than the kernel's default.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::kernel_change::LARGER_RECEIVE_BUFFER;

use super::AuditRule;
use super::link_support::{FindingDraft, and_setting};

const ID: &str = "tuned-lowers-buffers";
const CITATION: &str = "tuned 2.28 (profile network-throughput: 16 MiB); kernel 6.16 (572be9bf9d0d: 32 MiB)";
const KEY: &str = "net.ipv4.tcp_rmem";
/// Third number of the profile's `tcp_rmem`.
const PROFILE_RECEIVE_BUFFER: i64 = 16_777_216;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "tuned's profile for throughput sets a smaller receive buffer than the kernel's default.",
    explanation: "tuned's profile network-throughput sets the largest receive buffer of TCP to 16 MiB, which was more \
        than the kernel's 6 MiB when it was written. Since Linux 6.16 the kernel's default is 32 MiB: the profile \
        halves the throughput of one connection over a long path. tuned also applies the files of sysctl.d again when \
        its profile changes.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host("network-throughput", "6.18.1"),
    silent: || host("network-throughput", "6.12.1"),
};

fn host(profile: &str, release: &str) -> HostFacts {
    let mut host = and_setting(HostFacts::default(), KEY, &format!("4096 131072 {PROFILE_RECEIVE_BUFFER}"));
    host.managers.tuned_profile = Fact::Known(profile.to_owned());
    host.kernel.release = Fact::Known(release.to_owned());
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some(profile) = host.managers.tuned_profile.known().filter(|name| name.contains("network-throughput")) else {
        return Vec::new();
    };
    let is_later = LARGER_RECEIVE_BUFFER.is_in(&host.kernel) == Some(true);
    let largest = host.settings.numbers(KEY).and_then(|numbers| numbers.get(2).copied());
    if !is_later || largest != Some(PROFILE_RECEIVE_BUFFER) {
        return Vec::new();
    }
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: FindingSeverity::Warning,
        subject: KEY.to_owned(),
        text: format!(
            "tuned's profile {profile} sets the largest receive buffer to 16 MiB; this kernel's default is \
            32 MiB."
        ),
        evidence: vec![
            format!("/etc/tuned/active_profile: {profile}"),
            format!("{KEY} = {}", host.settings.value(KEY).unwrap_or_default()),
            format!("kernel {}", host.kernel.release.known().map(String::as_str).unwrap_or_default()),
        ],
        remedy: vec![
            "tuned-adm profile throughput-performance (sets no buffers of TCP)".to_owned(),
            "or a profile of your own that includes it: [main] include=network-throughput, [sysctl] \
                net.ipv4.tcp_rmem=4096 131072 33554432"
                .to_owned(),
        ],
        risk: "other settings of the profile change with it",
    };
    vec![draft.finding()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_profiles_are_ignored() {
        assert_eq!(check(&host("throughput-performance", "6.18.1")), []);
        assert_eq!(check(&and_setting(host("network-throughput", "6.18.1"), KEY, "4096 131072 33554432")), []);
    }
}
