//! Kernel settings of a namespace, and those of the whole system.

use linerate_units::ByteCount;

/// Settings of the whole system: in Linux 6.12 they exist in the initial namespace only, or can only be written there
/// (determined by listing `/proc/sys/net` in both). Entries that end with a dot or an underscore are prefixes.
const SYSTEM_WIDE: [&str; 36] = [
    "net.core.busy_",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.dev_weight_",
    "net.core.devconf_inherit_init_net",
    "net.core.fb_tunnels_only_for_init_net",
    "net.core.flow_limit_",
    "net.core.gro_normal_batch",
    "net.core.high_order_alloc_disable",
    "net.core.max_skb_frags",
    "net.core.mem_pcpu_rsv",
    "net.core.message_",
    "net.core.netdev_",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.skb_defer_max",
    "net.core.tstamp_allow_data",
    "net.core.warnings",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.fib_sync_mem",
    "net.ipv4.inet_peer_",
    "net.ipv4.ipfrag_secret_interval",
    "net.ipv4.neigh.default.",
    "net.ipv4.route.error_",
    "net.ipv4.route.gc_",
    "net.ipv4.route.max_size",
    "net.ipv4.route.redirect_",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv6.ip6frag_secret_interval",
    "net.ipv6.mld_",
    "net.ipv6.neigh.default.",
];

/// Value of Linux 6.12 on a machine with enough memory; the kernel's own default would depend on the guest's memory.
pub(crate) const DEFAULT_TCP_RMEM: &str = "4096 131072 6291456";

/// As [`DEFAULT_TCP_RMEM`], for sending.
pub(crate) const DEFAULT_TCP_WMEM: &str = "4096 16384 4194304";

/// `net.core.rmem_max` and `wmem_max` before Linux 6.18: the cap on `SO_RCVBUF` and `SO_SNDBUF`.
pub(crate) const DEFAULT_SOCKET_BUFFER: &str = "212992";

/// True when `key` is one setting for the whole system.
pub(crate) fn is_system_wide(key: &str) -> bool {
    SYSTEM_WIDE.iter().any(|prefix| {
        let is_group = prefix.ends_with(['_', '.']);
        if is_group { key.starts_with(prefix) } else { key == *prefix }
    })
}

/// Remedy for a setting that the lab derives from another key of the description.
pub(crate) fn reserved_key_remedy(key: &str) -> Option<&'static str> {
    match key {
        "net.ipv4.tcp_congestion_control" => Some("write congestion_control = \"NAME\" in the host's table"),
        "net.ipv4.tcp_allowed_congestion_control" => Some("remove it: every congestion control in use is allowed"),
        "net.ipv4.ip_forward" | "net.ipv6.conf.all.forwarding" => {
            Some("remove it: routers forward, near and far do not")
        }
        _ => None,
    }
}

/// True when `key` holds three ascending numbers that the lab itself reads.
pub(crate) fn is_triple(key: &str) -> bool {
    matches!(key, "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" | "net.ipv4.tcp_mem" | "net.ipv4.udp_mem")
}

/// True when `key` holds a size that the lab itself reads.
pub(crate) fn is_size(key: &str) -> bool {
    matches!(key, "net.core.rmem_max" | "net.core.wmem_max" | "net.core.rmem_default" | "net.core.wmem_default")
}

/// Three whole numbers, none smaller than the one before, none above the kernel's `int`.
pub(crate) fn triple(value: &str) -> Option<[ByteCount; 3]> {
    let numbers: Vec<u64> = value.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers.as_slice() {
        &[low, middle, high] if low > 0 && low <= middle && middle <= high && i32::try_from(high).is_ok() => {
            Some([low, middle, high].map(ByteCount::new))
        }
        _ => None,
    }
}
