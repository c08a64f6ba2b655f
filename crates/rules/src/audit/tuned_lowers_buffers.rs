//! A profile of tuned sets less than the kernel has by itself.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::kernel::KernelVersion;

use super::Rule;
use super::link_support::{Saying, and_setting};

const ID: &str = "tuned-lowers-buffers";
const CITATION: &str = "tuned 2.28 (profile network-throughput: 16 MiB); kernel 6.16 (572be9bf9d0d: 32 MiB)";
const KEY: &str = "net.ipv4.tcp_rmem";
/// The profile's last number of `tcp_rmem`.
const OF_PROFILE: i64 = 16_777_216;
/// Since this version the kernel itself has 32 MiB.
const RAISED: KernelVersion = KernelVersion::new(6, 16);

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "tuned's profile for throughput sets a smaller receive buffer than the kernel has by itself.",
    explanation: "tuned's profile network-throughput sets the largest receive buffer of TCP to 16 MiB, which was more than the kernel's 6 MiB when it was written. Since Linux 6.16 the kernel's own is 32 MiB: the profile halves what one connection can reach over a long path. tuned also applies the files of sysctl.d anew when its profile changes.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host("network-throughput", "6.18.1"),
    silent: || host("network-throughput", "6.12.1"),
};

fn host(profile: &str, release: &str) -> HostFacts {
    let mut host = and_setting(HostFacts::default(), KEY, &format!("4096 131072 {OF_PROFILE}"));
    host.managers.tuned_profile = Fact::Known(profile.to_owned());
    host.kernel.release = Fact::Known(release.to_owned());
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some(profile) = host.managers.tuned_profile.known().filter(|name| name.contains("network-throughput")) else {
        return Vec::new();
    };
    let is_later = host.kernel.version().is_some_and(|version| version >= RAISED);
    let largest = host.settings.numbers(KEY).and_then(|numbers| numbers.get(2).copied());
    if !is_later || largest != Some(OF_PROFILE) {
        return Vec::new();
    }
    let saying = Saying {
        rule: (ID, CITATION),
        severity: Severity::Warning,
        subject: KEY.to_owned(),
        text: format!("tuned's profile {profile} sets the largest receive buffer to 16 MiB; this kernel has 32 MiB by itself."),
        evidence: vec![
            format!("/etc/tuned/active_profile: {profile}"),
            format!("{KEY} = {}", host.settings.value(KEY).unwrap_or_default()),
            format!("kernel {}", host.kernel.release.known().map(String::as_str).unwrap_or_default()),
        ],
        remedy: vec![
            "tuned-adm profile throughput-performance (sets no buffers of TCP)".to_owned(),
            "or a profile of your own that includes it: [main] include=network-throughput, [sysctl] net.ipv4.tcp_rmem=4096 131072 33554432".to_owned(),
        ],
        risk: "other settings of the profile change with it",
    };
    vec![saying.finding()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_profiles_are_not_meant() {
        assert_eq!(check(&host("throughput-performance", "6.18.1")), []);
        assert_eq!(check(&and_setting(host("network-throughput", "6.18.1"), KEY, "4096 131072 33554432")), []);
    }
}
