//! A running transfer compresses its data.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::{TransferProcess, TransferProgram};
use linerate_model::socket::ProcessId;
use linerate_units::BitRate;

use super::AuditRule;
use super::link_support::{FindingDraft, host_with, link, working};

const ID: &str = "transfer-compresses";
const CITATION: &str = "ssh(1) (-C \"will only slow things down on fast networks\"), rsync(1) (--compress)";
/// Link speed from which zlib on one processor (some 100 to 400 Mbit/s) is the limit.
const MIN_LINK_SPEED: BitRate = BitRate::from_bits_per_second(1e9);

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A running ssh, scp, sftp or rsync compresses its data on a fast link.",
    explanation: "One processor compresses by zlib at some tens of megabytes a second, so at 1 Gbit/s and above the \
        compression is the limit, and compressed files (archives, pictures, video) do not become smaller. It helps on \
        slow links, with text.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(true),
    silent: || host(false),
};

fn host(compresses: bool) -> HostFacts {
    let transfer = TransferProcess {
        process: ProcessId(7),
        program: TransferProgram::Rsync,
        compresses,
        ciphers: None,
        rate_limit: None,
    };
    let mut host = host_with(vec![link("eth0")]);
    host.applications.transfers = Fact::Known(vec![transfer]);
    host
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let Some((name, speed)) =
        working(host).find_map(|link| Some((&link.name, link.speed_of_at_least(MIN_LINK_SPEED)?)))
    else {
        return Vec::new();
    };
    let transfers = host.applications.transfers.known().into_iter().flatten();
    let is_meant = |transfer: &&TransferProcess| {
        use TransferProgram::{Rsync, Scp, Sftp, Ssh};
        transfer.compresses && matches!(transfer.program, Ssh | Scp | Sftp | Rsync)
    };
    let to_finding = |transfer: &TransferProcess| {
        let (program, process) = (transfer.program.name(), transfer.process);
        let option = if transfer.program == TransferProgram::Rsync { "-z" } else { "-C" };
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: FindingSeverity::Advice,
            subject: format!("{program} ({process})"),
            text: format!("{program} (process {process}) compresses its data, which is slower than {name} at {speed}."),
            evidence: vec![format!("process {process}: {program} with compression"), format!("{name}: {speed}")],
            remedy: vec![format!("start {program} without {option} (or with `Compression no`)")],
            risk: "text over a slow path is slower without it",
        };
        draft.finding()
    };
    transfers.filter(is_meant).map(to_finding).collect()
}
