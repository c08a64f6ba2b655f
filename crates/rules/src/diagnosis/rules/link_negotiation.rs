//! A host's link runs at half duplex, or at the transfer's rate and far below the speed that it or the other end has.

use linerate_model::diagnosis::{Cause, Confidence, DiagnosisVerdict};
use linerate_model::far::LinkEvidence;
use linerate_units::{BitRate, ByteCount, Ratio};

use super::super::DiagnosisRule;
use super::super::evidence::TransferEvidence;
use super::super::host_load::TransferEnd;
use super::super::text::{VerdictBuilder, bit_rate, printable, rate, verdict};

/// Share of a link's speed from which the transfer fills it: headers, and gaps between packets, take the remainder.
const MIN_FILLED_SHARE: f64 = 0.85;
/// Ratio of a supported speed, or of the other end's, to the negotiated one from which that is too low.
const MIN_SPEED_RATIO: f64 = 2.0;
const MIN_RATIO_TO_OTHER_END: f64 = 10.0;

/// Capacity of the path, as a share of the link's speed, below which the link is not the limit, even at half duplex.
const MAX_SLOWER_PART: f64 = 0.4;

/// A host's link runs at half duplex, or at the transfer's rate and far below the speed that it or the other end has.
pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    id: "link-negotiation",
    test: "A host's link runs at half duplex, or at the transfer's rate and far below the speed that it or the other end \
        has.",
    citation: "IEEE 802.3 clause 28 (autonegotiation); ethtool(8), ETHTOOL_GLINKSETTINGS",
    check,
};

fn check(evidence: &TransferEvidence<'_>) -> Option<DiagnosisVerdict> {
    TransferEnd::ALL.into_iter().find_map(|end| at(evidence, end))
}

fn at(evidence: &TransferEvidence<'_>, end: TransferEnd) -> Option<DiagnosisVerdict> {
    let link = evidence.link(end)?;
    let speed = wire_speed(link)?;
    let used = evidence.steady.bits_per_second() / speed.bits_per_second();
    let other = match end {
        TransferEnd::Sender => TransferEnd::Receiver,
        TransferEnd::Receiver => TransferEnd::Sender,
    };
    let highest = self::speed(link.max_speed_bits_per_second);
    let other_speed = evidence.link(other).and_then(wire_speed);
    let exceeds = |one: Option<BitRate>, ratio: f64| {
        one.is_some_and(|one| one.bits_per_second() >= ratio * speed.bits_per_second())
    };
    let device = printable(&link.interface);
    let host = end.participle();
    // A half-duplex link carries data and acknowledgements in turns, and packets collide.
    let (sure, text) = if link.is_half_duplex == Some(true) && used <= 1.0 && !is_slower_part_full(evidence, speed) {
        let sure = if link.errors.is_some_and(|errors| errors > 0) { Confidence::High } else { Confidence::Medium };
        (sure, format!("The link of the {host} host ({device}) runs at half duplex, {}.", rate(speed)))
    } else if used >= MIN_FILLED_SHARE && exceeds(highest, MIN_SPEED_RATIO) {
        let highest = highest.map_or_else(String::new, rate);
        (
            Confidence::High,
            format!(
                "The link of the {host} host ({device}) was negotiated at {}, although the interface supports {highest}, \
                    and the transfer fills it.",
                rate(speed)
            ),
        )
    } else if used >= MIN_FILLED_SHARE && exceeds(other_speed, MIN_RATIO_TO_OTHER_END) {
        let other_speed = other_speed.map_or_else(String::new, rate);
        (
            Confidence::Medium,
            format!(
                "The link of the {host} host ({device}) has {}, the other end's {other_speed}, and the transfer fills it.",
                rate(speed)
            ),
        )
    } else {
        return None;
    };
    Some(
        verdict(Cause::LinkNegotiation, sure, text)
            .figure("supported speed", highest.map(rate))
            .figure("speed of the other end's link", other_speed.map(rate))
            .figure("errors of the interface", link.errors.map(|errors| errors.to_string()))
            .advice(format!(
                "`ethtool {device}` on that host shows what both sides offer: check the cable, the port of the switch, and \
                that neither side has a fixed speed while the other one negotiates"
            )),
    )
}

/// Bytes of Ethernet around each IP packet: preamble, header, checksum and gap (IEEE 802.3 clauses 3 and 4).
const ETHERNET: u64 = 8 + 14 + 4 + 12;
/// Rates that fill a wire, as shares of the payload that it carries: a higher one was not sent over it.
const FILLING_SHARES: core::ops::RangeInclusive<f64> = 0.95..=1.02;

impl TransferEvidence<'_> {
    /// Returns the end whose wire the transfer fills, and the speed of that wire; the slower of the two.
    pub(in super::super) fn filled_wire(&self) -> Option<(TransferEnd, BitRate)> {
        let wires = TransferEnd::ALL.into_iter().filter_map(|end| Some((end, wire_speed(self.link(end)?)?)));
        let (end, speed) = wires.min_by_key(|(_, speed)| *speed)?;
        let (segment, mtu) = (self.segment?, ByteCount::new(u64::from(self.sender_mtu?.get())));
        let payload = Ratio::of(segment.byte_count().as_f64(), (mtu + ByteCount::new(ETHERNET)).as_f64())?;
        let used = Ratio::of(self.steady.bits_per_second(), (speed * payload.get()).bits_per_second())?;
        FILLING_SHARES.contains(&used.get()).then_some((end, speed))
    }
}

/// Virtual devices report a speed that is none.
fn has_wire(link: &LinkEvidence) -> bool {
    !link.is_loopback && link.kind.as_deref().is_none_or(|kind| kind == "vlan")
}

/// Negotiated speed of a link with a wire; `None` for other devices, and where it is unknown.
pub(super) fn wire_speed(link: &LinkEvidence) -> Option<BitRate> {
    speed(link.speed_bits_per_second).filter(|_| has_wire(link))
}

fn speed(bits_per_second: Option<u64>) -> Option<BitRate> {
    bits_per_second.filter(|bits| *bits > 0).map(bit_rate)
}

/// True when a part of the path that is much slower than a link of this speed is known to be full.
fn is_slower_part_full(evidence: &TransferEvidence<'_>, speed: BitRate) -> bool {
    let slower = |capacity: BitRate| capacity.bits_per_second() < speed.bits_per_second() * MAX_SLOWER_PART;
    evidence.capacity.is_some_and(slower) && evidence.is_full()
}
