//! Defaults of kernel settings, by kernel version and memory of the host.
//!
//! Values of kernel.org's kernels for 64-bit machines; a distribution may set others, by patch or by a file in
//! `/usr/lib`.
//!
//! * `tcp_rmem`, `tcp_wmem`, `tcp_mem`: `tcp_init` and `tcp_init_mem` in `net/ipv4/tcp.c`; the default maximum of
//!   `tcp_rmem` was raised from 6 to 32 MiB in 6.16 (commit 572be9bf9d0d).
//!   The second number of `tcp_rmem` was 87380 before 4.20 (a337531b942b). The first number of both buffers was 4096
//!   (`SK_MEM_QUANTUM`) before 6.0, and is the page size since. `tcp_mem` was an eighth of the memory before 4.2.
//! * `tcp_limit_output_bytes`: `tcp_sk_init` in `net/ipv4/tcp_ipv4.c`; from 1 to 4 MiB in 6.16 (commit 9ea3bfa61b09).
//! * `rmem_max`, `wmem_max`: `include/net/sock.h`; from 212 992 bytes to 4 MiB in 6.18 (commit a6d4f25888b8).
//! * all others: `tcp_sk_init` of 6.12.
//!
//! The kernel counts the memory beyond the zones' high watermarks (`nr_free_buffer_pages`); `MemTotal` is less than one
//! per cent more on current machines, so values derived from it are approximate ([`KernelDefault::exact`]).

use super::kernel::KernelVersion;
use super::kernel_change::{INITIAL_RECEIVE_BUFFER, LARGER_RECEIVE_BUFFER};
use super::memory::HostMemory;

/// Default of a kernel setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDefault {
    /// Value as the setting shows it.
    pub value: String,
    /// False when the value is approximate by some per cent because of the way the kernel counts its memory.
    pub exact: bool,
    /// Derivation in one sentence without a full stop.
    pub reason: String,
}

const MEBIBYTE: u64 = 1 << 20;
/// `SOCK_MIN_*`: 256 packets of 256 bytes with their overhead.
const CORE_BUFFER: u64 = 212_992;

/// Oldest version whose defaults are known here.
const OLDEST_VERSION: KernelVersion = KernelVersion::new(3, 10);

/// Default of a setting in this kernel version on a host with this memory; `None` where it is not known here.
#[must_use]
pub fn default_of(key: &str, version: KernelVersion, memory: &HostMemory) -> Option<KernelDefault> {
    match key {
        _ if version < OLDEST_VERSION => None,
        "net.ipv4.tcp_rmem" => receive_buffer(version, memory),
        "net.ipv4.tcp_wmem" => send_buffer(version, memory),
        "net.ipv4.tcp_mem" => memory_limits(memory, if version < KernelVersion::new(4, 2) { 8 } else { 16 }, 128),
        "net.ipv4.udp_mem" => memory_limits(memory, 8, 128),
        _ => default_by_version(key, version).or_else(|| fixed_default(key, version)),
    }
}

/// `max(128 KiB, min(6 or 32 MiB, memory / 128))`.
fn receive_buffer(version: KernelVersion, memory: &HostMemory) -> Option<KernelDefault> {
    let most = if version >= LARGER_RECEIVE_BUFFER.since { 32 } else { 6 };
    let since = if most == 32 { "since 6.16" } else { "until 6.15" };
    let first = if version >= INITIAL_RECEIVE_BUFFER.since { 131_072 } else { 87_380 };
    let least = least_buffer(version, memory)?;
    let (largest, exact, why) = capped_memory_share(memory, most)?;
    let largest = largest.max(first);
    let reason = format!("the most is {most} MiB {since}, and at most 1/128 of the memory: {why}");
    Some(KernelDefault { value: format!("{least} {first} {largest}"), exact, reason })
}

/// `max(64 KiB, min(4 MiB, memory / 128))`.
fn send_buffer(version: KernelVersion, memory: &HostMemory) -> Option<KernelDefault> {
    let least = least_buffer(version, memory)?;
    let (largest, exact, why) = capped_memory_share(memory, 4)?;
    let reason = format!("the most is 4 MiB, and at most 1/128 of the memory: {why}");
    Some(KernelDefault { value: format!("{least} 16384 {}", largest.max(65_536)), exact, reason })
}

/// First number of both buffers.
fn least_buffer(version: KernelVersion, memory: &HostMemory) -> Option<u64> {
    let page = memory.page_size.known()?.get();
    Some(if version < KernelVersion::new(6, 0) { 4096 } else { page })
}

/// Smaller of `mebibytes` and 1/128 of the memory; whether that is exact, and which of the two it was.
fn capped_memory_share(memory: &HostMemory, mebibytes: u64) -> Option<(u64, bool, String)> {
    let total = memory.total.known()?;
    let by_memory = total.get() / 128;
    let most = mebibytes * MEBIBYTE;
    // Within two per cent of the step, the uncounted pages decide.
    let clear = by_memory > most + most / 50;
    let why = if clear { format!("{total} are enough for all of it") } else { format!("{total} / 128") };
    Some((by_memory.min(most), clear, why))
}

/// `limit = memory in pages / divisor`; three quarters, the whole, and one and a half of it.
fn memory_limits(memory: &HostMemory, divisor: u64, least: u64) -> Option<KernelDefault> {
    let total = memory.total.known()?;
    let pages = total.get().checked_div(memory.page_size.known()?.get())?;
    let limit = (pages / divisor).max(least);
    let low = limit / 4 * 3;
    let reason = format!("in pages: 3/4, 1 and 3/2 of 1/{divisor} of the memory ({total})");
    Some(KernelDefault { value: format!("{low} {limit} {}", low * 2), exact: false, reason })
}

fn default_by_version(key: &str, version: KernelVersion) -> Option<KernelDefault> {
    let since = |major, minor, new: u64, old: u64| {
        let (value, relation) =
            if version >= KernelVersion::new(major, minor) { (new, "since") } else { (old, "before") };
        Some(KernelDefault { value: value.to_string(), exact: true, reason: format!("{relation} {major}.{minor}") })
    };
    match key {
        "net.core.rmem_max" | "net.core.wmem_max" => since(6, 18, 4 * MEBIBYTE, CORE_BUFFER),
        "net.ipv4.tcp_limit_output_bytes" if version >= KernelVersion::new(5, 0) => {
            since(6, 16, 4 * MEBIBYTE, MEBIBYTE)
        }
        // Raised between 6.1 and 6.12; the lower value is assumed in between.
        "net.core.optmem_max" if version >= KernelVersion::new(6, 12) || version <= KernelVersion::new(6, 1) => {
            since(6, 12, 131_072, 20_480)
        }
        "net.core.somaxconn" => since(5, 4, 4096, 128),
        _ => None,
    }
}

/// Settings whose default is constant within the supported versions (5.4 and later).
fn fixed_default(key: &str, version: KernelVersion) -> Option<KernelDefault> {
    let value = FIXED.iter().find(|(known, _)| *known == key)?.1;
    let reason = "the same in every version since 5.4 that has it".to_owned();
    (version >= KernelVersion::new(5, 4)).then(|| KernelDefault { value: value.to_owned(), exact: true, reason })
}

const FIXED: &[(&str, &str)] = &[
    ("net.core.busy_poll", "0"),
    ("net.core.busy_read", "0"),
    ("net.core.dev_weight", "64"),
    ("net.core.gro_normal_batch", "8"),
    ("net.core.high_order_alloc_disable", "0"),
    ("net.core.netdev_budget", "300"),
    ("net.core.netdev_max_backlog", "1000"),
    ("net.core.rmem_default", "212992"),
    ("net.core.rps_sock_flow_entries", "0"),
    ("net.core.wmem_default", "212992"),
    ("net.ipv4.ip_local_port_range", "32768 60999"),
    ("net.ipv4.ip_no_pmtu_disc", "0"),
    ("net.ipv4.tcp_adv_win_scale", "1"),
    ("net.ipv4.tcp_app_win", "31"),
    ("net.ipv4.tcp_autocorking", "1"),
    ("net.ipv4.tcp_base_mss", "1024"),
    ("net.ipv4.tcp_comp_sack_delay_ns", "1000000"),
    ("net.ipv4.tcp_comp_sack_nr", "44"),
    ("net.ipv4.tcp_dsack", "1"),
    ("net.ipv4.tcp_early_retrans", "3"),
    ("net.ipv4.tcp_ecn", "2"),
    ("net.ipv4.tcp_ecn_fallback", "1"),
    ("net.ipv4.tcp_fastopen", "1"),
    ("net.ipv4.tcp_fin_timeout", "60"),
    ("net.ipv4.tcp_frto", "2"),
    ("net.ipv4.tcp_max_reordering", "300"),
    ("net.ipv4.tcp_min_rtt_wlen", "300"),
    ("net.ipv4.tcp_min_snd_mss", "48"),
    ("net.ipv4.tcp_min_tso_segs", "2"),
    ("net.ipv4.tcp_moderate_rcvbuf", "1"),
    ("net.ipv4.tcp_mtu_probe_floor", "48"),
    ("net.ipv4.tcp_mtu_probing", "0"),
    ("net.ipv4.tcp_no_metrics_save", "0"),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", "1"),
    ("net.ipv4.tcp_notsent_lowat", "4294967295"),
    ("net.ipv4.tcp_pacing_ca_ratio", "120"),
    ("net.ipv4.tcp_pacing_ss_ratio", "200"),
    ("net.ipv4.tcp_recovery", "1"),
    ("net.ipv4.tcp_reordering", "3"),
    ("net.ipv4.tcp_retrans_collapse", "1"),
    ("net.ipv4.tcp_retries2", "15"),
    ("net.ipv4.tcp_rfc1337", "0"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_shrink_window", "0"),
    ("net.ipv4.tcp_slow_start_after_idle", "1"),
    ("net.ipv4.tcp_syncookies", "1"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_tso_rtt_log", "9"),
    ("net.ipv4.tcp_tso_win_divisor", "3"),
    ("net.ipv4.tcp_tw_reuse", "2"),
    ("net.ipv4.tcp_window_scaling", "1"),
];

#[cfg(test)]
mod tests {
    use linerate_units::ByteCount;
    use proptest::prelude::*;

    use super::*;
    use crate::fact::Fact;
    use crate::host::settings::numbers;

    fn memory(mebibytes: u64) -> HostMemory {
        HostMemory {
            total: Fact::Known(ByteCount::from_mebibytes(mebibytes)),
            page_size: Fact::Known(ByteCount::new(4096)),
            ..HostMemory::default()
        }
    }

    fn value(key: &str, version: (u32, u32), mebibytes: u64) -> Option<String> {
        default_of(key, KernelVersion::new(version.0, version.1), &memory(mebibytes)).map(|default| default.value)
    }

    #[test]
    fn versions_of_2025_raised_three_of_them() {
        let large = 16 * 1024;
        for (key, version, expected) in [
            ("net.ipv4.tcp_rmem", (6, 15), "4096 131072 6291456"),
            ("net.ipv4.tcp_rmem", (6, 16), "4096 131072 33554432"),
            ("net.ipv4.tcp_wmem", (6, 18), "4096 16384 4194304"),
            ("net.ipv4.tcp_limit_output_bytes", (6, 12), "1048576"),
            ("net.ipv4.tcp_limit_output_bytes", (6, 16), "4194304"),
            ("net.core.rmem_max", (6, 17), "212992"),
            ("net.core.wmem_max", (6, 18), "4194304"),
            ("net.ipv4.tcp_sack", (6, 1), "1"),
        ] {
            assert_eq!(value(key, version, large).as_deref(), Some(expected), "{key} {version:?}");
        }
        assert_eq!(value("net.ipv4.no_such_thing", (6, 12), large), None);
    }

    #[test]
    fn old_kernels_and_large_pages_have_other_values() {
        let large = 16 * 1024;
        for (key, version, expected) in [
            ("net.ipv4.tcp_rmem", (4, 19), Some("4096 87380 6291456")),
            ("net.ipv4.tcp_rmem", (4, 20), Some("4096 131072 6291456")),
            ("net.ipv4.tcp_mem", (4, 1), Some("393216 524288 786432")),
            ("net.ipv4.tcp_mem", (4, 2), Some("196608 262144 393216")),
            ("net.ipv4.tcp_rmem", (3, 10), Some("4096 87380 6291456")),
            ("net.ipv4.tcp_rmem", (3, 9), None),
            ("net.ipv4.tcp_wmem", (3, 9), None),
        ] {
            assert_eq!(value(key, version, large).as_deref(), expected, "{key} {version:?}");
        }
        let pages = HostMemory { page_size: Fact::Known(ByteCount::from_kibibytes(64)), ..memory(large) };
        for (key, old, new) in [
            ("net.ipv4.tcp_rmem", "4096 131072 6291456", "65536 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304", "65536 16384 4194304"),
        ] {
            let of = |major, minor| default_of(key, KernelVersion::new(major, minor), &pages).map(|one| one.value);
            assert_eq!((of(5, 19).as_deref(), of(6, 0).as_deref()), (Some(old), Some(new)));
        }
    }

    #[test]
    fn small_machines_get_less() {
        // 256 MiB / 128 = 2 MiB, whatever the version.
        assert_eq!(value("net.ipv4.tcp_rmem", (6, 16), 256).as_deref(), Some("4096 131072 2097152"));
        assert_eq!(value("net.ipv4.tcp_wmem", (6, 16), 256).as_deref(), Some("4096 16384 2097152"));
        assert_eq!(value("net.ipv4.tcp_rmem", (6, 16), 8).as_deref(), Some("4096 131072 131072"));
        assert_eq!(default_of("net.ipv4.tcp_rmem", KernelVersion::new(6, 16), &HostMemory::default()), None);
    }

    /// A machine of 24 684 096 kB of which the kernel counted 6 141 904 pages: 0.5 % less.
    #[test]
    fn the_total_is_near() {
        let mut memory = memory(1);
        memory.total = Fact::Known(ByteCount::from_kibibytes(24_684_096));
        let default = default_of("net.ipv4.tcp_mem", KernelVersion::new(6, 18), &memory).expect("known");
        let computed = numbers(&default.value).expect("numbers");
        for (computed, real) in computed.into_iter().zip([287_901_i64, 383_869, 575_802]) {
            assert!(computed >= real && computed - real < real / 100, "{computed} {real}");
        }
        assert!(!default.exact);
    }

    proptest! {
        #[test]
        fn defaults_grow_with_memory_and_version(less in 1_u64..2_000_000, more in 1_u64..2_000_000) {
            let (less, more) = (less.min(more), less.max(more));
            for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.udp_mem"] {
                let of = |version, mebibytes| numbers(&value(key, version, mebibytes).expect("known")).expect("numbers");
                let (small, large, new) = (of((6, 1), less), of((6, 1), more), of((6, 18), more));
                prop_assert!(small.is_sorted() && large.is_sorted() && new.is_sorted());
                prop_assert!(small.iter().zip(&large).all(|(small, large)| small <= large));
                prop_assert!(large.iter().zip(&new).all(|(large, new)| large <= new));
            }
        }
    }
}
