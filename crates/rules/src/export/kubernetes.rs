//! The security context of a pod.

use core::fmt::Write;

use linerate_model::change::Change;

use super::{Format, namespaced, quoted};

pub(super) const FORMAT: Format = Format {
    name: "kubernetes",
    title: "the security context of a pod for Kubernetes",
    use_it: "In the pod's manifest. Nodes let pods have those that are marked only with kubelet --allowed-unsafe-sysctls.",
    source: "Kubernetes documentation, \"Using sysctls in a Kubernetes Cluster\"",
    comment: "#",
    takes: namespaced::takes,
    write,
};

/// Those of TCP that any pod may have (`tcp_rmem` and `tcp_wmem` since 1.32).
const SAFE: [&str; 7] = [
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

fn write(changes: &[&Change]) -> String {
    let mut text = "spec:\n  securityContext:\n    sysctls:\n".to_owned();
    for change in changes {
        let key = namespaced::key(change);
        if !SAFE.contains(&key) {
            text.push_str("    # unsafe, in Kubernetes' words\n");
        }
        let _ = writeln!(text, "    - name: {key}\n      value: {}", quoted(&change.to));
    }
    text
}
