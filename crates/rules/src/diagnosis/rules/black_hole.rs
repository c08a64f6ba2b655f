//! Packets above a certain size vanish on the path, and the transfer stalled or its segments shrank.

use core::time::Duration;

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};

use linerate_units::ByteCount;

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::text::{VerdictBuilder, time, verdict};

/// Stall that implies at least one retransmission timeout of full segments.
const MIN_STALL: Duration = Duration::from_millis(400);
/// IPv4's 20 bytes and TCP's 32.
const HEADER_BYTES: u64 = 52;

/// Bytes from which segments arrive: what a path drops by their size does not.
const ARRIVING: ByteCount = ByteCount::new(20_000);

/// Packets above a certain size vanish on the path, and the transfer stalled or its segments shrank.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "black-hole",
    test: "Packets above a certain size vanish on the path, and the transfer stalled or its segments shrank.",
    citation: "RFC 2923 section 2.1; RFC 4821",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    let searched = evidence.path().and_then(|path| path.mtu.as_ref());
    let missing = searched.and_then(|mtu| mtu.black_hole_bytes);
    let found =
        ["TcpExtTCPMTUPSuccess", "TcpExtTCPMTUPFail"].iter().any(|name| evidence.sender_counter(name) > Some(0));
    let stalled = evidence.longest_stall >= MIN_STALL;
    let segments = evidence.segment.map(|segment| u64::from(segment.get()) + HEADER_BYTES);
    let vanish = missing.zip(segments).is_some_and(|(bytes, segments)| segments >= bytes);
    let doubled = evidence.sender().and_then(|info| info.backoff).is_some_and(|times| times >= 2);
    let nothing = arrived(evidence) < ARRIVING;
    // Segments of that size that are acknowledged did not vanish: the probes were lost to something else.
    if vanish && !nothing {
        return None;
    }
    let confidence = match (missing.is_some(), stalled) {
        (true, true) => Confidence::High,
        (true, false) if vanish => Confidence::Medium,
        (false, true) if doubled && nothing && searched.is_none() => Confidence::Low,
        _ => return None,
    };
    let bytes = missing.map(|bytes| format!("packets of {bytes} bytes and more are dropped silently"));
    let text = bytes.clone().unwrap_or_else(|| "full segments do not arrive, though the handshake did".to_owned());
    Some(
        verdict(
            Cause::BlackHole,
            confidence,
            format!("A path MTU black hole: {text}; the transfer stalled for {}.", time(evidence.longest_stall)),
        )
        .figure("path", bytes)
        .figure("sender's path MTU", evidence.sender_mtu.map(|mtu| format!("{} B", mtu.get())))
        .figure("longest stall", Some(time(evidence.longest_stall)))
        .figure("detected by probing (TCPMTUPSuccess)", found.then(|| "yes".to_owned()))
        .advice("let ICMP \"fragmentation needed\" (type 3 code 4; ICMPv6 type 2) through the firewalls on the path")
        .advice("net.ipv4.tcp_mtu_probing = 1 on both hosts: the kernel then probes for the size after a stall"),
    )
}

/// Bytes that the receivers acknowledged; where no sender was sampled, those that they counted. A transfer that ends without
/// the receiver's count has the sender's instead.
fn arrived(evidence: &TransferEvidence<'_>) -> ByteCount {
    let last = evidence.observation.connections.iter().filter_map(|connection| connection.sender.last());
    let acknowledged: Option<ByteCount> = last.map(|sample| sample.socket.info.bytes_acknowledged).sum();
    acknowledged.filter(|_| evidence.sender().is_some()).unwrap_or(evidence.observation.received)
}
