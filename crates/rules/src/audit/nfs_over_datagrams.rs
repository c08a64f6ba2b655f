//! File systems mounted by NFS over UDP.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::NfsMount;

use super::AuditRule;
use super::link_support::FindingDraft;

const ID: &str = "nfs-over-datagrams";
const CITATION: &str = "nfs(5) (\"Using NFS over UDP on high-speed links\"); RFC 4963; fs/nfs/Kconfig \
                        (NFS_DISABLE_UDP_SUPPORT)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A file system is mounted by NFS over UDP.",
    explanation: "Each request and answer is one datagram that is cut into fragments; one lost fragment loses all. \
        There is no congestion control. At gigabit speeds the 16-bit identification of fragments repeats within \
        seconds, and fragments of different datagrams can be reassembled to wrong data that the checksum does not \
        catch. Servers with current nfs-utils do not offer it by default, and Linux clients can be built without it since \
        5.6.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host("udp"),
    silent: || host("tcp"),
};

fn host(transport: &str) -> HostFacts {
    let mount = NfsMount {
        source: "nas:/export".to_owned(),
        target: "/mnt".to_owned(),
        version: Some("3".to_owned()),
        transport: Some(transport.to_owned()),
        ..NfsMount::default()
    };
    let mut host = HostFacts::default();
    host.applications.nfs_mounts = Fact::Known(vec![mount]);
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let mounts = host.applications.nfs_mounts.known().into_iter().flatten();
    let of_datagrams = |mount: &&NfsMount| matches!(mount.transport.as_deref(), Some("udp" | "udp6"));
    let to_finding = |mount: &NfsMount| {
        let (source, target) = (&mount.source, &mount.target);
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: FindingSeverity::Critical,
            subject: target.clone(),
            text: format!(
                "{source} is mounted over UDP: slow after any loss, and at gigabit speeds not safe for the data."
            ),
            evidence: vec![format!(
                "{source} on {target}: proto=udp, vers={}",
                mount.version.as_deref().unwrap_or("unknown")
            )],
            remedy: vec![
                format!("umount {target}; mount -o proto=tcp,vers=4.2 {source} {target}"),
                "edit /etc/fstab: proto=tcp".to_owned(),
            ],
            risk: "programs that use the mount have to be stopped",
        };
        draft.finding()
    };
    mounts.filter(of_datagrams).map(to_finding).collect()
}
