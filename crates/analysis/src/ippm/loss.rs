use core::time::Duration;

use linerate_units::{PacketCount, Ratio};

use super::PacketStream;
use crate::statistics::{ConfidenceInterval, clopper_pearson};

/// Confidence level of the loss interval.
const CONFIDENCE_LEVEL: f64 = 0.95;

/// Run of consecutive losses (a "loss period" of RFC 3357 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRun {
    /// Number of its first packet.
    pub first: u64,
    /// Number of packets.
    pub length: PacketCount,
}

/// Two-state loss model (Gilbert 1960): packets arrive in the good state, and are lost in the bad one.
///
/// Independent loss has `good_to_bad = 1 − bad_to_good`, the loss itself; burstier loss has a smaller `bad_to_good`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertModel {
    /// Probability that a packet is lost after one that arrived.
    pub good_to_bad: Ratio,
    /// Probability that a packet arrives after one that was lost; its inverse is the mean length of a run.
    pub bad_to_good: Ratio,
}

/// One-way loss of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketLoss {
    /// Packets sent.
    pub sent: PacketCount,
    /// Packets that did not arrive, or arrived after the timeout.
    pub lost: PacketCount,
    /// Packets that arrived after the timeout; they are included in the lost ones.
    pub late: PacketCount,
    /// Loss ratio; `None` when nothing was sent.
    pub ratio: Option<Ratio>,
    /// Exact binomial interval of the ratio at 95 % (Clopper and Pearson), which assumes independent losses: for losses
    /// in runs it is too narrow. `None` when nothing was sent.
    pub interval: Option<ConfidenceInterval<Ratio>>,
    /// Runs of loss, in order.
    pub runs: Vec<LossRun>,
    /// Longest run; zero when nothing was lost.
    pub longest_run: PacketCount,
    /// Packets per run; `None` when nothing was lost.
    pub mean_run: Option<Ratio>,
    /// Mean distance between losses in packets (RFC 3357 §4.3), 1 for neighbours; `None` for fewer than two.
    pub mean_distance: Option<Ratio>,
    /// Gilbert model with the observed probabilities (RFC 6534 §6); `None` when everything or nothing was lost.
    pub gilbert: Option<GilbertModel>,
}

impl PacketLoss {
    /// Computes the loss of a stream (RFC 7680): a packet that took longer than `timeout` is lost.
    ///
    /// As the clocks of both hosts may differ, delays are measured relative to the fastest packet: with the usual
    /// timeout of seconds this changes nothing. Callers must wait that long after the last packet.
    #[must_use]
    pub fn of(stream: &PacketStream, timeout: Duration) -> Self {
        let (arrived, late) = arrived(stream, timeout);
        let runs = runs(&arrived);
        let lost: PacketCount = runs.iter().map(|run| run.length).sum();
        let count = |length: usize| PacketCount::new(length as u64);
        Self {
            sent: stream.sent,
            lost,
            late,
            ratio: lost.share_of(stream.sent),
            interval: clopper_pearson(lost, stream.sent, Ratio::new(CONFIDENCE_LEVEL).unwrap_or_default()),
            longest_run: runs.iter().map(|run| run.length).max().unwrap_or_default(),
            mean_run: lost.share_of(count(runs.len())),
            mean_distance: mean_distance(&runs, lost),
            gilbert: gilbert(&arrived),
            runs,
        }
    }
}

/// Packets that arrived in time, and the number of late ones.
fn arrived(stream: &PacketStream, timeout: Duration) -> (Vec<bool>, PacketCount) {
    let mut in_time = vec![false; stream.sent.to_usize()];
    let least = stream.min_difference().unwrap_or_default();
    let mut late = PacketCount::ZERO;
    for arrival in stream.first_copies() {
        let Ok(index) = usize::try_from(arrival.sequence) else { continue };
        let more = Duration::from_nanos(arrival.difference_nanos().abs_diff(least));
        in_time[index] = more <= timeout;
        late += PacketCount::new(u64::from(more > timeout));
    }
    (in_time, late)
}

fn runs(arrived: &[bool]) -> Vec<LossRun> {
    let mut runs: Vec<LossRun> = Vec::new();
    let mut before = true;
    for (sequence, &here) in arrived.iter().enumerate() {
        match runs.last_mut() {
            _ if here => {}
            Some(run) if !before => run.length += PacketCount::new(1),
            _ => runs.push(LossRun { first: sequence as u64, length: PacketCount::new(1) }),
        }
        before = here;
    }
    runs
}

/// Mean distance from the first lost packet to the last.
fn mean_distance(runs: &[LossRun], lost: PacketCount) -> Option<Ratio> {
    let (start, end) = (runs.first()?.first, runs.last()?);
    let span = PacketCount::new(end.first + end.length.get() - 1 - start);
    span.share_of(lost - PacketCount::new(1))
}

/// Transition probabilities between the two states.
fn gilbert(arrived: &[bool]) -> Option<GilbertModel> {
    let steps = |from: bool, to: bool| {
        PacketCount::new(arrived.windows(2).filter(|pair| pair[0] == from && pair[1] == to).count() as u64)
    };
    let (lost, regained) = (steps(true, false), steps(false, true));
    Some(GilbertModel {
        good_to_bad: lost.share_of(lost + steps(true, true))?,
        bad_to_good: regained.share_of(regained + steps(false, false))?,
    })
    .filter(|model| model.good_to_bad.get() > 0.0 || model.bad_to_good.get() > 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::stream::stream;
    use super::*;
    use crate::statistics::SeededRandom;

    const TIMEOUT: Duration = Duration::from_secs(2);

    #[test]
    fn runs_and_distances() {
        // Lost: 2, 3, 6 of ten.
        let arrivals: Vec<_> = [0, 1, 4, 5, 7, 8, 9].map(|sequence| (sequence, 0)).to_vec();
        let loss = PacketLoss::of(&stream(10, &arrivals), TIMEOUT);
        assert_eq!((loss.lost, loss.ratio), (PacketCount::new(3), Ratio::new(0.3)));
        let runs: Vec<_> = loss.runs.iter().map(|run| (run.first, run.length.get())).collect();
        assert_eq!(runs, [(2, 2), (6, 1)]);
        assert_eq!((loss.longest_run, loss.mean_run), (PacketCount::new(2), Ratio::new(1.5)));
        // Distances 1 and 3.
        assert_eq!(loss.mean_distance, Ratio::new(2.0));
        // From good 6 times: 2 to bad. From bad 3 times: 2 to good.
        let model = loss.gilbert.expect("both states");
        assert_eq!((Some(model.good_to_bad), Some(model.bad_to_good)), (Ratio::of(2.0, 6.0), Ratio::of(2.0, 3.0)));
        let interval = loss.interval.expect("packets");
        // Clopper-Pearson for 3 of 10: 6.67 % to 65.25 %.
        assert!((interval.low.get() - 0.0667).abs() < 1e-4 && (interval.high.get() - 0.6525).abs() < 1e-4);
    }

    #[test]
    fn late_packets_are_lost() {
        let loss = PacketLoss::of(&stream(3, &[(0, 0), (1, 2_000_000), (2, 2_000_001)]), TIMEOUT);
        assert_eq!((loss.lost, loss.late), (PacketCount::new(1), PacketCount::new(1)));
        assert_eq!(loss.runs, [LossRun { first: 2, length: PacketCount::new(1) }]);
    }

    #[test]
    fn nothing_sent_nothing_lost_everything_lost() {
        let none = PacketLoss::of(&stream(0, &[]), TIMEOUT);
        assert_eq!((none.ratio, none.interval, none.mean_run, none.gilbert), (None, None, None, None));
        let clean = PacketLoss::of(&stream(2, &[(0, 0), (1, 0)]), TIMEOUT);
        assert_eq!((clean.ratio, clean.longest_run, clean.mean_run), (Some(Ratio::ZERO), PacketCount::ZERO, None));
        let dead = PacketLoss::of(&stream(5, &[]), TIMEOUT);
        assert_eq!((dead.ratio, dead.longest_run, dead.gilbert), (Ratio::new(1.0), PacketCount::new(5), None));
    }

    #[test]
    fn gilbert_parameters_are_estimated() {
        // 1 % to bad, 25 % to good: loss 3.85 %, runs of 4 packets.
        let (mut random, mut good, mut arrivals) = (SeededRandom::new(2), true, Vec::new());
        for sequence in 0..200_000 {
            good = if good { random.unit() >= 0.01 } else { random.unit() < 0.25 };
            if good {
                arrivals.push((sequence, 0));
            }
        }
        let loss = PacketLoss::of(&stream(200_000, &arrivals), TIMEOUT);
        let model = loss.gilbert.expect("both states");
        // Some 1920 runs: a relative standard error of 2.3 %; four of them.
        assert!((model.good_to_bad.get() / 0.01 - 1.0).abs() < 0.1, "{model:?}");
        assert!((model.bad_to_good.get() / 0.25 - 1.0).abs() < 0.1, "{model:?}");
    }

    proptest! {
        #[test]
        fn counts_add_up(arrived in proptest::collection::vec(any::<bool>(), 0..300), shuffle in any::<u64>()) {
            let mut arrivals: Vec<(u64, u64)> =
                arrived.iter().enumerate().filter(|(_, here)| **here).map(|(index, _)| (index as u64, 0)).collect();
            let mut random = SeededRandom::new(shuffle);
            for index in (1..arrivals.len()).rev() {
                arrivals.swap(index, random.below(index + 1));
            }
            let loss = PacketLoss::of(&stream(arrived.len() as u64, &arrivals), TIMEOUT);
            prop_assert_eq!(loss.lost.to_usize() + arrivals.len(), arrived.len());
            let in_runs: Vec<u64> = loss.runs.iter().flat_map(|run| run.first..run.first + run.length.get()).collect();
            let lost: Vec<u64> = (0_u64..).zip(&arrived).filter(|(_, here)| !**here).map(|(index, _)| index).collect();
            prop_assert_eq!(in_runs, lost);
        }
    }
}
