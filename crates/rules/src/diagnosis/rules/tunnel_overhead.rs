//! Packets pass a tunnel, and have to be fragmented, or its headers take part of a full path.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::super::text::{VerdictBuilder, percent_of, printable, verdict};

/// Tunnels by rtnetlink's names, and the bytes that they add to each packet over IPv4: outer header, their own, and an inner
/// Ethernet header where there is one.
const TUNNELS: [(&str, f64); 14] = [
    ("wireguard", 60.0),
    ("gre", 24.0),
    ("gretap", 38.0),
    ("ip6gre", 44.0),
    ("ip6gretap", 58.0),
    ("ipip", 20.0),
    ("sit", 20.0),
    ("ip6tnl", 40.0),
    ("vti", 57.0),
    ("xfrm", 57.0),
    ("vxlan", 50.0),
    ("geneve", 50.0),
    ("tun", 60.0),
    ("ppp", 8.0),
];
/// Counters of packets that were fragmented on sending, and of fragments put together on receiving.
const SENDER_COUNTERS: [&str; 2] = ["IpFragOKs", "Ip6FragOKs"];
const RECEIVER_COUNTERS: [&str; 2] = ["IpReasmOKs", "Ip6ReasmOKs"];
/// Share of the segments that were fragmented from which that is no exception.
const MIN_FRAGMENTED_SHARE: f64 = 0.2;

/// Packets pass a tunnel, and have to be fragmented, or its headers take part of a full path.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "tunnel-overhead",
    test: "Packets pass a tunnel, and have to be fragmented, or its headers take part of a full path.",
    citation: "RFC 4459 (MTU and fragmentation with tunnels); rtnetlink(7), IFLA_INFO_KIND",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let (end, name, added) = TransferEnd::ALL.into_iter().find_map(|end| {
        let kind = evidence.link(end)?.kind.as_deref()?;
        let (name, added) = TUNNELS.iter().find(|(name, _)| *name == kind)?;
        Some((end, *name, *added))
    })?;
    let link = evidence.link(end)?;
    let (device, mtu) = (printable(&link.interface), f64::from(link.mtu_bytes.unwrap_or(1500)).max(68.0));
    let segments = evidence.segments.map(linerate_units::SegmentCount::as_f64).filter(|segments| *segments > 0.0);
    let fragmented = segments.map(|segments| fragmented(evidence) / segments);
    let share = added / (mtu + added);
    if fragmented.is_some_and(|share| share >= MIN_FRAGMENTED_SHARE) {
        let text = format!(
            "The packets pass a tunnel ({name}, {device} on the {}), and are too large for it: {} of them were \
                fragmented.",
            end.name(),
            fragmented.map_or_else(String::new, |share| percent_of(share.min(1.0)))
        );
        return Some(
            verdict(Cause::TunnelOverhead, Confidence::Medium, text)
                .figure("bytes that the tunnel adds to a packet", Some(format!("about {added:.0}")))
                .advice(format!(
                    "lower the MTU of {device} until its packets and the tunnel's headers fit the path \
                    (`linerate path` outside of the tunnel measures that)"
                )),
        );
    }
    let text = format!(
        "The packets pass a tunnel ({name}, {device} on the {}): its headers take about {} of the path.",
        end.name(),
        percent_of(share)
    );
    evidence.is_full().then(|| {
        verdict(Cause::TunnelOverhead, Confidence::Medium, text)
            .figure("bytes that the tunnel adds to a packet", Some(format!("about {added:.0}")))
    })
}

/// Number of packets that were fragmented; the larger of both ends' counts.
fn fragmented(evidence: &TransferEvidence<'_>) -> f64 {
    let sum = |names: [&str; 2], count: &dyn Fn(&str) -> Option<u64>| -> u64 {
        names.iter().filter_map(|name| count(name)).sum()
    };
    let sent = sum(SENDER_COUNTERS, &|name| evidence.sender_counter(name));
    let received = sum(RECEIVER_COUNTERS, &|name| evidence.receiver_counter(name));
    linerate_units::SegmentCount::new(sent.max(received)).as_f64()
}
