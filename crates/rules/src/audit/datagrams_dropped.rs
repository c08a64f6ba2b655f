//! Datagrams were dropped because a program's receive buffer was full.

use linerate_model::finding::Finding;
use linerate_model::host::HostFacts;

use super::Rule;
use super::link_support::{Saying, by_share, counted, counter, host_that_counted, part_of};

const ID: &str = "datagrams-dropped";
const CITATION: &str = "kernel: Documentation/networking/snmp_counter.rst; socket(7) (SO_RCVBUF)";
const COUNTERS: [(&str, &str); 2] = [("UdpRcvbufErrors", "UdpInDatagrams"), ("Udp6RcvbufErrors", "Udp6InDatagrams")];
const KEY: &str = "net.core.rmem_max";
/// What a video or QUIC notices.
const FELT: f64 = 1e-4;

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Datagrams were dropped because the receiving program's buffer was full.",
    explanation: "UDP and QUIC do not slow the sender down for a full buffer: what does not fit is lost. The buffer has to last for the longest time in which the program does not get to read: rate times that time, for example 1 Gbit/s x 25 ms / 8 = 3.1 MB, and twice that, as the kernel counts what it needs around each datagram. The program asks for it (SO_RCVBUF), at most net.core.rmem_max.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host_that_counted(&[("UdpRcvbufErrors", 500), ("UdpInDatagrams", 1_000_000)]),
    silent: || host_that_counted(&[("UdpRcvbufErrors", 0), ("UdpInDatagrams", 1_000_000)]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let look = |(drops, received): (&str, &str)| {
        let (dropped, taken) = (counter(host, drops), counter(host, received));
        (dropped > 0).then_some(())?;
        let whole = taken.saturating_add(dropped);
        let mut evidence = vec![counted(drops, dropped), counted(received, taken)];
        evidence.extend(host.settings.value(KEY).map(|value| format!("{KEY} = {value}")));
        let saying = Saying {
            rule: (ID, CITATION),
            severity: by_share(dropped, whole, FELT),
            subject: drops.to_owned(),
            text: format!(
                "{} received datagrams were dropped because a program's buffer was full.",
                part_of(dropped, whole)
            ),
            evidence,
            remedy: vec![
                "ss -uamp (the last number of skmem, d, is what each socket dropped: which program is it?)".to_owned(),
                "have the program ask for a larger SO_RCVBUF; net.core.rmem_max only if that is at its limit"
                    .to_owned(),
            ],
            risk: "a larger buffer is more delay for programs that read slowly",
        };
        Some(saying.finding())
    };
    COUNTERS.into_iter().filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::Severity;

    use super::*;

    #[test]
    fn a_handful_is_a_note_and_each_family_counts_for_itself() {
        let few = host_that_counted(&[("UdpRcvbufErrors", 5), ("UdpInDatagrams", 1_000_000), ("Udp6RcvbufErrors", 9)]);
        let severities: Vec<_> = check(&few).iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Note, Severity::Warning]);
    }
}
