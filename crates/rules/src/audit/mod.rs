//! Rules that check one host alone, without a peer and without a measurement.

mod accelerated_flow_steering_off;
mod aggregation_off;
mod below_kernel_default;
mod bond_hash_by_address;
mod checksum_offload_off;
mod congestion_control_unknown;
mod connection_tracking_full;
mod copied_recipe;
mod core_default_raised;
mod datagrams_dropped;
mod dead_setting;
mod expected_values;
mod first_buffer_large;
mod flow_steering_incomplete;
mod frames_damaged;
mod governor_saves_power;
mod half_duplex;
mod interrupts_far;
mod large_receive_offload_forwarding;
mod link_speed_low;
mod link_support;
mod listen_queue_overflows;
mod merged;
mod mtu_mismatch;
mod mtu_probing_off;
mod namespace_limits;
mod nearest;
mod netdev_backlog_long;
mod nfs_one_connection;
mod nfs_over_datagrams;
mod nfs_requests_small;
mod orders_disagree;
mod pacing_without_fq;
mod pause_frames;
mod pci_link_narrow;
mod processor_time_stolen;
mod queue_drops;
mod receive_backlog_drops;
mod receive_on_one_processor;
mod receive_queue_pruned;
mod receive_squeezed;
mod ring_small;
mod runtime_differs;
mod setting_overridden;
mod settings_change_themselves;
#[cfg(test)]
mod settings_fuzz;
mod settings_line_ignored;
mod settings_support;
mod tcp_backlog_drops;
mod tcp_memory_in_bytes;
mod tcp_memory_pressure;
mod tcp_memory_small;
mod time_wait_recycling;
mod transfer_cipher_slow;
mod transfer_compresses;
mod transmit_queue_length_unused;
mod tuned_lowers_buffers;
mod unknown_setting;
mod value_refused;
mod vendor_file_wins;
mod window_share_small;

pub(crate) use copied_recipe::recipe_of;
pub(crate) use dead_setting::dead_setting_reason;
pub(crate) use expected_values::expected_value_of;
use expected_values::{row, rule as expected_value};
use linerate_model::finding::AuditFinding;
use linerate_model::host::HostFacts;
use linerate_model::host::catalogue::CATALOGUE;
use linerate_units::CompactSort;
#[cfg(test)]
pub(crate) use settings_support::host as test_host;

/// Rule of `linerate audit`.
#[derive(Clone, Copy, Debug)]
pub struct AuditRule {
    /// Identifier in kebab case.
    pub id: &'static str,
    /// Condition that the rule detects, in one sentence.
    pub title: &'static str,
    /// Reason why it matters and when it does not; an empty line between paragraphs.
    pub explanation: &'static str,
    /// Source: RFC section, kernel file, manual page or measurement.
    pub citation: &'static str,
    /// Sysctl names of the settings concerned; empty for other rules.
    pub keys: &'static [&'static str],
    /// Checks a host. Unknown facts lead to no finding.
    pub check: fn(&HostFacts) -> Vec<AuditFinding>,
    /// Host on which the rule finds something, for the tests of the whole list.
    pub fires: fn() -> HostFacts,
    /// Similar host on which the rule finds nothing.
    pub silent: fn() -> HostFacts,
}

/// All rules, in the order of their identifiers.
pub const RULES: &[AuditRule] = &[
    accelerated_flow_steering_off::RULE,
    aggregation_off::RULE,
    below_kernel_default::RULE,
    bond_hash_by_address::RULE,
    checksum_offload_off::RULE,
    congestion_control_unknown::RULE,
    connection_tracking_full::RULE,
    copied_recipe::RULE,
    core_default_raised::RULE,
    datagrams_dropped::RULE,
    dead_setting::RULE,
    expected_value::<{ row("dsack-off") }>(),
    expected_value::<{ row("ecn-fallback-off") }>(),
    expected_value::<{ row("ecn-off") }>(),
    first_buffer_large::RULE,
    flow_steering_incomplete::RULE,
    frames_damaged::RULE,
    expected_value::<{ row("frto-off") }>(),
    governor_saves_power::RULE,
    half_duplex::RULE,
    expected_value::<{ row("high-order-allocation-off") }>(),
    interrupts_far::RULE,
    large_receive_offload_forwarding::RULE,
    link_speed_low::RULE,
    listen_queue_overflows::RULE,
    expected_value::<{ row("metrics-not-saved") }>(),
    expected_value::<{ row("minimum-segment-size-low") }>(),
    mtu_mismatch::RULE,
    expected_value::<{ row("mtu-probing-always") }>(),
    mtu_probing_off::RULE,
    namespace_limits::RULE,
    netdev_backlog_long::RULE,
    nfs_one_connection::RULE,
    nfs_over_datagrams::RULE,
    nfs_requests_small::RULE,
    orders_disagree::RULE,
    pacing_without_fq::RULE,
    expected_value::<{ row("path-mtu-discovery-off") }>(),
    pause_frames::RULE,
    pci_link_narrow::RULE,
    processor_time_stolen::RULE,
    queue_drops::RULE,
    expected_value::<{ row("rack-off") }>(),
    expected_value::<{ row("receive-autotuning-off") }>(),
    receive_backlog_drops::RULE,
    receive_on_one_processor::RULE,
    receive_queue_pruned::RULE,
    receive_squeezed::RULE,
    ring_small::RULE,
    runtime_differs::RULE,
    expected_value::<{ row("sack-off") }>(),
    setting_overridden::RULE,
    settings_change_themselves::RULE,
    settings_line_ignored::RULE,
    expected_value::<{ row("slow-start-threshold-saved") }>(),
    expected_value::<{ row("tail-loss-probe-off") }>(),
    tcp_backlog_drops::RULE,
    tcp_memory_in_bytes::RULE,
    tcp_memory_pressure::RULE,
    tcp_memory_small::RULE,
    time_wait_recycling::RULE,
    expected_value::<{ row("timestamps-off") }>(),
    transfer_cipher_slow::RULE,
    transfer_compresses::RULE,
    transmit_queue_length_unused::RULE,
    tuned_lowers_buffers::RULE,
    unknown_setting::RULE,
    value_refused::RULE,
    vendor_file_wins::RULE,
    expected_value::<{ row("window-scaling-off") }>(),
    window_share_small::RULE,
];

/// Returns the findings of all rules, the most severe first; those about one setting are merged.
#[must_use]
pub fn audit(host: &HostFacts) -> Vec<AuditFinding> {
    let findings: Vec<AuditFinding> = RULES.iter().flat_map(|rule| (rule.check)(host)).collect();
    let mut findings = merged::merge(findings);
    findings.sort_compactly_by(|one, other| {
        other.severity.cmp(&one.severity).then_with(|| (&one.rule, &one.subject).cmp(&(&other.rule, &other.subject)))
    });
    findings
}

/// Returns the existing setting whose name is nearest to an unknown one.
#[must_use]
pub fn nearest_name<'a>(host: &'a HostFacts, written: &str) -> Option<&'a str> {
    let of_kernel = host.settings.names.known().into_iter().flatten().map(String::as_str);
    nearest::nearest(written, of_kernel.chain(CATALOGUE.iter().map(|knob| knob.key)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rules_are_listed_in_order_once_and_documented() {
        assert!(RULES.is_sorted_by(|one, other| one.id < other.id));
        for rule in RULES {
            assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit()));
            assert!(!rule.title.is_empty() && !rule.explanation.is_empty() && !rule.citation.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn each_rule_has_a_case_that_fires_and_one_that_does_not() {
        for rule in RULES {
            let found = (rule.check)(&(rule.fires)());
            assert!(!found.is_empty(), "{} finds nothing where it should", rule.id);
            for finding in &found {
                assert_eq!(finding.rule, rule.id);
                assert!(!finding.evidence.is_empty() && !finding.text.is_empty(), "{finding:?}");
                assert!(!finding.remedy.is_empty() || finding.change.is_some(), "no remedy: {finding:?}");
            }
            assert_eq!((rule.check)(&(rule.silent)()), [], "{}", rule.id);
            assert_eq!((rule.check)(&HostFacts::default()), [], "{}: nothing is known, nothing is found", rule.id);
        }
    }

    #[test]
    fn findings_begin_with_the_most_severe() {
        let hosts: Vec<HostFacts> = RULES.iter().map(|rule| (rule.fires)()).collect();
        for host in &hosts {
            assert!(audit(host).is_sorted_by(|one, other| one.severity >= other.severity));
        }
        let identifiers: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(identifiers.len(), RULES.len());
    }
}
