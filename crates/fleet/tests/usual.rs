//! Usual ranges: the values that count, and the promised probability, by simulation.

use std::time::Duration;

use jiff::tz::TimeZone;
use linerate_fleet::usual::{FALSE_WORSE, MIN_VALUES, TimedValue, UsualBasis, UsualRange, WorseSide};
use linerate_units::WallTime;

const HOUR: u64 = 3600;

fn value(hour: u64, value: f64) -> TimedValue {
    TimedValue { at: WallTime::from_unix(Duration::from_secs(hour * HOUR)), value }
}

fn at(hour: u64) -> WallTime {
    WallTime::from_unix(Duration::from_secs(hour * HOUR))
}

fn range(values: &[TimedValue], hour: u64, side: WorseSide) -> Option<UsualRange> {
    UsualRange::of(values, at(hour), side, &TimeZone::UTC)
}

#[test]
fn the_narrowest_hours_with_enough_values_count() {
    let weeks = |count: u64| (0..count).map(|week| value(week * 168, 1.0)).collect::<Vec<_>>();
    let days = |count: u64| (0..count).map(|day| value(day * 24, 2.0)).collect::<Vec<_>>();
    let basis =
        |values: &[TimedValue], hour| range(values, hour, WorseSide::Lower).map(|range| (range.basis, range.count));
    assert_eq!(basis(&weeks(18), 18 * 168), None);
    assert_eq!(basis(&weeks(19), 19 * 168), Some((UsualBasis::HourOfWeek, 19)));
    assert_eq!(basis(&days(19), 19 * 24), Some((UsualBasis::HourOfDay, 19)));
    assert_eq!(basis(&days(19), 19 * 24 + 5), Some((UsualBasis::AnyHour, 19)));
    // Values of the future and the new one itself do not count.
    assert_eq!(basis(&days(19), 18 * 24), None);
}

#[test]
fn worse_is_beyond_the_bound_and_noticeable() {
    let steady: Vec<TimedValue> = (0..40).map(|hour| value(hour, 100.0)).collect();
    let slow = range(&steady, 40, WorseSide::Lower).expect("enough values");
    assert!(!slow.is_worse(95.0, WorseSide::Lower), "5 % less is not noticed");
    assert!(slow.is_worse(80.0, WorseSide::Lower) && !slow.is_worse(120.0, WorseSide::Lower));
    let late = range(&steady, 40, WorseSide::Higher).expect("enough values");
    assert!(late.is_worse(120.0, WorseSide::Higher) && !late.is_worse(80.0, WorseSide::Higher));
}

/// Pseudo-random numbers (xorshift), the same in each run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        #[expect(clippy::cast_precision_loss, reason = "a random number")]
        let unit = (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
        // A long tail, and a spread beyond what is unnoticed.
        1.0 / (0.01 + unit)
    }
}

/// At most 5 % of values like all others are called worse, and two in a row far fewer.
#[test]
fn usual_values_are_seldom_called_worse() {
    for count in [MIN_VALUES as u64, 39, 100, 300] {
        let mut noise = Noise(88_172_645_463_325_252 + count);
        let (mut single, mut double) = (0.0, 0.0);
        let rounds = 4000;
        for _ in 0..rounds {
            let values: Vec<TimedValue> = (0..count).map(|hour| value(hour, noise.next())).collect();
            let range = range(&values, count, WorseSide::Higher).expect("enough values");
            let is_worse = [(); 2].map(|()| range.is_worse(noise.next(), WorseSide::Higher));
            single += f64::from(u8::from(is_worse[0]));
            double += f64::from(u8::from(is_worse[0] && is_worse[1]));
        }
        let share = |sum: f64| sum / f64::from(rounds);
        // Three standard deviations of a count.
        let limit = FALSE_WORSE + 3.0 * (FALSE_WORSE / f64::from(rounds)).sqrt();
        assert!(share(single) <= limit, "{count} values: {}", share(single));
        assert!(share(double) <= 0.01, "{count} values: {}", share(double));
    }
}
