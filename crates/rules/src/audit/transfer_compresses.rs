//! A running transfer compresses what it sends.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::{Transfer, TransferProgram};

use super::Rule;
use super::link_support::{Saying, host_with, link, working};

const ID: &str = "transfer-compresses";
const CITATION: &str = "ssh(1) (-C \"will only slow things down on fast networks\"), rsync(1) (--compress)";
/// One processor compresses by zlib at some 100 to 400 Mbit/s.
const FAST: f64 = 1.0;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A running ssh, scp, sftp or rsync compresses what it sends, on a fast link.",
    explanation: "One processor compresses by zlib at some tens of megabytes a second, so on a gigabit and above it is the compression that limits, and what is compressed already (archives, pictures, video) does not become smaller. It helps on slow links, with text.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(true),
    silent: || host(false),
};

fn host(compresses: bool) -> HostFacts {
    let transfer =
        Transfer { process: 7, program: TransferProgram::Rsync, compresses, ciphers: None, rate_limit: None };
    let mut host = host_with(vec![link("eth0")]);
    host.applications.transfers = Fact::Known(vec![transfer]);
    host
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let Some((name, speed)) = working(host).find_map(|link| Some((&link.name, link.at_least_gigabits(FAST)?))) else {
        return Vec::new();
    };
    let transfers = host.applications.transfers.known().into_iter().flatten();
    let is_meant = |transfer: &&Transfer| {
        use TransferProgram::{Rsync, Scp, Sftp, Ssh};
        transfer.compresses && matches!(transfer.program, Ssh | Scp | Sftp | Rsync)
    };
    let say = |transfer: &Transfer| {
        let (program, process) = (transfer.program.name(), transfer.process);
        let option = if transfer.program == TransferProgram::Rsync { "-z" } else { "-C" };
        let saying = Saying {
            rule: (ID, CITATION),
            severity: Severity::Advice,
            subject: format!("{program} ({process})"),
            text: format!(
                "{program} (process {process}) compresses; one processor does that more slowly than {name} at {speed} sends."
            ),
            evidence: vec![format!("process {process}: {program} with compression"), format!("{name}: {speed}")],
            remedy: vec![format!("start {program} without {option} (or with `Compression no`)")],
            risk: "text over a slow path takes longer without it",
        };
        saying.finding()
    };
    transfers.filter(is_meant).map(say).collect()
}
