use super::constants::{
    DETECTION_COUNT, DETECTION_WINDOW, FULL_GROWTH_DELAY, FULL_SHRINKAGE_DELAY, GROWTH_FACTORS, LATE_DELAY,
    REFRACTORY_TIME, SHRINKAGE_FACTORS,
};
use super::direction_state::DirectionState;
use super::{LoadLevel, RateReason};

/// Control law of cake-autorate.
#[derive(Clone, Debug, Default)]
pub(super) struct CakeAutorateLaw {
    delays: [f64; DETECTION_WINDOW],
    late: [bool; DETECTION_WINDOW],
    refractory_until: f64,
}

impl CakeAutorateLaw {
    pub(super) fn react(&mut self, side: &mut DirectionState, now: f64) {
        let Some(delay) = side.window.last() else { return };
        let packet = side.packet_time();
        self.delays.rotate_left(1);
        self.late.rotate_left(1);
        self.delays[DETECTION_WINDOW - 1] = delay;
        self.late[DETECTION_WINDOW - 1] = delay > LATE_DELAY + packet;
        let late = self.late.iter().filter(|late| **late).count() >= DETECTION_COUNT;
        // Six samples: the length of the window.
        let mean = self.delays.iter().sum::<f64>() / 6.0;
        side.reason = RateReason::Hold;
        if late {
            if now >= self.refractory_until {
                side.rate *=
                    interpolated(mean, (LATE_DELAY + packet, FULL_SHRINKAGE_DELAY + packet), SHRINKAGE_FACTORS);
                self.refractory_until = now + REFRACTORY_TIME;
                side.reason = RateReason::Drain;
            }
        } else if side.load() == LoadLevel::High {
            if side.fresh {
                side.fresh = false;
                side.rate *= interpolated(mean, (FULL_GROWTH_DELAY + packet, LATE_DELAY + packet), GROWTH_FACTORS);
                side.reason = RateReason::Grow;
            }
        } else {
            side.decay(now);
        }
    }
}

/// Factor at `value`: linear between two values, constant beyond them.
fn interpolated(value: f64, (low, high): (f64, f64), (at_low, at_high): (f64, f64)) -> f64 {
    let place = ((value - low) / (high - low)).clamp(0.0, 1.0);
    at_low + place * (at_high - at_low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_the_baseline() {
        for (delay, factor) in [(0.0, 1.04), (0.010, 1.04), (0.020, 1.02), (0.030, 1.0), (0.5, 1.0)] {
            assert!(
                (interpolated(delay, (FULL_GROWTH_DELAY, LATE_DELAY), GROWTH_FACTORS) - factor).abs() < 1e-9,
                "{delay}"
            );
        }
        for (delay, factor) in [(0.030, 0.99), (0.045, 0.87), (0.060, 0.75), (2.0, 0.75)] {
            assert!(
                (interpolated(delay, (LATE_DELAY, FULL_SHRINKAGE_DELAY), SHRINKAGE_FACTORS) - factor).abs() < 1e-9,
                "{delay}"
            );
        }
    }
}
