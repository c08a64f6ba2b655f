//! What the settings are that matter to a transfer, each in one sentence, and where its value is kept.
//!
//! After `Documentation/networking/ip-sysctl.rst`, `Documentation/networking/mptcp-sysctl.rst` and
//! `Documentation/admin-guide/sysctl/net.rst` of the kernel; which settings a network namespace has of its own was measured
//! on 6.18 and read in `net/core/sysctl_net_core.c` and `net/ipv4/sysctl_net_ipv4.c` of 6.12.

/// A setting of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// sysctl's name.
    pub key: &'static str,
    /// What it does, in one sentence.
    pub what: &'static str,
    /// Where its value is kept.
    pub scope: Scope,
}

/// Where a setting's value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Each network namespace has its own.
    OfNamespace,
    /// The host has one; other namespaces show it, but cannot write it.
    ReadOnlyInOthers,
    /// The host has one; other namespaces do not show it.
    OfHost,
}

/// The setting of this name.
#[must_use]
pub fn find(key: &str) -> Option<&'static Knob> {
    CATALOGUE.binary_search_by(|knob| knob.key.cmp(key)).ok().map(|index| &CATALOGUE[index])
}

const fn knob(key: &'static str, scope: Scope, what: &'static str) -> Knob {
    Knob { key, what, scope }
}

/// All of them, by name.
pub const CATALOGUE: &[Knob] = &[
    knob(
        "net.core.busy_poll",
        Scope::OfHost,
        "Microseconds that poll() and select() spin on a socket's queue before they sleep; 0 is off.",
    ),
    knob(
        "net.core.busy_read",
        Scope::OfHost,
        "Microseconds that a blocking read spins on a socket's queue before it sleeps; 0 is off.",
    ),
    knob("net.core.default_qdisc", Scope::OfHost, "Queueing discipline of interfaces that come up from now on."),
    knob("net.core.dev_weight", Scope::OfHost, "Packets that one softirq round takes from the backlog of a processor."),
    knob(
        "net.core.flow_limit_cpu_bitmap",
        Scope::OfHost,
        "Processors on which one large flow may not fill the whole backlog.",
    ),
    knob("net.core.gro_normal_batch", Scope::OfHost, "Packets that are handed up the stack together after GRO."),
    knob("net.core.high_order_alloc_disable", Scope::OfHost, "1 keeps socket buffers from using compound pages."),
    knob(
        "net.core.mem_pcpu_rsv",
        Scope::OfHost,
        "Pages of socket memory that each processor may hold in reserve, per protocol.",
    ),
    knob(
        "net.core.netdev_budget",
        Scope::OfHost,
        "Packets that one round of the receive softirq takes from all interfaces.",
    ),
    knob(
        "net.core.netdev_budget_usecs",
        Scope::OfHost,
        "Time that one round of the receive softirq may take, in microseconds.",
    ),
    knob(
        "net.core.netdev_max_backlog",
        Scope::OfHost,
        "Packets that may wait for a processor after RPS, a tunnel, veth or loopback; NIC queues are not behind it.",
    ),
    knob(
        "net.core.optmem_max",
        Scope::OfNamespace,
        "Bytes of control data per socket; zero-copy sending needs it, too.",
    ),
    knob(
        "net.core.rmem_default",
        Scope::ReadOnlyInOthers,
        "Receive buffer of new sockets that are not TCP: UDP, raw, unix.",
    ),
    knob(
        "net.core.rmem_max",
        Scope::ReadOnlyInOthers,
        "Largest receive buffer that a program may ask for with SO_RCVBUF; the kernel keeps twice of it.",
    ),
    knob(
        "net.core.rps_default_mask",
        Scope::OfNamespace,
        "Processors that share the packets of new interfaces' receive queues (RPS).",
    ),
    knob(
        "net.core.rps_sock_flow_entries",
        Scope::OfHost,
        "Flows that receive flow steering (RFS) remembers; 0 is off.",
    ),
    knob(
        "net.core.skb_defer_max",
        Scope::OfHost,
        "Packet buffers that wait for the processor that allocated them to free them.",
    ),
    knob(
        "net.core.somaxconn",
        Scope::OfNamespace,
        "Longest queue of accepted connections that a listening program may ask for.",
    ),
    knob(
        "net.core.wmem_default",
        Scope::ReadOnlyInOthers,
        "Send buffer of new sockets that are not TCP: UDP, raw, unix.",
    ),
    knob(
        "net.core.wmem_max",
        Scope::ReadOnlyInOthers,
        "Largest send buffer that a program may ask for with SO_SNDBUF; the kernel keeps twice of it.",
    ),
    knob("net.ipv4.ip_forward", Scope::OfNamespace, "Whether packets of others are forwarded."),
    knob(
        "net.ipv4.ip_local_port_range",
        Scope::OfNamespace,
        "Ports from which connections are opened when the program does not choose one.",
    ),
    knob(
        "net.ipv4.ip_no_pmtu_disc",
        Scope::OfNamespace,
        "1 gives up path MTU discovery: every packet may be fragmented, and TCP's shrink.",
    ),
    knob("net.ipv4.ipfrag_high_thresh", Scope::OfNamespace, "Bytes of fragments that wait to be put together."),
    knob("net.ipv4.ipfrag_low_thresh", Scope::OfNamespace, "Without effect since 4.17."),
    knob("net.ipv4.route.max_size", Scope::OfHost, "Without effect since the route cache went in 3.6."),
    knob(
        "net.ipv4.tcp_adv_win_scale",
        Scope::OfNamespace,
        "Share of a receive buffer that is kept for overhead, as a power of two; without effect since 6.6.",
    ),
    knob(
        "net.ipv4.tcp_allowed_congestion_control",
        Scope::OfNamespace,
        "Congestion controls that programs without privilege may choose.",
    ),
    knob(
        "net.ipv4.tcp_app_win",
        Scope::OfNamespace,
        "Share of the window that is kept for the application's reading, as a power of two; 31 is none.",
    ),
    knob(
        "net.ipv4.tcp_autocorking",
        Scope::OfNamespace,
        "Whether small writes wait for the packets before them to leave the host.",
    ),
    knob("net.ipv4.tcp_available_congestion_control", Scope::OfNamespace, "Congestion controls that are loaded."),
    knob(
        "net.ipv4.tcp_backlog_ack_defer",
        Scope::OfNamespace,
        "Whether several packets that waited for a lock are acknowledged together.",
    ),
    knob(
        "net.ipv4.tcp_base_mss",
        Scope::OfNamespace,
        "Segment size with which MTU probing begins its search, in bytes.",
    ),
    knob(
        "net.ipv4.tcp_comp_sack_delay_ns",
        Scope::OfNamespace,
        "Longest time for which selective acknowledgements are held back to be sent together.",
    ),
    knob("net.ipv4.tcp_comp_sack_nr", Scope::OfNamespace, "How many selective acknowledgements may be held back."),
    knob("net.ipv4.tcp_congestion_control", Scope::OfNamespace, "Congestion control of new connections."),
    knob(
        "net.ipv4.tcp_dsack",
        Scope::OfNamespace,
        "Whether the receiver says which segments arrived twice, so that the sender can undo a needless slow-down.",
    ),
    knob(
        "net.ipv4.tcp_early_retrans",
        Scope::OfNamespace,
        "Tail loss probes: 3 sends a probe instead of waiting for a time-out, 0 does not.",
    ),
    knob(
        "net.ipv4.tcp_ecn",
        Scope::OfNamespace,
        "Explicit congestion notification: 0 never, 1 asks for it, 2 agrees when asked; 3 to 5 with accurate feedback.",
    ),
    knob("net.ipv4.tcp_ecn_fallback", Scope::OfNamespace, "Whether a handshake that fails with ECN is tried without."),
    knob("net.ipv4.tcp_fack", Scope::OfNamespace, "Without effect since 4.15."),
    knob("net.ipv4.tcp_fastopen", Scope::OfNamespace, "Data in the first packet: 1 as client, 2 as server."),
    knob(
        "net.ipv4.tcp_fin_timeout",
        Scope::OfNamespace,
        "Seconds for which a closed connection waits for the other end's last packet.",
    ),
    knob("net.ipv4.tcp_frto", Scope::OfNamespace, "Whether a time-out that was too early is recognised and undone."),
    knob(
        "net.ipv4.tcp_limit_output_bytes",
        Scope::OfNamespace,
        "Bytes of one connection that may wait in the queueing discipline and the device (TCP small queues).",
    ),
    knob("net.ipv4.tcp_low_latency", Scope::OfHost, "Without effect since 4.14."),
    knob("net.ipv4.tcp_max_orphans", Scope::OfHost, "Connections without a program that may exist."),
    knob(
        "net.ipv4.tcp_max_reordering",
        Scope::OfNamespace,
        "Most packets by which reordering may be tolerated before it counts as loss.",
    ),
    knob("net.ipv4.tcp_max_syn_backlog", Scope::OfNamespace, "Connections that may be half open per listening socket."),
    knob(
        "net.ipv4.tcp_mem",
        Scope::OfHost,
        "Memory of all TCP sockets together in pages: below the first no care, above the second pressure, above the third refused.",
    ),
    knob("net.ipv4.tcp_min_rtt_wlen", Scope::OfNamespace, "Seconds for which the smallest round trip is remembered."),
    knob("net.ipv4.tcp_min_snd_mss", Scope::OfNamespace, "Smallest segment size that a peer may impose, in bytes."),
    knob("net.ipv4.tcp_min_tso_segs", Scope::OfNamespace, "Fewest segments of a packet that the device is to cut."),
    knob(
        "net.ipv4.tcp_moderate_rcvbuf",
        Scope::OfNamespace,
        "Whether receive buffers grow with the path (auto-tuning).",
    ),
    knob(
        "net.ipv4.tcp_mtu_probe_floor",
        Scope::OfNamespace,
        "Smallest segment size to which MTU probing goes down, in bytes.",
    ),
    knob(
        "net.ipv4.tcp_mtu_probing",
        Scope::OfNamespace,
        "Search for the path MTU without ICMP: 0 off, 1 once packets vanish, 2 always.",
    ),
    knob(
        "net.ipv4.tcp_no_metrics_save",
        Scope::OfNamespace,
        "1 forgets what a connection learned about its path when it ends.",
    ),
    knob(
        "net.ipv4.tcp_no_ssthresh_metrics_save",
        Scope::OfNamespace,
        "1 leaves the slow start threshold out of what is remembered.",
    ),
    knob("net.ipv4.tcp_notsent_lowat", Scope::OfNamespace, "Bytes not yet sent above which a socket is not writable."),
    knob(
        "net.ipv4.tcp_pacing_ca_ratio",
        Scope::OfNamespace,
        "Pacing rate in congestion avoidance, in per cent of window by round trip.",
    ),
    knob(
        "net.ipv4.tcp_pacing_ss_ratio",
        Scope::OfNamespace,
        "Pacing rate in slow start, in per cent of window by round trip.",
    ),
    knob(
        "net.ipv4.tcp_rcvbuf_low_rtt",
        Scope::OfNamespace,
        "Round trip in microseconds below which receive buffers grow less eagerly.",
    ),
    knob("net.ipv4.tcp_recovery", Scope::OfNamespace, "Loss detection by time (RACK): 1 on."),
    knob(
        "net.ipv4.tcp_reordering",
        Scope::OfNamespace,
        "Packets that may overtake before the first counts as lost, to begin with.",
    ),
    knob(
        "net.ipv4.tcp_retrans_collapse",
        Scope::OfNamespace,
        "Whether small segments are joined when they are sent again.",
    ),
    knob("net.ipv4.tcp_retries2", Scope::OfNamespace, "Retransmissions after which a connection is given up."),
    knob("net.ipv4.tcp_rfc1337", Scope::OfNamespace, "Whether resets are ignored in TIME-WAIT."),
    knob(
        "net.ipv4.tcp_rmem",
        Scope::OfNamespace,
        "Receive buffer of a connection in bytes: least under memory pressure, at first, most that auto-tuning may take.",
    ),
    knob("net.ipv4.tcp_rto_min_us", Scope::OfNamespace, "Shortest retransmission time-out in microseconds."),
    knob(
        "net.ipv4.tcp_sack",
        Scope::OfNamespace,
        "Selective acknowledgements: the receiver says which segments it has beyond a hole.",
    ),
    knob(
        "net.ipv4.tcp_shrink_window",
        Scope::OfNamespace,
        "Whether an announced window may be taken back when memory runs short.",
    ),
    knob(
        "net.ipv4.tcp_slow_start_after_idle",
        Scope::OfNamespace,
        "Whether a connection that was idle starts slowly again.",
    ),
    knob(
        "net.ipv4.tcp_syncookies",
        Scope::OfNamespace,
        "Whether connections are accepted without memory when the queue of half-open ones is full.",
    ),
    knob(
        "net.ipv4.tcp_timestamps",
        Scope::OfNamespace,
        "Timestamps: round trips of every packet, and protection against wrapped sequence numbers.",
    ),
    knob(
        "net.ipv4.tcp_tso_rtt_log",
        Scope::OfNamespace,
        "Round trip below which packets for the device are made larger, as a power of two of microseconds.",
    ),
    knob(
        "net.ipv4.tcp_tso_win_divisor",
        Scope::OfNamespace,
        "Share of the window that one packet for the device may have.",
    ),
    knob(
        "net.ipv4.tcp_tw_recycle",
        Scope::OfNamespace,
        "Removed in 4.12: it dropped connections of clients behind one address.",
    ),
    knob(
        "net.ipv4.tcp_tw_reuse",
        Scope::OfNamespace,
        "Whether a port in TIME-WAIT may be used for a new outgoing connection: 0 no, 1 yes, 2 on loopback.",
    ),
    knob("net.ipv4.tcp_window_scaling", Scope::OfNamespace, "Windows above 65535 bytes."),
    knob(
        "net.ipv4.tcp_wmem",
        Scope::OfNamespace,
        "Send buffer of a connection in bytes: least under memory pressure, at first, most that auto-tuning may take.",
    ),
    knob("net.ipv4.udp_mem", Scope::OfHost, "Memory of all UDP sockets together in pages: no care, pressure, refused."),
    knob(
        "net.ipv4.udp_rmem_min",
        Scope::OfNamespace,
        "Receive buffer that each UDP socket keeps under memory pressure, in bytes.",
    ),
    knob("net.ipv4.udp_wmem_min", Scope::OfNamespace, "Without effect."),
    knob(
        "net.mptcp.blackhole_timeout",
        Scope::OfNamespace,
        "Seconds for which MPTCP is not tried again where it was swallowed.",
    ),
    knob("net.mptcp.enabled", Scope::OfNamespace, "Whether programs can use MPTCP."),
    knob("net.mptcp.pm_type", Scope::OfNamespace, "Who manages MPTCP's paths: 0 the kernel, 1 a program."),
    knob("net.mptcp.scheduler", Scope::OfNamespace, "Which of MPTCP's paths the next data takes."),
    knob(
        "net.mptcp.stale_loss_cnt",
        Scope::OfNamespace,
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
            assert!(knob.what.ends_with('.') && knob.key.starts_with("net."), "{knob:?}");
        }
        assert_eq!(find("net.ipv4.tcp.sack"), None);
    }
}
