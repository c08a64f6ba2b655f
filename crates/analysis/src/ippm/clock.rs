use core::time::Duration;

use linerate_units::MonotonicTime;

use crate::statistics::SignedDifference;

/// Minimum number of round trips for an estimate of drift; with fewer no drift is assumed.
const MIN_DRIFT_PROBES: usize = 16;

/// Minimum time span for an estimate of drift: below it, noise exceeds the effect of drift.
const MIN_DRIFT_SPAN: Duration = Duration::from_secs(1);

/// Maximum drift of two working clocks: crystals are accurate to 100 parts in a million each, and NTP slews by up to
/// 500. A larger estimate means a path change, not a clock.
const MAX_DRIFT: f64 = 1e-3;

/// Answered probe: two times of the near clock and two of the far one (STAMP, RFC 8762; NTP's on-wire protocol, RFC
/// 5905 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Send time of the probe, by the near clock.
    pub sent: MonotonicTime,
    /// Arrival time at the far host, by the far clock.
    pub far_received: MonotonicTime,
    /// Send time of the answer, by the far clock.
    pub far_sent: MonotonicTime,
    /// Arrival time of the answer, by the near clock.
    pub received: MonotonicTime,
}

impl RoundTrip {
    /// Round-trip time on the network, without the processing time of the far host.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.received.since(self.sent).saturating_sub(self.far_sent.since(self.far_received))
    }
}

/// Drift of the far clock relative to the near one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockDrift(f64);

impl ClockDrift {
    /// Seconds gained per second; negative when the far clock is slower.
    #[must_use]
    pub const fn parts(self) -> f64 {
        self.0
    }

    /// Microseconds gained per second.
    #[must_use]
    pub fn parts_per_million(self) -> f64 {
        self.0 * 1e6
    }
}

/// Relation of the far clock to the near one, as far as round trips determine it.
///
/// A packet takes some time, so at its send time the far clock is at most as far ahead as its far arrival time shows;
/// the answer gives the opposite bound in the same way. The truth lies between these bounds, which are tightest for the
/// fastest probes: the estimate is their midpoint, the error half of their distance. No round trip can determine more
/// (RFC 2330 §10, RFC 7679 §3.7.1): equal delays in both directions are not assumed, but are what the midpoint means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockRelation {
    /// Time of the near clock for which `offset` holds.
    pub reference: MonotonicTime,
    /// Far clock minus near clock at that time.
    pub offset: SignedDifference<Duration>,
    /// Growth of the offset.
    pub drift: ClockDrift,
    /// Maximum error of the estimate at any time between the first and the last probe: at best half of the smallest
    /// round-trip time.
    pub error_bound: Duration,
}

impl ClockRelation {
    /// Relation of the clocks over the time of these probes; `None` without probes.
    ///
    /// Where the probes span a second or more, the clocks' drift is removed: the slope of the line below which no probe
    /// lies, in either direction (Moon, Skelly and Towsley 1999).
    #[must_use]
    pub fn of(round_trips: &[RoundTrip]) -> Option<Self> {
        let start = round_trips.iter().map(|probe| probe.sent).min()?;
        let end = round_trips.iter().map(|probe| probe.received).max()?;
        let reference = start + end.since(start) / 2;
        let at = |time: MonotonicTime| nanos(time.as_nanos(), reference.as_nanos());
        // The far clock's lead is at most the first, and at least the negative of the second.
        let ahead: Vec<ClockPoint> =
            round_trips.iter().map(|p| (at(p.sent), difference(p.far_received, p.sent))).collect();
        let behind: Vec<ClockPoint> =
            round_trips.iter().map(|p| (at(p.received), difference(p.received, p.far_sent))).collect();
        let (drift, doubt) = drift(&ahead, &behind, end.since(start));
        let least = |points: &[ClockPoint], slope: f64| {
            points.iter().map(|(time, value)| value - slope * time).fold(f64::INFINITY, f64::min)
        };
        let (most, fewest) = (least(&ahead, drift), -least(&behind, -drift));
        let half_span = f64::midpoint(at(end), -at(start));
        let bound = ((most - fewest) / 2.0).max(0.0) + doubt * half_span;
        Some(Self {
            reference,
            offset: SignedDifference::from_number(f64::midpoint(most, fewest)),
            drift: ClockDrift(drift),
            error_bound: whole(bound),
        })
    }

    /// Far clock minus near clock, at a time of the near clock.
    #[must_use]
    pub fn offset_at(&self, near: MonotonicTime) -> SignedDifference<Duration> {
        SignedDifference::from_number(
            self.offset.number() + self.drift.0 * nanos(near.as_nanos(), self.reference.as_nanos()),
        )
    }

    /// Delay of a packet to the far host: sent by the near clock, received by the far one. Negative values are within
    /// the error.
    #[must_use]
    pub fn delay_to_far(&self, sent: MonotonicTime, far_received: MonotonicTime) -> SignedDifference<Duration> {
        SignedDifference::from_number(difference(far_received, sent) - self.offset_at(sent).number())
    }

    /// Delay of a packet from the far host: sent by the far clock, received by the near one.
    #[must_use]
    pub fn delay_to_near(&self, far_sent: MonotonicTime, received: MonotonicTime) -> SignedDifference<Duration> {
        SignedDifference::from_number(difference(received, far_sent) + self.offset_at(received).number())
    }
}

/// Time of the near clock relative to the reference, and difference of both clocks; in nanoseconds.
type ClockPoint = (f64, f64);

/// Drift, and distance of the two directions' estimates from their midpoint.
fn drift(ahead: &[ClockPoint], behind: &[ClockPoint], span: Duration) -> (f64, f64) {
    if ahead.len() < MIN_DRIFT_PROBES || span < MIN_DRIFT_SPAN {
        return (0.0, 0.0);
    }
    let (Some(there), Some(back)) = (lower_slope(ahead), lower_slope(behind)) else { return (0.0, 0.0) };
    let (drift, doubt) = (f64::midpoint(there, -back), (there + back).abs() / 2.0);
    if drift.abs() > MAX_DRIFT { (0.0, 0.0) } else { (drift, doubt) }
}

/// Slope of the line that no point lies below and that is closest to all points: the edge of their lower convex hull at
/// the mean of their times. `None` when all have the same time.
fn lower_slope(points: &[ClockPoint]) -> Option<f64> {
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    sorted.dedup_by_key(|point| point.0);
    let mut hull: Vec<ClockPoint> = Vec::new();
    for point in sorted {
        while let [.., before, last] = hull[..] {
            if turn(before, last, point) > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    let times: Vec<f64> = points.iter().map(|point| point.0).collect();
    let middle = crate::statistics::SampleSummary::of(&times)?.mean;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= middle).or_else(|| hull.windows(2).last())?;
    Some((edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0))
}

/// Cross product; positive for a left turn at `b`.
fn turn(a: ClockPoint, b: ClockPoint, c: ClockPoint) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

fn difference(later: MonotonicTime, earlier: MonotonicTime) -> f64 {
    nanos(later.as_nanos(), earlier.as_nanos())
}

/// `a − b`, exact where they lie within 104 days.
#[expect(clippy::cast_precision_loss, reason = "documented")]
fn nanos(a: u64, b: u64) -> f64 {
    let size = a.abs_diff(b) as f64;
    if a < b { -size } else { size }
}

fn whole(nanoseconds: f64) -> Duration {
    Duration::try_from_secs_f64(nanoseconds.max(0.0) / 1e9).unwrap_or(Duration::MAX)
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small counts")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statistics::SeededRandom;

    const EPOCH: f64 = 1e15;

    /// Probes every 20 ms over `seconds`; the far clock is ahead by `offset` and gains `drift`; the delays of both
    /// directions have these minima, with a queue on top that differs from probe to probe. All in nanoseconds.
    fn probes(seconds: u32, offset: f64, drift: f64, (there, back): (f64, f64), queue: f64) -> Vec<RoundTrip> {
        let mut random = SeededRandom::new(5);
        let time = |nanos: f64| MonotonicTime::default() + Duration::from_secs_f64(nanos / 1e9);
        let far = |near: f64| near + offset + drift * (near - EPOCH);
        (0..seconds * 50)
            .map(|probe| {
                let sent = EPOCH + f64::from(probe) * 2e7;
                let arrives = sent + there + queue * random.unit().powi(2);
                let answered = arrives + 3e4;
                let received = answered + back + queue * random.unit().powi(2);
                RoundTrip {
                    sent: time(sent),
                    far_received: time(far(arrives)),
                    far_sent: time(far(answered)),
                    received: time(received),
                }
            })
            .collect()
    }

    #[test]
    fn symmetric_path_without_drift() {
        let relation = ClockRelation::of(&probes(10, -3.6e12, 0.0, (1e7, 1e7), 5e6)).expect("probes");
        assert!((relation.offset.number() + 3.6e12).abs() < 1e5, "{relation:?}");
        // Half of 20 ms, and the smallest queue.
        assert!((relation.error_bound.as_secs_f64() - 0.010).abs() < 1e-4, "{relation:?}");
        let round_trip = RoundTrip {
            sent: MonotonicTime::from_nanos(10),
            far_received: MonotonicTime::from_nanos(500),
            far_sent: MonotonicTime::from_nanos(520),
            received: MonotonicTime::from_nanos(70),
        };
        assert_eq!(round_trip.time(), Duration::from_nanos(40));
        assert_eq!(ClockRelation::of(&[]), None);
    }

    #[test]
    fn drift_is_found_and_removed() {
        for (offset, drift) in [(5e8, 5e-5), (-7e9, -1.2e-4), (0.0, 2e-6)] {
            let probes = probes(30, offset, drift, (1e7, 1e7), 2e7);
            let relation = ClockRelation::of(&probes).expect("probes");
            assert!((relation.drift.parts() - drift).abs() < 1e-5, "{drift}: {relation:?}");
            for probe in &probes {
                let delay = relation.delay_to_far(probe.sent, probe.far_received).number();
                assert!((9e6..3.1e7).contains(&delay), "{delay}");
            }
        }
    }

    #[test]
    fn little_is_known_of_the_drift_of_a_moment() {
        let relation = ClockRelation::of(&probes(10, 1e6, 5e-5, (1e7, 1e7), 0.0)[..10]).expect("probes");
        assert_eq!(relation.drift, ClockDrift::default());
    }

    proptest! {
        /// However the delay is split between the directions, the true offset lies within the bound.
        #[test]
        fn the_truth_is_within_the_bound(
            seconds in 1_u32..20, offset in -1e10..1e10_f64, drift in -2e-4..2e-4_f64,
            there in 1e4..1e8_f64, back in 1e4..1e8_f64, queue in 0.0..1e8_f64
        ) {
            let probes = probes(seconds, offset, drift, (there, back), queue);
            let relation = ClockRelation::of(&probes).expect("probes");
            let bound = relation.error_bound.as_secs_f64() * 1e9 + 1e4;
            for probe in [probes.first(), probes.last()].into_iter().flatten() {
                let near = probe.sent.as_nanos() as f64;
                let truth = offset + drift * (near - EPOCH);
                let estimate = relation.offset_at(probe.sent).number();
                prop_assert!((estimate - truth).abs() <= bound, "{} against {}, bound {}", estimate, truth, bound);
            }
        }
    }
}
