//! Security context of a Kubernetes pod.

use core::fmt::Write;

use linerate_model::change::HostChange;

use super::{PlanFormat, namespaced, quoted};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "kubernetes",
    title: "the security context of a pod for Kubernetes",
    use_it: "In the pod's manifest. Nodes accept those marked unsafe only with kubelet --allowed-unsafe-sysctls.",
    source: "Kubernetes documentation, \"Using sysctls in a Kubernetes Cluster\"",
    comment: "#",
    takes: namespaced::supports,
    write,
};

/// Safe TCP sysctls, allowed for any pod (`tcp_rmem` and `tcp_wmem` since 1.32).
const SAFE_SYSCTLS: [&str; 7] = [
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

fn write(changes: &[&HostChange]) -> String {
    let mut text = "spec:\n  securityContext:\n    sysctls:\n".to_owned();
    for change in changes {
        let key = namespaced::key(change);
        if !SAFE_SYSCTLS.contains(&key) {
            text.push_str("    # unsafe sysctl (Kubernetes)\n");
        }
        let _ = writeln!(text, "    - name: {key}\n      value: {}", quoted(&change.to));
    }
    text
}
