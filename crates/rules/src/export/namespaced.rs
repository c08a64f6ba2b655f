//! Settings that each network namespace has, and that a container can therefore set.

use linerate_model::change::{ChangeTarget, HostChange};

/// `net.core` settings that exist in each network namespace and are writable there (Linux 6.18).
const NAMESPACED_CORE_SETTINGS: [&str; 5] =
    ["optmem_max", "rps_default_mask", "somaxconn", "tstamp_allow_data", "txrehash"];

/// Settings named `tcp_` that belong to the host nevertheless.
const HOST_TCP_SETTINGS: [&str; 4] = ["tcp_mem", "tcp_max_orphans", "tcp_low_latency", "tcp_available_ulp"];

/// Checks if a container can set this itself; returns the reason otherwise.
pub(super) fn supports(change: &HostChange) -> Result<(), &'static str> {
    let ChangeTarget::Setting { key } = &change.target else {
        return Err("containers support only kernel settings: set it on the host");
    };
    let is_own = match key.rsplit_once('.') {
        Some(("net.core", name)) => NAMESPACED_CORE_SETTINGS.contains(&name),
        Some(("net.ipv4", name)) => {
            name.starts_with("tcp_") && !HOST_TCP_SETTINGS.contains(&name)
                || name.starts_with("udp_") && name.ends_with("_min")
        }
        _ => false,
    };
    if is_own { Ok(()) } else { Err("it belongs to the whole host, not to a container: set it on the host") }
}

/// Returns the setting's name; empty for changes that [`supports`] refuses.
pub(super) fn key(change: &HostChange) -> &str {
    match &change.target {
        ChangeTarget::Setting { key } => key,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::change::{ChangeGroup, ChangeReason, EffectTiming};

    use super::*;

    #[test]
    fn settings_of_a_namespace() {
        let is_own = |key: &str| {
            supports(&HostChange {
                target: ChangeTarget::Setting { key: key.into() },
                from: None,
                to: "1".into(),
                group: ChangeGroup::Buffers,
                takes_effect: EffectTiming::Now,
                reason: ChangeReason::default(),
            })
            .is_ok()
        };
        assert!(is_own("net.ipv4.tcp_rmem") && is_own("net.core.somaxconn") && is_own("net.ipv4.udp_rmem_min"));
        assert!(
            !is_own("net.ipv4.tcp_mem") && !is_own("net.core.rmem_max") && !is_own("vm.swappiness") && !is_own("x")
        );
    }
}
