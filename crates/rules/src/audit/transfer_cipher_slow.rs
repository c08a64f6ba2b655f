//! A running transfer is configured for a slow or broken cipher.

use linerate_model::fact::Fact;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::{TransferProcess, TransferProgram};
use linerate_model::socket::ProcessId;

use super::AuditRule;
use super::link_support::FindingDraft;

const ID: &str = "transfer-cipher-slow";
const CITATION: &str = "ssh_config(5) (Ciphers); RFC 5647 (AES-GCM); RFC 8758 (arcfour is not to be used)";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A running ssh, scp, sftp or rsync is configured for a slow cipher.",
    explanation: "Processors have instructions for AES and for the checksum of GCM: aes128-gcm@openssh.com runs at \
        gigabytes a second on one. Ciphers of the nineties and all CBC modes are computed block after block and need a \
        separate checksum; arcfour, once recommended for speed, is broken and slower than AES today.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(Some("3des-cbc,aes128-ctr")),
    silent: || host(Some("aes128-gcm@openssh.com,3des-cbc")),
};

fn host(ciphers: Option<&str>) -> HostFacts {
    let ciphers = ciphers.map(str::to_owned);
    let transfer = TransferProcess {
        process: ProcessId(7),
        program: TransferProgram::Scp,
        compresses: false,
        ciphers,
        rate_limit: None,
    };
    let mut host = HostFacts::default();
    host.applications.transfers = Fact::Known(vec![transfer]);
    host
}

fn is_slow(cipher: &str) -> bool {
    ["3des", "blowfish", "cast128", "arcfour", "des"].iter().any(|start| cipher.starts_with(start))
        || cipher.ends_with("-cbc")
}

/// Returns the first cipher of a list, which is used if the peer has it. `+`, `-` and `^` change the defaults, which
/// are fast.
fn first(ciphers: &str) -> Option<&str> {
    let ciphers = ciphers.strip_prefix('^').unwrap_or(ciphers);
    (!ciphers.starts_with(['+', '-'])).then(|| ciphers.split(',').next()).flatten().map(str::trim)
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let to_finding = |transfer: &TransferProcess| {
        let cipher = first(transfer.ciphers.as_deref()?).filter(|cipher| is_slow(cipher))?;
        let (program, process) = (transfer.program.name(), transfer.process);
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: FindingSeverity::Advice,
            subject: format!("{program} ({process})"),
            text: format!(
                "{program} (process {process}) prefers the cipher {cipher}, which is slow on every processor."
            ),
            evidence: vec![format!("process {process}: {program} with the cipher {cipher}")],
            remedy: vec![format!("start {program} without -c, or with -c aes128-gcm@openssh.com")],
            risk: "very old servers have no other cipher",
        };
        Some(draft.finding())
    };
    host.applications.transfers.known().into_iter().flatten().filter_map(to_finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_first_counts() {
        for (ciphers, expected) in [
            (Some("aes256-cbc"), 1),
            (Some("^arcfour"), 1),
            (Some("+3des-cbc"), 0),
            (Some("chacha20-poly1305@openssh.com"), 0),
            (None, 0),
        ] {
            assert_eq!(check(&host(ciphers)).len(), expected, "{ciphers:?}");
        }
    }
}
