use super::constants::{
    DETECTION_COUNT, DETECTION_WINDOW, GROW_FULLY, GROWTH, LATE, REFRACTORY, SHRINK_FULLY, SHRINKAGE,
};
use super::side::Side;
use super::{Load, Reason};

/// cake-autorate's law.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline {
    delays: [f64; DETECTION_WINDOW],
    late: [bool; DETECTION_WINDOW],
    refractory_until: f64,
}

impl Baseline {
    pub(super) fn react(&mut self, side: &mut Side, now: f64) {
        let Some(delay) = side.window.last() else { return };
        let packet = side.packet_time();
        self.delays.rotate_left(1);
        self.late.rotate_left(1);
        self.delays[DETECTION_WINDOW - 1] = delay;
        self.late[DETECTION_WINDOW - 1] = delay > LATE + packet;
        let late = self.late.iter().filter(|late| **late).count() >= DETECTION_COUNT;
        // Six samples: the window's length as a number.
        let mean = self.delays.iter().sum::<f64>() / 6.0;
        side.reason = Reason::Hold;
        if late {
            if now >= self.refractory_until {
                side.rate *= between(mean, (LATE + packet, SHRINK_FULLY + packet), SHRINKAGE);
                self.refractory_until = now + REFRACTORY;
                side.reason = Reason::Drain;
            }
        } else if side.load() == Load::High {
            if side.fresh {
                side.fresh = false;
                side.rate *= between(mean, (GROW_FULLY + packet, LATE + packet), GROWTH);
                side.reason = Reason::Grow;
            }
        } else {
            side.decay(now);
        }
    }
}

/// The factor at `value`: linear between two values, constant beyond them.
fn between(value: f64, (low, high): (f64, f64), (at_low, at_high): (f64, f64)) -> f64 {
    let place = ((value - low) / (high - low)).clamp(0.0, 1.0);
    at_low + place * (at_high - at_low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_the_baseline() {
        for (delay, factor) in [(0.0, 1.04), (0.010, 1.04), (0.020, 1.02), (0.030, 1.0), (0.5, 1.0)] {
            assert!((between(delay, (GROW_FULLY, LATE), GROWTH) - factor).abs() < 1e-9, "{delay}");
        }
        for (delay, factor) in [(0.030, 0.99), (0.045, 0.87), (0.060, 0.75), (2.0, 0.75)] {
            assert!((between(delay, (LATE, SHRINK_FULLY), SHRINKAGE) - factor).abs() < 1e-9, "{delay}");
        }
    }
}
