//! Predicted delay of a shaper, for comparison with measurements.

use core::time::Duration;
use linerate_model::direction::Direction;

use linerate_units::{ByteCount, display};

use crate::link::AccessLink;
use crate::policy::TrafficImportance;

/// Predicted delays of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredictedDelays {
    /// One entry per direction and class.
    pub classes: Vec<ClassPrediction>,
}

/// Predicted delay of a small packet of one class, with the link full in that direction and idle in the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPrediction {
    /// Loaded direction.
    pub direction: Direction,
    /// Class of the packet.
    pub importance: TrafficImportance,
    /// Round-trip time of the idle link; `None` when not measured, and then the times below exclude it.
    pub idle: Option<Duration>,
    /// Serialisation time of a full packet at the set rate.
    pub serialisation: Duration,
    /// Delay that the class's own queue adds to a sparse flow.
    pub leaf: Duration,
    /// Delay of a flow that fills the class, in its own queue.
    pub own_queue: Duration,
    /// Mean delay: idle + half a packet + leaf.
    pub mean: Duration,
    /// Longest delay: idle + two packets + twice the leaf.
    pub max: Duration,
    /// The sum as text.
    pub arithmetic: String,
}

/// Agreement of a measured mean with its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionAgreement {
    /// Not above the longest predicted delay.
    AsPredicted,
    /// Above it, by this time.
    Longer(Duration),
}

impl ClassPrediction {
    /// Predicts for a class that adds (`leaf`, `own_queue`), on a link with a rate in that direction, where a full
    /// packet occupies `packet` bytes; `None` without a rate.
    ///
    /// A shaper sends whole packets: one arriving at a random moment waits half a packet's time on average for the
    /// current one, and at most two, because a full bucket lets one more through at once.
    #[must_use]
    pub fn new(
        line: &AccessLink,
        packet: ByteCount,
        (direction, importance): (Direction, TrafficImportance),
        (leaf, own_queue): (Duration, Duration),
    ) -> Option<Self> {
        let serialisation = line.rate(direction)?.time_to_send(packet)?;
        let idle = line.idle.unwrap_or_default();
        let mean = idle.saturating_add(serialisation / 2).saturating_add(leaf);
        let longest = idle.saturating_add(serialisation.saturating_mul(2)).saturating_add(leaf.saturating_mul(2));
        let named = line.idle.map_or("idle".to_owned(), |idle| format!("{} idle", display::duration(idle)));
        let shown = display::duration;
        let arithmetic = format!(
            "{named} + 0.5 x {} for a packet of {} B at {} + {} in the leaf = {}{}",
            shown(serialisation),
            packet.get(),
            display::rate(line.rate(direction)?),
            shown(leaf),
            shown(mean),
            if line.idle.is_some() { "" } else { " above idle" },
        );
        Some(Self {
            direction,
            importance,
            idle: line.idle,
            serialisation,
            leaf,
            own_queue,
            mean,
            max: longest,
            arithmetic,
        })
    }

    /// Compares with the measured mean of a probe of this class. Where [`idle`](Self::idle) is unknown, `measured` is
    /// the delay added to the idle link.
    #[must_use]
    pub fn compare(&self, measured: Duration) -> PredictionAgreement {
        match measured.checked_sub(self.max) {
            None | Some(Duration::ZERO) => PredictionAgreement::AsPredicted,
            Some(by) => PredictionAgreement::Longer(by),
        }
    }
}

impl PredictedDelays {
    /// Entry of a direction and class.
    #[must_use]
    pub fn class(&self, direction: Direction, importance: TrafficImportance) -> Option<&ClassPrediction> {
        self.classes.iter().find(|entry| entry.direction == direction && entry.importance == importance)
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::BitRate;

    use super::*;

    /// LARTC's own link: 17 ms idle, 1500 B at 220 kbit/s take 54.5 ms; half of that and 17 are 44.3.
    #[test]
    fn the_formula_by_hand() {
        let mut line = AccessLink::new(Some(BitRate::from_bits_per_second(220e3)), None);
        line.idle = Some(Duration::from_millis(17));
        let of = |importance, leaf| {
            ClassPrediction::new(&line, line.full_packet(), (Direction::Up, importance), (leaf, Duration::ZERO))
                .expect("there is a rate")
        };
        let first = of(TrafficImportance::Interactive, Duration::ZERO);
        assert!(first.mean.abs_diff(Duration::from_micros(44_273)) < Duration::from_micros(1), "{:?}", first.mean);
        assert!(first.max.abs_diff(Duration::from_micros(126_091)) < Duration::from_micros(1), "{:?}", first.max);
        assert!(first.arithmetic.contains("1500 B at 220 kbit/s"), "{}", first.arithmetic);
        assert_eq!(first.compare(first.max), PredictionAgreement::AsPredicted);
        let more = first.max + Duration::from_millis(3);
        assert_eq!(first.compare(more), PredictionAgreement::Longer(Duration::from_millis(3)));
        let second = of(TrafficImportance::Default, Duration::from_millis(5));
        assert_eq!(second.mean, first.mean + Duration::from_millis(5));
        let down = (Direction::Down, TrafficImportance::Bulk);
        assert_eq!(ClassPrediction::new(&line, line.full_packet(), down, (Duration::ZERO, Duration::ZERO)), None);
    }
}
