//! Laws between rates, sizes and times.

use std::time::Duration;

use linerate_units::{BitRate, ByteCount, MonotonicTime, PacketCount, Ratio};
use proptest::prelude::*;

fn close(left: f64, right: f64, relative: f64, absolute: f64) -> bool {
    (left - right).abs() <= right.abs() * relative + absolute
}

#[test]
fn the_bandwidth_delay_product_of_the_rhel_guide() {
    let rate = BitRate::from_bits_per_second(10e9);
    let round_trip_time = Duration::from_millis(117);
    let product = rate * round_trip_time;
    assert_eq!(product, ByteCount::new(146_250_000));
    assert_eq!(product / rate, Some(round_trip_time));
    assert_eq!(product / round_trip_time, rate);
}

#[test]
fn undefined_results_are_none() {
    let size = ByteCount::new(1);
    assert_eq!(size / BitRate::ZERO, None);
    assert_eq!(size / Duration::ZERO, BitRate::ZERO);
    assert_eq!(size / ByteCount::ZERO, None);
    assert_eq!(BitRate::ZERO / BitRate::ZERO, None);
    assert_eq!(PacketCount::new(1).share_of(PacketCount::ZERO), None);
    assert_eq!(size.checked_sub(ByteCount::new(2)), None);
    assert_eq!(size - ByteCount::new(2), ByteCount::ZERO);
    assert_eq!(BitRate::from_bits_per_second(f64::NAN), BitRate::ZERO);
    assert_eq!(BitRate::from_bits_per_second(-1.0), BitRate::ZERO);
    assert_eq!(Ratio::new(-0.1), None);
}

proptest! {
    #[test]
    fn a_rate_over_a_time_gives_the_rate_back(bits in 1e3_f64..1e12, milliseconds in 1_u64..1_000_000) {
        let rate = BitRate::from_bits_per_second(bits);
        let time = Duration::from_millis(milliseconds);
        let back = (rate * time) / time;
        // The size is rounded to a byte: half a byte, in bit/s.
        prop_assert!(close(back.bits_per_second(), bits, 1e-9, 4.0 / time.as_secs_f64()));
    }

    #[test]
    fn a_size_at_a_rate_gives_the_size_back(bytes in 0_u64..1 << 40, bits in 1e3_f64..1e12) {
        let rate = BitRate::from_bits_per_second(bits);
        let time = (ByteCount::new(bytes) / rate).expect("a rate above zero");
        let back = rate * time;
        // The time is rounded to a nanosecond, the size to a byte.
        prop_assert!(close(back.as_f64(), ByteCount::new(bytes).as_f64(), 1e-9, bits * 1e-9 / 8.0 + 0.5));
    }

    #[test]
    fn rates_add_like_sizes(left in 0_u64..1 << 40, right in 0_u64..1 << 40, milliseconds in 1_u64..100_000) {
        let time = Duration::from_millis(milliseconds);
        let (left, right) = (ByteCount::new(left), ByteCount::new(right));
        let sum = (left + right) / time;
        prop_assert!(close((left / time + right / time).bits_per_second(), sum.bits_per_second(), 1e-12, 0.0));
        prop_assert_eq!(left + right, right + left);
        prop_assert_eq!((left + right) - right, left);
        prop_assert_eq!([left, right].into_iter().sum::<ByteCount>(), left + right);
    }

    #[test]
    fn sums_saturate(left: u64, right: u64) {
        let sum = ByteCount::new(left) + ByteCount::new(right);
        prop_assert_eq!(sum.get(), left.saturating_add(right));
        let difference = PacketCount::new(left) - PacketCount::new(right);
        prop_assert_eq!(difference.get(), left.saturating_sub(right));
    }

    #[test]
    fn a_part_is_between_zero_and_the_whole(part in 0_u64..1 << 50, more in 1_u64..1 << 50) {
        let whole = ByteCount::new(part + more);
        let share = (ByteCount::new(part) / whole).expect("a whole above zero");
        prop_assert!(share >= Ratio::ZERO && share.get() <= 1.0);
        prop_assert!(close(share.get() * whole.as_f64(), ByteCount::new(part).as_f64(), 1e-9, 0.0));
    }

    #[test]
    fn clocks_go_forward(start in 0_u64..1 << 62, nanoseconds in 0_u64..1 << 62) {
        let start = MonotonicTime::from_nanos(start);
        let time = Duration::from_nanos(nanoseconds);
        prop_assert_eq!((start + time) - start, time);
        prop_assert_eq!(start - (start + time), Duration::ZERO);
    }

    #[test]
    fn rates_are_ordered_as_their_numbers(left in 0.0_f64..1e15, right in 0.0_f64..1e15) {
        let (a, b) = (BitRate::from_bits_per_second(left), BitRate::from_bits_per_second(right));
        prop_assert_eq!(a < b, left < right);
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
    }
}
