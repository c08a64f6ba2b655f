//! Datagrams were dropped because a program's receive buffer was full.

use linerate_model::finding::AuditFinding;
use linerate_model::host::HostFacts;

use super::AuditRule;
use super::link_support::{FindingDraft, by_share, counted, counter, host_that_counted, part_of};

const ID: &str = "datagrams-dropped";
const CITATION: &str = "kernel: Documentation/networking/snmp_counter.rst; socket(7) (SO_RCVBUF)";
const COUNTERS: [(&str, &str); 2] = [("UdpRcvbufErrors", "UdpInDatagrams"), ("Udp6RcvbufErrors", "Udp6InDatagrams")];
const KEY: &str = "net.core.rmem_max";
/// Loss ratio that a video call or QUIC notices.
const MIN_LOSS_RATIO: f64 = 1e-4;

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "Datagrams were dropped because the receiving program's buffer was full.",
    explanation: "UDP and QUIC do not slow the sender down for a full buffer: what does not fit is lost. The buffer \
        must cover the longest time in which the program does not read: rate times that time, for example 1 Gbit/s x \
        25 ms / 8 = 3.1 MB, and twice that, as the kernel also counts its overhead per datagram. The program requests \
        it (SO_RCVBUF), at most net.core.rmem_max.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_that_counted(&[("UdpRcvbufErrors", 500), ("UdpInDatagrams", 1_000_000)]),
    silent: || host_that_counted(&[("UdpRcvbufErrors", 0), ("UdpInDatagrams", 1_000_000)]),
};

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let look = |(drops, received): (&str, &str)| {
        let (dropped, taken) = (counter(host, drops), counter(host, received));
        (dropped > 0).then_some(())?;
        let whole = taken.saturating_add(dropped);
        let mut evidence = vec![counted(drops, dropped), counted(received, taken)];
        evidence.extend(host.settings.value(KEY).map(|value| format!("{KEY} = {value}")));
        let draft = FindingDraft {
            rule: (ID, CITATION),
            severity: by_share(dropped, whole, MIN_LOSS_RATIO),
            subject: drops.to_owned(),
            text: format!(
                "{} received datagrams were dropped because a program's buffer was full.",
                part_of(dropped, whole)
            ),
            evidence,
            remedy: vec![
                "ss -uamp (the last number of skmem, d, counts the drops of each socket: which program is it?)"
                    .to_owned(),
                "have the program request a larger SO_RCVBUF; net.core.rmem_max only if that is at its limit"
                    .to_owned(),
            ],
            risk: "a larger buffer is more delay for programs that read slowly",
        };
        Some(draft.finding())
    };
    COUNTERS.into_iter().filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::FindingSeverity;

    use super::*;

    #[test]
    fn a_handful_is_a_note_and_each_family_counts_for_itself() {
        let few = host_that_counted(&[("UdpRcvbufErrors", 5), ("UdpInDatagrams", 1_000_000), ("Udp6RcvbufErrors", 9)]);
        let severities: Vec<_> = check(&few).iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [FindingSeverity::Note, FindingSeverity::Warning]);
    }
}
