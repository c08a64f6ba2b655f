//! NFS asks for little at a time.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::NfsMount;
use linerate_units::ByteCount;
use linerate_units::display::size_binary;

use super::Rule;
use super::link_support::Saying;

const ID: &str = "nfs-requests-small";
const CITATION: &str = "nfs(5) (rsize, wsize: up to 1048576, agreed with the server); RFC 8881";
/// Requests below wait for the server more than they move.
const SMALL: ByteCount = ByteCount::from_kibibytes(256);
/// What recipes of the nineties set.
const VERY_SMALL: ByteCount = ByteCount::from_kibibytes(64);

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A mount of NFS reads or writes in small requests.",
    explanation: "Each request takes a round trip and a share of both processors. Client and server agree on the largest that both take, 1 MiB by default: smaller ones come from rsize and wsize in old recipes (8192, 32768), or from a server that allows no more (/proc/fs/nfsd/max_block_size on Linux, which small memory makes small).",
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

fn check(host: &HostFacts) -> Vec<Finding> {
    host.applications.nfs_mounts.known().into_iter().flatten().filter_map(look).collect()
}

fn look(mount: &NfsMount) -> Option<Finding> {
    let sizes = [("rsize", mount.read_size), ("wsize", mount.write_size)];
    let small: Vec<(&str, ByteCount)> =
        sizes.into_iter().filter_map(|(name, size)| Some((name, size.filter(|size| *size < SMALL)?))).collect();
    let smallest = small.iter().map(|(_, size)| *size).min()?;
    let (source, target) = (&mount.source, &mount.target);
    let shown: Vec<String> = small.iter().map(|(name, size)| format!("{name} {}", size_binary(*size))).collect();
    let saying = Saying {
        rule: (ID, CITATION),
        severity: if smallest < VERY_SMALL { Severity::Warning } else { Severity::Advice },
        subject: target.clone(),
        text: format!("{source} is mounted with {}; up to 1 MiB is possible.", shown.join(" and ")),
        evidence: small
            .iter()
            .map(|(name, size)| format!("{source} on {target}: {name}={size_bytes}", size_bytes = size.get()))
            .collect(),
        remedy: vec![
            "edit /etc/fstab: take rsize and wsize out, and client and server agree on the largest".to_owned(),
            format!("umount {target}; mount {target}"),
        ],
        risk: "programs that use the mount have to be stopped; the server may allow no more",
    };
    Some(saying.finding())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_small_it_is() {
        assert_eq!(check(&host(32))[0].severity, Severity::Warning);
        assert_eq!(check(&host(128))[0].severity, Severity::Advice);
        assert_eq!(check(&host(256)), []);
    }
}
