//! Ticks and labels of axes.

use linerate_documents::run::FigureUnit;

use crate::presentation::{Quantity, as_f64};

/// Scale of the labels of an axis: a factor, and the name of the unit of a number divided by it.
pub(super) fn axis_unit(unit: FigureUnit, largest: f64) -> (f64, String) {
    const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
    let metric = |name: &str| {
        let steps = PREFIXES.iter().zip([1.0, 1e3, 1e6, 1e9, 1e12]);
        let steps: Vec<(f64, String)> = steps.map(|(prefix, factor)| (factor, format!("{prefix}{name}"))).collect();
        steps
    };
    let named = |steps: &[(f64, &str)]| steps.iter().map(|(factor, name)| (*factor, (*name).to_owned())).collect();
    let steps: Vec<(f64, String)> = match unit {
        FigureUnit::BitsPerSecond => metric("bit/s"),
        FigureUnit::Bytes => metric("B"),
        FigureUnit::Nanoseconds => named(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
        FigureUnit::Share => named(&[(0.01, "%")]),
        FigureUnit::Packets => named(&[(1.0, "packets")]),
        FigureUnit::Segments => named(&[(1.0, "segments")]),
        FigureUnit::RoundTripsPerMinute => named(&[(1.0, "RPM")]),
        FigureUnit::PerSecond => named(&[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")]),
        FigureUnit::One => named(&[(1.0, "")]),
    };
    let fits = steps.iter().rposition(|(factor, _)| 2.0 * factor <= largest).unwrap_or(0);
    steps.into_iter().nth(fits).unwrap_or((1.0, String::new()))
}

/// Multiples of 1, 2 or 5 of a power of ten from `low` to `high`, about `count` of them.
pub(super) fn ticks(low: f64, high: f64, count: u32) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return Vec::new();
    }
    let raw = span / f64::from(count.max(1));
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= raw * 0.999);
    let step = step.unwrap_or(raw);
    let first = (low / step).ceil();
    let all = (0..=2 * count).map(|index| (first + f64::from(index)) * step);
    all.filter(|tick| *tick <= high * (1.0 + 1e-9) + step * 1e-9).collect()
}

/// Powers of ten from `low` to `high`, with their double and fivefold where these are few.
pub(super) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    const MAX_DECADES: i32 = 40;
    let digits: &[f64] = if high / low > 3_000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let first = low.log10().floor();
    let powers = (0..MAX_DECADES).map(|index| 10_f64.powf(first + f64::from(index)));
    let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
    all.filter(|tick| *tick >= low && *tick <= high).collect()
}

/// Times of the labels of an axis of `end_ns` nanoseconds, in nanoseconds.
pub(super) fn time_ticks(end_ns: u64) -> Vec<u64> {
    const SECOND: u64 = 1_000_000_000;
    const MAX_TICKS: u64 = 5;
    const STEPS: [u64; 16] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600, 7_200, 21_600, 43_200, 86_400];
    if end_ns < 2 * SECOND {
        return ticks(0.0, as_f64(end_ns), 4).into_iter().map(crate::presentation::whole).collect();
    }
    let fits = STEPS.iter().map(|step| step * SECOND).find(|step| end_ns / step <= MAX_TICKS);
    let step = fits.unwrap_or(end_ns / MAX_TICKS).max(1);
    (0..=MAX_TICKS).map(|index| index * step).filter(|time| *time <= end_ns).collect()
}

/// Label of a time: `15 s`, `2:30`.
pub(super) fn time_label(time_ns: u64) -> String {
    let seconds = time_ns / 1_000_000_000;
    if time_ns == 0 {
        "0 s".to_owned()
    } else if seconds >= 120 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else if time_ns.is_multiple_of(1_000_000_000) {
        format!("{seconds} s")
    } else {
        Quantity::nanoseconds(time_ns).display_text()
    }
}

/// A number with as few digits as it needs.
pub(super) fn short(number: f64) -> String {
    let text = format!("{number:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(ticks(0.0, 1000.0, 4), [0.0, 500.0, 1000.0]);
        assert_eq!(ticks(0.0, 7.2, 4), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(log_ticks(9.0, 120.0), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(
            time_ticks(40_000_000_000).into_iter().map(time_label).collect::<Vec<_>>(),
            ["0 s", "10 s", "20 s", "30 s", "40 s"]
        );
        assert_eq!(
            time_ticks(600_000_000_000).into_iter().map(time_label).collect::<Vec<_>>(),
            ["0 s", "2:00", "4:00", "6:00", "8:00", "10:00"]
        );
    }

    #[test]
    fn labels_have_the_unit_of_the_largest_value() {
        assert_eq!(axis_unit(FigureUnit::BitsPerSecond, 7.5e6), (1e6, "Mbit/s".to_owned()));
        assert_eq!(axis_unit(FigureUnit::Nanoseconds, 1.2e9), (1e6, "ms".to_owned()));
        assert_eq!([0.5, 20.0, -0.0, 1e-9].map(short), ["0.5", "20", "0", "0"]);
    }

    proptest! {
        #[test]
        fn ticks_of_any_range_are_few_and_inside(low in -1e15..1e15_f64, span in 1e-6..1e15_f64, end: u64) {
            let found = ticks(low, low + span, 4);
            prop_assert!(found.len() <= 9, "{found:?}");
            prop_assert!(time_ticks(end).len() <= 9);
            prop_assert!(found.iter().all(|tick| *tick >= low - span * 1e-6 && *tick <= low + span * 1.1));
        }
    }
}
