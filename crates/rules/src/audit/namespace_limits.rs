//! Settings that cannot be changed from a container or network namespace.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::catalogue::{CATALOGUE, SettingScope};

use super::AuditRule;
use super::settings_support::{default_value, host, is_advisable};

const ID: &str = "namespace-limits";
const CITATION: &str = "net/core/sysctl_net_core.c (sysctl_core_net_init); network_namespaces(7); docker run \
                        --sysctl; Kubernetes, Using sysctls in a cluster";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "linerate runs in a network namespace or container: some settings belong to the host.",
    explanation: "A new network namespace copies tcp_rmem, tcp_wmem and the congestion control of the first one; \
    every other TCP setting begins with the kernel's default, whatever files the host has. The total \
    of TCP's memory, the backlog and the limits for programs (rmem_max, wmem_max) belong to the host \
    alone.\n\nMost containers see /proc/sys without write permission: their settings are given when \
    they are started.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || {
        let mut host = host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456")]);
        host.privileges.initial_network_namespace = Fact::Known(false);
        host
    },
    silent: || host(&[("net.ipv4.tcp_rmem", "4096 131072 6291456")]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let rights = &host.privileges;
    let (container, own) = (rights.container.known(), rights.initial_network_namespace.known() == Some(&false));
    if container.is_none() && !own {
        return Vec::new();
    }
    let place = container.map_or_else(|| "a network namespace".to_owned(), |name| format!("a container ({name})"));
    let network = if own { "with a network of its own" } else { "with the host's network" };
    let writable = rights.settings_mounted_for_writing.known() != Some(&false);
    let mut evidence = vec![format!("net.core.netdev_max_backlog {}", if own { "does not exist" } else { "exists" })];
    evidence.extend(container.map(|name| format!("container: {name}")));
    if !writable {
        evidence.push("/proc/sys is mounted read-only".to_owned());
    }
    let of_host = CATALOGUE.iter().filter(|knob| knob.scope != SettingScope::OfNamespace).count();
    vec![AuditFinding {
        notes: Vec::new(),
        rule: ID.to_owned(),
        severity: FindingSeverity::Note,
        subject: "network namespace".to_owned(),
        text: format!(
            "This is {place} {network}: {of_host} settings of the host (tcp_mem, rmem_max, netdev_max_backlog, \
             default_qdisc, ...) can only be changed there{}, and the host's files do not apply here.",
            if writable { "" } else { ", nothing can be written from inside" }
        ),
        evidence,
        source: CITATION.to_owned(),
        risk: "a setting given at a container's start applies to that container only".to_owned(),
        remedy: namespace_commands(host, container.map(String::as_str), own),
        change: None,
    }]
}

/// Commands that set a namespace's own settings, with a value of this one as the example.
fn namespace_commands(host: &HostFacts, container: Option<&str>, own: bool) -> Vec<String> {
    let key = "net.ipv4.tcp_rmem";
    let running = host.settings.value(key).filter(|value| is_advisable(host, key, value)).map(str::to_owned);
    let value = running.or_else(|| default_value(host, key)).unwrap_or_else(|| "4096 131072 33554432".to_owned());
    if container.is_some() && !own {
        return vec![format!("on the host: sysctl -w {key}='{value}' (--sysctl is refused with --network host)")];
    }
    let pod = format!("pod: securityContext: {{sysctls: [{{name: {key}, value: \"{value}\"}}]}}");
    match container {
        Some("docker" | "podman") => {
            vec![format!("{} run --sysctl {key}='{value}' ...", container.unwrap_or_default())]
        }
        Some("kubernetes") => vec![pod, format!("before Kubernetes 1.32: kubelet --allowed-unsafe-sysctls={key}")],
        Some("systemd-nspawn") => {
            vec![format!("systemd-nspawn --private-network ..., then inside: sysctl -w {key}='{value}'")]
        }
        _ => vec![
            format!("in this namespace: sysctl -w {key}='{value}'"),
            format!("docker run --sysctl {key}='{value}' ..."),
            pod,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_container_has_its_syntax() {
        for (kind, own, expected) in [
            ("docker", true, "docker run --sysctl net.ipv4.tcp_rmem='4096 131072 6291456'"),
            ("kubernetes", true, "securityContext"),
            ("systemd-nspawn", true, "--private-network"),
            ("docker", false, "on the host: sysctl -w"),
        ] {
            let mut host = (RULE.fires)();
            host.privileges.container = Fact::Known(kind.to_owned());
            host.privileges.initial_network_namespace = Fact::Known(!own);
            let found = check(&host);
            assert!(found[0].remedy.iter().any(|line| line.contains(expected)), "{kind}: {:?}", found[0].remedy);
        }
    }
}
