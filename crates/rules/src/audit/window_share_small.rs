//! Before 6.6: most of the receive buffer is not available for the window.

use linerate_model::change::ChangeGroup;
use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::kernel_change::LEARNED_WINDOW_SHARE;

use super::AuditRule;
use super::settings_support::{SettingFindingDraft, finding, host};

const ID: &str = "window-share-small";
const KEY: &str = "net.ipv4.tcp_adv_win_scale";
const CITATION: &str = "Documentation/networking/ip-sysctl.rst (tcp_adv_win_scale)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Most of each receive buffer is not available for the window.",
    explanation: "Up to 6.5 the window is the buffer less its 2^-n part for a positive tcp_adv_win_scale, and its 2^n \
                  part for a negative one: 1 gives half, -2 a quarter. From 6.6 on the setting has no effect.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || {
        let mut host = host(&[(KEY, "-2")]);
        host.kernel.release = Fact::Known("6.1.0-18-amd64".to_owned());
        host
    },
    silent: || host(&[(KEY, "-2")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    // Unknown where a distribution may have carried the change back.
    let version = host.kernel.version().filter(|_| LEARNED_WINDOW_SHARE.is_in(&host.kernel) == Some(false));
    let Some(version) = version else { return Vec::new() };
    let Some(value) = host.settings.number(KEY).filter(|value| (-31..-1).contains(value)) else { return Vec::new() };
    let draft = SettingFindingDraft {
        rule: ID,
        severity: FindingSeverity::Warning,
        text: format!(
            "In kernel {version} tcp_adv_win_scale = {value} leaves 1/{} of each receive buffer for the window.",
            1_u64 << -value
        ),
        to: Some("1".to_owned()),
        group: ChangeGroup::Buffers,
        source: CITATION,
        risk: "more packets may be in flight to a host with little memory",
    };
    vec![finding(host, KEY, draft)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_may_have_the_change_are_not_accused() {
        for (release, findings) in [("6.5.13", 1), ("6.6.1", 0), ("5.14.0-427.el9.x86_64", 0), ("5.15.0-91-generic", 1)]
        {
            let mut host = host(&[(KEY, "-2")]);
            host.kernel.release = Fact::Known(release.to_owned());
            assert_eq!(check(&host).len(), findings, "{release}");
        }
    }
}
