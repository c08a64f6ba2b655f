use core::time::Duration;
use serde::{Deserialize, Serialize};

use super::{LatencyGrade, LatencyUplift};

/// Class of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LatencyClass {
    /// ICMP echo.
    Icmp,
    /// UDP with DSCP 0.
    UdpBestEffort,
    /// UDP with DSCP 46 (expedited forwarding, RFC 3246).
    UdpExpeditedForwarding,
    /// UDP with DSCP 0 and ECT(0) (RFC 3168).
    UdpEct0,
    /// UDP with DSCP 0 and ECT(1), the codepoint of L4S (RFC 9331).
    UdpEct1,
    /// Small messages on the connections that generate the load.
    TcpApplication,
    /// Round-trip times that the kernel measures on the connections that generate the load.
    TcpInfo,
    /// New TCP connections.
    TcpHandshake,
    /// TLS handshakes on new connections, per round trip of the handshake.
    TlsHandshake,
    /// First HTTP requests on new connections.
    HttpRequest,
    /// Requests on an open connection in TLS 1.3, which carries nothing else.
    TlsRequest,
    /// Requests on an open QUIC connection, which carries nothing else, each on a stream of its own.
    QuicRequest,
}

impl LatencyClass {
    /// Display title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Icmp => "ICMP echo",
            Self::UdpBestEffort => "UDP best effort",
            Self::UdpExpeditedForwarding => "UDP EF",
            Self::UdpEct0 => "UDP ECT(0)",
            Self::UdpEct1 => "UDP ECT(1)",
            Self::TcpApplication => "TCP in-band",
            Self::TcpInfo => "TCP kernel",
            Self::TcpHandshake => "TCP handshake",
            Self::TlsHandshake => "TLS handshake",
            Self::HttpRequest => "HTTP request",
            Self::TlsRequest => "TLS request",
            Self::QuicRequest => "QUIC request",
        }
    }

    /// True when the class is compared with others. Pings on the loaded connections also wait for retransmissions and in
    /// the sender's own buffer, for which no queue of the path is responsible: there the kernel's round trips count. Requests wait for
    /// retransmissions, too. ECN codepoints are compared with each other ([`super::DualQueue`]).
    #[must_use]
    pub const fn is_compared(self) -> bool {
        !matches!(
            self,
            Self::TcpApplication
                | Self::TcpHandshake
                | Self::TlsHandshake
                | Self::HttpRequest
                | Self::TlsRequest
                | Self::QuicRequest
                | Self::UdpEct0
                | Self::UdpEct1
        )
    }

    /// True when the verdict may use this class. ICMP and expedited forwarding may be prioritised over normal traffic,
    /// so that they do not show a full queue.
    #[must_use]
    pub const fn counts_for_verdict(self) -> bool {
        matches!(self, Self::UdpBestEffort | Self::TcpInfo)
    }
}

/// Delay that load adds to one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassUplift {
    /// Class.
    pub class: LatencyClass,
    /// Added delay.
    pub uplift: LatencyUplift,
}

/// Class that decides the verdict: of those that count, the one with the largest uplift. `None` when none of them was
/// measured: then there is no grade.
#[must_use]
pub fn worst_class(classes: &[ClassUplift]) -> Option<ClassUplift> {
    classes.iter().copied().filter(|entry| entry.class.counts_for_verdict()).max_by_key(|entry| entry.uplift.graded())
}

/// Treatment of a class relative to the worst of those that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassTreatment {
    /// About the same uplift.
    Alike,
    /// A clearly smaller uplift: the class has a queue of its own, or is prioritised.
    Preferred,
    /// A clearly larger uplift.
    Behind,
}

/// Comparison of the classes of one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassComparison {
    /// Class that decides the verdict.
    pub worst: ClassUplift,
    /// Grade of that class.
    pub grade: LatencyGrade,
    /// All classes relative to it.
    pub treatments: Vec<(LatencyClass, ClassTreatment)>,
    /// Grade of the class with the smallest uplift, if that is a better one: a verdict based on it would be misleading.
    pub flattering: Option<(LatencyClass, LatencyGrade)>,
}

/// Difference of medians below which two classes are alike.
const MAX_ALIKE_DIFFERENCE: Duration = Duration::from_millis(5);

impl ClassComparison {
    /// Compares the classes; `None` when no class that counts was measured.
    #[must_use]
    pub fn of(classes: &[ClassUplift]) -> Option<Self> {
        let worst = worst_class(classes)?;
        let grade = LatencyGrade::of(worst.uplift.graded());
        let best = classes.iter().min_by_key(|entry| entry.uplift.graded())?;
        let best_grade = LatencyGrade::of(best.uplift.graded());
        Some(Self {
            worst,
            grade,
            treatments: classes.iter().map(|entry| (entry.class, treatment(entry, &worst))).collect(),
            flattering: (best_grade < grade).then_some((best.class, best_grade)),
        })
    }
}

/// Compares the medians: alike within 5 ms, or within a third of the larger.
fn treatment(entry: &ClassUplift, worst: &ClassUplift) -> ClassTreatment {
    let (own, other) = (entry.uplift.median.allow_zero(), worst.uplift.median.allow_zero());
    if own.abs_diff(other) <= MAX_ALIKE_DIFFERENCE.max(own.max(other) / 3) {
        ClassTreatment::Alike
    } else if own < other {
        ClassTreatment::Preferred
    } else {
        ClassTreatment::Behind
    }
}

#[cfg(test)]
mod tests {
    use ClassTreatment::{Alike, Preferred};

    use super::*;
    use crate::statistics::SignedDifference;

    fn uplift(class: LatencyClass, milliseconds: u64) -> ClassUplift {
        let signed = SignedDifference { negative: false, magnitude: Duration::from_millis(milliseconds) };
        let uplift = LatencyUplift {
            median: signed,
            mean: signed,
            p90: signed,
            p95: signed,
            median_above_floor: signed,
            p95_above_floor: signed,
        };
        ClassUplift { class, uplift }
    }

    #[test]
    fn a_priority_class_does_not_fool_the_verdict() {
        let classes = [
            uplift(LatencyClass::Icmp, 3),
            uplift(LatencyClass::UdpExpeditedForwarding, 2),
            uplift(LatencyClass::UdpBestEffort, 190),
            uplift(LatencyClass::TcpInfo, 240),
        ];
        let comparison = ClassComparison::of(&classes).expect("classes that count");
        assert_eq!((comparison.worst.class, comparison.grade), (LatencyClass::TcpInfo, LatencyGrade::D));
        assert_eq!(comparison.flattering, Some((LatencyClass::UdpExpeditedForwarding, LatencyGrade::APlus)));
        let treatments: Vec<_> = comparison.treatments.iter().map(|(_, treatment)| *treatment).collect();
        assert_eq!(treatments, [Preferred, Preferred, Alike, Alike]);
    }

    #[test]
    fn classes_that_may_be_preferred_give_no_grade_alone() {
        assert_eq!(
            ClassComparison::of(&[uplift(LatencyClass::Icmp, 3), uplift(LatencyClass::UdpExpeditedForwarding, 900)]),
            None
        );
        assert_eq!(worst_class(&[]), None);
        let comparison = ClassComparison::of(&[uplift(LatencyClass::UdpBestEffort, 2), uplift(LatencyClass::Icmp, 40)]);
        let comparison = comparison.expect("a class that counts");
        assert_eq!((comparison.grade, comparison.flattering), (LatencyGrade::APlus, None));
        assert_eq!(comparison.treatments[1], (LatencyClass::Icmp, ClassTreatment::Behind));
    }
}
