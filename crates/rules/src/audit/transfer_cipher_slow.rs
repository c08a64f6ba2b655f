//! A running transfer was told to use a slow or broken cipher.

use linerate_model::fact::Fact;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::applications::{Transfer, TransferProgram};

use super::Rule;
use super::link_support::Saying;

const ID: &str = "transfer-cipher-slow";
const CITATION: &str = "ssh_config(5) (Ciphers); RFC 5647 (AES-GCM); RFC 8758 (arcfour is not to be used)";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A running ssh, scp, sftp or rsync was told to use a slow cipher.",
    explanation: "Processors have instructions for AES and for the checksum of GCM: aes128-gcm@openssh.com runs at gigabytes a second on one. Ciphers of the nineties and all CBC modes have to be computed block after block and need a checksum of their own; arcfour, once recommended for speed, is broken and slower than AES today.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || host(Some("3des-cbc,aes128-ctr")),
    silent: || host(Some("aes128-gcm@openssh.com,3des-cbc")),
};

fn host(ciphers: Option<&str>) -> HostFacts {
    let ciphers = ciphers.map(str::to_owned);
    let transfer = Transfer { process: 7, program: TransferProgram::Scp, compresses: false, ciphers, rate_limit: None };
    let mut host = HostFacts::default();
    host.applications.transfers = Fact::Known(vec![transfer]);
    host
}

fn is_slow(cipher: &str) -> bool {
    ["3des", "blowfish", "cast128", "arcfour", "des"].iter().any(|start| cipher.starts_with(start))
        || cipher.ends_with("-cbc")
}

/// The first of a list is taken if the other end has it. `+`, `-` and `^` change the defaults, which are fast.
fn first(ciphers: &str) -> Option<&str> {
    let ciphers = ciphers.strip_prefix('^').unwrap_or(ciphers);
    (!ciphers.starts_with(['+', '-'])).then(|| ciphers.split(',').next()).flatten().map(str::trim)
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let say = |transfer: &Transfer| {
        let cipher = first(transfer.ciphers.as_deref()?).filter(|cipher| is_slow(cipher))?;
        let (program, process) = (transfer.program.name(), transfer.process);
        let saying = Saying {
            rule: (ID, CITATION),
            severity: Severity::Advice,
            subject: format!("{program} ({process})"),
            text: format!(
                "{program} (process {process}) was told to use {cipher} first, which is slow on every processor."
            ),
            evidence: vec![format!("process {process}: {program} with the cipher {cipher}")],
            remedy: vec![format!("start {program} without -c, or with -c aes128-gcm@openssh.com")],
            risk: "very old servers have no other cipher",
        };
        Some(saying.finding())
    };
    host.applications.transfers.known().into_iter().flatten().filter_map(say).collect()
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
