//! Pods of Kubernetes.

use core::fmt::Write;

use linerate_model::change::HostChange;

use super::text::{comment, unique_names, yaml_document, yaml_quoted};
use super::{ExportedFile, HostChanges, PlanFormat, namespaced};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "kubernetes",
    title: "a pod on each host for Kubernetes",
    use_it: "`kubectl apply -f linerate-pods.yaml` (Kubernetes 1.32 or later) starts pods with these settings; a pod's \
             settings hold for its own containers, so add those of the workload.",
    source: "Kubernetes documentation, \"Using sysctls in a Kubernetes Cluster\"",
    takes: supports,
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

/// Image of the container that every pod has anyway: it only waits.
const IMAGE: &str = "registry.k8s.io/pause:3.10";

/// Maximum length of label values and of names.
const MAX_LABEL_LENGTH: usize = 63;

fn supports(change: &HostChange) -> Result<(), &'static str> {
    namespaced::supports(change)?;
    if SAFE_SYSCTLS.contains(&namespaced::key(change)) {
        return Ok(());
    }
    Err("an unsafe sysctl for Kubernetes: nodes refuse the pod without kubelet --allowed-unsafe-sysctls")
}

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    let names = unique_names(hosts.iter().map(|host| object_name(host.host)), MAX_LABEL_LENGTH);
    let pods: String = hosts.iter().zip(&names).map(|(host, name)| pod(host, name)).collect();
    let names: Vec<&str> = hosts.iter().map(|host| host.host).collect();
    vec![ExportedFile { hosts: names.join(", "), name: "linerate-pods.yaml".to_owned(), text: yaml_document(&pods) }]
}

fn pod(host: &HostChanges<'_>, name: &str) -> String {
    let mut text = format!("---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n");
    if is_label(host.host) {
        let _ = writeln!(text, "  nodeSelector:\n    kubernetes.io/hostname: {}", yaml_quoted(host.host));
    } else {
        text.push_str(&comment(2, &format!("\"{}\" is no node's label: add a nodeSelector.", host.host)));
    }
    text.push_str("  securityContext:\n    sysctls:\n");
    for change in &host.changes {
        let _ = writeln!(text, "      - name: {}\n        value: {}", namespaced::key(change), yaml_quoted(&change.to));
    }
    let _ = writeln!(text, "  containers:\n    - name: pause\n      image: {IMAGE}");
    text
}

/// Checks if a host's name can be the value of a label.
fn is_label(name: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    name.len() <= MAX_LABEL_LENGTH
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        && is_end(name.bytes().next())
        && is_end(name.bytes().last())
}

/// Returns a valid name of an object.
fn object_name(host: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = format!("linerate-{host}").chars().map(plain).take(MAX_LABEL_LENGTH).collect();
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_become_valid_names() {
        for (host, name, label) in [
            ("far", "linerate-far", true),
            ("DB_1.example.com", "linerate-db-1-example-com", true),
            ("2001:db8::1", "linerate-2001-db8--1", false),
            ("", "linerate", false),
            ("-", "linerate", false),
        ] {
            assert_eq!((object_name(host).as_str(), is_label(host)), (name, label), "{host:?}");
        }
        let long = "x".repeat(64);
        assert_eq!((object_name(&long).len(), is_label(&long)), (63, false));
    }
}
