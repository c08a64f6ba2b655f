//! Facts of the kernel that rules state, each as its source has it. Those that depend on the release are in
//! `model::host::kernel_change` and `model::host::defaults`, with their own tables.

use linerate_model::fact::Fact;
use linerate_rules::audit::{AuditRule, RULES};

fn rule(id: &str) -> &'static AuditRule {
    RULES.iter().find(|rule| rule.id == id).expect("a rule")
}

/// Words of a rule, on one line.
fn explanation(id: &str) -> String {
    rule(id).explanation.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// `NFS_DISABLE_UDP_SUPPORT` is of the client (`fs/nfs/Kconfig`, 5.6); servers follow nfs-utils.
#[test]
fn nfs_over_udp_ended_at_clients_in_5_6_and_at_servers_with_their_tools() {
    let text = explanation("nfs-over-datagrams");
    assert!(text.contains("Servers with current nfs-utils do not offer it by default"), "{text}");
    assert!(text.contains("Linux clients can be built without it since 5.6"), "{text}");
}

/// `tcp_add_backlog` since ec00ed472bdb: `sk_rcvbuf` twice, half of `sk_sndbuf`, 64 KiB.
#[test]
fn a_backlog_holds_twice_the_receive_buffer_and_half_of_the_send_buffer() {
    let text = explanation("tcp-backlog-drops");
    assert!(
        text.contains("since 6.10") && text.contains("twice the receive buffer, half of the send buffer and 64 KiB"),
        "{text}"
    );
}

/// `enum tcp_ecn_mode`: 3 to 5 are `AccECN` (since 8ae3e8e6ceed), and request or accept marks as 1 and 2 do.
#[test]
fn only_the_mode_that_refuses_marks_is_ecn_off() {
    let rule = rule("ecn-off");
    for mode in 0..=5 {
        let mut host = (rule.fires)();
        host.settings.values.get_mut("net.ipv4.tcp_ecn").expect("the rule's setting").value =
            Fact::Known(mode.to_string());
        assert_eq!((rule.check)(&host).is_empty(), mode != 0, "mode {mode}");
    }
}
