//! Catalogue of the kernel settings relevant to a transfer: description in one sentence, and scope.
//!
//! Based on `Documentation/networking/ip-sysctl.rst`, `Documentation/networking/mptcp-sysctl.rst` and
//! `Documentation/admin-guide/sysctl/net.rst` of the kernel; the settings per network namespace were measured on 6.18
//! and read in `net/core/sysctl_net_core.c` and `net/ipv4/sysctl_net_ipv4.c` of 6.12.

/// Kernel setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingDescription {
    /// sysctl name.
    pub key: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    /// Scope of the value.
    pub scope: SettingScope,
}

/// Scope of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettingScope {
    /// Per network namespace.
    OfNamespace,
    /// Per host; visible in other namespaces, but not writable there.
    ReadOnlyInOthers,
    /// Per host; not visible in other namespaces.
    OfHost,
}

/// Setting of this name.
#[must_use]
pub fn find(key: &str) -> Option<&'static SettingDescription> {
    CATALOGUE.binary_search_by(|knob| knob.key.cmp(key)).ok().map(|index| &CATALOGUE[index])
}

const fn setting(key: &'static str, scope: SettingScope, what: &'static str) -> SettingDescription {
    SettingDescription { key, description: what, scope }
}

/// All settings, sorted by name.
pub const CATALOGUE: &[SettingDescription] = &[
    setting(
        "net.core.busy_poll",
        SettingScope::OfHost,
        "Microseconds that poll() and select() spin on a socket's queue before they sleep; 0 is off.",
    ),
    setting(
        "net.core.busy_read",
        SettingScope::OfHost,
        "Microseconds that a blocking read spins on a socket's queue before it sleeps; 0 is off.",
    ),
    setting(
        "net.core.default_qdisc",
        SettingScope::OfHost,
        "Queueing discipline of interfaces that come up from now on.",
    ),
    setting(
        "net.core.dev_weight",
        SettingScope::OfHost,
        "Packets that one softirq round takes from the backlog of a processor.",
    ),
    setting(
        "net.core.flow_limit_cpu_bitmap",
        SettingScope::OfHost,
        "Processors on which one large flow may not fill the whole backlog.",
    ),
    setting(
        "net.core.gro_normal_batch",
        SettingScope::OfHost,
        "Packets that are handed up the stack together after GRO.",
    ),
    setting(
        "net.core.high_order_alloc_disable",
        SettingScope::OfHost,
        "1 keeps socket buffers from using compound pages.",
    ),
    setting(
        "net.core.mem_pcpu_rsv",
        SettingScope::OfHost,
        "Pages of socket memory that each processor may hold in reserve, per protocol.",
    ),
    setting(
        "net.core.netdev_budget",
        SettingScope::OfHost,
        "Packets that one round of the receive softirq takes from all interfaces.",
    ),
    setting(
        "net.core.netdev_budget_usecs",
        SettingScope::OfHost,
        "Time that one round of the receive softirq may take, in microseconds.",
    ),
    setting(
        "net.core.netdev_max_backlog",
        SettingScope::OfHost,
        "Packets that may wait for a processor after RPS, a tunnel, veth or loopback; NIC queues are not behind it.",
    ),
    setting(
        "net.core.optmem_max",
        SettingScope::OfNamespace,
        "Bytes of control data per socket; zero-copy sending needs it, too.",
    ),
    setting(
        "net.core.rmem_default",
        SettingScope::ReadOnlyInOthers,
        "Receive buffer of new sockets that are not TCP: UDP, raw, unix.",
    ),
    setting(
        "net.core.rmem_max",
        SettingScope::ReadOnlyInOthers,
        "Largest receive buffer that a program may ask for with SO_RCVBUF; the kernel keeps twice of it.",
    ),
    setting(
        "net.core.rps_default_mask",
        SettingScope::OfNamespace,
        "Processors that share the packets of new interfaces' receive queues (RPS).",
    ),
    setting(
        "net.core.rps_sock_flow_entries",
        SettingScope::OfHost,
        "Flows that receive flow steering (RFS) remembers; 0 is off.",
    ),
    setting(
        "net.core.skb_defer_max",
        SettingScope::OfHost,
        "Packet buffers that wait for the processor that allocated them to free them.",
    ),
    setting(
        "net.core.somaxconn",
        SettingScope::OfNamespace,
        "Longest queue of accepted connections that a listening program may ask for.",
    ),
    setting(
        "net.core.wmem_default",
        SettingScope::ReadOnlyInOthers,
        "Send buffer of new sockets that are not TCP: UDP, raw, unix.",
    ),
    setting(
        "net.core.wmem_max",
        SettingScope::ReadOnlyInOthers,
        "Largest send buffer that a program may ask for with SO_SNDBUF; the kernel keeps twice of it.",
    ),
    setting("net.ipv4.ip_forward", SettingScope::OfNamespace, "Whether packets for other hosts are forwarded."),
    setting(
        "net.ipv4.ip_local_port_range",
        SettingScope::OfNamespace,
        "Ports from which connections are opened when the program does not choose one.",
    ),
    setting(
        "net.ipv4.ip_no_pmtu_disc",
        SettingScope::OfNamespace,
        "1 gives up path MTU discovery: every packet may be fragmented, and TCP's shrink.",
    ),
    setting(
        "net.ipv4.ipfrag_high_thresh",
        SettingScope::OfNamespace,
        "Bytes of fragments that wait to be put together.",
    ),
    setting("net.ipv4.ipfrag_low_thresh", SettingScope::OfNamespace, "Without effect since 4.17."),
    setting("net.ipv4.route.max_size", SettingScope::OfHost, "Without effect since the route cache went in 3.6."),
    setting(
        "net.ipv4.tcp_adv_win_scale",
        SettingScope::OfNamespace,
        "Share of a receive buffer that is kept for overhead, as a power of two; without effect since 6.6.",
    ),
    setting(
        "net.ipv4.tcp_allowed_congestion_control",
        SettingScope::OfNamespace,
        "Congestion controls that programs without privilege may choose.",
    ),
    setting(
        "net.ipv4.tcp_app_win",
        SettingScope::OfNamespace,
        "Share of the window that is reserved for the application, as a power of two; 31 is none.",
    ),
    setting(
        "net.ipv4.tcp_autocorking",
        SettingScope::OfNamespace,
        "Whether small writes wait for the packets before them to leave the host.",
    ),
    setting(
        "net.ipv4.tcp_available_congestion_control",
        SettingScope::OfNamespace,
        "Congestion controls that are loaded.",
    ),
    setting(
        "net.ipv4.tcp_backlog_ack_defer",
        SettingScope::OfNamespace,
        "Whether several packets that waited for a lock are acknowledged together.",
    ),
    setting(
        "net.ipv4.tcp_base_mss",
        SettingScope::OfNamespace,
        "Segment size with which MTU probing begins its search, in bytes.",
    ),
    setting(
        "net.ipv4.tcp_comp_sack_delay_ns",
        SettingScope::OfNamespace,
        "Longest time for which selective acknowledgements are held back to be sent together.",
    ),
    setting(
        "net.ipv4.tcp_comp_sack_nr",
        SettingScope::OfNamespace,
        "How many selective acknowledgements may be held back.",
    ),
    setting("net.ipv4.tcp_congestion_control", SettingScope::OfNamespace, "Congestion control of new connections."),
    setting(
        "net.ipv4.tcp_dsack",
        SettingScope::OfNamespace,
        "Whether the receiver reports segments that arrived twice, so that the sender can undo a needless slow-down.",
    ),
    setting(
        "net.ipv4.tcp_early_retrans",
        SettingScope::OfNamespace,
        "Tail loss probes: 3 sends a probe instead of waiting for a time-out, 0 does not.",
    ),
    setting(
        "net.ipv4.tcp_ecn",
        SettingScope::OfNamespace,
        "Explicit congestion notification: 0 never, 1 asks for it, 2 agrees when asked; 3 to 5 with accurate feedback.",
    ),
    setting(
        "net.ipv4.tcp_ecn_fallback",
        SettingScope::OfNamespace,
        "Whether a handshake that fails with ECN is tried without.",
    ),
    setting("net.ipv4.tcp_fack", SettingScope::OfNamespace, "Without effect since 4.15."),
    setting("net.ipv4.tcp_fastopen", SettingScope::OfNamespace, "Data in the first packet: 1 as client, 2 as server."),
    setting(
        "net.ipv4.tcp_fin_timeout",
        SettingScope::OfNamespace,
        "Seconds for which a closed connection waits for the other end's last packet.",
    ),
    setting(
        "net.ipv4.tcp_frto",
        SettingScope::OfNamespace,
        "Whether a time-out that was too early is recognised and undone.",
    ),
    setting(
        "net.ipv4.tcp_limit_output_bytes",
        SettingScope::OfNamespace,
        "Bytes of one connection that may wait in the queueing discipline and the device (TCP small queues).",
    ),
    setting("net.ipv4.tcp_low_latency", SettingScope::OfHost, "Without effect since 4.14."),
    setting("net.ipv4.tcp_max_orphans", SettingScope::OfHost, "Connections without a program that may exist."),
    setting(
        "net.ipv4.tcp_max_reordering",
        SettingScope::OfNamespace,
        "Most packets by which reordering may be tolerated before it counts as loss.",
    ),
    setting(
        "net.ipv4.tcp_max_syn_backlog",
        SettingScope::OfNamespace,
        "Connections that may be half open per listening socket.",
    ),
    setting(
        "net.ipv4.tcp_mem",
        SettingScope::OfHost,
        "Memory of all TCP sockets together in pages: below the first no care, above the second pressure, above the third refused.",
    ),
    setting(
        "net.ipv4.tcp_min_rtt_wlen",
        SettingScope::OfNamespace,
        "Seconds for which the smallest round trip is remembered.",
    ),
    setting(
        "net.ipv4.tcp_min_snd_mss",
        SettingScope::OfNamespace,
        "Smallest segment size that a peer may impose, in bytes.",
    ),
    setting(
        "net.ipv4.tcp_min_tso_segs",
        SettingScope::OfNamespace,
        "Fewest segments of a packet that the device is to cut.",
    ),
    setting(
        "net.ipv4.tcp_moderate_rcvbuf",
        SettingScope::OfNamespace,
        "Whether receive buffers grow with the path (auto-tuning).",
    ),
    setting(
        "net.ipv4.tcp_mtu_probe_floor",
        SettingScope::OfNamespace,
        "Smallest segment size to which MTU probing goes down, in bytes.",
    ),
    setting(
        "net.ipv4.tcp_mtu_probing",
        SettingScope::OfNamespace,
        "Search for the path MTU without ICMP: 0 off, 1 once packets vanish, 2 always.",
    ),
    setting(
        "net.ipv4.tcp_no_metrics_save",
        SettingScope::OfNamespace,
        "1 forgets what a connection learned about its path when it ends.",
    ),
    setting(
        "net.ipv4.tcp_no_ssthresh_metrics_save",
        SettingScope::OfNamespace,
        "1 leaves the slow start threshold out of what is remembered.",
    ),
    setting(
        "net.ipv4.tcp_notsent_lowat",
        SettingScope::OfNamespace,
        "Bytes not yet sent above which a socket is not writable.",
    ),
    setting(
        "net.ipv4.tcp_pacing_ca_ratio",
        SettingScope::OfNamespace,
        "Pacing rate in congestion avoidance, in per cent of window by round trip.",
    ),
    setting(
        "net.ipv4.tcp_pacing_ss_ratio",
        SettingScope::OfNamespace,
        "Pacing rate in slow start, in per cent of window by round trip.",
    ),
    setting(
        "net.ipv4.tcp_rcvbuf_low_rtt",
        SettingScope::OfNamespace,
        "Round trip in microseconds below which receive buffers grow less eagerly.",
    ),
    setting("net.ipv4.tcp_recovery", SettingScope::OfNamespace, "Loss detection by time (RACK): 1 on."),
    setting(
        "net.ipv4.tcp_reordering",
        SettingScope::OfNamespace,
        "Packets that may overtake before the first counts as lost, to begin with.",
    ),
    setting(
        "net.ipv4.tcp_retrans_collapse",
        SettingScope::OfNamespace,
        "Whether small segments are joined when they are retransmitted.",
    ),
    setting(
        "net.ipv4.tcp_retries2",
        SettingScope::OfNamespace,
        "Retransmissions after which a connection is given up.",
    ),
    setting("net.ipv4.tcp_rfc1337", SettingScope::OfNamespace, "Whether resets are ignored in TIME-WAIT."),
    setting(
        "net.ipv4.tcp_rmem",
        SettingScope::OfNamespace,
        "Receive buffer of a connection in bytes: least under memory pressure, at first, most that auto-tuning may take. It \
         holds what the program has not read yet; a program that sets SO_RCVBUF ends its auto-tuning (up to rmem_max).",
    ),
    setting("net.ipv4.tcp_rto_min_us", SettingScope::OfNamespace, "Shortest retransmission time-out in microseconds."),
    setting(
        "net.ipv4.tcp_sack",
        SettingScope::OfNamespace,
        "Selective acknowledgements: the receiver reports the segments it has beyond a hole.",
    ),
    setting(
        "net.ipv4.tcp_shrink_window",
        SettingScope::OfNamespace,
        "Whether an announced window may be reduced when memory runs short.",
    ),
    setting(
        "net.ipv4.tcp_slow_start_after_idle",
        SettingScope::OfNamespace,
        "Whether a connection that was idle starts slowly again.",
    ),
    setting(
        "net.ipv4.tcp_syncookies",
        SettingScope::OfNamespace,
        "Whether connections are accepted without memory when the queue of half-open ones is full.",
    ),
    setting(
        "net.ipv4.tcp_timestamps",
        SettingScope::OfNamespace,
        "Timestamps: round trips of every packet, and protection against wrapped sequence numbers.",
    ),
    setting(
        "net.ipv4.tcp_tso_rtt_log",
        SettingScope::OfNamespace,
        "Round trip below which packets for the device are made larger, as a power of two of microseconds.",
    ),
    setting(
        "net.ipv4.tcp_tso_win_divisor",
        SettingScope::OfNamespace,
        "Share of the window that one packet for the device may have.",
    ),
    setting(
        "net.ipv4.tcp_tw_recycle",
        SettingScope::OfNamespace,
        "Removed in 4.12: it dropped connections of clients behind one address.",
    ),
    setting(
        "net.ipv4.tcp_tw_reuse",
        SettingScope::OfNamespace,
        "Whether a port in TIME-WAIT may be used for a new outgoing connection: 0 no, 1 yes, 2 on loopback.",
    ),
    setting("net.ipv4.tcp_window_scaling", SettingScope::OfNamespace, "Windows above 65535 bytes."),
    setting(
        "net.ipv4.tcp_wmem",
        SettingScope::OfNamespace,
        "Send buffer of a connection in bytes: least under memory pressure, at first, most that auto-tuning may take. It \
         holds what was sent and not yet acknowledged, then what waits; a program that sets SO_SNDBUF ends its \
         auto-tuning (up to wmem_max).",
    ),
    setting(
        "net.ipv4.udp_mem",
        SettingScope::OfHost,
        "Memory of all UDP sockets together in pages: no care, pressure, refused.",
    ),
    setting(
        "net.ipv4.udp_rmem_min",
        SettingScope::OfNamespace,
        "Receive buffer that each UDP socket keeps under memory pressure, in bytes.",
    ),
    setting("net.ipv4.udp_wmem_min", SettingScope::OfNamespace, "Without effect."),
    setting(
        "net.mptcp.blackhole_timeout",
        SettingScope::OfNamespace,
        "Seconds for which MPTCP is not tried again where it was swallowed.",
    ),
    setting("net.mptcp.enabled", SettingScope::OfNamespace, "Whether programs can use MPTCP."),
    setting("net.mptcp.pm_type", SettingScope::OfNamespace, "Path manager of MPTCP: 0 the kernel, 1 a program."),
    setting(
        "net.mptcp.scheduler",
        SettingScope::OfNamespace,
        "Scheduler that selects the MPTCP path of the next data.",
    ),
    setting(
        "net.mptcp.stale_loss_cnt",
        SettingScope::OfNamespace,
        "Time-outs in a row after which a path of MPTCP counts as dead.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_and_found() {
        assert!(CATALOGUE.is_sorted_by(|one, other| one.key < other.key));
        for knob in CATALOGUE {
            assert_eq!(find(knob.key), Some(knob));
            assert!(knob.description.ends_with('.') && knob.key.starts_with("net."), "{knob:?}");
        }
        assert_eq!(find("net.ipv4.tcp.sack"), None);
    }
}
