//! NFS mount with one connection on a fast link.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::NfsMount;
use linerate_units::BitRate;

use super::AuditRule;
use super::link_support::{FindingDraft, host_with, link, working};

const ID: &str = "nfs-one-connection";
const CITATION: &str = "nfs(5) (nconnect, since Linux 5.3)";
const MIN_LINK_SPEED: BitRate = BitRate::from_bits_per_second(10e9);

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "An NFS mount uses one TCP connection on a fast link.",
    explanation: "All requests of all mounts of one server share one connection, with one receiving processor and one \
        window, and each loss slows all of them. With nconnect there are up to 16. It helps when that one connection \
        is the limit: measure before and after. Mounts of the same server share the connections of the first.",
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

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let mounts = host.applications.nfs_mounts.known().into_iter().flatten();
    let Some((name, speed)) =
        working(host).find_map(|link| Some((&link.name, link.speed_of_at_least(MIN_LINK_SPEED)?)))
    else {
        return Vec::new();
    };
    let single =
        |mount: &&NfsMount| matches!(mount.transport.as_deref(), Some("tcp" | "tcp6")) && mount.connections == Some(1);
    let to_finding = |mount: &NfsMount| {
        let (source, target) = (&mount.source, &mount.target);
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: FindingSeverity::Note,
            subject: target.clone(),
            text: format!("{source} is mounted with one connection, on a host with a link at {speed}."),
            evidence: vec![format!("{source} on {target}: nconnect is not set"), format!("{name}: {speed}")],
            remedy: vec![format!(
                "if one connection is the limit: umount {target}; mount -o nconnect=4 {source} {target}"
            )],
            risk: "programs that use the mount have to be stopped; old servers mix up the order of requests",
        };
        draft.finding()
    };
    mounts.filter(single).map(to_finding).collect()
}
