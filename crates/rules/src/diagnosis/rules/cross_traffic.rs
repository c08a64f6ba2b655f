//! Traffic that is not this transfer's uses the path: the receiver's interface took in more, or the capacity itself is shared.

use linerate_model::diagnosis::{Cause, Confidence, Verdict};
use linerate_units::ByteCount;

use super::super::Rule;
use super::super::evidence::Evidence;
use super::super::words::{With, of_whole, rate, verdict};

/// Less than this share of the transfer is background noise; where the search for the capacity met others, too, less will do.
const SHARE: f64 = 0.08;
const SHARE_WHERE_MET: f64 = 0.05;
/// Headers of Ethernet, IPv4 and TCP with its timestamps.
const HEADERS: f64 = 66.0;
/// A queue at rest of this part of the round trip is somebody's.
const STANDING: f64 = 0.1;

/// Traffic that is not this transfer's uses the path: the receiver's interface took in more, or the capacity itself is shared.
pub(super) const RULE: Rule = Rule {
    id: "cross-traffic",
    test: "Traffic that is not this transfer's uses the path: the receiver's interface took in more, or the capacity itself is shared.",
    citation: "RFC 5136 section 2.3 (available capacity)",
    check,
};

fn check(evidence: &Evidence<'_>) -> Option<Verdict> {
    // Counted since the connections were opened, as the interface is: what a test omits is there, too.
    let ours = evidence.sent.unwrap_or(evidence.observation.received).as_f64();
    let with_headers = evidence.segment.map_or(1.05, |segment| 1.0 + HEADERS / f64::from(segment.get()).max(HEADERS));
    let host = evidence.observation.receiver.as_ref();
    let arrived = host.and_then(|host| host.interface_bytes).map(|(received, _)| ByteCount::new(received).as_f64());
    let others = arrived.map_or(0.0, |arrived| arrived - ours * with_headers);
    let met = evidence.path().and_then(|path| path.capacity.as_ref()?.shared).unwrap_or(false);
    let seen = others > 1e6 && others > ours * if met { SHARE_WHERE_MET } else { SHARE };
    let standing = evidence.observation.path.as_ref().and_then(|path| path.usual_round_trip).zip(evidence.base);
    let standing = standing.is_some_and(|((_, high), base)| high.saturating_sub(base) > base.mul_f64(STANDING));
    if !(seen || met && standing) {
        return None;
    }
    let share = ByteCount::from_f64(others) / ByteCount::from_f64(ours);
    let text = if seen {
        let more = share.map_or("as much again".to_owned(), |share| of_whole(share.get()));
        format!(
            "Others use the path: beside this transfer, {more} as many bytes of something else arrived at the receiver's interface."
        )
    } else {
        "Others use the path: a queue stood on it before this transfer, and what the search for its capacity sent pushed them aside only in part.".to_owned()
    };
    Some(
        verdict(Cause::CrossTraffic, if seen { Confidence::High } else { Confidence::Medium }, text)
            .figure("this transfer", Some(rate(evidence.goodput)))
            .figure("of what the path leaves over", evidence.used().map(of_whole))
            .advice("measure again at another time of day, or give this traffic its share with a queue at the bottleneck (cake, fq_codel)"),
    )
}
