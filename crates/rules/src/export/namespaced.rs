//! Which settings a network namespace has of its own, and so a container can be given.

use linerate_model::change::{Change, Target};

/// Settings of `net.core` that exist in each network namespace and can be written there (Linux 6.18).
const CORE: [&str; 5] = ["optmem_max", "rps_default_mask", "somaxconn", "tstamp_allow_data", "txrehash"];

/// Settings named `tcp_` that belong to the host all the same.
const OF_THE_HOST: [&str; 4] = ["tcp_mem", "tcp_max_orphans", "tcp_low_latency", "tcp_available_ulp"];

/// Whether a container can have this of its own.
pub(super) fn takes(change: &Change) -> Result<(), &'static str> {
    let Target::Setting { key } = &change.target else {
        return Err("containers are given settings of the kernel only: set it on the host");
    };
    let is_own = match key.rsplit_once('.') {
        Some(("net.core", name)) => CORE.contains(&name),
        Some(("net.ipv4", name)) => {
            name.starts_with("tcp_") && !OF_THE_HOST.contains(&name)
                || name.starts_with("udp_") && name.ends_with("_min")
        }
        _ => false,
    };
    if is_own { Ok(()) } else { Err("it belongs to the whole host, not to a container: set it there") }
}

/// Its name; nothing for what [`takes`] refuses.
pub(super) fn key(change: &Change) -> &str {
    match &change.target {
        Target::Setting { key } => key,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::change::{Group, Reason, TakesEffect};

    use super::*;

    #[test]
    fn what_a_namespace_has() {
        let is_own = |key: &str| {
            takes(&Change {
                target: Target::Setting { key: key.into() },
                from: None,
                to: "1".into(),
                group: Group::Buffers,
                takes_effect: TakesEffect::Now,
                reason: Reason::default(),
            })
            .is_ok()
        };
        assert!(is_own("net.ipv4.tcp_rmem") && is_own("net.core.somaxconn") && is_own("net.ipv4.udp_rmem_min"));
        assert!(
            !is_own("net.ipv4.tcp_mem") && !is_own("net.core.rmem_max") && !is_own("vm.swappiness") && !is_own("x")
        );
    }
}
