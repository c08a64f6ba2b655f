//! The delay that a shaper should leave, as arithmetic that a measurement can contradict.

use core::time::Duration;

use linerate_units::{ByteCount, display};

use crate::link::{Direction, Line};
use crate::policy::Importance;

/// What is to be expected of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// One entry for each direction and class.
    pub classes: Vec<ClassPrediction>,
}

/// What a small packet of one class should meet while the line is full in that direction, and idle in the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPrediction {
    /// Which direction is full.
    pub direction: Direction,
    /// Of which class the packet is.
    pub importance: Importance,
    /// The round-trip time of the idle line; `None` when nobody measured, and then the times below are additions to it.
    pub idle: Option<Duration>,
    /// How long a full packet keeps the line busy at the set rate.
    pub serialisation: Duration,
    /// What the class's own queue adds to a packet of a flow that does not fill it.
    pub leaf: Duration,
    /// What a flow that fills the class finds in its own queue.
    pub own_queue: Duration,
    /// The mean: idle + half a packet + leaf.
    pub mean: Duration,
    /// The longest: idle + two packets + twice the leaf.
    pub longest: Duration,
    /// The sum as text.
    pub arithmetic: String,
}

/// How a measured mean stands to its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Not above the longest that was predicted.
    AsPredicted,
    /// Above it, by so much.
    Longer(Duration),
}

impl ClassPrediction {
    /// For a line that has a rate in that direction, on which a full packet occupies `packet` bytes, and a class that adds
    /// (`leaf`, `own_queue`); `None` without a rate.
    ///
    /// A shaper hands over whole packets: one arriving at a random moment waits half a packet's time on average for the one
    /// under way, and at most two, because a bucket that is full lets one more through at once.
    #[must_use]
    pub fn new(
        line: &Line,
        packet: ByteCount,
        (direction, importance): (Direction, Importance),
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
        Some(Self { direction, importance, idle: line.idle, serialisation, leaf, own_queue, mean, longest, arithmetic })
    }

    /// Compares with the mean that a probe of this class measured. Where [`idle`](Self::idle) is not known, `measured` is
    /// what was added to the idle line.
    #[must_use]
    pub fn compare(&self, measured: Duration) -> Agreement {
        match measured.checked_sub(self.longest) {
            None | Some(Duration::ZERO) => Agreement::AsPredicted,
            Some(by) => Agreement::Longer(by),
        }
    }
}

impl Prediction {
    /// The entry of a direction and class.
    #[must_use]
    pub fn of(&self, direction: Direction, importance: Importance) -> Option<&ClassPrediction> {
        self.classes.iter().find(|entry| entry.direction == direction && entry.importance == importance)
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::BitRate;

    use super::*;

    /// LARTC's own line: 17 ms idle, 1500 B at 220 kbit/s take 54.5 ms; half of that and 17 are 44.3.
    #[test]
    fn the_formula_by_hand() {
        let mut line = Line::new(Some(BitRate::from_bits_per_second(220e3)), None);
        line.idle = Some(Duration::from_millis(17));
        let of = |importance, leaf| {
            ClassPrediction::new(&line, line.full_packet(), (Direction::Up, importance), (leaf, Duration::ZERO))
                .expect("there is a rate")
        };
        let first = of(Importance::Interactive, Duration::ZERO);
        assert!(first.mean.abs_diff(Duration::from_micros(44_273)) < Duration::from_micros(1), "{:?}", first.mean);
        assert!(
            first.longest.abs_diff(Duration::from_micros(126_091)) < Duration::from_micros(1),
            "{:?}",
            first.longest
        );
        assert!(first.arithmetic.contains("1500 B at 220 kbit/s"), "{}", first.arithmetic);
        assert_eq!(first.compare(first.longest), Agreement::AsPredicted);
        let more = first.longest + Duration::from_millis(3);
        assert_eq!(first.compare(more), Agreement::Longer(Duration::from_millis(3)));
        let second = of(Importance::Default, Duration::from_millis(5));
        assert_eq!(second.mean, first.mean + Duration::from_millis(5));
        let down = (Direction::Down, Importance::Bulk);
        assert_eq!(ClassPrediction::new(&line, line.full_packet(), down, (Duration::ZERO, Duration::ZERO)), None);
    }
}
