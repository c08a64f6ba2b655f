//! Packets arrived damaged: the receiver's checksum counter grew, and so did retransmissions.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, percent, verdict};

/// Packets arrived damaged: the receiver's checksum counter grew, and so did retransmissions.
pub(super) const RULE: Rule = Rule {
    id: "corruption",
    test: "Packets arrived damaged: the receiver's checksum counter grew, and so did retransmissions.",
    citation: "RFC 9293 section 3.1 (checksum); TcpInCsumErrors (net/ipv4/proc.c)",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    let damaged = evidence.receiver_counter("TcpInCsumErrors")? + evidence.receiver_counter("IpExtInCsumErrors")?;
    let again = evidence.retransmits?.get();
    if damaged == 0 || damaged < again / 4 {
        return None;
    }
    let text = format!(
        "{damaged} packets arrived damaged and were dropped by their checksum; {again} segments were sent again."
    );
    Some(
        verdict(Cause::Corruption, Confidence::High, text)
            .figure("sent again", evidence.retransmitted.map(percent))
            .advice("look for the link that damages them: error counters of interfaces and switches (`ip -s -s link`, `ethtool -S`), cables, optics, and memory"),
    )
}
