use core::fmt;

use core::time::Duration;
use serde::{Deserialize, Serialize};

use linerate_units::Ratio;

/// Grade of latency under load, best first. Traffic profiles use the same letters, with bounds of their own.
///
/// The thresholds are those of `DSLReports`, also used by Waveform and `LibreQoS`; as with `LibreQoS`, the worse
/// direction counts, where `DSLReports` uses the mean of both: a call breaks up by the worse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LatencyGrade {
    /// Less than 5 ms of added delay.
    #[serde(rename = "A+")]
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// 400 ms or more.
    F,
}

impl LatencyGrade {
    /// All grades with their thresholds; the last one has no bound.
    pub const TABLE: [(Self, Option<Duration>); 6] = [
        (Self::APlus, Some(Duration::from_millis(5))),
        (Self::A, Some(Duration::from_millis(30))),
        (Self::B, Some(Duration::from_millis(60))),
        (Self::C, Some(Duration::from_millis(200))),
        (Self::D, Some(Duration::from_millis(400))),
        (Self::F, None),
    ];

    /// Grade for an added delay.
    #[must_use]
    pub fn of(added: Duration) -> Self {
        let fits = |(_, below): &&(Self, Option<Duration>)| below.is_none_or(|below| added < below);
        Self::TABLE.iter().find(fits).map_or(Self::F, |(grade, _)| *grade)
    }

    /// Grade of a measurement of several directions or phases: that of the worst. `None` without values.
    #[must_use]
    pub fn of_worst(added: impl IntoIterator<Item = Duration>) -> Option<Self> {
        added.into_iter().max().map(Self::of)
    }

    /// Letter.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }

    /// Added delay below which the grade is given; `None` for the last.
    #[must_use]
    pub fn below(self) -> Option<Duration> {
        Self::TABLE.iter().find(|(grade, _)| *grade == self).and_then(|(_, below)| *below)
    }
}

/// Grade of packet loss, as in `DSLReports`' "quality".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossGrade {
    /// At most 1 %.
    APlus,
    /// At most 2.5 %.
    A,
    /// At most 3 %.
    B,
    /// At most 5 %.
    C,
    /// At most 12 %.
    D,
    /// More than 12 %.
    F,
}

impl LossGrade {
    /// Grade for this loss.
    #[must_use]
    pub fn of(loss: Ratio) -> Self {
        match loss.percent() {
            percent if percent <= 1.0 => Self::APlus,
            percent if percent <= 2.5 => Self::A,
            percent if percent <= 3.0 => Self::B,
            percent if percent <= 5.0 => Self::C,
            percent if percent <= 12.0 => Self::D,
            _ => Self::F,
        }
    }
}

impl fmt::Display for LatencyGrade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.letter())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn thresholds() {
        let table = [
            (0, "A+"),
            (4_999, "A+"),
            (5_000, "A"),
            (29_999, "A"),
            (30_000, "B"),
            (59_999, "B"),
            (60_000, "C"),
            (199_999, "C"),
            (200_000, "D"),
            (399_999, "D"),
            (400_000, "F"),
            (9_000_000, "F"),
        ];
        for (micros, letter) in table {
            assert_eq!(LatencyGrade::of(Duration::from_micros(micros)).letter(), letter, "{micros} µs");
        }
        // The xs4all access link: 573.6 − 17.1 ms and 2332.1 − 17.1 ms.
        assert_eq!(LatencyGrade::of_worst([556, 2315].map(Duration::from_millis)), Some(LatencyGrade::F));
        assert_eq!(LatencyGrade::of_worst([1, 31].map(Duration::from_millis)), Some(LatencyGrade::B));
        assert_eq!(LatencyGrade::of_worst([]), None);
        assert_eq!((LatencyGrade::C.below(), LatencyGrade::F.below()), (Some(Duration::from_millis(200)), None));
    }

    #[test]
    fn loss_has_its_own_ladder() {
        let of = |percent| LossGrade::of(Ratio::from_percent(percent).expect("a share"));
        assert_eq!(
            [0.0, 1.0, 2.0, 3.0, 4.0, 12.0].map(of),
            [LossGrade::APlus, LossGrade::APlus, LossGrade::A, LossGrade::B, LossGrade::C, LossGrade::D]
        );
        assert_eq!(of(12.1), LossGrade::F);
    }

    proptest! {
        #[test]
        fn more_delay_is_never_better(one in 0_u64..1_000_000, two in 0_u64..1_000_000) {
            let (less, more) = (one.min(two), one.max(two));
            prop_assert!(LatencyGrade::of(Duration::from_micros(less)) <= LatencyGrade::of(Duration::from_micros(more)));
        }
    }
}
