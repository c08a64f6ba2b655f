//! NFS has one connection on a fast link.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::NfsMount;

use super::Rule;
use super::link_support::{Saying, host_with, link, working};

const ID: &str = "nfs-one-connection";
const CITATION: &str = "nfs(5) (nconnect, since Linux 5.3)";
const FAST: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A mount of NFS uses one TCP connection on a fast link.",
    explanation: "All requests of all mounts of one server share one connection, which one processor receives, one window and one loss hold back. With nconnect there are up to 16. It helps when that one connection is the limit: measure before and after. Mounts of the same server share the connections of the first.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(1),
    silent: || host(4),
};

fn host(connections: u32) -> HostFacts {
    let mount = NfsMount {
        source: "nas:/export".to_owned(),
        target: "/mnt".to_owned(),
        transport: Some("tcp".to_owned()),
        connections: Some(connections),
        ..NfsMount::default()
    };
    let mut host = host_with(vec![link("eth0")]);
    host.applications.nfs_mounts = Fact::Known(vec![mount]);
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let mounts = host.applications.nfs_mounts.known().into_iter().flatten();
    let Some((name, speed)) = working(host).find_map(|link| Some((&link.name, link.at_least_gigabits(FAST)?))) else {
        return Vec::new();
    };
    let single =
        |mount: &&NfsMount| matches!(mount.transport.as_deref(), Some("tcp" | "tcp6")) && mount.connections == Some(1);
    let say = |mount: &NfsMount| {
        let (source, target) = (&mount.source, &mount.target);
        let saying = Saying {
            rule: (ID, CITATION),
            severity: Severity::Note,
            subject: target.clone(),
            text: format!("{source} is mounted with one connection, on a host with a link at {speed}."),
            evidence: vec![format!("{source} on {target}: nconnect is not set"), format!("{name}: {speed}")],
            remedy: vec![format!(
                "if one connection is the limit: umount {target}; mount -o nconnect=4 {source} {target}"
            )],
            risk: "programs that use the mount have to be stopped; old servers mix up the order of requests",
        };
        saying.finding()
    };
    mounts.filter(single).map(say).collect()
}
