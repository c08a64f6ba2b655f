//! NFS mount with a small request size.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::NfsMount;
use linerate_units::ByteCount;
use linerate_units::display::size_binary;

use super::AuditRule;
use super::link_support::FindingDraft;

const ID: &str = "nfs-requests-small";
const CITATION: &str = "nfs(5) (rsize, wsize: up to 1048576, agreed with the server); RFC 8881";
/// Request size below which round trips dominate.
const MIN_REQUEST_SIZE: ByteCount = ByteCount::from_kibibytes(256);
/// Request size up to which recipes of the nineties set it.
const WARNING_REQUEST_SIZE: ByteCount = ByteCount::from_kibibytes(64);

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "An NFS mount reads or writes in small requests.",
    explanation: "Each request costs a round trip and processor time on both hosts. Client and server agree on the \
        largest size that both support, 1 MiB by default: smaller ones come from rsize and wsize in old recipes (8192, \
        32768), or from a server that allows no more (/proc/fs/nfsd/max_block_size on Linux, which is small on hosts \
        with little memory).",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(32),
    silent: || host(1024),
};

fn host(kibibytes: u64) -> HostFacts {
    let size = Some(ByteCount::from_kibibytes(kibibytes));
    let mount = NfsMount {
        source: "nas:/export".to_owned(),
        target: "/mnt".to_owned(),
        read_size: size,
        write_size: size,
        ..NfsMount::default()
    };
    let mut host = HostFacts::default();
    host.applications.nfs_mounts = Fact::Known(vec![mount]);
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    host.applications.nfs_mounts.known().into_iter().flatten().filter_map(check_mount).collect()
}

fn check_mount(mount: &NfsMount) -> Option<AuditFinding> {
    let sizes = [("rsize", mount.read_size), ("wsize", mount.write_size)];
    let small: Vec<(&str, ByteCount)> = sizes
        .into_iter()
        .filter_map(|(name, size)| Some((name, size.filter(|size| *size < MIN_REQUEST_SIZE)?)))
        .collect();
    let smallest = small.iter().map(|(_, size)| *size).min()?;
    let (source, target) = (&mount.source, &mount.target);
    let shown: Vec<String> = small.iter().map(|(name, size)| format!("{name} {}", size_binary(*size))).collect();
    let draft = FindingDraft {
        rule: (ID, CITATION),
        severity: if smallest < WARNING_REQUEST_SIZE { FindingSeverity::Warning } else { FindingSeverity::Advice },
        subject: target.clone(),
        text: format!("{source} is mounted with {}; up to 1 MiB is possible.", shown.join(" and ")),
        evidence: small
            .iter()
            .map(|(name, size)| format!("{source} on {target}: {name}={size_bytes}", size_bytes = size.get()))
            .collect(),
        remedy: vec![
            "edit /etc/fstab: remove rsize and wsize, so that client and server agree on the largest".to_owned(),
            format!("umount {target}; mount {target}"),
        ],
        risk: "programs that use the mount have to be stopped; the server may allow no more",
    };
    Some(draft.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_the_request_size() {
        assert_eq!(check(&host(32))[0].severity, FindingSeverity::Warning);
        assert_eq!(check(&host(128))[0].severity, FindingSeverity::Advice);
        assert_eq!(check(&host(256)), []);
    }
}
