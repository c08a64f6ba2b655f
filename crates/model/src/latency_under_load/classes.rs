use core::time::Duration;

use super::{Grade, Uplift};

/// A class of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// ICMP echo.
    Icmp,
    /// UDP with DSCP 0.
    UdpBestEffort,
    /// UDP with DSCP 46 (expedited forwarding, RFC 3246).
    UdpExpedited,
    /// Small messages on the connections that make the load.
    TcpInBand,
}

impl Class {
    /// Whether the verdict may go by this class. ICMP and expedited forwarding may be put ahead of what people use the path
    /// for, so that a full queue does not show in them.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::UdpBestEffort | Self::TcpInBand)
    }
}

/// What load adds to one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassUplift {
    /// Which class.
    pub class: Class,
    /// What is added.
    pub uplift: Uplift,
}

/// The class that the verdict goes by: of those that count, the one with the largest uplift. `None` when none of them was
/// measured: then there is no grade.
#[must_use]
pub fn worst_class(classes: &[ClassUplift]) -> Option<ClassUplift> {
    classes.iter().copied().filter(|entry| entry.class.counts()).max_by_key(|entry| entry.uplift.graded())
}

/// How a class is treated beside the worst of those that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// About the same uplift.
    Alike,
    /// A clearly smaller uplift: the class has a queue of its own, or passes the others.
    Preferred,
    /// A clearly larger uplift.
    Behind,
}

/// The classes of one phase, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The class that the verdict goes by.
    pub worst: ClassUplift,
    /// Its grade.
    pub grade: Grade,
    /// All classes beside it.
    pub treatments: Vec<(Class, Treatment)>,
    /// The grade that the class with the smallest uplift would have given, if that is a better one: what would have fooled
    /// a verdict that went by it.
    pub flattering: Option<(Class, Grade)>,
}

/// Medians that lie within this of each other are alike, however small they are.
const ALIKE: Duration = Duration::from_millis(5);

impl Comparison {
    /// The comparison; `None` when no class that counts was measured.
    #[must_use]
    pub fn of(classes: &[ClassUplift]) -> Option<Self> {
        let worst = worst_class(classes)?;
        let grade = Grade::of(worst.uplift.graded());
        let best = classes.iter().min_by_key(|entry| entry.uplift.graded())?;
        let best_grade = Grade::of(best.uplift.graded());
        Some(Self {
            worst,
            grade,
            treatments: classes.iter().map(|entry| (entry.class, treatment(entry, &worst))).collect(),
            flattering: (best_grade < grade).then_some((best.class, best_grade)),
        })
    }
}

/// By the medians: alike within 5 ms, or within a third of the larger.
fn treatment(entry: &ClassUplift, worst: &ClassUplift) -> Treatment {
    let (own, other) = (entry.uplift.median.or_zero(), worst.uplift.median.or_zero());
    if own.abs_diff(other) <= ALIKE.max(own.max(other) / 3) {
        Treatment::Alike
    } else if own < other {
        Treatment::Preferred
    } else {
        Treatment::Behind
    }
}

#[cfg(test)]
mod tests {
    use Treatment::{Alike, Preferred};

    use super::*;
    use crate::statistics::Signed;

    fn uplift(class: Class, milliseconds: u64) -> ClassUplift {
        let signed = Signed { negative: false, magnitude: Duration::from_millis(milliseconds) };
        let uplift = Uplift {
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
            uplift(Class::Icmp, 3),
            uplift(Class::UdpExpedited, 2),
            uplift(Class::UdpBestEffort, 190),
            uplift(Class::TcpInBand, 240),
        ];
        let comparison = Comparison::of(&classes).expect("classes that count");
        assert_eq!((comparison.worst.class, comparison.grade), (Class::TcpInBand, Grade::D));
        assert_eq!(comparison.flattering, Some((Class::UdpExpedited, Grade::APlus)));
        let treatments: Vec<_> = comparison.treatments.iter().map(|(_, treatment)| *treatment).collect();
        assert_eq!(treatments, [Preferred, Preferred, Alike, Alike]);
    }

    #[test]
    fn classes_that_may_be_preferred_give_no_grade_alone() {
        assert_eq!(Comparison::of(&[uplift(Class::Icmp, 3), uplift(Class::UdpExpedited, 900)]), None);
        assert_eq!(worst_class(&[]), None);
        let comparison = Comparison::of(&[uplift(Class::UdpBestEffort, 2), uplift(Class::Icmp, 40)]);
        let comparison = comparison.expect("a class that counts");
        assert_eq!((comparison.grade, comparison.flattering), (Grade::APlus, None));
        assert_eq!(comparison.treatments[1], (Class::Icmp, Treatment::Behind));
    }
}
