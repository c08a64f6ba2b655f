//! Rules for settings that must have one of a few values, as a table.

use linerate_model::change::ChangeGroup;
use linerate_model::finding::FindingSeverity;

use super::AuditRule;
use super::settings_support::{ExpectedValue, expect, host};
use crate::same_text;

/// Returns the rule of a row: `rule::<{ row("sack-off") }>()`.
pub(super) const fn rule<const ROW: usize>() -> AuditRule {
    let row = &EXPECTED_VALUES[ROW];
    AuditRule {
        id: row.id,
        title: row.title,
        explanation: row.explanation,
        citation: row.citation,
        keys: core::slice::from_ref(&row.key),
        check: |facts| expect(facts, &EXPECTED_VALUES[ROW]),
        fires: || host(&[(EXPECTED_VALUES[ROW].key, EXPECTED_VALUES[ROW].cases.0)]),
        silent: || host(&[(EXPECTED_VALUES[ROW].key, EXPECTED_VALUES[ROW].cases.1)]),
    }
}

/// Returns the row of this identifier; the compiler rejects unknown ones, as it evaluates this.
pub(super) const fn row(id: &str) -> usize {
    let mut row = 0;
    while !same_text(EXPECTED_VALUES[row].id, id) {
        row += 1;
    }
    row
}

/// Returns the row of a setting.
pub(crate) fn expected_value_of(key: &str) -> Option<&'static ExpectedValue> {
    EXPECTED_VALUES.iter().find(|expected| expected.key == key)
}

const EXPECTED_VALUES: &[ExpectedValue] = &[
    ExpectedValue {
        id: "dsack-off",
        key: "net.ipv4.tcp_dsack",
        title: "The receiver does not report duplicate segments (D-SACK).",
        explanation: "With duplicate selective acknowledgements a sender that slowed down for reordered packets \
            detects its error and undoes it.",
        citation: "RFC 2883; RFC 3708; Documentation/networking/ip-sysctl.rst",
        is_correct: |value| value != 0,
        recommended: "1",
        text: "Duplicate selective acknowledgements are off: where packets are reordered, the peer does not undo its \
            reactions to spurious losses.",
        severity: FindingSeverity::Warning,
        group: ChangeGroup::Features,
        risk: "none known",
        cases: ("0", "1"),
    },
    ExpectedValue {
        id: "ecn-fallback-off",
        key: "net.ipv4.tcp_ecn_fallback",
        title: "A handshake that fails with ECN is not repeated without it.",
        explanation: "RFC 3168 allows a host to try again without ECN when packets with it vanish. With the fallback \
            off, such hosts cannot be reached at all.",
        citation: "RFC 3168 section 6.1.1.1; Documentation/networking/ip-sysctl.rst",
        is_correct: |value| value != 0,
        recommended: "1",
        text: "Where a firewall drops the packets of an ECN handshake, connections fail instead of being retried \
            without ECN.",
        severity: FindingSeverity::Advice,
        group: ChangeGroup::Features,
        risk: "none known",
        cases: ("0", "1"),
    },
    ExpectedValue {
        id: "ecn-off",
        key: "net.ipv4.tcp_ecn",
        title: "Explicit congestion notification is refused.",
        explanation: "2, the kernel's default, accepts ECN when the peer requests it. Queues can then mark packets \
            instead of dropping them. 0 refuses. Newer kernels also accept 3 to 5, which agree to accurate feedback \
            (AccECN), and to ECN.",
        citation: "RFC 3168; include/net/tcp_ecn.h (enum tcp_ecn_mode); lab:300m-20ms-ecn",
        is_correct: |value| value != 0,
        recommended: "2",
        text: "ECN is refused even when the peer requests it: queues that could mark packets have to drop them.",
        severity: FindingSeverity::Advice,
        group: ChangeGroup::Features,
        risk: "a few old firewalls drop packets that use it: request it (1) only after linerate path has shown that \
            marks survive",
        cases: ("0", "2"),
    },
    ExpectedValue {
        id: "frto-off",
        key: "net.ipv4.tcp_frto",
        title: "Spurious retransmission timeouts are not detected (F-RTO is off).",
        explanation: "On paths with delay spikes (mobile and wireless ones above all) the retransmission timer fires \
            although nothing is lost. F-RTO detects that from the next acknowledgements and restores the congestion \
            window.",
        citation: "RFC 5682; Documentation/networking/ip-sysctl.rst",
        is_correct: |value| value != 0,
        recommended: "2",
        text: "F-RTO is off: a delay spike that looks like a loss collapses the congestion window.",
        severity: FindingSeverity::Advice,
        group: ChangeGroup::Features,
        risk: "none known",
        cases: ("0", "2"),
    },
    ExpectedValue {
        id: "high-order-allocation-off",
        key: "net.core.high_order_alloc_disable",
        title: "Socket buffers use single pages instead of compound pages.",
        explanation: "Packets in compound pages need fewer processor and device operations. The switch was meant for \
            kernels whose allocator suffered from them.",
        citation: "bpftune's rule: since 5.14 per-processor page lists hold compound pages; \
            Documentation/admin-guide/sysctl/net.rst",
        is_correct: |value| value == 0,
        recommended: "0",
        text: "Compound pages for socket buffers are switched off: each packet costs more work. Kernels since 5.14 \
            do not need that.",
        severity: FindingSeverity::Advice,
        group: ChangeGroup::Processors,
        risk: "none known since 5.14",
        cases: ("1", "0"),
    },
    ExpectedValue {
        id: "metrics-not-saved",
        key: "net.ipv4.tcp_no_metrics_save",
        title: "TCP metrics of closed connections are not saved.",
        explanation: "The kernel keeps the measured round trip and reordering for the next connection to the same \
            host. Old guides switch that off, as the slow start threshold used to be kept, too, and one bad transfer \
            slowed the next ones down; tcp_no_ssthresh_metrics_save = 1, the default, prevents that.",
        citation: "Documentation/networking/ip-sysctl.rst (tcp_no_metrics_save, tcp_no_ssthresh_metrics_save)",
        is_correct: |value| value == 0,
        recommended: "0",
        text: "New connections do not reuse the metrics of earlier ones to the same host (tcp_no_metrics_save = 1). \
            Its old reason, the saved slow start threshold, is obsolete since tcp_no_ssthresh_metrics_save.",
        severity: FindingSeverity::Note,
        group: ChangeGroup::Features,
        risk: "for a series of measurements, flush the metrics between runs instead: ip tcp_metrics flush",
        cases: ("1", "0"),
    },
    ExpectedValue {
        id: "minimum-segment-size-low",
        key: "net.ipv4.tcp_min_snd_mss",
        title: "A peer may force tiny segments.",
        explanation: "The least segment size that a peer may impose became a setting because of CVE-2019-11479: with \
            very small segments a peer causes much processing per byte.",
        citation: "Documentation/networking/ip-sysctl.rst (tcp_min_snd_mss); CVE-2019-11479",
        is_correct: |value| value >= 48,
        recommended: "48",
        text: "A peer may force segments of {} bytes of which most are headers (CVE-2019-11479).",
        severity: FindingSeverity::Warning,
        group: ChangeGroup::Features,
        risk: "none known: no honest path needs less",
        cases: ("40", "48"),
    },
    ExpectedValue {
        id: "mtu-probing-always",
        key: "net.ipv4.tcp_mtu_probing",
        title: "Path MTU probing is always on, not only after a black hole.",
        explanation: "With 2, each connection begins with segments of tcp_base_mss (1024 bytes) and searches \
            upwards. With 1 it does so only when full segments vanish. 2 is right on a path that is known to drop \
            ICMP.",
        citation: "RFC 4821; lab:300m-20ms-black-hole-probing-always (285 of 287 Mbit/s)",
        is_correct: |value| value != 2,
        recommended: "1",
        text: "Path MTU probing is always on: each connection starts with segments of 1024 bytes and searches, which \
            only a path that drops ICMP needs; 1 does it when packets vanish.",
        severity: FindingSeverity::Note,
        group: ChangeGroup::Mtu,
        risk: "on a path that drops ICMP, 1 stalls for some seconds before it probes",
        cases: ("2", "1"),
    },
    ExpectedValue {
        id: "path-mtu-discovery-off",
        key: "net.ipv4.ip_no_pmtu_disc",
        title: "Path MTU discovery is switched off.",
        explanation: "The value 1 sends packets that may be fragmented, and answers ICMP messages by falling back to \
            the least size; 2 and 3 do so for sockets that do not request otherwise. Large packets are then \
            fragmented, or TCP works with 552 bytes. If ICMP is lost on the path, the remedy is tcp_mtu_probing.",
        citation: "RFC 1191; RFC 4821; Documentation/networking/ip-sysctl.rst (ip_no_pmtu_disc)",
        is_correct: |value| value == 0,
        recommended: "0",
        text: "Path MTU discovery is off (ip_no_pmtu_disc = {}): where a link has a smaller MTU, packets are \
            fragmented, or segments shrink to the least size.",
        severity: FindingSeverity::Warning,
        group: ChangeGroup::Mtu,
        risk: "where ICMP is filtered, working connections may hang: then set net.ipv4.tcp_mtu_probing=1",
        cases: ("1", "0"),
    },
    ExpectedValue {
        id: "rack-off",
        key: "net.ipv4.tcp_recovery",
        title: "Time-based loss detection (RACK) is switched off.",
        explanation: "RACK detects lost segments from the send times of others. Without it, lost retransmissions \
            wait for a timeout, and reordered packets count as lost.",
        citation: "RFC 8985; Documentation/networking/ip-sysctl.rst",
        is_correct: |value| value & 1 == 1,
        recommended: "1",
        text: "RACK is off (tcp_recovery = {}): a lost retransmission waits for a timeout of at least 200 ms.",
        severity: FindingSeverity::Warning,
        group: ChangeGroup::Features,
        risk: "none known",
        cases: ("0", "1"),
    },
    ExpectedValue {
        id: "receive-autotuning-off",
        key: "net.ipv4.tcp_moderate_rcvbuf",
        title: "Receive buffer auto-tuning is switched off.",
        explanation: "Auto-tuning raises a connection's receive buffer towards the third number of tcp_rmem while \
            data arrives faster. Without it each connection keeps the second number, however long the path is. A \
            program that sets SO_RCVBUF switches it off for its own sockets only.",
        citation: "Documentation/networking/ip-sysctl.rst (tcp_moderate_rcvbuf)",
        is_correct: |value| value != 0,
        recommended: "1",
        text: "Receive auto-tuning is off: every connection keeps its initial buffer. With 131072 bytes that is \
            about 33 Mbit/s at 20 ms.",
        severity: FindingSeverity::Critical,
        group: ChangeGroup::Buffers,
        risk: "none known",
        cases: ("0", "1"),
    },
    ExpectedValue {
        id: "sack-off",
        key: "net.ipv4.tcp_sack",
        title: "Selective acknowledgements are switched off.",
        explanation: "Without them the sender detects one lost segment per round trip, and a queue that overflows in \
            slow start costs hundreds of round trips. Old recipes for 10 Gbit/s switch them off as a gain; those \
            lines come from the README of Intel's ixgb driver of 2004, whose processors could not search long lists. \
            It was also done against CVE-2019-11477, which kernels since June 2019 do not have.",
        citation: "RFC 2018; lab:300m-20ms-half-buffer-no-sack; docs/seeds.md",
        is_correct: |value| value != 0,
        recommended: "1",
        text: "Selective acknowledgements are off: each lost segment costs a round trip. Measured at 300 Mbit/s and \
            20 ms with a queue of half a bandwidth-delay product: 4.9 to 8.0 instead of 212 Mbit/s (kernel 6.18), a \
            little more than half in the lab (6.12); with 0.1 % loss BBR falls from 280 to 96-115 Mbit/s.",
        severity: FindingSeverity::Critical,
        group: ChangeGroup::Features,
        risk: "none known: kernels without the errors of 2019 search their lists quickly",
        cases: ("0", "1"),
    },
    ExpectedValue {
        id: "slow-start-threshold-saved",
        key: "net.ipv4.tcp_no_ssthresh_metrics_save",
        title: "The slow start threshold of one connection is saved for the next.",
        explanation: "With the value 0 the slow start threshold of a connection is remembered for the next one to \
            the same host: after a transfer with losses, the next leaves slow start too early.",
        citation: "Documentation/networking/ip-sysctl.rst (tcp_no_ssthresh_metrics_save)",
        is_correct: |value| value != 0,
        recommended: "1",
        text: "The slow start threshold is remembered from one connection to the next: after one with losses, the \
            next one to the same host begins slowly.",
        severity: FindingSeverity::Warning,
        group: ChangeGroup::Features,
        risk: "none known",
        cases: ("0", "1"),
    },
    ExpectedValue {
        id: "tail-loss-probe-off",
        key: "net.ipv4.tcp_early_retrans",
        title: "Tail loss probes are switched off.",
        explanation: "When the last segments of a request or response are lost, no duplicate acknowledgements \
            follow. A probe after two round trips detects it; without it the sender waits for its timeout.",
        citation: "RFC 8985 section 7; Documentation/networking/ip-sysctl.rst",
        is_correct: |value| value >= 3,
        recommended: "3",
        text: "Tail loss probes are off (tcp_early_retrans = {}): a loss at the end of a request waits for a timeout \
            of at least 200 ms.",
        severity: FindingSeverity::Warning,
        group: ChangeGroup::Features,
        risk: "none known",
        cases: ("0", "3"),
    },
    ExpectedValue {
        id: "timestamps-off",
        key: "net.ipv4.tcp_timestamps",
        title: "TCP timestamps are switched off.",
        explanation: "They take 12 of 1460 bytes and provide an RTT sample for every acknowledgement, protection \
            against wrapped sequence numbers (PAWS; from 286 Mbit/s on within one segment lifetime), the detection \
            of spurious retransmissions, and the reuse of ports in TIME-WAIT.",
        citation: "RFC 7323 sections 4 and 5; lab:300m-20ms-half-buffer-no-timestamps; docs/seeds.md",
        is_correct: |value| value != 0,
        recommended: "1",
        text: "Timestamps are off. That gains 0.8 % at best (12 of 1448 bytes; 286 and 288 Mbit/s in the \
            lab), and loses protection against wrapped sequence numbers, which takes 34 s at 1 Gbit/s.",
        severity: FindingSeverity::Warning,
        group: ChangeGroup::Features,
        risk: "only with the value 2 can the host's uptime be derived from them: keep 1",
        cases: ("0", "1"),
    },
    ExpectedValue {
        id: "window-scaling-off",
        key: "net.ipv4.tcp_window_scaling",
        title: "Window scaling is switched off: windows are limited to 65535 bytes.",
        explanation: "The window field of TCP has 16 bits; the scale factor agreed on in the handshake makes larger \
            ones possible. Without it no connection is faster than 65535 bytes per round trip, whatever its buffers \
            are.",
        citation: "RFC 7323 section 2; lab:rhel-1g-1500us-no-window-scaling; docs/seeds.md",
        is_correct: |value| value != 0,
        recommended: "1",
        text: "Window scaling is off: no connection gets more than 65535 bytes per round trip, that is 26 Mbit/s at \
            20 ms and 5.2 Mbit/s at 100 ms. Measured at 1 Gbit/s and 1.5 ms: 272 instead of 956 Mbit/s.",
        severity: FindingSeverity::Critical,
        group: ChangeGroup::Features,
        risk: "none known",
        cases: ("0", "1"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_listed() {
        for row in EXPECTED_VALUES {
            assert!(super::super::RULES.iter().any(|rule| rule.id == row.id), "{} is not in RULES", row.id);
        }
    }
}
